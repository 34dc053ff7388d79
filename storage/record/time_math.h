// Time arithmetic that cannot overflow unseen.
#pragma once

#include <cstdint>

#include "storage/clock.h"

namespace idemd::storage {

// now + span, or false when that is no time any more. kNoDeadline itself is not a time.
[[nodiscard]] inline bool AddTime(int64_t now, int64_t span, int64_t* out) {
  return !__builtin_add_overflow(now, span, out) && *out != kNoDeadline;
}

// now + span, where a time too far away to write down counts as "never": for spans that were stored
// earlier, when there is no caller left to blame.
inline int64_t AddTimeOrNever(int64_t now, int64_t span) {
  int64_t at = 0;
  return AddTime(now, span, &at) ? at : kNoDeadline;
}

// What is left until `deadline_ms`, as replies say it: -1 for ever.
inline int64_t LeftOrForever(int64_t deadline_ms, int64_t now_ms) {
  return deadline_ms == kNoDeadline ? -1 : deadline_ms - now_ms;
}

}  // namespace idemd::storage
