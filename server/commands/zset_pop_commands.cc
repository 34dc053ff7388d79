// Members taken from the ends of sorted sets, or looked at at random: ZPOPMIN, ZPOPMAX, ZMPOP, ZRANDMEMBER.
#include <algorithm>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/numkeys.h"
#include "server/commands/option_word.h"
#include "server/commands/zset_edit.h"
#include "storage/token/token.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::SortedSet;

constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

// --- popping

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
  if (!FindSortedSet(c, key, &set)) return;
  if (set == nullptr || count == 0) return c.reply.Array(0);
  const PopReply shape = counted && c.reply.resp() > 2 ? PopReply::kNested : PopReply::kFlat;
  PopScored(c.unit, c.db(), key, highest, static_cast<size_t>(count), shape, c.reply);
}

void ZPopMin(Context& c) { Pop(c, false); }
void ZPopMax(Context& c) { Pop(c, true); }

void ZMPop(Context& c) {
  constexpr absl::string_view kNoKeys = "ERR numkeys should be greater than 0";
  constexpr absl::string_view kNoCount = "ERR count should be greater than 0";
  int64_t numkeys = 0, count = 1;
  if (!c.Int(1, &numkeys, kNoKeys)) return;
  if (numkeys < 1) return c.reply.Error(kNoKeys);
  if (static_cast<uint64_t>(numkeys) + 2 >= c.words.size()) return c.Syntax();
  const size_t where = 2 + static_cast<size_t>(numkeys);
  const uint64_t end = OptionWord(c.words[where]);
  if (end != OptionWord("min") && end != OptionWord("max")) return c.Syntax();
  if (c.words.size() > where + 1) {
    if (c.words.size() == where + 2 || !absl::EqualsIgnoreCase(c.words[where + 1], "count")) return c.Syntax();
    if (!c.Int(where + 2, &count, kNoCount)) return;
    if (count < 1) return c.reply.Error(kNoCount);
    if (c.words.size() > where + 3) return c.Syntax();
  }
  absl::InlinedVector<HashedKey, 4> keys;
  for (size_t i = 2; i < where; ++i) keys.push_back(c.Key(i));
  c.unit.LockKeys(keys);
  for (const HashedKey& key : keys) {
    const SortedSet* set = nullptr;
    if (!FindSortedSet(c, key, &set)) return;
    if (set != nullptr)
      return PopScored(c.unit, c.db(), key, end == OptionWord("max"), static_cast<size_t>(count), PopReply::kKeyNested, c.reply);
  }
  c.reply.NullArray();
}

bool ZMPopKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 1, positions);
}

// --- at random

// `count` different ranks below `size`, each choice equally likely.
std::vector<size_t> DifferentRanks(size_t count, size_t size) {
  std::vector<size_t> ranks;
  ranks.reserve(count);
  if (count * 3 > size) {  // so many that each rank may as well be asked whether it is one
    for (size_t rank = 0; ranks.size() < count; ++rank)
      if (storage::RandomU64() % (size - rank) < count - ranks.size()) ranks.push_back(rank);
    return ranks;
  }
  absl::flat_hash_set<size_t> drawn;
  while (ranks.size() < count) {
    const size_t rank = storage::RandomU64() % size;
    if (drawn.insert(rank).second) ranks.push_back(rank);
  }
  return ranks;
}

void ReplyMembers(Context& c, const SortedSet& set, int64_t count, bool with_scores) {
  const bool repeat = count < 0;
  const size_t size = set.size();
  // The number of those that may come twice is bounded by what the client can wait for.
  const size_t wanted = repeat ? static_cast<size_t>(-count) : std::min(static_cast<size_t>(count), size);
  const bool nested = with_scores && c.reply.resp() > 2;
  const auto each = [&](absl::string_view member, double score) {
    if (nested) c.reply.Array(2);
    c.reply.Bulk(member);
    if (with_scores) c.reply.Double(score);
  };
  c.reply.Array(with_scores && !nested ? wanted * 2 : wanted);
  if (repeat) {
    for (size_t i = 0; i < wanted; ++i) set.ForRange(storage::RandomU64() % size, 1, false, each);
  } else if (wanted == size) {
    set.ForRange(0, size, /*reverse=*/true, each);
  } else {
    for (const size_t rank : DifferentRanks(wanted, size)) set.ForRange(rank, 1, false, each);
  }
}

void ZRandMember(Context& c) {
  int64_t count = 0;
  const bool counted = c.words.size() > 2;
  if (counted) {
    if (!c.Int(2, &count)) return;
    if (count < -kInt64Max)
      return c.reply.Error(
          "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    if (c.words.size() > 4 || (c.words.size() == 4 && !absl::EqualsIgnoreCase(c.words[3], "withscores"))) return c.Syntax();
    if (c.words.size() == 4 && (count < -kInt64Max / 2 || count > kInt64Max / 2))
      return c.reply.Error("ERR value is out of range");
  }
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  if (!counted) {
    if (set == nullptr) return c.reply.Null();
    return set->ForRange(storage::RandomU64() % set->size(), 1, false,
                         [&](absl::string_view member, double) { c.reply.Bulk(member); });
  }
  if (set == nullptr || count == 0) return c.reply.Array(0);
  ReplyMembers(c, *set, count, c.words.size() == 4);
}

constexpr ArgSpec kPopArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "count", .type = ArgType::kInteger, .optional = true}};
constexpr ArgSpec kWhereArgs[] = {{.name = "min", .type = ArgType::kToken, .token = "MIN"},
                                  {.name = "max", .type = ArgType::kToken, .token = "MAX"}};
constexpr ArgSpec kMPopArgs[] = {{.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "where", .type = ArgType::kOneOf, .args = kWhereArgs},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};
constexpr ArgSpec kRandomOptionArgs[] = {
    {.name = "count", .type = ArgType::kInteger},
    {.name = "withscores", .type = ArgType::kToken, .token = "WITHSCORES", .optional = true}};
constexpr ArgSpec kRandomArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "options", .type = ArgType::kBlock, .optional = true, .args = kRandomOptionArgs}};

constexpr CommandSpec kZsetPopCommands[] = {
    {.name = "ZPOPMIN", .handler = &ZPopMin, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0", .complexity = "O(log(N)*M) with M popped",
     .summary = "Takes out and returns members with the lowest scores.", .args = kPopArgs},
    {.name = "ZPOPMAX", .handler = &ZPopMax, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "5.0.0", .complexity = "O(log(N)*M) with M popped",
     .summary = "Takes out and returns members with the highest scores.", .args = kPopArgs},
    {.name = "ZMPOP", .handler = &ZMPop, .arity = -4, .flags = kWrite, .find_keys = &ZMPopKeys,
     .key_flags = "RW ACCESS DELETE", .group = Group::kSortedSet, .since = "7.0.0",
     .complexity = "O(K)+O(M*log(N)) with K keys and M popped",
     .summary = "Pops from the first of several sorted sets that has members.", .args = kMPopArgs},
    {.name = "ZRANDMEMBER", .handler = &ZRandMember, .arity = -2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = "O(M*log(N)) with M returned",
     .summary = "Returns members drawn at random.", .args = kRandomArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetPopCommands() { return kZsetPopCommands; }

}  // namespace idemd::server
