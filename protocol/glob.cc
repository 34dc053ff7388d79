// Glob matching that remembers only the last star: a later match of an earlier star could never
// help.
#include "protocol/glob.h"

#include <cstddef>

#include "absl/strings/ascii.h"

namespace idemd::protocol {
namespace {

// What Redis compares in ranges: plain, and so signed, characters, bytes from 0x80 up before ASCII;
// but what tolower() of a negative character gives in the C locale when case is ignored, which puts
// them behind ASCII, all but 0xff.
int Order(char c, bool ignore_case) {
  const auto value = static_cast<signed char>(c);
  if (!ignore_case || value == -1) return value;
  return static_cast<unsigned char>(absl::ascii_tolower(static_cast<unsigned char>(c)));
}

bool Same(char a, char b, bool ignore_case) {
  return Order(a, ignore_case) == Order(b, ignore_case);
}

// Whether `c` is in the class whose '[' is just before `at`; moves `at` behind the class. As in
// Redis a class without its ']' ends with the pattern, ']' always closes, a range may be given in
// either order, and its end may be any character, also ']'.
bool MatchClass(absl::string_view pattern, size_t& at, char c, bool ignore_case) {
  const bool negated = at < pattern.size() && pattern[at] == '^';
  if (negated) ++at;
  bool found = false;
  while (at < pattern.size() && pattern[at] != ']') {
    const size_t left = pattern.size() - at;
    if (pattern[at] == '\\' && left >= 2) {
      if (pattern[at + 1] == c)
        found = true;  // an escaped character keeps its case, even with ignore_case
      at += 2;
    } else if (left >= 3 && pattern[at + 1] == '-') {
      char low = pattern[at];
      char high = pattern[at + 2];
      if (Order(low, false) > Order(high, false)) {
        low = pattern[at + 2];
        high = pattern[at];
      }
      const int value = Order(c, ignore_case);
      if (value >= Order(low, ignore_case) && value <= Order(high, ignore_case)) found = true;
      at += 3;
    } else {
      if (Same(pattern[at], c, ignore_case)) found = true;
      ++at;
    }
  }
  if (at < pattern.size()) ++at;  // the ']'
  return found != negated;
}

// Redis gives up, and matches nothing, in patterns with more stars than this; runs of stars count once.
constexpr size_t kStarsMax = 1000;

// Whether the pattern's next piece (no star) takes `c`; moves `at` behind it.
bool MatchOne(absl::string_view pattern, size_t& at, char c, bool ignore_case) {
  const char piece = pattern[at++];
  if (piece == '?') return true;
  if (piece == '[') return MatchClass(pattern, at, c, ignore_case);
  if (piece == '\\' && at < pattern.size()) return Same(pattern[at++], c, ignore_case);
  return Same(piece, c, ignore_case);
}

}  // namespace

bool GlobMatch(absl::string_view pattern, absl::string_view text, bool ignore_case) {
  if (pattern == "*") return true;
  // Redis never looks at the pattern when there is no text, so that even "**" does not match it.
  if (text.empty()) return pattern.empty();
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t p = 0;
  size_t t = 0;
  size_t star = kNone;   // behind the last star
  size_t star_text = 0;  // where the piece behind it is being tried
  size_t stars = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      while (p < pattern.size() && pattern[p] == '*') ++p;
      star = p;
      star_text = t;
      if (p == pattern.size()) return true;
      if (++stars > kStarsMax) return false;
      continue;
    }
    if (p < pattern.size() && MatchOne(pattern, p, text[t], ignore_case)) {
      ++t;
      continue;
    }
    if (star == kNone) return false;
    p = star;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace idemd::protocol
