// The ranges of sorted set commands as they are written: "(1.5", "+inf", "[member", "-", and what they come to in ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/collection/sorted_set.h"

namespace idemd::server {

struct RankRange {
  size_t first = 0;
  size_t count = 0;
};

// Ranks as given, which may be negative, counted from the end.
RankRange ClampRanks(int64_t start, int64_t stop, size_t size);

struct ScoreRange {
  double min = 0, max = 0;
  bool min_open = false, max_open = false;

  [[nodiscard]] bool Read(absl::string_view min_word, absl::string_view max_word);
  RankRange In(const storage::SortedSet& set) const;
};

struct LexRange {
  struct Bound {
    enum class Kind : uint8_t { kLowest, kHighest, kClosed, kOpen } kind = Kind::kLowest;
    absl::string_view text;
  };
  Bound min, max;

  [[nodiscard]] bool Read(absl::string_view min_word, absl::string_view max_word);
  RankRange In(const storage::SortedSet& set) const;
};

}  // namespace idemd::server
