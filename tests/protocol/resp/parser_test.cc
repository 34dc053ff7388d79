// The request parser: words, place keeping over any split, and every protocol error.
#include "protocol/resp/parser.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/protocol/resp/feed.h"
#include "tests/support/seed.h"

namespace idemd::protocol {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Inputs with the awkward places: empty words, binary words, counts at their edges, blanks, quotes,
// errors.
std::vector<std::string> Inputs() {
  using namespace std::string_literals;
  return {
      "*1\r\n$4\r\nPING\r\n",
      "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
      "*2\r\n$3\r\nGET\r\n$12\r\na\r\nb\0c*1\r\n$1\r\n"s + "*1\r\n$4\r\nQUIT\r\n",
      "*0\r\n*-1\r\n\r\n   \r\n\n*1\r\n$1\r\nx\r\n",
      "*12\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n$"
      "1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n"
      "$1\r\nk\r\n$11\r\nlmnopqrstuv\r\nPING\r\n",
      "SET key \"a \\x41\\n\\\"\" 'it\\'s' pre\"fix ed\"\r\nGET key\n",
      "PING\r\n  GET\t k  \r\n",
      "*1\r\n$4\r\nPING\r\n*x\r\n",
      "*1\r\n$4\r\nPING\r\n*2\r\n$3\r\nGET\r\n+3\r\n",
      "*2\r\n$3\r\nGET\r\n$-1\r\n",
      "*1\r\n$01\r\nx\r\n",
      "PING\r\nSET k \"open\r\n",
      "*1000000\r\n$4\r\nECHO\r\n$3\r\nabc\r\n",
      "*1\rX$2\rXokXX*1\r\n$1\r\ny\r\n",
      "*1\r\n$9999999999\r\n",
  };
}

TEST(RequestParser, YieldsTheWordsOfEachRequestInOrder) {
  const Outcome out =
      ParseWhole("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\nGET k\r\n*1\r\n$4\r\nPING\r\n");
  EXPECT_THAT(out.requests, ElementsAre(ElementsAre("SET", "k", ""), ElementsAre("GET", "k"),
                                        ElementsAre("PING")));
  EXPECT_EQ(out.error, "");
  EXPECT_EQ(out.left, 0u);
}

TEST(RequestParser, WordsAreViewsIntoTheBuffer) {
  const std::string buffer = "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\nGET other\r\n";
  Parser parser;
  Batch batch;
  ASSERT_EQ(parser.Parse(buffer, {}, 10, batch), ParseStatus::kNeedMore);
  ASSERT_EQ(batch.words.size(), 4u);
  for (absl::string_view word : batch.words) {
    EXPECT_GE(word.data(), buffer.data());
    EXPECT_LE(word.data() + word.size(), buffer.data() + buffer.size());
  }
}

TEST(RequestParser, EveryCutInTwoAndEveryByteAloneGiveTheSameAsTheWhole) {
  for (const std::string& input : Inputs()) {
    SCOPED_TRACE(input);
    const Outcome whole = ParseWhole(input);
    for (size_t cut = 0; cut <= input.size(); ++cut) {
      Feeder feeder;
      if (feeder.Add(absl::string_view(input).substr(0, cut)))
        feeder.Add(absl::string_view(input).substr(cut));
      EXPECT_EQ(feeder.outcome(), whole) << "cut at " << cut;
      EXPECT_TRUE(feeder.spans_fit());
    }
    Feeder single({}, 1);
    for (const char c : input) {
      if (!single.Add(absl::string_view(&c, 1))) break;
    }
    EXPECT_EQ(single.outcome(), whole);
  }
}

TEST(RequestParser, EveryCutInThreeGivesTheSameAsTheWhole) {
  for (const std::string& input : Inputs()) {
    if (input.size() > 80) continue;
    const Outcome whole = ParseWhole(input);
    const absl::string_view bytes(input);
    for (size_t a = 0; a <= bytes.size(); ++a) {
      for (size_t b = a; b <= bytes.size(); ++b) {
        Feeder feeder;
        if (feeder.Add(bytes.substr(0, a)) && feeder.Add(bytes.substr(a, b - a)))
          feeder.Add(bytes.substr(b));
        ASSERT_EQ(feeder.outcome(), whole) << input << " cut at " << a << " and " << b;
      }
    }
  }
}

TEST(RequestParser, RandomRequestsComeBackWhateverTheSplits) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<Request> sent;
    std::string bytes;
    for (size_t r = below(6); r > 0; --r) {
      Request request(1 + below(15));
      bytes += "*" + std::to_string(request.size()) + "\r\n";
      for (std::string& word : request) {
        word.resize(below(below(8) == 0 ? 3000 : 20));
        for (char& c : word)
          c = static_cast<char>(below(3) == 0 ? "\r\n*$0"[below(5)]
                                              : static_cast<char>(below(256)));
        bytes += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
      }
      sent.push_back(std::move(request));
    }
    Feeder feeder({}, 1 + below(4));
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = std::min(bytes.size() - at, 1 + below(below(2) == 0 ? 5 : 700));
      ASSERT_TRUE(feeder.Add(absl::string_view(bytes).substr(at, size)));
      at += size;
    }
    ASSERT_EQ(feeder.outcome().requests, sent);
    ASSERT_EQ(feeder.outcome().left, 0u);
  }
}

