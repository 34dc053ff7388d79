// The HELP subcommand of every container, made from the container's own entry.
#pragma once

#include <string>

#include "server/commands/command.h"
#include "server/commands/context.h"

namespace idemd::server {

// The handler of HELP: one line of syntax and one of summary per subcommand, in Redis' frame.
void ReplyHelp(Context& c);

// A command's arguments as the commands page writes them: "key [EX seconds | PX milliseconds]
// [NX]".
std::string ArgumentSyntax(absl::Span<const ArgSpec> args);

// "ERR unknown subcommand or wrong number of arguments for 'x'. Try CLIENT HELP."
void ReplySubcommandSyntaxError(Context& c);

}  // namespace idemd::server
