// Callers who wait at streams: what ends a wait, what each one gets, and what does not count.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using ::testing::HasSubstr;

class StreamBlockingTest : public ::testing::Test {
 protected:
  std::unique_ptr<TestClient> Waiting(absl::string_view line) {
    std::unique_ptr<TestClient> client = h.Connect();
    EXPECT_EQ(h.Do(*client, line), "") << line;
    EXPECT_TRUE(client->waits()) << line;
    return client;
  }

  Harness h;
};

TEST_F(StreamBlockingTest, EveryReaderGetsWhatIsNew) {
  h.Do("XADD s 1 a 1");
  const auto a = Waiting("XREAD BLOCK 0 STREAMS s $"), b = Waiting("XREAD BLOCK 0 STREAMS none s 0 1");
  auto c = h.Connect();
  h.Do(*c, "HELLO 3");
  EXPECT_EQ(h.Do(*c, "XREAD BLOCK 0 COUNT 1 STREAMS s 1"), "");
  h.Do("XADD s 2 a 2");
  EXPECT_EQ(h.Posted(*a), "[[\"s\" [[\"2-0\" [\"a\" \"2\"]]]]]");
  EXPECT_EQ(h.Posted(*b), "[[\"s\" [[\"2-0\" [\"a\" \"2\"]]]]]");
  EXPECT_EQ(h.Posted(*c), "{\"s\": [[\"2-0\" [\"a\" \"2\"]]]}");
  EXPECT_EQ(h.Do("XREAD BLOCK 0 STREAMS s 1"), "[[\"s\" [[\"2-0\" [\"a\" \"2\"]]]]]") << "what is there is told at once";
}

TEST_F(StreamBlockingTest, OfAKeyNamedTwiceTheFirstIdCounts) {
  const auto a = Waiting("XREAD BLOCK 0 STREAMS s s s 5 9 1");
  h.Do("XADD s 5 a 1");
  EXPECT_EQ(h.Posted(*a), "");
  h.Do("XADD s 6 a 1");
  EXPECT_EQ(h.Posted(*a), "[[\"s\" [[\"6-0\" [\"a\" \"1\"]]]]]");
}

TEST_F(StreamBlockingTest, WhatIsGoneAgainEndsNoWait) {
  const auto a = Waiting("XREAD BLOCK 0 STREAMS s $");
  for (const char* line : {"MULTI", "XADD s 1 a 1", "DEL s", "EXEC"}) h.Do(line);
  for (const char* line : {"MULTI", "XADD s 1 a 1", "DEL s", "SET s text", "EXEC"}) h.Do(line);
  for (const char* line : {"MULTI", "DEL s", "XADD s 1 a 1", "XDEL s 1", "EXEC"}) h.Do(line);
  h.Do("XGROUP CREATE s g 0");
  EXPECT_EQ(h.Posted(*a), "");
  for (const char* line : {"MULTI", "XADD s 2 a 1", "XADD s 3 a 1", "EXEC"}) h.Do(line);
  EXPECT_EQ(h.Posted(*a), "[[\"s\" [[\"2-0\" [\"a\" \"1\"]] [\"3-0\" [\"a\" \"1\"]]]]]");
}

