// Callers who wait at lists: who is served, when, with what, and how a wait ends otherwise.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

class BlockingTest : public ::testing::Test {
 protected:
  // A client that waits from now on.
  std::unique_ptr<TestClient> Waiting(absl::string_view line) {
    std::unique_ptr<TestClient> client = h.Connect();
    EXPECT_EQ(h.Do(*client, line), "") << line;
    EXPECT_TRUE(client->waits()) << line;
    EXPECT_TRUE(client->peer->info().blocked.load());
    EXPECT_EQ(h.Posted(*client), "");
    return client;
  }
  std::string Id(const TestClient& client) { return std::to_string(client.peer->info().id); }

  Harness h;
};

TEST_F(BlockingTest, WhatIsThereIsTakenAtOnce) {
  h.Do("RPUSH k a b c d");
  EXPECT_EQ(h.Do("BLPOP none k 1"), "[\"k\" \"a\"]");
  EXPECT_EQ(h.Do("BRPOP k 0"), "[\"k\" \"d\"]");
  EXPECT_EQ(h.Do("BLMPOP 0 2 none k LEFT COUNT 5"), "[\"k\" [\"b\" \"c\"]]");
  EXPECT_EQ(h.Do("EXISTS k"), "0");
}

TEST_F(BlockingTest, WhoWaitedLongestIsServedFirst) {
  const auto a = Waiting("BLPOP k 0"), b = Waiting("BRPOP k 0"), c = Waiting("BLMPOP 0 1 k LEFT COUNT 9");
  EXPECT_EQ(h.Do("RPUSH k 1"), "1");
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
  EXPECT_FALSE(a->waits());
  EXPECT_FALSE(a->peer->info().blocked.load());
  EXPECT_EQ(h.Posted(*b), "");
  EXPECT_EQ(h.Do("RPUSH k 2 3 4 5"), "4");
  EXPECT_EQ(h.Posted(*b), "[\"k\" \"5\"]");
  EXPECT_EQ(h.Posted(*c), "[\"k\" [\"2\" \"3\" \"4\"]]");
  EXPECT_EQ(h.Do("LLEN k"), "0");
}

TEST_F(BlockingTest, AServedCallerIsInNoLineAnyMore) {
  const auto a = Waiting("BLPOP j k k 0");
  h.Do("RPUSH k 1");
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
  h.Do("RPUSH j 2");
  EXPECT_EQ(h.Posted(*a), "");
  EXPECT_EQ(h.Do("LLEN j"), "1");
}

TEST_F(BlockingTest, OfSeveralKeysTheOneThatWasFilledFirstIsTaken) {
  const auto a = Waiting("BLPOP j k 0");
  h.Do("MULTI");
  h.Do("RPUSH k 1");
  h.Do("RPUSH j 2");
  h.Do("EXEC");
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
  EXPECT_EQ(h.Do("LRANGE j 0 -1"), "[\"2\"]");
}

TEST_F(BlockingTest, OnlyWhatATransactionLeavesBehindCounts) {
  const auto a = Waiting("BLPOP k 0");
  for (const char* line : {"MULTI", "LPUSH k a", "DEL k", "EXEC"}) h.Do(line);
  for (const char* line : {"MULTI", "LPUSH k a", "DEL k", "SET k foo", "EXEC"}) h.Do(line);
  EXPECT_EQ(h.Posted(*a), "");
  h.Do("DEL k");
  for (const char* line : {"MULTI", "LPUSH k a", "LPUSH k b", "EXEC"}) h.Do(line);
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"b\"]");
}

TEST_F(BlockingTest, MovesMakeFurtherKeysReady) {
  const auto a = Waiting("BLMOVE one two RIGHT LEFT 0"), b = Waiting("BRPOPLPUSH two three 0"), c = Waiting("BLPOP three 0");
  EXPECT_EQ(h.Do("RPUSH one x"), "1");
  EXPECT_EQ(h.Posted(*a), "\"x\"");
  EXPECT_EQ(h.Posted(*b), "\"x\"");
  EXPECT_EQ(h.Posted(*c), "[\"three\" \"x\"]");
  EXPECT_EQ(h.Do("EXISTS one two three"), "0");
}

