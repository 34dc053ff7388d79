// IDEM.COMPLETE: stores the answer, once.
#include <algorithm>

#include "storage/record/fence_check.h"
#include "storage/record/life.h"
#include "storage/record/lifetime.h"
#include "storage/record/time_math.h"

namespace idemd::storage {
namespace {

bool SameAnswer(const Record& done, const CompleteRequest& request) {
  if (done.code != request.code) return false;
  return done.has_payload ? done.payload == request.result
                          : done.has_digest && done.digest == ResultDigest(request.result);
}

CompleteStatus StatusOf(bool kept, bool late) {
  if (!kept) return CompleteStatus::kNoResult;
  return late ? CompleteStatus::kLate : CompleteStatus::kOk;
}

// Above the limit, or more than what the key holds now when there is no memory for more.
bool ResultFits(const Record& record, const CompleteRequest& request, const Limits& limits) {
  if (request.result.size() > static_cast<uint64_t>(limits.max_result_bytes)) return false;
  return !limits.out_of_memory || request.result.size() <= record.payload.size();
}

Record Completed(const Record& before, const CompleteRequest& request, bool late, bool kept,
                 int64_t now_ms) {
  Record record = before;
  record.state = RecordState::kDone;
  record.has_after = late;
  record.after_ms = 0;
  if (late)
    record.after_ms = before.state == RecordState::kFailed ? before.after_ms : before.lease_end_ms;
  EndLease(record, now_ms);
  record.has_code = request.code != 0;
  record.code = request.code;
  record.has_payload = kept;
  record.payload = kept ? request.result : absl::string_view();
  record.has_digest = !kept;
  if (!kept) record.digest = ResultDigest(request.result);
  return record;
}

}  // namespace

CompleteOutcome Complete(const Subject& subject, const CompleteRequest& request, int64_t now_ms,
                         const Limits& limits) {
  CompleteOutcome outcome;
  ResolvedLifetime lifetime;
  if (!ResolveLifetime(request.lifetime, limits.retention_ms, now_ms, &lifetime)) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  outcome.error = CheckFence(subject, request.fence);
  if (outcome.error != LifeError::kNone) return outcome;

  const Record& before = subject.record;
  if (before.state == RecordState::kDone) {
    if (!SameAnswer(before, request)) {
      outcome.error = LifeError::kConflict;
      return outcome;
    }
    outcome.repeat = true;
    outcome.late = before.has_after;
    outcome.status = StatusOf(before.has_payload, outcome.late);
    return outcome;
  }
  if (Released(before)) {
    outcome.error = LifeError::kStale;
    return outcome;
  }

  outcome.late = before.state == RecordState::kFailed || before.lease_end_ms <= now_ms;
  const bool kept = ResultFits(before, request, limits);
  outcome.status = StatusOf(kept, outcome.late);
  outcome.action.kind = Action::Kind::kSetRecord;
  outcome.action.record = Completed(before, request, outcome.late, kept, now_ms);
  outcome.action.deadline_ms = subject.deadline_ms;
  if (request.lifetime.kind != Lifetime::Kind::kDefault) {
    outcome.action.record.keep_ms = lifetime.keep_ms;
    outcome.action.deadline_ms = lifetime.deadline_ms;
  } else if (before.keep_ms > 0) {
    outcome.action.deadline_ms =
        std::max(subject.deadline_ms, AddTimeOrNever(now_ms, before.keep_ms));
  }
  return outcome;
}

}  // namespace idemd::storage
