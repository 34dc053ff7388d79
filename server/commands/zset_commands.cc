// Members of sorted sets one by one: ZADD, ZINCRBY, ZREM, ZSCORE, ZMSCORE, ZCARD, ZRANK, ZREVRANK.
#include <optional>

#include "absl/container/inlined_vector.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::SortedSet;

// Writes the error and returns false when it is none.
bool ReadScore(Context& c, size_t i, double* score) {
  if (protocol::ParseDouble(c.words[i], score)) return true;
  c.reply.Error(errors::kNotFloat);
  return false;
}

struct AddOptions {
  SortedSet::Rule rule;
  bool count_moved = false;  // CH
  size_t first = 2;          // the word behind the options
};

AddOptions ReadAddOptions(absl::Span<const absl::string_view> words) {
  AddOptions options;
  for (; options.first < words.size(); ++options.first) {
    switch (OptionWord(words[options.first])) {
      case OptionWord("nx"):
        options.rule.only_new = true;
        break;
      case OptionWord("xx"):
        options.rule.only_old = true;
        break;
      case OptionWord("gt"):
        options.rule.only_above = true;
        break;
      case OptionWord("lt"):
        options.rule.only_below = true;
        break;
      case OptionWord("ch"):
        options.count_moved = true;
        break;
      case OptionWord("incr"):
        options.rule.add = true;
        break;
      default:
        return options;
    }
  }
  return options;
}

// What is wrong with the options together; empty for nothing.
absl::string_view Conflict(const SortedSet::Rule& rule, size_t pairs) {
  if (rule.only_new && rule.only_old) return "ERR XX and NX options at the same time are not compatible";
  if ((rule.only_above && rule.only_new) || (rule.only_below && rule.only_new) || (rule.only_above && rule.only_below))
    return "ERR GT, LT, and/or NX options at the same time are not compatible";
  if (rule.add && pairs > 1) return "ERR INCR option supports a single increment-element pair";
  return {};
}

void ReplyIncremented(Context& c, const PutCounts& counts) { counts.refused ? c.reply.Null() : c.reply.Double(counts.score); }

void ZAdd(Context& c) {
  const AddOptions options = ReadAddOptions(c.words);
  const size_t rest = c.words.size() - options.first;
  if (rest == 0 || rest % 2 != 0) return c.Syntax();
  const absl::string_view conflict = Conflict(options.rule, rest / 2);
  if (!conflict.empty()) return c.reply.Error(conflict);
  absl::InlinedVector<ScoreAndMember, 4> members(rest / 2);
  for (size_t i = 0; i < members.size(); ++i) {
    if (!ReadScore(c, options.first + 2 * i, &members[i].score)) return;
    members[i].member = c.words[options.first + 2 * i + 1];
  }
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  PutCounts counts;
  if (!PutScored(c, key, members, options.rule, &counts)) return;
  if (options.rule.add) return ReplyIncremented(c, counts);
  c.reply.Integer(counts.added + (options.count_moved ? counts.moved : 0));
}

