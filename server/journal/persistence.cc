// Loading at start, and the jobs that run while serving.
#include "server/journal/persistence.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/admin/log.h"
#include "server/journal/directory.h"
#include "server/journal/journal.h"
#include "server/journal/recovery.h"
#include "server/journal/snapshot_file.h"
#include "storage/loader.h"
#include "storage/snapshot/snapshot.h"

namespace idemd::server {
namespace {

using storage::DbIndex;
using storage::Lsn;
using std::chrono::steady_clock;

constexpr int kDiskFailed = 75;  // EX_TEMPFAIL of sysexits.h: the supervisor may try again, perhaps on another disk
constexpr unsigned kLoadWorkersMax = 8;
constexpr auto kTellEvery = std::chrono::seconds(1);
constexpr auto kLookAtPathEvery = std::chrono::seconds(1);
// After a snapshot failed, one that nobody asked for waits so long, and longer each time.
constexpr auto kRetryMin = std::chrono::seconds(5);
constexpr auto kRetryMax = std::chrono::seconds(300);
constexpr size_t kUuidChars = 32;
constexpr absl::string_view kNobody = "-";  // before the first file

int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now().time_since_epoch()).count();
}
int64_t SecondsSince(steady_clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - begin).count();
}

std::string KeyText(const storage::TokenKey& key) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

bool ReadKey(absl::string_view text, storage::TokenKey* key) {
  if (text.size() != 2 * key->size()) return false;
  for (const char c : text)
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
  const std::string bytes = absl::HexStringToBytes(text);
  std::copy(bytes.begin(), bytes.end(), key->begin());
  return true;
}

// What is read goes into the store.
class StoreSink final : public LoadSink {
 public:
  StoreSink(storage::Loader& loader, const Persistence::Replay& replay) : loader_(loader), replay_(replay) {}
  void Set(DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms) override {
    loader_.Set(db, key, value, deadline_ms);
  }
  void Delete(DbIndex db, absl::string_view key) override { loader_.Delete(db, key); }
  void SetDeadline(DbIndex db, absl::string_view key, int64_t deadline_ms) override { loader_.SetDeadline(db, key, deadline_ms); }
  void FlushDb(DbIndex db) override { loader_.FlushDb(db); }
  void FlushAll() override { loader_.FlushAll(); }
  void SwapDb(DbIndex a, DbIndex b) override { loader_.SwapDb(a, b); }
  absl::Status Other(const std::vector<absl::string_view>& words, DbIndex* db) override {
    loader_.Wait();
    if (!replay_) return absl::UnimplementedError(absl::StrCat("the command ", words[0].substr(0, 32)));
    return replay_(words, db);
  }

 private:
  storage::Loader& loader_;
  const Persistence::Replay& replay_;
};

}  // namespace

class Persistence::Impl {
 public:
  Impl(Persistence& front, PersistenceOptions options, storage::FileSystem& files, storage::TimeSource& time)
      : front_(front),
        options_(std::move(options)),
        files_(files),
        time_(time),
        directory_(files, options_),
        journal_(time, options_.on_callers_thread),
        started_(steady_clock::now()) {}
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
  void WaitSynced(Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done);
  absl::Status SetLog(bool on);

  Journal& journal() { return journal_; }
  bool log_on() const { return log_on_.load(std::memory_order_relaxed); }
  void set_told(std::function<void()> told) { told_ = std::move(told); }
  std::mutex& mutex() { return mutex_; }
  PersistenceOptions& options() { return options_; }
  Directory& directory() { return directory_; }

 private:
  enum class Job : uint8_t { kNone, kSave, kRewrite };
  struct Waiting {
    Lsn lsn;
    int64_t until_ms;  // steady; INT64_MAX: no limit
    std::function<void(bool)> done;
  };

