// The file interface over a simulated disk.
#include "tests/support/sim_fs.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "storage/sync/mutex.h"
#include "tests/support/sim_disk.h"

namespace idemd::testing {

using storage::File;
using storage::FileLock;
using storage::Mutex;
using storage::MutexLock;
using Kind = SimCall::Kind;

namespace {

absl::Status IoError(absl::string_view path) {
  return absl::UnavailableError(absl::StrCat(path, ": Input/output error"));
}

absl::Status NoSpace(absl::string_view path) {
  absl::Status status = absl::UnavailableError(absl::StrCat(path, ": No space left on device"));
  status.SetPayload("idemd/no-space",
                    absl::Cord());  // as storage/fs.cc marks it; sim_fs_test.cc asks IsNoSpace()
  return status;
}

absl::Status NotThere(absl::string_view path) {
  return absl::NotFoundError(absl::StrCat(path, ": No such file or directory"));
}

}  // namespace

struct SimFs::Disk {
  mutable Mutex mutex;
  SimDiskState state ABSL_GUARDED_BY(mutex);
  std::set<std::string> locked ABSL_GUARDED_BY(mutex);
  std::function<void(const SimCall&)> hook ABSL_GUARDED_BY(mutex);
  uint64_t calls ABSL_GUARDED_BY(mutex) = 0;
  uint64_t crash_at ABSL_GUARDED_BY(mutex) = 0;  // 0: never
  uint64_t fail_from ABSL_GUARDED_BY(mutex) = 0;
  uint64_t fail_to ABSL_GUARDED_BY(mutex) = 0;
  SimFault fault ABSL_GUARDED_BY(mutex) = SimFault::kIo;
  std::shared_ptr<SimInode> appended ABSL_GUARDED_BY(mutex);  // while an append is in its middle
  bool off ABSL_GUARDED_BY(mutex) = false;
  bool lie ABSL_GUARDED_BY(mutex) = false;

  std::shared_ptr<SimInode> Find(absl::string_view path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto found = state.names.find(std::string(path));
    return found == state.names.end() ? nullptr : found->second;
  }
  bool IsDirectory(absl::string_view path) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (path == "/" || path == ".") return true;
    const auto inode = Find(path);
    return inode != nullptr && inode->directory;
  }

  // Begins a call. OK: go on; `half` says that only half of a write may be done and Fail() must
  // follow.
  absl::Status Begin(absl::string_view path, bool* half = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (crash_at != 0 && calls >= crash_at) off = true;
    if (off) return IoError(path);
    ++calls;
    if (calls < fail_from || calls >= fail_to) return absl::OkStatus();
    if (fault == SimFault::kIo) return IoError(path);
    if (fault == SimFault::kNoSpace) return NoSpace(path);
    if (half == nullptr) return IoError(path);
    *half = true;
    return absl::OkStatus();
  }

  // In the middle of a call: what it changed can be lost, the caller does not know yet. An error:
  // the power is off.
  absl::Status Middle(Kind kind, absl::string_view path) {
    SimCall call{kind, std::string(path), 0};
    std::function<void(const SimCall&)> told;
    {
      MutexLock lock(mutex);
      call.number = calls;
      if (calls == crash_at) off = true;
      if (!off) told = hook;
    }
    if (told) told(call);
    MutexLock lock(mutex);
    return off ? IoError(path) : absl::OkStatus();
  }

  absl::Status Finish(Kind kind, absl::string_view path, bool half) {
    const absl::Status status = Middle(kind, path);
    return status.ok() && half ? NoSpace(path) : status;
  }
};

