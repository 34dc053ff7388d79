// SORT, SORT_RO: the elements of a list, set or sorted set in order, or what keys named after them hold.
//
// Which keys a pattern leads to is known only when the elements are: a SORT that follows patterns takes all locks.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/sort_options.h"
#include "storage/collection/hash.h"
#include "storage/collection/rdb_value.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::ValueType;

// Texts one after another.
class Texts {
 public:
  size_t Add(absl::string_view text) {
    const size_t at = bytes_.size();
    bytes_.append(text.data(), text.size());
    return at;
  }
  absl::string_view At(size_t at, size_t size) const { return absl::string_view(bytes_).substr(at, size); }

 private:
  std::string bytes_;
};

// Found under a pattern, in which an element takes the place of the star. False: nothing is there.
class PatternLookup {
 public:
  explicit PatternLookup(Context& c) : c_(c) {}

  // `value` is good until the next call.
  bool Find(absl::string_view pattern, absl::string_view element, absl::string_view* value) {
    if (pattern == "#") {
      *value = element;
      return true;
    }
    const size_t star = pattern.find('*');
    if (star == absl::string_view::npos) return false;
    const absl::string_view behind = pattern.substr(star + 1);
    const size_t arrow = behind.find("->");
    const bool of_hash = arrow != absl::string_view::npos && arrow + 2 < behind.size();
    key_.assign(pattern.data(), star);
    key_.append(element.data(), element.size());
    const absl::string_view rest = of_hash ? behind.substr(0, arrow) : behind;
    key_.append(rest.data(), rest.size());
    const KeyView view = c_.unit.Find(c_.db(), HashedKey(key_));
    if (!of_hash) {
      if (!storage::IsString(view.type)) return false;
      *value = storage::StringValue(view, record_);
      return true;
    }
    if (view.type != ValueType::kHash) return false;
    return static_cast<const storage::Hash*>(view.collection)->Get(behind.substr(arrow + 2), room_, value);
  }

 private:
  Context& c_;
  std::string key_, record_;
  storage::Hash::Digits room_;
};

// The number that a whole text is, as strtod() reads it. False: it is none.
bool ReadScore(absl::string_view text, double* score) {
  const std::string zero_ended(text);
  char* end = nullptr;
  errno = 0;
  *score = std::strtod(zero_ended.c_str(), &end);
  return *end == '\0' && errno != ERANGE && !std::isnan(*score);
}

struct Sorted {
  size_t text_at = 0, text_size = 0;      // the element
  double score = 0;                       // without ALPHA
  size_t weight_at = 0, weight_size = 0;  // with ALPHA and BY
  bool has_weight = false;
};

class Sort {
 public:
  Sort(Context& c, const SortOptions& options) : c_(c), options_(options), lookup_(c) {}

  void Take(const storage::Collection* collection);
  // False: there is a score that is no number.
  bool Order();
  // The elements that LIMIT leaves, or what GET finds for them, in order; null where nothing is found.
  template <class Each>
  void ForEachResult(Each each);
  size_t results() const { return items_.size() * (options_.gets.empty() ? 1 : options_.gets.size()); }

 private:
  absl::string_view TextOf(const Sorted& item) const { return texts_.At(item.text_at, item.text_size); }
  absl::string_view WeightOf(const Sorted& item) const { return weights_.At(item.weight_at, item.weight_size); }
  bool Weigh(Sorted& item);
  int Compare(const Sorted& a, const Sorted& b) const;
  void Limit();

  Context& c_;
  const SortOptions& options_;
  PatternLookup lookup_;
  ValueType type_ = ValueType::kNone;
  bool sorts_ = true, alpha_ = false, by_ = false;
  Texts texts_, weights_;
  std::vector<Sorted> items_;
};

