// The options of the native commands: one grammar for all, any case, any order, each once.
//
// A command names the options it takes; ReadIdemOptions() reads the words after its fixed
// arguments, or writes the error that says what is wrong. Times are read on the effective clock.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/commands/context.h"
#include "storage/record/life.h"

namespace idemd::server {

enum IdemOption : uint32_t {
  kOptClaim = 1u << 0,
  kOptFingerprint = 1u << 1,
  kOptLease = 1u << 2,
  kOptEx = 1u << 3,
  kOptPx = 1u << 4,
  kOptExAt = 1u << 5,
  kOptPxAt = 1u << 6,
  kOptForever = 1u << 7,
  kOptWait = 1u << 8,
  kOptOnLapse = 1u << 9,
  kOptIssued = 1u << 10,
  kOptIfeq = 1u << 11,
  kOptBy = 1u << 12,
  kOptReason = 1u << 13,
  kOptValue = 1u << 14,
  kOptCount = 1u << 15,
  kOptCode = 1u << 16,
  kOptAfter = 1u << 17,
  kOptFrom = 1u << 18,
  kOptInit = 1u << 19,
  kOptCost = 1u << 20,
  kOptPeek = 1u << 21,

  kOptTimed = kOptEx | kOptPx | kOptExAt | kOptPxAt,
  kOptLifetime = kOptTimed | kOptForever,
};

struct IdemOptions {
  uint32_t seen = 0;
  storage::Lifetime lifetime;
  absl::string_view claim;
  absl::string_view fingerprint;
  absl::string_view ifeq;
  absl::string_view by;
  absl::string_view value;
  int64_t lease_ms = 0;  // 0: not given
  int64_t wait_ms = 0;
  int64_t after_ms = 0;
  int64_t count = 1;
  int64_t code = 0;
  int64_t cost = 1;
  bool stop = false;
  absl::Span<const absl::string_view> from;  // the listed states

  bool has(IdemOption option) const { return (seen & option) != 0; }
};

// Reads words[first..]. False: an error was written.
[[nodiscard]] bool ReadIdemOptions(Context& c, size_t first, uint32_t allowed, IdemOptions* out);

// "ERR invalid expire time in 'idem.reserve' command".
void ReplyInvalidTime(Context& c);

}  // namespace idemd::server