void ZIncrBy(Context& c) {
  ScoreAndMember one{0, c.words[3]};
  if (!ReadScore(c, 2, &one.score)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  PutCounts counts;
  if (PutScored(c, key, {one}, {.add = true}, &counts)) ReplyIncremented(c, counts);
}

void ZRem(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const SortedSet* old = nullptr;
  if (!FindSortedSet(c, key, &old)) return;
  if (old == nullptr) return c.reply.Integer(0);
  SortedSet& set = static_cast<SortedSet&>(c.unit.EditCollection(c.db(), key));
  absl::InlinedVector<absl::string_view, 10> words = {"ZREM", key.bytes};
  for (const absl::string_view member : c.words.subspan(2))
    if (set.Remove(member)) words.push_back(member);
  c.unit.CollectionChanged(c.db(), key, words.size() > 2 ? absl::MakeConstSpan(words) : absl::Span<const absl::string_view>());
  c.reply.Integer(static_cast<int64_t>(words.size()) - 2);
}

void ZCard(Context& c) {
  const SortedSet* set = nullptr;
  if (FindSortedSet(c, c.Key(1), &set)) c.reply.Integer(set == nullptr ? 0 : static_cast<int64_t>(set->size()));
}

void ReplyScore(Context& c, const SortedSet* set, absl::string_view member) {
  const std::optional<double> score = set == nullptr ? std::nullopt : set->Score(member);
  score ? c.reply.Double(*score) : c.reply.Null();
}

void ZScore(Context& c) {
  const SortedSet* set = nullptr;
  if (FindSortedSet(c, c.Key(1), &set)) ReplyScore(c, set, c.words[2]);
}

void ZMScore(Context& c) {
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  c.reply.Array(c.words.size() - 2);
  for (const absl::string_view member : c.words.subspan(2)) ReplyScore(c, set, member);
}

void ReplyRank(Context& c, bool reverse) {
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  const std::optional<size_t> rank = set == nullptr ? std::nullopt : set->Rank(c.words[2]);
  if (!rank) return c.reply.Null();
  c.reply.Integer(static_cast<int64_t>(reverse ? set->size() - 1 - *rank : *rank));
}

void ZRank(Context& c) { ReplyRank(c, false); }
void ZRevRank(Context& c) { ReplyRank(c, true); }

constexpr ArgSpec kConditionArgs[] = {{.name = "nx", .type = ArgType::kToken, .token = "NX"},
                                      {.name = "xx", .type = ArgType::kToken, .token = "XX"}};
constexpr ArgSpec kComparisonArgs[] = {{.name = "gt", .type = ArgType::kToken, .token = "GT"},
                                       {.name = "lt", .type = ArgType::kToken, .token = "LT"}};
constexpr ArgSpec kScoreMemberArgs[] = {{.name = "score", .type = ArgType::kDouble}, {.name = "member"}};
constexpr ArgSpec kAddArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "condition", .type = ArgType::kOneOf, .optional = true, .since = "3.0.2", .args = kConditionArgs},
    {.name = "comparison", .type = ArgType::kOneOf, .optional = true, .since = "6.2.0", .args = kComparisonArgs},
    {.name = "change", .type = ArgType::kToken, .token = "CH", .optional = true, .since = "3.0.2"},
    {.name = "increment", .type = ArgType::kToken, .token = "INCR", .optional = true, .since = "3.0.2"},
    {.name = "score_member", .type = ArgType::kBlock, .multiple = true, .args = kScoreMemberArgs}};
constexpr ArgSpec kIncrByArgs[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "increment", .type = ArgType::kInteger},
                                   {.name = "member"}};
constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kMemberArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "member"}};
constexpr ArgSpec kMembersArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "member", .multiple = true}};

constexpr CommandSpec kZsetCommands[] = {
    {.name = "ZADD", .handler = &ZAdd, .arity = -4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kSortedSet, .since = "1.2.0",
     .complexity = "O(log(N)) per member, N being how many there are",
     .summary = "Puts members with scores into a sorted set.", .args = kAddArgs},
    {.name = "ZINCRBY", .handler = &ZIncrBy, .arity = 4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE", .group = Group::kSortedSet, .since = "1.2.0", .complexity = "O(log(N))",
     .summary = "Adds to the score of a member.", .args = kIncrByArgs},
    {.name = "ZREM", .handler = &ZRem, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1), .key_flags = "RW DELETE",
     .group = Group::kSortedSet, .since = "1.2.0", .complexity = "O(log(N)) per member",
     .summary = "Takes members out of a sorted set.", .args = kMembersArgs},
    {.name = "ZCARD", .handler = &ZCard, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1), .key_flags = "RO",
     .group = Group::kSortedSet, .since = "1.2.0", .complexity = "O(1)", .summary = "Counts the members of a sorted set.",
     .args = kKeyArgs},
    {.name = "ZSCORE", .handler = &ZScore, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "1.2.0", .complexity = "O(1)",
     .summary = "Tells the score of a member.", .args = kMemberArgs},
    {.name = "ZMSCORE", .handler = &ZMScore, .arity = -3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = "O(N) with N members",
     .summary = "Tells the scores of several members.", .args = kMembersArgs},
    {.name = "ZRANK", .handler = &ZRank, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.0.0", .complexity = "O(log(N))",
     .summary = "Tells how many members come before one.", .args = kMemberArgs},
    {.name = "ZREVRANK", .handler = &ZRevRank, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.0.0", .complexity = "O(log(N))",
     .summary = "Tells how many members come behind one.", .args = kMemberArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetCommands() { return kZsetCommands; }

}  // namespace idemd::server
