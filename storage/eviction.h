// Eviction: which keys go when memory is at its limit, and how one of them is found.
//
// As in Redis no order of all keys is kept: a few random keys are looked at, the best of them and of those seen before (the
// pool) goes, and that again until there is room. Redis' documentation calls it approximated LRU.
//
// What goes are plain keys only, strings and collections. A reservation and a used-up token that keeps its caller (records)
// stay until their deadline, and so does every key that ends in a text that reads as a token, whoever made it: of other texts
// of 32 characters of base64url one in eighty does. A status of IDEM.TRANSITION and a rate of IDEM.THROTTLE are plain
// strings, here and in the log, and cannot be told from others: they go like these.
//
// lru, lfu  The time of the last use or, under lfu, the number of uses (use_count.h) is kept for strings and collections that
//           have an entry. A key without it (short values at UUID-like keys, which live in the table itself) counts as the
//           others of the same sample do on average, so that it is neither spared nor hunted.
// Threads   Store::MakeRoom(): any that holds no lock of the store; one at a time does the work, others go on at once.
// Bounds    A look at so many random places as there are samples, some times over; when all of these are spared, a walk of
//           some thousand buckets that goes on where the last one ended. When a whole round found nothing, nobody looks
//           for a tenth of a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/effect.h"
#include "storage/sync/mutex.h"
#include "storage/wait/blocked_lines.h"

namespace idemd::storage {

enum class EvictionPolicy : uint8_t {
  kNone,
  kAllLru,
  kAllLfu,
  kAllRandom,
  kVolatileLru,  // of keys with a deadline
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,  // the nearest deadline first
};
inline constexpr bool OnlyVolatile(EvictionPolicy policy) { return policy >= EvictionPolicy::kVolatileLru; }
inline constexpr bool IsLfu(EvictionPolicy policy) {
  return policy == EvictionPolicy::kAllLfu || policy == EvictionPolicy::kVolatileLfu;
}

// What came of Store::MakeRoom().
struct RoomMade {
  bool room = true;        // false: memory is over its limit, and nothing may go
  bool finished = true;    // false: the time was up; what is left to do, Tick() does
  Lsn need = kNoLsn;       // of the removals
  std::vector<ReadyKey> ready = {};  // keys at which somebody is blocked, see Unit::TakeReady()
};

// Whether the end of the key reads as a token.
bool ReadsAsToken(absl::string_view key);

// The state of the search. Guarded by its mutex.
struct EvictionSearch {
  struct Candidate {
    DbIndex db;
    std::string key;
    uint64_t score;      // the highest goes first
    bool has_score;
  };
  static constexpr size_t kPoolMax = 16;

  Mutex mutex;
  EvictionPolicy policy = EvictionPolicy::kNone;  // that the scores are of
  std::vector<Candidate> pool;                    // by score, the best at the back
  std::vector<Candidate> sample;                  // of the round under way
  // The walk.
  uint64_t cursor = 0;
  uint32_t place = 0;         // of shards and their databases
  uint32_t fruitless = 0;     // places in a row that had nothing to offer
  std::chrono::steady_clock::time_point nothing_until{};
};

}  // namespace idemd::storage
