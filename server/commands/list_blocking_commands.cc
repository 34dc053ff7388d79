// Lists that callers wait at: BLPOP, BRPOP, BLMPOP, BLMOVE, BRPOPLPUSH.
#include <string>
#include <vector>

#include "protocol/errors.h"
#include "server/commands/blocking.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/list_edit.h"
#include "server/commands/numkeys.h"
#include "server/commands/pop_words.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::KeyView;
using storage::ValueType;

void BPop(Context& c, ListEnd end) {
  int64_t timeout_ms = 0;
  if (!ReadTimeout(c, c.words.size() - 1, &timeout_ms)) return;
  absl::InlinedVector<HashedKey, 4> keys;
  for (size_t i = 1; i + 1 < c.words.size(); ++i) keys.push_back(c.Key(i));
  PopOrWait(c, {.keys = keys, .timeout_ms = timeout_ms, .wants = ValueType::kList, .serve = [end](Turn& turn) {
                  PopWithKey(turn.unit, turn.db, turn.key, end, turn.reply);
                }});
}

void BLPop(Context& c) { BPop(c, ListEnd::kHead); }
void BRPop(Context& c) { BPop(c, ListEnd::kTail); }

void BLMPop(Context& c) {
  PopWords pop;
  int64_t timeout_ms = 0;
  if (!ReadPopWords(c, 2, "left", "right", &pop) || !ReadTimeout(c, 1, &timeout_ms)) return;
  const ListEnd end = pop.second ? ListEnd::kTail : ListEnd::kHead;
  PopOrWait(c, {.keys = pop.keys, .timeout_ms = timeout_ms, .wants = ValueType::kList, .serve = [end, n = pop.count](Turn& turn) {
                  PopSomeWithKey(turn.unit, turn.db, turn.key, end, n, turn.reply);
                }});
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

bool BLMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 2, positions);
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
    {.name = "BLMPOP", .handler = &BLMPop, .arity = -5, .flags = kWrite | kBlocking, .find_keys = &BLMPopKeys,
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
