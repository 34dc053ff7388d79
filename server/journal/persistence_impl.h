// The inside of Persistence: what loading, jobs and questions share.
//
// Included by the files of this folder only. loading.cc fills it, snapshots.cc writes bases and dumps, jobs.cc decides when,
// persistence.cc answers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "server/journal/directory.h"
#include "server/journal/journal.h"
#include "server/journal/persistence.h"
#include "server/journal/recovery.h"
#include "server/journal/snapshot_file.h"
#include "server/steady_time.h"
#include "storage/loader.h"
#include "storage/snapshot/snapshot.h"

namespace idemd::server {

inline constexpr absl::string_view kNobody = "-";  // before the first file

class Persistence::Impl {
 public:
  Impl(Persistence& front, PersistenceOptions options, storage::FileSystem& files, storage::TimeSource& time)
      : front_(front),
        options_(std::move(options)),
        files_(files),
        time_(time),
        directory_(files, options_),
        journal_(time, options_.on_callers_thread) {}
  ~Impl() { EndThread(); }

  absl::Status Open();
  absl::Status Load(storage::Store& store, storage::TokenMint& tokens, storage::EffectiveClock* clock, const Replay& replay);
  absl::Status Close(bool save_dump);
  void Tick();

  LoadProgress progress() const;
  PersistenceStatus status() const;
  void SaveNow(std::function<void(absl::Status)> done);
  absl::Status SaveInBackground(bool schedule);
  absl::Status RewriteInBackground();
  void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done);
  absl::Status SetLog(bool on);
  void AddReplica(ReplicaSink sink);

  Journal& journal() { return journal_; }
  bool log_on() const { return log_on_.load(std::memory_order_relaxed); }
  void set_told(std::function<void()> told) { told_ = std::move(told); }
  void set_libraries(std::function<std::vector<std::string>()> texts) { libraries_ = std::move(texts); }
  std::mutex& mutex() { return mutex_; }
  PersistenceOptions& options() { return options_; }
  Directory& directory() { return directory_; }

 private:
  enum class Job : uint8_t { kNone, kSave, kRewrite, kReplica };
  struct Waiting {
    storage::Lsn lsn;
    int64_t until_ms;  // steady; INT64_MAX: no limit
    std::function<void(bool)> done;
  };

  // Loading
  absl::Status Read(storage::Loader& loader, const Replay& replay);
  absl::Status BeginLog();
  absl::Status Import();
  absl::Status StartJournal(uint64_t number, const LogEnd& before, bool publish = true);
  Journal::NewFile Fresh(const std::string& name, std::unique_ptr<storage::File> file) const;
  void RemoveLeftovers();
  // Jobs
  SnapshotFacts Facts(storage::Lsn lsn, uint64_t fence) const;
  std::vector<std::string> Libraries() const { return libraries_ == nullptr ? std::vector<std::string>() : libraries_(); }
  absl::Status Save();
  absl::Status Rewrite();
  absl::Status MakeReplica(ReplicaSink sink);
  void SendSnapshot(storage::File& file, uint64_t bytes, uint64_t id, const ReplicaSink& sink);
  void TendReplicas();
  absl::Status WriteBase(uint64_t number, storage::Snapshot& snapshot, const SnapshotFacts& facts);
  void Work();
  void RunJob(std::unique_lock<std::mutex>& lock, Job job);
  void Begin(std::unique_lock<std::mutex>& lock, Job job);
  Job Wanted() const;
  void EndThread();
  void TellProgress();
  void OnJournal();
  void ServeWaiting();
  void Die(const absl::Status& why);
  std::string PathOfBase(uint64_t number) const { return directory_.PathOf(directory_.BaseName(number)); }

  Persistence& front_;
  PersistenceOptions options_;  // what may change while running: guarded by mutex_
  storage::FileSystem& files_;
  storage::TimeSource& time_;
  Directory directory_;
  Journal journal_;
  std::unique_ptr<storage::FileLock> lock_;
  storage::Store* store_ = nullptr;
  storage::Clock* clock_ = nullptr;
  std::function<void()> told_;
  std::function<std::vector<std::string>()> libraries_;
  std::atomic<bool> log_on_{false};

  // Loading.
  Recovered recovered_;
  LoadCounters counters_;
  std::atomic<int64_t> load_began_s_{0};
  std::atomic<int64_t> load_began_ms_{0};

  // The chain of files: the loading thread, then whoever runs a job.
  Manifest manifest_;
  uint64_t last_number_ = 0;
  std::string uuid_, token_key_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  // Guarded by mutex_.
  Job running_ = Job::kNone;
  bool save_wanted_ = false, rewrite_wanted_ = false, ending_ = false;
  std::vector<std::function<void(absl::Status)>> save_waiters_;  // SAVE: told by the next save to begin
  PersistenceStatus status_;
  uint64_t changes_at_save_ = 0;
  uint64_t base_bytes_ = 0, closed_log_bytes_ = 0;
  std::chrono::steady_clock::time_point last_try_{};
  std::chrono::seconds retry_after_{0};
  std::chrono::steady_clock::time_point last_save_{};
  std::chrono::steady_clock::time_point looked_at_path_{};
  std::chrono::steady_clock::time_point told_progress_{};
  std::vector<Waiting> waiting_;
  std::deque<ReplicaSink> replicas_to_come_;
  std::atomic<storage::Snapshot*> snapshot_{nullptr};  // under way; for progress, with mutex_ held
  std::thread thread_;

  // Held while replicas begin or are found gone: whether units make effects for them changes under it.
  std::mutex feeding_mutex_;
  std::atomic<bool> senders_end_{false};
  std::vector<std::future<void>> senders_;  // of snapshots, to replicas; the thread of jobs, or whoever has ended it
  std::chrono::steady_clock::time_point tended_{};
};

}  // namespace idemd::server
