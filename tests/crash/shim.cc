// Preloaded into a server: notes what is synced, fails chosen calls, delays or fakes syncs, and
// moves the wall clock.
//
//   IDEMD_SHIM_DIR      the directory that is watched (absolute)
//   IDEMD_SHIM_STATE    the notes: `journal`, a line per event; `i<inode>`, a hard link to every
//                       file, so that a lost unlink or rename can be undone; `t<number>`, what a
//                       truncation took away
//   IDEMD_SHIM_CONTROL  a file of Control's words, mapped by both sides; the test changes it while
//                       the server runs
//
// tests/e2e/crash/power_cut.py reads the notes after a kill and makes of the directory what a power
// cut could have left. The journal is written by the system call of each event, so a killed process
// loses none of it. Only system calls and static memory are used here: it runs before and inside
// everything else.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

// The order is tests/e2e/crash/shim.py's.
struct Control {
  std::atomic<int64_t> calls;       // watched calls of the kinds in `mask` so far
  std::atomic<int64_t> mask;        // Kind bits that count and may fail
  std::atomic<int64_t> fail_from;   // the number of the first call that fails, 0: none
  std::atomic<int64_t> fail_count;  // how many from there on
  std::atomic<int64_t> fault;       // Fault
  std::atomic<int64_t> faults;      // how many were injected
  std::atomic<int64_t> sync_delay_us;
  std::atomic<int64_t> sync_mode;  // SyncMode
  std::atomic<int64_t> clock_offset_ns;
  std::atomic<int64_t> syncs;
};

enum Kind : int64_t {
  kWrite = 1,
  kSync = 2,
  kOpen = 4,  // with O_CREAT; else it is a kRead
  kRename = 8,
  kUnlink = 16,
  kTruncate = 32,
  kReserve = 64,
  kSyncDirectory = 128,
  kRead = 256,
};
enum Fault : int64_t {
  kIo = 1,
  kNoSpace = 2,
  kShort = 3,       // the first call writes half, the others ENOSPC
  kKillBefore = 4,  // the process dies before the call,
  kKillInside =
      5,  // or in its middle: half of a write, a sync that nobody heard of, a rename just done
};
enum SyncMode : int64_t {
  kHonest = 0,
  kLying = 1,  // says OK, does nothing
  kLate = 2,   // says OK now and does it when the next sync comes: the reply leaves before
};

constexpr int kFdsMax = 65536;
constexpr size_t kPathMax = 4096;

Control* control = nullptr;
int journal = -1;
char directory[kPathMax];
size_t directory_size = 0;
char state[kPathMax];
unsigned char watched[kFdsMax];
off_t ends[kFdsMax];  // of what write() wrote; 0: nothing
std::atomic<int64_t> events{0};
std::atomic<int> late_lock{0};
char late_line[kPathMax + 64];  // what kLate still owes

void WriteAll(int fd, const char* text, size_t size) {
  while (size > 0) {
    const long n = syscall(SYS_write, fd, text, size);
    if (n <= 0) return;
    text += n;
    size -= static_cast<size_t>(n);
  }
}

// One line of the journal; returns its number.
__attribute__((format(printf, 1, 2))) int64_t Note(const char* format, ...) {
  char line[2 * kPathMax + 128];
  const int64_t number = ++events;
  int size = snprintf(line, sizeof line, "%lld ", static_cast<long long>(number));
  va_list args;
  va_start(args, format);
  size += vsnprintf(line + size, sizeof line - static_cast<size_t>(size) - 1, format, args);
  va_end(args);
  line[size++] = '\n';
  WriteAll(journal, line, static_cast<size_t>(size));
  return number;
}

// `path` relative to the watched directory, or null when it lies elsewhere; "" is the directory
// itself.
const char* Inside(const char* path, char* room) {
  if (control == nullptr || path == nullptr) return nullptr;
  if (path[0] != '/') {
    if (syscall(SYS_getcwd, room, kPathMax) < 0) return nullptr;
    while (path[0] == '.' && path[1] == '/') path += 2;
    if (!(path[0] == '.' && path[1] == '\0')) {
      strncat(room, "/", kPathMax - strlen(room) - 1);
      strncat(room, path, kPathMax - strlen(room) - 1);
    }
  } else {
    snprintf(room, kPathMax, "%s", path);
  }
  size_t size = strlen(room);
  while (size > 1 && room[size - 1] == '/') room[--size] = '\0';
  if (strncmp(room, directory, directory_size) != 0) return nullptr;
  if (room[directory_size] == '\0') return room + directory_size;
  if (room[directory_size] != '/') return nullptr;
  const char* inside = room + directory_size + 1;
  while (inside[0] == '.' && inside[1] == '/') inside += 2;
  return inside[0] == '.' && inside[1] == '\0' ? "" : inside;
}

