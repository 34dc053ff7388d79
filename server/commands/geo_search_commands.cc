// Places near a place: GEOSEARCH, GEOSEARCHSTORE, and the older GEORADIUS and GEORADIUSBYMEMBER with their _RO forms.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/geo_hash.h"
#include "server/commands/geo_words.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"
#include "server/commands/zset_edit.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::SortedSet;

// Which of the commands this is.
struct Form {
  enum class Kind : uint8_t { kSearch, kRadius, kRadiusByMember } kind = Kind::kSearch;
  bool may_store = false;  // GEORADIUS with STORE
  size_t to = 0;           // GEOSEARCHSTORE: where the key to store at is
  size_t from = 1;         // where the key is
  size_t options = 2;      // the first word that may be an option

  bool search() const { return kind == Kind::kSearch; }
};

enum class Order : uint8_t { kNone, kAscending, kDescending };

struct Request {
  GeoShape shape;
  double unit = 1;
  bool from_point = false, from_member = false, by_radius = false, by_box = false;
  bool with_distance = false, with_score = false, with_point = false;
  bool any = false;
  int64_t count = 0;  // 0: all
  Order order = Order::kNone;
  size_t to = 0;  // where the key to store at is; 0: none
  bool store_distance = false;
};

struct Found {
  std::string member;
  double score;
  double distance;
  GeoPoint point;
};

// The place of a member is the middle. False: the error was written.
bool ReadMember(Context& c, const SortedSet& set, absl::string_view member, Request* request) {
  const std::optional<double> score = set.Score(member);
  if (!score) {
    c.reply.Error("ERR could not decode requested zset member");
    return false;
  }
  request->shape.middle = GeoDecode(*score);
  return true;
}

// What stands in front of the options of the older commands.
bool ReadRadiusForm(Context& c, const Form& form, const SortedSet* set, Request* request) {
  if (form.search()) return true;
  if (form.kind == Form::Kind::kRadius && !ReadPoint(c, 2, &request->shape.middle)) return false;
  if (form.kind == Form::Kind::kRadiusByMember) {
    if (set == nullptr) return true;  // then nothing but the options matters
    if (!ReadMember(c, *set, c.words[2], request)) return false;
  }
  return ReadRadius(c, form.options - 2, &request->shape.radius, &request->unit);
}

enum class Taken : uint8_t { kYes, kNo, kFailed };
Taken TakenIf(bool read) { return read ? Taken::kYes : Taken::kFailed; }

// FROMMEMBER, FROMLONLAT, BYRADIUS, BYBOX at words[*i].
Taken ReadWhere(Context& c, const SortedSet* set, size_t* i, Request* request) {
  const absl::string_view word = c.words[*i];
  const size_t at = *i + 1, behind = c.words.size() - at;
  if (absl::EqualsIgnoreCase(word, "frommember") && behind >= 1 && !request->from_point) {
    *i += 1;
    request->from_member = true;
    return set == nullptr ? Taken::kYes : TakenIf(ReadMember(c, *set, c.words[at], request));
  }
  if (absl::EqualsIgnoreCase(word, "fromlonlat") && behind >= 2 && !request->from_member) {
    *i += 2;
    request->from_point = true;
    return TakenIf(ReadPoint(c, at, &request->shape.middle));
  }
  if (absl::EqualsIgnoreCase(word, "byradius") && behind >= 2 && !request->by_box) {
    *i += 2;
    request->by_radius = true;
    return TakenIf(ReadRadius(c, at, &request->shape.radius, &request->unit));
  }
  if (absl::EqualsIgnoreCase(word, "bybox") && behind >= 3 && !request->by_radius) {
    *i += 3;
    request->by_box = request->shape.box = true;
    return TakenIf(ReadBox(c, at, &request->shape.width, &request->shape.height, &request->unit));
  }
  return Taken::kNo;
}

