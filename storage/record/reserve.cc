// IDEM.RESERVE: who gets the key, and what everybody else is told.
#include <algorithm>

#include "storage/record/life.h"
#include "storage/record/lifetime.h"
#include "storage/record/time_math.h"

namespace idemd::storage {
namespace {

ReserveOutcome Fault(LifeError error) {
  ReserveOutcome outcome;
  outcome.error = error;
  return outcome;
}

ReserveOutcome Answer(ReserveStatus status, uint64_t attempt = 0, int64_t ms = 0) {
  ReserveOutcome outcome;
  outcome.reply.status = status;
  outcome.reply.attempt = attempt;
  outcome.reply.ms = ms;
  return outcome;
}

// The token is gone, or its right has ended: its own text says which.
ReserveOutcome NoRight(absl::FunctionRef<TokenOrigin()> origin) {
  switch (origin()) {
    case TokenOrigin::kLive:
      return Answer(ReserveStatus::kDuplicate);
    case TokenOrigin::kExpired:
      return Answer(ReserveStatus::kExpired);
    case TokenOrigin::kUnissued:
      return Answer(ReserveStatus::kUnissued);
  }
  return Answer(ReserveStatus::kDuplicate);
}

void SetPayload(const Record& record, ReserveReply& reply) {
  reply.has_payload = record.has_payload;
  reply.payload = record.payload;
}

// One call's view of everything; the pieces of the decision share it.
struct Call {
  const Subject& subject;
  const ReserveRequest& request;
  int64_t now_ms;
  int64_t lease_ms;
  int64_t lease_end_ms;
  absl::FunctionRef<uint64_t()> next_fence;
  absl::FunctionRef<TokenOrigin()> origin;

