// The server's log: lines in Redis' form, "pid:M 29 Nov 2026 15:24:54.123 * text", to standard
// output or a file.
//
// One log per process, so that any part of the server can write to it without carrying it along;
// storage and protocol do not log. Threads   any. A line is one write(2) to a file opened for
// appending, so lines do not mix.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/admin/settings.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// Writes one line if `level` is at least the log's; line ends inside the text become spaces.
void Log(LogLevel level, absl::string_view text);
inline void LogDebug(absl::string_view text) { Log(kLogDebug, text); }
inline void LogVerbose(absl::string_view text) { Log(kLogVerbose, text); }
inline void LogNotice(absl::string_view text) { Log(kLogNotice, text); }
inline void LogWarning(absl::string_view text) { Log(kLogWarning, text); }

// Keeps lines of one kind, which whoever may connect can provoke, from filling the disk: some at once, then one a second. One per
// kind, for the life of the process.
//
// Threads   any.
class LogLimit {
 public:
  static constexpr int64_t kAtOnce = 10;
  static constexpr int64_t kPauseMs = 1000;

  // Whether a line may be written at `now_ms`, which does not go back, and how many could not since the last one.
  bool Allow(int64_t now_ms, uint64_t* left_out);

 private:
  storage::Mutex mutex_;
  int64_t room_ ABSL_GUARDED_BY(mutex_) = kAtOnce;
  int64_t filled_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};
// A warning, within the limit; the next one says how many were left out.
void LogWarning(LogLimit& limit, absl::string_view text);

void SetLogLevel(int64_t level);
// "" is standard output. The file is created if need be; it is opened anew for every line, as Redis
// does, so that log rotation by renaming works without a signal.
[[nodiscard]] absl::Status SetLogFile(absl::string_view path);

// The line as it is written, for tests. `wall_ms` is unix time, shown in local time.
std::string FormatLogLine(LogLevel level, absl::string_view text, int64_t pid, int64_t wall_ms);

}  // namespace idemd::server
