// Places in a sorted set: GEOADD, GEOPOS, GEODIST, GEOHASH, and the words that all geo commands have.
#include <cstdio>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_format.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/context.h"
#include "server/commands/geo_hash.h"
#include "server/commands/geo_words.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {

namespace errors = protocol::errors;

namespace {

bool ReadNumber(Context& c, size_t i, double* value, absl::string_view error = errors::kNotFloat) {
  if (protocol::ParseDouble(c.words[i], value)) return true;
  c.reply.Error(error);
  return false;
}

}  // namespace

bool ReadPoint(Context& c, size_t i, GeoPoint* point) {
  if (!ReadNumber(c, i, &point->longitude) || !ReadNumber(c, i + 1, &point->latitude)) return false;
  if (IsOnMap(*point)) return true;
  c.reply.Error(absl::StrFormat("ERR invalid longitude,latitude pair %f,%f", point->longitude, point->latitude));
  return false;
}

bool ReadUnit(Context& c, size_t i, double* metres) {
  switch (OptionWord(c.words[i])) {
    case OptionWord("m"):
      *metres = 1;
      return true;
    case OptionWord("km"):
      *metres = 1000;
      return true;
    case OptionWord("ft"):
      *metres = 0.3048;
      return true;
    case OptionWord("mi"):
      *metres = 1609.34;
      return true;
    default:
      c.reply.Error("ERR unsupported unit provided. please use M, KM, FT, MI");
      return false;
  }
}

bool ReadRadius(Context& c, size_t i, double* radius, double* unit) {
  if (!ReadNumber(c, i, radius, "ERR need numeric radius")) return false;
  if (*radius < 0) {
    c.reply.Error("ERR radius cannot be negative");
    return false;
  }
  if (!ReadUnit(c, i + 1, unit)) return false;
  *radius *= *unit;
  return true;
}

bool ReadBox(Context& c, size_t i, double* width, double* height, double* unit) {
  if (!ReadNumber(c, i, width, "ERR need numeric width") || !ReadNumber(c, i + 1, height, "ERR need numeric height")) return false;
  if (*width < 0 || *height < 0) {
    c.reply.Error("ERR height or width cannot be negative");
    return false;
  }
  if (!ReadUnit(c, i + 2, unit)) return false;
  *width *= *unit;
  *height *= *unit;
  return true;
}

void ReplyDistance(Context& c, double distance) {
  char digits[400];  // the largest double has 309 in front of the point
  const int size = std::snprintf(digits, sizeof(digits), "%.4f", distance);
  c.reply.Bulk(absl::string_view(digits, static_cast<size_t>(size)));
}

void ReplyPoint(Context& c, const GeoPoint& point) {
  c.reply.Array(2);
  c.reply.Double(protocol::FormatLongDouble(point.longitude));
  c.reply.Double(protocol::FormatLongDouble(point.latitude));
}

namespace {

using storage::HashedKey;
using storage::SortedSet;

void GeoAdd(Context& c) {
  SortedSet::Rule rule;
  bool count_moved = false, options = true;
  size_t first = 2;
  while (options && first < c.words.size()) {
    switch (OptionWord(c.words[first])) {
      case OptionWord("nx"):
        rule.only_new = true;
        break;
      case OptionWord("xx"):
        rule.only_old = true;
        break;
      case OptionWord("ch"):
        count_moved = true;
        break;
      default:
        options = false;
    }
    if (options) ++first;
  }
  const size_t rest = c.words.size() - first;
  if (rest == 0 || rest % 3 != 0 || (rule.only_new && rule.only_old)) return c.Syntax();
  absl::InlinedVector<ScoreAndMember, 4> members(rest / 3);
  for (size_t i = 0; i < members.size(); ++i) {
    GeoPoint point;
    if (!ReadPoint(c, first + 3 * i, &point)) return;
    members[i] = {static_cast<double>(GeoEncode(point)), c.words[first + 3 * i + 2]};
  }
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  PutCounts counts;
  if (PutScored(c, key, members, rule, &counts)) c.reply.Integer(counts.added + (count_moved ? counts.moved : 0));
}

std::optional<GeoPoint> PointOf(const SortedSet* set, absl::string_view member) {
  const std::optional<double> score = set == nullptr ? std::nullopt : set->Score(member);
  return score ? std::optional(GeoDecode(*score)) : std::nullopt;
}

void GeoPos(Context& c) {
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  c.reply.Array(c.words.size() - 2);
  for (const absl::string_view member : c.words.subspan(2)) {
    const std::optional<GeoPoint> point = PointOf(set, member);
    point ? ReplyPoint(c, *point) : c.reply.NullArray();
  }
}

void GeoDist(Context& c) {
  double unit = 1;
  if (c.words.size() > 5) return c.Syntax();
  if (c.words.size() == 5 && !ReadUnit(c, 4, &unit)) return;
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  const std::optional<GeoPoint> a = PointOf(set, c.words[2]), b = PointOf(set, c.words[3]);
  if (!a || !b) return c.reply.Null();
  ReplyDistance(c, GeoDistance(*a, *b) / unit);
}

void GeoHash(Context& c) {
  const SortedSet* set = nullptr;
  if (!FindSortedSet(c, c.Key(1), &set)) return;
  c.reply.Array(c.words.size() - 2);
  for (const absl::string_view member : c.words.subspan(2)) {
    const std::optional<GeoPoint> point = PointOf(set, member);
    point ? c.reply.Bulk(GeoLetters(*point)) : c.reply.Null();
  }
}

constexpr ArgSpec kConditionArgs[] = {{.name = "nx", .type = ArgType::kToken, .token = "NX"},
                                      {.name = "xx", .type = ArgType::kToken, .token = "XX"}};
constexpr ArgSpec kPlaceArgs[] = {{.name = "longitude", .type = ArgType::kDouble},
                                  {.name = "latitude", .type = ArgType::kDouble},
                                  {.name = "member"}};
constexpr ArgSpec kAddArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "condition", .type = ArgType::kOneOf, .optional = true, .since = "6.2.0", .args = kConditionArgs},
    {.name = "change", .type = ArgType::kToken, .token = "CH", .optional = true, .since = "6.2.0"},
    {.name = "longitude_latitude_member", .type = ArgType::kBlock, .multiple = true, .args = kPlaceArgs}};
constexpr ArgSpec kMembersArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "member", .multiple = true}};
constexpr ArgSpec kDistArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "member1"},
                                 {.name = "member2"},
                                 {.name = "unit", .type = ArgType::kOneOf, .optional = true, .args = kGeoUnitArgs}};

constexpr CommandSpec kGeoCommands[] = {
    {.name = "GEOADD", .handler = &GeoAdd, .arity = -5, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kGeo, .since = "3.2.0", .complexity = "O(log(N)) per place",
     .summary = "Puts places into a sorted set.", .args = kAddArgs},
    {.name = "GEOPOS", .handler = &GeoPos, .arity = -2, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kGeo, .since = "3.2.0", .complexity = "O(N) with N members", .summary = "Tells where members are.",
     .args = kMembersArgs},
    {.name = "GEODIST", .handler = &GeoDist, .arity = -4, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kGeo, .since = "3.2.0", .complexity = "O(1)", .summary = "Tells how far two members are from each other.",
     .args = kDistArgs},
    {.name = "GEOHASH", .handler = &GeoHash, .arity = -2, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kGeo, .since = "3.2.0", .complexity = "O(N) with N members",
     .summary = "Tells the geohash of members, in letters.", .args = kMembersArgs}};

}  // namespace

absl::Span<const CommandSpec> GeoCommands() { return kGeoCommands; }

}  // namespace idemd::server
