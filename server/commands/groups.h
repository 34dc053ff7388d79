// The groups of commands: each file of handlers ends with its entries, exported by one of these.
#pragma once

#include "absl/types/span.h"
#include "server/commands/command.h"

namespace idemd::server {

absl::Span<const CommandSpec> ConnectionCommands();  // connection_commands.cc
absl::Span<const CommandSpec> ClientCommands();      // client_commands.cc: CLIENT
absl::Span<const CommandSpec> ServerCommands();      // server_commands.cc
absl::Span<const CommandSpec> InfoCommands();        // info_command.cc: INFO
absl::Span<const CommandSpec> CommandCommands();     // command_command.cc: COMMAND
absl::Span<const CommandSpec> ObserveCommands();     // observe_commands.cc: SLOWLOG, LATENCY, MEMORY, MONITOR

}  // namespace idemd::server
