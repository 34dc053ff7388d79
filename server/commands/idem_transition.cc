// IDEM.TRANSITION: moves a state along listed edges only.
#include <algorithm>

#include "protocol/errors.h"
#include "server/commands/groups.h"
#include "server/commands/idem_args.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_options.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::LifeError;
using storage::TransitionStatus;

struct Verdict {
  absl::string_view word;
  NativeCounter counter;
};

Verdict VerdictOf(TransitionStatus status) {
  switch (status) {
    case TransitionStatus::kMoved:
      return {"MOVED", NativeCounter::kTransitionsMoved};
    case TransitionStatus::kAlready:
      return {"ALREADY", NativeCounter::kTransitionsAlready};
    case TransitionStatus::kRefused:
      break;
  }
  return {"REFUSED", NativeCounter::kTransitionsRefused};
}

bool IsReserved(absl::string_view state) { return storage::LooksLikeRecord(state); }

void Transition(Context& c) {
  IdemOptions options;
  if (!ReadIdemOptions(c, 3, kOptFrom | kOptInit | kOptLifetime, &options)) return;
  const absl::string_view to = c.words[2];
  if (!options.has(kOptFrom)) return c.reply.Error(errors::kFromNeeded);
  if (options.from.empty() && !options.has(kOptInit)) return c.reply.Error(errors::kFromCount);
  if (IsReserved(to) || std::any_of(options.from.begin(), options.from.end(), IsReserved))
    return c.reply.Error(errors::kReservedValue);
  const auto listed = [&](absl::string_view state) {
    return std::find(options.from.begin(), options.from.end(), state) != options.from.end();
  };

  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const storage::Subject subject = storage::SubjectOf(c.unit.Find(c.db(), key));
  const storage::TransitionOutcome outcome =
      storage::Transition(subject, to, listed, options.has(kOptInit), options.lifetime,
                          c.unit.now_ms(), c.services.store.CurrentLimits());
  if (outcome.error == LifeError::kRange) return ReplyInvalidTime(c);
  if (outcome.error != LifeError::kNone) return ReplyLifeError(c, key.bytes, outcome.error);
  const Verdict verdict = VerdictOf(outcome.status);
  c.reply.Array(2);
  c.reply.Bulk(verdict.word);
  // Written before the change, which replaces the bytes that it points to.
  if (outcome.has_state) {
    c.reply.Bulk(outcome.state);
  } else {
    c.reply.Null();
  }
  c.unit.Apply(c.db(), key, outcome.action);
  c.services.native.Count(key.bytes, verdict.counter);
}

constexpr ArgSpec kFromArgs[] = {
    {.name = "numstates", .type = ArgType::kInteger, .token = "FROM"},
    {.name = "state", .type = ArgType::kString, .optional = true, .multiple = true}};

constexpr ArgSpec kTransitionArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "to", .type = ArgType::kString},
    {.name = "from", .type = ArgType::kBlock, .args = kFromArgs},
    {.name = "init", .type = ArgType::kToken, .token = "INIT", .optional = true},
    {.name = "lifetime", .type = ArgType::kOneOf, .optional = true, .args = kLifetimeArgs}};

constexpr CommandSpec kIdemTransitionCommands[] = {
    {.name = "IDEM.TRANSITION",
     .handler = &Transition,
     .arity = -5,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .complexity = "O(N) where N is the number of listed states",
     .summary = "Moves a state, only from one of the listed ones.",
     .args = kTransitionArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemTransitionCommands() { return kIdemTransitionCommands; }

}  // namespace idemd::server
