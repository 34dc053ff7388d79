// SUBSCRIBE, PUBLISH and their kin as one connection sees them, and keyspace events as messages.
#include "server/pubsub/pubsub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "server/pubsub/event_router.h"
#include "tests/support/harness.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class PubSubTest : public ::testing::Test, protected idemd::testing::Harness {
 protected:
  PubSubTest() { store.SetEventSink(&events_); }
  ~PubSubTest() override { dispatcher.Closed(me->session); }
  using Client = idemd::testing::TestClient;
  // What was sent to the client since the last call.
  std::string Sent(Client& client) { return idemd::testing::Readable(std::exchange(client.peer->sent, {})); }
  std::unique_ptr<Client, std::function<void(Client*)>> Another() {
    return {Connect().release(), [this](Client* client) {
              dispatcher.Closed(client->session);
              delete client;
            }};
  }

  EventRouter events_{*services.pubsub, *services.tracking,
                      [this](storage::EventClasses classes) { store.WantEvents(classes); }};
};

TEST_F(PubSubTest, SubscribeConfirmsEachChannelAndMessagesArrive) {
  const auto other = Another();
  EXPECT_EQ(Do(*other, "SUBSCRIBE a b a"), "[\"subscribe\" \"a\" 1] [\"subscribe\" \"b\" 2] [\"subscribe\" \"a\" 2]");
  EXPECT_EQ(Do(*other, "PSUBSCRIBE a*"), "[\"psubscribe\" \"a*\" 3]");
  EXPECT_EQ(Do(*other, "SSUBSCRIBE a"), "[\"ssubscribe\" \"a\" 1]");
  EXPECT_EQ(Do("PUBLISH a x"), "2");
  EXPECT_EQ(Do("SPUBLISH a y"), "1");
  EXPECT_EQ(Sent(*other), "[\"message\" \"a\" \"x\"] [\"pmessage\" \"a*\" \"a\" \"x\"] [\"smessage\" \"a\" \"y\"]");
  EXPECT_EQ(Do("PUBSUB NUMSUB a b c"), "[\"a\" 1 \"b\" 1 \"c\" 0]");
  EXPECT_EQ(Do("PUBSUB SHARDNUMSUB a"), "[\"a\" 1]");
  EXPECT_EQ(Do("PUBSUB NUMPAT"), "1");
  EXPECT_EQ(Do("PUBSUB CHANNELS b*"), "[\"b\"]");
  EXPECT_EQ(Do("PUBSUB SHARDCHANNELS"), "[\"a\"]");
  EXPECT_EQ(Do(*other, "UNSUBSCRIBE"), "[\"unsubscribe\" \"a\" 2] [\"unsubscribe\" \"b\" 1]");
  EXPECT_EQ(Do(*other, "PUNSUBSCRIBE zzz a*"), "[\"punsubscribe\" \"zzz\" 1] [\"punsubscribe\" \"a*\" 0]");
  EXPECT_EQ(Do(*other, "SUNSUBSCRIBE"), "[\"sunsubscribe\" \"a\" 0]");
  EXPECT_EQ(Do(*other, "SUNSUBSCRIBE"), "[\"sunsubscribe\" nil 0]");
  EXPECT_EQ(Do("PUBLISH a x"), "0");
}

TEST_F(PubSubTest, InResp2OnlyAFewCommandsAreAllowedWhileSubscribed) {
  Do("SUBSCRIBE a");
  EXPECT_EQ(Do("GET k"),
            "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
            "context");
  EXPECT_THAT(Do("CLIENT ID"), StartsWith("-ERR Can't execute 'client|id': only"));
  EXPECT_EQ(Do("PING"), "[\"pong\" \"\"]");
  EXPECT_EQ(Do("PING hi"), "[\"pong\" \"hi\"]");
  EXPECT_EQ(Do("UNSUBSCRIBE"), "[\"unsubscribe\" \"a\" 0]");
  EXPECT_EQ(Do("PING hi"), "\"hi\"");
  EXPECT_EQ(Do("GET k"), "nil");
  for (const char* line : {"SSUBSCRIBE s", "PSUBSCRIBE p"}) {
    Do(line);
    EXPECT_THAT(Do("GET k"), StartsWith("-ERR Can't execute")) << line;
    EXPECT_EQ(Do("RESET"), "RESET");
    EXPECT_EQ(Do("GET k"), "nil");
  }
  EXPECT_TRUE(services.pubsub->idle());
}

TEST_F(PubSubTest, InResp3EverythingIsAllowedAndOwnMessagesComeBeforeTheReply) {
  Do("HELLO 3");
  Do("SUBSCRIBE a");
  EXPECT_EQ(Do("GET k"), "nil");
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_EQ(Do("PUBLISH a x"), "[\"message\" \"a\" \"x\"] 1");
}

TEST_F(PubSubTest, InATransactionMessagesLeaveAfterItWithWhatItWrote) {
  const auto other = Another();
  Do(*other, "SUBSCRIBE a");
  Do("HELLO 3");
  Do("SUBSCRIBE a");
  Do("MULTI");
  Do("PUBLISH a one");
  Do("SET k 1");
  Do("PUBLISH a two");
  EXPECT_EQ(Sent(*other), "");
  EXPECT_EQ(Do("EXEC"), "[2 OK 2] [\"message\" \"a\" \"one\"] [\"message\" \"a\" \"two\"]");
  EXPECT_EQ(Sent(*other), "[\"message\" \"a\" \"one\"] [\"message\" \"a\" \"two\"]");
}

