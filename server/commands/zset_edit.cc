// Changes of sorted sets, and the writes that the log gets for them.
#include "server/commands/zset_edit.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "protocol/errors.h"
#include "protocol/number.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::SortedSet;
using storage::ValueType;

// The digits of a rank or a count.
struct IntegerRoom {
  char bytes[20];
};
absl::string_view Digits(size_t value, IntegerRoom& room) {
  const auto end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), value).ptr;
  return {room.bytes, static_cast<size_t>(end - room.bytes)};
}

}  // namespace

bool ReadSortedSet(Context& c, const KeyView& view, const SortedSet** set) {
  *set = nullptr;
  if (!view) return true;
  if (view.type != ValueType::kSortedSet) {
    c.reply.Error(errors::kWrongType);
    return false;
  }
  *set = static_cast<const SortedSet*>(view.collection);
  return true;
}

bool FindSortedSet(Context& c, const HashedKey& key, const SortedSet** set) {
  return ReadSortedSet(c, c.unit.Find(c.db(), key), set);
}

bool PutScored(Context& c, const HashedKey& key, absl::Span<const ScoreAndMember> members, const SortedSet::Rule& rule,
               PutCounts* counts) {
  const SortedSet* old = nullptr;
  if (!FindSortedSet(c, key, &old)) return false;
  if (old == nullptr && rule.only_old) {
    counts->refused = true;
    return true;
  }
  SortedSet& set = static_cast<SortedSet&>(
      old != nullptr ? c.unit.EditCollection(c.db(), key)
                     : c.unit.CreateCollection(c.db(), key, std::make_unique<SortedSet>()));
  absl::InlinedVector<protocol::DoubleRoom, 4> rooms(members.size());
  absl::InlinedVector<absl::string_view, 10> words = {"ZADD", key.bytes};
  bool nan = false;
  for (const ScoreAndMember& one : members) {
    const SortedSet::Result result = set.Set(one.member, one.score, rule);
    nan = result.outcome == SortedSet::Outcome::kNan;
    if (nan) break;
    counts->score = result.score;
    counts->refused = result.outcome == SortedSet::Outcome::kRefused;
    counts->added += result.outcome == SortedSet::Outcome::kAdded;
    counts->moved += result.outcome == SortedSet::Outcome::kMoved;
    if (result.outcome != SortedSet::Outcome::kAdded && result.outcome != SortedSet::Outcome::kMoved) continue;
    words.push_back(protocol::PrintDouble(result.score, rooms[words.size() / 2 - 1]));
    words.push_back(one.member);
  }
  c.unit.CollectionChanged(c.db(), key, words.size() > 2 ? absl::MakeConstSpan(words) : absl::Span<const absl::string_view>());
  if (nan) c.reply.Error(errors::kScoreNan);
  return !nan;
}

void RemoveRanks(Context& c, const HashedKey& key, size_t first, size_t count) {
  if (count == 0) return;
  static_cast<SortedSet&>(c.unit.EditCollection(c.db(), key)).RemoveRange(first, count);
  IntegerRoom from, to;
  c.unit.CollectionChanged(c.db(), key, {"ZREMRANGEBYRANK", key.bytes, Digits(first, from), Digits(first + count - 1, to)});
}

void StoreSortedSet(Context& c, const HashedKey& key, std::unique_ptr<SortedSet> set) {
  const size_t size = set->size();
  if (size == 0) {
    c.unit.Remove(c.db(), key);
  } else {
    c.unit.SetCollection(c.db(), key, std::move(set), storage::kNoDeadline);
  }
  c.reply.Integer(static_cast<int64_t>(size));
}

void PopScored(storage::Unit& unit, storage::DbIndex db, const HashedKey& key, bool highest, size_t count, PopReply shape,
               protocol::Writer& reply) {
  SortedSet& set = static_cast<SortedSet&>(unit.EditCollection(db, key));
  const size_t size = set.size();
  count = std::min(count, size);
  const bool nested = shape == PopReply::kNested || shape == PopReply::kKeyNested;
  switch (shape) {
    case PopReply::kFlat:
      reply.Array(count * 2);
      break;
    case PopReply::kNested:
      reply.Array(count);
      break;
    case PopReply::kKeyFlat:
      reply.Array(count * 2 + 1);
      reply.Bulk(key.bytes);
      break;
    case PopReply::kKeyNested:
      reply.Array(2);
      reply.Bulk(key.bytes);
      reply.Array(count);
      break;
  }
  set.ForRange(0, count, highest, [&](absl::string_view member, double score) {
    if (nested) reply.Array(2);
    reply.Bulk(member);
    reply.Double(score);
  });
  set.RemoveRange(highest ? size - count : 0, count);
  IntegerRoom room;
  unit.CollectionChanged(db, key, {highest ? "ZPOPMAX" : "ZPOPMIN", key.bytes, Digits(count, room)});
}

}  // namespace idemd::server
