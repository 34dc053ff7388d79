// Deleting a key only while it holds what the caller believes: DELIFEQ, DELEX; and DIGEST to
// compare long values by.
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_compare.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;

void DeleteIf(Context& c, const Comparison& comparison) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (comparison && !CheckString(c, view)) return;
  const bool deletes = view && (!comparison || comparison.Holds(view));
  if (deletes) {
    c.unit.Remove(c.db(), key);
    c.Notify(storage::EventClass::kGeneric, "del", key);
  }
  c.reply.Integer(deletes ? 1 : 0);
}

void DelIfEq(Context& c) { DeleteIf(c, {Comparison::Kind::kEqual, c.words[2]}); }

void DelEx(Context& c) {
  Comparison comparison;
  if (c.words.size() == 3 || c.words.size() > 4) {
    return c.reply.Error(absl::StrCat("ERR wrong number of arguments for '",
                                      absl::AsciiStrToLower(c.spec->name), "' command"));
  }
  if (c.words.size() == 4 && comparison.Take(c.words, 2) == 0)
    return c.reply.Error(errors::kInvalidCondition);
  if (comparison.Check(c)) DeleteIf(c, comparison);
}

void Digest(Context& c) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!view) return c.reply.Null();
  if (!CheckString(c, view)) return;
  std::string text;
  const std::array<char, 16> digest = DigestText(storage::StringValue(view, text));
  c.reply.Bulk(absl::string_view(digest.data(), digest.size()));
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kKeyValueArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "value"}};
constexpr ArgSpec kConditionArgs[] = {{.name = "ifeq-value", .token = "IFEQ"},
                                      {.name = "ifne-value", .token = "IFNE"},
                                      {.name = "ifdeq-digest", .token = "IFDEQ"},
                                      {.name = "ifdne-digest", .token = "IFDNE"}};
constexpr ArgSpec kDelExArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "condition", .type = ArgType::kOneOf, .optional = true, .args = kConditionArgs}};

constexpr CommandSpec kStringCompareCommands[] = {
    {.name = "DELIFEQ",
     .handler = &DelIfEq,
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW DELETE",
     .group = Group::kString,
     .since = "0.1.0",
     .summary = "Deletes a key if it holds the given value.",
     .args = kKeyValueArgs},
    {.name = "DELEX",
     .handler = &DelEx,
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW DELETE VARIABLE_FLAGS",
     .group = Group::kString,
     .since = "0.1.0",
     .complexity = "O(1), O(N) for digests of N bytes",
     .summary = "Deletes a key if its value or digest is, or is not, the given one.",
     .args = kDelExArgs},
    {.name = "DIGEST",
     .handler = &Digest,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .group = Group::kString,
     .since = "0.1.0",
     .complexity = "O(N) with N bytes",
     .summary = "Returns the XXH3 digest of a key's value.",
     .args = kKeyArgs}};

}  // namespace

absl::Span<const CommandSpec> StringCompareCommands() { return kStringCompareCommands; }

}  // namespace idemd::server