  // Loading
  absl::Status Read(storage::Loader& loader, const Replay& replay);
  absl::Status TakeUp();
  absl::Status BeginLog();
  absl::Status Import();
  absl::Status StartJournal(uint64_t number, const LogEnd& before, bool publish = true);
  Journal::NewFile Fresh(const std::string& name, std::unique_ptr<storage::File> file) const;
  void RemoveLeftovers();
  // Jobs
  SnapshotFacts Facts(Lsn lsn, uint64_t fence) const;
  absl::Status Save();
  absl::Status Rewrite();
  absl::Status WriteBase(uint64_t number, storage::Snapshot& snapshot, const SnapshotFacts& facts);
  void Work();
  void RunJob(std::unique_lock<std::mutex>& lock, Job job);
  void Begin(std::unique_lock<std::mutex>& lock, Job job);
  Job Wanted() const;
  void EndThread();
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
  const steady_clock::time_point started_;
  std::function<void()> told_;
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
  steady_clock::time_point last_try_{};
  std::chrono::seconds retry_after_{0};
  steady_clock::time_point last_save_{};
  steady_clock::time_point looked_at_path_{};
  std::vector<Waiting> waiting_;
  std::atomic<storage::Snapshot*> snapshot_{nullptr};  // under way; for progress, with mutex_ held
  std::thread thread_;
};

// --- starting

void Persistence::Impl::Die(const absl::Status& why) {
  if (options_.die) return options_.die(why);
  LogWarning(absl::StrCat("The disk has failed: ", why.message(),
                          ". What is acknowledged is safe; this process cannot promise more, and ends."));
  _exit(kDiskFailed);
}

absl::Status Persistence::Impl::Open() {
  absl::StatusOr<std::unique_ptr<storage::FileLock>> lock = files_.Lock(directory_.LockPath());
  if (!lock.ok()) {
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::FailedPreconditionError(
          absl::StrCat("another idemd serves from this directory (", directory_.LockPath(), " is locked)"));
    }
    return lock.status();
  }
  lock_ = *std::move(lock);
  front_.SetLoading(true);
  return absl::OkStatus();
}

absl::Status Persistence::Impl::Load(storage::Store& store, storage::TokenMint& tokens, storage::EffectiveClock* clock,
                                     const Replay& replay) {
  store_ = &store;
  clock_ = &store.clock();
  load_began_s_.store(time_.WallNs() / 1'000'000'000, std::memory_order_relaxed);
  load_began_ms_.store(SteadyMs(), std::memory_order_relaxed);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  storage::Loader loader(store, options_.on_callers_thread ? 0 : std::clamp(cores - 1, 1u, kLoadWorkersMax));
  if (absl::Status read = Read(loader, replay); !read.ok()) return read;
  const bool same_boot = !recovered_.boot_id.empty() && recovered_.boot_id == time_.BootId();
  if (clock != nullptr && recovered_.effective_ms != 0) clock->Resume(recovered_.effective_ms, recovered_.boot_ms, same_boot);
  store.fences().Raise(std::max(recovered_.fence, storage::FenceFloor(clock_->NowMs())));

  storage::TokenKey key;
  if (!ReadKey(recovered_.token_key, &key)) {
    if (recovered_.kind == Recovered::Kind::kOwn)
      return absl::DataLossError("the key of the tokens cannot be read from the log's files");
    key = storage::TokenMint::NewKey();
  }
  tokens.SetKey(key);
  token_key_ = KeyText(key);
  uuid_ = recovered_.uuid.empty() ? storage::RandomHex(kUuidChars) : recovered_.uuid;

  if (absl::Status taken = TakeUp(); !taken.ok()) return taken;
  if (loader.saw_records() && recovered_.effective_ms != 0) {
    const int64_t until = clock_->NowMs() + options_.restart_grace_ms;
    const uint64_t extended = storage::ExtendClaims(store, recovered_.effective_ms, until);
    if (extended != 0) LogNotice(absl::StrCat(extended, " claims that were live got ", options_.restart_grace_ms, " ms more."));
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint64_t keys = 0;
    storage::Unit unit(store);
    for (DbIndex db = 0; db < storage::kDatabases; ++db) keys += unit.Size(db);
    status_.loaded_keys = keys;
    status_.torn_bytes_cut = recovered_.torn_bytes;
    status_.last_save_s = time_.WallNs() / 1'000'000'000;
    changes_at_save_ = store.stats().Get(storage::StorageStats::kChanges);
    last_save_ = steady_clock::now();
  }
  if (!options_.on_callers_thread) thread_ = std::thread([this] { Work(); });
  front_.SetLoading(false);
  return absl::OkStatus();
}

absl::Status Persistence::Impl::Read(storage::Loader& loader, const Replay& replay) {
  StoreSink sink(loader, replay);
  std::mutex telling_mutex;
  std::condition_variable telling;
  bool over = false;
  std::thread teller;
  if (!options_.on_callers_thread) {
    teller = std::thread([&] {
      std::unique_lock<std::mutex> lock(telling_mutex);
      while (!telling.wait_for(lock, kTellEvery, [&] { return over; })) {
        const LoadProgress now = progress();
        LogNotice(absl::StrFormat("Loading: %.1f%%, %d keys or units, about %d s to go", now.percent(), now.keys_loaded, now.eta_s));
      }
    });
  }
  absl::StatusOr<Recovered> recovered = Recover(directory_, options_.log, sink, counters_);
  loader.Finish();
  if (teller.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(telling_mutex);
      over = true;
    }
    telling.notify_one();
    teller.join();
  }
  if (!recovered.ok()) return recovered.status();
  recovered_ = *std::move(recovered);
  const double seconds = static_cast<double>(SteadyMs() - load_began_ms_.load()) / 1000;
  switch (recovered_.kind) {
    case Recovered::Kind::kFresh:
      break;
    case Recovered::Kind::kOwn:
    case Recovered::Kind::kForeign:
      LogNotice(absl::StrFormat("DB loaded from append only file: %.3f seconds", seconds));
      break;
    case Recovered::Kind::kDump:
      LogNotice(absl::StrFormat("DB loaded from disk: %.3f seconds", seconds));
      break;
  }
  if (recovered_.torn_bytes != 0) {
    LogWarning(absl::StrCat("The log ended in the middle of a batch that nobody was told of (", recovered_.torn_why, "): ",
                            recovered_.torn_bytes, " bytes were cut and are kept beside it."));
  }
  return absl::OkStatus();
}

