// Hashes, field by field: HSET, HGET, HDEL and their kin, and HSCAN.
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/commands/context.h"
#include "server/commands/element_scan.h"
#include "server/commands/groups.h"
#include "server/commands/typed_key.h"
#include "storage/collection/hash.h"

namespace idemd::server {
namespace {

using storage::EventClass;
using storage::Hash;
using storage::HashedKey;

// The hash at words[1] for reading, null when there is none. False: WRONGTYPE was written.
bool Look(Context& c, const Hash** hash) { return LookAs(c, c.unit.Find(c.db(), c.Key(1)), hash); }

// --- writing

// The pairs from words[2] on; returns how many fields are new. False: an error was written.
bool SetPairs(Context& c, int64_t* fresh) {
  if (c.words.size() % 2 == 1) {
    c.reply.Error(
        absl::StrCat("ERR wrong number of arguments for '", absl::AsciiStrToLower(c.spec->name), "' command"));
    return false;
  }
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Hash* there = nullptr;
  if (!Look(c, &there)) return false;
  Hash& hash = EditOrCreate(c, key, there);
  *fresh = 0;
  for (size_t i = 2; i < c.words.size(); i += 2) *fresh += hash.Set(c.words[i], c.words[i + 1]) ? 1 : 0;
  c.unit.CollectionChanged(c.db(), key, c.words);
  c.Notify(EventClass::kHash, "hset", key);
  return true;
}

void Hset(Context& c) {
  int64_t fresh = 0;
  if (SetPairs(c, &fresh)) c.reply.Integer(fresh);
}

void Hmset(Context& c) {
  int64_t fresh = 0;
  if (SetPairs(c, &fresh)) c.reply.Ok();
}

void Hsetnx(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Hash* there = nullptr;
  if (!Look(c, &there)) return;
  if (there != nullptr && there->Contains(c.words[2])) return c.reply.Integer(0);
  EditOrCreate(c, key, there).Set(c.words[2], c.words[3]);
  c.unit.CollectionChanged(c.db(), key, {"HSET", key.bytes, c.words[2], c.words[3]});
  c.Notify(EventClass::kHash, "hset", key);
  c.reply.Integer(1);
}

void Hdel(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Hash* there = nullptr;
  if (!Look(c, &there)) return;
  if (there == nullptr) return c.reply.Integer(0);
  Hash& hash = EditOrCreate(c, key, there);
  int64_t removed = 0;
  for (absl::string_view field : c.words.subspan(2)) removed += hash.Remove(field) ? 1 : 0;
  const bool gone = c.unit.CollectionChanged(c.db(), key, removed == 0 ? absl::Span<const absl::string_view>() : c.words);
  if (removed != 0) c.Notify(EventClass::kHash, "hdel", key);
  if (gone) c.Notify(EventClass::kGeneric, "del", key);
  c.reply.Integer(removed);
}

// --- reading

void Hget(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  Hash::Digits room;
  absl::string_view value;
  if (hash == nullptr || !hash->Get(c.words[2], room, &value)) return c.reply.Null();
  c.reply.Bulk(value);
}

void Hmget(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  c.reply.Array(c.words.size() - 2);
  for (absl::string_view field : c.words.subspan(2)) {
    Hash::Digits room;
    absl::string_view value;
    if (hash != nullptr && hash->Get(field, room, &value))
      c.reply.Bulk(value);
    else
      c.reply.Null();
  }
}

void Hexists(Context& c) {
  const Hash* hash = nullptr;
  if (Look(c, &hash)) c.reply.Integer(hash != nullptr && hash->Contains(c.words[2]) ? 1 : 0);
}

void Hlen(Context& c) {
  const Hash* hash = nullptr;
  if (Look(c, &hash)) c.reply.Integer(hash == nullptr ? 0 : static_cast<int64_t>(hash->size()));
}

void Hstrlen(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  Hash::Digits room;
  absl::string_view value;
  const bool found = hash != nullptr && hash->Get(c.words[2], room, &value);
  c.reply.Integer(found ? static_cast<int64_t>(value.size()) : 0);
}

void Hgetall(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  c.reply.Map(hash == nullptr ? 0 : hash->size());
  if (hash == nullptr) return;
  hash->ForEachPair([&](absl::string_view field, absl::string_view value) {
    c.reply.Bulk(field);
    c.reply.Bulk(value);
  });
}

void Hkeys(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  c.reply.Array(hash == nullptr ? 0 : hash->size());
  if (hash != nullptr) hash->ForEach([&](absl::string_view field) { c.reply.Bulk(field); });
}

void Hvals(Context& c) {
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  c.reply.Array(hash == nullptr ? 0 : hash->size());
  if (hash != nullptr) hash->ForEachPair([&](absl::string_view, absl::string_view value) { c.reply.Bulk(value); });
}

void Hscan(Context& c) {
  uint64_t cursor = 0;
  if (!ReadCursor(c, 2, &cursor)) return;
  const Hash* hash = nullptr;
  if (!Look(c, &hash)) return;
  if (hash == nullptr) return ReplyNoScan(c);
  ElementScan scan(c);
  if (!scan.ReadOptions(3)) return;
  scan.Reply(hash->Scan(cursor, scan.count(), [&](absl::string_view field, absl::string_view value) {
    if (!scan.Shows(field)) return;
    scan.Element(field);
    scan.Element(value);
  }));
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kFieldArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "field"}};
constexpr ArgSpec kFieldsArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "field", .multiple = true}};
constexpr ArgSpec kPairArgs[] = {{.name = "field"}, {.name = "value"}};
constexpr ArgSpec kPairsArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "field_value", .type = ArgType::kBlock, .multiple = true, .args = kPairArgs}};
constexpr ArgSpec kSetnxArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "field"}, {.name = "value"}};
constexpr ArgSpec kScanArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "cursor", .type = ArgType::kInteger},
                                 {.name = "pattern", .type = ArgType::kPattern, .token = "MATCH", .optional = true},
                                 {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};

