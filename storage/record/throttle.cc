// IDEM.THROTTLE: the generic cell rate algorithm, one integer of state.
//
// The state is the theoretical arrival time (TAT): when the bucket would be empty if nothing more
// came. A unit of cost pushes it one interval further (period / count); a call passes if the TAT
// then lies no further than `limit` intervals ahead. Reckoned in 128 bits and cut to 64 where a
// number leaves, so that no rate overflows.
#include <algorithm>
#include <charconv>

#include "storage/record/life.h"

namespace idemd::storage {
namespace {

using Wide = __int128;
constexpr int64_t kNsPerMs = 1'000'000;

int64_t Saturate(Wide v) { return static_cast<int64_t>(std::clamp<Wide>(v, INT64_MIN, INT64_MAX)); }

// As Redis reads an integer: no plus sign, no leading zeros.
bool ParseState(absl::string_view text, int64_t* value) {
  const absl::string_view digits = text.substr(!text.empty() && text[0] == '-' ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return false;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

ThrottleOutcome Throttle(const Subject& subject, const ThrottleRequest& request, int64_t now_ns) {
  ThrottleOutcome outcome;
  if (request.max_burst < 0 || request.max_burst == INT64_MAX || request.count < 1 ||
      request.period_ns < 1 || request.cost < 0) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  int64_t state_ns = now_ns;
  switch (subject.kind) {
    case Subject::Kind::kOtherType:
    case Subject::Kind::kRecord:
      outcome.error = LifeError::kWrongType;
      return outcome;
    case Subject::Kind::kDamaged:
      outcome.error = LifeError::kDamagedRecord;
      return outcome;
    case Subject::Kind::kPlain:
      if (!ParseState(subject.plain, &state_ns)) {
        outcome.bad_state = true;
        return outcome;
      }
      break;
    case Subject::Kind::kAbsent:
      break;
  }

  const Wide limit = Wide{request.max_burst} + 1;
  // More than one unit per nanosecond cannot be told apart from one.
  const Wide interval = std::max<int64_t>(1, request.period_ns / request.count);
  // A bucket deeper than the time that can be written down (240 years) could not be kept exactly.
  const Wide capacity = interval * limit;
  if (capacity > Wide{INT64_MAX} - now_ns) {
    outcome.error = LifeError::kRange;
    return outcome;
  }
  const Wide taken = interval * request.cost;
  const Wide tat = std::max(state_ns, now_ns);
  const Wide passes_at = tat + taken - capacity;

  outcome.limit = Saturate(limit);
  // Asking for nothing is never too much, also after the limits were tightened.
  outcome.limited = request.cost > 0 && passes_at > now_ns;
  Wide shown_tat = tat;
  if (outcome.limited) {
    if (taken <= capacity) outcome.retry_after_ns = Saturate(passes_at - now_ns);
  } else if (request.store && request.cost > 0) {
    shown_tat = tat + taken;
    outcome.write = true;
    outcome.tat_ns = static_cast<int64_t>(shown_tat);
    outcome.deadline_ms = static_cast<int64_t>((shown_tat + kNsPerMs - 1) / kNsPerMs);
  }
  const Wide used = shown_tat - now_ns;
  outcome.remaining = Saturate(std::max<Wide>(0, (capacity - used) / interval));
  outcome.reset_after_ns = Saturate(used);
  return outcome;
}

}  // namespace idemd::storage
