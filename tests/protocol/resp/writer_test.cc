// The reply writer: the bytes of every call in RESP2 and in RESP3.
#include "protocol/resp/writer.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "absl/functional/function_ref.h"
#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::protocol {
namespace {

std::string Written(int resp, absl::FunctionRef<void(Writer&)> write) {
  std::string out = "before";
  Writer writer(out, resp);
  write(writer);
  EXPECT_EQ(out.substr(0, 6), "before");
  return out.substr(6);
}

void ExpectBoth(absl::FunctionRef<void(Writer&)> write, const std::string& resp2,
                const std::string& resp3) {
  EXPECT_EQ(Written(2, write), resp2);
  EXPECT_EQ(Written(3, write), resp3);
}

TEST(Writer, LinesStayOneLine) {
  ExpectBoth([](Writer& w) { w.Ok(); }, "+OK\r\n", "+OK\r\n");
  ExpectBoth([](Writer& w) { w.Simple("PONG"); }, "+PONG\r\n", "+PONG\r\n");
  ExpectBoth([](Writer& w) { w.Simple("a\r\nb\nc"); }, "+a  b c\r\n", "+a  b c\r\n");
  ExpectBoth([](Writer& w) { w.Error("ERR x\r\n+OK"); }, "-ERR x  +OK\r\n", "-ERR x  +OK\r\n");
}

TEST(Writer, StringsBeyondTheLimitAreLeftOut) {
  for (const size_t size : {size_t{10}, size_t{1000}}) {
    const std::string word(size, 'x');
    std::string out = "before";
    Writer writer(out, 3);
    writer.set_limit(out.size() + size);
    writer.Bulk(word);
    EXPECT_FALSE(writer.cut());
    const std::string whole = out;
    EXPECT_GT(whole.size(), 6 + size);
    writer.Verbatim("x");
    EXPECT_TRUE(writer.cut());
    writer.Bulk("");
    EXPECT_EQ(out, whole);
    writer.set_limit(out.size() + 1);
    EXPECT_FALSE(writer.cut());
    writer.Bulk("y");
    EXPECT_EQ(out, whole + "$1\r\ny\r\n");
  }
}

TEST(Writer, IntegersOfEveryLength) {
  const auto integer = [](int64_t value) {
    return Written(2, [&](Writer& w) { w.Integer(value); });
  };
  uint64_t power = 1;
  for (int digits = 1; digits <= 19; ++digits, power *= 10) {
    for (const uint64_t n : {power - 1, power, power + 1}) {
      if (n > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) continue;
      const auto value = static_cast<int64_t>(n);
      EXPECT_EQ(integer(value), ":" + std::to_string(value) + "\r\n");
      EXPECT_EQ(integer(-value), ":" + std::to_string(-value) + "\r\n");
    }
  }
  EXPECT_EQ(integer(std::numeric_limits<int64_t>::max()), ":9223372036854775807\r\n");
  EXPECT_EQ(integer(std::numeric_limits<int64_t>::min()), ":-9223372036854775808\r\n");
}

TEST(Writer, RandomIntegersAreWrittenAsTheLibraryWritesThem) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<int64_t>(random()) >> (random() % 64);
    ASSERT_EQ(Written(3, [&](Writer& w) { w.Integer(value); }),
              ":" + std::to_string(value) + "\r\n");
  }
}

TEST(Writer, BulksOfEveryLengthAroundTheShortOnes) {
  for (size_t size = 0; size < 600; ++size) {
    const std::string bytes(size, static_cast<char>(size));
    const std::string expected = "$" + std::to_string(size) + "\r\n" + bytes + "\r\n";
    ExpectBoth([&](Writer& w) { w.Bulk(bytes); }, expected, expected);
  }
  const std::string line_end = "$4\r\na\r\nb\r\n";
  ExpectBoth([](Writer& w) { w.Bulk("a\r\nb"); }, line_end, line_end);
  ExpectBoth([](Writer& w) { w.BulkInteger(-120); }, "$4\r\n-120\r\n", "$4\r\n-120\r\n");
  ExpectBoth([](Writer& w) { w.BulkInteger(std::numeric_limits<int64_t>::min()); },
             "$20\r\n-9223372036854775808\r\n", "$20\r\n-9223372036854775808\r\n");
}