// STORE and STOREDIST at words[*i].
Taken ReadStore(Context& c, const Form& form, size_t* i, Request* request) {
  const absl::string_view word = c.words[*i];
  if (form.search()) {
    if (form.to == 0 || !absl::EqualsIgnoreCase(word, "storedist")) return Taken::kNo;
    request->store_distance = true;
    return Taken::kYes;
  }
  const bool distance = absl::EqualsIgnoreCase(word, "storedist");
  if (!form.may_store || *i + 1 == c.words.size() || !(distance || absl::EqualsIgnoreCase(word, "store"))) return Taken::kNo;
  request->store_distance = distance;
  request->to = ++*i;
  return Taken::kYes;
}

bool ReadCount(Context& c, size_t i, int64_t* count) {
  if (!c.Int(i, count)) return false;
  if (*count > 0) return true;
  c.reply.Error("ERR COUNT must be > 0");
  return false;
}

bool ReadOptions(Context& c, const Form& form, const SortedSet* set, Request* request) {
  for (size_t i = form.options; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    if (absl::EqualsIgnoreCase(word, "withdist")) {
      request->with_distance = true;
    } else if (absl::EqualsIgnoreCase(word, "withhash")) {
      request->with_score = true;
    } else if (absl::EqualsIgnoreCase(word, "withcoord")) {
      request->with_point = true;
    } else if (absl::EqualsIgnoreCase(word, "any")) {
      request->any = true;
    } else if (absl::EqualsIgnoreCase(word, "asc")) {
      request->order = Order::kAscending;
    } else if (absl::EqualsIgnoreCase(word, "desc")) {
      request->order = Order::kDescending;
    } else if (absl::EqualsIgnoreCase(word, "count") && i + 1 < c.words.size()) {
      if (!ReadCount(c, ++i, &request->count)) return false;
    } else {
      Taken taken = form.search() ? ReadWhere(c, set, &i, request) : Taken::kNo;
      if (taken == Taken::kNo) taken = ReadStore(c, form, &i, request);
      if (taken == Taken::kNo) c.Syntax();
      if (taken != Taken::kYes) return false;
    }
  }
  return true;
}

// What goes with what. False: the error was written.
bool CheckOptions(Context& c, const Form& form, const Request& request) {
  std::string error;
  if (request.to != 0 && (request.with_distance || request.with_score || request.with_point)) {
    error = absl::StrCat(form.search() ? "GEOSEARCHSTORE" : "STORE option in GEORADIUS",
                         " is not compatible with WITHDIST, WITHHASH and WITHCOORD options");
  } else if (form.search() && !request.from_point && !request.from_member) {
    error = absl::StrCat("exactly one of FROMMEMBER or FROMLONLAT can be specified for ", c.words[0]);
  } else if (form.search() && !request.by_radius && !request.by_box) {
    error = absl::StrCat("exactly one of BYRADIUS and BYBOX can be specified for ", c.words[0]);
  } else if (request.any && request.count == 0) {
    error = "the ANY argument requires COUNT argument";
  }
  if (!error.empty()) c.reply.Error(absl::StrCat("ERR ", error));
  return error.empty();
}

// With `most` the first that are found, in the order in which cells are looked at.
std::vector<Found> Search(const SortedSet& set, const GeoShape& shape, size_t most) {
  constexpr size_t kAtOnce = 128;
  std::vector<Found> found;
  for (const GeoSpan& span : GeoCover(shape)) {
    size_t rank = set.CountBelow(static_cast<double>(span.from), false);
    const size_t end = set.CountBelow(static_cast<double>(span.to), false);
    while (rank < end && found.size() < most) {
      const size_t count = std::min(end - rank, kAtOnce);
      set.ForRange(rank, count, false, [&](absl::string_view member, double score) {
        if (found.size() >= most) return;
        const GeoPoint point = GeoDecode(score);
        double distance = 0;
        if (shape.Contains(point, &distance)) found.push_back({std::string(member), score, distance, point});
      });
      rank += count;
    }
    if (found.size() >= most) break;
  }
  return found;
}

