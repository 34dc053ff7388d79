// Members taken from the ends of sorted sets: ZPOPMIN, ZPOPMAX, ZMPOP.
#include <vector>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/numkeys.h"
#include "server/commands/pop_words.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::SortedSet;

void Pop(Context& c, bool highest) {
  if (c.words.size() > 3) return c.Syntax();
  const bool counted = c.words.size() == 3;
  int64_t count = 1;
  if (counted) {
    if (!c.Int(2, &count, errors::kOutOfPositiveRange)) return;
    if (count < 0) return c.reply.Error(errors::kOutOfPositiveRange);
  }
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const SortedSet* set = nullptr;
  if (!LookAtSortedSet(c, key, &set)) return;
  if (set == nullptr || count == 0) return c.reply.Array(0);
  const PopReply shape = counted && c.reply.resp() > 2 ? PopReply::kNested : PopReply::kFlat;
  PopScored(c.unit, c.db(), key, highest, static_cast<size_t>(count), shape, c.reply);
}

void ZPopMin(Context& c) { Pop(c, false); }
void ZPopMax(Context& c) { Pop(c, true); }

void ZMPop(Context& c) {
  PopWords pop;
  if (!ReadPopWords(c, 1, "min", "max", &pop)) return;
  c.unit.LockKeys(pop.keys);
  for (const HashedKey& key : pop.keys) {
    const SortedSet* set = nullptr;
    if (!LookAtSortedSet(c, key, &set)) return;
    if (set != nullptr) return PopScored(c.unit, c.db(), key, pop.second, pop.count, PopReply::kKeyNested, c.reply);
  }
  c.reply.NullArray();
}

bool ZMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 1, positions);
}
constexpr ArgSpec kPopArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "count", .type = ArgType::kInteger, .optional = true}};
constexpr ArgSpec kWhereArgs[] = {{.name = "min", .type = ArgType::kToken, .token = "MIN"},
                                  {.name = "max", .type = ArgType::kToken, .token = "MAX"}};
constexpr ArgSpec kMPopArgs[] = {{.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "where", .type = ArgType::kOneOf, .args = kWhereArgs},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr KeySpec kMPopKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1, .counted = true}};
constexpr const char* kPopComplexity = "O(log(N)*M) with M popped";
constexpr CommandSpec kZsetPopCommands[] = {
    {.name = "ZPOPMIN", .handler = &ZPopMin, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0", .complexity = kPopComplexity,
     .summary = "Takes out and returns members with the lowest scores.", .args = kPopArgs},
    {.name = "ZPOPMAX", .handler = &ZPopMax, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0", .complexity = kPopComplexity,
     .summary = "Takes out and returns members with the highest scores.", .args = kPopArgs},
    {.name = "ZMPOP", .handler = &ZMPop, .arity = -4, .flags = kWrite, .find_keys = &ZMPopKeys,
     .key_specs = kMPopKeys, .group = Group::kSortedSet, .since = "7.0.0", .complexity = "O(K)+O(M*log(N)) with K keys and M popped",
     .summary = "Pops from the first of several sorted sets that is there.", .args = kMPopArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetPopCommands() { return kZsetPopCommands; }

}  // namespace idemd::server
