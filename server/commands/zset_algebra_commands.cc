// Several sorted sets, or sets, put together: ZUNION, ZINTER, ZDIFF, their STORE forms, ZINTERCARD.
//
// A plain set counts as a sorted set whose scores are all 1.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "storage/collection/set.h"
#include "server/commands/numkeys.h"
#include "server/commands/option_word.h"
#include "server/commands/string_reply.h"
#include "server/commands/table.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::Collection;
using storage::HashedKey;
using storage::SortedSet;
using storage::ValueType;

enum class Operation : uint8_t { kUnion, kInter, kDiff };
enum class Aggregate : uint8_t { kSum, kMin, kMax };

// One input: nothing, a set or a sorted set. It is not changed before the result is whole.
struct Source {
  const Collection* collection = nullptr;
  double weight = 1;

  size_t size() const { return collection == nullptr ? 0 : collection->size(); }
  const SortedSet* sorted() const {
    return collection != nullptr && collection->type() == ValueType::kSortedSet ? static_cast<const SortedSet*>(collection)
                                                                                : nullptr;
  }
  std::optional<double> Score(absl::string_view member) const {
    if (collection == nullptr) return std::nullopt;
    if (sorted() != nullptr) return sorted()->Score(member);
    return static_cast<const storage::Set*>(collection)->Contains(member) ? std::optional(1.0) : std::nullopt;
  }
  void ForEach(SortedSet::Each each) const {
    if (collection == nullptr) return;
    if (sorted() != nullptr) return sorted()->ForRange(0, size(), false, each);
    collection->ForEach([&](absl::string_view member) { each(member, 1); });
  }
};

struct Request {
  absl::InlinedVector<Source, 4> sources;
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;  // of ZINTERCARD; 0: none
};

// What may follow the keys.
struct Choices {
  bool with_scores = false;
  bool limit = false;
  bool weights = false;  // and AGGREGATE
};

// Infinity less infinity, or nothing times infinity, counts as nothing.
double Weighted(double score, double weight) {
  const double product = score * weight;
  return std::isnan(product) ? 0 : product;
}

double Combine(Aggregate aggregate, double a, double b) {
  switch (aggregate) {
    case Aggregate::kSum:
      return std::isnan(a + b) ? 0 : a + b;
    case Aggregate::kMin:
      return b < a ? b : a;
    case Aggregate::kMax:
      return b > a ? b : a;
  }
  return a;
}

// --- the words

bool ReadAggregate(absl::string_view word, Aggregate* aggregate) {
  switch (OptionWord(word)) {
    case OptionWord("sum"):
      *aggregate = Aggregate::kSum;
      return true;
    case OptionWord("min"):
      *aggregate = Aggregate::kMin;
      return true;
    case OptionWord("max"):
      *aggregate = Aggregate::kMax;
      return true;
    default:
      return false;
  }
}

bool ReadLimit(Context& c, size_t i, int64_t* limit) {
  constexpr absl::string_view kNegative = "ERR LIMIT can't be negative";
  if (!c.Int(i, limit, kNegative)) return false;
  if (*limit >= 0) return true;
  c.reply.Error(kNegative);
  return false;
}

// Words behind the keys. False: the error was written.
bool ReadOptions(Context& c, size_t i, const Choices& choices, Request* request) {
  const size_t sources = request->sources.size();
  while (i < c.words.size()) {
    const absl::string_view word = c.words[i];
    const size_t behind = c.words.size() - i - 1;
    if (choices.weights && behind >= sources && absl::EqualsIgnoreCase(word, "weights")) {
      for (Source& source : request->sources) {
        if (protocol::ParseDouble(c.words[++i], &source.weight)) continue;
        c.reply.Error("ERR weight value is not a float");
        return false;
      }
    } else if (choices.weights && behind >= 1 && absl::EqualsIgnoreCase(word, "aggregate")) {
      if (!ReadAggregate(c.words[++i], &request->aggregate)) {
        c.Syntax();
        return false;
      }
    } else if (choices.with_scores && absl::EqualsIgnoreCase(word, "withscores")) {
      request->with_scores = true;
    } else if (choices.limit && behind >= 1 && absl::EqualsIgnoreCase(word, "limit")) {
      if (!ReadLimit(c, ++i, &request->limit)) return false;
    } else {
      c.Syntax();
      return false;
    }
    ++i;
  }
  return true;
}

