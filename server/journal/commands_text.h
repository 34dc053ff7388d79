// Effects as the RESP commands that a log consists of, and the way back.
//
// Threads   functions on the caller's data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/effect.h"

namespace idemd::server {

inline constexpr storage::DbIndex kNoDb = UINT32_MAX;

// One unit, as commands. `db`: the database that a reader of the log is in, kNoDb for unknown; set to the one it is in
// afterwards. Several commands are put between MULTI and EXEC; deletions of one database in a row are one command.
void AppendEffects(absl::Span<const storage::Effect> effects, storage::DbIndex* db, std::string& out);
// The database of the unit's first command, which AppendEffects() begins with when it is asked for kNoDb.
void AppendSelect(storage::DbIndex db, std::string& out);

// One command of RESP words, strictly as a log holds it. kCut: the bytes end before it does.
enum class CommandVerdict : uint8_t { kCommand, kCut, kOther };
CommandVerdict ReadCommand(absl::string_view bytes, std::vector<absl::string_view>* words, size_t* size);

}  // namespace idemd::server
