// What replicas are sent: every effect, as the commands that the log has, in the order of execution.
//
// A replica is opened under all shard locks, at the cut of the snapshot that it gets first. What happens while that is written
// and sent is kept for it, and sent when it is there; from then on each unit's commands go to its connection at once, to leave
// when the log is as far as the unit needs.
//
// Threads   any, for every method; Append() is called under shard locks, and by a Journal that is on under its buffer's lock.
// Limits    What is kept for a replica that has not got its snapshot yet is bounded; one that would need more is dropped.
// Cost      Without replicas one relaxed load per unit.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/commands/persistence_control.h"
#include "storage/effect.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class ReplicaFeed {
 public:
  static constexpr size_t kKeptBytesMax = size_t{256} << 20;

  // Whether units are to make effects for replicas: while there are any, or one is about to be opened.
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  void Want() { wanted_.store(true, std::memory_order_relaxed); }
  // False, and no longer wanted, if there is no replica left.
  bool StillWanted();

  // The holder of all shard locks: what is appended from now on is for this replica, too.
  uint64_t Open(ReplicaSink sink);
  // Its snapshot is sent from now on, after `head`; nothing else is until Begin().
  void BeginSnapshot(uint64_t id, absl::string_view head);
  // It has been sent its snapshot.
  void Begin(uint64_t id);
  void Drop(uint64_t id);

  // One unit's commands, for a reader who is in database `first_db` and will be in `last_db`.
  void Append(absl::string_view commands, storage::DbIndex first_db, storage::DbIndex last_db, storage::Lsn need);
  // What is of no database: PING, REPLCONF GETACK.
  void AppendPlain(absl::string_view command) { Append(command, kAnyDb, kAnyDb, storage::kNoLsn); }

  // Bytes so far: what replicas acknowledge.
  uint64_t offset() const { return offset_.load(std::memory_order_relaxed); }

 private:
  static constexpr storage::DbIndex kAnyDb = UINT32_MAX - 1;
  struct Replica {
    uint64_t id;
    ReplicaSink sink;
    enum class State : uint8_t { kWaits, kGetsSnapshot, kBegun } state = State::kWaits;
    std::string kept;
    storage::Lsn kept_need = storage::kNoLsn;
  };

  std::atomic<bool> wanted_{false};
  std::atomic<uint64_t> offset_{0};
  mutable storage::Mutex mutex_;
  std::vector<Replica> replicas_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  storage::DbIndex db_ ABSL_GUARDED_BY(mutex_) = UINT32_MAX;
};

}  // namespace idemd::server
