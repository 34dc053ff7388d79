// Keys behind their number, as in "ZUNION 2 a b".
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/number.h"

namespace idemd::server {

// Appends the positions of the keys that follow their number at words[at]. False: that many do not follow, or none are asked for.
[[nodiscard]] inline bool KeysBehindNumber(absl::Span<const absl::string_view> words, size_t at, std::vector<int>& positions) {
  int64_t count = 0;
  if (at >= words.size() || !protocol::ParseInt64(words[at], &count)) return false;
  if (count < 1 || static_cast<uint64_t>(count) > words.size() - at - 1) return false;
  for (size_t i = 1; i <= static_cast<size_t>(count); ++i) positions.push_back(static_cast<int>(at + i));
  return true;
}

}  // namespace idemd::server
