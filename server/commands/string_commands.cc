// One key's whole value: GET and SET with all their kin.
#include "absl/strings/match.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"
#include "server/commands/string_compare.h"
#include "server/commands/string_lifetime.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

using storage::EventClass;
using storage::HashedKey;
using storage::KeyView;
using storage::kNoDeadline;

struct SetOptions {
  bool nx = false;
  bool xx = false;
  bool get = false;
  bool keep_ttl = false;
  LifetimeOption lifetime;
  Comparison comparison;

  bool Allows(const KeyView& old) const {
    if (nx) return !old;
    if (xx) return static_cast<bool>(old);
    return !comparison || comparison.Holds(old);
  }
};

// False: a syntax error.
bool ReadSetOptions(absl::Span<const absl::string_view> words, SetOptions* options) {
  for (size_t i = 3; i < words.size();) {
    size_t taken = 1;
    switch (OptionWord(words[i])) {
      case OptionWord("nx"):
        options->nx = true;
        break;
      case OptionWord("xx"):
        options->xx = true;
        break;
      case OptionWord("get"):
        options->get = true;
        break;
      case OptionWord("keepttl"):
        options->keep_ttl = true;
        break;
      default:
        taken = options->lifetime.Take(words, i);
        if (taken == 0) taken = options->comparison.Take(words, i);
        if (taken == 0) return false;
    }
    i += taken;
    if (options->keep_ttl && options->lifetime) return false;
    if (options->nx + options->xx + static_cast<bool>(options->comparison) > 1) return false;
  }
  return true;
}

void NotifySet(Context& c, const HashedKey& key, bool with_lifetime) {
  c.Notify(EventClass::kString, "set", key);
  if (with_lifetime) c.Notify(EventClass::kGeneric, "expire", key);
}

// Writes the value with a deadline that may be in the past already: then, as for Redis, the key is
// gone at once.
void StoreValue(Context& c, const HashedKey& key, absl::string_view value, int64_t deadline_ms,
                bool with_lifetime) {
  if (deadline_ms != kNoDeadline && deadline_ms <= c.unit.now_ms()) {
    const bool was_there = c.unit.Remove(c.db(), key);
    if (!was_there) c.Notify(EventClass::kNew, "new", key);
    NotifySet(c, key, true);
    c.Notify(EventClass::kExpired, "expired", key);
  } else {
    c.unit.SetString(c.db(), key, value, deadline_ms);
    NotifySet(c, key, with_lifetime);
  }
}

void Set(Context& c) {
  const HashedKey key = c.Key(1);
  if (c.words.size() == 3) {
    c.unit.Lock(key);
    c.unit.SetString(c.db(), key, c.words[2], kNoDeadline);
    NotifySet(c, key, false);
    return c.reply.Ok();
  }
  SetOptions options;
  if (!ReadSetOptions(c.words, &options)) return c.Syntax();
  int64_t ms = 0;
  if (options.lifetime && !ReadLifetime(c, options.lifetime, &ms)) return;
  if (!options.comparison.Check(c)) return;
  c.unit.Lock(key);
  int64_t deadline_ms = kNoDeadline;
  if (options.lifetime && !ToDeadline(c, options.lifetime, ms, &deadline_ms)) return;
  bool allowed = true;
  if (options.nx || options.xx || options.get || options.keep_ttl || options.comparison) {
    c.unit.ReportMisses(options.get);
    const KeyView old = c.unit.Find(c.db(), key);
    if ((options.get || options.comparison) && !CheckString(c, old)) return;
    allowed = options.Allows(old);
    if (options.keep_ttl && old) deadline_ms = old.deadline_ms;
    if (options.get) {
      CountRead(c, old);
      ReplyValue(c, old);
    }
  }
  if (allowed) StoreValue(c, key, c.words[2], deadline_ms, static_cast<bool>(options.lifetime));
  if (options.get) return;
  allowed ? c.reply.Ok() : c.reply.Null();
}

void SetNx(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  if (c.unit.Find(c.db(), key)) return c.reply.Integer(0);
  c.unit.SetString(c.db(), key, c.words[2], kNoDeadline);
  NotifySet(c, key, false);
  c.reply.Integer(1);
}

