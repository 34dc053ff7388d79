// The fenced commands that keep a claim going or give it up: FAIL, RELEASE, EXTEND, CHECKPOINT.
#include <algorithm>

#include "storage/record/fence_check.h"
#include "storage/record/life.h"
#include "storage/record/time_math.h"

namespace idemd::storage {
namespace {

// Moves the lease's end, and the key's deadline where it would come first.
void Renew(const Subject& subject, int64_t lease_ms, int64_t lease_end_ms, Action& action) {
  action.kind = Action::Kind::kSetRecord;
  action.record = subject.record;
  action.record.lease_ms = lease_ms;
  action.record.lease_end_ms = lease_end_ms;
  action.deadline_ms = std::max(subject.deadline_ms, lease_end_ms);
}

// As though never reserved: the token is back, if there was one that still counts.
void Undo(const Record& record, int64_t now_ms, Action& action) {
  if (record.has_token && record.token_expiry_ms > now_ms) {
    action.kind = Action::Kind::kSetPlain;
    action.plain = record.token;
    action.deadline_ms = record.token_expiry_ms;
  } else {
    action.kind = Action::Kind::kDelete;
  }
}

}  // namespace

FailOutcome Fail(const Subject& subject, uint64_t fence, int64_t after_ms, int64_t now_ms) {
  FailOutcome outcome;
  int64_t retry_ms = 0;
  if (!AddTime(now_ms, after_ms, &retry_ms)) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  outcome.error = CheckFence(subject, fence);
  if (outcome.error != LifeError::kNone) return outcome;
  if (subject.record.state == RecordState::kFailed) {
    outcome.repeat = true;
    return outcome;
  }
  outcome.error = CheckClaim(subject, fence);
  if (outcome.error != LifeError::kNone) return outcome;

  outcome.action.kind = Action::Kind::kSetRecord;
  outcome.action.record = subject.record;
  outcome.action.record.state = RecordState::kFailed;
  outcome.action.record.has_after = true;
  outcome.action.record.after_ms = retry_ms;
  EndLease(outcome.action.record, now_ms);
  outcome.action.deadline_ms = std::max(subject.deadline_ms, retry_ms);
  return outcome;
}

ReleaseOutcome Release(const Subject& subject, uint64_t fence, int64_t now_ms) {
  ReleaseOutcome outcome;
  outcome.error = CheckFence(subject, fence);
  if (outcome.error == LifeError::kNotFound) {
    outcome.error = LifeError::kNone;  // nothing to give up: 0
    return outcome;
  }
  if (outcome.error != LifeError::kNone) return outcome;
  const Record& before = subject.record;
  if (Released(before)) {
    outcome.repeat = true;
    outcome.released = 1;
    return outcome;
  }
  outcome.error = CheckClaim(subject, fence);
  if (outcome.error != LifeError::kNone) return outcome;

  outcome.released = 1;
  if (before.attempt == 1 && !before.has_payload) {
    Undo(before, now_ms, outcome.action);
    return outcome;
  }
  outcome.action.kind = Action::Kind::kSetRecord;
  Record& record = outcome.action.record;
  record = before;
  record.attempt = std::max<uint64_t>(1, before.attempt - 1);
  record.has_claim = false;
  record.claim = {};
  record.has_after = true;
  record.after_ms = 0;
  EndLease(record, now_ms);
  outcome.action.deadline_ms = subject.deadline_ms;
  return outcome;
}

ExtendOutcome Extend(const Subject& subject, uint64_t fence, int64_t lease_ms, int64_t now_ms) {
  ExtendOutcome outcome;
  int64_t lease_end_ms = 0;
  if (!AddTime(now_ms, lease_ms, &lease_end_ms)) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  outcome.error = CheckClaim(subject, fence);
  if (outcome.error != LifeError::kNone) return outcome;
  Renew(subject, lease_ms, lease_end_ms, outcome.action);
  outcome.lease_left_ms = lease_ms;
  return outcome;
}

FencedOutcome Checkpoint(const Subject& subject, uint64_t fence, absl::string_view data,
                         int64_t lease_ms, int64_t now_ms, const Limits& limits) {
  FencedOutcome outcome;
  outcome.error = CheckClaim(subject, fence);
  if (outcome.error != LifeError::kNone) return outcome;
  const int64_t length_ms = lease_ms > 0 ? lease_ms : subject.record.lease_ms;
  int64_t lease_end_ms = 0;
  if (!AddTime(now_ms, length_ms, &lease_end_ms)) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  if (data.size() > static_cast<uint64_t>(limits.max_result_bytes)) {
    outcome.error = LifeError::kTooLarge;
    return outcome;
  }
  Renew(subject, length_ms, lease_end_ms, outcome.action);
  outcome.action.record.has_payload = true;
  outcome.action.record.payload = data;
  return outcome;
}

}  // namespace idemd::storage
