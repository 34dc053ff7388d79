// The file interface over the system's calls.
#include "storage/fs.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "absl/strings/str_cat.h"
#include "storage/sync/mutex.h"

namespace idemd::storage {
namespace {

constexpr absl::string_view kNoSpaceUrl = "idemd/no-space";  // marks ENOSPC among other failures

absl::Status Failed(absl::string_view what, absl::string_view path, int error) {
  absl::Status status(error == ENOENT ? absl::StatusCode::kNotFound : absl::StatusCode::kUnavailable,
                      absl::StrCat(what, " ", path, ": ", std::strerror(error)));
  if (error == ENOSPC || error == EDQUOT) status.SetPayload(kNoSpaceUrl, absl::Cord());
  return status;
}

// Calls again when a signal came between.
template <class Call>
auto Again(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Whether `path` names what is open as `fd`.
bool IsAt(int fd, const std::string& path) {
  struct stat mine {};
  struct stat there {};
  return fstat(fd, &mine) == 0 && stat(path.c_str(), &there) == 0 && mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

class SystemFile final : public File {
 public:
  // `end`: where the descriptor stands, too.
  SystemFile(int fd, std::string path, uint64_t end) : fd_(fd), path_(std::move(path)), end_(end) {}
  ~SystemFile() override { close(fd_); }

  absl::Status Append(absl::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = Again([&] { return write(fd_, bytes.data(), bytes.size()); });
      if (n < 0) return Failed("write", path_, errno);
      bytes.remove_prefix(static_cast<size_t>(n));
      end_ += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> ReadAt(uint64_t offset, size_t size) override {
    std::string bytes(size, '\0');
    size_t have = 0;
    while (have < size) {
      const ssize_t n =
          Again([&] { return pread(fd_, bytes.data() + have, size - have, static_cast<off_t>(offset + have)); });
      if (n < 0) return Failed("read", path_, errno);
      if (n == 0) break;
      have += static_cast<size_t>(n);
    }
    bytes.resize(have);
    return bytes;
  }

  absl::StatusOr<uint64_t> Size() override {
    struct stat s {};
    if (fstat(fd_, &s) != 0) return Failed("stat", path_, errno);
    return static_cast<uint64_t>(s.st_size);
  }

  absl::Status Truncate(uint64_t size) override {
    if (Again([&] { return ftruncate(fd_, static_cast<off_t>(size)); }) != 0) return Failed("truncate", path_, errno);
    if (lseek(fd_, static_cast<off_t>(size), SEEK_SET) < 0) return Failed("seek in", path_, errno);
    end_ = prefilled_to_ = size;
    return absl::OkStatus();
  }

  absl::Status Reserve(uint64_t bytes) override {
    const int result = Again([&] {
      return fallocate(fd_, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(end_), static_cast<off_t>(bytes));
    });
    // Some file systems cannot: then space is found, or not, when it is written.
    if (result != 0 && errno != EOPNOTSUPP) return Failed("reserve space for", path_, errno);
    return absl::OkStatus();
  }

  absl::Status Prefill(uint64_t bytes) override {
    static constexpr std::array<char, 64 << 10> kZeros = {};
    prefilled_to_ = std::max(prefilled_to_, end_);
    while (prefilled_to_ < end_ + bytes) {
      const size_t size = std::min<uint64_t>(kZeros.size(), end_ + bytes - prefilled_to_);
      const ssize_t n = Again([&] { return pwrite(fd_, kZeros.data(), size, static_cast<off_t>(prefilled_to_)); });
      if (n < 0) return Failed("write ahead in", path_, errno);
      prefilled_to_ += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // Never called again after a failure, and never again after EINTR either: the first call may have reported, and
    // cleared, an error of the disk.
    if (fdatasync(fd_) != 0) return Failed("sync", path_, errno);
    return absl::OkStatus();
  }

  bool IsAt(absl::string_view path) override {
    return storage::IsAt(fd_, std::string(path));
  }

 private:
  const int fd_;
  const std::string path_;
  uint64_t end_;               // of what was appended
  uint64_t prefilled_to_ = 0;  // with zeros, where that is behind the end
};

class SystemLock final : public FileLock {
 public:
  explicit SystemLock(int fd) : fd_(fd) {}
  ~SystemLock() override { close(fd_); }

 private:
  const int fd_;
};

class SystemFileSystem final : public FileSystem {
 public:
  ~SystemFileSystem() override {
    for (const auto& [path, fd] : directories_) close(fd);
  }

  absl::StatusOr<std::unique_ptr<File>> Open(absl::string_view path, Mode mode) override {
    int flags = O_CLOEXEC;
    switch (mode) {
      case Mode::kRead:
        flags |= O_RDONLY;
        break;
      case Mode::kCreate:
        flags |= O_RDWR | O_CREAT | O_EXCL;
        break;
      case Mode::kAppend:
        flags |= O_RDWR;
        break;
    }
    std::string name(path);
    const int fd = Again([&] { return open(name.c_str(), flags, 0600); });
    if (fd < 0) return Failed("open", path, errno);
    const off_t end = mode == Mode::kAppend ? lseek(fd, 0, SEEK_END) : 0;
    if (end < 0) {
      const int error = errno;
      close(fd);
      return Failed("seek in", path, error);
    }
    return std::unique_ptr<File>(new SystemFile(fd, std::move(name), static_cast<uint64_t>(end)));
  }

  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    if (rename(std::string(from).c_str(), std::string(to).c_str()) != 0)
      return Failed("rename", absl::StrCat(from, " to ", to), errno);
    return absl::OkStatus();
  }

  absl::Status Unlink(absl::string_view path) override {
    if (unlink(std::string(path).c_str()) != 0) return Failed("remove", path, errno);
    return absl::OkStatus();
  }

  absl::Status MakeDirectory(absl::string_view path) override {
    if (mkdir(std::string(path).c_str(), 0700) != 0 && errno != EEXIST) return Failed("make directory", path, errno);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(absl::string_view path) override {
    const std::string name(path);
    MutexLock lock(mutex_);
    // Kept open: the name of a manifest is made durable when nothing must fail any more, not even for want of a descriptor.
    auto [at, fresh] = directories_.try_emplace(name, -1);
    int& fd = at->second;
    if (!fresh && !IsAt(fd, name)) {
      close(fd);
      fd = -1;
    }
    if (fd < 0) fd = Again([&] { return open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) {
      const int error = errno;
      directories_.erase(at);
      return Failed("open", path, error);
    }
    return fsync(fd) == 0 ? absl::OkStatus() : Failed("sync", path, errno);
  }

  absl::StatusOr<std::vector<std::string>> List(absl::string_view directory) override {
    DIR* dir = opendir(std::string(directory).c_str());
    if (dir == nullptr) return Failed("list", directory, errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(dir)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
    }
    const int error = errno;
    closedir(dir);
    if (error != 0) return Failed("list", directory, error);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<bool> Exists(absl::string_view path) override {
    struct stat s {};
    if (lstat(std::string(path).c_str(), &s) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return Failed("look at", path, errno);
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view path) override {
    const std::string name(path);
    const int fd = Again([&] { return open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); });
    if (fd < 0) return Failed("open", path, errno);
    if (Again([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
      const int error = errno;
      close(fd);
      if (error == EWOULDBLOCK)
        return absl::FailedPreconditionError(absl::StrCat(path, " is locked by another process"));
      return Failed("lock", path, error);
    }
    return std::unique_ptr<FileLock>(new SystemLock(fd));
  }

 private:
  Mutex mutex_;
  std::map<std::string, int> directories_ ABSL_GUARDED_BY(mutex_);  // that were synced, open
};

}  // namespace

std::unique_ptr<FileSystem> SystemFiles() { return std::make_unique<SystemFileSystem>(); }

bool IsNoSpace(const absl::Status& status) { return status.GetPayload(kNoSpaceUrl).has_value(); }

}  // namespace idemd::storage
