// MIGRATE without a network: what is sent, and what becomes of the keys when the answer has come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "server/commands/outbound.h"
#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Another server, that answers when the test says so.
class HeldOutbound final : public server::Outbound {
 public:
  void Begin(server::Conversation what, std::function<void(const server::ConversationResult&)> done) override {
    conversation = std::move(what);
    done_ = std::move(done);
  }
  void Answer(std::vector<std::string> lines, server::LinkFailure failure = server::LinkFailure::kNone) {
    std::exchange(done_, nullptr)({failure, std::move(lines)});
  }
  bool begun() const { return done_ != nullptr; }

  server::Conversation conversation;

 private:
  std::function<void(const server::ConversationResult&)> done_;
};

class MigrateTest : public ::testing::Test {
 protected:
  MigrateTest() { h.services.outbound = &other; }
  Harness h;
  HeldOutbound other;
};

TEST_F(MigrateTest, AKeyGoesWhenTheOtherServerHasIt) {
  h.Do("SET k v PX 5000");
  EXPECT_EQ(h.Do("MIGRATE there 7000 k 3 250 REPLACE"), "");
  EXPECT_TRUE(h.me->waits());
  EXPECT_EQ(other.conversation.host, "there");
  EXPECT_EQ(other.conversation.port, 7000);
  EXPECT_EQ(other.conversation.timeout_ms, 250);
  EXPECT_EQ(other.conversation.replies, 2u);
  EXPECT_THAT(other.conversation.requests,
              StartsWith("*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n*5\r\n$7\r\nRESTORE\r\n$1\r\nk\r\n$4\r\n5000\r\n"));
  const auto reader = h.Connect();
  EXPECT_EQ(h.Do(*reader, "GET k"), "\"v\"") << "others are served meanwhile";
  h.NewEffects();
  other.Answer({"+OK", "+OK"});
  EXPECT_EQ(h.Posted(*h.me), "OK");
  EXPECT_EQ(h.Do("EXISTS k"), "0");
  EXPECT_EQ(h.NewEffects().size(), 1u);
}

TEST_F(MigrateTest, AKeyThatChangedMeanwhileStays) {
  h.Do("SET k v");
  h.Do("MIGRATE there 7000 k 0 250");
  const auto writer = h.Connect();
  h.Do(*writer, "SET k w");
  other.Answer({"+OK", "+OK"});
  EXPECT_THAT(h.Posted(*h.me), StartsWith("-ERR 1 of 1 keys changed"));
  EXPECT_EQ(h.Do("GET k"), "\"w\"");
}

TEST_F(MigrateTest, AStreamWhoseGroupsReadMeanwhileStays) {
  h.Do("XADD s 1-1 f v");
  h.Do("XGROUP CREATE s g 0");
  h.Do("MIGRATE there 7000 s 0 250");
  const auto reader = h.Connect();
  h.Do(*reader, "XREADGROUP GROUP g c STREAMS s >");
  other.Answer({"+OK", "+OK"});
  EXPECT_THAT(h.Posted(*h.me), HasSubstr("changed"));
  EXPECT_EQ(h.Do("EXISTS s"), "1");
}

TEST_F(MigrateTest, AKeyThatIsRefusedStaysAndTheOthersGo) {
  h.Do("MSET a 1 b 2 c 3");
  h.Do("MIGRATE there 7000 \"\" 0 250 KEYS a b none c");
  EXPECT_EQ(other.conversation.replies, 4u);
  other.Answer({"+OK", "+OK", "-BUSYKEY Target key name already exists.", "+OK"});
  EXPECT_EQ(h.Posted(*h.me), "-ERR Target instance replied with error: BUSYKEY Target key name already exists.");
  EXPECT_EQ(h.Do("EXISTS a"), "0");
  EXPECT_EQ(h.Do("EXISTS b"), "1");
  EXPECT_EQ(h.Do("EXISTS c"), "0");
}

TEST_F(MigrateTest, WhatHadArrivedBeforeTheLinkBrokeIsGone) {
  h.Do("MSET a 1 b 2");
  h.Do("MIGRATE there 7000 \"\" 0 250 KEYS a b");
  other.Answer({"+OK", "+OK"}, server::LinkFailure::kReading);
  EXPECT_EQ(h.Posted(*h.me), "-IOERR error or timeout reading to target instance");
  EXPECT_EQ(h.Do("EXISTS a"), "0");
  EXPECT_EQ(h.Do("EXISTS b"), "1");
}

TEST_F(MigrateTest, WithoutALoginNoOkCounts) {
  h.Do("SET a 1");
  h.Do("MIGRATE there 7000 a 0 250 AUTH2 me secret");
  EXPECT_THAT(other.conversation.requests, StartsWith("*3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$6\r\nsecret\r\n"));
  other.Answer({"-WRONGPASS no", "+OK", "+OK"});
  EXPECT_EQ(h.Posted(*h.me), "-ERR Target instance replied with error: WRONGPASS no");
  EXPECT_EQ(h.Do("EXISTS a"), "1");
}

TEST_F(MigrateTest, CopyKeepsTheKey) {
  h.Do("SET a 1");
  h.Do("MIGRATE there 7000 a 0 250 COPY");
  other.Answer({"+OK", "+OK"});
  EXPECT_EQ(h.Posted(*h.me), "OK");
  EXPECT_EQ(h.Do("EXISTS a"), "1");
}

TEST_F(MigrateTest, NothingIsSentForKeysThatAreNotThereOrFromATransaction) {
  EXPECT_EQ(h.Do("MIGRATE there 7000 none 0 250"), "NOKEY");
  h.Do("SET a 1");
  h.Do("MULTI");
  h.Do("MIGRATE there 7000 a 0 250");
  EXPECT_THAT(h.Do("EXEC"), HasSubstr("not allowed inside of a transaction"));
  EXPECT_FALSE(other.begun());
}

}  // namespace
}  // namespace idemd::testing
