// Glob patterns: a table of what Redis answers, and a plain model for patterns of stars, marks and
// letters.
#include "protocol/glob.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::protocol {
namespace {

struct Case {
  const char* pattern;
  const char* text;
  bool match;
  bool ignore_case = false;
};

TEST(GlobMatch, AnswersAsRedisDoes) {
  const Case cases[] = {
      {"", "", true},
      {"", "a", false},
      {"a", "", false},
      {"*", "", true},
      {"**", "", false},
      {"a*", "", false},
      {"*", "abc", true},
      {"***", "abc", true},
      {"a*", "a", true},
      {"a*c", "abbc", true},
      {"a*c", "abcb", false},
      {"*a*b*", "xaybz", true},
      {"*a*b", "aab", true},
      {"*ab", "aab", true},
      {"a**", "a", true},
      {"?", "a", true},
      {"?", "", false},
      {"??", "a", false},
      {"h?llo", "hello", true},
      {"h?llo", "hllo", false},
      {"h[ae]llo", "hello", true},
      {"h[ae]llo", "hillo", false},
      {"h[^e]llo", "hallo", true},
      {"h[^e]llo", "hello", false},
      {"h[a-c]llo", "hbllo", true},
      {"h[c-a]llo", "hbllo", true},
      {"h[a-c]llo", "hdllo", false},
      {"[a-]]", "a", true},
      {"[a-]", "a", true},
      {"[a-]", "b", false},
      {"[a-]", "]", true},
      {"[^a-c]", "d", true},
      {"[]", "a", false},
      {"[]a]", "a]", false},
      {"[^]", "a", true},
      {"[abc", "b", true},
      {"[^abc", "b", false},
      {"[", "[", false},
      {"[^", "x", true},
      {"x[", "x", false},
      {"[\\]]", "]", true},
      {"[\\a-c]", "b", false},
      {"[\\a-c]", "-", true},
      {"[\\", "\\", true},
      {"\\*", "*", true},
      {"\\*", "a", false},
      {"\\?a", "?a", true},
      {"\\\\", "\\", true},
      {"a\\", "a\\", true},
      {"\\a", "a", true},
      {"\\[a]", "[a]", true},
      {"[!a]", "!", true},
      {"[!a]", "b", false},
      {"HeLLo", "hello", false},
      {"HeLLo", "hello", true, true},
      {"[A-C]x", "bX", true, true},
      {"[\\B]", "b", false, true},
      {"[\\b]", "b", true, true},
      {"\\B", "b", true, true},
      {"[B]", "b", true, true},
      {"[\x80-a]", "B", true},
      {"[a-\xff]", "b", false},
      {"[a-\xff]", "A", true},
      {"\xc3\xa9", "\xc3\xa9", true},
      {"[\x80-C]", "^", false, true},
      {"user:*:name", "user:17:name", true},
      {"user:[0-9]*", "user:17", true},
      {"user:[0-9]*", "user:x", false},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(GlobMatch(c.pattern, c.text, c.ignore_case), c.match)
        << c.pattern << " on " << c.text;
  }
}

TEST(GlobMatch, TakesNothingFromBehindItsViews) {
  const absl::string_view pattern = "a[b]c";
  EXPECT_TRUE(GlobMatch(pattern.substr(0, 3), "ab"));
  EXPECT_FALSE(GlobMatch(pattern.substr(0, 2), "ab"));
  EXPECT_TRUE(GlobMatch(absl::string_view("a*").substr(0, 1), "a"));
  EXPECT_FALSE(GlobMatch(absl::string_view("a*").substr(0, 1), "ab"));
}

// Says by definition whether the pattern (letters, ? and *) matches; text and pattern are short.
bool Model(absl::string_view pattern, absl::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return Model(pattern.substr(1), text) || (!text.empty() && Model(pattern, text.substr(1)));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         Model(pattern.substr(1), text.substr(1));
}

TEST(GlobMatch, AgreesWithTheDefinitionOnRandomStars) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  int matches = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string pattern(random() % 8, ' ');
    std::string text(1 + random() % 8, ' ');
    for (char& c : pattern) c = "**?ab"[random() % 5];
    for (char& c : text) c = "ab"[random() % 2];
    const bool expected = Model(pattern, text);
    matches += expected ? 1 : 0;
    ASSERT_EQ(GlobMatch(pattern, text), expected) << pattern << " on " << text;
  }
  EXPECT_GT(matches, 1000);
}

// `n` stars, each before an 'a', and one before a 'b'.
std::string ManyStars(int n) {
  std::string pattern;
  for (int i = 0; i < n; ++i) pattern += "*a";
  return pattern + "*b";
}

TEST(GlobMatch, ManyStarsCostNoExponentialTime) {
  const std::string text(20'000, 'a');
  EXPECT_FALSE(GlobMatch(ManyStars(999), text));
  EXPECT_TRUE(GlobMatch(ManyStars(999), text + "b"));
}

TEST(GlobMatch, MoreThanAThousandStarsMatchNothing) {
  EXPECT_FALSE(GlobMatch(ManyStars(1000), std::string(2000, 'a') + "b"));
  EXPECT_TRUE(GlobMatch(std::string(5000, '*') + "b", "ab"));  // a run is one
}

}  // namespace
}  // namespace idemd::protocol
