// Lists that callers wait at: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH.
#include <vector>

#include "protocol/errors.h"
#include "server/commands/blocking.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/list_edit.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::KeyView;
using storage::ValueType;

// How a popping command answers: BLPOP with one element, BLMPOP with an array.
struct PopForm {
  ListEnd end = ListEnd::kHead;
  size_t count = 0;  // 0: one element, by itself

  void Do(storage::Unit& unit, storage::DbIndex db, const HashedKey& key, protocol::Writer& reply) const {
    count == 0 ? PopWithKey(unit, db, key, end, reply) : PopSomeWithKey(unit, db, key, end, count, reply);
  }
};

void BlockingPop(Context& c, size_t first_key, size_t count, int64_t timeout_ms, PopForm form) {
  std::vector<HashedKey> keys;
  keys.reserve(count);
  for (size_t i = 0; i < count; ++i) keys.push_back(c.Key(first_key + i));
  c.unit.LockKeys(keys);
  bool others_were_first = false;
  for (size_t i = 0; i < count; ++i) {
    const KeyView view = c.unit.Find(c.db(), keys[i]);
    if (!view) continue;
    if (!CheckList(c.reply, view)) return;
    if (!others_were_first && OthersFirst(c, keys[i])) {
      others_were_first = true;
      c.unit.LockKeys(keys);
      i = SIZE_MAX;  // from the first one on
      continue;
    }
    return form.Do(c.unit, c.db(), keys[i], c.reply);
  }
  if (!MayBlock(c)) return c.reply.NullArray();
  BlockOn(c, {.keys = keys, .timeout_ms = timeout_ms, .wants = ValueType::kList, .serve = [form](Turn& turn) {
                if (ListOf(turn.unit.Find(turn.db, turn.key)) == nullptr || !turn.Take()) return;
                form.Do(turn.unit, turn.db, turn.key, turn.reply);
              }});
}

void BPop(Context& c, ListEnd end) {
  int64_t timeout_ms = 0;
  if (ReadTimeout(c, c.words.size() - 1, &timeout_ms)) BlockingPop(c, 1, c.words.size() - 2, timeout_ms, {.end = end});
}

void BLPop(Context& c) { BPop(c, ListEnd::kHead); }
void BRPop(Context& c) { BPop(c, ListEnd::kTail); }

void BLMPop(Context& c) {
  ListPopWords pop;
  int64_t timeout_ms = 0;
  if (!ReadListPop(c, 2, &pop) || !ReadTimeout(c, 1, &timeout_ms)) return;
  BlockingPop(c, pop.first_key, pop.keys, timeout_ms, {.end = pop.end, .count = pop.count});
}

void BlockingMove(Context& c, int64_t timeout_ms, ListMove move) {
  const HashedKey keys[] = {c.Key(1), c.Key(2)};
  for (bool others_were_first = false;; others_were_first = true) {
    c.unit.LockKeys(keys);
    const KeyView source = c.unit.Find(c.db(), keys[0]);
    if (!CheckList(c.reply, source)) return;
    if (!source) break;
    if (!CheckList(c.reply, c.unit.Find(c.db(), keys[1]))) return;
    if (!others_were_first && OthersFirst(c, keys[0])) continue;
    return MoveElement(c.unit, c.db(), keys[0], keys[1], move, ListLimits(c.services), c.reply);
  }
  if (!MayBlock(c)) return c.reply.Null();
  BlockOn(c, {.keys = {keys, 1},
              .others = {keys + 1, 1},
              .timeout_ms = timeout_ms,
              .wants = ValueType::kList,
              .serve = [move, &services = c.services, to = std::string(keys[1].bytes)](Turn& turn) {
                const HashedKey destination(to);
                if (ListOf(turn.unit.Find(turn.db, turn.key)) == nullptr || !turn.Take()) return;
                // The element stays where it is, and the caller is told.
                if (!CheckList(turn.reply, turn.unit.Find(turn.db, destination))) return;
                MoveElement(turn.unit, turn.db, turn.key, destination, move, ListLimits(services), turn.reply);
              }});
}

