// Sorted sets that callers wait at: BZPOPMIN, BZPOPMAX, BZMPOP.
#include <vector>

#include "server/commands/blocking.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/numkeys.h"
#include "server/commands/pop_words.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::ValueType;

void BZPop(Context& c, bool highest) {
  int64_t timeout_ms = 0;
  if (!ReadTimeout(c, c.words.size() - 1, &timeout_ms)) return;
  absl::InlinedVector<HashedKey, 4> keys;
  for (size_t i = 1; i + 1 < c.words.size(); ++i) keys.push_back(c.Key(i));
  PopOrWait(c, {.keys = keys, .timeout_ms = timeout_ms, .wants = ValueType::kSortedSet, .serve = [highest](Turn& turn) {
                  PopScored(turn.unit, turn.db, turn.key, highest, 1, PopReply::kKeyFlat, turn.reply);
                }});
}

void BZPopMin(Context& c) { BZPop(c, false); }
void BZPopMax(Context& c) { BZPop(c, true); }

void BZMPop(Context& c) {
  PopWords pop;
  int64_t timeout_ms = 0;
  if (!ReadPopWords(c, 2, "min", "max", &pop) || !ReadTimeout(c, 1, &timeout_ms)) return;
  PopOrWait(c, {.keys = pop.keys,
                .timeout_ms = timeout_ms,
                .wants = ValueType::kSortedSet,
                .serve = [highest = pop.second, n = pop.count](Turn& turn) {
                  PopScored(turn.unit, turn.db, turn.key, highest, n, PopReply::kKeyNested, turn.reply);
                }});
}

bool BZMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 2, positions);
}

constexpr ArgSpec kPopArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true},
                                {.name = "timeout", .type = ArgType::kDouble}};
constexpr ArgSpec kWhere[] = {{.name = "min", .type = ArgType::kToken, .token = "MIN"},
                              {.name = "max", .type = ArgType::kToken, .token = "MAX"}};
constexpr ArgSpec kMPopArgs[] = {{.name = "timeout", .type = ArgType::kDouble},
                                 {.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "where", .type = ArgType::kOneOf, .args = kWhere},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr KeySpec kMPopKeys[] = {{.flags = "RW ACCESS DELETE", .index = 2, .counted = true}};
constexpr Keys kAllButLast = {1, -2, 1};
constexpr CommandSpec kZsetBlockingCommands[] = {
    {.name = "BZPOPMIN", .handler = &BZPopMin, .arity = -3, .flags = kWrite | kNoScript | kBlocking | kFast,
     .keys = kAllButLast, .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0",
     .complexity = "O(log(N)) with N elements in the sorted set",
     .summary = "Takes out the member with the lowest score, or waits for one.", .args = kPopArgs},
    {.name = "BZPOPMAX", .handler = &BZPopMax, .arity = -3, .flags = kWrite | kNoScript | kBlocking | kFast,
     .keys = kAllButLast, .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0",
     .complexity = "O(log(N)) with N elements in the sorted set",
     .summary = "Takes out the member with the highest score, or waits for one.", .args = kPopArgs},
    {.name = "BZMPOP", .handler = &BZMPop, .arity = -5, .flags = kWrite | kBlocking, .find_keys = &BZMPopKeys,
     .key_specs = kMPopKeys, .group = Group::kSortedSet, .since = "7.0.0",
     .complexity = "O(K)+O(M*log(N)) with K keys and M popped",
     .summary = "Pops from the first of several sorted sets that has members, or waits for some.", .args = kMPopArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetBlockingCommands() { return kZsetBlockingCommands; }

}  // namespace idemd::server