// Locks the keys behind words[at], their number, and `to`, and reads the rest. False: the error was written.
bool ReadRequest(Context& c, size_t at, const HashedKey* to, const Choices& choices, Request* request) {
  int64_t count = 0;
  if (!c.Int(at, &count)) return false;
  if (count < 1) {
    c.reply.Error(absl::StrCat("ERR at least 1 input key is needed for '",
                               c.services.commands.EntryOf(*c.spec).full_name, "' command"));
    return false;
  }
  if (static_cast<uint64_t>(count) > c.words.size() - at - 1) {
    c.Syntax();
    return false;
  }
  const auto keys = static_cast<size_t>(count);
  absl::InlinedVector<HashedKey, 4> locked;
  for (size_t i = 1; i <= keys; ++i) locked.push_back(c.Key(at + i));
  if (to != nullptr) locked.push_back(*to);
  c.unit.LockKeys(locked);
  request->sources.resize(keys);
  for (size_t i = 0; i < keys; ++i) {
    const storage::KeyView view = c.unit.Find(c.db(), locked[i]);
    CountRead(c, view);
    if (view && view.type != ValueType::kSortedSet && view.type != ValueType::kSet) {
      c.reply.Error(errors::kWrongType);
      return false;
    }
    request->sources[i].collection = view.collection;
  }
  return ReadOptions(c, at + 1 + keys, choices, request);
}

// --- the work

using Each = SortedSet::Each;

void Unite(const Request& request, Each each) {
  absl::flat_hash_map<std::string, double> scores;
  for (const Source& source : request.sources) {
    source.ForEach([&](absl::string_view member, double score) {
      const double weighted = Weighted(score, source.weight);
      const auto [it, fresh] = scores.try_emplace(member, weighted);
      if (!fresh) it->second = Combine(request.aggregate, it->second, weighted);
    });
  }
  for (const auto& [member, score] : scores) each(member, score);
}

// The sources stand from the smallest up. False from `each` ends it.
void Intersect(const Request& request, absl::FunctionRef<bool(absl::string_view member, double score)> each) {
  const Source& smallest = request.sources[0];
  bool go_on = true;
  smallest.ForEach([&](absl::string_view member, double score) {
    if (!go_on) return;
    double sum = Weighted(score, smallest.weight);
    for (size_t i = 1; i < request.sources.size(); ++i) {
      const Source& source = request.sources[i];
      const std::optional<double> other = source.collection == smallest.collection ? score : source.Score(member);
      if (!other) return;
      sum = Combine(request.aggregate, sum, *other * source.weight);
    }
    go_on = each(member, sum);
  });
}

void Subtract(const Request& request, Each each) {
  request.sources[0].ForEach([&](absl::string_view member, double score) {
    for (size_t i = 1; i < request.sources.size(); ++i)
      if (request.sources[i].Score(member)) return;
    each(member, score);
  });
}

struct Scored {
  std::string member;
  double score;
};

// In the order of a sorted set. It is none yet: scores of a small one know no -0, which replies do.
std::vector<Scored> Result(Operation operation, Request& request) {
  std::vector<Scored> result;
  const auto put = [&](absl::string_view member, double score) { result.push_back({std::string(member), score}); };
  if (operation == Operation::kDiff) {
    Subtract(request, put);
  } else {
    std::stable_sort(request.sources.begin(), request.sources.end(),
                     [](const Source& a, const Source& b) { return a.size() < b.size(); });
    if (operation == Operation::kUnion) {
      Unite(request, put);
    } else {
      Intersect(request, [&](absl::string_view member, double score) {
        put(member, score);
        return true;
      });
    }
  }
  std::sort(result.begin(), result.end(),
            [](const Scored& a, const Scored& b) { return storage::ScoredBefore(a.score, a.member, b.score, b.member); });
  return result;
}

void Show(Context& c, Operation operation) {
  Request request;
  if (!ReadRequest(c, 1, nullptr, {.with_scores = true, .weights = operation != Operation::kDiff}, &request)) return;
  const std::vector<Scored> result = Result(operation, request);
  const bool nested = request.with_scores && c.reply.resp() > 2;
  c.reply.Array(request.with_scores && !nested ? result.size() * 2 : result.size());
  for (const Scored& one : result) {
    if (nested) c.reply.Array(2);
    c.reply.Bulk(one.member);
    if (request.with_scores) c.reply.Double(one.score);
  }
}

void Store(Context& c, Operation operation) {
  Request request;
  const HashedKey to = c.Key(1);
  if (!ReadRequest(c, 2, &to, {.weights = operation != Operation::kDiff}, &request)) return;
  const std::vector<Scored> result = Result(operation, request);
  size_t longest = 0;
  for (const Scored& one : result) longest = std::max(longest, one.member.size());
  auto set = std::make_unique<SortedSet>(result.size(), longest);
  for (const Scored& one : result) set->Set(one.member, one.score);
  StoreSortedSet(c, to, std::move(set));
}

void ZUnion(Context& c) { Show(c, Operation::kUnion); }
void ZInter(Context& c) { Show(c, Operation::kInter); }
void ZDiff(Context& c) { Show(c, Operation::kDiff); }
void ZUnionStore(Context& c) { Store(c, Operation::kUnion); }
void ZInterStore(Context& c) { Store(c, Operation::kInter); }
void ZDiffStore(Context& c) { Store(c, Operation::kDiff); }

