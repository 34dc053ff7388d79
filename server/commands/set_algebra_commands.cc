// Several sets together: SINTER, SUNION, SDIFF, their STORE forms, and SINTERCARD.
//
// The keys are locked together before the first look, so that the sets are those of one moment.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"
#include "server/commands/typed_key.h"
#include "storage/collection/set.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::Set;
using KeyList = absl::InlinedVector<HashedKey, 8>;
using Sets = absl::InlinedVector<const Set*, 8>;  // null: nothing is there

// Locks words[first] to words[last - 1], and the key of the result if there is one, and looks at the sets. False: WRONGTYPE was written.
bool LookAtAll(Context& c, size_t first, size_t last, const HashedKey* result, Sets* sets) {
  KeyList keys;
  for (size_t i = first; i < last; ++i) keys.push_back(c.Key(i));
  if (result != nullptr) keys.push_back(*result);
  c.unit.LockKeys(keys);
  if (result != nullptr) keys.pop_back();
  sets->clear();
  for (const HashedKey& key : keys) {
    const storage::KeyView view = c.unit.Find(c.db(), key);
    CountRead(c, view);
    const Set* set = nullptr;
    if (!LookAs(c, view, &set)) return false;
    sets->push_back(set);
  }
  return true;
}

// Calls `each`, until it says false, for every member that all sets have.
template <class Each>
void Intersect(Sets sets, Each each) {
  if (std::find(sets.begin(), sets.end(), nullptr) != sets.end()) return;
  std::stable_sort(sets.begin(), sets.end(), [](const Set* a, const Set* b) { return a->size() < b->size(); });
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  Set::Digits room;
  const Set& smallest = *sets[0];
  for (size_t place = 0; place < smallest.size(); ++place) {
    const absl::string_view member = smallest.At(place, room);
    const auto has = [&](const Set* set) {
      return smallest.is_intset() && set->is_intset() ? set->ints().Contains(smallest.ints()[place]) : set->Contains(member);
    };
    if (std::all_of(sets.begin() + 1, sets.end(), has) && !each(member)) return;
  }
}

void AddAll(const Set* from, Set& to) {
  if (from != nullptr) from->ForEach([&](absl::string_view member) { to.Add(member); });
}

std::unique_ptr<Set> Union(const Sets& sets) {
  auto result = std::make_unique<Set>();
  for (const Set* set : sets) AddAll(set, *result);
  return result;
}

std::unique_ptr<Set> Difference(const Sets& sets) {
  auto result = std::make_unique<Set>();
  const Set* const first = sets[0];
  if (first == nullptr || std::find(sets.begin() + 1, sets.end(), first) != sets.end()) return result;
  size_t looks = 0, members = 0;
  for (const Set* set : sets) {
    if (set == nullptr) continue;
    looks += first->size();
    members += set->size();
  }
  if (looks / 2 <= members) {
    first->ForEach([&](absl::string_view member) {
      const auto has = [&](const Set* set) { return set != nullptr && set->Contains(member); };
      if (std::none_of(sets.begin() + 1, sets.end(), has)) result->Add(member);
    });
    return result;
  }
  AddAll(first, *result);
  for (const Set* set : absl::MakeSpan(sets).subspan(1)) {
    if (set != nullptr) set->ForEach([&](absl::string_view member) { result->Remove(member); });
    if (result->size() == 0) break;
  }
  return result;
}

void ReplySet(Context& c, const Set& set) {
  c.reply.Set(set.size());
  set.ForEach([&](absl::string_view member) { c.reply.Bulk(member); });
}

void Store(Context& c, const HashedKey& key, std::unique_ptr<Set> set, const char* event) {
  const size_t size = set->size();
  if (size == 0) {
    if (c.unit.Remove(c.db(), key)) c.Notify(storage::EventClass::kGeneric, "del", key);
  } else {
    c.unit.SetCollection(c.db(), key, std::move(set), storage::kNoDeadline);
    c.Notify(storage::EventClass::kSet, event, key);
  }
  c.reply.Integer(static_cast<int64_t>(size));
}

void Sinter(Context& c) {
  Sets sets;
  if (!LookAtAll(c, 1, c.words.size(), nullptr, &sets)) return;
  const size_t mark = c.reply.Mark();
  size_t shown = 0;
  Intersect(sets, [&](absl::string_view member) {
    c.reply.Bulk(member);
    ++shown;
    return true;
  });
  c.reply.InsertSet(mark, shown);
}

void SinterStore(Context& c) {
  const HashedKey key = c.Key(1);
  Sets sets;
  if (!LookAtAll(c, 2, c.words.size(), &key, &sets)) return;
  auto result = std::make_unique<Set>();
  Intersect(sets, [&](absl::string_view member) {
    result->Add(member);
    return true;
  });
  Store(c, key, std::move(result), "sinterstore");
}

