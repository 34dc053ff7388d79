// IDEM.CONSUME: one caller gets the token.
#include <algorithm>

#include "storage/record/life.h"
#include "storage/record/time_math.h"

namespace idemd::storage {
namespace {

// A repeat must find its record even when the token was about to expire anyway.
constexpr int64_t kConsumedKeepMs = 60'000;

ConsumeStatus Gone(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kLive:
      return ConsumeStatus::kDuplicate;
    case TokenOrigin::kExpired:
      return ConsumeStatus::kExpired;
    case TokenOrigin::kUnissued:
      return ConsumeStatus::kUnissued;
  }
  return ConsumeStatus::kUnissued;
}

void TakeToken(const Subject& subject, absl::string_view by, int64_t now_ms, const Limits& limits,
               Action& action) {
  if (by.empty()) {
    action.kind = Action::Kind::kDelete;
    return;
  }
  action.kind = Action::Kind::kSetRecord;
  Record& record = action.record;
  record.state = RecordState::kConsumed;
  record.since_ms = now_ms;
  record.has_claim = true;
  record.claim = by;
  record.has_token = true;
  record.token = subject.plain;
  record.token_expiry_ms = subject.deadline_ms;
  action.deadline_ms = subject.deadline_ms == kNoDeadline
                           ? AddTimeOrNever(now_ms, limits.retention_ms)
                           : std::max(subject.deadline_ms, AddTimeOrNever(now_ms, kConsumedKeepMs));
}

void OnRecord(const Record& record, const ConsumeRequest& request, ConsumeOutcome& outcome) {
  outcome.status = ConsumeStatus::kDuplicate;
  if (record.state != RecordState::kConsumed) return;  // a reservation
  if (request.has_ifeq && request.ifeq != record.token) {
    outcome.status = ConsumeStatus::kRefused;
  } else if (!request.by.empty() && request.by == record.claim) {
    outcome.status = ConsumeStatus::kConsumed;
    outcome.repeat = true;
  }
}

}  // namespace

ConsumeOutcome Consume(const Subject& subject, const ConsumeRequest& request, int64_t now_ms,
                       const Limits& limits, absl::FunctionRef<TokenOrigin()> origin) {
  ConsumeOutcome outcome;
  switch (subject.kind) {
    case Subject::Kind::kOtherType:
      outcome.error = LifeError::kWrongType;
      break;
    case Subject::Kind::kDamaged:
      outcome.error = LifeError::kDamagedRecord;
      break;
    case Subject::Kind::kAbsent:
      outcome.status = Gone(origin());
      break;
    case Subject::Kind::kRecord:
      OnRecord(subject.record, request, outcome);
      break;
    case Subject::Kind::kPlain:
      if (request.has_ifeq && request.ifeq != subject.plain) {
        outcome.status = ConsumeStatus::kRefused;
      } else {
        TakeToken(subject, request.by, now_ms, limits, outcome.action);
      }
      break;
  }
  return outcome;
}

const char* ConsumeStatusName(ConsumeStatus status) {
  switch (status) {
    case ConsumeStatus::kConsumed:
      return "CONSUMED";
    case ConsumeStatus::kDuplicate:
      return "DUPLICATE";
    case ConsumeStatus::kExpired:
      return "EXPIRED";
    case ConsumeStatus::kRefused:
      return "REFUSED";
    case ConsumeStatus::kUnissued:
      return "UNISSUED";
  }
  return "";
}

}  // namespace idemd::storage
