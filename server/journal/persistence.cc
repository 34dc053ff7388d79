// Waiting for the disk, settings, status; and the front door itself.
#include "server/journal/persistence.h"

#include <algorithm>
#include <utility>

#include "server/journal/persistence_impl.h"

namespace idemd::server {

using storage::Lsn;

// --- waiting for the disk

void Persistence::Impl::OnJournal() {
  ServeWaiting();
  if (told_) told_();
}

void Persistence::Impl::ServeWaiting() {
  std::vector<std::pair<std::function<void(bool)>, bool>> due;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (waiting_.empty()) return;
    const int64_t now = SteadyMs();
    std::erase_if(waiting_, [&](Waiting& waiting) {
      const bool synced = journal_.synced() >= waiting.lsn;
      if (!synced && waiting.until_ms > now && !ending_) return false;
      due.emplace_back(std::move(waiting.done), synced);
      return true;
    });
  }
  for (auto& [done, synced] : due) done(synced);
}

void Persistence::Impl::WaitSynced(Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) {
  if (!log_on()) return done(false);
  if (journal_.synced() >= lsn) return done(true);
  if (options_.on_callers_thread) return done(journal_.SyncNow().ok());
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.push_back({lsn, timeout_ms == 0 ? INT64_MAX : SteadyMs() + timeout_ms, std::move(done)});
  }
  journal_.WantSync();
}

// --- settings and status

absl::Status Persistence::Impl::SetLog(bool on) {
  if (on == log_on() || store_ == nullptr) return absl::OkStatus();
  {
    // No job is running, and none begins, until this is over.
    std::unique_lock<std::mutex> lock(mutex_);
    if (running_ != Job::kNone) return absl::FailedPreconditionError("a snapshot is under way: try again when it is over");
    running_ = Job::kRewrite;
  }
  absl::Status result;
  if (on) {
    recovered_ = Recovered();
    absl::StatusOr<std::vector<ManifestFile>> there = directory_.DataFiles();
    result = there.ok() ? directory_.MakeLogDirectory() : there.status();
    if (result.ok()) {
      // A new chain: its base is written first, and all that changes meanwhile is in the log behind it.
      for (const ManifestFile& file : *there) {
        recovered_.leftovers.push_back(file.name);
        last_number_ = std::max(last_number_, file.number);
      }
      const uint64_t number = last_number_ + 1;
      manifest_.files.clear();
      result = StartJournal(number, LogEnd{std::string(kNobody), 0, journal_.last_lsn(), 0}, false);
      if (result.ok()) {
        std::vector<std::string> libraries;
        storage::Snapshot snapshot(*store_, [&] { libraries = Libraries(); });
        SnapshotFacts facts = Facts(journal_.start_lsn(), store_->fences().last());
        facts.libraries = std::move(libraries);
        facts.log_base = true;
        result = journal_.SyncNow();
        if (result.ok()) result = WriteBase(number, snapshot, facts);
      }
      if (result.ok()) RemoveLeftovers();
    }
  } else {
    store_->SetLogging(journal_.feed().wanted(), [this] { journal_.Leave(); });
    log_on_.store(false, std::memory_order_relaxed);
    result = journal_.Stop();
    journal_.SetOn(false);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  running_ = Job::kNone;
  return result;
}

LoadProgress Persistence::Impl::progress() const {
  LoadProgress progress;
  progress.loading = front_.loading();
  progress.started_s = load_began_s_.load(std::memory_order_relaxed);
  progress.bytes_total = counters_.bytes_total.load(std::memory_order_relaxed);
  progress.bytes_done = std::min(counters_.bytes_done.load(std::memory_order_relaxed), progress.bytes_total);
  progress.keys_loaded = counters_.keys.load(std::memory_order_relaxed);
  const int64_t took_ms = SteadyMs() - load_began_ms_.load(std::memory_order_relaxed);
  if (progress.bytes_done != 0) {
    const double left = static_cast<double>(progress.bytes_total - progress.bytes_done) / static_cast<double>(progress.bytes_done);
    progress.eta_s = static_cast<int64_t>(left * static_cast<double>(took_ms) / 1000) + 1;
  }
  return progress;
}

PersistenceStatus Persistence::Impl::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  PersistenceStatus status = status_;
  status.log_enabled = log_on();
  status.rewriting = running_ == Job::kRewrite || (running_ == Job::kNone && !save_wanted_ && rewrite_wanted_);
  status.rewrite_scheduled = rewrite_wanted_ && !status.rewriting;
  status.saving = running_ == Job::kSave || (running_ == Job::kNone && save_wanted_);
  status.save_scheduled = save_wanted_ && !status.saving;
  if (const storage::Snapshot* snapshot = snapshot_.load(std::memory_order_relaxed)) {
    status.snapshot_keys_total = snapshot->keys();
    status.snapshot_keys_done = snapshot->keys_walked();
  }
  if (store_ != nullptr) status.changes_since_save = store_->stats().Get(storage::StorageStats::kChanges) - changes_at_save_;
  status.last_write_ok = journal_.Refusal().ok();
  if (status.log_enabled) {
    status.log_bytes = base_bytes_ + closed_log_bytes_ + journal_.file_bytes();
    status.log_base_bytes = base_bytes_;
    status.log_buffer_bytes = journal_.buffered_bytes();
    status.last_lsn = journal_.last_lsn();
    status.written_lsn = journal_.written();
    status.durable_lsn = journal_.synced();
    status.syncs = journal_.syncs();
  }
  return status;
}

