// The insides of lists, and elements that go from one to another: LSET, LINSERT, LREM, LTRIM, LMOVE, RPOPLPUSH, LMPOP.
#include <algorithm>
#include <vector>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/list_edit.h"
#include "server/commands/numkeys.h"
#include "server/commands/pop_words.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::EventClass;
using storage::HashedKey;
using storage::KeyView;
using storage::List;

List& Edited(Context& c, const HashedKey& key) { return static_cast<List&>(c.unit.EditCollection(c.db(), key)); }

// The words say it all: what they do depends on nothing but the list.
void Changed(Context& c, const HashedKey& key, const char* event) {
  const bool gone = c.unit.CollectionChanged(c.db(), key, c.words);
  c.Notify(EventClass::kList, event, key);
  if (gone) c.Notify(EventClass::kGeneric, "del", key);
}

void LSet(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!view) return c.reply.Error(errors::kNoSuchKey);
  if (!CheckList(c.reply, view)) return;
  int64_t index = 0;
  if (!c.Int(2, &index)) return;
  const auto size = static_cast<int64_t>(ListOf(view)->size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) return c.reply.Error(errors::kOutOfRange);
  Edited(c, key).Set(static_cast<size_t>(index), c.words[3], ListLimits(c.services));
  c.reply.Ok();
  Changed(c, key, "lset");
}

void LInsert(Context& c) {
  const bool after = absl::EqualsIgnoreCase(c.words[2], "after");
  if (!after && !absl::EqualsIgnoreCase(c.words[2], "before")) return c.Syntax();
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!CheckList(c.reply, view)) return;
  if (!view) return c.reply.Integer(0);
  size_t pivot = SIZE_MAX;
  ListOf(view)->Find(ListEnd::kHead, c.words[3], SIZE_MAX, [&](size_t index) {
    pivot = index;
    return false;
  });
  if (pivot == SIZE_MAX) return c.reply.Integer(-1);
  List& list = Edited(c, key);
  list.Insert(pivot + (after ? 1 : 0), c.words[4], ListLimits(c.services));
  c.reply.Integer(static_cast<int64_t>(list.size()));
  Changed(c, key, "linsert");
}

void LRem(Context& c) {
  int64_t count = 0;
  if (!c.Int(2, &count)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!CheckList(c.reply, view)) return;
  bool found = false;
  if (view) {
    ListOf(view)->Find(ListEnd::kHead, c.words[3], SIZE_MAX, [&](size_t) {
      found = true;
      return false;
    });
  }
  if (!found) return c.reply.Integer(0);
  // The smallest number has no positive one; it is more than there are elements.
  const uint64_t most = count == 0 ? UINT64_MAX : count < 0 ? uint64_t{0} - static_cast<uint64_t>(count) : static_cast<uint64_t>(count);
  const size_t removed = Edited(c, key).Remove(count < 0 ? ListEnd::kTail : ListEnd::kHead, most, c.words[3]);
  c.reply.Integer(static_cast<int64_t>(removed));
  Changed(c, key, "lrem");
}

void LTrim(Context& c) {
  int64_t start = 0, stop = 0;
  if (!c.Int(2, &start) || !c.Int(3, &stop)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!CheckList(c.reply, view)) return;
  if (!view) return c.reply.Ok();
  const auto size = static_cast<int64_t>(ListOf(view)->size());
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop += size;
  stop = std::min(stop, size - 1);
  List& list = Edited(c, key);
  if (start > stop) {
    list.Drop(ListEnd::kHead, list.size());
  } else {
    list.Drop(ListEnd::kHead, static_cast<size_t>(start));
    list.Drop(ListEnd::kTail, static_cast<size_t>(size - 1 - stop));
  }
  c.reply.Ok();
  Changed(c, key, "ltrim");
}

void Move(Context& c, ListMove move) {
  const HashedKey keys[] = {c.Key(1), c.Key(2)};
  c.unit.LockKeys(keys);
  const KeyView source = c.unit.Find(c.db(), keys[0]);
  if (!CheckList(c.reply, source)) return;
  if (!source) return c.reply.Null();
  if (!CheckList(c.reply, c.unit.Find(c.db(), keys[1]))) return;
  MoveElement(c.unit, c.db(), keys[0], keys[1], move, ListLimits(c.services), c.reply);
}

void LMove(Context& c) {
  ListMove move;
  if (!ReadListEnd(c.words[3], &move.from) || !ReadListEnd(c.words[4], &move.to)) return c.Syntax();
  Move(c, move);
}

void RPopLPush(Context& c) { Move(c, {ListEnd::kTail, ListEnd::kHead}); }

