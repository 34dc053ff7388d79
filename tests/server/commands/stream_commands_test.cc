// Streams as clients see them, what the log is told of each command, and that the log's commands make the same stream.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "tests/support/harness.h"
#include "tests/support/seed.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// The words of an effect that is a command.
std::vector<std::string> WordsOf(absl::string_view effect) {
  std::vector<std::string> words;
  if (!absl::StartsWith(effect, "*")) return {std::string(effect)};
  effect.remove_prefix(effect.find('\n') + 1);
  while (!effect.empty()) {
    const size_t size = std::strtoull(effect.data() + 1, nullptr, 10);
    effect.remove_prefix(effect.find('\n') + 1);
    words.emplace_back(effect.substr(0, size));
    effect.remove_prefix(size + 2);
  }
  return words;
}

class StreamTest : public ::testing::Test, protected idemd::testing::Harness {
 protected:
  // What the log was told since the last call, a line for each command.
  std::vector<std::string> Log() {
    std::vector<std::string> lines;
    for (const std::string& effect : NewEffects()) lines.push_back(absl::StrJoin(WordsOf(effect), " "));
    return lines;
  }
  static constexpr int64_t kNow = kStart;
};

TEST_F(StreamTest, AnEntryGetsTheTimeAsItsIdAndTheLogTheWholeId) {
  const std::string id = absl::StrCat(kNow, "-0");
  EXPECT_EQ(Do("XADD s * a 1 b 2"), absl::StrCat("\"", id, "\""));
  EXPECT_EQ(Do("XADD s * a 1"), absl::StrCat("\"", kNow, "-1\""));
  EXPECT_THAT(Log(), ElementsAre(absl::StrCat("XADD s ", id, " a 1 b 2"), absl::StrCat("XADD s ", kNow, "-1 a 1")));
  EXPECT_EQ(Do("XADD s 99999999999999-* a 1"), "\"99999999999999-0\"");
  EXPECT_EQ(Do("XADD s * a 1"), "\"99999999999999-1\"") << "time does not go back";
  EXPECT_EQ(Do("XLEN s"), "4");
  EXPECT_EQ(Do("XRANGE s - + COUNT 1"), absl::StrCat("[[\"", id, "\" [\"a\" \"1\" \"b\" \"2\"]]]"));
  EXPECT_EQ(Do("XREVRANGE s + - COUNT 1"), "[[\"99999999999999-1\" [\"a\" \"1\"]]]");
}

TEST_F(StreamTest, TrimmingIsLoggedAsTheLengthThatCameOfIt) {
  Do("CONFIG SET stream-node-max-entries 10");
  for (int i = 1; i <= 25; ++i) Do(absl::StrCat("XADD s ", i, " a 1"));
  Log();
  EXPECT_EQ(Do("XADD s MAXLEN ~ 12 26 a 1"), "\"26-0\"");
  EXPECT_EQ(Do("XLEN s"), "16");
  EXPECT_EQ(Do("XTRIM s MINID = 15"), "4");
  EXPECT_EQ(Do("XADD s MINID ~ 3 27 a 1"), "\"27-0\"");
  EXPECT_EQ(Do("XTRIM s MAXLEN 100"), "0");
  EXPECT_THAT(Log(), ElementsAre("XADD s MAXLEN = 16 26-0 a 1", "XTRIM s MAXLEN = 12", "XADD s 27-0 a 1"));
}

TEST_F(StreamTest, WhatChangesNothingIsNotLogged) {
  Do("XADD s 1 a 1");
  Do("XGROUP CREATE s g $");
  Do("XGROUP CREATECONSUMER s g c");
  Log();
  for (const char* line : {"XADD none NOMKSTREAM 1 a 1", "XADD s 1 a 1", "XDEL s 2", "XTRIM s MAXLEN 5", "XACK s g 1",
                           "XREADGROUP GROUP g c STREAMS s >", "XREADGROUP GROUP g c STREAMS s 0", "XCLAIM s g c 0 1",
                           "XAUTOCLAIM s g c 0 -", "XGROUP CREATECONSUMER s g c", "XGROUP DELCONSUMER s g d",
                           "XGROUP DESTROY s h", "XGROUP CREATE s g 0", "XREAD STREAMS s 0", "XPENDING s g"})
    Do(line);
  EXPECT_THAT(Log(), IsEmpty());
  EXPECT_EQ(Do("EXISTS none"), "0");
}

