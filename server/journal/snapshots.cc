// Bases and dumps: what is cut, where it goes, what it replaces.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/journal/persistence_impl.h"

namespace idemd::server {

using std::chrono::steady_clock;
using storage::Lsn;

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
  std::vector<std::string> libraries;
  storage::Snapshot snapshot(*store_, [&] {
    lsn = journal_.last_lsn();
    fence = store_->fences().last();
    changes = store_->stats().Get(storage::StorageStats::kChanges);
    libraries = Libraries();
  });
  std::string path;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    snapshot_.store(&snapshot, std::memory_order_relaxed);
    path = directory_.DumpPath();
  }
  uint64_t bytes = 0;
  SnapshotFacts facts = Facts(lsn, fence);
  facts.libraries = std::move(libraries);
  const absl::Status written = WriteSnapshotFile(directory_, path, snapshot, facts, &bytes);
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
  std::vector<std::string> libraries;
  const absl::Status rotated = journal_.Rotate(
      std::move(fresh),
      [&](absl::FunctionRef<void()> at_cut) {
        snapshot.emplace(*store_, [&] {
          at_cut();
          fence = store_->fences().last();
          libraries = Libraries();
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
  facts.libraries = std::move(libraries);
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

}  // namespace idemd::server
