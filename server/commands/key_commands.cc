// Commands on whole keys: DEL, UNLINK, EXISTS, TOUCH, TYPE, RENAME, RENAMENX, COPY, MOVE.
#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::EventClass;
using storage::HashedKey;
using storage::KeyView;
using KeyList = absl::InlinedVector<HashedKey, 4>;

KeyList KeysFrom(Context& c, size_t first) {
  KeyList keys;
  keys.reserve(c.words.size() - first);
  for (size_t i = first; i < c.words.size(); ++i) keys.push_back(c.Key(i));
  c.services.store.PrefetchAll(c.db(), keys, (c.spec->flags & kWrite) != 0);
  return keys;
}

void Delete(Context& c) {
  const KeyList keys = KeysFrom(c, 1);
  c.unit.LockKeys(keys);
  int64_t removed = 0;
  for (const HashedKey& key : keys) {
    if (!c.unit.Remove(c.db(), key)) continue;
    c.Notify(EventClass::kGeneric, "del", key);
    ++removed;
  }
  c.reply.Integer(removed);
}

int64_t CountPresent(Context& c) {
  const KeyList keys = KeysFrom(c, 1);
  if (keys.size() > 1) c.unit.LockKeys(keys);  // all of them as they were at one moment
  int64_t present = 0;
  for (const HashedKey& key : keys) present += c.unit.Find(c.db(), key) ? 1 : 0;
  return present;
}

// Whoever asks whether a key is there does not use it.
void Exists(Context& c) {
  c.unit.KeepAccessTimes(true);
  c.reply.Integer(CountPresent(c));
  c.unit.KeepAccessTimes(c.session.no_touch);
}

// Does what it says for CLIENT NO-TOUCH, too.
void Touch(Context& c) {
  c.unit.KeepAccessTimes(false);
  c.reply.Integer(CountPresent(c));
  c.unit.KeepAccessTimes(c.session.no_touch);
}

void Type(Context& c) {
  // Whoever asks for the type does not use the key.
  c.reply.Simple(storage::ValueTypeName(c.unit.Find(c.db(), c.Key(1), /*touch=*/false).type));
}

// The common part of RENAME and RENAMENX. False: the reply was written.
void RenameTo(Context& c, bool only_if_absent) {
  const HashedKey keys[] = {c.Key(1), c.Key(2)};
  c.unit.LockKeys(keys);
  if (!c.unit.Find(c.db(), keys[0])) return c.reply.Error(errors::kNoSuchKey);
  const bool same = keys[0].bytes == keys[1].bytes;
  if (only_if_absent && (same || c.unit.Find(c.db(), keys[1]))) return c.reply.Integer(0);
  if (!same) {
    c.unit.Rename(c.db(), keys[0], c.db(), keys[1]);
    c.Notify(EventClass::kGeneric, "rename_from", keys[0]);
    c.Notify(EventClass::kGeneric, "rename_to", keys[1]);
  }
  only_if_absent ? c.reply.Integer(1) : c.reply.Ok();
}

void Rename(Context& c) { RenameTo(c, false); }
void RenameNx(Context& c) { RenameTo(c, true); }

// Reads a database number; writes the error and returns false when it is none.
bool ReadDb(Context& c, size_t i, storage::DbIndex* db) {
  int64_t number = 0;
  if (!c.Int(i, &number)) return false;
  if (number < 0 || number >= int64_t{storage::kDatabases}) {
    c.reply.Error(errors::kDbIndex);
    return false;
  }
  *db = static_cast<storage::DbIndex>(number);
  return true;
}

void Copy(Context& c) {
  storage::DbIndex to_db = c.db();
  bool replace = false;
  for (size_t i = 3; i < c.words.size(); ++i) {
    if (absl::EqualsIgnoreCase(c.words[i], "replace")) {
      replace = true;
    } else if (absl::EqualsIgnoreCase(c.words[i], "db") && i + 1 < c.words.size()) {
      if (!ReadDb(c, ++i, &to_db)) return;
    } else {
      return c.Syntax();
    }
  }
  const HashedKey keys[] = {c.Key(1), c.Key(2)};
  if (to_db == c.db() && keys[0].bytes == keys[1].bytes) return c.reply.Error(errors::kSameObject);
  c.unit.LockKeys(keys);
  c.unit.ReportMisses(true);
  if (!c.unit.Find(c.db(), keys[0])) return c.reply.Integer(0);
  c.unit.ReportMisses(false);
  if (!replace && c.unit.Find(to_db, keys[1])) return c.reply.Integer(0);
  c.unit.Copy(c.db(), keys[0], to_db, keys[1]);
  c.unit.Notify(EventClass::kGeneric, "copy_to", to_db, keys[1].bytes);
  c.reply.Integer(1);
}