void SinterCard(Context& c) {
  int64_t numkeys = 0, limit = 0;
  if (!c.Int(1, &numkeys, errors::kNumKeysPositive)) return;
  if (numkeys < 1) return c.reply.Error(errors::kNumKeysPositive);
  if (static_cast<uint64_t>(numkeys) > c.words.size() - 2) return c.reply.Error(errors::kNumKeysMany);
  const size_t end = 2 + static_cast<size_t>(numkeys);
  for (size_t i = end; i < c.words.size(); i += 2) {
    if (!absl::EqualsIgnoreCase(c.words[i], "limit") || i + 1 == c.words.size()) return c.Syntax();
    if (!c.Int(i + 1, &limit, errors::kLimitNegative)) return;
    if (limit < 0) return c.reply.Error(errors::kLimitNegative);
  }
  Sets sets;
  if (!LookAtAll(c, 2, end, nullptr, &sets)) return;
  int64_t count = 0;
  Intersect(sets, [&](absl::string_view) { return ++count != limit; });
  c.reply.Integer(count);
}

void Sunion(Context& c) {
  Sets sets;
  if (LookAtAll(c, 1, c.words.size(), nullptr, &sets)) ReplySet(c, *Union(sets));
}

void SunionStore(Context& c) {
  const HashedKey key = c.Key(1);
  Sets sets;
  if (LookAtAll(c, 2, c.words.size(), &key, &sets)) Store(c, key, Union(sets), "sunionstore");
}

void Sdiff(Context& c) {
  Sets sets;
  if (LookAtAll(c, 1, c.words.size(), nullptr, &sets)) ReplySet(c, *Difference(sets));
}

void SdiffStore(Context& c) {
  const HashedKey key = c.Key(1);
  Sets sets;
  if (LookAtAll(c, 2, c.words.size(), &key, &sets)) Store(c, key, Difference(sets), "sdiffstore");
}

bool CountedKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  int64_t numkeys = 0;
  if (words.size() < 3 || !protocol::ParseInt64(words[1], &numkeys) || numkeys < 1 ||
      static_cast<uint64_t>(numkeys) > words.size() - 2)
    return false;
  for (int i = 0; i < static_cast<int>(numkeys); ++i) positions.push_back(2 + i);
  return true;
}

constexpr ArgSpec kKeysArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true}};
constexpr ArgSpec kStoreArgs[] = {{.name = "destination", .type = ArgType::kKey},
                                  {.name = "key", .type = ArgType::kKey, .multiple = true, .key_spec = 1}};
constexpr ArgSpec kCardArgs[] = {{.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .multiple = true},
                                 {.name = "limit", .type = ArgType::kInteger, .token = "LIMIT", .optional = true}};

constexpr char kInterCost[] = "O(N*M) with N members in the smallest of M sets";
constexpr char kAllCost[] = "O(N) with N members in all sets";
constexpr KeySpec kCardKeys[] = {{.flags = "RO ACCESS", .index = 1, .counted = true}};
constexpr KeySpec kInterStoreKeys[] = {{.flags = "RW UPDATE", .index = 1}, {.flags = "RO ACCESS", .index = 2, .last = -1}};
constexpr KeySpec kStoreKeys[] = {{.flags = "OW UPDATE", .index = 1}, {.flags = "RO ACCESS", .index = 2, .last = -1}};
constexpr CommandSpec kSetAlgebraCommands[] = {
    {.name = "SINTER", .handler = &Sinter, .arity = -2, .flags = kReadonly, .keys = Keys::From(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "1.0.0", .complexity = kInterCost,
     .summary = "Returns what is in all of several sets.", .args = kKeysArgs},
    {.name = "SINTERCARD", .handler = &SinterCard, .arity = -3, .flags = kReadonly, .find_keys = &CountedKeys,
     .key_specs = kCardKeys, .group = Group::kSet, .since = "7.0.0", .complexity = kInterCost,
     .summary = "Counts what is in all of several sets.", .args = kCardArgs},
    {.name = "SINTERSTORE", .handler = &SinterStore, .arity = -3, .flags = kWrite | kDenyOom, .keys = Keys::From(1),
     .key_specs = kInterStoreKeys, .group = Group::kSet, .since = "1.0.0", .complexity = kInterCost,
     .summary = "Stores what is in all of several sets.", .args = kStoreArgs},
    {.name = "SUNION", .handler = &Sunion, .arity = -2, .flags = kReadonly, .keys = Keys::From(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "1.0.0", .complexity = kAllCost,
     .summary = "Returns what is in any of several sets.", .args = kKeysArgs},
    {.name = "SUNIONSTORE", .handler = &SunionStore, .arity = -3, .flags = kWrite | kDenyOom, .keys = Keys::From(1),
     .key_specs = kStoreKeys, .group = Group::kSet, .since = "1.0.0", .complexity = kAllCost,
     .summary = "Stores what is in any of several sets.", .args = kStoreArgs},
    {.name = "SDIFF", .handler = &Sdiff, .arity = -2, .flags = kReadonly, .keys = Keys::From(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "1.0.0", .complexity = kAllCost,
     .summary = "Returns what is in the first of several sets alone.", .args = kKeysArgs},
    {.name = "SDIFFSTORE", .handler = &SdiffStore, .arity = -3, .flags = kWrite | kDenyOom, .keys = Keys::From(1),
     .key_specs = kStoreKeys, .group = Group::kSet, .since = "1.0.0", .complexity = kAllCost,
     .summary = "Stores what is in the first of several sets alone.", .args = kStoreArgs}};

}  // namespace

absl::Span<const CommandSpec> SetAlgebraCommands() { return kSetAlgebraCommands; }

}  // namespace idemd::server
