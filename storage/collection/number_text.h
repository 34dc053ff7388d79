// Whether a text is a number as anybody would write it, so that the number can stand for it.
//
// Threads   any.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// "0", "17", "-3"; not "007", "+1", "-0", " 1" or what does not fit.
inline bool ReadCanonicalInt64(absl::string_view text, int64_t* value) {
  constexpr size_t kCharsMax = 20;
  if (text.empty() || text.size() > kCharsMax) return false;
  const bool negative = text[0] == '-';
  size_t i = negative ? 1 : 0;
  if (i == text.size() || (text[i] == '0' && text.size() > 1)) return false;
  uint64_t n = 0;
  for (; i < text.size(); ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    if (__builtin_mul_overflow(n, uint64_t{10}, &n) || __builtin_add_overflow(n, static_cast<uint64_t>(text[i] - '0'), &n))
      return false;
  }
  const uint64_t most = negative ? uint64_t{1} << 63 : (uint64_t{1} << 63) - 1;
  if (n > most) return false;
  *value = static_cast<int64_t>(negative ? uint64_t{0} - n : n);
  return true;
}

}  // namespace idemd::storage