void Sort(std::vector<Found>& found, Order order, size_t wanted) {
  if (order == Order::kNone) return;
  const auto before = [order](const Found& a, const Found& b) {
    return order == Order::kAscending ? a.distance < b.distance : a.distance > b.distance;
  };
  if (wanted == found.size()) return std::stable_sort(found.begin(), found.end(), before);
  std::partial_sort(found.begin(), found.begin() + static_cast<ptrdiff_t>(wanted), found.end(), before);
}

void ReplyFound(Context& c, const std::vector<Found>& found, size_t wanted, const Request& request) {
  const size_t more = size_t{0} + request.with_distance + request.with_score + request.with_point;
  c.reply.Array(wanted);
  for (size_t i = 0; i < wanted; ++i) {
    if (more != 0) c.reply.Array(more + 1);
    c.reply.Bulk(found[i].member);
    if (request.with_distance) ReplyDistance(c, found[i].distance / request.unit);
    if (request.with_score) c.reply.Integer(static_cast<int64_t>(found[i].score));
    if (request.with_point) ReplyPoint(c, found[i].point);
  }
}

void StoreFound(Context& c, const std::vector<Found>& found, size_t wanted, const Request& request) {
  size_t longest = 0;
  for (size_t i = 0; i < wanted; ++i) longest = std::max(longest, found[i].member.size());
  auto set = std::make_unique<SortedSet>(wanted, longest);
  for (size_t i = 0; i < wanted; ++i)
    set->Set(found[i].member, request.store_distance ? found[i].distance / request.unit : found[i].score);
  StoreSortedSet(c, c.Key(request.to), std::move(set));
}

// The key, and all that GEORADIUS may store at: which of these words are options turns out only later.
bool KeysOf(absl::Span<const absl::string_view> words, size_t options, std::vector<int>& positions) {
  positions.push_back(1);
  for (size_t i = options; i + 1 < words.size(); ++i)
    if (absl::EqualsIgnoreCase(words[i], "store") || absl::EqualsIgnoreCase(words[i], "storedist"))
      positions.push_back(static_cast<int>(i + 1));
  return true;
}

// A search by itself takes no locks.
void LockFor(Context& c, const Form& form) {
  absl::InlinedVector<HashedKey, 4> keys = {c.Key(form.from)};
  if (form.to != 0) keys.push_back(c.Key(form.to));
  if (form.may_store) {
    std::vector<int> positions;
    KeysOf(c.words, form.options, positions);
    for (size_t i = 1; i < positions.size(); ++i) keys.push_back(c.Key(static_cast<size_t>(positions[i])));
  }
  if (keys.size() > 1) c.unit.LockKeys(keys);
}

void Run(Context& c, const Form& form) {
  LockFor(c, form);
  const HashedKey from = c.Key(form.from);
  const bool locked = c.unit.Holds(from);
  const storage::KeyView view = c.unit.Find(c.db(), from);
  if (locked) CountRead(c, view);
  const SortedSet* set = nullptr;
  if (!ReadSortedSet(c, view, &set)) return;
  Request request;
  request.to = form.to;
  if (!ReadRadiusForm(c, form, set, &request) || !ReadOptions(c, form, set, &request) || !CheckOptions(c, form, request)) return;
  if (set == nullptr) return request.to != 0 ? StoreFound(c, {}, 0, request) : c.reply.Array(0);
  // The nearest ones are meant, where some are to do.
  if (request.count != 0 && request.order == Order::kNone && !request.any) request.order = Order::kAscending;
  const size_t most = request.any ? static_cast<size_t>(request.count) : SIZE_MAX;
  std::vector<Found> found = Search(*set, request.shape, most);
  const size_t wanted = request.count == 0 ? found.size() : std::min(found.size(), static_cast<size_t>(request.count));
  Sort(found, request.order, wanted);
  request.to != 0 ? StoreFound(c, found, wanted, request) : ReplyFound(c, found, wanted, request);
}

