// From files to a store that serves: reading, taking over, the first file of this process.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/admin/log.h"
#include "server/journal/persistence_impl.h"

namespace idemd::server {
namespace {

using storage::DbIndex;

constexpr int kDiskFailed = 75;  // EX_TEMPFAIL of sysexits.h: the supervisor may try again, perhaps on another disk
constexpr unsigned kLoadWorkersMax = 8;
constexpr auto kTellEvery = std::chrono::seconds(1);
constexpr size_t kUuidChars = 32;
constexpr size_t kFilesMax = 32;

std::string KeyText(const storage::TokenKey& key) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(key.data()), key.size()));
}

bool ReadKey(absl::string_view text, storage::TokenKey* key) {
  if (text.size() != 2 * key->size()) return false;
  for (const char c : text)
    if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
  for (size_t i = 0; i < key->size(); ++i) std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, (*key)[i], 16);
  return true;
}

// What is read goes into the store.
class StoreSink final : public LoadSink {
 public:
  StoreSink(storage::Loader& loader, const Persistence::Replay& replay, int64_t delay_us)
      : loader_(loader), replay_(replay), delay_us_(delay_us) {}
  void Expect(DbIndex db, uint64_t keys) override { loader_.Expect(db, keys); }
  void Set(DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms) override {
    if (delay_us_ > 0 && ++keys_ % kKeysPerDelay == 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_ * kKeysPerDelay));
    loader_.Set(db, key, value, deadline_ms);
    ahead_ = true;
  }
  void SetCollection(DbIndex db, absl::string_view key, std::unique_ptr<storage::Collection> value, int64_t deadline_ms) override {
    loader_.SetCollection(db, key, std::move(value), deadline_ms);
    ahead_ = true;
  }
  void Delete(DbIndex db, absl::string_view key) override {
    loader_.Delete(db, key);
    ahead_ = true;
  }
  void SetDeadline(DbIndex db, absl::string_view key, int64_t deadline_ms) override {
    loader_.SetDeadline(db, key, deadline_ms);
    ahead_ = true;
  }
  void FlushDb(DbIndex db) override { loader_.FlushDb(db); }
  void FlushAll() override { loader_.FlushAll(); }
  void SwapDb(DbIndex a, DbIndex b) override { loader_.SwapDb(a, b); }
  absl::Status Other(const std::vector<absl::string_view>& words, DbIndex* db) override {
    // Commands are run here and now, so what was read before them has to be in the tables.
    if (std::exchange(ahead_, false)) loader_.Wait();
    if (!replay_) return absl::UnimplementedError(absl::StrCat("the command ", words[0].substr(0, 32)));
    return replay_(words, db);
  }

 private:
  static constexpr int64_t kKeysPerDelay = 256;
  storage::Loader& loader_;
  const Persistence::Replay& replay_;
  const int64_t delay_us_;
  int64_t keys_ = 0;
  bool ahead_ = false;  // the loader's workers may still be putting in what it was given
};

}  // namespace

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
  storage::Loader loader(store, options_.on_callers_thread ? 0 : std::min(cores, kLoadWorkersMax));
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

  if (options_.log) {
    if (absl::Status begun = BeginLog(); !begun.ok()) return begun;
  }
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
    last_save_ = std::chrono::steady_clock::now();
  }
  if (!options_.on_callers_thread) thread_ = std::thread([this] { Work(); });
  front_.SetLoading(false);
  return absl::OkStatus();
}

absl::Status Persistence::Impl::Read(storage::Loader& loader, const Replay& replay) {
  StoreSink sink(loader, replay, options_.load_delay_us);
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
  files_.Unlink(directory_.ReplicaPath()).IgnoreError();  // of a server that was killed while a replica joined
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
absl::Status Persistence::Impl::BeginLog() {
  if (absl::Status made = directory_.MakeLogDirectory(); !made.ok()) return made;
  last_number_ = recovered_.last_number;
  manifest_ = recovered_.manifest;
  manifest_.clean.reset();
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
  if (manifest_.files.size() <= kFilesMax) return absl::OkStatus();
  // Each start adds a file, however little is in it.
  LogNotice(absl::StrCat("The log has ", manifest_.files.size(), " files. Rewriting it."));
  std::unique_lock<std::mutex> lock(mutex_);
  Begin(lock, Job::kRewrite);
  return absl::OkStatus();
}

// A chain of our own begins with a base that holds what was read; what it was read from goes when that is safe.
absl::Status Persistence::Impl::Import() {
  const uint64_t number = last_number_ + 1;
  for (const ManifestFile& file : manifest_.files) recovered_.leftovers.push_back(file.name);
  manifest_.files.clear();
  {
    std::vector<std::string> libraries;
    storage::Snapshot snapshot(*store_, [&] { libraries = Libraries(); });
    SnapshotFacts facts = Facts(0, store_->fences().last());
    facts.libraries = std::move(libraries);
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
  if (log_on() && result.ok()) {
    const LogEnd end = journal_.end();
    manifest_.clean = CleanStop{end.name, end.bytes, end.sum};
    const storage::Unit unit(*store_);
    for (DbIndex db = 0; db < storage::kDatabases; ++db)
      if (const uint64_t keys = unit.Size(db); keys != 0) manifest_.clean->keys.emplace_back(db, keys);
    result = directory_.PrepareManifest(manifest_);
    if (result.ok()) result = directory_.PublishManifest();
  }
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
  senders_end_.store(true, std::memory_order_relaxed);
  wake_.notify_all();
  thread_.join();
  senders_.clear();  // waits for them
}

}  // namespace idemd::server
