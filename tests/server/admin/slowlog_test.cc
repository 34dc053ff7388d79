// The slow log's ring and its shortening.
#include "server/admin/slowlog.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;

void Add(SlowLog& log, std::vector<absl::string_view> words, int64_t usec = 10) {
  log.Add(usec, 1'700'000'000, words, "127.0.0.1:1", "name");
}

TEST(SlowLog, AThresholdOfZeroKeepsAllAndANegativeOneNone) {
  SlowLog log;
  log.slower_than_us = 100;
  EXPECT_FALSE(log.IsSlow(99));
  EXPECT_TRUE(log.IsSlow(100));
  log.slower_than_us = 0;
  EXPECT_TRUE(log.IsSlow(0));
  log.slower_than_us = -1;
  EXPECT_FALSE(log.IsSlow(1'000'000));
}

TEST(SlowLog, KeepsTheLatestEntriesNewestFirst) {
  SlowLog log;
  log.max_len = 3;
  for (absl::string_view word : {"a", "b", "c", "d", "e"}) Add(log, {word});
  ASSERT_EQ(log.size(), 3u);
  const std::vector<SlowLogEntry> entries = log.Latest(2);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_THAT(entries[0].words, ElementsAre("e"));
  EXPECT_EQ(entries[0].id, 4);
  EXPECT_THAT(entries[1].words, ElementsAre("d"));
  EXPECT_EQ(entries[1].client_name, "name");
}

TEST(SlowLog, NumbersGoOnAfterAReset) {
  SlowLog log;
  Add(log, {"a"});
  log.Reset();
  EXPECT_EQ(log.size(), 0u);
  Add(log, {"b"});
  EXPECT_EQ(log.Latest(1)[0].id, 1);
}

TEST(SlowLog, AShorterLimitTakesEffectWithTheNextEntry) {
  SlowLog log;
  for (int i = 0; i < 10; ++i) Add(log, {"x"});
  log.max_len = 2;
  Add(log, {"y"});
  EXPECT_EQ(log.size(), 2u);
  log.max_len = 0;
  Add(log, {"z"});
  EXPECT_EQ(log.size(), 0u);
}

TEST(SlowLog, LongCommandsAreCutAsRedisCutsThem) {
  SlowLog log;
  std::vector<std::string> texts;
  for (int i = 0; i < 33; ++i) texts.push_back(absl::StrCat(i));
  std::vector<absl::string_view> words(texts.begin(), texts.end());
  Add(log, words);
  std::vector<std::string> kept = log.Latest(1)[0].words;
  ASSERT_EQ(kept.size(), 32u);
  EXPECT_EQ(kept[30], "30");
  EXPECT_EQ(kept[31], "... (2 more arguments)");

  words.pop_back();
  Add(log, words);
  kept = log.Latest(1)[0].words;
  ASSERT_EQ(kept.size(), 32u);
  EXPECT_EQ(kept[31], "31");
}

TEST(SlowLog, LongWordsAreCutAsRedisCutsThem) {
  SlowLog log;
  const std::string fits(128, 'A');
  const std::string longer(129, 'B');
  Add(log, {fits, longer});
  EXPECT_THAT(log.Latest(1)[0].words,
              ElementsAre(fits, longer.substr(0, 128) + "... (1 more bytes)"));
}

}  // namespace
}  // namespace idemd::server