class SimFile final : public File {
 public:
  SimFile(std::shared_ptr<SimFs::Disk> disk, std::shared_ptr<SimInode> inode, std::string path,
          bool writable)
      : disk_(std::move(disk)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        writable_(writable),
        end_(inode_->now.size()) {}

  absl::Status Append(absl::string_view bytes) override {
    bool half = false;
    {
      MutexLock lock(disk_->mutex);
      if (absl::Status s = disk_->Begin(path_, &half); !s.ok()) return s;
      if (!writable_) return absl::UnavailableError(absl::StrCat(path_, ": Bad file descriptor"));
      if (half) bytes = bytes.substr(0, bytes.size() / 2);
      inode_->Do({false, end_, std::string(bytes)});
      end_ += bytes.size();
      disk_->appended = inode_;
    }
    const absl::Status status = disk_->Finish(Kind::kAppend, path_, half);
    MutexLock lock(disk_->mutex);
    disk_->appended = nullptr;
    return status;
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t size) override {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path_); !s.ok()) return s;
    if (offset >= inode_->now.size()) return std::string();
    return inode_->now.substr(offset, size);
  }

  absl::StatusOr<uint64_t> Size() override {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path_); !s.ok()) return s;
    return inode_->now.size();
  }

  absl::Status Truncate(uint64_t size) override {
    {
      MutexLock lock(disk_->mutex);
      if (absl::Status s = disk_->Begin(path_); !s.ok()) return s;
      if (!writable_) return absl::UnavailableError(absl::StrCat(path_, ": Invalid argument"));
      inode_->Do({true, size, ""});
      end_ = size;
    }
    return disk_->Middle(Kind::kTruncate, path_);
  }

  absl::Status Reserve(uint64_t) override {
    {
      MutexLock lock(disk_->mutex);
      if (absl::Status s = disk_->Begin(path_); !s.ok()) return s;
    }
    return disk_->Middle(Kind::kReserve, path_);
  }

  absl::Status Prefill(uint64_t bytes) override {
    bool half = false;
    {
      MutexLock lock(disk_->mutex);
      if (absl::Status s = disk_->Begin(path_, &half); !s.ok()) return s;
      const uint64_t size = end_ + (half ? bytes / 2 : bytes);
      if (size > inode_->now.size()) inode_->Do({true, size, ""});
    }
    return disk_->Finish(Kind::kPrefill, path_, half);
  }

  absl::Status Sync() override {
    size_t writes = 0;  // what is appended meanwhile, beside it, is not covered
    {
      MutexLock lock(disk_->mutex);
      if (absl::Status s = disk_->Begin(path_); !s.ok()) return s;
      writes = inode_->unsynced.size();
    }
    if (absl::Status s = disk_->Middle(Kind::kSync, path_); !s.ok()) return s;
    MutexLock lock(disk_->mutex);
    if (!disk_->lie) inode_->Sync(writes);
    return absl::OkStatus();
  }

  bool IsAt(absl::string_view path) override {
    MutexLock lock(disk_->mutex);
    return disk_->Begin(path_).ok() && disk_->Find(path) == inode_;
  }

 private:
  const std::shared_ptr<SimFs::Disk> disk_;
  const std::shared_ptr<SimInode> inode_;
  const std::string path_;
  const bool writable_;
  uint64_t end_;  // of what was appended
};

class SimLock final : public FileLock {
 public:
  SimLock(std::shared_ptr<SimFs::Disk> disk, std::string path)
      : disk_(std::move(disk)), path_(std::move(path)) {}
  ~SimLock() override {
    MutexLock lock(disk_->mutex);
    disk_->locked.erase(path_);
  }

 private:
  const std::shared_ptr<SimFs::Disk> disk_;
  const std::string path_;
};

SimFs::SimFs() : disk_(std::make_shared<Disk>()) {}
SimFs::SimFs(std::shared_ptr<Disk> disk) : disk_(std::move(disk)) {}
SimFs::~SimFs() = default;

void SimFs::OnCall(std::function<void(const SimCall&)> hook) {
  MutexLock lock(disk_->mutex);
  disk_->hook = std::move(hook);
}

void SimFs::CrashAtCall(uint64_t n) {
  MutexLock lock(disk_->mutex);
  disk_->crash_at = disk_->calls + n;
}

void SimFs::Crash() {
  MutexLock lock(disk_->mutex);
  disk_->off = true;
}

bool SimFs::crashed() const {
  MutexLock lock(disk_->mutex);
  return disk_->off;
}

void SimFs::FailCall(uint64_t n, SimFault fault, uint64_t count) {
  MutexLock lock(disk_->mutex);
  disk_->fault = fault;
  disk_->fail_from = disk_->calls + n;
  disk_->fail_to = disk_->fail_from + count;
}

void SimFs::LieAboutSync(bool lie) {
  MutexLock lock(disk_->mutex);
  disk_->lie = lie;
}

uint64_t SimFs::calls() const {
  MutexLock lock(disk_->mutex);
  return disk_->calls;
}

std::unique_ptr<SimFs> SimFs::AfterCrash(uint64_t seed) const {
  auto after = std::make_shared<Disk>();
  MutexLock lock(disk_->mutex);
  MutexLock mine(after->mutex);
  after->state = disk_->state.AfterCrash({.random = true, .seed = seed});
  return std::unique_ptr<SimFs>(new SimFs(after));
}

size_t SimFs::extremes() const {
  MutexLock lock(disk_->mutex);
  return disk_->state.Extremes().size();
}

std::unique_ptr<SimFs> SimFs::AfterExtreme(size_t number) const {
  auto after = std::make_shared<Disk>();
  MutexLock lock(disk_->mutex);
  MutexLock mine(after->mutex);
  after->state = disk_->state.AfterCrash(disk_->state.Extremes().at(number));
  return std::unique_ptr<SimFs>(new SimFs(after));
}

std::unique_ptr<SimFs> SimFs::AfterKill() const {
  auto after = std::make_shared<Disk>();
  MutexLock lock(disk_->mutex);
  MutexLock mine(after->mutex);
  after->state = disk_->state.Copy();
  return std::unique_ptr<SimFs>(new SimFs(after));
}

std::unique_ptr<SimFs> SimFs::AfterKill(uint64_t seed) const {
  auto after = std::make_shared<Disk>();
  MutexLock lock(disk_->mutex);
  MutexLock mine(after->mutex);
  std::shared_ptr<SimInode> appended = disk_->appended;
  after->state = disk_->state.Copy(&appended);
  if (appended != nullptr && !appended->unsynced.empty())
    appended->CutLast(SimRandom(seed)() % (appended->unsynced.back().bytes.size() + 1));
  return std::unique_ptr<SimFs>(new SimFs(after));
}

