// What string commands share: replies with a key's value, and the checks before a value is edited.
//
// Records are strings to whoever reads or replaces them; commands that change a part of a value
// refuse them.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/context.h"

namespace idemd::server {

// The value as a bulk, null when there is none, WRONGTYPE when it is a collection. Straight from the view but for records.
void ReplyValue(Context& c, const storage::KeyView& view);

// Reads under a lock are not counted by storage, which takes them for the first half of a write;
// these are none.
void CountRead(Context& c, const storage::KeyView& view);

// False, with WRONGTYPE written: a collection.
[[nodiscard]] inline bool CheckString(Context& c, const storage::KeyView& view) {
  if (view.collection == nullptr) return true;
  c.reply.Error(protocol::errors::kWrongType);
  return false;
}

// False, with WRONGTYPE written: a collection, or a record, of which no part may be changed.
[[nodiscard]] bool CheckPlain(Context& c, const storage::KeyView& view);

// False, with the error written: `size` + `more` bytes are above proto-max-bulk-len.
[[nodiscard]] bool CheckSize(Context& c, uint64_t size, uint64_t more);

// To be called with what was edited: a string that has become a record's line is a record from now
// on, whoever wrote it.
void SettleEdit(Context& c, const storage::HashedKey& key, absl::Span<const char> bytes,
                int64_t deadline_ms);

}  // namespace idemd::server
