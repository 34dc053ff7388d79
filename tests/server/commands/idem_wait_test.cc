// IDEM.RESERVE ... WAIT: who is served, when, with what, and how a wait ends otherwise.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using server::NativeCounter;

std::string Fence(int64_t nth) { return std::to_string(Harness::kFirstFence + nth - 1); }

// One caller at work at key "k" (fence 1), two who wait.
class IdemWait : public ::testing::Test {
 protected:
  IdemWait() {
    EXPECT_EQ(h.Do("IDEM.RESERVE k CLAIM me").substr(0, 11), "[\"RESERVED\"");
    EXPECT_EQ(h.Do(*a, "IDEM.RESERVE k CLAIM a WAIT 5000"), "");
    EXPECT_EQ(h.Do(*b, "IDEM.RESERVE k CLAIM b WAIT 9000"), "");
    EXPECT_TRUE(a->waits());
    EXPECT_TRUE(a->peer->info().blocked.load());
    EXPECT_EQ(h.Posted(*a), "");
  }

  Harness h;
  std::unique_ptr<TestClient> a = h.Connect();
  std::unique_ptr<TestClient> b = h.Connect();
};

TEST_F(IdemWait, CompleteAnswersAllWithTheSameBytes) {
  EXPECT_EQ(h.Do("IDEM.COMPLETE k " + Fence(1) + " answer CODE 5"), "OK");
  EXPECT_EQ(h.Posted(*a), "[\"DONE\" 0 1 86400000 5 \"answer\"]");
  EXPECT_EQ(h.Posted(*b), "[\"DONE\" 0 1 86400000 5 \"answer\"]");
  EXPECT_FALSE(a->waits());
  EXPECT_FALSE(a->peer->info().blocked.load());
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kWaits), 2u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kWaitsServed), 2u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kReplays), 2u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kPendingHits), 0u);
  EXPECT_EQ(h.store.waiters(), 0u);
}

TEST_F(IdemWait, ReleaseServesTheOneThatWaitedLongestAndNobodyOvertakes) {
  EXPECT_EQ(h.Do("IDEM.RELEASE k " + Fence(1)), "1");
  EXPECT_EQ(h.Posted(*a), "[\"RESERVED\" " + Fence(2) + " 1 30000 0 nil]");
  EXPECT_EQ(h.Posted(*b), "");
  EXPECT_EQ(h.Do("IDEM.RESERVE k"), "[\"PENDING\" 0 1 30000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.FAIL k " + Fence(2)), "OK");
  EXPECT_EQ(h.Posted(*b), "[\"RESERVED\" " + Fence(3) + " 2 30000 0 nil]");
}

TEST_F(IdemWait, ALapseServesTheFirst) {
  h.Do("IDEM.EXTEND k " + Fence(1) + " 100");
  h.Pass(99);
  EXPECT_EQ(h.Posted(*a), "");
  h.Pass(1);
  EXPECT_EQ(h.Posted(*a), "[\"RESERVED\" " + Fence(2) + " 2 30000 0 nil]");
  EXPECT_EQ(h.Posted(*b), "");
}

TEST_F(IdemWait, TheOwnClaimTakesOverForItsResend) {
  h.Do("IDEM.RELEASE k " + Fence(1));
  h.Posted(*a);
  EXPECT_EQ(h.Do("IDEM.RESERVE k CLAIM a"), "[\"HELD\" " + Fence(2) + " 1 30000 0 nil]");
}

TEST_F(IdemWait, PatienceEndsWithPending) {
  h.Pass(5'000);
  EXPECT_EQ(h.Posted(*a), "[\"PENDING\" 0 1 25000 0 nil]");
  EXPECT_FALSE(a->waits());
  EXPECT_TRUE(b->waits());
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kPendingHits), 1u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kWaitsServed), 0u);
}

TEST_F(IdemWait, DeleteOverwriteAndFlushAreChanges) {
  h.Do("SET k plain");
  EXPECT_EQ(h.Posted(*a), "");
  h.Do("DEL k");
  EXPECT_EQ(h.Posted(*a), "[\"RESERVED\" " + Fence(2) + " 1 30000 0 nil]");
  h.Do("FLUSHALL");
  EXPECT_EQ(h.Posted(*b), "[\"RESERVED\" " + Fence(3) + " 1 30000 0 nil]");
}

TEST_F(IdemWait, AnErrorEndsTheWaitToo) {
  h.Do("SET k idem/2");
  EXPECT_EQ(h.Posted(*a).substr(0, 5), "-ERR ");
  EXPECT_EQ(h.Posted(*b).substr(0, 5), "-ERR ");
}

