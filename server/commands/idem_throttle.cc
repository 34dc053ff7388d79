// IDEM.THROTTLE, and CL.THROTTLE with redis-cell's arguments: rate limits.
#include <string>

#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/groups.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_options.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::LifeError;

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kNsPerSecond = 1'000'000'000;

// Reads words[2..4]; the period in units of `unit_ns`.
bool ReadRate(Context& c, int64_t unit_ns, storage::ThrottleRequest* request) {
  int64_t period = 0;
  if (!c.Int(2, &request->max_burst) || !c.Int(3, &request->count) || !c.Int(4, &period))
    return false;
  // The rest of the ranges is looked at with the algorithm.
  if (!__builtin_mul_overflow(period, unit_ns, &request->period_ns)) return true;
  c.reply.Error(errors::kThrottleRange);
  return false;
}

// -1 stays: there is nothing to wait for.
int64_t RoundedUp(int64_t ns, int64_t unit_ns) {
  return ns < 0 ? -1 : ns / unit_ns + (ns % unit_ns != 0 ? 1 : 0);
}

void Run(Context& c, const storage::ThrottleRequest& request, int64_t unit_ns) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const storage::Subject subject = storage::SubjectOf(c.unit.Find(c.db(), key));
  const storage::ThrottleOutcome outcome = storage::Throttle(subject, request, c.unit.now_ns());
  if (outcome.error == LifeError::kRange) return c.reply.Error(errors::kThrottleRange);
  if (outcome.error != LifeError::kNone) return ReplyLifeError(c, key.bytes, outcome.error);
  if (outcome.bad_state) return c.reply.Error(errors::kThrottleState);
  if (outcome.write) {
    const bool is_new = subject.kind == storage::Subject::Kind::kAbsent;
    if (is_new && c.services.store.OverMemoryLimit()) return c.reply.Error(errors::kOutOfMemory);
    c.unit.SetString(c.db(), key, absl::AlphaNum(outcome.tat_ns).Piece(), outcome.deadline_ms);
    c.Notify(storage::EventClass::kString, "set", key);
  }
  if (request.store) {
    c.services.native.Count(key.bytes, outcome.limited ? NativeCounter::kThrottleLimited
                                                       : NativeCounter::kThrottleAllowed);
  }
  c.reply.Array(5);
  c.reply.Integer(outcome.limited ? 1 : 0);
  c.reply.Integer(outcome.limit);
  c.reply.Integer(outcome.remaining);
  c.reply.Integer(RoundedUp(outcome.retry_after_ns, unit_ns));
  c.reply.Integer(RoundedUp(outcome.reset_after_ns, unit_ns));
}

void Throttle(Context& c) {
  storage::ThrottleRequest request;
  IdemOptions options;
  if (!ReadRate(c, kNsPerMs, &request)) return;
  if (c.words.size() > 5 && !ReadIdemOptions(c, 5, kOptCost | kOptPeek, &options)) return;
  request.cost = options.cost;
  request.store = !options.has(kOptPeek);
  Run(c, request, kNsPerMs);
}

void ClThrottle(Context& c) {
  storage::ThrottleRequest request;
  if (c.words.size() > 6) return ReplyWrongArity(c);
  if (!ReadRate(c, kNsPerSecond, &request)) return;
  if (c.words.size() == 6 && !c.Int(5, &request.cost)) return;
  Run(c, request, kNsPerSecond);
}

constexpr ArgSpec kThrottleArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "max-burst", .type = ArgType::kInteger},
    {.name = "count", .type = ArgType::kInteger},
    {.name = "period-ms", .type = ArgType::kInteger},
    {.name = "cost", .type = ArgType::kInteger, .token = "COST", .optional = true},
    {.name = "peek", .type = ArgType::kToken, .token = "PEEK", .optional = true}};

constexpr ArgSpec kClThrottleArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "max-burst", .type = ArgType::kInteger},
    {.name = "count", .type = ArgType::kInteger},
    {.name = "period-s", .type = ArgType::kInteger},
    {.name = "quantity", .type = ArgType::kInteger, .optional = true}};

constexpr CommandSpec kIdemThrottleCommands[] = {
    {.name = "IDEM.THROTTLE",
     .handler = &Throttle,
     .arity = -5,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Takes from a rate limit, or says when it may.",
     .args = kThrottleArgs},
    {.name = "CL.THROTTLE",
     .handler = &ClThrottle,
     .arity = -5,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "As IDEM.THROTTLE, in seconds and with redis-cell's arguments.",
     .args = kClThrottleArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemThrottleCommands() { return kIdemThrottleCommands; }

}  // namespace idemd::server