constexpr CommandSpec kHashCommands[] = {
    {.name = "HSET", .handler = &Hset, .arity = -4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields",
     .summary = "Sets fields of a hash.", .args = kPairsArgs},
    {.name = "HMSET", .handler = &Hmset, .arity = -4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields",
     .summary = "Sets fields of a hash, as HSET does.", .args = kPairsArgs},
    {.name = "HSETNX", .handler = &Hsetnx, .arity = 4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kHash, .since = "2.0.0", .complexity = "O(1)",
     .summary = "Sets a field of a hash if it is absent.", .args = kSetnxArgs},
    {.name = "HDEL", .handler = &Hdel, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields",
     .summary = "Removes fields of a hash.", .args = kFieldsArgs},
    {.name = "HGET", .handler = &Hget, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kHash, .since = "2.0.0", .complexity = "O(1)",
     .summary = "Returns the value of a field.", .args = kFieldArgs},
    {.name = "HMGET", .handler = &Hmget, .arity = -3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields",
     .summary = "Returns the values of several fields.", .args = kFieldsArgs},
    {.name = "HEXISTS", .handler = &Hexists, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO", .group = Group::kHash, .since = "2.0.0", .complexity = "O(1)",
     .summary = "Tells whether a hash has a field.", .args = kFieldArgs},
    {.name = "HLEN", .handler = &Hlen, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1), .key_flags = "RO",
     .group = Group::kHash, .since = "2.0.0", .complexity = "O(1)", .summary = "Counts the fields of a hash.",
     .args = kKeyArgs},
    {.name = "HSTRLEN", .handler = &Hstrlen, .arity = 3, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO", .group = Group::kHash, .since = "3.2.0", .complexity = "O(1)",
     .summary = "Counts the bytes of a field's value.", .args = kFieldArgs},
    {.name = "HGETALL", .handler = &Hgetall, .arity = 2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields",
     .summary = "Returns all fields with their values.", .args = kKeyArgs},
    {.name = "HKEYS", .handler = &Hkeys, .arity = 2, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields", .summary = "Returns all fields.",
     .args = kKeyArgs},
    {.name = "HVALS", .handler = &Hvals, .arity = 2, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kHash, .since = "2.0.0", .complexity = "O(N) with N fields", .summary = "Returns all values.",
     .args = kKeyArgs},
    {.name = "HSCAN", .handler = &Hscan, .arity = -3, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kHash, .since = "2.8.0",
     .complexity = "O(1) per call, O(N) for a whole walk",
     .summary = "Walks the fields of a hash, a part a call.", .args = kScanArgs}};

}  // namespace

absl::Span<const CommandSpec> HashCommands() { return kHashCommands; }

}  // namespace idemd::server
