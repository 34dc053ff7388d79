// Members drawn at random: SPOP, which takes them out, and SRANDMEMBER.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/random_elements.h"
#include "server/commands/typed_key.h"
#include "storage/collection/draw.h"
#include "storage/collection/set.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::EventClass;
using storage::HashedKey;
using storage::Set;

// When this many times fewer stay than go, Redis makes a new set of those that stay: then numbers alone are an intset again.
constexpr uint64_t kRemakeBelow = 5;

absl::string_view OneAtRandom(const Set& set, Set::Digits& room) { return set.At(storage::DrawBelow(set.size()), room); }

void PopOne(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Set* there = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), key), &there)) return;
  if (there == nullptr) return c.reply.Null();
  Set::Digits room;
  const std::string member(OneAtRandom(*there, room));
  EditOrCreate(c, key, there).Remove(member);
  const bool gone = c.unit.CollectionChanged(c.db(), key, {"SREM", key.bytes, member});
  c.Notify(EventClass::kSet, "spop", key);
  if (gone) c.Notify(EventClass::kGeneric, "del", key);
  c.reply.Bulk(member);
}

// Takes the members at these places out; the log is told which they were.
void PopPlaces(Context& c, const HashedKey& key, const Set* there, const std::vector<uint32_t>& places) {
  Set::Digits room;
  std::string texts;
  std::vector<size_t> ends;
  ends.reserve(places.size());
  for (const uint32_t place : places) {
    const absl::string_view member = there->At(place, room);
    c.reply.Bulk(member);
    texts.append(member.data(), member.size());
    ends.push_back(texts.size());
  }
  std::vector<absl::string_view> command{"SREM", key.bytes};
  command.reserve(places.size() + 2);
  for (size_t i = 0; i < ends.size(); ++i) {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    command.push_back(absl::string_view(texts).substr(begin, ends[i] - begin));
  }
  Set& set = EditOrCreate(c, key, there);
  for (size_t i = 2; i < command.size(); ++i) set.Remove(command[i]);
  c.unit.CollectionChanged(c.db(), key, command);
}

void Spop(Context& c) {
  if (c.words.size() == 2) return PopOne(c);
  if (c.words.size() > 3) return c.Syntax();
  int64_t count = 0;
  if (!c.Int(2, &count, errors::kMustBePositive)) return;
  if (count < 0) return c.reply.Error(errors::kMustBePositive);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Set* there = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), key), &there)) return;
  if (there == nullptr || count == 0) return c.reply.Set(0);
  const uint64_t size = there->size(), wanted = std::min(static_cast<uint64_t>(count), size);
  c.reply.Set(wanted);
  c.Notify(EventClass::kSet, "spop", key);
  if (wanted == size) {
    there->ForEach([&](absl::string_view member) { c.reply.Bulk(member); });
    c.unit.Remove(c.db(), key);
    c.Notify(EventClass::kGeneric, "del", key);
    return;
  }
  PopPlaces(c, key, there, storage::DrawDistinct(static_cast<uint32_t>(size), static_cast<uint32_t>(wanted)));
  if ((size - wanted) * kRemakeBelow > wanted) return;
  static_cast<Set&>(c.unit.EditCollection(c.db(), key)).Remake();
  c.unit.CollectionChanged(c.db(), key, {});
}

void SrandMember(Context& c) {
  if (c.words.size() > 3) return c.Syntax();
  int64_t count = 0;
  if (c.words.size() == 3 && !ReadDrawCount(c, 2, &count)) return;
  const Set* set = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), c.Key(1)), &set)) return;
  Set::Digits room;
  if (c.words.size() == 2) return set == nullptr ? c.reply.Null() : c.reply.Bulk(OneAtRandom(*set, room));
  if (set == nullptr || count == 0) return c.reply.Array(0);
  std::vector<uint32_t> places;
  if (!DrawPlaces(c, set->size(), count, &places)) return;
  c.reply.Array(places.size());
  for (const uint32_t place : places) c.reply.Bulk(set->At(place, room));
}

constexpr ArgSpec kPopArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "count", .type = ArgType::kInteger, .optional = true, .since = "3.2.0"}};
constexpr ArgSpec kRandomArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "count", .type = ArgType::kInteger, .optional = true, .since = "2.6.0"}};

constexpr CommandSpec kSetRandomCommands[] = {
    {.name = "SPOP", .handler = &Spop, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kSet, .since = "1.0.0", .complexity = "O(N) with N members taken",
     .summary = "Takes members drawn at random out of a set.", .args = kPopArgs},
    {.name = "SRANDMEMBER", .handler = &SrandMember, .arity = -2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "1.0.0",
     .complexity = "O(N) with N members returned", .summary = "Returns members drawn at random.",
     .args = kRandomArgs}};

}  // namespace

absl::Span<const CommandSpec> SetRandomCommands() { return kSetRandomCommands; }

}  // namespace idemd::server
