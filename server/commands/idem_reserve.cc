// IDEM.RESERVE: claims a key for one caller, or says who holds it.
#include "server/commands/idem_reserve.h"

#include <cstring>

#include "protocol/errors.h"
#include "server/commands/groups.h"
#include "server/commands/idem_args.h"
#include "server/commands/idem_common.h"
#include "storage/record/time_math.h"

namespace idemd::server {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
using storage::LifeError;
using storage::ReserveOutcome;
using storage::ReserveStatus;

storage::ReserveRequest RequestOf(const IdemOptions& options) {
  storage::ReserveRequest request;
  request.claim = options.claim;
  request.fingerprint = options.fingerprint;
  request.lease_ms = options.lease_ms;
  request.lifetime = options.lifetime;
  request.stop = options.stop;
  request.issued = options.has(kOptIssued);
  request.has_ifeq = options.has(kOptIfeq);
  request.ifeq = options.ifeq;
  return request;
}

void WriteReserveReply(protocol::Writer& reply, absl::string_view status,
                       const storage::ReserveReply& answer, absl::string_view payload) {
  // An array of six and the status, whose length has one digit.
  char ready[protocol::Writer::kReadyBytesMax] = "*6\r\n$n\r\n";
  constexpr size_t kDigitAt = 5, kStatusAt = 8;
  ready[kDigitAt] = static_cast<char>('0' + status.size());
  std::memcpy(ready + kStatusAt, status.data(), status.size());
  std::memcpy(ready + kStatusAt + status.size(), "\r\n", 2);
  reply.ReadyAndIntegers(absl::string_view(ready, kStatusAt + status.size() + 2),
                         {static_cast<int64_t>(answer.fence), static_cast<int64_t>(answer.attempt), answer.ms, answer.code});
  if (answer.has_payload) {
    reply.Bulk(payload);
  } else {
    reply.Null();
  }
}

void WriteReserveReply(protocol::Writer& reply, const storage::ReserveReply& answer) {
  WriteReserveReply(reply, storage::ReserveStatusName(answer.status), answer, answer.payload);
}

void CountReserve(NativeStats& native, absl::string_view key, ReserveStatus status,
                  bool took_over) {
  static constexpr NativeCounter kCounters[] = {
      NativeCounter::kReserved,        NativeCounter::kHeld,
      NativeCounter::kPendingHits,     NativeCounter::kReplays,
      NativeCounter::kMismatches,      NativeCounter::kUnknownHits,
      NativeCounter::kTokensDuplicate, NativeCounter::kTokensExpired,
      NativeCounter::kTokensUnissued,  NativeCounter::kTokensRefused};  // by ReserveStatus
  static_assert(std::size(kCounters) == static_cast<size_t>(ReserveStatus::kRefused) + 1);
  native.Count(key, kCounters[static_cast<size_t>(status)]);
  if (took_over) native.Count(key, NativeCounter::kTakenOver);
}

namespace {

ReserveOutcome Decide(Context& c, const HashedKey& key, const storage::ReserveRequest& request,
                      const KeyView& view, absl::FunctionRef<uint64_t()> next_fence) {
  const int64_t now_ms = c.unit.now_ms();
  return storage::Reserve(storage::SubjectOf(view), request, now_ms,
                          c.services.store.CurrentLimits(), next_fence,
                          [&] { return OriginOf(c.services.tokens, c.db(), key.bytes, now_ms); });
}

void Answer(Context& c, const HashedKey& key, const KeyView& view, const ReserveOutcome& outcome) {
  if (outcome.reply.status == ReserveStatus::kDone) storage::Unit::CountReplay(view);
  CountReserve(c.services.native, key.bytes, outcome.reply.status, outcome.took_over);
  WriteReserveReply(c.reply, outcome.reply);
}

// Most callers are told that somebody was here before them, which needs no lock. False: the lock is
// needed, and nothing was said.
bool AnswerWithoutLock(Context& c, const HashedKey& key, const storage::ReserveRequest& request,
                       bool may_wait) {
  const KeyView view = c.unit.Find(c.db(), key);
  if (!view && !request.issued) return false;
  bool granted = false;
  const ReserveOutcome outcome = Decide(c, key, request, view, [&]() -> uint64_t {
    granted = true;
    return 0;
  });
  if (granted || outcome.error != LifeError::kNone) return false;
  if (may_wait && outcome.reply.status == ReserveStatus::kPending) return false;
  Answer(c, key, view, outcome);
  return true;
}

void Reserve(Context& c) {
  IdemOptions options;
  constexpr uint32_t kAllowed = kOptClaim | kOptFingerprint | kOptLease | kOptLifetime | kOptWait |
                                kOptOnLapse | kOptIssued | kOptIfeq;
  if (c.words.size() > 2 && !ReadIdemOptions(c, 2, kAllowed, &options)) return;
  if (options.has(kOptIfeq) && !options.has(kOptIssued))
    return c.reply.Error(errors::kIfeqNeedsIssued);
  int64_t give_up_ms = 0;
  if (!storage::AddTime(c.unit.now_ms(), options.wait_ms, &give_up_ms))
    return c.reply.Error(errors::kTimeRange);
  const storage::ReserveRequest request = RequestOf(options);
  const HashedKey key = c.Key(1);
  // Inside a transaction or script nobody waits: the others could not go on either.
  const bool may_wait = options.wait_ms > 0 && !c.unit.sealed();
  if (AnswerWithoutLock(c, key, request, may_wait)) return;

  c.unit.Lock(key);
  c.unit.ServeDueWaiters(c.db(), key);
  const KeyView view = c.unit.Find(c.db(), key);
  const ReserveOutcome outcome =
      Decide(c, key, request, view, [&] { return c.services.store.fences().Next(); });
  if (outcome.error == LifeError::kRange) return ReplyInvalidTime(c);
  if (outcome.error != LifeError::kNone) return ReplyLifeError(c, key.bytes, outcome.error);
  if (may_wait && outcome.reply.status == ReserveStatus::kPending &&
      BeginWait(c, key, request, options.wait_ms))
    return;
  c.unit.Apply(c.db(), key, outcome.action);
  Answer(c, key, view, outcome);
}

constexpr ArgSpec kIssuedArgs[] = {
    {.name = "issued", .type = ArgType::kToken, .token = "ISSUED"},
    {.name = "value", .type = ArgType::kString, .token = "IFEQ", .optional = true}};

constexpr ArgSpec kReserveArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "id", .type = ArgType::kString, .token = "CLAIM", .optional = true},
    {.name = "fp", .type = ArgType::kString, .token = "FINGERPRINT", .optional = true},
    {.name = "lease-ms", .type = ArgType::kInteger, .token = "LEASE", .optional = true},
    {.name = "lifetime", .type = ArgType::kOneOf, .optional = true, .args = kLifetimeArgs},
    {.name = "wait-ms", .type = ArgType::kInteger, .token = "WAIT", .optional = true},
    {.name = "onlapse",
     .type = ArgType::kOneOf,
     .token = "ONLAPSE",
     .optional = true,
     .args = kOnLapseArgs},
    {.name = "token", .type = ArgType::kBlock, .optional = true, .args = kIssuedArgs}};

// Not refused as a whole at the memory limit: what exists is still answered and taken over.
constexpr CommandSpec kIdemReserveCommands[] = {
    {.name = "IDEM.RESERVE",
     .handler = &Reserve,
     .arity = -2,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Claims a key for one caller, or says who holds it.",
     .args = kReserveArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemReserveCommands() { return kIdemReserveCommands; }

}  // namespace idemd::server
