// The log of a running server: units append their effects to a buffer, whole batches of them go to the file.
//
//   units (under their shards' locks)   Append: LSN and bytes into the open buffer
//   loops, at the end of a turn         Release: everysec, no: write the buffer now. always: wake the committer
//   committer                           always: write, sync, release, again. everysec: one sync a second
//
// With `always` one batch is in flight while the next one fills: no timer decides how many requests share a sync. Batches go over
// zeros that were written before: a sync then is one of data alone, and the file system's journal stays out of it.
//
// Threads     Append(), ReserveFences(), Release() and the LSNs: any. Start() and Stop(): one, before and after all others.
//             Rotate(): the thread of snapshots.
// Lock order  writer, then shards, then buffer: who appends never takes the writer's lock.
// Errors      A failed sync, or a write that fails for another reason than a full disk, calls `die` (which ends the process with
//             exit code 75): the system may have dropped what we think is there. With a full disk the file is cut back to the
//             start of the batch, Refusal() says so, and it is tried again; after 30 s it is given up.
// Invariants  [J1] LSNs in the file are without gaps and in the order of execution.
//             [J2] released() never passes what is written (everysec, no) or synced (always).
//             [J3] Nothing goes to a file that the manifest does not name yet, and nothing behind a seal.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/journal/batch.h"
#include "server/journal/persistence.h"
#include "server/journal/replica_feed.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/fs.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// Where a log ends: what the next batch chains to.
struct LogEnd {
  std::string name;  // of the file
  uint64_t bytes = 0;
  storage::Lsn last = storage::kNoLsn;
  uint64_t sum = 0;
};

class Journal final : public storage::EffectLog {
 public:
  struct Hooks {
    std::function<void(const absl::Status& why)> die;      // does not return, except in tests
    std::function<void(const std::string& text)> warn;     // for the log
    std::function<void()> released;                        // after released() advanced on the committer's thread
  };
  // `inline_commits`: no thread; Release() commits on the caller's thread, as simulations want it.
  Journal(storage::TimeSource& time, bool inline_commits);
  ~Journal() override;

  // --- storage::EffectLog
  bool wants_effects() const override { return on() || feed_.wanted(); }
  storage::Lsn Append(absl::Span<const storage::Effect> effects) override;
  void ReserveFences(uint64_t fence) override;
  storage::Lsn released() const override { return released_.load(std::memory_order_acquire); }
  void Release(storage::Lsn lsn) override;
  absl::Status Refusal() const override;

  // --- the file
  struct NewFile {
    std::unique_ptr<storage::File> file;  // empty
    std::string path;
    FileHeader header;                    // without what came before
  };
  // Begins with a file behind `before`, which the manifest names already. Fences up to `fence` may have been given out.
  [[nodiscard]] absl::Status Start(NewFile file, const LogEnd& before, uint64_t fence, storage::Clock& clock, Hooks hooks);
  // Goes on in another file: `cut` is run first and calls at_cut() under all shard locks; then the old file gets its rest and
  // its seal and is synced, `publish` puts the new one into the manifest, and it is written to from then on. An error leaves
  // the old file in use, except one of `publish`, which should not be able to fail for want of space: it is final.
  [[nodiscard]] absl::Status Rotate(NewFile file, absl::FunctionRef<void(absl::FunctionRef<void()> at_cut)> cut,
                                    absl::FunctionRef<absl::Status()> publish);
  // Where the last rotation cut: everything up to this LSN is in the file before.
  storage::Lsn cut_lsn() const { return cut_lsn_; }
  uint64_t closed_bytes() const { return closed_bytes_; }  // of that file
  storage::Lsn start_lsn() const { return start_lsn_; }    // before the first effect since Start()
  // Ends the file with a seal and syncs it. No unit may be running.
  [[nodiscard]] absl::Status Stop();
  // Switches logging on or off for units; the holder of all shard locks. Off: nothing waits any more.
  void SetOn(bool on);
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // The holder of all shard locks: from now on units append for replicas alone. Stop() and SetOn(false) follow.
  void Leave() { on_.store(false, std::memory_order_relaxed); }

  // Replicas hear of everything that is appended, and of what would be while the log is off.
  ReplicaFeed& feed() { return feed_; }