TEST_F(StreamBlockingTest, ConsumersTakeTurnsAndTheLogHearsOfEach) {
  h.Do("XGROUP CREATE s g $ MKSTREAM");
  h.Do("XGROUP CREATE s other $");
  const auto a = Waiting("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >"), b = Waiting("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >"),
             c = Waiting("XREADGROUP GROUP other cy BLOCK 0 NOACK STREAMS s >");
  h.NewEffects();
  h.Do("XADD s 1 a 1");
  EXPECT_EQ(h.Posted(*a), "[[\"s\" [[\"1-0\" [\"a\" \"1\"]]]]]");
  EXPECT_EQ(h.Posted(*b), "");
  EXPECT_EQ(h.Posted(*c), "[[\"s\" [[\"1-0\" [\"a\" \"1\"]]]]]");
  size_t claims = 0, read = 0;
  for (const std::string& effect : h.NewEffects()) {
    claims += absl::StrContains(effect, "XCLAIM") ? 1 : 0;
    read += absl::StrContains(effect, "ENTRIESREAD") ? 1 : 0;
  }
  EXPECT_EQ(claims, 1u);
  EXPECT_EQ(read, 2u);
  EXPECT_EQ(h.Do("XPENDING s g"), "[1 \"1-0\" \"1-0\" [[\"ann\" \"1\"]]]");
  h.Do("XADD s 2 a 2");
  EXPECT_EQ(h.Posted(*b), "[[\"s\" [[\"2-0\" [\"a\" \"2\"]]]]]");
}

TEST_F(StreamBlockingTest, WhatIsPendingIsToldAtOnce) {
  h.Do("XGROUP CREATE s g $ MKSTREAM");
  EXPECT_EQ(h.Do("XREADGROUP GROUP g ann BLOCK 0 STREAMS s 0"), "[[\"s\" []]]");
}

TEST_F(StreamBlockingTest, AConsumerDoesNotWaitForAGroupThatIsGone) {
  const auto wait = [&] {
    h.Do("DEL s");
    h.Do("XGROUP CREATE s g $ MKSTREAM");
    return Waiting("XREADGROUP GROUP g ann BLOCK 0 STREAMS s >");
  };
  auto client = wait();
  h.Do("XGROUP DESTROY s g");
  EXPECT_THAT(h.Posted(*client), HasSubstr("-NOGROUP the consumer group this client was blocked on no longer exists"));
  EXPECT_THAT(h.Do("INFO errorstats"), HasSubstr("errorstat_NOGROUP:count=1"));
  EXPECT_THAT(h.Do("INFO commandstats"), ::testing::ContainsRegex("cmdstat_xreadgroup:calls=1,.*failed_calls=1"));
  for (const char* line : {"DEL s", "SET s text", "FLUSHALL", "EXPIRE s 0", "RENAME s t"}) {
    client = wait();
    h.Do(line);
    EXPECT_THAT(h.Posted(*client), HasSubstr("-UNBLOCKED the stream key no longer exists")) << line;
  }
  client = wait();
  h.Do("DEL t");  // the one of above, which has the group
  h.Do("XADD t 1 a 1");
  h.Do("RENAME t s");
  EXPECT_THAT(h.Posted(*client), HasSubstr("-NOGROUP"));
  client = wait();
  h.Do("XGROUP CREATE t g $ MKSTREAM");
  h.Do("XADD t 1 a 1");
  h.Do("RENAME t s");
  EXPECT_EQ(h.Posted(*client), "[[\"s\" [[\"1-0\" [\"a\" \"1\"]]]]]");
}

TEST_F(StreamBlockingTest, InsideATransactionNobodyWaits) {
  for (const char* line : {"MULTI", "XREAD BLOCK 0 STREAMS s 0"}) h.Do(line);
  EXPECT_EQ(h.Do("EXEC"), "[nil]");
  EXPECT_THAT(h.Do("XREAD BLOCK -1 STREAMS s 0"), HasSubstr("ERR timeout is negative"));
  EXPECT_THAT(h.Do("XREAD BLOCK x STREAMS s 0"), HasSubstr("ERR timeout is not an integer or out of range"));
}

TEST_F(StreamBlockingTest, UnblockedByHandAReaderGetsNothing) {
  const auto a = Waiting("XREAD BLOCK 0 STREAMS s 0");
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + std::to_string(a->peer->info().id)), "1");
  EXPECT_EQ(h.Posted(*a), "nil");
  h.Do("XADD s 1 a 1");
  EXPECT_EQ(h.Posted(*a), "");
}

}  // namespace
}  // namespace idemd::testing