std::string SimFs::Contents(absl::string_view path) const {
  MutexLock lock(disk_->mutex);
  const auto inode = disk_->Find(path);
  return inode == nullptr ? "" : inode->now;
}

void SimFs::Overwrite(absl::string_view path, std::string bytes) {
  MutexLock lock(disk_->mutex);
  auto inode = std::make_shared<SimInode>();
  inode->durable = inode->now = std::move(bytes);
  disk_->state.names[std::string(path)] = disk_->state.durable_names[std::string(path)] = inode;
}

std::string SimFs::Describe() const {
  MutexLock lock(disk_->mutex);
  std::string text;
  for (const auto& [path, inode] : disk_->state.names) {
    const auto durable = disk_->state.durable_names.find(path);
    const bool known = durable != disk_->state.durable_names.end() && durable->second == inode;
    absl::StrAppend(&text, path, inode->directory ? "/" : "", " ", inode->now.size(), " bytes, ",
                    inode->unsynced.size(), " unsynced writes after ", inode->durable.size(),
                    known ? "" : ", name unsynced", "\n");
  }
  return text;
}

absl::StatusOr<std::unique_ptr<File>> SimFs::Open(absl::string_view path, Mode mode) {
  std::shared_ptr<SimInode> inode;
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
    inode = disk_->Find(path);
    if (inode != nullptr && inode->directory)
      return absl::UnavailableError(absl::StrCat(path, ": Is a directory"));
    if (mode != Mode::kCreate && inode == nullptr) return NotThere(path);
    if (mode == Mode::kCreate) {
      if (inode != nullptr) return absl::UnavailableError(absl::StrCat(path, ": File exists"));
      if (!disk_->IsDirectory(SimParent(path))) return NotThere(path);
      inode = std::make_shared<SimInode>();
      disk_->state.Place(path, inode);
    }
  }
  if (mode == Mode::kCreate) {
    if (absl::Status s = disk_->Middle(Kind::kCreate, path); !s.ok()) return s;
  }
  return std::unique_ptr<File>(
      new SimFile(disk_, std::move(inode), std::string(path), mode != Mode::kRead));
}

absl::Status SimFs::Rename(absl::string_view from, absl::string_view to) {
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(from); !s.ok()) return s;
    if (disk_->Find(from) == nullptr || !disk_->IsDirectory(SimParent(to))) return NotThere(from);
    if (disk_->IsDirectory(from)) return absl::UnimplementedError("SimFs renames no directories");
    disk_->state.Move(from, to);
  }
  return disk_->Middle(Kind::kRename, to);
}

absl::Status SimFs::Unlink(absl::string_view path) {
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
    if (disk_->Find(path) == nullptr) return NotThere(path);
    disk_->state.Remove(path);
  }
  return disk_->Middle(Kind::kUnlink, path);
}

absl::Status SimFs::MakeDirectory(absl::string_view path) {
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
    if (disk_->IsDirectory(path)) return absl::OkStatus();
    if (!disk_->IsDirectory(SimParent(path))) return NotThere(path);
    auto inode = std::make_shared<SimInode>();
    inode->directory = true;
    disk_->state.Place(path, std::move(inode));
  }
  return disk_->Middle(Kind::kMakeDirectory, path);
}

absl::Status SimFs::SyncDirectory(absl::string_view path) {
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
    if (!disk_->IsDirectory(path)) return NotThere(path);
  }
  if (absl::Status s = disk_->Middle(Kind::kSyncDirectory, path); !s.ok()) return s;
  MutexLock lock(disk_->mutex);
  if (!disk_->lie) disk_->state.SyncDirectory(path);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimFs::List(absl::string_view directory) {
  MutexLock lock(disk_->mutex);
  if (absl::Status s = disk_->Begin(directory); !s.ok()) return s;
  if (!disk_->IsDirectory(directory)) return NotThere(directory);
  std::vector<std::string> found;
  for (const auto& [path, inode] : disk_->state.names) {
    if (SimParent(path) == directory && path != directory)
      found.push_back(path.substr(path.rfind('/') + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

absl::StatusOr<bool> SimFs::Exists(absl::string_view path) {
  MutexLock lock(disk_->mutex);
  if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
  return disk_->Find(path) != nullptr || disk_->IsDirectory(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> SimFs::Lock(absl::string_view path) {
  {
    MutexLock lock(disk_->mutex);
    if (absl::Status s = disk_->Begin(path); !s.ok()) return s;
    if (!disk_->IsDirectory(SimParent(path))) return NotThere(path);
    if (!disk_->locked.insert(std::string(path)).second)
      return absl::FailedPreconditionError(absl::StrCat(path, " is locked by another process"));
    if (disk_->Find(path) != nullptr)
      return std::unique_ptr<FileLock>(new SimLock(disk_, std::string(path)));
    disk_->state.Place(path, std::make_shared<SimInode>());
  }
  if (absl::Status s = disk_->Middle(Kind::kCreate, path); !s.ok()) return s;
  return std::unique_ptr<FileLock>(new SimLock(disk_, std::string(path)));
}

}  // namespace idemd::testing
