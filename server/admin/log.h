// The server's log: lines in Redis' form, "pid:M 29 Nov 2026 15:24:54.123 * text", to standard
// output or a file.
//
// One log per process, so that any part of the server can write to it without carrying it along;
// storage and protocol do not log. Threads   any. A line is one write(2) to a file opened for
// appending, so lines do not mix.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/admin/settings.h"

namespace idemd::server {

// Writes one line if `level` is at least the log's; line ends inside the text become spaces.
void Log(LogLevel level, absl::string_view text);
inline void LogDebug(absl::string_view text) { Log(kLogDebug, text); }
inline void LogVerbose(absl::string_view text) { Log(kLogVerbose, text); }
inline void LogNotice(absl::string_view text) { Log(kLogNotice, text); }
inline void LogWarning(absl::string_view text) { Log(kLogWarning, text); }

void SetLogLevel(int64_t level);
// "" is standard output. The file is created if need be; it is opened anew for every line, as Redis
// does, so that log rotation by renaming works without a signal.
[[nodiscard]] absl::Status SetLogFile(absl::string_view path);

// The line as it is written, for tests. `wall_ms` is unix time, shown in local time.
std::string FormatLogLine(LogLevel level, absl::string_view text, int64_t pid, int64_t wall_ms);

}  // namespace idemd::server