TEST_F(PubSubTest, SubscribingInATransactionWorks) {
  Do("MULTI");
  Do("SUBSCRIBE a b");
  Do("PING");
  EXPECT_EQ(Do("EXEC"), "[[\"subscribe\" \"a\" 1] [\"subscribe\" \"b\" 2]] [\"pong\" \"\"]");
}

TEST_F(PubSubTest, ClientReplyDoesNotSilenceWhatIsNoReply) {
  Do("HELLO 3");
  EXPECT_EQ(Do("CLIENT REPLY OFF"), "");
  EXPECT_EQ(Do("SUBSCRIBE a"), "[\"subscribe\" \"a\" 1]");
  EXPECT_EQ(Do("PUBLISH a x"), "[\"message\" \"a\" \"x\"]");
  EXPECT_EQ(Do("UNSUBSCRIBE"), "[\"unsubscribe\" \"a\" 0]");
  EXPECT_EQ(Do("SUBSCRIBE"), "");  // an error
  EXPECT_EQ(Do("CLIENT REPLY ON"), "OK");
  EXPECT_EQ(Do("CLIENT REPLY SKIP"), "");
  EXPECT_EQ(Do("SUBSCRIBE a"), "[\"subscribe\" \"a\" 1]");
  EXPECT_EQ(Do("PING"), "PONG");
}

TEST_F(PubSubTest, ClientListShowsSubscriptions) {
  const auto other = Another();
  Do(*other, "SUBSCRIBE a b");
  Do(*other, "PSUBSCRIBE c");
  Do(*other, "SSUBSCRIBE d");
  EXPECT_THAT(Do("CLIENT LIST TYPE pubsub"), HasSubstr("flags=P db=0 sub=2 psub=1 ssub=1 "));
  EXPECT_THAT(Do("CLIENT LIST TYPE normal"), HasSubstr("flags=N db=0 sub=0 psub=0 ssub=0 "));
  EXPECT_THAT(Do("INFO stats"), HasSubstr("pubsub_channels:2\r\npubsub_patterns:1\r\npubsubshard_channels:1\r\n"));
  EXPECT_EQ(Do("CLIENT KILL TYPE pubsub"), "1");
  EXPECT_TRUE(other->peer->killed);
}

TEST_F(PubSubTest, KeyspaceEventsAreMessages) {
  const auto other = Another();
  events_.SetKeyspaceEvents(~storage::EventClasses{0});
  Do("SET before 1");
  Do(*other, "PSUBSCRIBE __key*");
  Do("SELECT 3");
  Do("SETNX a 1");
  EXPECT_EQ(Sent(*other),
            "[\"pmessage\" \"__key*\" \"__keyspace@3__:a\" \"new\"] [\"pmessage\" \"__key*\" \"__keyevent@3__:new\" \"a\"] "
            "[\"pmessage\" \"__key*\" \"__keyspace@3__:a\" \"set\"] [\"pmessage\" \"__key*\" \"__keyevent@3__:set\" \"a\"]");
  events_.SetKeyspaceEvents(storage::Bit(storage::EventClass::kKeyevent) | storage::Bit(storage::EventClass::kGeneric));
  Do("SET a 2");
  Do("DEL a");
  EXPECT_EQ(Sent(*other), "[\"pmessage\" \"__key*\" \"__keyevent@3__:del\" \"a\"]");
  events_.SetKeyspaceEvents(storage::Bit(storage::EventClass::kGeneric));  // neither kind of channel
  EXPECT_FALSE(store.WantsEvent(storage::EventClass::kGeneric));
}

TEST_F(PubSubTest, WhatIsToldOfAWriteNeedsTheWrite) {
  const auto other = Another();
  Do(*other, "SUBSCRIBE c __keyevent@0__:set __keyevent@0__:expired");
  events_.SetKeyspaceEvents(~storage::EventClasses{0});
  Do("SET a 1");
  EXPECT_EQ(other->peer->need, log.released());
  Do("MULTI");
  Do("PUBLISH c x");
  Do("SET a 2 PX 10");
  Do("EXEC");
  EXPECT_EQ(other->peer->need, log.released());
  Do("DEL b");
  Do("SET b 1");
  Sent(*other);
  Do("PUBLISH c what-was-done-before-is-safe");
  EXPECT_EQ(Sent(*other), "[\"message\" \"c\" \"what-was-done-before-is-safe\"]");
  EXPECT_EQ(other->peer->need, me->session.need);
  EXPECT_EQ(other->peer->need, log.released());
  Pass(100);
  EXPECT_EQ(Sent(*other), "[\"message\" \"__keyevent@0__:expired\" \"a\"]");
  EXPECT_EQ(other->peer->need, log.released());
}

TEST_F(PubSubTest, NothingIsToldWhileNobodyListens) {
  events_.SetKeyspaceEvents(~storage::EventClasses{0});
  EXPECT_FALSE(store.WantsEvent(storage::EventClass::kString));
  Do("SUBSCRIBE a");
  EXPECT_TRUE(store.WantsEvent(storage::EventClass::kString));
  Do("RESET");
  EXPECT_FALSE(store.WantsEvent(storage::EventClass::kString));
}

}  // namespace
}  // namespace idemd::server
