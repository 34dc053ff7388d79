// One of the 64 shards: a lock, a table per database, and who waits at its keys. Internal to storage.
//
// A key's shard is the top six bits of its hash, the same in every database, so that moving a key between databases
// needs one lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "storage/graveyard.h"
#include "storage/store.h"
#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"
#include "storage/table/table.h"
#include "storage/wait/wait_line.h"

namespace idemd::storage {

// 128: two lines, since the hardware prefetches pairs; no two shards share one.
struct alignas(128) Shard {
  Mutex mutex;
  // Null until a database has a key here. Loaded by lock-free readers inside an epoch guard; changed under the lock, and
  // a table that is replaced is retired through the epochs.
  std::array<std::atomic<Table*>, kDatabases> tables{};
  // Removals of this shard, for readers who find a key absent: as Entry::lsn, kLsnPending while one is not in the log.
  std::atomic<Lsn> removal_lsn{kNoLsn};
  // Written under the lock, read by anybody.
  std::array<std::atomic<uint64_t>, kDatabases> with_deadline{};
  std::array<std::atomic<uint64_t>, kDatabases> entry_bytes{};  // heap bytes of the entries
  std::atomic<uint64_t> all_entry_bytes{0};                     // their sum
  // Holder of the lock.
  WaitLines lines;
  WatchedKeys watched;
  std::array<uint64_t, kDatabases> sweep_position{};
  uint32_t number = 0;
};

inline uint32_t ShardNumber(uint64_t hash) { return static_cast<uint32_t>(hash >> 58); }
static_assert(kShards == 64, "six bits of the hash name the shard, and one word holds a bit for each");

class Store::Impl {
 public:
  std::array<Shard, kShards> shards;
  WaitTimer timer;
  std::atomic<size_t> waiters{0};
  std::atomic<uint32_t> coarse_s{0};  // effective seconds, set by Tick(), for access times
  bool logs = false;                  // log.wants_effects(), read once
  std::shared_ptr<Graveyard> graveyard = std::make_shared<Graveyard>();
};

}  // namespace idemd::storage
