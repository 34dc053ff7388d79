// The ACL categories of a command, from its flags and its group.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command.h"

namespace idemd::server {

// All categories, in the order in which COMMAND INFO lists them: "keyspace", "read", ...
absl::Span<const absl::string_view> CategoryNames();
// One bit per category, in that order. A container that does not run by itself has its flags'
// categories only.
uint32_t CategoriesOf(const CommandSpec& spec);
// The bit of a category's name (any case), 0 when there is none.
uint32_t CategoryBit(absl::string_view name);

}  // namespace idemd::server