TEST_F(StreamTest, ReadingAsAGroupLogsWhatBecamePendingAndHowFarItRead) {
  for (int i = 1; i <= 3; ++i) Do(absl::StrCat("XADD s ", i, " a ", i));
  Do("XGROUP CREATE s g 0");
  Log();
  EXPECT_EQ(Do("XREADGROUP GROUP g c COUNT 2 STREAMS s >"), "[[\"s\" [[\"1-0\" [\"a\" \"1\"]] [\"2-0\" [\"a\" \"2\"]]]]]");
  EXPECT_THAT(Log(), ElementsAre("XGROUP CREATECONSUMER s g c",
                                 absl::StrCat("XCLAIM s g c 0 1-0 2-0 TIME ", kNow, " RETRYCOUNT 1 FORCE JUSTID"),
                                 "XGROUP SETID s g 2-0 ENTRIESREAD 2"));
  EXPECT_EQ(Do("XREADGROUP GROUP g c NOACK STREAMS s >"), "[[\"s\" [[\"3-0\" [\"a\" \"3\"]]]]]");
  EXPECT_THAT(Log(), ElementsAre("XGROUP SETID s g 3-0 ENTRIESREAD 3"));
  Pass(5);
  EXPECT_EQ(Do("XREADGROUP GROUP g c STREAMS s 1"), "[[\"s\" [[\"2-0\" [\"a\" \"2\"]]]]]");
  EXPECT_THAT(Log(), ElementsAre(absl::StrCat("XCLAIM s g c 0 2-0 TIME ", kNow + 5, " RETRYCOUNT 2 FORCE JUSTID")));
  EXPECT_EQ(Do("XPENDING s g - + 9"), "[[\"1-0\" \"c\" 5 1] [\"2-0\" \"c\" 0 2]]");
}

TEST_F(StreamTest, ClaimsAreLoggedByTimeAndCountAndWhatIsGoneIsAcknowledged) {
  for (int i = 1; i <= 4; ++i) Do(absl::StrCat("XADD s ", i, " a ", i));
  Do("XGROUP CREATE s g 0");
  Do("XREADGROUP GROUP g c STREAMS s >");
  Do("XCLAIM s g c 0 3 RETRYCOUNT 7 JUSTID");
  Do("XDEL s 2");
  Pass(1000);
  Log();
  EXPECT_EQ(Do("XAUTOCLAIM s g d 500 - JUSTID"), "[\"0-0\" [\"1-0\" \"3-0\" \"4-0\"] [\"2-0\"]]");
  const std::string time = absl::StrCat(" TIME ", kNow + 1000, " RETRYCOUNT ");
  EXPECT_THAT(Log(), ElementsAre("XGROUP CREATECONSUMER s g d", absl::StrCat("XCLAIM s g d 0 1-0", time, "1 FORCE JUSTID"),
                                 "XACK s g 2-0", absl::StrCat("XCLAIM s g d 0 3-0", time, "7 FORCE JUSTID"),
                                 absl::StrCat("XCLAIM s g d 0 4-0", time, "1 FORCE JUSTID")));
  EXPECT_EQ(Do("XCLAIM s g e 0 1 LASTID 9 TIME 17"), "[[\"1-0\" [\"a\" \"1\"]]]");
  EXPECT_THAT(Log(), ElementsAre("XGROUP SETID s g 9-0 ENTRIESREAD 4", "XGROUP CREATECONSUMER s g e",
                                 "XCLAIM s g e 0 1-0 TIME 17 RETRYCOUNT 2 FORCE JUSTID"));
}

TEST_F(StreamTest, AMadeStreamStaysWhenItIsEmpty) {
  EXPECT_EQ(Do("XGROUP CREATE s g $ MKSTREAM"), "OK");
  EXPECT_THAT(Log(), ElementsAre("XGROUP CREATE s g 0-0 MKSTREAM ENTRIESREAD -1"));
  EXPECT_EQ(Do("TYPE s"), "stream");
  EXPECT_EQ(Do("OBJECT ENCODING s"), "\"stream\"");
  Do("XADD s 1 a 1");
  EXPECT_EQ(Do("XDEL s 1"), "1");
  EXPECT_EQ(Do("EXISTS s"), "1");
  EXPECT_EQ(Do("XADD s 1 a 1"), "-ERR The ID specified in XADD is equal or smaller than the target stream top item");
}

TEST_F(StreamTest, OtherTypesAreRefused) {
  Do("SET k v");
  for (const char* line : {"XADD k 1 a 1", "XLEN k", "XRANGE k - +", "XDEL k 1", "XTRIM k MAXLEN 1", "XSETID k 1", "XREAD STREAMS k 0",
                           "XREADGROUP GROUP g c STREAMS k >", "XACK k g 1", "XPENDING k g", "XCLAIM k g c 0 1",
                           "XAUTOCLAIM k g c 0 -", "XGROUP CREATE k g $", "XINFO STREAM k"})
    EXPECT_THAT(Do(line), StartsWith("-WRONGTYPE")) << line;
  Do("XADD s 1 a 1");
  EXPECT_THAT(Do("GET s"), StartsWith("-WRONGTYPE"));
  EXPECT_THAT(Do("IDEM.CONSUME s"), StartsWith("-WRONGTYPE"));
}

