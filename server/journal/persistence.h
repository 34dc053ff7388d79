// Everything on disk: the directory, its log and snapshots, loading at start. The one front door of
// server/journal.
//
//   Persistence persistence(options, files, time, store, tokens, clock);
//   persistence.Open()       locks the directory, judges it; an error refuses to start, with advice
//   persistence.Load()       long; meanwhile progress() tells and commands are answered LOADING
//   ... serving; store.log() is persistence.log() ...
//   persistence.Close()      a clean stop: seals the log, writes a snapshot if save points ask for
//   it
//
// Threads   Open, Load and Close from one thread, in this order. Everything else from any thread
// once Load() is over; the
//           status even before.
// Errors    absl::Status with a text for the log or the client. A failed sync ends the process with
// exit code 75.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/fs.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::server {

enum class SyncPolicy : uint8_t { kAlways, kEverySecond, kNever };

struct SavePoint {
  int64_t seconds = 0;
  uint64_t changes = 0;
};

struct PersistenceOptions {
  std::string directory = ".";
  std::string log_directory = "appendonlydir";  // appenddirname
  std::string log_name = "appendonly.aof";      // appendfilename
  std::string dump_name = "dump.rdb";           // dbfilename
  bool log = true;                              // appendonly
  SyncPolicy sync = SyncPolicy::kEverySecond;   // appendfsync
  std::vector<SavePoint> save_points;
  int64_t rewrite_percentage = 100;       // auto-aof-rewrite-percentage, 0: never
  uint64_t rewrite_bytes_min = 64 << 20;  // auto-aof-rewrite-min-size
  int64_t restart_grace_ms = 5000;        // idem-restart-grace
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
  bool saving = false;                                       // BGSAVE
  uint64_t snapshot_keys_total = 0, snapshot_keys_done = 0;  // of the snapshot under way
  int64_t snapshot_started_ms = 0;                           // steady, 0: none under way
  int64_t last_save_s = 0;  // unix seconds of the last good dump, LASTSAVE
  bool last_save_ok = true;
  int64_t last_save_took_s = -1;
  bool last_rewrite_ok = true;
  int64_t last_rewrite_took_s = -1;
  uint64_t saves = 0, rewrites = 0;
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

class Persistence {
 public:
  Persistence(PersistenceOptions options, storage::FileSystem& files, storage::TimeSource& time);
  ~Persistence();
  Persistence(const Persistence&) = delete;
  Persistence& operator=(const Persistence&) = delete;

  // What the store gets as its log; lives as long as this.
  storage::EffectLog& log();
  // Called (on a thread of ours) whenever log().released() has advanced on its own.
  void OnReleased(std::function<void()> told);

  [[nodiscard]] absl::Status Open();
  // Runs a command of a log that somebody else wrote (words, database); an error reply is an error.
  using Replay = std::function<absl::Status(const std::vector<absl::string_view>& words,
                                            storage::DbIndex* db)>;
  [[nodiscard]] absl::Status Load(storage::Store& store, storage::TokenMint& tokens,
                                  storage::EffectiveClock* clock, Replay replay);
  LoadProgress progress() const;
  absl::Status Close(bool save_dump);

  // About every 100 ms: save points, automatic rewrites, the file's path.
  void Tick();

  // --- commands
  [[nodiscard]] absl::Status SaveNow();  // SAVE: returns when the dump is on disk
  [[nodiscard]] absl::Status SaveInBackground(
      bool schedule);  // BGSAVE [SCHEDULE]; FailedPrecondition: one is under way
  [[nodiscard]] absl::Status
  RewriteInBackground();  // BGREWRITEAOF; OK also when scheduled, see status()
  // Waits (not on this thread) until everything up to `lsn` is on disk whatever the policy:
  // WAITAOF. `done` is called once, on any thread; false: the time is over, or there is no log.
  void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done);
  bool WaitSyncedNow(storage::Lsn lsn) const;  // whether it is already

  // --- settings that may change while running
  [[nodiscard]] absl::Status SetSync(SyncPolicy policy);  // to kAlways: syncs first
  [[nodiscard]] absl::Status SetLog(bool on);             // appendonly
  void SetSavePoints(std::vector<SavePoint> points);
  void SetRewriteLimits(int64_t percentage, uint64_t bytes_min);
  void SetDumpName(std::string name);

  PersistenceStatus status() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// `idemd --check DIR`: reads only, prints a verdict, returns the exit code: 0 sound, 1 one torn
// batch at the end (a start, or
// --repair, cuts it), 2 damaged, 3 not ours to judge.
int CheckDirectory(storage::FileSystem& files, const std::string& directory, std::string* verdict);
// `idemd --repair DIR`: makes a directory that a stock Redis can start from; never touches what is
// damaged in synced data.
int RepairDirectory(storage::FileSystem& files, const std::string& directory, std::string* verdict);

}  // namespace idemd::server