// From what was found to what is written to.
absl::Status Persistence::Impl::TakeUp() {
  if (!options_.log) return absl::OkStatus();
  return BeginLog();
}

absl::Status Persistence::Impl::BeginLog() {
  if (absl::Status made = directory_.MakeLogDirectory(); !made.ok()) return made;
  last_number_ = recovered_.last_number;
  manifest_ = recovered_.manifest;
  absl::Status begun;
  switch (recovered_.kind) {
    case Recovered::Kind::kFresh:
      manifest_.files.clear();
      begun = StartJournal(last_number_ + 1, LogEnd{std::string(kNobody), 0, 0, 0});
      break;
    case Recovered::Kind::kOwn:
      if (absl::Status sealed = SealLast(directory_, recovered_); !sealed.ok()) return sealed;
      base_bytes_ = recovered_.base_bytes;
      closed_log_bytes_ = recovered_.log_bytes;
      begun = StartJournal(last_number_ + 1, recovered_.end);
      break;
    case Recovered::Kind::kForeign:
    case Recovered::Kind::kDump:
      begun = Import();
      break;
  }
  if (!begun.ok()) return begun;
  RemoveLeftovers();
  return absl::OkStatus();
}

// A chain of our own begins with a base that holds what was read; what it was read from goes when that is safe.
absl::Status Persistence::Impl::Import() {
  const uint64_t number = last_number_ + 1;
  for (const ManifestFile& file : manifest_.files) recovered_.leftovers.push_back(file.name);
  manifest_.files.clear();
  {
    storage::Snapshot snapshot(*store_, [] {});
    SnapshotFacts facts = Facts(0, store_->fences().last());
    facts.import = true;
    if (absl::Status written = WriteSnapshotFile(directory_, PathOfBase(number), snapshot, facts, &base_bytes_); !written.ok())
      return written;
  }
  manifest_.files.push_back({directory_.BaseName(number), number, true});
  LogNotice("What a Redis wrote was taken over into a log of idemd's own.");
  return StartJournal(number, LogEnd{std::string(kNobody), 0, 0, 0});
}

