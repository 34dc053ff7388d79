// Appending, writing, syncing, and what happens when the disk does not do as asked.
#include "server/journal/journal.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/journal/commands_text.h"

namespace idemd::server {
namespace {

using storage::Lsn;

constexpr int64_t kNsPerSecond = 1'000'000'000;
constexpr int64_t kGiveUpFullNs = 30 * kNsPerSecond;
constexpr auto kTryAgain = std::chrono::milliseconds(100);
constexpr auto kSyncEvery = std::chrono::seconds(1);
// Space is reserved behind the end in such steps, when less than half of one is left.
constexpr uint64_t kReserveBytes = 8 << 20;
// And under `always` so much of it is filled with zeros; less in simulations, where it shall happen often.
constexpr uint64_t kPrefillBytes = 1 << 20, kPrefillBytesInline = 1 << 10;
// Buffers larger than this are given back after use.
constexpr size_t kKeepBytes = 4 << 20;

}  // namespace

Journal::Journal(storage::TimeSource& time, bool inline_commits) : time_(time), inline_commits_(inline_commits) {}

Journal::~Journal() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

absl::Status Journal::Start(NewFile file, const LogEnd& before, uint64_t fence, storage::Clock& clock, Hooks hooks) {
  clock_ = &clock;
  hooks_ = std::move(hooks);
  const WriterLock writer(writer_mutex_);
  file_ = std::move(file.file);
  path_ = std::move(file.path);
  name_ = file.header.name;
  sum_ = before.sum;
  start_lsn_ = before.last;
  sealed_ = false;
  reserved_to_ = prefilled_to_ = 0;
  {
    const std::lock_guard<std::mutex> wake(wake_mutex_);
    stopping_ = false;
  }
  file.header.before = before.name;
  file.header.before_bytes = before.bytes;
  file.header.before_last = before.last;
  file.header.before_sum = before.sum;
  {
    storage::MutexLock lock(buffer_mutex_);
    next_.store(before.last, std::memory_order_relaxed);
    fence_mark_.store(fence, std::memory_order_relaxed);
    open_ = Chunk{.bytes = {}, .first = before.last + 1, .last = before.last};
    AppendFileHeader(file.header, open_.bytes);
    AppendFenceMark(fence, open_.bytes);
  }
  written_.store(before.last, std::memory_order_relaxed);
  synced_.store(before.last, std::memory_order_relaxed);
  released_.store(before.last, std::memory_order_relaxed);
  file_bytes_.store(0, std::memory_order_relaxed);
  PrepareSpace();
  if (!WriteOut() || !SyncWritten()) return absl::UnavailableError(absl::StrCat("cannot begin ", path_));
  Advance();
  if (!inline_commits_) thread_ = std::thread([this] { Committer(); });
  return absl::OkStatus();
}

// --- units

Lsn Journal::Append(absl::Span<const storage::Effect> effects) {
  // The text is made before the buffer's lock is taken, with a guess of the database that the buffer is in: nearly always the
  // guess is right, and else a SELECT goes in front.
  thread_local std::string text;
  text.clear();
  const storage::DbIndex first_db = effects.empty() ? kNoDb : effects[0].db;
  storage::DbIndex db = first_db;
  AppendEffects(effects, &db, text);
  Lsn lsn = storage::kNoLsn;
  if (on()) {
    storage::MutexLock lock(buffer_mutex_);
    Put(text, first_db, db);
    lsn = open_.last = next_.load(std::memory_order_relaxed) + 1;
    next_.store(lsn, std::memory_order_relaxed);
    if (feed_.wanted()) feed_.Append(text, first_db, db, lsn);
  } else if (feed_.wanted()) {
    feed_.Append(text, first_db, db, lsn);
  }
  if (text.capacity() > kKeepBytes) std::string().swap(text);
  return lsn;
}

void Journal::Put(absl::string_view commands, storage::DbIndex first_db, storage::DbIndex last_db) {
  if (open_db_ != first_db) AppendSelect(first_db, open_.bytes);
  open_db_ = last_db;
  open_.bytes.append(commands.data(), commands.size());
}

void Journal::ReserveFences(uint64_t fence) {
  if (!on()) return;
  storage::MutexLock lock(buffer_mutex_);
  if (fence <= fence_mark_.load(std::memory_order_relaxed)) return;
  fence_mark_.store(fence, std::memory_order_relaxed);
  AppendFenceMark(fence, open_.bytes);
}

void Journal::SetOn(bool on) {
  on_.store(on, std::memory_order_relaxed);
  storage::MutexLock lock(buffer_mutex_);
  if (!on) released_.store(UINT64_MAX - 1, std::memory_order_release);
}

// --- releasing

void Journal::Release(Lsn lsn) {
  if (lsn <= released()) return;
  if (inline_commits_) {
    const WriterLock writer(writer_mutex_);
    if (WriteOut() && policy() == SyncPolicy::kAlways) SyncWritten();
    Advance();
    PrepareSpace();
    return;
  }
  if (policy() != SyncPolicy::kAlways) {
    if (full_.load(std::memory_order_relaxed)) return;  // the committer tries again
    const WriterLock writer(writer_mutex_);
    if (lsn <= released()) return;
    WriteOut();
    Advance();
    return;
  }
  if (awake_.exchange(true, std::memory_order_acq_rel)) return;  // it looks at the buffer once more before it sleeps
  {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    work_ = true;
  }
  wake_.notify_one();
}

absl::Status Journal::Refusal() const {
  if (!full_.load(std::memory_order_relaxed)) return absl::OkStatus();
  storage::MutexLock lock(refusal_mutex_);
  return absl::ResourceExhaustedError(refusal_);
}

// [J2]
bool Journal::Advance() {
  const Lsn now = policy() == SyncPolicy::kAlways ? synced() : written();
  Lsn before = released_.load(std::memory_order_relaxed);
  while (before < now) {
    if (released_.compare_exchange_weak(before, now, std::memory_order_release)) return true;
  }
  return false;
}

void Journal::AdvanceAndTell() {
  if (Advance() && hooks_.released) hooks_.released();
}

void Journal::WantSync() {
  {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    sync_wanted_ = work_ = true;
  }
  wake_.notify_one();
}

void Journal::SetPolicy(SyncPolicy policy) {
  policy_.store(policy, std::memory_order_relaxed);
  if (policy == SyncPolicy::kAlways) {
    // From now on released() waits for syncs; what was released before is synced before we return.
    SyncNow().IgnoreError();  // has ended the process, or the disk is full and it is tried again
    return;
  }
  const WriterLock writer(writer_mutex_);
  if (file_ != nullptr) AdvanceAndTell();
}

absl::Status Journal::SyncNow() {
  const WriterLock writer(writer_mutex_);
  if (file_ == nullptr) return absl::OkStatus();
  if (!WriteOut() || !SyncWritten()) return absl::UnavailableError("the log cannot be written");
  AdvanceAndTell();
  return absl::OkStatus();
}

// --- writing; the holder of writer_mutex_

void Journal::TakeOpen() {
  taken_.bytes.swap(open_.bytes);
  taken_.first = open_.first;
  taken_.last = open_.last;
  open_.bytes.clear();
  open_.first = taken_.last + 1;
  open_.last = taken_.last;
  open_db_ = kNoDb;
}

// Writes what units have appended. False: it could not be written, and is kept.
bool Journal::WriteOut() {
  if (!taken_.empty() && !WriteBatch(taken_)) return false;
  {
    storage::MutexLock lock(buffer_mutex_);
    if (open_.empty()) return true;
    TakeOpen();
  }
  return WriteBatch(taken_);
}

bool Journal::WriteBatch(Chunk& chunk) {
  BatchHeader header;
  header.first = chunk.first;
  header.last = chunk.last;
  header.effective_ms = clock_->NowMs();
  header.boot_ms = time_.BootNs() / 1'000'000;
  header.synced = synced();
  header.previous = sum_;
  batch_.clear();
  AppendBatchHeader(header, chunk.bytes, batch_);
  batch_.append(chunk.bytes);
  const uint64_t begin = file_bytes_.load(std::memory_order_relaxed);
  if (const absl::Status status = file_->Append(batch_); !status.ok()) {
    if (!storage::IsNoSpace(status)) {
      Fail(status);
      return false;
    }
    // What is there of the batch must go before it is tried again.
    if (const absl::Status cut = file_->Truncate(begin); !cut.ok()) {
      Fail(cut);
      return false;
    }
    reserved_to_ = prefilled_to_ = 0;
    CannotWrite(status);
    return false;
  }
  if (full_.exchange(false, std::memory_order_relaxed)) {
    full_since_ns_ = 0;
    SetRefusing(false);
    if (hooks_.warn) hooks_.warn("AOF write error looks solved. The server can write again.");
  }
  sum_ = header.sum;
  file_bytes_.store(begin + batch_.size(), std::memory_order_relaxed);
  written_.store(chunk.last, std::memory_order_release);
  if (batch_.capacity() > kKeepBytes) std::string().swap(batch_);
  if (chunk.bytes.capacity() > kKeepBytes) std::string().swap(chunk.bytes);
  chunk.bytes.clear();
  return true;
}

void Journal::CannotWrite(const absl::Status& why) {
  const int64_t now = time_.BootNs();
  if (full_since_ns_ == 0) full_since_ns_ = std::max<int64_t>(now, 1);
  {
    storage::MutexLock lock(refusal_mutex_);
    refusal_ = "MISCONF Errors writing to the AOF file: No space left on device";
  }
  SetRefusing(true);
  if (!full_.exchange(true, std::memory_order_relaxed)) {
    if (hooks_.warn)
      hooks_.warn(absl::StrCat("The log cannot be written: ", why.message(), ". Writes are refused until it can."));
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    work_ = true;
    wake_.notify_one();
  }
  if (now - full_since_ns_ > kGiveUpFullNs) Fail(why);
}

void Journal::Fail(const absl::Status& why) {
  if (hooks_.die) hooks_.die(why);
}

// Syncs what has been written. The lock of the writer may be held, or not.
bool Journal::SyncWritten() {
  const std::lock_guard<std::mutex> lock(sync_mutex_);
  return SyncLocked();
}

bool Journal::SyncLocked() {
  const Lsn written = this->written();
  if (const absl::Status status = file_->Sync(); !status.ok()) {
    Fail(status);
    return false;
  }
  syncs_.fetch_add(1, std::memory_order_relaxed);
  if (synced() < written) synced_.store(written, std::memory_order_release);
  return true;
}

void Journal::PrepareSpace() {
  // A disk without so much room is found out about when the room is needed.
  if (sealed_ || full_.load(std::memory_order_relaxed)) return;
  const uint64_t bytes = file_bytes_.load(std::memory_order_relaxed);
  if (bytes + kReserveBytes / 2 >= reserved_to_) {
    if (!file_->Reserve(kReserveBytes).ok()) return;
    reserved_to_ = bytes + kReserveBytes;
  }
  const uint64_t prefill = inline_commits_ ? kPrefillBytesInline : kPrefillBytes;
  if (policy() == SyncPolicy::kAlways && bytes + prefill / 2 >= prefilled_to_ && file_->Prefill(prefill).ok())
    prefilled_to_ = bytes + prefill;
}

void Journal::Committer() {
  auto next_sync = std::chrono::steady_clock::now() + kSyncEvery;
  std::unique_lock<std::mutex> wake(wake_mutex_);
  while (!stopping_) {
    const bool full = full_.load(std::memory_order_relaxed);
    if (!work_) {
      const auto until = full ? std::chrono::steady_clock::now() + kTryAgain : next_sync;
      wake_.wait_until(wake, until, [this] { return work_ || stopping_; });
      if (stopping_) break;
    }
    work_ = false;
    const bool sync_wanted = std::exchange(sync_wanted_, false);
    wake.unlock();
    awake_.store(false, std::memory_order_release);
    const SyncPolicy policy = this->policy();
    const auto now = std::chrono::steady_clock::now();
    bool advanced = false;
    if (policy == SyncPolicy::kAlways || sync_wanted || full_.load(std::memory_order_relaxed)) {
      const WriterLock writer(writer_mutex_);
      const bool written = !sealed_ && WriteOut();
      if (written && (policy == SyncPolicy::kAlways || sync_wanted) && synced() < this->written()) SyncWritten();
      advanced = Advance();
      PrepareSpace();
    }
    if (now >= next_sync) {
      next_sync = now + kSyncEvery;
      if (policy == SyncPolicy::kEverySecond && synced() < written()) SyncWritten();
      const WriterLock writer(writer_mutex_);
      PrepareSpace();
    }
    if ((advanced || sync_wanted) && hooks_.released) hooks_.released();
    wake.lock();
  }
}

// --- files

absl::Status Journal::WriteSeal() {
  Chunk seal;
  seal.first = written() + 1;
  seal.last = written();
  AppendSeal(file_bytes_.load(std::memory_order_relaxed), seal.bytes);
  if (!WriteBatch(seal)) return absl::UnavailableError(absl::StrCat("cannot write the seal of ", path_));
  // Gives back the space behind the end, and takes the zeros away: a start of ours does not mind them, a stock Redis does.
  absl::Status cut = file_->Truncate(file_bytes_.load(std::memory_order_relaxed));
  if (!cut.ok()) Fail(cut);
  return cut;
}

absl::Status Journal::Rotate(NewFile file, absl::FunctionRef<void(absl::FunctionRef<void()> at_cut)> cut,
                             absl::FunctionRef<absl::Status()> publish) {
  const WriterLock writer(writer_mutex_);
  // Little is left to write after the cut, and a full disk is found out about before.
  if (!WriteOut()) return absl::UnavailableError("the log cannot be written");
  cut([this] {
    storage::MutexLock lock(buffer_mutex_);
    TakeOpen();
    cut_lsn_ = taken_.last;
  });
  if (!taken_.empty() && !WriteBatch(taken_)) return absl::UnavailableError("the log cannot be written");
  if (absl::Status sealed = WriteSeal(); !sealed.ok()) return sealed;
  if (!SyncWritten()) return absl::UnavailableError(absl::StrCat("cannot sync ", path_));
  file.header.before = name_;
  file.header.before_bytes = file_bytes_.load(std::memory_order_relaxed);
  file.header.before_last = written();
  file.header.before_sum = sum_;
  closed_bytes_ = file.header.before_bytes;
  if (absl::Status published = publish(); !published.ok()) {
    Fail(published);
    return published;
  }
  {
    // In front of what units have appended since the cut.
    storage::MutexLock lock(buffer_mutex_);
    std::string head;
    AppendFileHeader(file.header, head);
    AppendFenceMark(fence_mark_.load(std::memory_order_relaxed), head);
    open_.bytes.insert(0, head);
  }
  const std::lock_guard<std::mutex> sync(sync_mutex_);
  file_ = std::move(file.file);
  path_ = std::move(file.path);
  name_ = file.header.name;
  file_bytes_.store(0, std::memory_order_relaxed);
  reserved_to_ = prefilled_to_ = 0;
  PrepareSpace();
  if (WriteOut() && policy() == SyncPolicy::kAlways) SyncLocked();
  AdvanceAndTell();
  return absl::OkStatus();
}

absl::Status Journal::Stop() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(wake_mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  const WriterLock writer(writer_mutex_);
  if (file_ == nullptr || sealed_) return absl::OkStatus();
  if (!WriteOut()) return absl::UnavailableError("the log cannot be written");
  if (absl::Status sealed = WriteSeal(); !sealed.ok()) return sealed;
  sealed_ = true;
  if (!SyncWritten()) return absl::UnavailableError(absl::StrCat("cannot sync ", path_));
  AdvanceAndTell();
  return absl::OkStatus();
}

uint64_t Journal::buffered_bytes() const {
  storage::MutexLock lock(buffer_mutex_);
  return open_.bytes.size();
}

LogEnd Journal::end() const {
  auto& writer_mutex = const_cast<std::mutex&>(writer_mutex_);
  const WriterLock writer(writer_mutex);
  return {name_, file_bytes_.load(std::memory_order_relaxed), written(), sum_};
}

bool Journal::InPlace() {
  const WriterLock writer(writer_mutex_);
  return file_ == nullptr || file_->IsAt(path_);
}

}  // namespace idemd::server
