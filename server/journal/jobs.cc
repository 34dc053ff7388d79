// When snapshots are made: on request, by save points, by the log's growth; one at a time.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/journal/persistence_impl.h"

namespace idemd::server {
namespace {

using std::chrono::steady_clock;

constexpr auto kLookAtPathEvery = std::chrono::seconds(1);
constexpr auto kTellProgressEvery = std::chrono::seconds(2);
// After a snapshot failed, one that nobody asked for waits so long, and longer each time.
constexpr auto kRetryMin = std::chrono::seconds(5);
constexpr auto kRetryMax = std::chrono::seconds(300);

int64_t SecondsSince(steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - begin).count();
}

}  // namespace

Persistence::Impl::Job Persistence::Impl::Wanted() const {
  if (save_wanted_) return Job::kSave;
  if (rewrite_wanted_) return Job::kRewrite;
  if (!replicas_to_come_.empty()) return Job::kReplica;
  return Job::kNone;
}

void Persistence::Impl::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || Wanted() != Job::kNone; });
    if (ending_) return;
    RunJob(lock, Wanted());
  }
}

void Persistence::Impl::RunJob(std::unique_lock<std::mutex>& lock, Job job) {
  if (job == Job::kReplica) {
    ReplicaSink sink = std::move(replicas_to_come_.front());
    replicas_to_come_.pop_front();
    running_ = job;
    lock.unlock();
    const std::function<void()> kill = sink.kill;
    if (const absl::Status made = MakeReplica(std::move(sink)); !made.ok()) {
      LogWarning(absl::StrCat("Synchronization with replica failed: ", made.message()));
      kill();
    }
    lock.lock();
    running_ = Job::kNone;
    return;
  }
  (job == Job::kSave ? save_wanted_ : rewrite_wanted_) = false;
  running_ = job;
  std::vector<std::function<void(absl::Status)>> told;
  if (job == Job::kSave) told.swap(save_waiters_);
  const auto begin = steady_clock::now();
  status_.snapshot_started_ms = SteadyMs();
  last_try_ = begin;
  lock.unlock();
  LogNotice(job == Job::kSave ? "Background saving started" : "Background append only file rewriting started");
  const absl::Status result = job == Job::kSave ? Save() : Rewrite();
  if (result.ok())
    LogNotice(job == Job::kSave ? "Background saving terminated with success" : "Background AOF rewrite finished successfully");
  else
    LogWarning(absl::StrCat(job == Job::kSave ? "Background saving error: " : "Background AOF rewrite terminated with error: ", result.message()));
  lock.lock();
  running_ = Job::kNone;
  status_.snapshot_started_ms = 0;
  const int64_t took_s = SecondsSince(begin);
  if (job == Job::kSave) {
    status_.last_save_ok = result.ok();
    status_.last_save_took_s = took_s;
    status_.saves += result.ok() ? 1 : 0;
    front_.SetLastSaveFailed(!result.ok());
  } else {
    status_.last_rewrite_ok = result.ok();
    status_.last_rewrite_took_s = took_s;
    status_.rewrites += result.ok() ? 1 : 0;
  }
  retry_after_ = result.ok() ? std::chrono::seconds(0) : std::clamp(retry_after_ * 2, kRetryMin, kRetryMax);
  if (!result.ok()) status_.last_error = std::string(result.message());
  lock.unlock();
  for (const auto& tell : told) tell(result);
  lock.lock();
}

void Persistence::Impl::Begin(std::unique_lock<std::mutex>& lock, Job job) {
  (job == Job::kSave ? save_wanted_ : rewrite_wanted_) = true;
  if (options_.on_callers_thread) {
    if (running_ == Job::kNone) RunJob(lock, job);
    return;
  }
  wake_.notify_all();
}

void Persistence::Impl::SaveNow(std::function<void(absl::Status)> done) {
  // Behind a dump that is under way: whoever asks now wants what was written up to now in it.
  std::unique_lock<std::mutex> lock(mutex_);
  save_waiters_.push_back(std::move(done));
  Begin(lock, Job::kSave);
}

absl::Status Persistence::Impl::SaveInBackground(bool schedule) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_ == Job::kSave || (running_ == Job::kNone && save_wanted_))
    return absl::FailedPreconditionError("Background save already in progress");
  if (running_ == Job::kRewrite && !schedule) {
    return absl::FailedPreconditionError(
        "Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE "
        "whenever possible.");
  }
  Begin(lock, Job::kSave);
  return absl::OkStatus();
}

absl::Status Persistence::Impl::RewriteInBackground() {
  if (!log_on()) return absl::FailedPreconditionError("There is no append only file to rewrite: appendonly is no");
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_ == Job::kRewrite || (running_ == Job::kNone && rewrite_wanted_))
    return absl::FailedPreconditionError("Background append only file rewriting already in progress");
  Begin(lock, Job::kRewrite);
  return absl::OkStatus();
}

// A long snapshot says now and then how far it is.
void Persistence::Impl::TellProgress() {
  const std::lock_guard<std::mutex> lock(mutex_);
  const storage::Snapshot* const snapshot = snapshot_.load(std::memory_order_relaxed);
  const auto now = steady_clock::now();
  if (snapshot == nullptr || now - last_try_ < kTellProgressEvery || now - told_progress_ < kTellProgressEvery) return;
  told_progress_ = now;
  LogNotice(absl::StrCat(running_ == Job::kSave ? "Background saving: " : "Background AOF rewrite: ", snapshot->keys_walked(), " of ",
                         snapshot->keys(), " keys written"));
}

void Persistence::Impl::Tick() {
  bool look_at_path = false;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (store_ == nullptr || ending_) return;
    const auto now = steady_clock::now();
    look_at_path = log_on() && now - looked_at_path_ >= kLookAtPathEvery;
    if (look_at_path) looked_at_path_ = now;
    const bool may = running_ == Job::kNone && Wanted() == Job::kNone && now - last_try_ >= retry_after_;
    if (may) {
      const uint64_t changes = store_->stats().Get(storage::StorageStats::kChanges) - changes_at_save_;
      for (const SavePoint& point : options_.save_points) {
        if (changes < std::max<uint64_t>(point.changes, 1) || now - last_save_ <= std::chrono::seconds(point.seconds)) continue;
        LogNotice(absl::StrCat(point.changes, " changes in ", point.seconds, " seconds. Saving..."));
        Begin(lock, Job::kSave);
        break;
      }
    }
    if (may && log_on() && options_.rewrite_percentage > 0 && Wanted() == Job::kNone) {
      const uint64_t size = base_bytes_ + closed_log_bytes_ + journal_.file_bytes();
      const uint64_t base = std::max<uint64_t>(base_bytes_, 1);
      const uint64_t growth = (size - std::min(size, base_bytes_)) * 100 / base;
      if (size > options_.rewrite_bytes_min && growth >= static_cast<uint64_t>(options_.rewrite_percentage)) {
        LogNotice(absl::StrCat("Starting automatic rewriting of AOF on ", growth, "% growth"));
        Begin(lock, Job::kRewrite);
      }
    }
  }
  ServeWaiting();
  TendReplicas();
  TellProgress();
  if (!look_at_path || journal_.InPlace()) return;
  // What is appended now is in a file that no start will find. Only a new chain makes it safe again.
  LogWarning("The append only file was removed or replaced under this server. Rewriting it.");
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_ != Job::kRewrite && !rewrite_wanted_) Begin(lock, Job::kRewrite);
}

}  // namespace idemd::server
