// Numbers as Redis reads and prints them: no blanks, no plus sign, no leading zeros, no overflow.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::protocol {

// string2ll: "0", or an optional '-' and digits that do not begin with 0; within int64.
[[nodiscard]] bool ParseInt64(absl::string_view text, int64_t* value);
[[nodiscard]] bool ParseUint64(absl::string_view text, uint64_t* value);
// Redis' getDoubleFromObject: the whole text, inf and -inf allowed, no NaN, no leading blanks.
[[nodiscard]] bool ParseDouble(absl::string_view text, double* value);
// Redis' getLongDoubleFromObject, for INCRBYFLOAT.
[[nodiscard]] bool ParseLongDouble(absl::string_view text, long double* value);
// %.17Lg-like without trailing zeros and exponent (ld2string, LD_STR_HUMAN).
std::string FormatLongDouble(long double value);
// Shortest text that reads back the same: "1.5", "inf", "1e+20".
std::string FormatDouble(double value);
// A double as replies show it (%.17g): "1.5", "0.10000000000000001", "1e+17", "inf", "-0". In `room`, or a constant.
struct DoubleRoom {
  char bytes[32];
};
absl::string_view PrintDouble(double value, DoubleRoom& room);
// Sizes in settings: 1k, 1kb, 2mb, 3gb; 1k = 1000, 1kb = 1024.
[[nodiscard]] bool ParseMemory(absl::string_view text, int64_t* bytes);

}  // namespace idemd::protocol