void LMPop(Context& c) {
  PopWords pop;
  if (!ReadPopWords(c, 1, "left", "right", &pop)) return;
  c.unit.LockKeys(pop.keys);
  for (const HashedKey& key : pop.keys) {
    const KeyView view = c.unit.Find(c.db(), key);
    if (!view) continue;
    const ListEnd end = pop.second ? ListEnd::kTail : ListEnd::kHead;
    if (CheckList(c.reply, view)) PopSomeWithKey(c.unit, c.db(), key, end, pop.count, c.reply);
    return;
  }
  c.reply.NullArray();
}

bool LMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 1, positions);
}

constexpr ArgSpec kSetArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "index", .type = ArgType::kInteger},
                                {.name = "element"}};
constexpr ArgSpec kWhere[] = {{.name = "before", .type = ArgType::kToken, .token = "BEFORE"},
                              {.name = "after", .type = ArgType::kToken, .token = "AFTER"}};
constexpr ArgSpec kInsertArgs[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "where", .type = ArgType::kOneOf, .args = kWhere},
                                   {.name = "pivot"},
                                   {.name = "element"}};
constexpr ArgSpec kRemArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "count", .type = ArgType::kInteger},
                                {.name = "element"}};
constexpr ArgSpec kTrimArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "start", .type = ArgType::kInteger},
                                 {.name = "stop", .type = ArgType::kInteger}};
constexpr ArgSpec kEnds[] = {{.name = "left", .type = ArgType::kToken, .token = "LEFT"},
                             {.name = "right", .type = ArgType::kToken, .token = "RIGHT"}};
constexpr ArgSpec kMoveArgs[] = {{.name = "source", .type = ArgType::kKey},
                                 {.name = "destination", .type = ArgType::kKey, .key_spec = 1},
                                 {.name = "wherefrom", .type = ArgType::kOneOf, .args = kEnds},
                                 {.name = "whereto", .type = ArgType::kOneOf, .args = kEnds}};
constexpr ArgSpec kRPopLPushArgs[] = {{.name = "source", .type = ArgType::kKey},
                                      {.name = "destination", .type = ArgType::kKey, .key_spec = 1}};
constexpr ArgSpec kMPopArgs[] = {{.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "where", .type = ArgType::kOneOf, .args = kEnds},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr KeySpec kMoveKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1}, {.flags = "RW INSERT", .index = 2}};
constexpr KeySpec kMPopKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1, .counted = true}};
constexpr CommandSpec kListChangeCommands[] = {
    {.name = "LSET", .handler = &LSet, .arity = 4, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kList, .since = "1.0.0",
     .complexity = "O(N) where N is the distance of the element from the nearer end, divided by some hundreds",
     .summary = "Replaces one element of a list.", .args = kSetArgs},
    {.name = "LINSERT", .handler = &LInsert, .arity = 5, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kList, .since = "2.2.0",
     .complexity = "O(N) where N is the number of elements in front of the pivot",
     .summary = "Puts an element before or after the first one that equals the pivot.", .args = kInsertArgs},
    {.name = "LREM", .handler = &LRem, .arity = 4, .flags = kWrite, .keys = Keys::At(1), .key_flags = "RW DELETE",
     .group = Group::kList, .since = "1.0.0", .complexity = "O(N) where N is the length of the list",
     .summary = "Removes elements by value: the first ones, the last ones where count is negative, or with 0 all.",
     .args = kRemArgs},
    {.name = "LTRIM", .handler = &LTrim, .arity = 4, .flags = kWrite, .keys = Keys::At(1), .key_flags = "RW DELETE",
     .group = Group::kList, .since = "1.0.0", .complexity = "O(N) where N is the number of elements removed",
     .summary = "Removes what lies outside of a range.", .args = kTrimArgs},
    {.name = "LMOVE", .handler = &LMove, .arity = 5, .flags = kWrite | kDenyOom, .keys = Keys::Range(1, 2),
     .key_specs = kMoveKeys, .group = Group::kList, .since = "6.2.0",
     .summary = "Takes an element from one end of a list to an end of another.", .args = kMoveArgs},
    {.name = "RPOPLPUSH", .handler = &RPopLPush, .arity = 3, .flags = kWrite | kDenyOom, .keys = Keys::Range(1, 2),
     .key_specs = kMoveKeys, .group = Group::kList, .since = "1.2.0",
     .summary = "Takes the last element of a list to the head of another.", .args = kRPopLPushArgs},
    {.name = "LMPOP", .handler = &LMPop, .arity = -4, .flags = kWrite, .find_keys = &LMPopKeys,
     .key_specs = kMPopKeys, .group = Group::kList, .since = "7.0.0",
     .complexity = "O(N+M) where N is the number of keys and M the number of elements returned",
     .summary = "Takes elements from the first of the lists that is there.", .args = kMPopArgs}};

}  // namespace

absl::Span<const CommandSpec> ListChangeCommands() { return kListChangeCommands; }

}  // namespace idemd::server