const char* InsideFd(int fd, char* room) {
  char link[64];
  char target[kPathMax];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const long size = syscall(SYS_readlink, link, target, sizeof target - 1);
  if (size <= 0) return nullptr;
  target[size] = '\0';
  return Inside(target, room);
}

bool Watched(int fd) { return control != nullptr && fd >= 0 && fd < kFdsMax && watched[fd] != 0; }

// Whether this call fails; counts it.
bool Fails(Kind kind, int64_t* fault, bool* first) {
  if ((control->mask.load() & kind) == 0) return false;
  const int64_t number = ++control->calls;
  const int64_t from = control->fail_from.load();
  if (from == 0 || number < from || number - from >= control->fail_count.load()) return false;
  *fault = control->fault.load();
  *first = number == from;
  ++control->faults;
  return true;
}

[[noreturn]] void Die() {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

// A call without a middle: whether it must not be done, with errno set; `after`: die when it was.
bool Refuse(Kind kind, bool* after) {
  int64_t fault = 0;
  bool first = false;
  *after = false;
  if (!Fails(kind, &fault, &first)) return false;
  if (fault == kKillBefore) Die();
  if (fault == kKillInside) {
    *after = true;
    return false;
  }
  errno = fault == kNoSpace && kind != kSync && kind != kSyncDirectory ? ENOSPC : EIO;
  return true;
}

uint64_t InodeAt(const char* path) {
  struct stat s;
  return lstat(path, &s) == 0 ? static_cast<uint64_t>(s.st_ino) : 0;
}

void KeepInode(const char* path, uint64_t inode) {
  char link[kPathMax];
  snprintf(link, sizeof link, "%.4000s/i%llu", state, static_cast<unsigned long long>(inode));
  syscall(SYS_link, path, link);
}

int Opened(const char* path, int flags, mode_t mode) {
  char room[kPathMax];
  const char* inside = Inside(path, room);
  if (inside == nullptr) return static_cast<int>(syscall(SYS_open, path, flags, mode));
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  bool die = false;
  if (Refuse((flags & O_CREAT) != 0 ? kOpen : kRead, &die)) return -1;
  const bool fresh = (flags & O_CREAT) != 0 && InodeAt(room) == 0;
  const int fd = static_cast<int>(syscall(SYS_open, path, flags, mode));
  if (fd < 0) return fd;
  struct stat s;
  if (fresh && fstat(fd, &s) == 0) {
    KeepInode(room, s.st_ino);
    Note("C %llu %s", static_cast<unsigned long long>(s.st_ino), inside);
  }
  if (writes && !fresh && (flags & O_TRUNC) != 0) Note("X %s was emptied by open()", inside);
  if (fd < kFdsMax) {
    watched[fd] = (flags & O_DIRECTORY) == 0;
    ends[fd] = 0;
  }
  if (die) Die();
  return fd;
}

// `write` is called with how many bytes are to be written.
template <class Write>
ssize_t MayFail(size_t size, Write write) {
  int64_t fault = 0;
  bool first = false;
  if (!Fails(kWrite, &fault, &first)) return write(size);
  if (fault == kKillBefore) Die();
  if (fault == kKillInside || (fault == kShort && first && size > 1)) {
    const ssize_t n = write(size / 2);
    if (fault == kKillInside) Die();
    return n;
  }
  errno = fault == kIo ? EIO : ENOSPC;
  return -1;
}

ssize_t Written(int fd, const void* bytes, size_t size) {
  return MayFail(size, [&](size_t some) {
    const ssize_t n = syscall(SYS_write, fd, bytes, some);
    // Where the file is longer than that, it was prefilled with zeros.
    ends[fd] = static_cast<off_t>(syscall(SYS_lseek, fd, 0, SEEK_CUR));
    return n;
  });
}

// Notes a sync, or not, as the mode asks. `line` is what the journal gets.
void NoteSync(const char* line) {
  switch (control->sync_mode.load()) {
    case kLying:
      return;
    case kLate: {
      while (late_lock.exchange(1) != 0) {
      }
      if (late_line[0] != '\0') Note("%s", late_line);
      snprintf(late_line, sizeof late_line, "%s", line);
      late_lock.store(0);
      return;
    }
    default:
      Note("%s", line);
  }
}

int Synced(int fd) {
  char room[kPathMax];
  struct stat s;
  if (control == nullptr) return static_cast<int>(syscall(SYS_fsync, fd));
  const char* inside = InsideFd(fd, room);
  if (inside == nullptr || fstat(fd, &s) != 0) return static_cast<int>(syscall(SYS_fsync, fd));
  const bool is_directory = S_ISDIR(s.st_mode);
  const off_t end = fd < kFdsMax ? ends[fd] : 0;
  const int64_t before = events.load();  // what comes while it runs is not covered
  bool die = false;
  if (Refuse(is_directory ? kSyncDirectory : kSync, &die)) return -1;
  const int64_t delay_us = control->sync_delay_us.load();
  if (delay_us > 0) {
    const struct timespec pause_for = {delay_us / 1'000'000, delay_us % 1'000'000 * 1000};
    nanosleep(&pause_for, nullptr);
  }
  if (die) Die();
  char line[kPathMax + 64];
  if (is_directory) {
    snprintf(line, sizeof line, "D %lld %s", static_cast<long long>(before), inside);
  } else {
    const off_t size = end != 0 ? end : s.st_size;
    snprintf(line, sizeof line, "S %llu %llu", static_cast<unsigned long long>(s.st_ino),
             static_cast<unsigned long long>(size));
  }
  NoteSync(line);
  ++control->syncs;
  return 0;
}

// Bytes behind `size` are kept, so that the truncation can be lost.
int Truncated(int fd, off_t size) {
  struct stat s;
  if (!Watched(fd) || fstat(fd, &s) != 0) return static_cast<int>(syscall(SYS_ftruncate, fd, size));
  bool die = false;
  if (Refuse(kTruncate, &die)) return -1;
  if (size < s.st_size) {
    char path[kPathMax];
    const int64_t number = ++events;
    snprintf(path, sizeof path, "%.4000s/t%lld", state, static_cast<long long>(number));
    const int kept =
        static_cast<int>(syscall(SYS_open, path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    char block[65536];
    for (off_t at = size; at < s.st_size;) {
      const long n = syscall(SYS_pread64, fd, block, sizeof block, at);
      if (n <= 0) break;
      WriteAll(kept, block, static_cast<size_t>(n));
      at += n;
    }
    syscall(SYS_close, kept);
    Note("T %llu %lld %lld", static_cast<unsigned long long>(s.st_ino),
         static_cast<long long>(size), static_cast<long long>(number));
  }
  const int result = static_cast<int>(syscall(SYS_ftruncate, fd, size));
  if (ends[fd] > size) ends[fd] = size;
  if (die) Die();
  return result;
}

int Reserved(int fd, int mode, off_t offset, off_t size) {
  bool die = false;
  if (Watched(fd) && Refuse(kReserve, &die)) return -1;
  const int result = static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, size));
  if (die) Die();
  return result;
}

int Renamed(const char* from, const char* to) {
  char from_room[kPathMax];
  char to_room[kPathMax];
  const char* inside_from = Inside(from, from_room);
  const char* inside_to = Inside(to, to_room);
  if (inside_from == nullptr || inside_to == nullptr)
    return static_cast<int>(syscall(SYS_rename, from, to));
  bool die = false;
  if (Refuse(kRename, &die)) return -1;
  const uint64_t inode = InodeAt(from_room);
  KeepInode(from_room, inode);
  Note("R %llu %s\t%s", static_cast<unsigned long long>(inode), inside_from, inside_to);
  const int result = static_cast<int>(syscall(SYS_rename, from, to));
  if (result != 0) Note("X rename of %s failed", inside_from);
  if (die) Die();
  return result;
}

int Unlinked(const char* path) {
  char room[kPathMax];
  const char* inside = Inside(path, room);
  if (inside == nullptr) return static_cast<int>(syscall(SYS_unlink, path));
  bool die = false;
  if (Refuse(kUnlink, &die)) return -1;
  const uint64_t inode = InodeAt(room);
  if (inode != 0) {
    KeepInode(room, inode);
    Note("U %llu %s", static_cast<unsigned long long>(inode), inside);
  }
  const int result = static_cast<int>(syscall(SYS_unlink, path));
  if (die) Die();
  return result;
}

void CopyPath(const char* name, char* to) {
  const char* value = getenv(name);
  snprintf(to, kPathMax, "%s", value == nullptr ? "" : value);
}

__attribute__((constructor)) void Begin() {
  char path[kPathMax];
  CopyPath("IDEMD_SHIM_CONTROL", path);
  CopyPath("IDEMD_SHIM_DIR", directory);
  CopyPath("IDEMD_SHIM_STATE", state);
  directory_size = strlen(directory);
  if (path[0] == '\0' || directory_size == 0) return;
  const int fd = static_cast<int>(syscall(SYS_open, path, O_RDWR | O_CLOEXEC, 0));
  if (fd < 0) return;
  void* mapped = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  snprintf(path, sizeof path, "%.4000s/journal", state);
  journal =
      static_cast<int>(syscall(SYS_open, path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600));
  struct stat s;
  // After a mere kill the next process goes on in the journal, with greater numbers.
  if (journal >= 0 && fstat(journal, &s) == 0) events = s.st_size;
  if (mapped != MAP_FAILED && journal >= 0) control = static_cast<Control*>(mapped);
}

int RealClock(clockid_t id, struct timespec* t) {
  using Call = int (*)(clockid_t, struct timespec*);
  static std::atomic<Call> real{nullptr};
  Call call = real.load(std::memory_order_relaxed);
  if (call == nullptr) {
    call = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "clock_gettime"));
    real.store(call, std::memory_order_relaxed);
  }
  return call(id, t);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
  va_end(args);
  return Opened(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
  va_end(args);
  return Opened(path, flags, mode);
}
int __open_2(const char* path, int flags) { return Opened(path, flags, 0); }
int __open64_2(const char* path, int flags) { return Opened(path, flags, 0); }

