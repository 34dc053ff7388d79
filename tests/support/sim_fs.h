// A file system in memory that tells synced from unsynced bytes and names, and can lose what was
// not synced.
//
// What a power cut may leave, per file: any part of the writes since its last Sync(), cut at any
// byte, zeroed or garbled in sectors; per name: each creation, removal and rename since the last
// SyncDirectory() of its directory, done or not, a rename as a whole. What a killed process leaves:
// everything, but for the end of the write that it was in.
//
//   SimFs fs;
//   fs.OnCall([&](const SimCall& call) { images.push_back(fs.AfterCrash(seed++)); });
//
// The hook runs when a change was made in memory but its call has not returned yet, and before a
// sync takes effect; so the states that can be drawn there are all that a crash between two calls,
// or inside one, can leave.
//
// Threads   any; the hook is called on the caller's thread, without a lock held.
// Lifetime  files and locks may outlive their SimFs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/fs.h"

namespace idemd::testing {

struct SimCall {
  enum class Kind : uint8_t {
    kCreate,
    kAppend,
    kTruncate,
    kReserve,
    kPrefill,
    kSync,
    kRename,
    kUnlink,
    kMakeDirectory,
    kSyncDirectory,
  };  // reading changes nothing, so the hook is not told of it
  Kind kind;
  std::string path;
  uint64_t number;  // of this call, from 1; reading calls count too
};

enum class SimFault : uint8_t {
  kIo,          // EIO, nothing done
  kNoSpace,     // ENOSPC, nothing done
  kShortWrite,  // half of the bytes, then ENOSPC; EIO for what is no write
};

class SimFs final : public storage::FileSystem {
 public:
  SimFs();
  ~SimFs() override;

  // --- what tests plan; before or between calls.
  void OnCall(std::function<void(const SimCall&)> hook);
  // The n-th call from now (1: the next) is in the middle when the power goes: it and all later
  // ones fail.
  void CrashAtCall(uint64_t n);
  void Crash();
  bool crashed() const;
  // The n-th call from now and the next `count` - 1 fail.
  void FailCall(uint64_t n, SimFault fault, uint64_t count = 1);
  // Sync() and SyncDirectory() say OK and do nothing: a disk that no software can be safe on.
  void LieAboutSync(bool lie);
  uint64_t calls() const;

  // --- what the next process finds. All unchanged here; call as often as states are wanted, also
  // inside the hook.
  std::unique_ptr<SimFs> AfterCrash(uint64_t seed) const;
  // A few states at the edges: nothing or everything kept, the last write cut at the bytes that
  // matter, tails zeroed or garbled, each name lost or kept alone.
  size_t extremes() const;
  std::unique_ptr<SimFs> AfterExtreme(size_t number) const;
  // A killed process: all that it wrote is there, and as unsynced as it was. With a seed, inside
  // the hook of an append: of that only a beginning was written.
  std::unique_ptr<SimFs> AfterKill() const;
  std::unique_ptr<SimFs> AfterKill(uint64_t seed) const;

  // --- for checks: what is there now, without counting as a call.
  std::string Contents(absl::string_view path) const;         // "" when absent
  void Overwrite(absl::string_view path, std::string bytes);  // durable at once; creates it
  std::string Describe() const;  // every name, size, and how much of it is synced

  // --- FileSystem
  absl::StatusOr<std::unique_ptr<storage::File>> Open(absl::string_view path, Mode mode) override;
  absl::Status Rename(absl::string_view from, absl::string_view to) override;
  absl::Status Unlink(absl::string_view path) override;
  absl::Status MakeDirectory(absl::string_view path) override;
  absl::Status SyncDirectory(absl::string_view path) override;
  absl::StatusOr<std::vector<std::string>> List(absl::string_view directory) override;
  absl::StatusOr<bool> Exists(absl::string_view path) override;
  absl::StatusOr<std::unique_ptr<storage::FileLock>> Lock(absl::string_view path) override;

 private:
  struct Disk;
  friend class SimFile;
  friend class SimLock;
  explicit SimFs(std::shared_ptr<Disk> disk);
  std::shared_ptr<Disk> disk_;
};

}  // namespace idemd::testing