void SetFor(Context& c, LifetimeOption::Kind kind) {
  const LifetimeOption lifetime{kind, c.words[2]};
  int64_t ms = 0;
  if (!ReadLifetime(c, lifetime, &ms)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  int64_t deadline_ms = 0;
  if (!ToDeadline(c, lifetime, ms, &deadline_ms)) return;
  c.unit.SetString(c.db(), key, c.words[3], deadline_ms);
  NotifySet(c, key, true);
  c.reply.Ok();
}

void SetEx(Context& c) { SetFor(c, LifetimeOption::Kind::kSeconds); }
void PsetEx(Context& c) { SetFor(c, LifetimeOption::Kind::kMilliseconds); }

void Get(Context& c) { ReplyValue(c, c.unit.Find(c.db(), c.hashed)); }

// Finds the key for a command that reads and then changes it.
KeyView FindToChange(Context& c, const HashedKey& key) {
  c.unit.Lock(key);
  c.unit.ReportMisses(true);
  const KeyView view = c.unit.Find(c.db(), key);
  CountRead(c, view);
  return view;
}

void GetSet(Context& c) {
  const HashedKey key = c.Key(1);
  const KeyView old = FindToChange(c, key);
  ReplyValue(c, old);
  if (old.collection != nullptr) return;
  c.unit.SetString(c.db(), key, c.words[2], kNoDeadline);
  NotifySet(c, key, false);
}

void GetDel(Context& c) {
  const HashedKey key = c.Key(1);
  const KeyView view = FindToChange(c, key);
  ReplyValue(c, view);
  if (!view || view.collection != nullptr) return;
  c.unit.Remove(c.db(), key);
  c.Notify(EventClass::kGeneric, "del", key);
}

// As in Redis an absent key is answered before the number is looked at.
void GetEx(Context& c) {
  c.unit.ReportMisses(true);
  if (c.words.size() == 2) return Get(c);
  LifetimeOption lifetime;
  bool persist = false;
  for (size_t i = 2; i < c.words.size();) {
    size_t taken = 1;
    if (OptionWord(c.words[i]) == OptionWord("persist")) {
      persist = true;
    } else {
      taken = lifetime.Take(c.words, i);
    }
    if (taken == 0 || (persist && lifetime)) return c.Syntax();
    i += taken;
  }
  const HashedKey key = c.Key(1);
  const KeyView view = FindToChange(c, key);
  if (!view) return c.reply.Null();
  if (!CheckString(c, view)) return;
  int64_t ms = 0;
  int64_t deadline_ms = kNoDeadline;
  if (lifetime && !(ReadLifetime(c, lifetime, &ms) && ToDeadline(c, lifetime, ms, &deadline_ms)))
    return;
  ReplyValue(c, view);
  if (lifetime && deadline_ms <= c.unit.now_ms()) {
    c.unit.Remove(c.db(), key);
    c.Notify(EventClass::kGeneric, "del", key);
  } else if (lifetime || (persist && view.deadline_ms != kNoDeadline)) {
    c.unit.SetDeadline(c.db(), key, deadline_ms);
    c.Notify(EventClass::kGeneric, persist ? "persist" : "expire", key);
  }
}

// Only with GET does SET show what was there.
const char* SetKeyFlags(absl::Span<const absl::string_view> words) {
  for (size_t i = 3; i < words.size(); ++i)
    if (absl::EqualsIgnoreCase(words[i], "get")) return "RW ACCESS UPDATE";
  return "OW UPDATE";
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kKeyValueArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "value"}};
constexpr ArgSpec kSetConditionArgs[] = {
    {.name = "nx", .type = ArgType::kToken, .token = "NX"},
    {.name = "xx", .type = ArgType::kToken, .token = "XX"},
    {.name = "ifeq-value", .token = "IFEQ", .since = "0.1.0"},
    {.name = "ifne-value", .token = "IFNE", .since = "0.1.0"},
    {.name = "ifdeq-digest", .token = "IFDEQ", .since = "0.1.0"},
    {.name = "ifdne-digest", .token = "IFDNE", .since = "0.1.0"}};
