// Sets, member by member: SADD, SREM, SISMEMBER and their kin, SMOVE and SSCAN.
#include "server/commands/context.h"
#include "server/commands/element_scan.h"
#include "server/commands/groups.h"
#include "server/commands/typed_key.h"
#include "storage/collection/set.h"

namespace idemd::server {
namespace {

using storage::EventClass;
using storage::HashedKey;
using storage::Set;

// The set at words[1] for reading, null when there is none. False: WRONGTYPE was written.
bool Look(Context& c, const Set** set) { return LookAs(c, c.unit.Find(c.db(), c.Key(1)), set); }

// The words as a command for the log, if they did anything.
absl::Span<const absl::string_view> WordsIf(const Context& c, int64_t changed) {
  return changed == 0 ? absl::Span<const absl::string_view>() : c.words;
}

void Sadd(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Set* there = nullptr;
  if (!Look(c, &there)) return;
  Set& set = EditOrCreate(c, key, there);
  int64_t added = 0;
  for (absl::string_view member : c.words.subspan(2)) added += set.Add(member) ? 1 : 0;
  c.unit.CollectionChanged(c.db(), key, WordsIf(c, added));
  if (added != 0) c.Notify(EventClass::kSet, "sadd", key);
  c.reply.Integer(added);
}

void Srem(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Set* there = nullptr;
  if (!Look(c, &there)) return;
  if (there == nullptr) return c.reply.Integer(0);
  Set& set = EditOrCreate(c, key, there);
  int64_t removed = 0;
  for (absl::string_view member : c.words.subspan(2)) removed += set.Remove(member) ? 1 : 0;
  const bool gone = c.unit.CollectionChanged(c.db(), key, WordsIf(c, removed));
  if (removed != 0) c.Notify(EventClass::kSet, "srem", key);
  if (gone) c.Notify(EventClass::kGeneric, "del", key);
  c.reply.Integer(removed);
}

void Smove(Context& c) {
  const HashedKey keys[] = {c.Key(1), c.Key(2)};
  const absl::string_view member = c.words[3];
  c.unit.LockKeys(keys);
  const Set* source = nullptr;
  const Set* target = nullptr;
  const storage::KeyView source_view = c.unit.Find(c.db(), keys[0]);
  const storage::KeyView target_view = c.unit.Find(c.db(), keys[1]);
  if (!source_view) return c.reply.Integer(0);
  if (!LookAs(c, source_view, &source) || !LookAs(c, target_view, &target)) return;
  if (source == target) return c.reply.Integer(source->Contains(member) ? 1 : 0);
  if (!source->Contains(member)) return c.reply.Integer(0);
  EditOrCreate(c, keys[0], source).Remove(member);
  const bool gone = c.unit.CollectionChanged(c.db(), keys[0], {"SREM", keys[0].bytes, member});
  c.Notify(EventClass::kSet, "srem", keys[0]);
  if (gone) c.Notify(EventClass::kGeneric, "del", keys[0]);
  if (target == nullptr || !target->Contains(member)) {
    EditOrCreate(c, keys[1], target).Add(member);
    c.unit.CollectionChanged(c.db(), keys[1], {"SADD", keys[1].bytes, member});
    c.Notify(EventClass::kSet, "sadd", keys[1]);
  }
  c.reply.Integer(1);
}

void SisMember(Context& c) {
  const Set* set = nullptr;
  if (Look(c, &set)) c.reply.Integer(set != nullptr && set->Contains(c.words[2]) ? 1 : 0);
}

void SmisMember(Context& c) {
  const Set* set = nullptr;
  if (!Look(c, &set)) return;
  c.reply.Array(c.words.size() - 2);
  for (absl::string_view member : c.words.subspan(2)) c.reply.Integer(set != nullptr && set->Contains(member) ? 1 : 0);
}

void Scard(Context& c) {
  const Set* set = nullptr;
  if (Look(c, &set)) c.reply.Integer(set == nullptr ? 0 : static_cast<int64_t>(set->size()));
}

void Smembers(Context& c) {
  const Set* set = nullptr;
  if (!Look(c, &set)) return;
  c.reply.Set(set == nullptr ? 0 : set->size());
  if (set != nullptr) set->ForEach([&](absl::string_view member) { c.reply.Bulk(member); });
}

void Sscan(Context& c) {
  uint64_t cursor = 0;
  if (!ReadCursor(c, 2, &cursor)) return;
  const Set* set = nullptr;
  if (!Look(c, &set)) return;
  if (set == nullptr) return ReplyNoScan(c);
  ElementScan scan(c);
  if (!scan.ReadOptions(3)) return;
  scan.Reply(set->Scan(cursor, scan.count(), [&](absl::string_view member) {
    if (scan.Shows(member)) scan.Element(member);
  }));
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kMemberArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "member"}};
constexpr ArgSpec kMembersArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "member", .multiple = true}};
constexpr ArgSpec kMoveArgs[] = {{.name = "source", .type = ArgType::kKey},
                                 {.name = "destination", .type = ArgType::kKey, .key_spec = 1},
                                 {.name = "member"}};
constexpr ArgSpec kScanArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "cursor", .type = ArgType::kInteger},
                                 {.name = "pattern", .type = ArgType::kPattern, .token = "MATCH", .optional = true},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr KeySpec kMoveKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1}, {.flags = "RW INSERT", .index = 2}};
constexpr CommandSpec kSetCommands[] = {
    {.name = "SADD", .handler = &Sadd, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kSet, .since = "1.0.0", .complexity = "O(N) with N members",
     .summary = "Adds members to a set.", .args = kMembersArgs},
    {.name = "SREM", .handler = &Srem, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kSet, .since = "1.0.0", .complexity = "O(N) with N members",
     .summary = "Removes members from a set.", .args = kMembersArgs},
    {.name = "SMOVE", .handler = &Smove, .arity = 4, .flags = kWrite | kFast, .keys = Keys::Range(1, 2),
     .key_specs = kMoveKeys, .group = Group::kSet, .since = "1.0.0", .complexity = "O(1)",
     .summary = "Moves a member from one set to another.", .args = kMoveArgs},
    {.name = "SISMEMBER", .handler = &SisMember, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO", .group = Group::kSet, .since = "1.0.0", .complexity = "O(1)",
     .summary = "Tells whether a set has a member.", .args = kMemberArgs},
    {.name = "SMISMEMBER", .handler = &SmisMember, .arity = -3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "6.2.0", .complexity = "O(N) with N members asked for",
     .summary = "Tells of several texts whether they are members of a set.", .args = kMembersArgs},
    {.name = "SCARD", .handler = &Scard, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO", .group = Group::kSet, .since = "1.0.0", .complexity = "O(1)",
     .summary = "Counts the members of a set.", .args = kKeyArgs},
    {.name = "SMEMBERS", .handler = &Smembers, .arity = 2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "1.0.0", .complexity = "O(N) with N members",
     .summary = "Returns all members of a set.", .args = kKeyArgs},
    {.name = "SSCAN", .handler = &Sscan, .arity = -3, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kSet, .since = "2.8.0",
     .complexity = "O(1) per call, O(N) for a whole walk",
     .summary = "Walks the members of a set, a part a call.", .args = kScanArgs}};

}  // namespace

absl::Span<const CommandSpec> SetCommands() { return kSetCommands; }

}  // namespace idemd::server
