// Bounds of ranges, read as Redis reads them.
#include "server/commands/zset_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "protocol/number.h"

namespace idemd::server {
namespace {

using storage::SortedSet;

// As strtod() has it: nothing is 0, and blanks in front do not matter.
bool ReadScoreBound(absl::string_view word, double* score, bool* open) {
  *open = !word.empty() && word[0] == '(';
  if (*open) word.remove_prefix(1);
  if (protocol::ParseDouble(word, score)) return true;
  const std::string text(word);
  char* end = nullptr;
  *score = std::strtod(text.c_str(), &end);
  return *end == '\0' && !std::isnan(*score);
}

bool ReadLexBound(absl::string_view word, LexRange::Bound* bound) {
  using Kind = LexRange::Bound::Kind;
  if (word.empty()) return false;
  switch (word[0]) {
    case '-':
    case '+':
      bound->kind = word[0] == '-' ? Kind::kLowest : Kind::kHighest;
      return word.size() == 1;
    case '[':
    case '(':
      bound->kind = word[0] == '[' ? Kind::kClosed : Kind::kOpen;
      bound->text = word.substr(1);
      return true;
    default:
      return false;
  }
}

RankRange Between(size_t from, size_t to) { return {from, to > from ? to - from : 0}; }

// How many members stand before the range that begins, or behind which ends, at the bound.
size_t CountTo(const SortedSet& set, const LexRange::Bound& bound, bool begins) {
  switch (bound.kind) {
    case LexRange::Bound::Kind::kLowest:
      return 0;
    case LexRange::Bound::Kind::kHighest:
      return set.size();
    case LexRange::Bound::Kind::kClosed:
      return set.CountBelow(bound.text, !begins);
    case LexRange::Bound::Kind::kOpen:
      return set.CountBelow(bound.text, begins);
  }
  return 0;
}

}  // namespace

RankRange ClampRanks(int64_t start, int64_t stop, size_t size) {
  const auto n = static_cast<int64_t>(size);
  if (start < 0) start = std::max<int64_t>(start + n, 0);
  if (stop < 0) stop += n;
  stop = std::min(stop, n - 1);
  if (start > stop) return {};
  return {static_cast<size_t>(start), static_cast<size_t>(stop - start + 1)};
}

bool ScoreRange::Read(absl::string_view min_word, absl::string_view max_word) {
  return ReadScoreBound(min_word, &min, &min_open) && ReadScoreBound(max_word, &max, &max_open);
}

RankRange ScoreRange::In(const SortedSet& set) const {
  return Between(set.CountBelow(min, min_open), set.CountBelow(max, !max_open));
}

bool LexRange::Read(absl::string_view min_word, absl::string_view max_word) {
  return ReadLexBound(min_word, &min) && ReadLexBound(max_word, &max);
}

RankRange LexRange::In(const SortedSet& set) const { return Between(CountTo(set, min, true), CountTo(set, max, false)); }

}  // namespace idemd::server
