// Whether a fence still speaks for a key: the one order of tests that all fenced commands share.
#pragma once

#include <cstdint>

#include "storage/record/life.h"

namespace idemd::storage {

// kNone when the record at the subject is the fence's own, in whatever state. A consumed token has
// no fence, so that every fence is in conflict with it; otherwise STALE goes before CONFLICT, which
// the callers test by state.
inline LifeError CheckFence(const Subject& subject, uint64_t fence) {
  switch (subject.kind) {
    case Subject::Kind::kOtherType:
      return LifeError::kWrongType;
    case Subject::Kind::kDamaged:
      return LifeError::kDamagedRecord;
    case Subject::Kind::kAbsent:
    case Subject::Kind::kPlain:
      return LifeError::kNotFound;
    case Subject::Kind::kRecord:
      break;
  }
  if (subject.record.state == RecordState::kConsumed) return LifeError::kConflict;
  return subject.record.fence == fence ? LifeError::kNone : LifeError::kStale;
}

// Which words the fence may still say, beyond being the record's own: kNone while its claim stands
// (live or lapsed).
inline LifeError CheckClaim(const Subject& subject, uint64_t fence) {
  const LifeError error = CheckFence(subject, fence);
  if (error != LifeError::kNone) return error;
  const Record& record = subject.record;
  if (record.state == RecordState::kDone) return LifeError::kConflict;
  if (record.state == RecordState::kFailed || Released(record)) return LifeError::kStale;
  return LifeError::kNone;
}

// A claim that is given up or completed has no lease any more: lease= then says when it ended.
inline void EndLease(Record& record, int64_t now_ms) {
  if (record.lease_end_ms > now_ms) record.lease_end_ms = now_ms;
}

}  // namespace idemd::storage
