// Tracking: who is told of which key, once, and what the table remembers.
#include "server/pubsub/tracking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

using storage::Event;
using storage::EventClass;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Reader final : public Peer {
 public:
  void Send(std::shared_ptr<const std::string> bytes, storage::Lsn need,
            std::shared_ptr<const std::atomic<bool>>) override {
    storage::MutexLock lock(mutex_);
    sent_.push_back(absl::StrCat(*bytes, "@", need));
  }
  void Kill() override {}
  void Resume(std::function<void(Session&, std::string&)>) override {}
  std::vector<std::string> Take() {
    storage::MutexLock lock(mutex_);
    return std::exchange(sent_, {});
  }

 private:
  storage::Mutex mutex_;
  std::vector<std::string> sent_ ABSL_GUARDED_BY(mutex_);
};

struct Client {
  explicit Client(int resp = 3) {
    session.peer = peer;
    peer->info().resp = resp;
  }
  std::shared_ptr<Reader> peer = std::make_shared<Reader>();
  Session session;
};

std::string Push(const std::vector<std::string>& keys) {
  std::string bytes = absl::StrCat(">2\r\n$10\r\ninvalidate\r\n*", keys.size(), "\r\n");
  for (const std::string& key : keys) absl::StrAppend(&bytes, "$", key.size(), "\r\n", key, "\r\n");
  return bytes;
}

class TrackingTest : public ::testing::Test {
 protected:
  void Change(std::vector<std::string> keys, Session* from = nullptr, const char* why = "", storage::Lsn need = 5) {
    std::vector<Event> events;
    for (const std::string& key : keys) events.push_back({EventClass::kChanged, why, 0, key});
    tracking_.OnEvents(events, need, from);
  }
  void Read(Client& client, absl::string_view key) { tracking_.Remember(key, client.session.tracker); }

  Tracking tracking_;
  Client a_;
  Client b_;
};

TEST_F(TrackingTest, AReaderIsToldOnceWithTheNeedOfTheChange) {
  tracking_.Enable(a_.session, {});
  tracking_.Enable(b_.session, {});
  Read(a_, "k");
  Read(a_, "k");
  Read(b_, "k");
  EXPECT_EQ(tracking_.keys(), 1u);
  EXPECT_EQ(tracking_.items(), 2u);
  Change({"other", "k"});
  EXPECT_THAT(a_.peer->Take(), ElementsAre(Push({"k"}) + "@5"));
  EXPECT_THAT(b_.peer->Take(), ElementsAre(Push({"k"}) + "@5"));
  Change({"k"});
  EXPECT_THAT(a_.peer->Take(), IsEmpty());
  EXPECT_EQ(tracking_.keys() + tracking_.items(), 0u);
}

TEST_F(TrackingTest, WhoMadeTheChangeIsToldBehindItsReplyUnlessItAsksForNoLoop) {
  tracking_.Enable(a_.session, {});
  Read(a_, "k");
  Change({"k"}, &a_.session);
  EXPECT_EQ(a_.session.invalidations, Push({"k"}));
  EXPECT_THAT(a_.peer->Take(), IsEmpty());
  a_.session.invalidations.clear();
  tracking_.Enable(a_.session, {.no_loop = true});
  Read(a_, "k");
  Change({"k"}, &a_.session);
  EXPECT_EQ(a_.session.invalidations, "");
  Read(a_, "k");
  Change({"k"}, &b_.session);
  EXPECT_THAT(a_.peer->Take(), ElementsAre(Push({"k"}) + "@5"));
}

TEST_F(TrackingTest, WhoStoppedOrWentOverToBroadcastingIsNotToldOfWhatItReadBefore) {
  tracking_.Enable(a_.session, {});
  Read(a_, "k");
  Read(a_, "l");
  tracking_.Disable(a_.session);
  EXPECT_EQ(tracking_.clients(), 0u);
  Change({"k"});
  tracking_.Enable(a_.session, {.broadcast = true, .prefixes = {"x"}});
  Change({"l"});
  EXPECT_THAT(a_.peer->Take(), IsEmpty());
}

