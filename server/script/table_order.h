// The order in which Lua 5.1 walks the names in a table: LuaJIT walks them in one that is drawn anew for every state.
//
// Source    the tables of Lua 5.1: a string's hash, its main position, and where a key goes whose position is taken. What
//           stood in the table before, and in which order keys came, is not known here; without collisions neither matters.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::server {

// The places of `names` (all different) in the order of a walk.
std::vector<uint32_t> WalkOrder(absl::Span<const absl::string_view> names);

}  // namespace idemd::server
