// Libraries of functions as snapshots and FUNCTION DUMP have them: their texts, each behind an opcode of RDB; the latter
// with DUMP's footer.
//
// Source    the RDB format as Redis 7.0 writes it (redis/src/functions.c).
// Threads   pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::storage {

// As a snapshot has them, before its databases.
void AppendRdbFunctions(absl::Span<const absl::string_view> texts, std::string& out);
std::string DumpFunctions(absl::Span<const absl::string_view> texts);
// False: this is no such payload, or not a whole one.
[[nodiscard]] bool ReadFunctionDump(absl::string_view payload, std::vector<std::string>* texts);

}  // namespace idemd::storage