TEST(RequestParser, RandomBytesNeverDependOnTheSplits) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const char alphabet[] = "**$$\r\r\n\n0123-\"'\\x a";
  for (int round = 0; round < 3000; ++round) {
    std::string bytes(1 + random() % 60, ' ');
    for (char& c : bytes) c = alphabet[random() % (sizeof(alphabet) - 1)];
    const Outcome whole = ParseWhole(bytes);
    Feeder feeder({}, 2);
    for (size_t at = 0; at < bytes.size();) {
      const size_t size = 1 + random() % 7;
      if (!feeder.Add(absl::string_view(bytes).substr(at, size))) break;
      at += size;
    }
    ASSERT_EQ(feeder.outcome(), whole) << testing::PrintToString(bytes);
  }
}

TEST(RequestParser, AFullBatchGoesOnWhereItStopped) {
  const std::string bytes = "PING\r\n*1\r\n$4\r\nECHO\r\nQUIT\r\n";
  Parser parser;
  Batch batch;
  EXPECT_EQ(parser.Parse(bytes, {}, 2, batch), ParseStatus::kFull);
  EXPECT_EQ(batch.requests.size(), 2u);
  EXPECT_EQ(parser.consumed(), bytes.size() - 6);
  EXPECT_EQ(parser.Parse(absl::string_view(bytes).substr(parser.consumed()), {}, 3, batch),
            ParseStatus::kNeedMore);
  ASSERT_EQ(batch.requests.size(), 3u);
  EXPECT_THAT(batch.words_of(batch.requests[2]), ElementsAre("QUIT"));
  EXPECT_EQ(batch.requests[1].bytes, 14u);
}

TEST(RequestParser, TellsHowManyBytesALargeBulkNeeds) {
  Feeder feeder;
  feeder.Add("*2\r\n$3\r\nSET\r\n$100000\r\nab");
  EXPECT_EQ(feeder.outcome().wanted, 22u + 100000u + 2u);
  Feeder header;
  header.Add("*2\r\n$3\r\nSET\r\n$1000");
  EXPECT_EQ(header.outcome().wanted, 0u);
}

TEST(RequestParser, EmptyRequestsAreSkipped) {
  const Outcome out = ParseWhole("*0\r\n*-5\r\n\r\n\n \t \r\nPING\r\n");
  EXPECT_THAT(out.requests, ElementsAre(ElementsAre("PING")));
  EXPECT_EQ(out.left, 0u);
}

struct ErrorCase {
  std::string bytes;
  std::string error;
};

TEST(RequestParser, SaysWhatIsWrongInRedisWords) {
  const std::string long_line(64 * 1024 + 1, '1');
  const std::vector<ErrorCase> cases = {
      {"*abc\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*\r\n", "ERR Protocol error: invalid multibulk length"},
      {"* 1\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*+1\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*01\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*1048577\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*9223372036854775808\r\n", "ERR Protocol error: invalid multibulk length"},
      {"*1\r\nfoo\r\n", "ERR Protocol error: expected '$', got 'f'"},
      {"*2\r\n$1\r\na\r\n*1\r\n", "ERR Protocol error: expected '$', got '*'"},
      {"*1\r\n\r\n", "ERR Protocol error: expected '$', got ' '"},
      {"*1\r\n$x\r\n", "ERR Protocol error: invalid bulk length"},
      {"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"},
      {"*1\r\n$\r\n", "ERR Protocol error: invalid bulk length"},
      {"*1\r\n$536870913\r\n", "ERR Protocol error: invalid bulk length"},
      {"*" + long_line, "ERR Protocol error: too big mbulk count string"},
      {"*1\r\n$" + long_line, "ERR Protocol error: too big bulk count string"},
      {long_line, "ERR Protocol error: too big inline request"},
      {long_line + "\r\n", "ERR Protocol error: too big inline request"},
      {"SET k \"a\r\n", "ERR Protocol error: unbalanced quotes in request"},
      {"SET k 'a\r\n", "ERR Protocol error: unbalanced quotes in request"},
      {"SET k \"a\"b\r\n", "ERR Protocol error: unbalanced quotes in request"},
  };
  for (const ErrorCase& c : cases) {
    const Outcome out = ParseWhole(c.bytes);
    EXPECT_EQ(out.error, c.error) << c.bytes.substr(0, 40);
    EXPECT_THAT(out.requests, IsEmpty());
  }
}