constexpr ArgSpec kSetExpirationArgs[] = {
    {.name = "seconds", .type = ArgType::kInteger, .token = "EX", .since = "2.6.12"},
    {.name = "milliseconds", .type = ArgType::kInteger, .token = "PX", .since = "2.6.12"},
    {.name = "unix-time-seconds", .type = ArgType::kUnixTime, .token = "EXAT", .since = "6.2.0"},
    {.name = "unix-time-milliseconds",
     .type = ArgType::kUnixTime,
     .token = "PXAT",
     .since = "6.2.0"},
    {.name = "keepttl", .type = ArgType::kToken, .token = "KEEPTTL", .since = "6.0.0"}};
constexpr ArgSpec kSetArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "value"},
    {.name = "condition",
     .type = ArgType::kOneOf,
     .optional = true,
     .since = "2.6.12",
     .args = kSetConditionArgs},
    {.name = "get", .type = ArgType::kToken, .token = "GET", .optional = true, .since = "6.2.0"},
    {.name = "expiration", .type = ArgType::kOneOf, .optional = true, .args = kSetExpirationArgs}};
constexpr ArgSpec kSetExArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "seconds", .type = ArgType::kInteger},
                                  {.name = "value"}};
constexpr ArgSpec kPsetExArgs[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "milliseconds", .type = ArgType::kInteger},
                                   {.name = "value"}};
constexpr ArgSpec kGetExExpirationArgs[] = {
    {.name = "seconds", .type = ArgType::kInteger, .token = "EX"},
    {.name = "milliseconds", .type = ArgType::kInteger, .token = "PX"},
    {.name = "unix-time-seconds", .type = ArgType::kUnixTime, .token = "EXAT"},
    {.name = "unix-time-milliseconds", .type = ArgType::kUnixTime, .token = "PXAT"},
    {.name = "persist", .type = ArgType::kToken, .token = "PERSIST"}};
constexpr ArgSpec kGetExArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "expiration",
                                   .type = ArgType::kOneOf,
                                   .optional = true,
                                   .args = kGetExExpirationArgs}};

constexpr CommandSpec kStringCommands[] = {
    {.name = "GET",
     .handler = &Get,
     .arity = 2,
     .flags = kReadonly | kFast,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .group = Group::kString,
     .since = "1.0.0",
     .summary = "Returns a key's value.",
     .args = kKeyArgs},
    {.name = "SET",
     .handler = &Set,
     .arity = -3,
     .flags = kWrite | kDenyOom | kQuick,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE VARIABLE_FLAGS",
     .key_flags_of = &SetKeyFlags,
     .group = Group::kString,
     .since = "1.0.0",
     .summary = "Sets a key's value, if its condition holds.",
     .args = kSetArgs},
    {.name = "SETNX",
     .handler = &SetNx,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = Keys::At(1),
     .key_flags = "OW INSERT",
     .group = Group::kString,
     .since = "1.0.0",
     .summary = "Sets a key's value if the key is absent.",
     .args = kKeyValueArgs},
    {.name = "SETEX",
     .handler = &SetEx,
     .arity = 4,
     .flags = kWrite | kDenyOom | kQuick,
     .keys = Keys::At(1),
     .key_flags = "OW UPDATE",
     .group = Group::kString,
     .since = "2.0.0",
     .summary = "Sets a key's value and its lifetime in seconds.",
     .args = kSetExArgs},
    {.name = "PSETEX",
     .handler = &PsetEx,
     .arity = 4,
     .flags = kWrite | kDenyOom | kQuick,
     .keys = Keys::At(1),
     .key_flags = "OW UPDATE",
     .group = Group::kString,
     .since = "2.6.0",
     .summary = "Sets a key's value and its lifetime in milliseconds.",
     .args = kPsetExArgs},
    {.name = "GETSET",
     .handler = &GetSet,
     .arity = 3,
     .flags = kWrite | kDenyOom | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kString,
     .since = "1.0.0",
     .summary = "Sets a key's value and returns the one before.",
     .args = kKeyValueArgs},
    {.name = "GETDEL",
     .handler = &GetDel,
     .arity = 2,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE",
     .group = Group::kString,
     .since = "6.2.0",
     .summary = "Returns a key's value and deletes the key.",
     .args = kKeyArgs},
    {.name = "GETEX",
     .handler = &GetEx,
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kString,
     .since = "6.2.0",
     .summary = "Returns a key's value and changes its lifetime.",
     .args = kGetExArgs}};

}  // namespace

absl::Span<const CommandSpec> StringCommands() { return kStringCommands; }

}  // namespace idemd::server
