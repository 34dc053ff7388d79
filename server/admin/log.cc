// Log lines: their form, and where they go.
#include "server/admin/log.h"

#include <fcntl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/sync/mutex.h"

namespace idemd::server {
namespace {

struct LogState {
  std::atomic<int64_t> level{kLogNotice};
  storage::Mutex mutex;
  std::string path ABSL_GUARDED_BY(mutex);
};

LogState& State() {
  static auto* const state =
      new LogState;  // never destroyed: threads may log until the process ends
  return *state;
}

int64_t WallMs() {
  timeval now{};
  gettimeofday(&now, nullptr);
  return int64_t{now.tv_sec} * 1000 + now.tv_usec / 1000;
}

}  // namespace

std::string FormatLogLine(LogLevel level, absl::string_view text, int64_t pid, int64_t wall_ms) {
  constexpr char kMarks[] = ".-*#";
  const time_t seconds = wall_ms / 1000;
  tm local{};
  localtime_r(&seconds, &local);
  char date[64];
  strftime(date, sizeof(date), "%d %b %Y %H:%M:%S", &local);
  std::string line = absl::StrFormat("%d:M %s.%03d %c ", pid, date, wall_ms % 1000, kMarks[level]);
  const size_t head = line.size();
  absl::StrAppend(&line, text);
  std::replace_if(
      line.begin() + static_cast<ptrdiff_t>(head), line.end(),
      [](char c) { return c == '\n' || c == '\r'; }, ' ');
  line.push_back('\n');
  return line;
}

void Log(LogLevel level, absl::string_view text) {
  LogState& state = State();
  if (level < state.level.load(std::memory_order_relaxed) || level >= kLogNothing) return;
  const std::string line = FormatLogLine(level, text, getpid(), WallMs());
  storage::MutexLock lock(state.mutex);
  const int fd = state.path.empty()
                     ? STDOUT_FILENO
                     : open(state.path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return;  // there is nowhere left to say so
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  if (fd != STDOUT_FILENO) close(fd);
}

bool LogLimit::Allow(int64_t now_ms, uint64_t* left_out) {
  storage::MutexLock lock(mutex_);
  const int64_t more = (now_ms - filled_ms_) / kPauseMs;
  if (more > 0) {
    room_ = std::min(kAtOnce, room_ + more);
    filled_ms_ += more * kPauseMs;
  }
  if (room_ == 0) {
    ++left_out_;
    return false;
  }
  --room_;
  *left_out = std::exchange(left_out_, 0);
  return true;
}

void LogWarning(LogLimit& limit, absl::string_view text) {
  uint64_t left_out = 0;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (!limit.Allow(std::chrono::duration_cast<std::chrono::milliseconds>(now).count(), &left_out)) return;
  LogWarning(left_out == 0 ? std::string(text) : absl::StrCat(text, " (", left_out, " lines like this were left out before.)"));
}

void SetLogLevel(int64_t level) { State().level.store(level, std::memory_order_relaxed); }

absl::Status SetLogFile(absl::string_view path) {
  const std::string file(path);
  if (!file.empty()) {
    const int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
      return absl::UnavailableError(absl::StrCat("Can't open the log file '", path,
                                                 "': ", std::generic_category().message(errno)));
    }
    close(fd);
  }
  LogState& state = State();
  storage::MutexLock lock(state.mutex);
  state.path = file;
  return absl::OkStatus();
}

}  // namespace idemd::server