TEST_F(IdemWait, UnblockWithTimeoutIsPending) {
  const std::string id = std::to_string(a->peer->info().id);
  h.Pass(1'000);
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + id), "1");
  EXPECT_EQ(h.Posted(*a), "[\"PENDING\" 0 1 29000 0 nil]");
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + id), "0");
  h.Do("IDEM.COMPLETE k " + Fence(1) + " r");
  EXPECT_EQ(h.Posted(*a), "");
  EXPECT_EQ(h.Posted(*b).substr(0, 7), "[\"DONE\"");
}

TEST_F(IdemWait, UnblockWithErrorSaysSo) {
  EXPECT_EQ(h.Do("CLIENT UNBLOCK " + std::to_string(b->peer->info().id) + " ERROR"), "1");
  EXPECT_EQ(h.Posted(*b), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
}

// The unit of the transaction holds the key's lock, which the answer must not want.
TEST_F(IdemWait, UnblockInsideATransactionThatChangesTheKey) {
  h.Do("MULTI");
  h.Do("DEL k");
  h.Do("SET k plain");
  h.Do("CLIENT UNBLOCK " + std::to_string(a->peer->info().id));
  EXPECT_EQ(h.Do("EXEC"), "[1 OK 1]");
  EXPECT_EQ(h.Posted(*a), "[\"PENDING\" 0 0 -1 0 nil]");
}

TEST_F(IdemWait, AConnectionThatGoesGivesItsPlaceUp) {
  h.dispatcher.Closed(a->session);
  h.Do("IDEM.RELEASE k " + Fence(1));
  EXPECT_EQ(h.Posted(*a), "");
  EXPECT_EQ(h.Posted(*b), "[\"RESERVED\" " + Fence(2) + " 1 30000 0 nil]");
}

TEST_F(IdemWait, NothingElseOfTheConnectionRunsMeanwhile) {
  protocol::Parser parser;
  protocol::Batch batch;
  const std::string requests = "PING\r\n";
  ASSERT_EQ(parser.Parse(requests, {}, 16, batch), protocol::ParseStatus::kNeedMore);
  std::string out;
  EXPECT_EQ(h.dispatcher.Run(a->session, batch, 0, SIZE_MAX, out), 0u);
  EXPECT_EQ(out, "");
}

TEST_F(IdemWait, WithoutPendingNobodyWaits) {
  EXPECT_EQ(h.Do("IDEM.RESERVE other WAIT 5000").substr(0, 11), "[\"RESERVED\"");
  EXPECT_EQ(h.Do("IDEM.RESERVE k CLAIM me WAIT 5000").substr(0, 7), "[\"HELD\"");
  EXPECT_EQ(h.Do("IDEM.RESERVE k WAIT 0").substr(0, 10), "[\"PENDING\"");
}

TEST_F(IdemWait, InsideATransactionNobodyWaits) {
  EXPECT_EQ(h.Do("MULTI"), "OK");
  h.Do("IDEM.RESERVE k WAIT 5000");
  EXPECT_EQ(h.Do("EXEC"), "[[\"PENDING\" 0 1 30000 0 nil]]");
  EXPECT_FALSE(h.me->waits());
}

TEST_F(IdemWait, PastTheLimitOfWaitersTheAnswerIsPendingAtOnce) {
  h.store.settings().max_waiters = 2;
  EXPECT_EQ(h.Do("IDEM.RESERVE k WAIT 5000"), "[\"PENDING\" 0 1 30000 0 nil]");
}

TEST_F(IdemWait, ATransactionsChangesAreOneChange) {
  h.Do("MULTI");
  h.Do("DEL k");
  h.Do("IDEM.RESERVE k CLAIM me");
  h.Do("EXEC");
  EXPECT_EQ(h.Posted(*a), "");
  EXPECT_EQ(h.Posted(*b), "");
}

TEST_F(IdemWait, WaitsOnALockAndOnAToken) {
  h.Do("SET lock x PX 700");
  std::unique_ptr<TestClient> c = h.Connect();
  EXPECT_EQ(h.Do(*c, "IDEM.RESERVE lock WAIT 5000"), "");
  h.Pass(700);
  EXPECT_EQ(h.Posted(*c), "[\"RESERVED\" " + Fence(2) + " 1 30000 0 nil]");
}

}  // namespace
}  // namespace idemd::testing
