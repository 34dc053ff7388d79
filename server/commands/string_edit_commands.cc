// Parts of a value: STRLEN, GETRANGE and SUBSTR read them, APPEND and SETRANGE change them in
// place.
#include <algorithm>
#include <cstring>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::ValueType;

void Strlen(Context& c) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckString(c, view)) return;
  const size_t size = view.type == ValueType::kRecord
                          ? storage::TextSize(storage::Unpack(view.bytes, view.deadline_ms))
                          : view.bytes.size();
  c.reply.Integer(static_cast<int64_t>(size));
}

// The bytes from `start` to `end`, both included and counted from the back when negative.
absl::string_view Slice(absl::string_view value, int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(value.size());
  if (start < 0 && end < 0 && start > end) return {};
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  if (start > end) return {};
  return value.substr(static_cast<size_t>(start), static_cast<size_t>(end - start + 1));
}

void GetRange(Context& c) {
  int64_t start = 0;
  int64_t end = 0;
  if (!c.Int(2, &start) || !c.Int(3, &end)) return;
  std::string text;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (CheckString(c, view)) c.reply.Bulk(Slice(storage::StringValue(view, text), start, end));
}

// Puts `piece` at `offset` of the string that is there (or of an empty one), which grows as far as
// needed.
void Put(Context& c, const HashedKey& key, const KeyView& old, size_t offset,
         absl::string_view piece, const char* event) {
  const int64_t deadline_ms = old.deadline_ms;
  const size_t size = std::max(old.bytes.size(), offset + piece.size());
  const absl::Span<char> bytes = c.unit.Edit(c.db(), key, size);
  if (!piece.empty()) std::memcpy(bytes.data() + offset, piece.data(), piece.size());
  SettleEdit(c, key, bytes, deadline_ms);
  c.Notify(storage::EventClass::kString, event, key);
  c.reply.Integer(static_cast<int64_t>(size));
}

void Append(Context& c) {
  const HashedKey key = c.Key(1);
  const absl::string_view piece = c.words[2];
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!old) {
    c.unit.SetString(c.db(), key, piece, storage::kNoDeadline);
    c.Notify(storage::EventClass::kString, "append", key);
    return c.reply.Integer(static_cast<int64_t>(piece.size()));
  }
  if (!CheckPlain(c, old) || !CheckSize(c, old.bytes.size(), piece.size())) return;
  Put(c, key, old, old.bytes.size(), piece, "append");
}

void SetRange(Context& c) {
  const HashedKey key = c.Key(1);
  const absl::string_view piece = c.words[3];
  int64_t offset = 0;
  if (!c.Int(2, &offset)) return;
  if (offset < 0) return c.reply.Error(errors::kOffset);
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!CheckPlain(c, old)) return;
  if (piece.empty()) return c.reply.Integer(static_cast<int64_t>(old.bytes.size()));
  if (!CheckSize(c, static_cast<uint64_t>(offset), piece.size())) return;
  Put(c, key, old, static_cast<size_t>(offset), piece, "setrange");
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kAppendArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "value"}};
constexpr ArgSpec kRangeArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "start", .type = ArgType::kInteger},
                                  {.name = "end", .type = ArgType::kInteger}};
constexpr ArgSpec kSetRangeArgs[] = {{.name = "key", .type = ArgType::kKey},
                                     {.name = "offset", .type = ArgType::kInteger},
                                     {.name = "value"}};

constexpr CommandSpec kStringEditCommands[] = {
    {.name = "STRLEN",
     .handler = &Strlen,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = Keys::At(1),
     .key_flags = "RO",
     .group = Group::kString,
     .since = "2.2.0",
     .summary = "Returns the length of a key's value.",
     .args = kKeyArgs},
    {.name = "GETRANGE",
     .handler = &GetRange,
     .arity = 4,
     .flags = kReadonly,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .group = Group::kString,
     .since = "2.4.0",
     .complexity = "O(N) with N bytes returned",
     .summary = "Returns a part of a key's value.",
     .args = kRangeArgs},
    {.name = "SUBSTR",
     .handler = &GetRange,
     .arity = 4,
     .flags = kReadonly,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .group = Group::kString,
     .since = "1.0.0",
     .complexity = "O(N) with N bytes returned",
     .summary = "Returns a part of a key's value.",
     .args = kRangeArgs},
    {.name = "APPEND",
     .handler = &Append,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW INSERT",
     .group = Group::kString,
     .since = "2.0.0",
     .complexity = "O(1) amortized",
     .summary = "Adds bytes at the end of a key's value.",
     .args = kAppendArgs},
    {.name = "SETRANGE",
     .handler = &SetRange,
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = Keys::At(1),
     .key_flags = "RW UPDATE",
     .group = Group::kString,
     .since = "2.2.0",
     .complexity = "O(N) with N bytes written",
     .summary = "Overwrites a part of a key's value.",
     .args = kSetRangeArgs}};

}  // namespace

absl::Span<const CommandSpec> StringEditCommands() { return kStringEditCommands; }

}  // namespace idemd::server
