// A key's value as bytes that another server takes in: DUMP, RESTORE.
//
// A record travels as its text, and is a record again where it arrives.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admin/settings.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_lifetime.h"
#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::kNoDeadline;

void Dump(Context& c) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!view) return c.reply.Null();
  const bool compressed = c.services.settings.Text("rdbcompression") == "yes";
  const auto strings = compressed ? storage::RdbStrings::kCompressed : storage::RdbStrings::kPlain;
  if (view.collection != nullptr) return c.reply.Bulk(storage::DumpPayload(*view.collection, strings));
  std::string text;
  c.reply.Bulk(storage::DumpPayload(storage::StringValue(view, text), strings));
}

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  // -1: not told
  int64_t idle_s = -1;
  int64_t uses = -1;
};

// When a key was used, or how often.
bool ReadUse(Context& c, size_t i, int64_t max, absl::string_view range_error, int64_t* value) {
  if (!c.Int(i, value)) return false;
  if (*value >= 0 && *value <= max) return true;
  c.reply.Error(range_error);
  return false;
}

// As in Redis IDLETIME and FREQ exclude each other. False: the error was written.
bool ReadRestoreOptions(Context& c, RestoreOptions* options) {
  for (size_t i = 4; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const bool more = i + 1 < c.words.size();
    if (absl::EqualsIgnoreCase(word, "replace")) {
      options->replace = true;
    } else if (absl::EqualsIgnoreCase(word, "absttl")) {
      options->absolute = true;
    } else if (absl::EqualsIgnoreCase(word, "idletime") && more && options->uses < 0) {
      if (!ReadUse(c, ++i, INT64_MAX, errors::kIdleTimeRange, &options->idle_s)) return false;
    } else if (absl::EqualsIgnoreCase(word, "freq") && more && options->idle_s < 0) {
      if (!ReadUse(c, ++i, UINT8_MAX, errors::kFreqRange, &options->uses)) return false;
    } else {
      c.Syntax();
      return false;
    }
  }
  return true;
}

void ReplyNoValue(Context& c, const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return c.reply.Error(errors::kDumpVersionOrSum);
  if (absl::IsUnimplemented(status))
    return c.reply.Error(absl::StrCat(errors::kDumpFormat, ": the value is ", status.message(),
                                      ", which this version does not have"));
  c.reply.Error(errors::kDumpFormat);
}

// Answers in the order in which Redis checks: options, the name, the lifetime, the payload. The
// payload is taken apart before the lock all the same.
void Restore(Context& c) {
  RestoreOptions options;
  if (!ReadRestoreOptions(c, &options)) return;
  std::unique_ptr<storage::Collection> collection;
  const absl::StatusOr<std::string> value = storage::ReadDumpPayload(c.words[3], &collection);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  if (!options.replace && c.unit.Find(c.db(), key)) return c.reply.Error(errors::kBusyKey);
  int64_t ttl_ms = 0;
  if (!c.Int(2, &ttl_ms)) return;
  if (ttl_ms < 0) return c.reply.Error(errors::kTtlRange);
  if (!value.ok()) return ReplyNoValue(c, value.status());
  int64_t deadline_ms = kNoDeadline;
  if (ttl_ms != 0) {
    // Redis lets the sum overflow, and deletes.
    if (__builtin_add_overflow(ttl_ms, options.absolute ? 0 : c.unit.now_ms(), &deadline_ms))
      return ReplyInvalidExpire(c);
    deadline_ms = std::min(deadline_ms, kNoDeadline - 1);
  }
  if (deadline_ms <= c.unit.now_ms()) {
    if (c.unit.Remove(c.db(), key)) c.Notify(storage::EventClass::kGeneric, "del", key);
  } else {
    // What it replaces counts as deleted before, so the key is new.
    const bool replaces = options.replace && c.services.store.WantsEvent(storage::EventClass::kNew) &&
                          c.unit.Find(c.db(), key, /*touch=*/false);
    if (collection != nullptr)
      c.unit.SetCollection(c.db(), key, std::move(collection), deadline_ms);
    else
      c.unit.SetString(c.db(), key, *value, deadline_ms);
    if (options.idle_s >= 0) c.unit.SetIdle(c.db(), key, options.idle_s);
    c.unit.SetUses(c.db(), key, options.uses >= 0 ? static_cast<uint8_t>(options.uses) : storage::kFirstUses);
    if (replaces) c.Notify(storage::EventClass::kNew, "new", key);
    c.Notify(storage::EventClass::kGeneric, "restore", key);
  }
  c.reply.Ok();
}

constexpr ArgSpec kDumpArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kRestoreArgs[] = {{.name = "key", .type = ArgType::kKey},
                                    {.name = "ttl", .type = ArgType::kInteger},
                                    {.name = "serialized-value"},
                                    {.name = "replace",
                                     .type = ArgType::kToken,
                                     .token = "REPLACE",
                                     .optional = true,
                                     .since = "3.0.0"},
                                    {.name = "absttl",
                                     .type = ArgType::kToken,
                                     .token = "ABSTTL",
                                     .optional = true,
                                     .since = "5.0.0"},
                                    {.name = "seconds",
                                     .type = ArgType::kInteger,
                                     .token = "IDLETIME",
                                     .optional = true,
                                     .since = "5.0.0"},
                                    {.name = "frequency",
                                     .type = ArgType::kInteger,
                                     .token = "FREQ",
                                     .optional = true,
                                     .since = "5.0.0"}};

constexpr CommandSpec kDumpCommands[] = {
    {.name = "DUMP",
     .handler = &Dump,
     .arity = 2,
     .flags = kReadonly,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .since = "2.6.0",
     .complexity = "O(N) for a string of N bytes",
     .summary = "Gives what a key holds as bytes that RESTORE takes.",
     .args = kDumpArgs},
    {.name = "RESTORE",
     .handler = &Restore,
     .arity = -4,
     .flags = kWrite | kDenyOom | kDangerous,
     .keys = Keys::At(1),
     .key_flags = "OW UPDATE",
     .since = "2.6.0",
     .complexity = "O(N) for a string of N bytes",
     .summary = "Makes a key from what DUMP gave, here or in Redis; ttl 0 is for ever.",
     .args = kRestoreArgs}};

}  // namespace

absl::Span<const CommandSpec> DumpCommands() { return kDumpCommands; }

}  // namespace idemd::server