TEST_F(BlockingTest, MovesInACircleEnd) {
  const auto a = Waiting("BRPOPLPUSH one two 0"), b = Waiting("BRPOPLPUSH two one 0"), c = Waiting("BLMOVE two two LEFT LEFT 0");
  h.Do("RPUSH one x");
  EXPECT_EQ(h.Posted(*a) + h.Posted(*b), "\"x\"\"x\"");
  EXPECT_EQ(h.Posted(*c), "");
  EXPECT_EQ(h.Do("LRANGE one 0 -1"), "[\"x\"]");
}

TEST_F(BlockingTest, AMoveThatCannotBeIsAnErrorAndTheNextOneIsServed) {
  h.Do("SET wrong x");
  const auto a = Waiting("BLMOVE k wrong LEFT LEFT 0"), b = Waiting("BLMOVE k right LEFT LEFT 0");
  h.Do("RPUSH k 1");
  EXPECT_EQ(h.Posted(*a), "-WRONGTYPE Operation against a key holding the wrong kind of value");
  EXPECT_EQ(h.Posted(*b), "\"1\"");
  EXPECT_EQ(h.Do("BLMOVE right wrong LEFT LEFT 0"), "-WRONGTYPE Operation against a key holding the wrong kind of value");
}

TEST_F(BlockingTest, KeysMadeByOtherCommandsAreServed) {
  const auto a = Waiting("BLPOP k 0");
  h.Do("RPUSH j 1 2 3 4");
  h.Do("RENAME j k");
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
  const auto b = Waiting("BLPOP j 0");
  h.Do("COPY k j");
  EXPECT_EQ(h.Posted(*b), "[\"j\" \"2\"]");
  h.Do("SELECT 3");
  h.Do("RPUSH m 7");
  h.Do("RPUSH s 8");
  h.Do("SELECT 0");
  const auto c = Waiting("BLPOP m 0"), d = Waiting("BLPOP s 0");
  h.Do("SELECT 3");
  h.Do("MOVE m 0");
  EXPECT_EQ(h.Posted(*c), "[\"m\" \"7\"]");
  EXPECT_EQ(h.Posted(*d), "");
  h.Do("SWAPDB 0 3");
  EXPECT_EQ(h.Posted(*d), "[\"s\" \"8\"]");
}

TEST_F(BlockingTest, TheTimeIsUp) {
  const auto a = Waiting("BLPOP k 0.5"), b = Waiting("BLMOVE k j LEFT LEFT 10");
  EXPECT_GT(a->session.give_up_at, std::chrono::steady_clock::now());
  EXPECT_LT(a->session.give_up_at, std::chrono::steady_clock::now() + std::chrono::milliseconds(501));
  h.dispatcher.WaitIsOver(a->session);
  EXPECT_EQ(h.Posted(*a), "nil");
  EXPECT_FALSE(a->waits());
  EXPECT_EQ(a->session.give_up_at, std::chrono::steady_clock::time_point());
  h.dispatcher.WaitIsOver(b->session);
  EXPECT_EQ(h.Posted(*b), "nil");
  EXPECT_EQ(h.Do("RPUSH k 1"), "1");
  EXPECT_EQ(h.Do("LLEN k"), "1");
  const auto c = Waiting("BLPOP other 0");
  EXPECT_EQ(c->session.give_up_at, std::chrono::steady_clock::time_point());
}

// The reply is on its way to the connection's thread when the timer rings there.
TEST_F(BlockingTest, ATimeThatIsUpTooLateChangesNothing) {
  const auto a = Waiting("BLPOP k 1");
  h.Do("RPUSH k 1 2");
  h.dispatcher.WaitIsOver(a->session);
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
  EXPECT_EQ(h.Do("LRANGE k 0 -1"), "[\"2\"]");
}

TEST_F(BlockingTest, UnblockEndsTheWait) {
  const auto a = Waiting("BLPOP k 0"), b = Waiting("BLPOP k 0");
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + Id(*a)), "1");
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + Id(*a)), "0");
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + Id(*b) + " ERROR"), "1");
  h.Do("RPUSH k 1");
  EXPECT_EQ(h.Posted(*a), "nil");
  EXPECT_EQ(h.Posted(*b), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
  EXPECT_EQ(h.Do("LLEN k"), "1");
}