void GeoSearch(Context& c) { Run(c, {}); }
void GeoSearchStore(Context& c) { Run(c, {.to = 1, .from = 2, .options = 3}); }
void GeoRadius(Context& c) { Run(c, {.kind = Form::Kind::kRadius, .may_store = true, .options = 6}); }
void GeoRadiusRo(Context& c) { Run(c, {.kind = Form::Kind::kRadius, .options = 6}); }
void GeoRadiusByMember(Context& c) { Run(c, {.kind = Form::Kind::kRadiusByMember, .may_store = true, .options = 5}); }
void GeoRadiusByMemberRo(Context& c) { Run(c, {.kind = Form::Kind::kRadiusByMember, .options = 5}); }

bool RadiusKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) { return KeysOf(words, 6, positions); }
bool RadiusByMemberKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  return KeysOf(words, 5, positions);
}

constexpr ArgSpec kPointArgs[] = {{.name = "longitude", .type = ArgType::kDouble}, {.name = "latitude", .type = ArgType::kDouble}};
constexpr ArgSpec kFromArgs[] = {
    {.name = "member", .token = "FROMMEMBER"},
    {.name = "longitude_latitude", .type = ArgType::kBlock, .token = "FROMLONLAT", .args = kPointArgs}};
constexpr ArgSpec kUnit = {.name = "unit", .type = ArgType::kOneOf, .args = kGeoUnitArgs};
constexpr ArgSpec kCircleArgs[] = {{.name = "radius", .type = ArgType::kDouble, .token = "BYRADIUS"}, kUnit};
constexpr ArgSpec kBoxArgs[] = {
    {.name = "width", .type = ArgType::kDouble, .token = "BYBOX"}, {.name = "height", .type = ArgType::kDouble}, kUnit};
constexpr ArgSpec kByArgs[] = {{.name = "circle", .type = ArgType::kBlock, .args = kCircleArgs},
                               {.name = "box", .type = ArgType::kBlock, .args = kBoxArgs}};
constexpr ArgSpec kOrderArgs[] = {{.name = "asc", .type = ArgType::kToken, .token = "ASC"},
                                  {.name = "desc", .type = ArgType::kToken, .token = "DESC"}};
constexpr ArgSpec kCountArgs[] = {{.name = "count", .type = ArgType::kInteger, .token = "COUNT"},
                                  {.name = "any", .type = ArgType::kToken, .token = "ANY", .optional = true}};
constexpr ArgSpec kCountSinceArgs[] = {
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT"},
    {.name = "any", .type = ArgType::kToken, .token = "ANY", .optional = true, .since = "6.2.0"}};
constexpr ArgSpec kKey = {.name = "key", .type = ArgType::kKey};
constexpr ArgSpec kFrom = {.name = "from", .type = ArgType::kOneOf, .args = kFromArgs};
constexpr ArgSpec kBy = {.name = "by", .type = ArgType::kOneOf, .args = kByArgs};
constexpr ArgSpec kOrder = {.name = "order", .type = ArgType::kOneOf, .optional = true, .args = kOrderArgs};
constexpr ArgSpec kCount = {.name = "count", .type = ArgType::kBlock, .optional = true, .args = kCountArgs};
constexpr ArgSpec kCountSince = {.name = "count", .type = ArgType::kBlock, .optional = true, .args = kCountSinceArgs};
constexpr ArgSpec kWithCoord = {.name = "withcoord", .type = ArgType::kToken, .token = "WITHCOORD", .optional = true};
constexpr ArgSpec kWithDist = {.name = "withdist", .type = ArgType::kToken, .token = "WITHDIST", .optional = true};
constexpr ArgSpec kWithHash = {.name = "withhash", .type = ArgType::kToken, .token = "WITHHASH", .optional = true};
constexpr ArgSpec kLongitude = {.name = "longitude", .type = ArgType::kDouble};
constexpr ArgSpec kLatitude = {.name = "latitude", .type = ArgType::kDouble};
constexpr ArgSpec kRadius = {.name = "radius", .type = ArgType::kDouble};
constexpr ArgSpec kMember = {.name = "member"};
constexpr ArgSpec kStore = {.name = "key", .type = ArgType::kKey, .token = "STORE", .optional = true};
constexpr ArgSpec kStoreDist = {.name = "key", .type = ArgType::kKey, .token = "STOREDIST", .optional = true};

