// Members of sorted sets in no order that means anything: ZRANDMEMBER, ZSCAN.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/context.h"
#include "server/commands/element_scan.h"
#include "server/commands/groups.h"
#include "server/commands/random_elements.h"
#include "server/commands/zset_edit.h"
#include "storage/collection/draw.h"

namespace idemd::server {
namespace {

using storage::SortedSet;

constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

void ReplyDrawn(Context& c, const SortedSet& set, int64_t count, bool with_scores) {
  const bool repeat = count < 0;
  const size_t size = set.size();
  const size_t wanted = repeat ? static_cast<size_t>(-count) : std::min(static_cast<size_t>(count), size);
  const bool nested = with_scores && c.reply.resp() > 2;
  const auto each = [&](absl::string_view member, double score) {
    if (nested) c.reply.Array(2);
    c.reply.Bulk(member);
    if (with_scores) c.reply.Double(score);
  };
  c.reply.Array(with_scores && !nested ? wanted * 2 : wanted);
  if (repeat) {
    for (size_t i = 0; i < wanted; ++i) set.ShowPlace(storage::DrawBelow(size), each);
  } else if (wanted == size) {
    set.ForRange(0, size, /*reverse=*/true, each);
  } else {
    for (const uint32_t place : storage::DrawDistinct(static_cast<uint32_t>(size), static_cast<uint32_t>(wanted)))
      set.ShowPlace(place, each);
  }
}

void ZRandMember(Context& c) {
  int64_t count = 0;
  const bool counted = c.words.size() > 2;
  if (counted) {
    if (!c.Int(2, &count)) return;
    if (count < -kInt64Max)
      return c.reply.Error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    if (c.words.size() > 4 || (c.words.size() == 4 && !absl::EqualsIgnoreCase(c.words[3], "withscores"))) return c.Syntax();
    if (c.words.size() == 4 && (count < -kInt64Max / 2 || count > kInt64Max / 2))
      return c.reply.Error("ERR value is out of range");
  }
  const SortedSet* set = nullptr;
  if (!LookAtSortedSet(c, c.Key(1), &set)) return;
  if (!counted) {
    if (set == nullptr) return c.reply.Null();
    return set->ShowPlace(storage::DrawBelow(set->size()), [&](absl::string_view member, double) { c.reply.Bulk(member); });
  }
  if (set == nullptr || count == 0) return c.reply.Array(0);
  if (count < -static_cast<int64_t>(kRepetitionsMax)) return c.reply.Error(protocol::errors::kOutOfRangeValue);
  ReplyDrawn(c, *set, count, c.words.size() == 4);
}

// Redis shows the score of a small sorted set as its listpack has it: a whole one as an integer, however large.
absl::string_view ScannedScore(double score, bool small, protocol::DoubleRoom& room) {
  constexpr double kWholeMax = 0x1p62;
  if (!small || std::abs(score) > kWholeMax || std::trunc(score) != score) return protocol::PrintDouble(score, room);
  const auto end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), static_cast<int64_t>(score)).ptr;
  return {room.bytes, static_cast<size_t>(end - room.bytes)};
}

void ZScan(Context& c) {
  uint64_t cursor = 0;
  if (!ReadCursor(c, 2, &cursor)) return;
  const SortedSet* set = nullptr;
  if (!LookAtSortedSet(c, c.Key(1), &set)) return;
  if (set == nullptr) return ReplyNoScan(c);
  ElementScan scan(c);
  if (!scan.ReadOptions(3)) return;
  scan.Reply(set->Scan(cursor, scan.count(), [&](absl::string_view member, double score) {
    if (!scan.Shows(member)) return;
    protocol::DoubleRoom room;
    scan.Element(member);
    scan.Element(ScannedScore(score, set->is_small(), room));
  }));
}

constexpr ArgSpec kRandomOptionArgs[] = {
    {.name = "count", .type = ArgType::kInteger},
    {.name = "withscores", .type = ArgType::kToken, .token = "WITHSCORES", .optional = true}};
constexpr ArgSpec kRandomArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "options", .type = ArgType::kBlock, .optional = true, .args = kRandomOptionArgs}};
constexpr ArgSpec kScanArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "cursor", .type = ArgType::kInteger},
                                 {.name = "pattern", .type = ArgType::kPattern, .token = "MATCH", .optional = true},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr CommandSpec kZsetWalkCommands[] = {
    {.name = "ZRANDMEMBER", .handler = &ZRandMember, .arity = -2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSortedSet, .since = "6.2.0", .complexity = "O(M) with M returned",
     .summary = "Returns members drawn at random.", .args = kRandomArgs},
    {.name = "ZSCAN", .handler = &ZScan, .arity = -3, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kSortedSet, .since = "2.8.0", .complexity = "O(1) per call, O(N) for a whole walk",
     .summary = "Walks the members of a sorted set, a part a call.", .args = kScanArgs}};

}  // namespace

absl::Span<const CommandSpec> ZsetWalkCommands() { return kZsetWalkCommands; }

}  // namespace idemd::server