Journal::NewFile Persistence::Impl::Fresh(const std::string& name, std::unique_ptr<storage::File> file) const {
  Journal::NewFile fresh;
  fresh.file = std::move(file);
  fresh.path = directory_.PathOf(name);
  fresh.header.name = name;
  fresh.header.uuid = uuid_;
  fresh.header.boot_id = time_.BootId();
  fresh.header.token_key = token_key_;
  return fresh;
}

// A new file, behind what the manifest holds. Not to publish it: whoever writes the base does.
absl::Status Persistence::Impl::StartJournal(uint64_t number, const LogEnd& before, bool publish) {
  const std::string name = directory_.LogName(number);
  absl::StatusOr<std::unique_ptr<storage::File>> file = directory_.CreateLog(name);
  if (!file.ok()) return file.status();
  manifest_.files.push_back({name, number, false});
  last_number_ = number;
  if (publish) {
    if (absl::Status prepared = directory_.PrepareManifest(manifest_); !prepared.ok()) return prepared;
    if (absl::Status published = directory_.PublishManifest(); !published.ok()) return published;
  }
  Journal::NewFile fresh = Fresh(name, *std::move(file));
  const uint64_t fence = store_->fences().last() + storage::kFenceBlock;
  Journal::Hooks hooks;
  hooks.die = [this](const absl::Status& why) { Die(why); };
  hooks.warn = [](const std::string& text) { LogWarning(text); };
  hooks.released = [this] { OnJournal(); };
  journal_.SetPolicy(options_.sync);
  if (absl::Status started = journal_.Start(std::move(fresh), before, fence, *clock_, std::move(hooks)); !started.ok()) return started;
  store_->fences().SetReserved(fence);
  journal_.SetOn(true);
  store_->SetLogging(true);
  log_on_.store(true, std::memory_order_relaxed);
  return absl::OkStatus();
}

void Persistence::Impl::RemoveLeftovers() {
  for (const std::string& name : recovered_.leftovers) {
    const bool listed = std::any_of(manifest_.files.begin(), manifest_.files.end(),
                                    [&](const ManifestFile& file) { return file.name == name; });
    if (!listed) files_.Unlink(directory_.PathOf(name)).IgnoreError();  // a leftover is harmless, and goes at the next start
  }
  recovered_.leftovers.clear();
}

absl::Status Persistence::Impl::Close(bool save_dump) {
  EndThread();
  absl::Status result;
  if (save_dump && store_ != nullptr) result = Save();
  if (log_on()) result.Update(journal_.Stop());
  ServeWaiting();
  lock_.reset();
  return result;
}

void Persistence::Impl::EndThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

// --- snapshots

SnapshotFacts Persistence::Impl::Facts(Lsn lsn, uint64_t fence) const {
  SnapshotFacts facts;
  facts.lsn = lsn;
  facts.fence = fence;
  facts.effective_ms = clock_->NowMs();
  facts.boot_ms = time_.BootNs() / 1'000'000;
  facts.uuid = uuid_;
  facts.boot_id = time_.BootId();
  facts.token_key = token_key_;
  return facts;
}

absl::Status Persistence::Impl::Save() {
  Lsn lsn = 0;
  uint64_t fence = 0, changes = 0;
  storage::Snapshot snapshot(*store_, [&] {
    lsn = journal_.last_lsn();
    fence = store_->fences().last();
    changes = store_->stats().Get(storage::StorageStats::kChanges);
  });
  std::string path;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    snapshot_.store(&snapshot, std::memory_order_relaxed);
    path = directory_.DumpPath();
  }
  uint64_t bytes = 0;
  const absl::Status written = WriteSnapshotFile(directory_, path, snapshot, Facts(lsn, fence), &bytes);
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot_.store(nullptr, std::memory_order_relaxed);
  if (!written.ok()) return written;
  changes_at_save_ = changes;
  last_save_ = steady_clock::now();
  status_.last_save_s = time_.WallNs() / 1'000'000'000;
  LogNotice(absl::StrCat("DB saved on disk: ", snapshot.keys(), " keys, ", bytes, " bytes"));
  return absl::OkStatus();
}