void Move(Context& c) {
  storage::DbIndex to_db = 0;
  if (!ReadDb(c, 2, &to_db)) return;
  if (to_db == c.db()) return c.reply.Error(errors::kSameObject);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  if (!c.unit.Find(c.db(), key) || c.unit.Find(to_db, key)) return c.reply.Integer(0);
  c.unit.Rename(c.db(), key, to_db, key);
  c.Notify(EventClass::kGeneric, "move_from", key);
  c.unit.Notify(EventClass::kGeneric, "move_to", to_db, key.bytes);
  c.reply.Integer(1);
}

constexpr ArgSpec kKeysArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true}};
constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kRenameArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "newkey", .type = ArgType::kKey, .key_spec = 1}};
constexpr ArgSpec kCopyArgs[] = {
    {.name = "source", .type = ArgType::kKey},
    {.name = "destination", .type = ArgType::kKey, .key_spec = 1},
    {.name = "destination-db", .type = ArgType::kInteger, .token = "DB", .optional = true},
    {.name = "replace", .type = ArgType::kToken, .token = "REPLACE", .optional = true}};
constexpr ArgSpec kMoveArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "db", .type = ArgType::kInteger}};

constexpr KeySpec kRenameKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1}, {.flags = "OW UPDATE", .index = 2}};
constexpr KeySpec kRenameNxKeys[] = {{.flags = "RW ACCESS DELETE", .index = 1}, {.flags = "OW INSERT", .index = 2}};
constexpr KeySpec kCopyKeys[] = {{.flags = "RO ACCESS", .index = 1}, {.flags = "OW UPDATE", .index = 2}};
constexpr CommandSpec kKeyCommands[] = {
    {.name = "DEL", .handler = &Delete, .arity = -2, .flags = kWrite, .keys = Keys::From(1), .key_flags = "RM DELETE",
     .since = "1.0.0", .complexity = "O(N) where N is the number of keys", .summary = "Removes keys.",
     .args = kKeysArgs},
    {.name = "UNLINK", .handler = &Delete, .arity = -2, .flags = kWrite | kFast, .keys = Keys::From(1),
     .key_flags = "RM DELETE", .since = "4.0.0", .complexity = "O(1) per key",
     .summary = "Removes keys; their memory is freed in the background.", .args = kKeysArgs},
    {.name = "EXISTS", .handler = &Exists, .arity = -2, .flags = kReadonly | kFast, .keys = Keys::From(1),
     .key_flags = "RO", .since = "1.0.0", .complexity = "O(N) where N is the number of keys",
     .summary = "Counts how many of the keys are there.", .args = kKeysArgs},
    {.name = "TOUCH", .handler = &Touch, .arity = -2, .flags = kReadonly | kFast, .keys = Keys::From(1),
     .key_flags = "RO", .since = "3.2.1", .complexity = "O(N) where N is the number of keys",
     .summary = "Marks keys as used now and counts those that are there.", .args = kKeysArgs},
    {.name = "TYPE", .handler = &Type, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1), .key_flags = "RO",
     .since = "1.0.0", .complexity = "O(1)", .summary = "Names the type of what a key holds.", .args = kKeyArgs},
    {.name = "RENAME", .handler = &Rename, .arity = 3, .flags = kWrite, .keys = Keys::Range(1, 2),
     .key_specs = kRenameKeys, .since = "1.0.0", .complexity = "O(1)",
     .summary = "Renames a key, replacing what the new name held.", .args = kRenameArgs},
    {.name = "RENAMENX", .handler = &RenameNx, .arity = 3, .flags = kWrite | kFast, .keys = Keys::Range(1, 2),
     .key_specs = kRenameNxKeys, .since = "1.0.0", .complexity = "O(1)", .summary = "Renames a key if the new name is free.",
     .args = kRenameArgs},
    {.name = "COPY", .handler = &Copy, .arity = -3, .flags = kWrite | kDenyOom, .keys = Keys::Range(1, 2),
     .key_specs = kCopyKeys, .since = "6.2.0", .complexity = "O(N) for a string of N bytes", .summary = "Copies what a key holds.",
     .args = kCopyArgs},
    {.name = "MOVE", .handler = &Move, .arity = 3, .flags = kWrite | kFast, .keys = Keys::At(1), .since = "1.0.0",
     .complexity = "O(1)", .summary = "Moves a key to another database.", .args = kMoveArgs}};

}  // namespace

absl::Span<const CommandSpec> KeyCommands() { return kKeyCommands; }

}  // namespace idemd::server
