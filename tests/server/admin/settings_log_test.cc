// The form of log lines, and where they go.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/admin/log.h"

namespace idemd::server {
namespace {

TEST(LogLine, LooksLikeRedis) {
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(FormatLogLine(kLogNotice, "Ready to accept connections", 4321, 1'795'966'883'007),
            "4321:M 29 Nov 2026 15:41:23.007 * Ready to accept connections\n");
  EXPECT_EQ(FormatLogLine(kLogWarning, "a\nb\r", 1, 0), "1:M 01 Jan 1970 00:00:00.000 # a b \n");
  EXPECT_EQ(FormatLogLine(kLogDebug, "", 1, 0), "1:M 01 Jan 1970 00:00:00.000 . \n");
  EXPECT_EQ(FormatLogLine(kLogVerbose, "", 1, 0), "1:M 01 Jan 1970 00:00:00.000 - \n");
}

TEST(LogFile, TakesLinesFromItsLevelOn) {
  const std::string path = absl::StrCat(::testing::TempDir(), "idemd-log-", getpid());
  ASSERT_TRUE(SetLogFile(path).ok());
  SetLogLevel(kLogNotice);
  LogVerbose("too quiet");
  LogNotice("one");
  SetLogLevel(kLogDebug);
  LogDebug("two");
  SetLogLevel(kLogNotice);
  ASSERT_TRUE(SetLogFile("").ok());
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  unlink(path.c_str());
  EXPECT_THAT(text.str(), ::testing::MatchesRegex("[0-9]+:M .* \\* one\n[0-9]+:M .* \\. two\n"));
}

TEST(LogFile, OneThatCannotBeOpenedIsAnError) {
  EXPECT_FALSE(SetLogFile("/no/such/folder/idemd.log").ok());
}

TEST(LogLimit, LetsSomeThroughAtOnceThenOneASecondAndCountsTheOthers) {
  LogLimit limit;
  uint64_t left_out = 0;
  int64_t now_ms = 5'000'000;
  for (int64_t i = 0; i < LogLimit::kAtOnce; ++i) {
    EXPECT_TRUE(limit.Allow(now_ms, &left_out));
    EXPECT_EQ(left_out, 0u);
  }
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(limit.Allow(now_ms, &left_out));
  EXPECT_TRUE(limit.Allow(now_ms += LogLimit::kPauseMs, &left_out));
  EXPECT_EQ(left_out, 7u);
  EXPECT_FALSE(limit.Allow(now_ms, &left_out));
  now_ms += 100 * LogLimit::kPauseMs;
  for (int64_t i = 0; i < LogLimit::kAtOnce; ++i) EXPECT_TRUE(limit.Allow(now_ms, &left_out));
  EXPECT_FALSE(limit.Allow(now_ms, &left_out));
}

}  // namespace
}  // namespace idemd::server
