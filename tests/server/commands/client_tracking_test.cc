// CLIENT TRACKING and CLIENT PAUSE as clients see them, from the command to the message.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/commands/pause.h"
#include "server/pubsub/event_router.h"
#include "server/steady_time.h"
#include "tests/support/harness.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class TrackingCommandsTest : public ::testing::Test, protected idemd::testing::Harness {
 protected:
  using Client = idemd::testing::TestClient;
  TrackingCommandsTest() {
    store.SetEventSink(&events_);
    services.pause->OnChange([this](bool paused) { store.SetFrozen(paused); });
    Do("HELLO 3");
  }
  ~TrackingCommandsTest() override {
    dispatcher.Closed(me->session);
    dispatcher.Closed(other_->session);
  }
  // What was sent to the first client since the last call.
  std::string Sent() { return idemd::testing::Readable(std::exchange(me->peer->sent, {})); }
  std::string Other(absl::string_view line) { return Do(*other_, line); }

  EventRouter events_{*services.pubsub, *services.tracking,
                      [this](storage::EventClasses classes) { store.WantEvents(classes); }};
  std::unique_ptr<Client> other_ = Connect();
};

TEST_F(TrackingCommandsTest, AReadIsRememberedUntilTheKeyChanges) {
  Do("CLIENT TRACKING ON");
  Other("SET k 1");
  EXPECT_EQ(Sent(), "");
  EXPECT_EQ(Do("GET k"), "\"1\"");
  Other("SET k 2");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"k\"]]");
  EXPECT_EQ(me->peer->need, log.released());  // told with the write that it tells of
  Other("SET k 3");
  EXPECT_EQ(Sent(), "");
  EXPECT_EQ(Do("GET k"), "\"3\"");
  EXPECT_EQ(Do("SET k 4"), "OK [\"invalidate\" [\"k\"]]");
  EXPECT_THAT(Do("INFO clients"), HasSubstr("tracking_clients:1\r\n"));
  EXPECT_EQ(Do("CLIENT TRACKING OFF"), "OK");
  EXPECT_FALSE(store.WantsEvent(storage::EventClass::kChanged));
}

TEST_F(TrackingCommandsTest, WhatExpiresChanges) {
  Do("CLIENT TRACKING ON");
  Other("SET k 1 PX 100");
  Other("SET l 1 PX 100");
  Do("MGET k l");
  clock.AdvanceMs(200);
  EXPECT_EQ(Other("GET k"), "nil");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"k\"]]");
  Pass(100);
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"l\"]]");
}

TEST_F(TrackingCommandsTest, ALifetimeThatStaysTheSameIsAChangeAllTheSame) {
  Do("CLIENT TRACKING ON");
  Other("SET k 1");
  Do("TTL k");
  Other("PEXPIREAT k 1800000000000");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"k\"]]");
  Do("TTL k");
  Other("PEXPIREAT k 1800000000000");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"k\"]]");
}

TEST_F(TrackingCommandsTest, ATransactionRemembersAndForgetsInItsOrder) {
  Do("CLIENT TRACKING ON");
  Do("MULTI");
  Do("INCR before");
  Do("GET before");
  Do("GET after");
  Do("INCR after");
  EXPECT_EQ(Do("EXEC"), "[1 \"1\" nil 1] [\"invalidate\" [\"after\"]]");
  Other("INCR after");
  Other("INCR before");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"before\"]]");
}

TEST_F(TrackingCommandsTest, NativeCommandsChangeKeysToo) {
  Do("CLIENT TRACKING ON");
  Do("IDEM.STATUS r");
  Other("IDEM.RESERVE r CLAIM c");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"r\"]]");
}

TEST_F(TrackingCommandsTest, CachingIsForTheNextCommandOrTheNextTransaction) {
  Do("CLIENT TRACKING ON OPTIN");
  Do("GET k");
  EXPECT_EQ(Do("CLIENT CACHING YES"), "OK");
  EXPECT_THAT(Do("CLIENT TRACKINGINFO"), HasSubstr("[\"on\" \"optin\" \"caching-yes\"]"));
  Do("GET l");
  Do("GET m");
  Other("MSET k 1 l 1 m 1");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"l\"]]");
  Do("CLIENT CACHING YES");
  Do("MULTI");
  Do("GET k");
  Do("GET m");
  Do("EXEC");
  Do("GET l");
  Other("MSET k 1 l 1 m 1");
  EXPECT_EQ(Sent(), "[\"invalidate\" [\"k\"]] [\"invalidate\" [\"m\"]]");
}

TEST_F(TrackingCommandsTest, ARedirectionToTheClientThatWritesArrivesBeforeItsReplyAsInRedis) {
  Do(*other_, "HELLO 3");
  Do(absl::StrCat("CLIENT TRACKING ON REDIRECT ", other_->session.info().id));
  Do("GET k");
  EXPECT_EQ(Other("SET k 1"), "[\"invalidate\" [\"k\"]] OK");
}

