// What dispatch tells observers of a command: monitors, the slow log, the latency monitor. Secrets
// are hidden here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command.h"
#include "server/commands/services.h"
#include "server/session.h"

namespace idemd::server {

// The words with passwords replaced (AUTH, HELLO ... AUTH, CONFIG SET requirepass). Views into
// `words` or constants.
std::vector<absl::string_view> RedactedWords(absl::Span<const absl::string_view> words);

// One line for MONITOR, as a RESP simple string with its line end: +1339518083.107412 [0
// 127.0.0.1:60866] "keys" "*"
std::string MonitorLine(const Session& session, absl::Span<const absl::string_view> words);
// Keeps the line for all monitors, until the unit has been committed, unless the command is not to
// be shown (kSkipMonitor, kAdmin). Call it when Clients::monitors() is not 0, after the command
// ran.
void NoteForMonitors(Session& session, const CommandSpec& spec,
                     absl::Span<const absl::string_view> words);

// After a command that took `usec`: the slow log and the latency monitor's "command" and
// "fast-command". Cheap enough for every command: two relaxed loads unless it was slow.
void NoteDuration(Services& services, const Session& session, const CommandSpec& spec,
                  absl::Span<const absl::string_view> words, int64_t usec);

}  // namespace idemd::server
