// One-shot tokens: 32 characters of base64url that tell by themselves when they were to expire and that we issued them.
//
//   bytes  0..5   expiry, unix ms, big-endian (48 bits)
//          6..13  random, from a CSPRNG (64 bits)
//         14..23  tag: the first 80 bits of a keyed MAC over database, prefix, expiry and random
//
// Threads   TokenMint is shared; Issue() and Read() may be called from any thread, SetKey() before they are.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::storage {

inline constexpr size_t kTokenChars = 32;
inline constexpr int64_t kTokenExpiryMax = (int64_t{1} << 48) - 1;
using TokenKey = std::array<uint8_t, 32>;

// What a token's own text says. Read off key = prefix + token.
struct TokenReading {
  bool issued = false;    // the tag is ours, for this database and prefix
  int64_t expiry_ms = 0;  // when issued
};

class TokenMint {
 public:
  explicit TokenMint(const TokenKey& key);
  ~TokenMint();
  // A fresh key from the CSPRNG.
  static TokenKey NewKey();
  // The key that lives with the data, once that has been read.
  void SetKey(const TokenKey& key);
  // Writes 32 characters to `out`. False when the system has no randomness to give (never guess then).
  [[nodiscard]] bool Issue(uint32_t db, absl::string_view prefix, int64_t expiry_ms, char* out) const;
  TokenReading Read(uint32_t db, absl::string_view key) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `chars` digits of hexadecimal from the CSPRNG, for run ids and the like.
std::string RandomHex(size_t chars);
uint64_t RandomU64();

}  // namespace idemd::storage