constexpr ArgSpec kSearchArgs[] = {kKey, kFrom, kBy, kOrder, kCount, kWithCoord, kWithDist, kWithHash};
constexpr ArgSpec kSearchStoreArgs[] = {{.name = "destination", .type = ArgType::kKey},
                                        {.name = "source", .type = ArgType::kKey},
                                        kFrom,
                                        kBy,
                                        kOrder,
                                        kCount,
                                        {.name = "storedist", .type = ArgType::kToken, .token = "STOREDIST", .optional = true}};
constexpr ArgSpec kRadiusArgs[] = {kKey,      kLongitude, kLatitude,   kRadius, kUnit,  kWithCoord,
                                   kWithDist, kWithHash,  kCountSince, kOrder,  kStore, kStoreDist};
constexpr ArgSpec kRadiusRoArgs[] = {kKey,       kLongitude, kLatitude, kRadius,     kUnit,
                                     kWithCoord, kWithDist,  kWithHash, kCountSince, kOrder};
constexpr ArgSpec kByMemberArgs[] = {kKey,      kMember,   kRadius, kUnit,  kWithCoord,
                                     kWithDist, kWithHash, kCount,  kOrder, kStore,    kStoreDist};
constexpr ArgSpec kByMemberRoArgs[] = {kKey, kMember, kRadius, kUnit, kWithCoord, kWithDist, kWithHash, kCount, kOrder};

constexpr const char* kComplexity = "O(N+log(M)) with N places in the cells around the shape, M in the sorted set";

constexpr CommandSpec kGeoSearchCommands[] = {
    {.name = "GEOSEARCH", .handler = &GeoSearch, .arity = -7, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kGeo, .since = "6.2.0", .complexity = kComplexity, .summary = "Lists places in a circle or a box.",
     .args = kSearchArgs},
    {.name = "GEOSEARCHSTORE", .handler = &GeoSearchStore, .arity = -8, .flags = kWrite | kDenyOom, .keys = Keys::Range(1, 2),
     .key_flags = "OW UPDATE", .group = Group::kGeo, .since = "6.2.0", .complexity = kComplexity,
     .summary = "Stores the places in a circle or a box.", .args = kSearchStoreArgs},
    {.name = "GEORADIUS", .handler = &GeoRadius, .arity = -6, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .find_keys = &RadiusKeys, .key_flags = "RO ACCESS", .group = Group::kGeo, .since = "3.2.0", .complexity = kComplexity,
     .summary = "Lists or stores the places around a point.", .args = kRadiusArgs},
    {.name = "GEORADIUS_RO", .handler = &GeoRadiusRo, .arity = -6, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kGeo, .since = "3.2.10", .complexity = kComplexity,
     .summary = "Lists the places around a point.", .args = kRadiusRoArgs},
    {.name = "GEORADIUSBYMEMBER", .handler = &GeoRadiusByMember, .arity = -5, .flags = kWrite | kDenyOom, .keys = Keys::At(1),
     .find_keys = &RadiusByMemberKeys, .key_flags = "RO ACCESS", .group = Group::kGeo, .since = "3.2.0",
     .complexity = kComplexity, .summary = "Lists or stores the places around a member.", .args = kByMemberArgs},
    {.name = "GEORADIUSBYMEMBER_RO", .handler = &GeoRadiusByMemberRo, .arity = -5, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kGeo, .since = "3.2.10", .complexity = kComplexity,
     .summary = "Lists the places around a member.", .args = kByMemberRoArgs}};

}  // namespace

absl::Span<const CommandSpec> GeoSearchCommands() { return kGeoSearchCommands; }

}  // namespace idemd::server