absl::Status Persistence::Impl::Rewrite() {
  const uint64_t number = last_number_ + 1;
  const std::string name = directory_.LogName(number);
  absl::StatusOr<std::unique_ptr<storage::File>> file = directory_.CreateLog(name);
  if (!file.ok()) return file.status();
  last_number_ = number;
  Manifest next = manifest_;
  next.files.push_back({name, number, false});
  if (absl::Status prepared = directory_.PrepareManifest(next); !prepared.ok()) return prepared;
  Journal::NewFile fresh = Fresh(name, *std::move(file));
  std::optional<storage::Snapshot> snapshot;
  uint64_t fence = 0;
  const absl::Status rotated = journal_.Rotate(
      std::move(fresh),
      [&](absl::FunctionRef<void()> at_cut) {
        snapshot.emplace(*store_, [&] {
          at_cut();
          fence = store_->fences().last();
        });
      },
      [&] { return directory_.PublishManifest(); });
  if (!rotated.ok()) return rotated;
  const uint64_t closed = journal_.closed_bytes();
  manifest_ = next;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_log_bytes_ += closed;
    snapshot_.store(&*snapshot, std::memory_order_relaxed);
  }
  SnapshotFacts facts = Facts(journal_.cut_lsn(), fence);
  facts.log_base = true;
  const absl::Status written = WriteBase(number, *snapshot, facts);
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot_.store(nullptr, std::memory_order_relaxed);
  return written;
}

// The new base, and then the end of what it replaces.
absl::Status Persistence::Impl::WriteBase(uint64_t number, storage::Snapshot& snapshot, const SnapshotFacts& facts) {
  uint64_t bytes = 0;
  if (absl::Status written = WriteSnapshotFile(directory_, PathOfBase(number), snapshot, facts, &bytes); !written.ok()) return written;
  Manifest next;
  next.files.push_back({directory_.BaseName(number), number, true});
  std::vector<std::string> old;
  for (const ManifestFile& file : manifest_.files) {
    if (!file.base && file.number >= number)
      next.files.push_back(file);
    else
      old.push_back(file.name);
  }
  if (absl::Status prepared = directory_.PrepareManifest(next); !prepared.ok()) return prepared;
  if (absl::Status published = directory_.PublishManifest(); !published.ok()) {
    Die(published);  // which of the two manifests is there cannot be known
    return published;
  }
  manifest_ = std::move(next);
  for (const std::string& name : old) files_.Unlink(directory_.PathOf(name)).IgnoreError();  // goes at the next start then
  const std::lock_guard<std::mutex> lock(mutex_);
  base_bytes_ = bytes;
  closed_log_bytes_ = 0;
  return absl::OkStatus();
}

// --- jobs

Persistence::Impl::Job Persistence::Impl::Wanted() const {
  if (save_wanted_) return Job::kSave;
  if (rewrite_wanted_) return Job::kRewrite;
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
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_ == Job::kSave) {
    lock.unlock();
    return done(absl::FailedPreconditionError("Background save already in progress"));
  }
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
  if (!look_at_path || journal_.InPlace()) return;
  // What is appended now is in a file that no start will find. Only a new chain makes it safe again.
  LogWarning("The append only file was removed or replaced under this server. Rewriting it.");
  std::unique_lock<std::mutex> lock(mutex_);
  if (running_ != Job::kRewrite && !rewrite_wanted_) Begin(lock, Job::kRewrite);
}

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
        storage::Snapshot snapshot(*store_, [] {});
        SnapshotFacts facts = Facts(journal_.start_lsn(), store_->fences().last());
        facts.log_base = true;
        result = journal_.SyncNow();
        if (result.ok()) result = WriteBase(number, snapshot, facts);
      }
      if (result.ok()) RemoveLeftovers();
    }
  } else {
    store_->SetLogging(false);
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
