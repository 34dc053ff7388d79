// The commands of whoever holds a claim: IDEM.COMPLETE, FAIL, RELEASE, EXTEND, CHECKPOINT.
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/groups.h"
#include "server/commands/idem_args.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_options.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::LifeError;

// words[2]; writes the error and returns false when it is no fence.
bool ReadFence(Context& c, uint64_t* fence) {
  int64_t number = 0;
  if (!protocol::ParseInt64(c.words[2], &number) || number < 1) {
    c.reply.Error(errors::kFence);
    return false;
  }
  *fence = static_cast<uint64_t>(number);
  return true;
}

// Locks the key and shows what it holds.
storage::Subject LockAndLook(Context& c, const HashedKey& key) {
  c.unit.Lock(key);
  return storage::SubjectOf(c.unit.Find(c.db(), key));
}

// Writes the outcome's error, or applies its action and returns true.
bool Carry(Context& c, const HashedKey& key, const storage::FencedOutcome& outcome,
           bool lease_only = false) {
  if (outcome.error != LifeError::kNone) {
    ReplyLifeError(c, key.bytes, outcome.error);
    return false;
  }
  c.unit.Apply(c.db(), key, outcome.action, lease_only);
  return true;
}

void ReplyStatus(Context& c, storage::CompleteStatus status) {
  switch (status) {
    case storage::CompleteStatus::kOk:
      return c.reply.Ok();
    case storage::CompleteStatus::kLate:
      return c.reply.Simple("LATE");
    case storage::CompleteStatus::kNoResult:
      return c.reply.Simple("NORESULT");
  }
}

void Complete(Context& c) {
  storage::CompleteRequest request;
  IdemOptions options;
  if (!ReadFence(c, &request.fence)) return;
  if (c.words.size() > 4 && !ReadIdemOptions(c, 4, kOptCode | kOptLifetime, &options)) return;
  request.result = c.words[3];
  request.code = options.code;
  request.lifetime = options.lifetime;
  const HashedKey key = c.Key(1);
  const storage::Subject subject = LockAndLook(c, key);
  const storage::CompleteOutcome outcome =
      storage::Complete(subject, request, c.unit.now_ms(), c.services.store.CurrentLimits());
  if (!Carry(c, key, outcome)) return;
  if (!outcome.repeat) {
    NativeStats& native = c.services.native;
    native.Count(key.bytes, NativeCounter::kCompleted);
    if (outcome.late) native.Count(key.bytes, NativeCounter::kCompletedLate);
    if (outcome.status == storage::CompleteStatus::kNoResult)
      native.Count(key.bytes, NativeCounter::kNoResult);
  }
  ReplyStatus(c, outcome.status);
}

void Fail(Context& c) {
  uint64_t fence = 0;
  IdemOptions options;
  if (!ReadFence(c, &fence) || !ReadIdemOptions(c, 3, kOptAfter, &options)) return;
  const HashedKey key = c.Key(1);
  const storage::Subject subject = LockAndLook(c, key);
  const storage::FailOutcome outcome =
      storage::Fail(subject, fence, options.after_ms, c.unit.now_ms());
  if (!Carry(c, key, outcome)) return;
  if (!outcome.repeat) c.services.native.Count(key.bytes, NativeCounter::kFailed);
  c.reply.Ok();
}

void Release(Context& c) {
  uint64_t fence = 0;
  if (!ReadFence(c, &fence)) return;
  const HashedKey key = c.Key(1);
  const storage::Subject subject = LockAndLook(c, key);
  const storage::ReleaseOutcome outcome = storage::Release(subject, fence, c.unit.now_ms());
  if (!Carry(c, key, outcome)) return;
  if (outcome.released != 0 && !outcome.repeat)
    c.services.native.Count(key.bytes, NativeCounter::kReleased);
  c.reply.Integer(outcome.released);
}

void Extend(Context& c) {
  uint64_t fence = 0;
  int64_t lease_ms = 0;
  if (!ReadFence(c, &fence) || !c.Int(3, &lease_ms)) return;
  if (lease_ms < 1) return ReplyInvalidTime(c);
  const HashedKey key = c.Key(1);
  const storage::Subject subject = LockAndLook(c, key);
  const storage::ExtendOutcome outcome = storage::Extend(subject, fence, lease_ms, c.unit.now_ms());
  if (!Carry(c, key, outcome, /*lease_only=*/true)) return;
  c.reply.Integer(outcome.lease_left_ms);
}

void Checkpoint(Context& c) {
  uint64_t fence = 0;
  IdemOptions options;
  if (!ReadFence(c, &fence) || !ReadIdemOptions(c, 4, kOptLease, &options)) return;
  const HashedKey key = c.Key(1);
  const storage::Subject subject = LockAndLook(c, key);
  const storage::FencedOutcome outcome =
      storage::Checkpoint(subject, fence, c.words[3], options.lease_ms, c.unit.now_ms(),
                          c.services.store.CurrentLimits());
  if (!Carry(c, key, outcome)) return;
  c.reply.Ok();
}

constexpr ArgSpec kKey = {.name = "key", .type = ArgType::kKey};
constexpr ArgSpec kFenceArg = {.name = "fence", .type = ArgType::kInteger};

constexpr ArgSpec kCompleteArgs[] = {
    kKey,
    kFenceArg,
    {.name = "result", .type = ArgType::kString},
    {.name = "code", .type = ArgType::kInteger, .token = "CODE", .optional = true},
    {.name = "lifetime", .type = ArgType::kOneOf, .optional = true, .args = kLifetimeArgs}};
constexpr ArgSpec kFailArgs[] = {
    kKey, kFenceArg, {.name = "ms", .type = ArgType::kInteger, .token = "AFTER", .optional = true}};
constexpr ArgSpec kReleaseArgs[] = {kKey, kFenceArg};
constexpr ArgSpec kExtendArgs[] = {kKey, kFenceArg, {.name = "ms", .type = ArgType::kInteger}};
constexpr ArgSpec kCheckpointArgs[] = {
    kKey,
    kFenceArg,
    {.name = "data", .type = ArgType::kString},
    {.name = "ms", .type = ArgType::kInteger, .token = "LEASE", .optional = true}};

// None of these is refused at the memory limit: what was begun can be ended.
constexpr CommandSpec kIdemFencedCommands[] = {
    {.name = "IDEM.COMPLETE",
     .handler = &Complete,
     .arity = -4,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Stores the answer of a reservation and ends it.",
     .args = kCompleteArgs},
    {.name = "IDEM.FAIL",
     .handler = &Fail,
     .arity = -3,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Gives an attempt up, to be tried again.",
     .args = kFailArgs},
    {.name = "IDEM.RELEASE",
     .handler = &Release,
     .arity = 3,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Undoes a reservation whose attempt had no effect.",
     .args = kReleaseArgs},
    {.name = "IDEM.EXTEND",
     .handler = &Extend,
     .arity = 4,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Renews the lease of a reservation.",
     .args = kExtendArgs},
    {.name = "IDEM.CHECKPOINT",
     .handler = &Checkpoint,
     .arity = -4,
     .flags = kWrite | kFast,
     .keys = Keys::At(1),
     .key_flags = "RW UPDATE",
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Saves how far an attempt got, and renews its lease.",
     .args = kCheckpointArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemFencedCommands() { return kIdemFencedCommands; }

}  // namespace idemd::server