void Sort::Take(const storage::Collection* collection) {
  sorts_ = options_.sorts;
  alpha_ = options_.alpha;
  by_ = options_.has_by;
  if (collection == nullptr) return;
  type_ = collection->type();
  // A set has no order that could be stored, or that a script could count on: so it gets one.
  if (!sorts_ && type_ == ValueType::kSet && (options_.store != 0 || c_.session.in_script)) {
    sorts_ = alpha_ = true;
    by_ = false;
  }
  items_.reserve(collection->size());
  collection->ForEach([&](absl::string_view element) {
    Sorted item;
    item.text_size = element.size();
    item.text_at = texts_.Add(element);
    items_.push_back(item);
  });
}

bool Sort::Weigh(Sorted& item) {
  absl::string_view value = TextOf(item);
  if (by_ && !lookup_.Find(options_.by, value, &value)) return true;
  if (!alpha_) return ReadScore(value, &item.score);
  if (!by_) return true;
  item.has_weight = true;
  item.weight_size = value.size();
  item.weight_at = weights_.Add(value);
  return true;
}

int Sort::Compare(const Sorted& a, const Sorted& b) const {
  if (!alpha_) {
    if (a.score != b.score) return a.score < b.score ? -1 : 1;
    return TextOf(a).compare(TextOf(b));
  }
  if (!by_) return TextOf(a).compare(TextOf(b));
  if (!a.has_weight || !b.has_weight) return static_cast<int>(a.has_weight) - static_cast<int>(b.has_weight);
  return WeightOf(a).compare(WeightOf(b));
}

bool Sort::Order() {
  if (sorts_) {
    bool good = true;
    for (Sorted& item : items_) good &= Weigh(item);
    if (!good) return false;
    std::stable_sort(items_.begin(), items_.end(), [this](const Sorted& a, const Sorted& b) {
      const int order = Compare(a, b);
      return options_.descending ? order > 0 : order < 0;
    });
  } else if (options_.descending && type_ != ValueType::kSet) {
    std::reverse(items_.begin(), items_.end());
  }
  Limit();
  return true;
}

void Sort::Limit() {
  const auto size = static_cast<int64_t>(items_.size());
  const int64_t start = std::clamp<int64_t>(options_.limit_start, 0, size);
  const int64_t most = options_.limit_count < 0 ? size : std::min(options_.limit_count, size);
  const int64_t end = std::min(start + most, size);
  items_.erase(items_.begin() + end, items_.end());
  items_.erase(items_.begin(), items_.begin() + start);
}

template <class Each>
void Sort::ForEachResult(Each each) {
  for (const Sorted& item : items_) {
    const absl::string_view element = TextOf(item);
    if (options_.gets.empty()) each(&element);
    for (absl::string_view pattern : options_.gets) {
      absl::string_view value;
      each(lookup_.Find(pattern, element, &value) ? &value : nullptr);
    }
  }
}

void Store(Context& c, const HashedKey& key, Sort& sort) {
  const size_t results = sort.results();
  if (results == 0) {
    if (c.unit.Remove(c.db(), key)) c.Notify(storage::EventClass::kGeneric, "del", key);
    return c.reply.Integer(0);
  }
  storage::RdbListText list(results);
  sort.ForEachResult([&](const absl::string_view* value) { list.Append(value == nullptr ? absl::string_view() : *value); });
  std::unique_ptr<storage::Collection> made = list.Make();
  if (made == nullptr) return c.reply.Error(errors::kNoLists);
  c.unit.SetCollection(c.db(), key, std::move(made), storage::kNoDeadline);
  c.Notify(storage::EventClass::kList, "sortstore", key);
  c.reply.Integer(static_cast<int64_t>(results));
}

void SortKey(Context& c, bool may_store) {
  SortOptions options;
  if (!ReadSortOptions(c, may_store, &options)) return;
  absl::InlinedVector<HashedKey, 2> keys{c.Key(1)};
  if (options.store != 0) keys.push_back(c.Key(options.store));
  if (options.follows_patterns())
    c.unit.LockAll();
  else
    c.unit.LockKeys(keys);
  c.unit.ReportMisses(true);
  const KeyView view = c.unit.Find(c.db(), keys[0]);
  const bool sortable = view.type == ValueType::kNone || view.type == ValueType::kList || view.type == ValueType::kSet ||
                        view.type == ValueType::kSortedSet;
  if (!sortable) return c.reply.Error(errors::kWrongType);
  Sort sort(c, options);
  sort.Take(view.collection);
  if (!sort.Order()) return c.reply.Error(errors::kSortScore);
  if (options.store != 0) return Store(c, keys[1], sort);
  c.reply.Array(sort.results());
  sort.ForEachResult([&](const absl::string_view* value) { value == nullptr ? c.reply.Null() : c.reply.Bulk(*value); });
}

