// What commands ask of everything on disk, and what it tells about itself: implemented by
// server/journal.
//
// Threads   any, for every method, once loading is over; the status and progress() even before.
// Blocking  none of these waits for a disk or for shard locks, so a handler may call them inside
// EXEC: what takes long
//           runs on threads of the implementation, and calls back.
// Errors    absl::Status whose text is for the client, without a code word.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/effect.h"

namespace idemd::server {

enum class SyncPolicy : uint8_t { kAlways, kEverySecond, kNever };

struct SavePoint {
  int64_t seconds = 0;
  uint64_t changes = 0;
};

struct LoadProgress {
  bool loading = false;
  int64_t started_s = 0;  // unix seconds
  uint64_t bytes_total = 0;
  uint64_t bytes_done = 0;
  uint64_t keys_loaded = 0;
  double percent() const {
    return bytes_total == 0
               ? 0
               : 100.0 * static_cast<double>(bytes_done) / static_cast<double>(bytes_total);
  }
  int64_t eta_s = 1;
};

// For INFO persistence.
struct PersistenceStatus {
  bool log_enabled = false;
  bool rewriting = false, rewrite_scheduled = false;
  bool saving = false, save_scheduled = false;               // BGSAVE, SAVE
  uint64_t snapshot_keys_total = 0, snapshot_keys_done = 0;  // of the snapshot under way
  int64_t snapshot_started_ms = 0;                           // steady, 0: none under way
  int64_t last_save_s = 0;  // unix seconds of the last good dump, LASTSAVE
  bool last_save_ok = true;
  int64_t last_save_took_s = -1;
  bool last_rewrite_ok = true;
  int64_t last_rewrite_took_s = -1;
  uint64_t saves = 0, rewrites = 0, rewrite_failures_in_a_row = 0;
  uint64_t changes_since_save = 0;
  bool last_write_ok = true;
  uint64_t log_bytes = 0, log_base_bytes = 0;  // aof_current_size, aof_base_size
  uint64_t log_buffer_bytes = 0;
  storage::Lsn last_lsn = 0, written_lsn = 0, durable_lsn = 0;
  uint64_t syncs = 0;
  uint64_t torn_bytes_cut = 0;  // by recovery at this start
  uint64_t loaded_keys = 0, loaded_expired = 0;
  std::string last_error;  // of the last failed snapshot
};

// A connection that wants everything: a snapshot, and then every write.
struct ReplicaSink {
  // Any thread. Queues bytes behind the earlier ones; they leave when the log is as far as `need`. False: the connection is gone.
  std::function<bool(std::shared_ptr<const std::string> bytes, storage::Lsn need)> send;
  std::function<bool()> alive;
  std::function<void()> kill;
  std::string greeting;  // in front of the snapshot's length; {offset} is where the stream of writes begins
};

class PersistenceControl {
 public:
  virtual ~PersistenceControl() = default;

  // Whether commands that need the data must wait: from Open() until Load() is over. One relaxed
  // load.
  bool loading() const { return loading_.load(std::memory_order_relaxed); }
  // Whether the last dump failed (stop-writes-on-bgsave-error). One relaxed load.
  bool last_save_failed() const { return last_save_failed_.load(std::memory_order_relaxed); }
  virtual LoadProgress progress() const = 0;
  virtual PersistenceStatus status() const = 0;

  // --- commands
  // SAVE: `done` is called once, on any thread, when the dump is on disk or has failed. The cut is
  // made after the call.
  virtual void SaveNow(std::function<void(absl::Status)> done) = 0;
  // BGSAVE [SCHEDULE]. OK: status() says `saving`, or `save_scheduled` where something else is
  // under way and `schedule` was given.
  [[nodiscard]] virtual absl::Status SaveInBackground(bool schedule) = 0;
  // BGREWRITEAOF. OK: status() says `rewriting`, or `rewrite_scheduled`.
  [[nodiscard]] virtual absl::Status RewriteInBackground() = 0;
  // WAITAOF: calls `done` once everything up to `lsn` is on disk, whatever the policy (a sync is
  // begun where none would come); on any thread, also on this one before it returns. False:
  // `timeout_ms` is over (0: no limit), or there is no log.
  virtual void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) = 0;
  virtual bool WaitSyncedNow(storage::Lsn lsn) const = 0;  // whether it is already

  // --- replicas
  // SYNC, PSYNC: sends `$bytes`, a snapshot of now (RDB), and from then on every write as commands; begins soon, on threads of
  // the implementation.
  virtual void AddReplica(ReplicaSink sink) = 0;
  // Sends a command that is no write to all replicas (RESP): PING, REPLCONF GETACK; PUBLISH, as from a client in `db`.
  virtual void TellReplicas(absl::string_view command) = 0;
  virtual void TellReplicas(absl::string_view command, storage::DbIndex db) = 0;
  virtual bool has_replicas() const = 0;           // or may have; one relaxed load
  virtual uint64_t replication_offset() const = 0;  // bytes of commands that replicas were sent so far

  // --- settings that may change while running; never inside EXEC
  [[nodiscard]] virtual absl::Status SetSync(SyncPolicy policy) = 0;  // to kAlways: syncs first
  [[nodiscard]] virtual absl::Status SetLog(bool on) = 0;             // appendonly
  virtual void SetSavePoints(std::vector<SavePoint> points) = 0;
  virtual void SetRewriteLimits(int64_t percentage, uint64_t bytes_min) = 0;
  virtual void SetDumpName(std::string name) = 0;

 protected:
  void SetLoading(bool loading) { loading_.store(loading, std::memory_order_release); }
  void SetLastSaveFailed(bool failed) {
    last_save_failed_.store(failed, std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> loading_{false};
  std::atomic<bool> last_save_failed_{false};
};

}  // namespace idemd::server