TEST(Writer, NullsDifferByVersion) {
  ExpectBoth([](Writer& w) { w.Null(); }, "$-1\r\n", "_\r\n");
  ExpectBoth([](Writer& w) { w.NullArray(); }, "*-1\r\n", "_\r\n");
}

TEST(Writer, HeadsOfAggregates) {
  ExpectBoth([](Writer& w) { w.Array(0); }, "*0\r\n", "*0\r\n");
  ExpectBoth([](Writer& w) { w.Array(1234567); }, "*1234567\r\n", "*1234567\r\n");
  ExpectBoth([](Writer& w) { w.Map(7); }, "*14\r\n", "%7\r\n");
  ExpectBoth([](Writer& w) { w.Set(3); }, "*3\r\n", "~3\r\n");
  ExpectBoth([](Writer& w) { w.Push(3); }, "*3\r\n", ">3\r\n");
  EXPECT_EQ(Written(3, [](Writer& w) { w.Attribute(1); }), "|1\r\n");
}

TEST(Writer, DoublesAreBulksInResp2) {
  ExpectBoth([](Writer& w) { w.Double(1.5); }, "$3\r\n1.5\r\n", ",1.5\r\n");
  ExpectBoth([](Writer& w) { w.Double(INFINITY); }, "$3\r\ninf\r\n", ",inf\r\n");
  ExpectBoth([](Writer& w) { w.Double(-INFINITY); }, "$4\r\n-inf\r\n", ",-inf\r\n");
  ExpectBoth([](Writer& w) { w.Double(3); }, "$1\r\n3\r\n", ",3\r\n");
}

TEST(Writer, TypesThatOnlyResp3Has) {
  ExpectBoth([](Writer& w) { w.Boolean(true); }, ":1\r\n", "#t\r\n");
  ExpectBoth([](Writer& w) { w.Boolean(false); }, ":0\r\n", "#f\r\n");
  ExpectBoth([](Writer& w) { w.BigNumber("-12345678901234567890"); },
             "$21\r\n-12345678901234567890\r\n", "(-12345678901234567890\r\n");
  ExpectBoth([](Writer& w) { w.Verbatim("a\nb"); }, "$3\r\na\nb\r\n", "=7\r\ntxt:a\nb\r\n");
  ExpectBoth([](Writer& w) { w.Verbatim("x", "md"); }, "$1\r\nx\r\n", "=5\r\nmd :x\r\n");
}

TEST(Writer, AHeadCanBePutInAfterItsElements) {
  const auto inserted = [](int kind) {
    return [kind](Writer& w) {
      w.Integer(0);
      const size_t mark = w.Mark();
      w.Integer(1);
      w.Integer(2);
      if (kind == 0) w.InsertArray(mark, 2);
      if (kind == 1) w.InsertMap(mark, 1);
      if (kind == 2) w.InsertSet(mark, 2);
    };
  };
  ExpectBoth(inserted(0), ":0\r\n*2\r\n:1\r\n:2\r\n", ":0\r\n*2\r\n:1\r\n:2\r\n");
  ExpectBoth(inserted(1), ":0\r\n*2\r\n:1\r\n:2\r\n", ":0\r\n%1\r\n:1\r\n:2\r\n");
  ExpectBoth(inserted(2), ":0\r\n*2\r\n:1\r\n:2\r\n", ":0\r\n~2\r\n:1\r\n:2\r\n");
}

TEST(Writer, TheVersionCanChangeBetweenReplies) {
  std::string out;
  Writer writer(out, 2);
  writer.Null();
  writer.set_resp(3);
  writer.Null();
  EXPECT_EQ(out, "$-1\r\n_\r\n");
  EXPECT_EQ(writer.resp(), 3);
}

}  // namespace
}  // namespace idemd::protocol
