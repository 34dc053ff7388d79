// An entry for tests of the table alone: its hash is chosen, and entries that are alive are
// counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/clock.h"

namespace idemd::storage {

class PlainEntry {
 public:
  PlainEntry(uint64_t hash, std::string key, uint64_t version, int64_t deadline_ms = kNoDeadline)
      : hash_(hash),
        key_(std::move(key)),
        version_(version),
        check_(Proof(hash, version)),
        deadline_ms_(deadline_ms) {
    living.fetch_add(1, std::memory_order_relaxed);
  }
  static void Destroy(PlainEntry* entry) {
    entry->check_ = 0;  // so that a late reader notices
    delete entry;
    living.fetch_sub(1, std::memory_order_relaxed);
  }
  static void DestroyRetired(void* at) { Destroy(static_cast<PlainEntry*>(at)); }

  absl::string_view key() const { return key_; }
  uint64_t hash() const { return hash_; }
  uint64_t version() const { return version_; }
  bool proves_itself() const { return check_ == Proof(hash_, version_); }
  int64_t deadline_ms() const { return deadline_ms_.load(std::memory_order_relaxed); }
  void set_deadline_ms(int64_t at) { deadline_ms_.store(at, std::memory_order_relaxed); }

  static inline std::atomic<int64_t> living{0};

 private:
  static uint64_t Proof(uint64_t hash, uint64_t version) {
    return (hash ^ (version * 0x9e3779b97f4a7c15u)) | 1;
  }

  const uint64_t hash_;
  const std::string key_;
  const uint64_t version_;
  uint64_t check_;
  std::atomic<int64_t> deadline_ms_;
};

inline uint64_t EntryHash(const PlainEntry& entry) { return entry.hash(); }

inline uint64_t MixedHash(uint64_t number) {  // splitmix64
  uint64_t x = number * 0x9e3779b97f4a7c15u + 0x7654321u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace idemd::storage
