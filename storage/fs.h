// The file interface: every file call of the log, snapshots and recovery goes through it, so that tests can cut the power.
//
// Threads   a FileSystem from any thread; a File from one at a time, but for Sync(), which may run beside Append().
// Errors    absl::Status with the path and the system's words; IsNoSpace() tells ENOSPC, after which the caller may cut
//           back and try again. Any other failure of Sync() is final for that file: the system may have dropped the pages.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace idemd::storage {

class File {
 public:
  virtual ~File() = default;
  // All of `bytes` behind what is there (what Prefill() wrote does not count), or an error; a short write is continued, and
  // what was written before an error stays.
  [[nodiscard]] virtual absl::Status Append(absl::string_view bytes) = 0;
  // Exactly `size` bytes from `offset`, fewer only at the end of the file.
  [[nodiscard]] virtual absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t size) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Size() = 0;  // with what was prefilled
  [[nodiscard]] virtual absl::Status Truncate(uint64_t size) = 0;
  // Space for the next `bytes` behind the end, without changing the size.
  [[nodiscard]] virtual absl::Status Reserve(uint64_t bytes) = 0;
  // Zeros in the next `bytes` behind the end: a sync of what is appended over them has neither blocks nor a size to write, so
  // that the file system's journal has no part in it. Truncate() takes them away; a crash leaves them.
  [[nodiscard]] virtual absl::Status Prefill(uint64_t bytes) = 0;
  // Data, and the metadata needed to read it back (fdatasync).
  [[nodiscard]] virtual absl::Status Sync() = 0;
  // Whether `path` still names this very file.
  [[nodiscard]] virtual bool IsAt(absl::string_view path) = 0;
};

// Held until destroyed; the system gives it up when the process ends in any way.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  enum class Mode : uint8_t {
    kRead,
    kCreate,  // must not exist yet; 0600, close-on-exec
    kAppend,  // must exist; Append() goes behind its end
  };
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<File>> Open(absl::string_view path, Mode mode) = 0;
  // Replaces `to`. Durable only after SyncDirectory() of its directory.
  [[nodiscard]] virtual absl::Status Rename(absl::string_view from, absl::string_view to) = 0;
  [[nodiscard]] virtual absl::Status Unlink(absl::string_view path) = 0;
  [[nodiscard]] virtual absl::Status MakeDirectory(absl::string_view path) = 0;  // 0700; fine when it is there
  [[nodiscard]] virtual absl::Status SyncDirectory(absl::string_view path) = 0;
  [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> List(absl::string_view directory) = 0;  // sorted names
  [[nodiscard]] virtual absl::StatusOr<bool> Exists(absl::string_view path) = 0;
  // FailedPrecondition when somebody else holds it.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view path) = 0;
};

std::unique_ptr<FileSystem> SystemFiles();
bool IsNoSpace(const absl::Status& status);

}  // namespace idemd::storage
