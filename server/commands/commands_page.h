// The commands page of the documentation, made from the command table.
#pragma once

#include <string>

#include "server/commands/table.h"

namespace idemd::server {

// Markdown: a section per group, a row per command. docs/commands.md is exactly this; a test keeps the two equal.
std::string CommandsPage(const CommandTable& table);

}  // namespace idemd::server