void BLMove(Context& c) {
  ListMove move;
  int64_t timeout_ms = 0;
  if (!ReadListEnd(c.words[3], &move.from) || !ReadListEnd(c.words[4], &move.to)) return c.Syntax();
  if (ReadTimeout(c, 5, &timeout_ms)) BlockingMove(c, timeout_ms, move);
}

void BRPopLPush(Context& c) {
  int64_t timeout_ms = 0;
  if (ReadTimeout(c, 3, &timeout_ms)) BlockingMove(c, timeout_ms, {ListEnd::kTail, ListEnd::kHead});
}

bool FindBLMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return FindCountedKeys(words, 2, positions);
}

constexpr ArgSpec kPopArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true},
                                {.name = "timeout", .type = ArgType::kDouble}};
constexpr ArgSpec kEnds[] = {{.name = "left", .type = ArgType::kToken, .token = "LEFT"},
                             {.name = "right", .type = ArgType::kToken, .token = "RIGHT"}};
constexpr ArgSpec kMPopArgs[] = {{.name = "timeout", .type = ArgType::kDouble},
                                 {.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "where", .type = ArgType::kOneOf, .args = kEnds},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};
constexpr ArgSpec kMoveArgs[] = {{.name = "source", .type = ArgType::kKey},
                                 {.name = "destination", .type = ArgType::kKey, .key_spec = 1},
                                 {.name = "wherefrom", .type = ArgType::kOneOf, .args = kEnds},
                                 {.name = "whereto", .type = ArgType::kOneOf, .args = kEnds},
                                 {.name = "timeout", .type = ArgType::kDouble}};
constexpr ArgSpec kRPopLPushArgs[] = {{.name = "source", .type = ArgType::kKey},
                                      {.name = "destination", .type = ArgType::kKey, .key_spec = 1},
                                      {.name = "timeout", .type = ArgType::kDouble}};

constexpr KeySpec kMoveKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1}, {.flags = "RW INSERT", .index = 2}};
constexpr KeySpec kMPopKeys[] = {{.flags = "RW ACCESS DELETE", .index = 2, .counted = true}};
constexpr Keys kAllButLast = {1, -2, 1};
constexpr CommandSpec kListBlockingCommands[] = {
    {.name = "BLPOP", .handler = &BLPop, .arity = -3, .flags = kWrite | kNoScript | kBlocking, .keys = kAllButLast,
     .key_flags = "RW ACCESS DELETE", .group = Group::kList, .since = "2.0.0",
     .complexity = "O(N) where N is the number of keys",
     .summary = "Takes the first element of a list, or waits for one.", .args = kPopArgs},
    {.name = "BRPOP", .handler = &BRPop, .arity = -3, .flags = kWrite | kNoScript | kBlocking, .keys = kAllButLast,
     .key_flags = "RW ACCESS DELETE", .group = Group::kList, .since = "2.0.0",
     .complexity = "O(N) where N is the number of keys",
     .summary = "Takes the last element of a list, or waits for one.", .args = kPopArgs},
    {.name = "BLMPOP", .handler = &BLMPop, .arity = -5, .flags = kWrite | kBlocking, .find_keys = &FindBLMPopKeys,
     .key_specs = kMPopKeys, .group = Group::kList, .since = "7.0.0",
     .complexity = "O(N+M) where N is the number of keys and M the number of elements returned",
     .summary = "Takes elements from the first of the lists that is there, or waits for some.", .args = kMPopArgs},
    {.name = "BLMOVE", .handler = &BLMove, .arity = 6, .flags = kWrite | kDenyOom | kNoScript | kBlocking,
     .keys = Keys::Range(1, 2), .key_specs = kMoveKeys, .group = Group::kList, .since = "6.2.0",
     .summary = "Takes an element from one list to another, or waits for one.", .args = kMoveArgs},
    {.name = "BRPOPLPUSH", .handler = &BRPopLPush, .arity = 4, .flags = kWrite | kDenyOom | kNoScript | kBlocking,
     .keys = Keys::Range(1, 2), .key_specs = kMoveKeys, .group = Group::kList, .since = "2.2.0",
     .summary = "Takes the last element of a list to the head of another, or waits for one.", .args = kRPopLPushArgs}};

}  // namespace

absl::Span<const CommandSpec> ListBlockingCommands() { return kListBlockingCommands; }

}  // namespace idemd::server
