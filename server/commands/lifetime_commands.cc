// Lifetimes of keys: the EXPIRE family, TTL and its kin, PERSIST.
#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::kNoDeadline;

struct Conditions {
  bool nx = false;
  bool xx = false;
  bool gt = false;
  bool lt = false;
};

bool ReadConditions(Context& c, Conditions* conditions) {
  for (size_t i = 3; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    if (absl::EqualsIgnoreCase(word, "nx")) {
      conditions->nx = true;
    } else if (absl::EqualsIgnoreCase(word, "xx")) {
      conditions->xx = true;
    } else if (absl::EqualsIgnoreCase(word, "gt")) {
      conditions->gt = true;
    } else if (absl::EqualsIgnoreCase(word, "lt")) {
      conditions->lt = true;
    } else {
      c.reply.Error(absl::StrCat("ERR Unsupported option ", word));
      return false;
    }
  }
  if (conditions->nx && (conditions->xx || conditions->gt || conditions->lt)) {
    c.reply.Error("ERR NX and XX, GT or LT options at the same time are not compatible");
    return false;
  }
  if (conditions->gt && conditions->lt) {
    c.reply.Error("ERR GT and LT options at the same time are not compatible");
    return false;
  }
  return true;
}

// A key without a lifetime counts as one that lives longest.
bool Allows(const Conditions& conditions, int64_t current, int64_t wanted) {
  const bool has = current != kNoDeadline;
  if (conditions.nx && has) return false;
  if (conditions.xx && !has) return false;
  if (conditions.gt && (!has || wanted <= current)) return false;
  if (conditions.lt && has && wanted >= current) return false;
  return true;
}

// The time words[2] names, as unix milliseconds; false when it overflows.
bool ToDeadline(int64_t value, int64_t unit_ms, int64_t base_ms, int64_t* deadline) {
  int64_t ms = 0;
  return !__builtin_mul_overflow(value, unit_ms, &ms) && !__builtin_add_overflow(ms, base_ms, deadline);
}

void Expire(Context& c, int64_t unit_ms, bool absolute) {
  Conditions conditions;
  if (!ReadConditions(c, &conditions)) return;
  int64_t value = 0;
  if (!c.Int(2, &value)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const int64_t now = c.unit.now_ms();
  int64_t deadline = 0;
  if (!ToDeadline(value, unit_ms, absolute ? 0 : now, &deadline))
    return c.reply.Error(
        absl::StrCat("ERR invalid expire time in '", absl::AsciiStrToLower(c.spec->name), "' command"));
  deadline = std::min(deadline, kNoDeadline - 1);  // the last millisecond there is means "never"
  const KeyView view = c.unit.Find(c.db(), key);
  if (!view || !Allows(conditions, view.deadline_ms, deadline)) return c.reply.Integer(0);
  if (deadline <= now) {
    c.unit.Remove(c.db(), key);
    c.Notify(storage::EventClass::kGeneric, "del", key);
  } else {
    c.unit.SetDeadline(c.db(), key, deadline);
    c.Notify(storage::EventClass::kGeneric, "expire", key);
  }
  c.reply.Integer(1);
}

void ExpireS(Context& c) { Expire(c, 1000, false); }
void ExpireMs(Context& c) { Expire(c, 1, false); }
void ExpireAtS(Context& c) { Expire(c, 1000, true); }
void ExpireAtMs(Context& c) { Expire(c, 1, true); }

// -2: absent, -1: no lifetime.
void ReplyLifetime(Context& c, bool seconds, bool absolute) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1), /*touch=*/false);
  if (!view) return c.reply.Integer(-2);
  if (view.deadline_ms == kNoDeadline) return c.reply.Integer(-1);
  const int64_t ms = absolute ? view.deadline_ms : std::max<int64_t>(view.deadline_ms - c.unit.now_ms(), 0);
  c.reply.Integer(seconds ? ms / 1000 + (ms % 1000 >= 500 ? 1 : 0) : ms);
}

void Ttl(Context& c) { ReplyLifetime(c, true, false); }
void Pttl(Context& c) { ReplyLifetime(c, false, false); }
void ExpireTime(Context& c) { ReplyLifetime(c, true, true); }
void PexpireTime(Context& c) { ReplyLifetime(c, false, true); }

void Persist(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!view || view.deadline_ms == kNoDeadline) return c.reply.Integer(0);
  c.unit.SetDeadline(c.db(), key, kNoDeadline);
  c.Notify(storage::EventClass::kGeneric, "persist", key);
  c.reply.Integer(1);
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kConditionArgs[] = {{.name = "nx", .type = ArgType::kToken, .token = "NX"},
                                      {.name = "xx", .type = ArgType::kToken, .token = "XX"},
                                      {.name = "gt", .type = ArgType::kToken, .token = "GT"},
                                      {.name = "lt", .type = ArgType::kToken, .token = "LT"}};
constexpr ArgSpec kCondition = {
    .name = "condition", .type = ArgType::kOneOf, .optional = true, .since = "7.0.0", .args = kConditionArgs};
constexpr ArgSpec kExpireArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "seconds", .type = ArgType::kInteger}, kCondition};
constexpr ArgSpec kPexpireArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "milliseconds", .type = ArgType::kInteger}, kCondition};
constexpr ArgSpec kExpireAtArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "unix-time-seconds", .type = ArgType::kUnixTime}, kCondition};
constexpr ArgSpec kPexpireAtArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "unix-time-milliseconds", .type = ArgType::kUnixTime}, kCondition};

constexpr CommandSpec kLifetimeCommands[] = {
    {.name = "EXPIRE", .handler = &ExpireS, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .since = "1.0.0", .summary = "Sets a key's lifetime in seconds.", .args = kExpireArgs},
    {.name = "PEXPIRE", .handler = &ExpireMs, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .since = "2.6.0", .summary = "Sets a key's lifetime in milliseconds.",
     .args = kPexpireArgs},
    {.name = "EXPIREAT", .handler = &ExpireAtS, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .since = "1.2.0", .summary = "Sets the second at which a key expires.",
     .args = kExpireAtArgs},
    {.name = "PEXPIREAT", .handler = &ExpireAtMs, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .since = "2.6.0", .summary = "Sets the millisecond at which a key expires.",
     .args = kPexpireAtArgs},
    {.name = "TTL", .handler = &Ttl, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .since = "1.0.0", .summary = "Tells the seconds a key has left.", .args = kKeyArgs},
    {.name = "PTTL", .handler = &Pttl, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .since = "2.6.0", .summary = "Tells the milliseconds a key has left.",
     .args = kKeyArgs},
    {.name = "EXPIRETIME", .handler = &ExpireTime, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .since = "7.0.0", .summary = "Tells the unix second at which a key expires.",
     .args = kKeyArgs},
    {.name = "PEXPIRETIME", .handler = &PexpireTime, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .since = "7.0.0", .summary = "Tells the unix millisecond at which a key expires.",
     .args = kKeyArgs},
    {.name = "PERSIST", .handler = &Persist, .arity = 2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .since = "2.2.0", .summary = "Takes a key's lifetime away.", .args = kKeyArgs}};

}  // namespace

absl::Span<const CommandSpec> LifetimeCommands() { return kLifetimeCommands; }

}  // namespace idemd::server
