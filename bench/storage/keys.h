// Keys made before the clock runs: one after another in memory, so that reading the next one costs
// nothing and a table's own misses are what is measured.
//
// The same seed gives the same keys, in every process and for every table.
// Threads   Keys: immutable once made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/token/token.h"

namespace idemd::bench {

// Keys of one length.
class Keys {
 public:
  Keys() = default;
  explicit Keys(size_t key_bytes) : key_bytes_(key_bytes) {}
  void Reserve(size_t n) { bytes_.reserve(n * key_bytes_); }
  // `key` has the length that the constructor was told.
  void Add(absl::string_view key) { bytes_.append(key.data(), key.size()); }
  size_t size() const { return key_bytes_ == 0 ? 0 : bytes_.size() / key_bytes_; }
  absl::string_view operator[](size_t i) const {
    return {bytes_.data() + i * key_bytes_, key_bytes_};
  }
  // `n` of them (at most all), no one twice, in random order.
  Keys Sample(size_t n, uint64_t seed) const;

 private:
  size_t key_bytes_ = 0;
  std::string bytes_;
};

inline constexpr size_t kUuidChars = 36;

// A random UUID (RFC 9562, version 4) as lower-case text.
inline void WriteUuid(std::mt19937_64& random, char* out) {
  const uint64_t half[2] = {(random() & ~uint64_t{0xf000}) | 0x4000,
                            (random() & ~(uint64_t{3} << 62)) | uint64_t{1} << 63};
  int digit = 0;
  for (size_t i = 0; i < kUuidChars; ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      out[i] = '-';
      continue;
    }
    out[i] = "0123456789abcdef"[half[digit / 16] >> (60 - digit % 16 * 4) & 15];
    ++digit;
  }
}

// `prefix` and a UUID.
inline Keys UuidKeys(size_t n, uint64_t seed, absl::string_view prefix = "") {
  std::mt19937_64 random(seed);
  std::string key(prefix);
  key.resize(prefix.size() + kUuidChars);
  Keys keys(key.size());
  keys.Reserve(n);
  for (size_t i = 0; i < n; ++i) {
    WriteUuid(random, key.data() + prefix.size());
    keys.Add(key);
  }
  return keys;
}

// Names as long as a UUID that have no binary form: dots stand where none of them has one.
inline Keys NameKeys(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string key(kUuidChars, '.');
  Keys keys(key.size());
  keys.Reserve(n);
  for (size_t i = 0; i < n; ++i) {
    uint64_t bits = 0;
    for (size_t j = 0; j < kUuidChars; ++j) {
      if (j % 12 == 0) bits = random();
      if (j % 12 != 10) key[j] = "abcdefghijklmnopqrstuvwxyz012345"[bits & 31];
      bits >>= 5;
    }
    keys.Add(key);
  }
  return keys;
}

// One-shot tokens of ours without a prefix.
inline Keys TokenKeys(size_t n, int64_t expiry_ms) {
  const storage::TokenMint mint(storage::TokenMint::NewKey());
  Keys keys(storage::kTokenChars);
  keys.Reserve(n);
  std::string key(storage::kTokenChars, ' ');
  for (size_t i = 0; i < n; ++i) {
    if (!mint.Issue(0, "", expiry_ms + static_cast<int64_t>(i & 0xfffff), key.data())) break;
    keys.Add(key);
  }
  return keys;
}

inline Keys Keys::Sample(size_t n, uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::vector<uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0);
  if (n > order.size()) n = order.size();
  Keys sample(key_bytes_);
  sample.Reserve(n);
  for (size_t i = 0; i < n; ++i) {  // Fisher and Yates, as far as it is needed
    std::swap(order[i], order[i + random() % (order.size() - i)]);
    sample.Add((*this)[order[i]]);
  }
  return sample;
}

}  // namespace idemd::bench