int close(int fd) {
  if (fd >= 0 && fd < kFdsMax) watched[fd] = 0;
  return static_cast<int>(syscall(SYS_close, fd));
}

ssize_t write(int fd, const void* bytes, size_t size) {
  return Watched(fd) ? Written(fd, bytes, size) : syscall(SYS_write, fd, bytes, size);
}
ssize_t writev(int fd, const struct iovec* parts, int count) {
  int64_t fault = 0;
  bool first = false;
  if (Watched(fd) && Fails(kWrite, &fault, &first)) {
    if (fault == kKillBefore) Die();
    if (fault == kKillInside || (fault == kShort && first)) {
      const ssize_t n = syscall(SYS_write, fd, parts[0].iov_base, (parts[0].iov_len + 1) / 2);
      if (fault == kKillInside) Die();
      return n;
    }
    errno = fault == kIo ? EIO : ENOSPC;
    return -1;
  }
  return syscall(SYS_writev, fd, parts, count);
}
ssize_t pwrite(int fd, const void* bytes, size_t size, off_t offset) {
  struct stat s;
  if (!Watched(fd)) return syscall(SYS_pwrite64, fd, bytes, size, offset);
  if (fstat(fd, &s) == 0 && offset < s.st_size) Note("X pwrite() into what was written");
  return MayFail(size, [&](size_t some) { return syscall(SYS_pwrite64, fd, bytes, some, offset); });
}
ssize_t pwrite64(int fd, const void* bytes, size_t size, off_t offset) {
  return pwrite(fd, bytes, size, offset);
}
ssize_t pread(int fd, void* bytes, size_t size, off_t offset) {
  bool die = false;
  if (Watched(fd) && Refuse(kRead, &die)) return -1;
  if (die) Die();
  return syscall(SYS_pread64, fd, bytes, size, offset);
}
ssize_t pread64(int fd, void* bytes, size_t size, off_t offset) {
  return pread(fd, bytes, size, offset);
}