TEST(RequestParser, WhoSpeaksAnotherProtocolIsToldWithoutWaitingForALineEnd) {
  for (const absl::string_view bytes : {absl::string_view("\x16\x03\x01"), absl::string_view("\0", 1), absl::string_view("\x7f"),
                                        absl::string_view("\x80\x2e"), absl::string_view("\xff\n"), absl::string_view(" \t\x01 PING\r\n")}) {
    Parser parser;
    Batch batch;
    EXPECT_EQ(parser.Parse(bytes, {}, 100, batch), ParseStatus::kError);
    EXPECT_TRUE(parser.foreign());
    EXPECT_THAT(batch.requests, IsEmpty());
  }
  EXPECT_EQ(ParseWhole("PING\r\n\x16\x03").error, "ERR Protocol error: expected '*' or a command, got the byte 0x16");
  EXPECT_THAT(ParseWhole("PING\r\n\x16\x03").requests, ElementsAre(ElementsAre("PING")));
  // Arguments may be anything, and so may what is between blanks.
  EXPECT_THAT(ParseWhole(" \v\f PING \x01\xff\r\n").requests, ElementsAre(ElementsAre("PING", "\x01\xff")));
  Parser parser;
  Batch batch;
  EXPECT_EQ(parser.Parse("*1\r\n:1\r\n", {}, 100, batch), ParseStatus::kError);
  EXPECT_FALSE(parser.foreign());
}

TEST(RequestParser, ALineOfTheGreatestLengthIsStillAccepted) {
  const std::string word(64 * 1024 - 1, 'a');
  EXPECT_EQ(ParseWhole(word + "\r\n").requests.size(), 1u);
  EXPECT_EQ(ParseWhole(word + "a").error, "");
}

TEST(RequestParser, BeforeAuthenticationRequestsAreShort) {
  ParserLimits limits;
  limits.unauthenticated = true;
  EXPECT_EQ(ParseWhole("*11\r\n", limits).error,
            "ERR Protocol error: unauthenticated multibulk length");
  EXPECT_EQ(ParseWhole("*10\r\n", limits).error, "");
  EXPECT_EQ(ParseWhole("*1\r\n$16385\r\n", limits).error,
            "ERR Protocol error: unauthenticated bulk length");
  EXPECT_EQ(ParseWhole("*1\r\n$16384\r\n", limits).error, "");
}

TEST(RequestParser, AuthenticationLiftsTheLimitsForTheNextRequestOfTheSameRead) {
  const std::string bytes = "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*11\r\n";
  ParserLimits limits;
  limits.unauthenticated = true;
  Parser parser;
  Batch batch;
  ASSERT_EQ(parser.Parse(bytes, limits, 100, batch), ParseStatus::kFull);
  ASSERT_EQ(batch.requests.size(), 1u);
  limits.unauthenticated = false;
  EXPECT_EQ(parser.Parse(absl::string_view(bytes).substr(parser.consumed()), limits, 100, batch),
            ParseStatus::kNeedMore);
}

TEST(RequestParser, RequestsBeforeAnErrorAreStillGiven) {
  const Outcome out = ParseWhole("PING\r\n*1\r\n$4\r\nECHO\r\n*1\r\n:1\r\n");
  EXPECT_THAT(out.requests, ElementsAre(ElementsAre("PING"), ElementsAre("ECHO")));
  EXPECT_EQ(out.error, "ERR Protocol error: expected '$', got ':'");
}

TEST(SplitWords, FollowsRedisRulesForQuotesAndEscapes) {
  const auto split = [](absl::string_view line) {
    std::vector<std::string> words;
    return SplitWords(line, words) ? words : std::vector<std::string>{"<unbalanced>"};
  };
  EXPECT_THAT(split(""), IsEmpty());
  EXPECT_THAT(split(" a  b\t"), ElementsAre("a", "b"));
  EXPECT_THAT(split("\"\" ''"), ElementsAre("", ""));
  EXPECT_THAT(split("\"\\n\\r\\t\\b\\a\\q\\\\\\\"\""), ElementsAre("\n\r\t\b\aq\\\""));
  EXPECT_THAT(split("\"\\x41\\x7A\\xfF\\xg1\\x4\""), ElementsAre("Az\xffxg1x4"));
  EXPECT_THAT(split("'a\\n\\'b\"'"), ElementsAre("a\\n'b\""));
  EXPECT_THAT(split("a\\nb\\x41"), ElementsAre("a\\nb\\x41"));
  EXPECT_THAT(split("pre\"mid\" 'x'\tend"), ElementsAre("premid", "x", "end"));
  EXPECT_THAT(split("a\vb \v c"), ElementsAre("a\vb", "c"));
  EXPECT_THAT(split("\"a\"\vb"), ElementsAre("a", "b"));
  for (const char* line :
       {"\"", "'", "a\"b", "\"a\"b", "'a'b", "\"a\\", "\"a\\\"", "'a\\'", "x 'y'\"z\""}) {
    EXPECT_THAT(split(line), ElementsAre("<unbalanced>")) << line;
  }
}

}  // namespace
}  // namespace idemd::protocol