TEST_F(StreamTest, SeveralStreamsAreReadAtOnceAndInResp3AsAMap) {
  Do("XADD a 1 f x");
  Do("XADD b 5 f y");
  EXPECT_EQ(Do("XREAD COUNT 1 STREAMS a b none 0 0 0"), "[[\"a\" [[\"1-0\" [\"f\" \"x\"]]]] [\"b\" [[\"5-0\" [\"f\" \"y\"]]]]]");
  EXPECT_EQ(Do("XREAD STREAMS a b $ $"), "nil");
  Do("HELLO 3");
  EXPECT_EQ(Do("XREAD STREAMS a b 1 0"), "{\"b\": [[\"5-0\" [\"f\" \"y\"]]]}");
  EXPECT_EQ(Do("COMMAND GETKEYS XREAD COUNT 1 STREAMS a b 0 0"), "[\"a\" \"b\"]");
  EXPECT_THAT(Do("COMMAND GETKEYS XREAD STREAMS a b 0"), HasSubstr("Invalid arguments"));
}

TEST_F(StreamTest, WhoWatchesAKeyNoticesEntriesAndNotWhatGroupsDo) {
  Do("XADD s 1 a 1");
  Do("XADD s 2 a 1");
  Do("XGROUP CREATE s g 0");
  const auto watched = [&](const char* line) {
    const auto other = Connect();
    Do("WATCH s");
    EXPECT_THAT(Do(*other, line), ::testing::Not(StartsWith("-"))) << line;
    Do("MULTI");
    Do("PING");
    return Do("EXEC");
  };
  for (const char* line : {"XREADGROUP GROUP g c STREAMS s >", "XCLAIM s g d 0 1", "XAUTOCLAIM s g e 0 -", "XACK s g 1", "XSETID s 9",
                           "XGROUP CREATE s h 0", "XGROUP SETID s g 0", "XGROUP DELCONSUMER s g c"})
    EXPECT_EQ(watched(line), "[PONG]") << line;
  for (const char* line : {"XADD s * a 1", "XDEL s 1", "XTRIM s MAXLEN 1", "XGROUP DESTROY s h"})
    EXPECT_EQ(watched(line), "nil") << line;
}

TEST_F(StreamTest, TheLogsCommandsMakeTheSameStream) {
  const uint64_t seed = idemd::TestSeed();
  SCOPED_TRACE(idemd::SeedNote(seed));
  std::mt19937_64 random(seed);
  idemd::testing::Harness other;
  Do("CONFIG SET stream-node-max-entries 5");
  other.Do("CONFIG SET stream-node-max-entries 5");
  uint64_t last = 1;
  const auto id = [&] { return absl::StrCat(last > 20 ? last - random() % 20 : 1 + random() % 20); };
  const auto group = [&] { return absl::StrCat("g", random() % 2); };
  const auto consumer = [&] { return absl::StrCat("c", random() % 3); };
  for (int i = 0; i < 3000; ++i) {
    std::string line;
    switch (random() % 12) {
      case 0:
      case 1:
      case 2:
        line = absl::StrCat("XADD s ", random() % 5 == 0 ? "MAXLEN ~ 30 " : "", ++last, " f ", random() % 100);
        break;
      case 3:
        line = absl::StrCat("XDEL s ", id(), " ", id());
        break;
      case 4:
        line = absl::StrCat("XGROUP CREATE s ", group(), " ", id(), " MKSTREAM");
        break;
      case 5:
        line = absl::StrCat("XGROUP SETID s ", group(), " ", id(), random() % 2 == 0 ? " ENTRIESREAD 3" : "");
        break;
      case 6:
        line = absl::StrCat("XACK s ", group(), " ", id(), " ", id());
        break;
      case 7:
        line = absl::StrCat("XCLAIM s ", group(), " ", consumer(), " 0 ", id(), " ", id(), random() % 2 == 0 ? " FORCE" : " JUSTID",
                            random() % 3 == 0 ? " LASTID 15" : "");
        break;
      case 8:
        line = absl::StrCat("XAUTOCLAIM s ", group(), " ", consumer(), " ", random() % 20, " - COUNT 5");
        break;
      case 9:
        line = random() % 4 == 0 ? absl::StrCat("XGROUP DELCONSUMER s ", group(), " ", consumer())
                                 : absl::StrCat("XTRIM s MINID ~ ", id(), " LIMIT 7");
        break;
      default:
        line = absl::StrCat("XREADGROUP GROUP ", group(), " ", consumer(), " COUNT 3 ", random() % 4 == 0 ? "NOACK " : "",
                            "STREAMS s ", random() % 3 == 0 ? "0" : ">");
    }
    Do(line);
    for (const std::string& effect : NewEffects())
      EXPECT_THAT(other.DoWords(WordsOf(effect)), ::testing::Not(StartsWith("-"))) << line << " -> " << effect;
    if (random() % 3 == 0) {
      Pass(7);
      other.Pass(7);
    }
    if (i % 50 != 49) continue;
    // When a consumer was seen last is not in the log.
    const auto seen = [](idemd::testing::Harness& server) {
      std::string text = server.Do("XINFO STREAM s FULL COUNT 0");
      for (size_t at = 0; (at = text.find("\"seen-time\" ", at)) != std::string::npos;) {
        at += 12;
        text.erase(at, text.find(' ', at) - at);
      }
      return text;
    };
    ASSERT_EQ(seen(*this), seen(other)) << "after " << i << " commands";
  }
}

}  // namespace
}  // namespace idemd::server