// --- the front

Persistence::Persistence(PersistenceOptions options, storage::FileSystem& files, storage::TimeSource& time)
    : impl_(std::make_unique<Impl>(*this, std::move(options), files, time)) {}
Persistence::~Persistence() = default;

storage::EffectLog& Persistence::log() { return impl_->journal(); }
void Persistence::SetLibraries(std::function<std::vector<std::string>()> texts) { impl_->set_libraries(std::move(texts)); }
void Persistence::OnReleased(std::function<void()> told) { impl_->set_told(std::move(told)); }
absl::Status Persistence::Open() { return impl_->Open(); }
absl::Status Persistence::Load(storage::Store& store, storage::TokenMint& tokens, storage::EffectiveClock* clock, Replay replay) {
  return impl_->Load(store, tokens, clock, replay);
}
LoadProgress Persistence::progress() const { return impl_->progress(); }
absl::Status Persistence::Close(bool save_dump) { return impl_->Close(save_dump); }
void Persistence::Tick() { impl_->Tick(); }
PersistenceStatus Persistence::status() const { return impl_->status(); }
void Persistence::SaveNow(std::function<void(absl::Status)> done) { impl_->SaveNow(std::move(done)); }
absl::Status Persistence::SaveInBackground(bool schedule) { return impl_->SaveInBackground(schedule); }
absl::Status Persistence::RewriteInBackground() { return impl_->RewriteInBackground(); }
void Persistence::WaitSynced(Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) {
  impl_->WaitSynced(lsn, timeout_ms, std::move(done));
}
bool Persistence::WaitSyncedNow(Lsn lsn) const { return impl_->log_on() && impl_->journal().synced() >= lsn; }

absl::Status Persistence::SetSync(SyncPolicy policy) {
  {
    const std::lock_guard<std::mutex> lock(impl_->mutex());
    impl_->options().sync = policy;
  }
  impl_->journal().SetPolicy(policy);
  return absl::OkStatus();
}
absl::Status Persistence::SetLog(bool on) { return impl_->SetLog(on); }
void Persistence::AddReplica(ReplicaSink sink) { impl_->AddReplica(std::move(sink)); }
void Persistence::TellReplicas(absl::string_view command) { impl_->journal().feed().AppendPlain(command); }
void Persistence::TellReplicas(absl::string_view command, storage::DbIndex db) {
  impl_->journal().feed().Append(command, db, db, storage::kNoLsn);
}
bool Persistence::has_replicas() const { return impl_->journal().feed().wanted(); }
uint64_t Persistence::replication_offset() const { return impl_->journal().feed().offset(); }
void Persistence::SetSavePoints(std::vector<SavePoint> points) {
  const std::lock_guard<std::mutex> lock(impl_->mutex());
  impl_->options().save_points = std::move(points);
}
void Persistence::SetRewriteLimits(int64_t percentage, uint64_t bytes_min) {
  const std::lock_guard<std::mutex> lock(impl_->mutex());
  impl_->options().rewrite_percentage = percentage;
  impl_->options().rewrite_bytes_min = bytes_min;
}
void Persistence::SetDumpName(std::string name) {
  const std::lock_guard<std::mutex> lock(impl_->mutex());
  impl_->directory().set_dump_name(std::move(name));
}

}  // namespace idemd::server
