// What changes sorted sets: putting members in and taking them out, told to the log.
//
// The keys are locked by the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/context.h"
#include "storage/collection/sorted_set.h"

namespace idemd::server {

// False, with WRONGTYPE written: something else than a sorted set. Null where nothing is.
[[nodiscard]] bool ReadSortedSet(Context& c, const storage::KeyView& view, const storage::SortedSet** set);
// Looks at a key by itself, or at one that is locked.
[[nodiscard]] bool FindSortedSet(Context& c, const storage::HashedKey& key, const storage::SortedSet** set);

struct ScoreAndMember {
  double score;
  absl::string_view member;
};

struct PutCounts {
  int64_t added = 0;
  int64_t moved = 0;
  bool refused = false;  // the last one, by the rule
  double score = 0;      // that the last one has now
};

// Puts members into the sorted set at `key`, which there may be none of yet. False: the error was written.
[[nodiscard]] bool PutScored(Context& c, const storage::HashedKey& key, absl::Span<const ScoreAndMember> members,
                             const storage::SortedSet::Rule& rule, PutCounts* counts);

// Takes a range of ranks out of the sorted set at `key`. There is one.
void RemoveRanks(Context& c, const storage::HashedKey& key, size_t first, size_t count);

// Puts a sorted set at `key` in place of what is there, or removes that where there is nothing to put. Replies with its size.
void StoreSortedSet(Context& c, const storage::HashedKey& key, std::unique_ptr<storage::SortedSet> set);

// How members that were popped are told.
enum class PopReply : uint8_t {
  kFlat,       // member, score, member, score, ...: ZPOPMIN
  kNested,     // [member, score], ...: ZPOPMIN with a count, in RESP3
  kKeyFlat,    // key, member, score: BZPOPMIN
  kKeyNested,  // key, [[member, score], ...]: ZMPOP, BZMPOP
};
// Takes up to `count` members, at least one, with the lowest or the highest scores out of the sorted set at `key`, which there is,
// and writes them. For commands that wait, too: it uses no more of a session than what it is given.
void PopScored(storage::Unit& unit, storage::DbIndex db, const storage::HashedKey& key, bool highest, size_t count, PopReply shape,
               protocol::Writer& reply);

}  // namespace idemd::server
