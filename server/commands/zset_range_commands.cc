// Ranges of sorted sets: ZRANGE in all its forms, older names of them, ZRANGESTORE, and counting and removing by range.
#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"
#include "server/commands/zset_edit.h"
#include "server/commands/zset_ranges.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::SortedSet;

enum class By : uint8_t { kRank, kScore, kLex };

// One range as it was asked for, whatever it is by.
struct Request {
  By by = By::kRank;
  bool reverse = false;
  bool with_scores = false;
  int64_t offset = 0;
  int64_t limit = -1;  // negative: all
  int64_t start = 0, stop = 0;
  ScoreRange scores = {};
  LexRange lex = {};
};

// Which of `by` and `reverse` the words may choose.
struct Choices {
  bool by = false;
  bool reverse = false;
  bool with_scores = true;
};

// Options from words[first] on. False: the error was written.
bool ReadOptions(Context& c, size_t first, Choices choices, Request* request) {
  for (size_t i = first; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    if (choices.with_scores && absl::EqualsIgnoreCase(word, "withscores")) {
      request->with_scores = true;
    } else if (c.words.size() - i > 2 && absl::EqualsIgnoreCase(word, "limit")) {
      if (!c.Int(i + 1, &request->offset) || !c.Int(i + 2, &request->limit)) return false;
      i += 2;
    } else if (choices.reverse && absl::EqualsIgnoreCase(word, "rev")) {
      request->reverse = true;
      choices.reverse = false;
    } else if (choices.by && absl::EqualsIgnoreCase(word, "bylex")) {
      request->by = By::kLex;
      choices.by = false;
    } else if (choices.by && absl::EqualsIgnoreCase(word, "byscore")) {
      request->by = By::kScore;
      choices.by = false;
    } else {
      c.Syntax();
      return false;
    }
  }
  if (request->limit != -1 && request->by == By::kRank) {
    c.reply.Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return false;
  }
  if (request->with_scores && request->by == By::kLex) {
    c.reply.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

// The bounds at words[first] and behind it; downwards the higher one comes first.
bool ReadBounds(Context& c, size_t first, Request* request) {
  const size_t min = first + (request->reverse ? 1 : 0), max = first + (request->reverse ? 0 : 1);
  switch (request->by) {
    case By::kRank:
      return c.Int(first, &request->start) && c.Int(first + 1, &request->stop);
    case By::kScore:
      if (request->scores.Read(c.words[min], c.words[max])) return true;
      c.reply.Error(errors::kScoreRange);
      return false;
    case By::kLex:
      if (request->lex.Read(c.words[min], c.words[max])) return true;
      c.reply.Error(errors::kLexRange);
      return false;
  }
  return false;
}

// In ranks from the lowest up.
RankRange Resolve(const Request& request, const SortedSet& set) {
  switch (request.by) {
    case By::kRank:
      return ClampRanks(request.start, request.stop, set.size());
    case By::kScore:
      return request.scores.In(set);
    case By::kLex:
      return request.lex.In(set);
  }
  return {};
}

// As the request counts: from the highest down if it is reversed, and with its limit.
RankRange Chosen(const Request& request, const SortedSet& set) {
  RankRange range = Resolve(request, set);
  if (request.by == By::kRank) return range;
  if (request.reverse) range.first = set.size() - range.first - range.count;
  if (request.offset < 0 || static_cast<uint64_t>(request.offset) >= range.count) return {};
  range.first += static_cast<size_t>(request.offset);
  range.count -= static_cast<size_t>(request.offset);
  if (request.limit >= 0) range.count = static_cast<size_t>(std::min<uint64_t>(range.count, static_cast<uint64_t>(request.limit)));
  return range;
}

// In RESP3 each member is an array with its score.
void ReplyRange(Context& c, const SortedSet& set, RankRange range, bool reverse, bool with_scores) {
  const bool nested = with_scores && c.reply.resp() > 2;
  c.reply.Array(with_scores && !nested ? range.count * 2 : range.count);
  set.ForRange(range.first, range.count, reverse, [&](absl::string_view member, double score) {
    if (nested) c.reply.Array(2);
    c.reply.Bulk(member);
    if (with_scores) c.reply.Double(score);
  });
}

void Range(Context& c, Request request, Choices choices) {
  if (!ReadOptions(c, 4, choices, &request) || !ReadBounds(c, 2, &request)) return;
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  if (set == nullptr) return c.reply.Array(0);
  ReplyRange(c, *set, Chosen(request, *set), request.reverse, request.with_scores);
}

void ZRange(Context& c) { Range(c, {}, {.by = true, .reverse = true}); }
void ZRevRange(Context& c) { Range(c, {.reverse = true}, {}); }
void ZRangeByScore(Context& c) { Range(c, {.by = By::kScore}, {}); }
void ZRevRangeByScore(Context& c) { Range(c, {.by = By::kScore, .reverse = true}, {}); }
void ZRangeByLex(Context& c) { Range(c, {.by = By::kLex}, {}); }
void ZRevRangeByLex(Context& c) { Range(c, {.by = By::kLex, .reverse = true}, {}); }

void ZRangeStore(Context& c) {
  Request request;
  if (!ReadOptions(c, 5, {.by = true, .reverse = true, .with_scores = false}, &request) || !ReadBounds(c, 3, &request)) return;
  const HashedKey to = c.Key(1), from = c.Key(2);
  c.unit.LockKeys({to, from});
  const storage::KeyView view = c.unit.Find(c.db(), from);
  CountRead(c, view);
  const SortedSet* set = nullptr;
  if (!ReadSortedSet(c, view, &set)) return;
  const RankRange range = set == nullptr ? RankRange() : Chosen(request, *set);
  // Redis knows the number in advance only here; it matters to what a -0 becomes.
  auto copy = std::make_unique<SortedSet>(request.by == By::kRank ? range.count : 0, 0);
  if (set != nullptr) {
    set->ForRange(range.first, range.count, request.reverse,
                  [&](absl::string_view member, double score) { copy->Set(member, score); });
  }
  StoreSortedSet(c, to, std::move(copy));
}

void Count(Context& c, Request request) {
  if (!ReadBounds(c, 2, &request)) return;
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  c.reply.Integer(set == nullptr ? 0 : static_cast<int64_t>(Resolve(request, *set).count));
}

void ZCount(Context& c) { Count(c, {.by = By::kScore}); }
void ZLexCount(Context& c) { Count(c, {.by = By::kLex}); }

void RemoveRange(Context& c, Request request) {
  if (!ReadBounds(c, 2, &request)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, key, &set)) return;
  if (set == nullptr) return c.reply.Integer(0);
  const RankRange range = Resolve(request, *set);
  RemoveRanks(c, key, range.first, range.count);
  c.reply.Integer(static_cast<int64_t>(range.count));
}

void ZRemRangeByRank(Context& c) { RemoveRange(c, {}); }
void ZRemRangeByScore(Context& c) { RemoveRange(c, {.by = By::kScore}); }
void ZRemRangeByLex(Context& c) { RemoveRange(c, {.by = By::kLex}); }

constexpr ArgSpec kSortByArgs[] = {{.name = "byscore", .type = ArgType::kToken, .token = "BYSCORE"},
                                   {.name = "bylex", .type = ArgType::kToken, .token = "BYLEX"}};
constexpr ArgSpec kLimitArgs[] = {{.name = "offset", .type = ArgType::kInteger}, {.name = "count", .type = ArgType::kInteger}};
constexpr ArgSpec kWithScores = {.name = "withscores", .type = ArgType::kToken, .token = "WITHSCORES", .optional = true};
constexpr ArgSpec kWithScoresSince2 = {
    .name = "withscores", .type = ArgType::kToken, .token = "WITHSCORES", .optional = true, .since = "2.0.0"};
constexpr ArgSpec kLimit = {
    .name = "offset_count", .type = ArgType::kBlock, .token = "LIMIT", .optional = true, .args = kLimitArgs};
constexpr ArgSpec kKey = {.name = "key", .type = ArgType::kKey};
constexpr ArgSpec kMinScore = {.name = "min", .type = ArgType::kDouble}, kMaxScore = {.name = "max", .type = ArgType::kDouble};
constexpr ArgSpec kMin = {.name = "min"}, kMax = {.name = "max"};

constexpr ArgSpec kRangeArgs[] = {
    kKey,
    {.name = "start"},
    {.name = "stop"},
    {.name = "sortby", .type = ArgType::kOneOf, .optional = true, .since = "6.2.0", .args = kSortByArgs},
    {.name = "rev", .type = ArgType::kToken, .token = "REV", .optional = true, .since = "6.2.0"},
    {.name = "offset_count", .type = ArgType::kBlock, .token = "LIMIT", .optional = true, .since = "6.2.0", .args = kLimitArgs},
    kWithScores};
constexpr ArgSpec kRangeStoreArgs[] = {{.name = "dst", .type = ArgType::kKey},
                                       {.name = "src", .type = ArgType::kKey},
                                       kMin,
                                       kMax,
                                       {.name = "sortby", .type = ArgType::kOneOf, .optional = true, .args = kSortByArgs},
                                       {.name = "rev", .type = ArgType::kToken, .token = "REV", .optional = true},
                                       kLimit};
constexpr ArgSpec kByScoreArgs[] = {kKey, kMinScore, kMaxScore, kWithScoresSince2, kLimit};
constexpr ArgSpec kRevByScoreArgs[] = {kKey, kMaxScore, kMinScore, kWithScores, kLimit};
constexpr ArgSpec kByLexArgs[] = {kKey, kMin, kMax, kLimit};
constexpr ArgSpec kRevByLexArgs[] = {kKey, kMax, kMin, kLimit};
constexpr ArgSpec kRanksArgs[] = {
    kKey, {.name = "start", .type = ArgType::kInteger}, {.name = "stop", .type = ArgType::kInteger}};
constexpr ArgSpec kRevRangeArgs[] = {
    kKey, {.name = "start", .type = ArgType::kInteger}, {.name = "stop", .type = ArgType::kInteger}, kWithScores};
constexpr ArgSpec kScoresArgs[] = {kKey, kMinScore, kMaxScore};
constexpr ArgSpec kLexArgs[] = {kKey, kMin, kMax};

constexpr const char* kRangeComplexity = "O(log(N)+M) with N members, M of which are returned";
constexpr const char* kRemoveComplexity = "O(log(N)+M) with N members, M of which go";

constexpr CommandSpec kZsetRangeCommands[] = {
    {.name = "ZRANGE", .handler = &ZRange, .arity = -4, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kSortedSet, .since = "1.2.0", .complexity = kRangeComplexity,
     .summary = "Lists members by rank, score or bytes.", .args = kRangeArgs},
    {.name = "ZRANGESTORE", .handler = &ZRangeStore, .arity = -5, .flags = kWrite | kDenyOom, .keys = Keys::Range(1, 2),
     .key_flags = "OW UPDATE", .group = Group::kSortedSet, .since = "6.2.0", .complexity = kRangeComplexity,
     .summary = "Stores a range of members at another key.", .args = kRangeStoreArgs},
    {.name = "ZREVRANGE", .handler = &ZRevRange, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "1.2.0", .complexity = kRangeComplexity,
     .summary = "Lists members by rank, from the highest down.", .args = kRevRangeArgs},
    {.name = "ZRANGEBYSCORE", .handler = &ZRangeByScore, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "1.0.5", .complexity = kRangeComplexity,
     .summary = "Lists members by score.", .args = kByScoreArgs},
    {.name = "ZREVRANGEBYSCORE", .handler = &ZRevRangeByScore, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.2.0", .complexity = kRangeComplexity,
     .summary = "Lists members by score, from the highest down.", .args = kRevByScoreArgs},
    {.name = "ZRANGEBYLEX", .handler = &ZRangeByLex, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.8.9", .complexity = kRangeComplexity,
     .summary = "Lists members of one score by their bytes.", .args = kByLexArgs},
    {.name = "ZREVRANGEBYLEX", .handler = &ZRevRangeByLex, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.8.9", .complexity = kRangeComplexity,
     .summary = "Lists members of one score by their bytes, from the highest down.", .args = kRevByLexArgs},
    {.name = "ZCOUNT", .handler = &ZCount, .arity = 4, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.0.0", .complexity = "O(log(N))",
     .summary = "Counts members by score.", .args = kScoresArgs},
    {.name = "ZLEXCOUNT", .handler = &ZLexCount, .arity = 4, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "2.8.9", .complexity = "O(log(N))",
     .summary = "Counts members of one score by their bytes.", .args = kLexArgs},
    {.name = "ZREMRANGEBYRANK", .handler = &ZRemRangeByRank, .arity = 4, .flags = kWrite, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kSortedSet, .since = "2.0.0", .complexity = kRemoveComplexity,
     .summary = "Takes members out by rank.", .args = kRanksArgs},
    {.name = "ZREMRANGEBYSCORE", .handler = &ZRemRangeByScore, .arity = 4, .flags = kWrite, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kSortedSet, .since = "1.2.0", .complexity = kRemoveComplexity,
     .summary = "Takes members out by score.", .args = kScoresArgs},
    {.name = "ZREMRANGEBYLEX", .handler = &ZRemRangeByLex, .arity = 4, .flags = kWrite, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kSortedSet, .since = "2.8.9", .complexity = kRemoveComplexity,
     .summary = "Takes members of one score out by their bytes.", .args = kLexArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetRangeCommands() { return kZsetRangeCommands; }

}  // namespace idemd::server
