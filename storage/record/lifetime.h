// What a lifetime means at a time: the key's deadline, and what the record keeps of it for
// COMPLETE.
#pragma once

#include <cstdint>

#include "storage/record/life.h"
#include "storage/record/time_math.h"

namespace idemd::storage {

struct ResolvedLifetime {
  int64_t deadline_ms = kNoDeadline;
  int64_t keep_ms = 0;  // keep-ms=: the duration as asked for; 0: absolute or for ever
};

// False when the deadline would overflow.
[[nodiscard]] inline bool ResolveLifetime(const Lifetime& lifetime, int64_t default_ms,
                                          int64_t now_ms, ResolvedLifetime* out) {
  switch (lifetime.kind) {
    case Lifetime::Kind::kDefault:
      *out = {AddTimeOrNever(now_ms, default_ms), default_ms};
      return true;
    case Lifetime::Kind::kDuration:
      out->keep_ms = lifetime.ms;
      return AddTime(now_ms, lifetime.ms, &out->deadline_ms);
    case Lifetime::Kind::kAbsolute:
      *out = {lifetime.ms, 0};
      return lifetime.ms != kNoDeadline;
    case Lifetime::Kind::kForever:
      *out = {kNoDeadline, 0};
      return true;
  }
  return false;
}

}  // namespace idemd::storage
