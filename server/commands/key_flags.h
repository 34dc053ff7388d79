// What a command does to each of its keys, as its entry says.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command.h"

namespace idemd::server {

// "RW ACCESS UPDATE"; `text` is what the entry says, null where that follows from kWrite.
absl::string_view KeyFlagsText(const CommandSpec& spec, const char* text);
// Of the key at this position of the words.
absl::string_view KeyFlagsAt(const CommandSpec& spec, absl::Span<const absl::string_view> words, int position);

}  // namespace idemd::server