TEST_F(BlockingTest, UnblockInsideATransactionThatHoldsTheLocks) {
  const auto a = Waiting("BLPOP k 0");
  for (const std::string& line : {std::string("MULTI"), std::string("RPUSH k 1"), "CLIENT UNBLOCK " + Id(*a)}) h.Do(line);
  EXPECT_EQ(h.Do("EXEC"), "[1 1]");
  EXPECT_EQ(h.Posted(*a), "nil");
  EXPECT_EQ(h.Do("LLEN k"), "1");
}

TEST_F(BlockingTest, WhoIsGoneGetsNothing) {
  const auto a = Waiting("BLPOP j k 0"), b = Waiting("BLPOP k 0");
  h.dispatcher.Closed(a->session);
  EXPECT_EQ(h.Do("CLIENT KILL ID " + Id(*b)), "1");
  h.Do("RPUSH k 1");
  EXPECT_EQ(h.Posted(*a) + h.Posted(*b), "");
  EXPECT_EQ(h.Do("LLEN k"), "1");
}

TEST_F(BlockingTest, AnotherTypeLeavesCallersWaiting) {
  const auto a = Waiting("BLPOP k 0");
  h.Do("SET k x");
  EXPECT_EQ(h.Do("BLPOP k 0"), "-WRONGTYPE Operation against a key holding the wrong kind of value");
  h.Do("DEL k");
  EXPECT_EQ(h.Posted(*a), "");
  h.Do("RPUSH k 1");
  EXPECT_EQ(h.Posted(*a), "[\"k\" \"1\"]");
}

TEST_F(BlockingTest, InsideATransactionNobodyWaits) {
  h.Do("MULTI");
  for (const char* line : {"BLPOP k 0", "BLMOVE k j LEFT LEFT 0", "BRPOPLPUSH k j 0", "BLMPOP 0 1 k LEFT"}) h.Do(line);
  EXPECT_EQ(h.Do("EXEC"), "[nil nil nil nil]");
  EXPECT_FALSE(h.me->waits());
}

TEST_F(BlockingTest, ServedCallersAreInTheLogBehindThePush) {
  const auto a = Waiting("BLMOVE k j LEFT RIGHT 0");
  h.NewEffects();
  h.Do("RPUSH k 1 2");
  const std::vector<std::string> effects = h.NewEffects();
  ASSERT_EQ(effects.size(), 3u);
  EXPECT_NE(effects[0].find("RPUSH"), std::string::npos) << effects[0];
  EXPECT_NE(effects[1].find("LPOP"), std::string::npos) << effects[1];
  EXPECT_NE(effects[2].find("RPUSH"), std::string::npos) << effects[2];
  h.Posted(*a);
  EXPECT_GT(a->session.need, storage::kNoLsn);
}

TEST_F(BlockingTest, AServedMoveTripsAWatch) {
  const auto a = Waiting("BRPOPLPUSH k j 0");
  h.Do("WATCH j");
  h.Do("MULTI");
  h.Do("PING");
  const std::unique_ptr<TestClient> other = h.Connect();
  h.Do(*other, "LPUSH k 1");
  EXPECT_EQ(h.Do("EXEC"), "nil");
}

TEST_F(BlockingTest, RepliesAreInTheProtocolOfTheOneWhoWaits) {
  std::unique_ptr<TestClient> a = h.Connect();
  h.Do(*a, "HELLO 3");
  h.Do(*a, "BLPOP k 0");
  h.dispatcher.WaitIsOver(a->session);
  std::string out;
  for (auto& done : std::exchange(a->peer->posted, {})) done(a->session, out);
  EXPECT_EQ(out, "_\r\n");
}

TEST_F(BlockingTest, TimesAreReadAsRedisReadsThem) {
  EXPECT_EQ(h.Do("BLPOP k -1"), "-ERR timeout is negative");
  EXPECT_EQ(h.Do("BLPOP k x"), "-ERR timeout is not a float or out of range");
  EXPECT_EQ(h.Do("BLPOP k 1e300"), "-ERR timeout is negative");
  const auto a = Waiting("BLPOP k 9000000000000000");
  EXPECT_GT(a->session.give_up_at, std::chrono::steady_clock::now() + std::chrono::hours(24 * 365));
}

}  // namespace
}  // namespace idemd::testing
