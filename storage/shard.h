// One of the 64 shards: a lock, a table per database, and who waits at its keys. Internal to storage.
//
// A key's shard is the top six bits of its hash, the same in every database, so that moving a key between databases
// needs one lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "storage/eviction.h"
#include "storage/graveyard.h"
#include "storage/memory/heap.h"
#include "storage/snapshot/brake.h"
#include "storage/snapshot/shard_cut.h"
#include "storage/store.h"
#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"
#include "storage/table/table.h"
#include "storage/wait/blocked_lines.h"
#include "storage/wait/wait_line.h"

namespace idemd::storage {

inline constexpr size_t kLsnCells = 256;
inline constexpr Lsn kLsnPending = UINT64_MAX;

// 128: two lines, since the hardware prefetches pairs; no two shards share one.
struct alignas(128) Shard {
  // What lock-free readers load lies apart from what writers store: with the lock in the same line, each lookup would wait
  // for that line to come from the core of the last writer.
  //
  // Null until a database has a key here. Loaded by lock-free readers inside an epoch guard; changed under the lock, and
  // a table that is replaced is retired through the epochs.
  std::array<std::atomic<Table*>, kDatabases> tables{};
  // What is kept for readers of the log: see LsnOf().
  std::unique_ptr<std::array<std::atomic<Lsn>, kLsnCells>> lsns = std::make_unique<std::array<std::atomic<Lsn>, kLsnCells>>();
  alignas(128) Mutex mutex;
  // Written under the lock, read by anybody.
  std::array<std::atomic<uint64_t>, kDatabases> with_deadline{};
  std::array<std::atomic<uint64_t>, kDatabases> entry_bytes{};  // heap bytes of the entries
  std::atomic<uint64_t> all_entry_bytes{0};                     // their sum
  // Holder of the lock.
  WaitLines lines;
  WatchedKeys watched;
  BlockedLines blocked;
  HeapPtr heap{Heap::Make()};  // of its entries
  uint64_t relocated_to = 0;   // where compaction stands, in database relocating_db
  DbIndex relocating_db = 0;
  bool relocating = false;
  BasicShardCut<Entry, RealSync>* cut = nullptr;  // of the snapshot under way
  uint32_t number = 0;

  // Whether somebody wants to know of changes, beside the log.
  bool observed() const { return !lines.empty() || !watched.empty() || !blocked.empty(); }

  // The LSN of the latest change of any key with such a hash, removals included; kLsnPending while one is not in the log.
  // It is stored before the change can be seen, so that who sees the change sees it too and takes the lock. A reader of
  // another key of the same cell waits for a little more than it has to.
  std::atomic<Lsn>& LsnOf(uint64_t hash) { return (*lsns)[hash >> 42 & (kLsnCells - 1)]; }
};

inline uint32_t ShardNumber(uint64_t hash) { return static_cast<uint32_t>(hash >> 58); }
static_assert(kShards == 64, "six bits of the hash name the shard, and one word holds a bit for each");

class Store::Impl {
 public:
  std::array<Shard, kShards> shards;
  WaitTimer timer;
  std::atomic<size_t> waiters{0};
  std::atomic<uint64_t> arrivals{0};  // of callers who are blocked
  std::atomic<uint32_t> compacting{0};  // shards
  std::atomic<uint32_t> coarse_s{0};  // effective seconds, set by Tick(), for access times
  // Whether changes go to the log. Writer: holder of all shard locks. Readers: any thread; who sees a change that was made
  // after it was set sees it too.
  std::atomic<bool> logs{false};
  Brake brake;  // of writers, for a snapshot's sake
  std::atomic<bool> has_snapshot{false};
  uint32_t cut_epoch = 0;  // of the last snapshot; holder of all shard locks
  // All inline deadlines lie at most 2^32 ms after this (storage/table/words.h). Tick() moves it on when all that could lie
  // before has been removed. Readers: any thread.
  std::atomic<int64_t> deadline_base_ms{0};
  std::shared_ptr<Graveyard> graveyard = std::make_shared<Graveyard>();
  EvictionSearch eviction;

  bool Logs() const { return logs.load(std::memory_order_relaxed); }
  // Nobody can find the table any more: it is freed when no reader is in it, by a thread that nobody waits for.
  void RetireTable(Table* table);
};

}  // namespace idemd::storage
