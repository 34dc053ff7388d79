// Keys and entries for tests of the table alone: hashes are chosen, entries that are alive are counted, and half of the
// keys can be inline.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "storage/clock.h"

namespace idemd::storage {

inline uint64_t MixedHash(uint64_t number) {  // splitmix64
  uint64_t x = number * 0x9e3779b97f4a7c15u + 0x7654321u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

using HashFunction = uint64_t (*)(uint64_t number);

// A key is a number. Of four, the first two can be inline; they have the same 16 bytes and differ in their shapes.
struct PlainKey {
  explicit PlainKey(uint64_t n);
  static bool CanBeInline(uint64_t n) { return n % 4 < 2; }
  // A shape of this key; `version` makes different ones.
  uint32_t ShapeFor(uint64_t version) const { return 2 + static_cast<uint32_t>(version % 120 * 2 + (number & 1)); }

  uint64_t number;
  uint64_t hash;
  uint64_t words[2];
};

class PlainEntry {
 public:
  using Key = PlainKey;
  // Of all keys; a test sets it before it makes any.
  static inline HashFunction hash_function = &MixedHash;

  PlainEntry(uint64_t number, uint64_t version, int64_t deadline_ms = kNoDeadline)
      : number_(number),
        hash_(hash_function(number)),
        version_(version),
        check_(Proof(number, version)),
        deadline_ms_(deadline_ms) {
    living.fetch_add(1, std::memory_order_relaxed);
  }
  static void Destroy(PlainEntry* entry) {
    entry->check_ = 0;  // so that a late reader notices
    delete entry;
    living.fetch_sub(1, std::memory_order_relaxed);
  }
  static void DestroyRetired(void* at) { Destroy(static_cast<PlainEntry*>(at)); }

  // --- what the table asks
  static const uint64_t* Words(const Key& key) { return Key::CanBeInline(key.number) ? key.words : nullptr; }
  static bool ShapeIs(uint32_t shape, const Key& key) { return (shape & 1) == (key.number & 1); }
  static uint64_t NumberOf(uint32_t shape, const uint64_t* words) { return words[0] | (shape & 1); }
  static uint64_t InlineHash(uint32_t shape, const uint64_t* words) { return hash_function(NumberOf(shape, words)); }
  static uint64_t SecondWord(uint64_t number) { return ~(number & ~uint64_t{1}) * 0x9e3779b97f4a7c15u; }
  bool Is(const Key& key) const { return number_ == key.number; }
  uint64_t hash() const { return hash_; }
  int64_t deadline_ms() const { return deadline_ms_.load(std::memory_order_relaxed); }

  void set_deadline_ms(int64_t at) { deadline_ms_.store(at, std::memory_order_relaxed); }
  uint64_t number() const { return number_; }
  uint64_t version() const { return version_; }
  bool proves_itself() const { return check_ == Proof(number_, version_); }

  static inline std::atomic<int64_t> living{0};

 private:
  static uint64_t Proof(uint64_t number, uint64_t version) {
    return (MixedHash(number) ^ (version * 0x9e3779b97f4a7c15u)) | 1;
  }

  const uint64_t number_;
  const uint64_t hash_;
  const uint64_t version_;
  uint64_t check_;
  std::atomic<int64_t> deadline_ms_;
};

inline PlainKey::PlainKey(uint64_t n)
    : number(n), hash(PlainEntry::hash_function(n)), words{n & ~uint64_t{1}, PlainEntry::SecondWord(n)} {}

}  // namespace idemd::storage