TEST_F(TrackingCommandsTest, ResetAndTheEndOfTheConnectionEndTracking) {
  Do("CLIENT TRACKING ON BCAST");
  EXPECT_THAT(Do("CLIENT LIST ID 1"), HasSubstr("flags=tB "));
  Do("RESET");
  EXPECT_THAT(Do("CLIENT LIST ID 1"), HasSubstr("flags=N "));
  EXPECT_EQ(services.tracking->clients(), 0u);
  Other("CLIENT TRACKING ON");
  EXPECT_EQ(services.tracking->clients(), 1u);
  dispatcher.Closed(other_->session);
  EXPECT_EQ(services.tracking->clients(), 0u);
}

TEST_F(TrackingCommandsTest, ThePausedWaitAndGoOnInTheirOrder) {
  EXPECT_EQ(Do("CLIENT PAUSE 1000 WRITE"), "OK");
  EXPECT_EQ(Do("GET k"), "nil");
  EXPECT_THAT(Do("SET k"), StartsWith("-ERR wrong number"));
  EXPECT_EQ(Waits(*other_, "SET k 1"), true);
  EXPECT_EQ(Waits(*other_, "PUBLISH c x"), true);
  EXPECT_EQ(Do(absl::StrCat("CLIENT UNBLOCK ", other_->session.info().id)), "0");
  EXPECT_EQ(Do("CLIENT UNPAUSE"), "OK");
  EXPECT_EQ(Posted(*other_), "");
  EXPECT_FALSE(other_->waits());
  EXPECT_EQ(Other("SET k 1"), "OK");
}

TEST_F(TrackingCommandsTest, APauseEndsWithItsTimeAndKeepsExpiredKeysUntilThen) {
  Other("SET k 1 PX 10");
  const int64_t begin_ms = SteadyMs();
  Do("CLIENT PAUSE 50000 WRITE");
  Pass(100);
  EXPECT_EQ(Do("GET k"), "nil");
  EXPECT_EQ(store.stats().Get(storage::StorageStats::kExpired), 0u);
  services.pause->Tick(begin_ms);
  EXPECT_TRUE(services.pause->on());
  services.pause->Tick(begin_ms + 60'000);
  EXPECT_FALSE(services.pause->on());
  Pass(100);
  EXPECT_EQ(store.stats().Get(storage::StorageStats::kExpired), 1u);
}

TEST_F(TrackingCommandsTest, APauseOnlyGetsLongerAndStricter) {
  const int64_t begin_ms = SteadyMs();
  Do("CLIENT PAUSE 50000 WRITE");
  services.pause->Begin(Pause::Mode::kAll, begin_ms + 10);
  services.pause->Begin(Pause::Mode::kWrite, begin_ms + 20);
  EXPECT_TRUE(services.pause->Holds(kReadonly));
  services.pause->Tick(begin_ms + 1'000);
  EXPECT_TRUE(services.pause->on());
  services.pause->End();
  EXPECT_FALSE(services.pause->Holds(kWrite));
}

// Counts what it is sent; from any thread.
class CountingPeer final : public Peer {
 public:
  void Send(std::shared_ptr<const std::string>, storage::Lsn, std::shared_ptr<const std::atomic<bool>>) override {
    sent.fetch_add(1);
  }
  void Kill() override {}
  void Resume(std::function<void(Session&, std::string&)>) override {}
  std::atomic<int> sent{0};
};

TEST_F(TrackingCommandsTest, NoChangeFallsBetweenAReadAndItsBeingRemembered) {
  constexpr int kWrites = 20'000;
  std::atomic<bool> written{false};
  std::thread writer([&] {
    Dispatcher own(services);
    const auto client = Connect();
    const std::string request = "*2\r\n$4\r\nINCR\r\n$1\r\nk\r\n";
    for (int i = 0; i < kWrites; ++i) {
      protocol::Parser parser;
      protocol::Batch batch;
      parser.Parse(request, protocol::ParserLimits(), 1, batch);
      std::string out;
      own.Run(client->session, batch, 0, SIZE_MAX, out);
    }
    written.store(true);
  });
  Session session;
  const auto peer = std::make_shared<CountingPeer>();
  peer->info().id = 1000;
  peer->info().resp = 3;
  session.peer = peer;
  session.resp = 3;
  services.tracking->Enable(session, {});
  Dispatcher own(services);
  const std::string request = "*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
  bool last = false;
  while (!last) {
    last = written.load();
    const int before = peer->sent.load();
    protocol::Parser parser;
    protocol::Batch batch;
    parser.Parse(request, protocol::ParserLimits(), 1, batch);
    std::string out;
    own.Run(session, batch, 0, SIZE_MAX, out);
    const std::string value = idemd::testing::Readable(out);
    while (!last && peer->sent.load() == before && !written.load()) std::this_thread::yield();
    // Not told of a change: there was none since.
    if (peer->sent.load() == before) {
      EXPECT_EQ(value, absl::StrCat("\"", kWrites, "\""));
      break;
    }
  }
  writer.join();
  own.Closed(session);
}

}  // namespace
}  // namespace idemd::server
