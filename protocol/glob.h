// Redis' glob patterns: * ? [abc] [^a-z] and backslash. Linear in text times stars; no exponential
// backtracking.
#pragma once

#include "absl/strings/string_view.h"

namespace idemd::protocol {

bool GlobMatch(absl::string_view pattern, absl::string_view text, bool ignore_case = false);

}  // namespace idemd::protocol