void SortAndStore(Context& c) { SortKey(c, true); }
void SortReadOnly(Context& c) { SortKey(c, false); }

constexpr ArgSpec kLimitArgs[] = {{.name = "offset", .type = ArgType::kInteger},
                                  {.name = "count", .type = ArgType::kInteger}};
constexpr ArgSpec kOrderArgs[] = {{.name = "asc", .type = ArgType::kToken, .token = "ASC"},
                                  {.name = "desc", .type = ArgType::kToken, .token = "DESC"}};
constexpr ArgSpec kKeyArg = {.name = "key", .type = ArgType::kKey};
constexpr ArgSpec kByArg = {.name = "pattern", .type = ArgType::kPattern, .token = "BY", .optional = true, .key_spec = 1};
constexpr ArgSpec kLimitArg = {
    .name = "offset_count", .type = ArgType::kBlock, .token = "LIMIT", .optional = true, .args = kLimitArgs};
constexpr ArgSpec kGetArg = {
    .name = "pattern", .type = ArgType::kPattern, .token = "GET", .optional = true, .multiple = true,
    .multiple_token = true, .key_spec = 1};
constexpr ArgSpec kOrderArg = {.name = "order", .type = ArgType::kOneOf, .optional = true, .args = kOrderArgs};
constexpr ArgSpec kAlphaArg = {.name = "sorting", .type = ArgType::kToken, .token = "ALPHA", .optional = true};
constexpr ArgSpec kStoreArg = {.name = "destination", .type = ArgType::kKey, .token = "STORE", .optional = true, .key_spec = 2};
constexpr ArgSpec kSortArgs[] = {kKeyArg, kByArg, kLimitArg, kGetArg, kOrderArg, kAlphaArg, kStoreArg};
constexpr ArgSpec kSortRoArgs[] = {kKeyArg, kByArg, kLimitArg, kGetArg, kOrderArg, kAlphaArg};

constexpr char kCost[] = "O(N+M*log(M)) with N elements and M of them returned; O(N) when nothing is sorted";
// The key, those that BY and GET lead to, and that of STORE.
constexpr KeySpec kSortKeys[] = {{.flags = "RO ACCESS", .index = 1}, {.flags = "RO ACCESS"}, {.flags = "OW UPDATE"}};
constexpr KeySpec kSortRoKeys[] = {{.flags = "RO ACCESS", .index = 1}, {.flags = "RO ACCESS"}};
constexpr CommandSpec kSortCommands[] = {
    {.name = "SORT", .handler = &SortAndStore, .arity = -2, .flags = kWrite | kDenyOom | kAnyKeys, .keys = Keys::At(1),
     .find_keys = &FindSortKeys, .key_specs = kSortKeys, .group = Group::kGeneric, .since = "1.0.0", .complexity = kCost,
     .summary = "Sorts a list, set or sorted set, and may store what comes of it.", .args = kSortArgs,
     .categories = "set sortedset list dangerous"},
    {.name = "SORT_RO", .handler = &SortReadOnly, .arity = -2, .flags = kReadonly | kAnyKeys | kMovableKeys,
     .keys = Keys::At(1), .key_specs = kSortRoKeys, .group = Group::kGeneric, .since = "7.0.0", .complexity = kCost,
     .summary = "Sorts a list, set or sorted set.", .args = kSortRoArgs,
     .categories = "set sortedset list dangerous"}};

}  // namespace

absl::Span<const CommandSpec> SortCommands() { return kSortCommands; }

}  // namespace idemd::server