  // The longest it can take: the key itself may go earlier.
  int64_t at_most(int64_t left_ms) const {
    return subject.deadline_ms == kNoDeadline ? left_ms : std::min(left_ms, subject.deadline_ms - now_ms);
  }
  int64_t lifetime_left() const { return LeftOrForever(subject.deadline_ms, now_ms); }
};

// Writes the caller's claim into the outcome's record, which says what came before, and says RESERVED.
void Claim(const Call& call, int64_t deadline_ms, ReserveOutcome& outcome) {
  Record& record = outcome.action.record;
  record.state = RecordState::kPending;
  record.fence = call.next_fence();
  record.has_claim = !call.request.claim.empty();
  record.claim = call.request.claim;
  record.lease_ms = call.lease_ms;
  record.lease_end_ms = call.lease_end_ms;
  record.stop = record.stop || call.request.stop;
  if (!record.has_fingerprint && !call.request.fingerprint.empty()) {
    record.has_fingerprint = true;
    record.fingerprint = call.request.fingerprint;
  }
  outcome.reply.status = ReserveStatus::kReserved;
  outcome.reply.attempt = record.attempt;
  outcome.reply.ms = call.lease_ms;
  outcome.reply.fence = record.fence;
  outcome.action.kind = Action::Kind::kSetRecord;
  outcome.action.deadline_ms = std::max(deadline_ms, call.lease_end_ms);
}

ReserveOutcome FirstClaim(const Call& call, const ResolvedLifetime& lifetime) {
  ReserveOutcome outcome;
  Record& record = outcome.action.record;
  record.attempt = 1;
  record.since_ms = call.now_ms;
  record.keep_ms = lifetime.keep_ms;
  int64_t deadline_ms = lifetime.deadline_ms;
  if (call.subject.kind == Subject::Kind::kPlain) {
    record.has_token = true;
    record.token = call.subject.plain;
    record.token_expiry_ms = call.subject.deadline_ms;
    deadline_ms = std::max(deadline_ms, record.token_expiry_ms);
  }
  Claim(call, deadline_ms, outcome);
  return outcome;
}

ReserveOutcome TakeOver(const Call& call) {
  ReserveOutcome outcome;
  Record& record = outcome.action.record;
  record = call.subject.record;
  record.attempt = std::min<uint64_t>(record.attempt, INT64_MAX - 1) + 1;
  record.has_after = false;
  record.after_ms = 0;
  Claim(call, call.subject.deadline_ms, outcome);
  SetPayload(record, outcome.reply);
  outcome.took_over = true;
  return outcome;
}

// An earlier attempt lapsed under TAKE, failed, or was released: is there a right to take over, and
// is it time?
ReserveOutcome AfterAttempt(const Call& call) {
  const Record& record = call.subject.record;
  const bool delayed = record.state == RecordState::kFailed && record.after_ms > call.now_ms;
  if (call.request.issued) {
    if (!record.has_token) return Answer(ReserveStatus::kDuplicate);
    if (record.token_expiry_ms <= call.now_ms) return NoRight(call.origin);
  }
  if (delayed)
    return Answer(ReserveStatus::kPending, record.attempt, call.at_most(record.after_ms - call.now_ms));
  if (record.has_token && !call.request.issued)
    return Answer(ReserveStatus::kPending, record.attempt, call.lifetime_left());
  return TakeOver(call);
}

ReserveOutcome OnRecord(const Call& call) {
  const Record& record = call.subject.record;
  const ReserveRequest& request = call.request;
  if (record.state == RecordState::kConsumed) return Answer(ReserveStatus::kDuplicate);
  if (request.issued && request.has_ifeq && record.has_token && record.token != request.ifeq)
    return Answer(ReserveStatus::kRefused);
  if (!request.fingerprint.empty() && record.has_fingerprint &&
      record.fingerprint != request.fingerprint) {
    return Answer(ReserveStatus::kMismatch, record.attempt, call.lifetime_left());
  }
  switch (StatusAt(record, call.now_ms)) {
    case StatusWord::kDone: {
      ReserveOutcome outcome = Answer(ReserveStatus::kDone, record.attempt, call.lifetime_left());
      outcome.reply.code = record.code;
      SetPayload(record, outcome.reply);
      return outcome;
    }
    case StatusWord::kPending: {
      const int64_t left = record.lease_end_ms - call.now_ms;
      // Without ISSUED a key that remembers a token is a stranger's, whatever claim is said.
      const bool asks_for_it = request.issued || !record.has_token;
      if (asks_for_it && record.has_claim && record.claim == request.claim) {
        ReserveOutcome outcome = Answer(ReserveStatus::kHeld, record.attempt, left);
        outcome.reply.fence = record.fence;
        SetPayload(record, outcome.reply);
        return outcome;
      }
      return Answer(ReserveStatus::kPending, record.attempt, call.at_most(left));
    }
    case StatusWord::kUnknown: {
      ReserveOutcome outcome =
          Answer(ReserveStatus::kUnknown, record.attempt, call.now_ms - record.lease_end_ms);
      SetPayload(record, outcome.reply);
      return outcome;
    }
    case StatusWord::kLapsed:
    case StatusWord::kFailed:
      return AfterAttempt(call);
    case StatusWord::kIssued:
    case StatusWord::kConsumed:
      break;  // no record is issued, and consumed was answered first
  }
  return Answer(ReserveStatus::kDuplicate);
}

}  // namespace

ReserveOutcome Reserve(const Subject& subject, const ReserveRequest& request, int64_t now_ms,
                       const Limits& limits, absl::FunctionRef<uint64_t()> next_fence,
                       absl::FunctionRef<TokenOrigin()> origin) {
  const int64_t lease_ms = request.lease_ms > 0 ? request.lease_ms : limits.lease_ms;
  int64_t lease_end_ms = 0;
  ResolvedLifetime lifetime;
  if (!AddTime(now_ms, lease_ms, &lease_end_ms) ||
      !ResolveLifetime(request.lifetime, limits.retention_ms, now_ms, &lifetime)) {
    return Fault(LifeError::kRange);
  }
  const Call call{subject, request, now_ms, lease_ms, lease_end_ms, next_fence, origin};
  switch (subject.kind) {
    case Subject::Kind::kOtherType:
      return Fault(LifeError::kWrongType);
    case Subject::Kind::kDamaged:
      return Fault(LifeError::kDamagedRecord);
    case Subject::Kind::kRecord:
      return OnRecord(call);
    case Subject::Kind::kAbsent:
      if (request.issued) return NoRight(origin);
      break;
    case Subject::Kind::kPlain:
      if (!request.issued) return Answer(ReserveStatus::kPending, 0, call.lifetime_left());
      if (request.has_ifeq && request.ifeq != subject.plain) return Answer(ReserveStatus::kRefused);
      break;
  }
  if (limits.out_of_memory) return Fault(LifeError::kOutOfMemory);
  return FirstClaim(call, lifetime);
}

int64_t NextChange(const Subject& subject, int64_t now_ms) {
  int64_t next = subject.deadline_ms;
  const auto consider = [&](int64_t at_ms) {
    if (at_ms > now_ms) next = std::min(next, at_ms);
  };
  if (subject.kind == Subject::Kind::kRecord) {
    const Record& record = subject.record;
    if (record.state == RecordState::kPending && !Released(record)) consider(record.lease_end_ms);
    if (record.state == RecordState::kFailed) {
      consider(record.after_ms);
      // A right that ends during the delay turns PENDING into EXPIRED.
      consider(record.token_expiry_ms);
    }
  }
  return next;
}

const char* ReserveStatusName(ReserveStatus status) {
  switch (status) {
    case ReserveStatus::kReserved:
      return "RESERVED";
    case ReserveStatus::kHeld:
      return "HELD";
    case ReserveStatus::kPending:
      return "PENDING";
    case ReserveStatus::kDone:
      return "DONE";
    case ReserveStatus::kMismatch:
      return "MISMATCH";
    case ReserveStatus::kUnknown:
      return "UNKNOWN";
    case ReserveStatus::kDuplicate:
      return "DUPLICATE";
    case ReserveStatus::kExpired:
      return "EXPIRED";
    case ReserveStatus::kUnissued:
      return "UNISSUED";
    case ReserveStatus::kRefused:
      return "REFUSED";
  }
  return "";
}

}  // namespace idemd::storage