  // Syncs first when that is stricter.
  void SetPolicy(SyncPolicy policy);
  SyncPolicy policy() const { return policy_.load(std::memory_order_relaxed); }
  // Asks for everything so far to be synced soon whatever the policy.
  void WantSync();
  // Writes and syncs everything so far, now.
  [[nodiscard]] absl::Status SyncNow();

  storage::Lsn last_lsn() const { return next_.load(std::memory_order_relaxed); }
  storage::Lsn written() const { return written_.load(std::memory_order_acquire); }
  storage::Lsn synced() const { return synced_.load(std::memory_order_acquire); }
  uint64_t syncs() const { return syncs_.load(std::memory_order_relaxed); }
  uint64_t file_bytes() const { return file_bytes_.load(std::memory_order_relaxed); }
  uint64_t buffered_bytes() const;
  uint64_t fence_mark() const { return fence_mark_.load(std::memory_order_relaxed); }
  LogEnd end() const;
  // Whether the path still names the file that is written to.
  bool InPlace();

 private:
  struct Chunk {
    std::string bytes;
    storage::Lsn first = 1, last = 0;
    bool empty() const { return bytes.empty(); }
  };
  using WriterLock = std::unique_lock<std::mutex>;

  void Put(absl::string_view commands, storage::DbIndex first_db, storage::DbIndex last_db) ABSL_EXCLUSIVE_LOCKS_REQUIRED(buffer_mutex_);
  void TakeOpen() ABSL_EXCLUSIVE_LOCKS_REQUIRED(buffer_mutex_);
  // Holder of writer_mutex_.
  bool WriteOut();
  bool WriteBatch(Chunk& chunk);
  absl::Status WriteSeal();
  bool SyncWritten();
  bool SyncLocked();  // holder of sync_mutex_
  bool Advance();     // whether released() has
  void AdvanceAndTell();
  void PrepareSpace();
  void Fail(const absl::Status& why);
  void CannotWrite(const absl::Status& why);
  void Committer();

  ReplicaFeed feed_;
  storage::TimeSource& time_;
  storage::Clock* clock_ = nullptr;
  const bool inline_commits_;
  Hooks hooks_;

  // Units.
  mutable storage::Mutex buffer_mutex_;
  Chunk open_ ABSL_GUARDED_BY(buffer_mutex_);
  storage::DbIndex open_db_ ABSL_GUARDED_BY(buffer_mutex_) = UINT32_MAX;
  std::atomic<storage::Lsn> next_{0};         // writer: holder of buffer_mutex_; readers: any thread
  std::atomic<uint64_t> fence_mark_{0};       // writer: holder of buffer_mutex_; readers: any thread

  // The writer: whoever holds this lock, an I/O thread, the committer or a rotation.
  std::mutex writer_mutex_;
  std::unique_ptr<storage::File> file_;
  std::string path_;
  std::string name_;
  Chunk taken_;           // from the open buffer, not wholly written yet
  std::string batch_;     // its header and itself
  uint64_t sum_ = 0;
  uint64_t reserved_to_ = 0, prefilled_to_ = 0;
  int64_t full_since_ns_ = 0;  // boot time; 0: the disk is not full
  storage::Lsn cut_lsn_ = 0, start_lsn_ = 0;
  uint64_t closed_bytes_ = 0;
  bool sealed_ = false;

  std::mutex sync_mutex_;  // one sync at a time; taken after writer_mutex_, or alone

  // Writers as said above; readers: any thread.
  std::atomic<storage::Lsn> written_{0};
  std::atomic<storage::Lsn> synced_{0};
  std::atomic<storage::Lsn> released_{0};
  std::atomic<uint64_t> file_bytes_{0};
  std::atomic<uint64_t> syncs_{0};
  std::atomic<SyncPolicy> policy_{SyncPolicy::kEverySecond};
  std::atomic<bool> on_{false};
  std::atomic<bool> full_{false};
  mutable storage::Mutex refusal_mutex_;
  std::string refusal_ ABSL_GUARDED_BY(refusal_mutex_);

  // The committer's sleep.
  std::mutex wake_mutex_;
  std::condition_variable wake_;
  bool work_ = false;       // guarded by wake_mutex_
  bool sync_wanted_ = false;
  bool stopping_ = false;
  std::atomic<bool> awake_{false};  // set by Release() before it wakes; cleared by the committer before it looks for work
  std::thread thread_;
};

}  // namespace idemd::server
