// IDEM.TRANSITION: a string that moves only along listed edges.
#include "storage/record/life.h"
#include "storage/record/lifetime.h"

namespace idemd::storage {

TransitionOutcome Transition(const Subject& subject, absl::string_view to,
                             absl::FunctionRef<bool(absl::string_view)> listed, bool init,
                             const Lifetime& lifetime, int64_t now_ms, const Limits& limits) {
  TransitionOutcome outcome;
  ResolvedLifetime resolved;
  if (!ResolveLifetime(lifetime, limits.retention_ms, now_ms, &resolved)) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  switch (subject.kind) {
    case Subject::Kind::kOtherType:
    case Subject::Kind::kRecord:
      outcome.error = LifeError::kWrongType;
      return outcome;
    case Subject::Kind::kDamaged:
      outcome.error = LifeError::kDamagedRecord;
      return outcome;
    case Subject::Kind::kAbsent:
      if (!init) {
        outcome.status = TransitionStatus::kRefused;
        return outcome;
      }
      if (limits.out_of_memory) {
        outcome.error = LifeError::kOutOfMemory;
        return outcome;
      }
      break;
    case Subject::Kind::kPlain:
      outcome.has_state = true;
      outcome.state = subject.plain;
      if (subject.plain == to) {
        outcome.status = TransitionStatus::kAlready;
        return outcome;
      }
      if (!listed(subject.plain)) {
        outcome.status = TransitionStatus::kRefused;
        return outcome;
      }
      break;
  }
  outcome.action.kind = Action::Kind::kSetPlain;
  outcome.action.plain = to;
  outcome.action.deadline_ms =
      lifetime.kind == Lifetime::Kind::kDefault ? subject.deadline_ms : resolved.deadline_ms;
  return outcome;
}

}  // namespace idemd::storage
