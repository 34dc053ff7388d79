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

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/commands/persistence_control.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/fs.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::server {

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
  int64_t load_delay_us = 0;              // key-load-delay, for tests: per key, on average
  // Simulations: everything is done on the caller's thread, in the call.
  bool on_callers_thread = false;
  // What happens when the disk has failed; by default the process ends with exit code 75.
  std::function<void(const absl::Status& why)> die;
};

class Persistence final : public PersistenceControl {
 public:
  Persistence(PersistenceOptions options, storage::FileSystem& files, storage::TimeSource& time);
  ~Persistence() override;
  Persistence(const Persistence&) = delete;
  Persistence& operator=(const Persistence&) = delete;

  // What the store gets as its log; lives as long as this.
  storage::EffectLog& log();
  // Called (on a thread of ours) whenever log().released() has advanced on its own.
  void OnReleased(std::function<void()> told);

  // Called under all locks: the texts of all libraries of functions, which snapshots have beside keys.
  void SetLibraries(std::function<std::vector<std::string>()> texts);

  [[nodiscard]] absl::Status Open();
  // Runs a command of a log that somebody else wrote (words, database); an error reply is an error.
  using Replay = std::function<absl::Status(const std::vector<absl::string_view>& words,
                                            storage::DbIndex* db)>;
  [[nodiscard]] absl::Status Load(storage::Store& store, storage::TokenMint& tokens,
                                  storage::EffectiveClock* clock, Replay replay);
  LoadProgress progress() const override;
  absl::Status Close(bool save_dump);

  // About every 100 ms: save points, automatic rewrites, the file's path.
  void Tick();

  // What commands ask: see persistence_control.h.
  PersistenceStatus status() const override;
  void SaveNow(std::function<void(absl::Status)> done) override;
  [[nodiscard]] absl::Status SaveInBackground(bool schedule) override;
  [[nodiscard]] absl::Status RewriteInBackground() override;
  void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) override;
  bool WaitSyncedNow(storage::Lsn lsn) const override;

  void AddReplica(ReplicaSink sink) override;
  void TellReplicas(absl::string_view command) override;
  void TellReplicas(absl::string_view command, storage::DbIndex db) override;
  bool has_replicas() const override;
  uint64_t replication_offset() const override;

  [[nodiscard]] absl::Status SetSync(SyncPolicy policy) override;
  [[nodiscard]] absl::Status SetLog(bool on) override;
  void SetSavePoints(std::vector<SavePoint> points) override;
  void SetRewriteLimits(int64_t percentage, uint64_t bytes_min) override;
  void SetDumpName(std::string name) override;

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
