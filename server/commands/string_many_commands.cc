// Several keys in one step: MGET, MSET, MSETNX.
//
// All keys are locked together before the first look, so that no caller sees half of another one's
// MSET.
#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::KeyView;
using KeyList = absl::InlinedVector<HashedKey, 16>;

KeyList KeysAt(Context& c, size_t step) {
  KeyList keys;
  keys.reserve(c.words.size() / step);
  for (size_t i = 1; i < c.words.size(); i += step) keys.push_back(c.Key(i));
  c.services.store.PrefetchAll(c.db(), keys, (c.spec->flags & kWrite) != 0);
  return keys;
}

void Mget(Context& c) {
  c.reply.Array(c.words.size() - 1);
  // What is no string is as though it were not there.
  const auto reply = [&c](const KeyView& view) { view.collection == nullptr ? ReplyValue(c, view) : c.reply.Null(); };
  if (c.words.size() == 2) return reply(c.unit.Find(c.db(), c.Key(1)));
  const KeyList keys = KeysAt(c, 1);
  c.unit.LockKeys(keys);
  for (const HashedKey& key : keys) {
    const KeyView view = c.unit.Find(c.db(), key);
    CountRead(c, view);
    reply(view);
  }
}

// False, with the error written: a key without its value.
bool CheckPairs(Context& c) {
  if (c.words.size() % 2 == 1) return true;
  c.reply.Error(absl::StrCat("ERR wrong number of arguments for '",
                             absl::AsciiStrToLower(c.spec->name), "' command"));
  return false;
}

void SetPairs(Context& c, const KeyList& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    c.unit.SetString(c.db(), keys[i], c.words[2 + 2 * i], storage::kNoDeadline);
    c.Notify(storage::EventClass::kString, "set", keys[i]);
  }
}

void Mset(Context& c) {
  if (!CheckPairs(c)) return;
  const KeyList keys = KeysAt(c, 2);
  c.unit.LockKeys(keys);
  SetPairs(c, keys);
  c.reply.Ok();
}

void MsetNx(Context& c) {
  if (!CheckPairs(c)) return;
  const KeyList keys = KeysAt(c, 2);
  c.unit.LockKeys(keys);
  for (const HashedKey& key : keys) {
    if (c.unit.Find(c.db(), key)) return c.reply.Integer(0);
  }
  SetPairs(c, keys);
  c.reply.Integer(1);
}

constexpr ArgSpec kKeysArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true}};
constexpr ArgSpec kPairArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "value"}};
constexpr ArgSpec kPairsArgs[] = {
    {.name = "key_value", .type = ArgType::kBlock, .multiple = true, .args = kPairArgs}};

constexpr CommandSpec kStringManyCommands[] = {
    {.name = "MGET",
     .handler = &Mget,
     .arity = -2,
     .flags = kReadonly | kFast,
     .keys = Keys::From(1),
     .key_flags = "RO ACCESS",
     .group = Group::kString,
     .since = "1.0.0",
     .complexity = "O(N) with N keys",
     .summary = "Returns the values of several keys.",
     .args = kKeysArgs},
    {.name = "MSET",
     .handler = &Mset,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = Keys::From(1, 2),
     .key_flags = "OW UPDATE",
     .group = Group::kString,
     .since = "1.0.1",
     .complexity = "O(N) with N keys",
     .summary = "Sets the values of several keys at once.",
     .args = kPairsArgs},
    {.name = "MSETNX",
     .handler = &MsetNx,
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = Keys::From(1, 2),
     .key_flags = "OW INSERT",
     .group = Group::kString,
     .since = "1.0.1",
     .complexity = "O(N) with N keys",
     .summary = "Sets the values of several keys if all of them are absent.",
     .args = kPairsArgs}};

}  // namespace

absl::Span<const CommandSpec> StringManyCommands() { return kStringManyCommands; }

}  // namespace idemd::server