void ZInterCard(Context& c) {
  Request request;
  if (!ReadRequest(c, 1, nullptr, {.limit = true}, &request)) return;
  std::stable_sort(request.sources.begin(), request.sources.end(),
                   [](const Source& a, const Source& b) { return a.size() < b.size(); });
  int64_t count = 0;
  Intersect(request, [&](absl::string_view, double) { return ++count != request.limit; });
  c.reply.Integer(count);
}

bool KeysOfShow(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysBehindNumber(words, 1, positions);
}
bool KeysOfStore(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  positions.push_back(1);
  return KeysBehindNumber(words, 2, positions);
}

constexpr ArgSpec kAggregateArgs[] = {{.name = "sum", .type = ArgType::kToken, .token = "SUM"},
                                      {.name = "min", .type = ArgType::kToken, .token = "MIN"},
                                      {.name = "max", .type = ArgType::kToken, .token = "MAX"}};
constexpr ArgSpec kNumKeys = {.name = "numkeys", .type = ArgType::kInteger};
constexpr ArgSpec kKeys = {.name = "key", .type = ArgType::kKey, .multiple = true};
constexpr ArgSpec kDestination = {.name = "destination", .type = ArgType::kKey};
constexpr ArgSpec kWeights = {
    .name = "weight", .type = ArgType::kInteger, .token = "WEIGHTS", .optional = true, .multiple = true};
constexpr ArgSpec kAggregate = {
    .name = "aggregate", .type = ArgType::kOneOf, .token = "AGGREGATE", .optional = true, .args = kAggregateArgs};
constexpr ArgSpec kWithScores = {.name = "withscores", .type = ArgType::kToken, .token = "WITHSCORES", .optional = true};

constexpr ArgSpec kShowArgs[] = {kNumKeys, kKeys, kWeights, kAggregate, kWithScores};
constexpr ArgSpec kDiffArgs[] = {kNumKeys, kKeys, kWithScores};
constexpr ArgSpec kStoreArgs[] = {kDestination, kNumKeys, kKeys, kWeights, kAggregate};
constexpr ArgSpec kDiffStoreArgs[] = {kDestination, kNumKeys, kKeys};
constexpr ArgSpec kInterCardArgs[] = {
    kNumKeys, kKeys, {.name = "limit", .type = ArgType::kInteger, .token = "LIMIT", .optional = true}};

constexpr const char* kUnionComplexity = "O(N)+O(M*log(M)) with N members in all, M in the result";
constexpr const char* kInterComplexity = "O(N*K)+O(M*log(M)) with N members in the smallest of K keys, M in the result";
constexpr const char* kDiffComplexity = "O(N*K)+O(M*log(M)) with N members in the first of K keys, M in the result";

constexpr CommandSpec kZsetAlgebraCommands[] = {
    {.name = "ZUNION", .handler = &ZUnion, .arity = -3, .flags = kReadonly, .find_keys = &KeysOfShow,
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = kUnionComplexity,
     .summary = "Lists what is in any of several sorted sets.", .args = kShowArgs},
    {.name = "ZINTER", .handler = &ZInter, .arity = -3, .flags = kReadonly, .find_keys = &KeysOfShow,
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = kInterComplexity,
     .summary = "Lists what is in all of several sorted sets.", .args = kShowArgs},
    {.name = "ZDIFF", .handler = &ZDiff, .arity = -3, .flags = kReadonly, .find_keys = &KeysOfShow,
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = kDiffComplexity,
     .summary = "Lists what is in the first of several sorted sets alone.", .args = kDiffArgs},
    {.name = "ZUNIONSTORE", .handler = &ZUnionStore, .arity = -4, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .find_keys = &KeysOfStore, .key_flags = "OW UPDATE", .group = Group::kSortedSet, .since = "2.0.0",
     .complexity = kUnionComplexity, .summary = "Stores what is in any of several sorted sets.", .args = kStoreArgs},
    {.name = "ZINTERSTORE", .handler = &ZInterStore, .arity = -4, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .find_keys = &KeysOfStore, .key_flags = "OW UPDATE", .group = Group::kSortedSet, .since = "2.0.0",
     .complexity = kInterComplexity, .summary = "Stores what is in all of several sorted sets.", .args = kStoreArgs},
    {.name = "ZDIFFSTORE", .handler = &ZDiffStore, .arity = -4, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .find_keys = &KeysOfStore, .key_flags = "OW UPDATE", .group = Group::kSortedSet, .since = "6.2.0",
     .complexity = kDiffComplexity, .summary = "Stores what is in the first of several sorted sets alone.",
     .args = kDiffStoreArgs},
    {.name = "ZINTERCARD", .handler = &ZInterCard, .arity = -3, .flags = kReadonly, .find_keys = &KeysOfShow,
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "7.0.0",
     .complexity = "O(N*K) with N members in the smallest of K keys",
     .summary = "Counts what is in all of several sorted sets.", .args = kInterCardArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetAlgebraCommands() { return kZsetAlgebraCommands; }

}  // namespace idemd::server