TEST_F(TrackingTest, AFlushTellsEverybodyAndForgetsAll) {
  tracking_.Enable(a_.session, {});
  tracking_.Enable(b_.session, {.broadcast = true, .prefixes = {"x"}});
  Read(a_, "k");
  const Event flushed{EventClass::kFlushed, "", 0, {}};
  tracking_.OnEvents({&flushed, 1}, 9, nullptr);
  EXPECT_THAT(a_.peer->Take(), ElementsAre(">2\r\n$10\r\ninvalidate\r\n_\r\n@9"));
  EXPECT_THAT(b_.peer->Take(), ElementsAre(">2\r\n$10\r\ninvalidate\r\n_\r\n@9"));
  EXPECT_EQ(tracking_.keys() + tracking_.items(), 0u);
}

TEST_F(TrackingTest, ABroadcastIsOneMessageForEachPrefixAndUnit) {
  tracking_.Enable(a_.session, {.broadcast = true, .prefixes = {"p:", "q:"}});
  tracking_.Enable(b_.session, {.broadcast = true});
  EXPECT_EQ(tracking_.prefixes(), 3u);
  Change({"q:1", "p:2", "r", "p:1", "p:2"});
  EXPECT_THAT(a_.peer->Take(), ElementsAre(Push({"p:1", "p:2"}) + "@5", Push({"q:1"}) + "@5"));
  EXPECT_THAT(b_.peer->Take(), ElementsAre(Push({"p:1", "p:2", "q:1", "r"}) + "@5"));
  tracking_.Disable(a_.session);
  EXPECT_EQ(tracking_.prefixes(), 1u);
}

TEST_F(TrackingTest, OfItsOwnChangesANoLoopBroadcastTellsOnlyWhatExpired) {
  tracking_.Enable(a_.session, {.broadcast = true, .no_loop = true});
  Change({"k"}, &a_.session);
  EXPECT_EQ(a_.session.invalidations, "");
  Change({"k"}, &a_.session, "expired");
  EXPECT_EQ(a_.session.invalidations, Push({"k"}));
}

TEST_F(TrackingTest, ARedirectionNeedsAnEarAndIsBrokenWhenItsClientIsGone) {
  Client plain(2);
  auto ear = std::make_unique<Client>(2);
  tracking_.Enable(plain.session, {.redirect_id = 7, .redirect_to = ear->peer});
  EXPECT_EQ(plain.session.info().redirect, 7);
  Read(plain, "k");
  Change({"k"});  // nobody listens
  ear->peer->info().channels = 1;
  Read(plain, "k");
  Change({"k"});
  EXPECT_THAT(ear->peer->Take(), ElementsAre("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n@5"));
  tracking_.Enable(a_.session, {.redirect_id = 7, .redirect_to = ear->peer});
  Read(a_, "k");
  ear.reset();
  Change({"k"});
  EXPECT_TRUE(a_.session.info().tracking_broken);
  EXPECT_THAT(a_.peer->Take(), ElementsAre(">2\r\n$21\r\ntracking-redir-broken\r\n:7\r\n@5"));
  EXPECT_THAT(plain.peer->Take(), IsEmpty());
}

TEST_F(TrackingTest, BeyondTheLimitReadersAreToldToForget) {
  tracking_.Enable(a_.session, {});
  tracking_.SetMaxKeys(10);
  for (int i = 0; i < 100; ++i) Read(a_, absl::StrCat("k", i));
  EXPECT_EQ(tracking_.keys(), 10u);
  EXPECT_EQ(a_.peer->Take().size(), 90u);
  tracking_.SetMaxKeys(1);
  EXPECT_EQ(tracking_.keys(), 1u);
  EXPECT_EQ(a_.peer->Take().size(), 9u);
}

TEST_F(TrackingTest, ReadersAndWritersOnManyThreadsLoseNoCount) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      Client client;
      tracking_.Enable(client.session, {.no_loop = t == 0});
      for (int i = 0; i < 2'000; ++i) {
        Read(client, absl::StrCat("k", i % 50));
        if (i % 3 == t) Change({absl::StrCat("k", i % 47)}, t == 2 ? nullptr : &client.session);
        client.session.invalidations.clear();
      }
      tracking_.Disable(client.session);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tracking_.clients(), 0u);
  const Event flushed{EventClass::kFlushed, "", 0, {}};
  tracking_.OnEvents({&flushed, 1}, 0, nullptr);
  EXPECT_EQ(tracking_.keys() + tracking_.items(), 0u);
}

}  // namespace
}  // namespace idemd::server