int fsync(int fd) { return Synced(fd); }
int fdatasync(int fd) { return Synced(fd); }
int ftruncate(int fd, off_t size) { return Truncated(fd, size); }
int ftruncate64(int fd, off_t size) { return Truncated(fd, size); }
int fallocate(int fd, int mode, off_t offset, off_t size) {
  return Reserved(fd, mode, offset, size);
}
int fallocate64(int fd, int mode, off_t offset, off_t size) {
  return Reserved(fd, mode, offset, size);
}
int rename(const char* from, const char* to) { return Renamed(from, to); }
int unlink(const char* path) { return Unlinked(path); }
int mkdir(const char* path, mode_t mode) {
  char room[kPathMax];
  const char* inside = Inside(path, room);
  const int result = static_cast<int>(syscall(SYS_mkdir, path, mode));
  if (result == 0 && inside != nullptr) Note("M %s", inside);
  return result;
}

// The wall clock, moved. Other clocks, CLOCK_BOOTTIME among them, are as they are.
int clock_gettime(clockid_t id, struct timespec* t) {
  const int result = RealClock(id, t);
  if (result != 0 || control == nullptr || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
    return result;
  const int64_t ns =
      t->tv_sec * int64_t{1'000'000'000} + t->tv_nsec + control->clock_offset_ns.load();
  t->tv_sec = ns / 1'000'000'000;
  t->tv_nsec = ns % 1'000'000'000;
  return 0;
}
int gettimeofday(struct timeval* t, void*) {
  struct timespec now;
  const int result = clock_gettime(CLOCK_REALTIME, &now);
  if (result == 0) {
    t->tv_sec = now.tv_sec;
    t->tv_usec = now.tv_nsec / 1000;
  }
  return result;
}
time_t time(time_t* t) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  if (t != nullptr) *t = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
