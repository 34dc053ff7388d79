// Transactions between dispatch and the commands MULTI, EXEC, DISCARD, WATCH, UNWATCH.
#pragma once

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command_timer.h"
#include "server/commands/context.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "server/session.h"

namespace idemd::server {

// Inside MULTI: whether there is room for the command. If not, the transaction is given up: EXEC will not run it.
[[nodiscard]] bool MayQueue(const Services& services, Session& session, absl::Span<const absl::string_view> words);
// Inside MULTI: keeps a copy of the command for EXEC.
void QueueCommand(Session& session, const CommandEntry& entry, absl::Span<const absl::string_view> words);
// Ends MULTI and WATCH, as DISCARD, RESET and the end of the connection do.
void DropTransaction(Services& services, Session& session);

// Whether this thread serves sessions in the middle of another one's command (Meanwhile in dispatch.h). Then what must take
// locks is postponed until that command is over, and no script is busy.
bool InMeanwhile();
void Postpone(std::function<void()> work);

// Runs one command in the given unit and counts it: dispatch for single commands, EXEC for each of its own.
void RunHandler(Context& context, const CommandEntry& entry, CommandTimer& timer);

}  // namespace idemd::server
