// Numbers at their edges, as strict as Redis.
#include "protocol/number.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::protocol {
namespace {

TEST(ParseInt64, AcceptsWhatRedisAccepts) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},
      {"7", 7},
      {"-1", -1},
      {"10", 10},
      {"9223372036854775807", std::numeric_limits<int64_t>::max()},
      {"-9223372036854775808", std::numeric_limits<int64_t>::min()},
  };
  for (const auto& [text, expected] : cases) {
    int64_t value = 99;
    EXPECT_TRUE(ParseInt64(text, &value)) << text;
    EXPECT_EQ(value, expected);
  }
}

TEST(ParseInt64, RefusesWhatRedisRefuses) {
  for (const char* text : {"", "-", "+1", " 1", "1 ", "01", "-0", "-01", "00", "1.0", "0x1", "1a",
                           "--1", "9223372036854775808", "-9223372036854775809",
                           "18446744073709551616", "99999999999999999999999999", "1\r"}) {
    int64_t value = 99;
    EXPECT_FALSE(ParseInt64(text, &value)) << text;
    EXPECT_EQ(value, 99);
  }
  int64_t value = 0;
  EXPECT_FALSE(ParseInt64(absl::string_view("1\0", 2), &value));
}

TEST(ParseInt64, ReadsBackEveryRandomNumber) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<int64_t>(random()) >> (random() % 64);
    int64_t value = 0;
    ASSERT_TRUE(ParseInt64(std::to_string(number), &value));
    ASSERT_EQ(value, number);
  }
}

TEST(ParseUint64, CoversTheWholeRange) {
  uint64_t value = 0;
  EXPECT_TRUE(ParseUint64("18446744073709551615", &value));
  EXPECT_EQ(value, std::numeric_limits<uint64_t>::max());
  for (const char* text : {"18446744073709551616", "-1", "", "01", "1 "})
    EXPECT_FALSE(ParseUint64(text, &value)) << text;
}

TEST(ParseDouble, AcceptsWhatRedisAccepts) {
  const std::pair<const char*, double> cases[] = {
      {"1.5", 1.5},      {"-0.25", -0.25},    {"1e3", 1000},
      {"+2", 2},         {".5", 0.5},         {"0x10", 16.0},
      {"inf", INFINITY}, {"-inf", -INFINITY}, {"Infinity", INFINITY}};
  for (const auto& [text, expected] : cases) {
    double value = 99;
    EXPECT_TRUE(ParseDouble(text, &value)) << text;
    EXPECT_EQ(value, expected);
  }
  double value = 0;
  EXPECT_TRUE(ParseDouble("0." + std::string(500, '0') + "1e501", &value));
  EXPECT_EQ(value, 1.0);
}

TEST(ParseDouble, RefusesWhatRedisRefuses) {
  for (const char* text :
       {"", " 1", "1 ", "abc", "nan", "-nan", "1e999", "-1e999", "1e-999", "1.5x", "1,5"}) {
    double value = 99;
    EXPECT_FALSE(ParseDouble(text, &value)) << text;
    EXPECT_EQ(value, 99);
    long double long_value = 99;
    if (text != std::string("1e999") && text != std::string("-1e999") &&
        text != std::string("1e-999")) {
      EXPECT_FALSE(ParseLongDouble(text, &long_value)) << text;
      EXPECT_EQ(long_value, 99);
    }
  }
  double value = 0;
  EXPECT_FALSE(ParseDouble(absl::string_view("1\0", 2), &value));
}

TEST(ParseLongDouble, ReachesFartherThanADouble) {
  long double value = 0;
  EXPECT_TRUE(ParseLongDouble("1e999", &value));
  EXPECT_FALSE(ParseLongDouble("1e9999", &value));
  EXPECT_FALSE(ParseLongDouble("1e-9999", &value));
  EXPECT_TRUE(ParseLongDouble("-inf", &value));
  EXPECT_FALSE(ParseLongDouble(std::string(6000, '1'), &value));
}

TEST(FormatLongDouble, HasNoExponentAndNoTrailingZeros) {
  EXPECT_EQ(FormatLongDouble(3.0L), "3");
  EXPECT_EQ(FormatLongDouble(10.5L), "10.5");
  EXPECT_EQ(FormatLongDouble(-0.1L), "-0.1");
  EXPECT_EQ(FormatLongDouble(1e20L), "100000000000000000000");
  EXPECT_EQ(FormatLongDouble(0.0L), "0");
  EXPECT_EQ(FormatLongDouble(-0.0L), "0");
  EXPECT_EQ(FormatLongDouble(-1e-30L), "0");
  EXPECT_EQ(FormatLongDouble(5.0e3L), "5000");
  EXPECT_EQ(FormatLongDouble(static_cast<long double>(INFINITY)), "inf");
  EXPECT_EQ(FormatLongDouble(static_cast<long double>(-INFINITY)), "-inf");
}

TEST(FormatDouble, IsShortAndChangesToExponentsWhereRedisDoes) {
  const std::pair<double, const char*> cases[] = {
      {1.5, "1.5"},
      {0.1, "0.1"},
      {3, "3"},
      {-3, "-3"},
      {100000, "100000"},
      {1e16, "10000000000000000"},
      {1e17, "1e+17"},
      {1e20, "1e+20"},
      {0.0001, "0.0001"},
      {0.00001, "1e-05"},
      {123456.789, "123456.789"},
      {INFINITY, "inf"},
      {-INFINITY, "-inf"},
      {NAN, "nan"},
      {0, "0"},
      {-0.0, "-0"},
      {5e-324, "5e-324"},
      {1.7976931348623157e308, "1.7976931348623157e+308"}};
  for (const auto& [value, text] : cases) EXPECT_EQ(FormatDouble(value), text);
}

TEST(FormatDouble, ReadsBackTheSame) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isnormal(value)) continue;
    double back = 0;
    ASSERT_TRUE(ParseDouble(FormatDouble(value), &back));
    ASSERT_EQ(back, value);
  }
}

TEST(ParseMemory, KnowsDecimalAndBinaryUnits) {
  const std::pair<const char*, int64_t> cases[] = {
      {"0", 0},         {"100", 100},          {"1b", 1},
      {"1k", 1000},     {"1KB", 1024},         {"2m", 2'000'000},
      {"2Mb", 2 << 20}, {"3g", 3'000'000'000}, {"3gb", int64_t{3} << 30}};
  for (const auto& [text, expected] : cases) {
    int64_t bytes = -1;
    EXPECT_TRUE(ParseMemory(text, &bytes)) << text;
    EXPECT_EQ(bytes, expected);
  }
  for (const char* text : {"", "k", "-1", "1t", "1 kb", "1kb ", "9223372036854775808",
                           "9223372036854775807kb", "1.5g"}) {
    int64_t bytes = 0;
    EXPECT_FALSE(ParseMemory(text, &bytes)) << text;
  }
}

}  // namespace
}  // namespace idemd::protocol
