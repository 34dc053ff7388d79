// The registry: who hears what, in which order, also while others come and go on other threads.
#include "server/pubsub/pubsub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/support/seed.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A connection whose thread is the test's: what is sent to it waits until it is taken.
class Listener final : public Peer {
 public:
  explicit Listener(uint64_t id, int resp = 2) {
    info().id = id;
    info().resp = resp;
  }
  void Send(std::shared_ptr<const std::string> bytes, storage::Lsn need,
            std::shared_ptr<const std::atomic<bool>> while_true) override {
    storage::MutexLock lock(mutex_);
    waiting_.push_back({std::move(bytes), std::move(while_true), need});
  }
  void Kill() override {}
  void Resume(std::function<void(Session&, std::string&)>) override {}

  struct Sent {
    std::shared_ptr<const std::string> bytes;
    std::shared_ptr<const std::atomic<bool>> while_true;
    storage::Lsn need;
  };
  // What a connection would put on the wire now.
  std::vector<Sent> Take() {
    std::vector<Sent> taken;
    {
      storage::MutexLock lock(mutex_);
      taken.swap(waiting_);
    }
    std::erase_if(taken, [](const Sent& sent) { return !sent.while_true->load(); });
    return taken;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts;
    for (const Sent& sent : Take()) texts.push_back(*sent.bytes);
    return texts;
  }

 private:
  storage::Mutex mutex_;
  std::vector<Sent> waiting_ ABSL_GUARDED_BY(mutex_);
};

constexpr ChannelSpace kPlain = ChannelSpace::kPlain;
constexpr ChannelSpace kShard = ChannelSpace::kShard;

size_t Publish(PubSub& pubsub, absl::string_view channel, absl::string_view text) {
  return pubsub.Publish(kPlain, channel, text, 0, nullptr);
}

TEST(PubSub, AMessageGoesToTheChannelAndToEveryPatternThatMatches) {
  PubSub pubsub;
  const auto peer = std::make_shared<Listener>(1);
  const auto other = std::make_shared<Listener>(2, 3);
  const auto a = pubsub.Subscribe(kPlain, "news.1", peer);
  const auto b = pubsub.SubscribePattern("news.*", peer);
  const auto c = pubsub.SubscribePattern("n*", other);
  const auto d = pubsub.SubscribePattern("x*", other);
  EXPECT_EQ(pubsub.Receivers(kPlain, "news.1"), 3u);
  EXPECT_EQ(pubsub.Publish(kPlain, "news.1", "hi", 7, nullptr), 3u);
  EXPECT_THAT(peer->Texts(), ElementsAre("*3\r\n$7\r\nmessage\r\n$6\r\nnews.1\r\n$2\r\nhi\r\n",
                                         "*4\r\n$8\r\npmessage\r\n$6\r\nnews.*\r\n$6\r\nnews.1\r\n$2\r\nhi\r\n"));
  const auto sent = other->Take();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(*sent[0].bytes, ">4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$6\r\nnews.1\r\n$2\r\nhi\r\n");
  EXPECT_EQ(sent[0].need, 7u);
}

TEST(PubSub, ShardChannelsAreApartAndKnowNoPatterns) {
  PubSub pubsub;
  const auto peer = std::make_shared<Listener>(1);
  const auto a = pubsub.Subscribe(kShard, "c", peer);
  const auto b = pubsub.SubscribePattern("*", peer);
  EXPECT_EQ(pubsub.Publish(kShard, "c", "x", 0, nullptr), 1u);
  EXPECT_THAT(peer->Texts(), ElementsAre("*3\r\n$8\r\nsmessage\r\n$1\r\nc\r\n$1\r\nx\r\n"));
  EXPECT_EQ(pubsub.channels(kShard), 1u);
  EXPECT_EQ(pubsub.channels(kPlain), 0u);
  EXPECT_EQ(pubsub.Subscribers(kShard, "c"), 1u);
  EXPECT_EQ(pubsub.Subscribers(kPlain, "c"), 0u);
}

TEST(PubSub, ReceiversOfOneVersionShareTheBytes) {
  PubSub pubsub;
  const auto peer = std::make_shared<Listener>(1);
  const auto other = std::make_shared<Listener>(2);
  const auto a = pubsub.Subscribe(kPlain, "c", peer);
  const auto b = pubsub.Subscribe(kPlain, "c", other);
  Publish(pubsub, "c", "x");
  EXPECT_EQ(peer->Take()[0].bytes.get(), other->Take()[0].bytes.get());
}

TEST(PubSub, APublisherFindsItsOwnMessagesInItsSession) {
  PubSub pubsub;
  Session session;
  session.peer = std::make_shared<Listener>(1, 3);
  const auto a = pubsub.Subscribe(kPlain, "c", session.peer);
  EXPECT_EQ(pubsub.Publish(kPlain, "c", "x", 0, &session), 1u);
  EXPECT_EQ(session.pushes, ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n");
  EXPECT_THAT(static_cast<Listener&>(*session.peer).Take(), IsEmpty());
}

TEST(PubSubP2, WhatIsOnItsWayWhenASubscriptionEndsIsNotDelivered) {
  PubSub pubsub;
  const auto peer = std::make_shared<Listener>(1);
  const auto a = pubsub.Subscribe(kPlain, "c", peer);
  const auto b = pubsub.SubscribePattern("c*", peer);
  Publish(pubsub, "c", "x");
  pubsub.Unsubscribe(kPlain, "c", *a);
  pubsub.UnsubscribePattern("c*", *b);
  EXPECT_THAT(peer->Take(), IsEmpty());
  EXPECT_EQ(Publish(pubsub, "c", "y"), 0u);
  EXPECT_EQ(pubsub.channels(kPlain), 0u);
  EXPECT_EQ(pubsub.patterns(), 0u);
  EXPECT_THAT(pubsub.Channels(kPlain, nullptr), IsEmpty());
}

TEST(PubSub, AClientThatIsGoneLeavesNothingBehind) {
  PubSub pubsub;
  const auto peer = std::make_shared<Listener>(1);
  Subscriptions all;
  for (const char* name : {"a", "b", "c"}) {
    all.channels.Add(name, pubsub.Subscribe(kPlain, name, peer));
    all.shard_channels.Add(name, pubsub.Subscribe(kShard, name, peer));
    all.patterns.Add(name, pubsub.SubscribePattern(name, peer));
  }
  EXPECT_THAT(all.channels.Names(), ElementsAre("a", "b", "c"));
  const absl::string_view pattern = "[ab]";
  EXPECT_THAT(pubsub.Channels(kPlain, &pattern), UnorderedElementsAre("a", "b"));
  EXPECT_EQ(all.total(), 9u);
  pubsub.UnsubscribeAll(all);
  EXPECT_EQ(all.total(), 0u);
  EXPECT_TRUE(pubsub.idle());
  EXPECT_EQ(pubsub.channels(kPlain) + pubsub.channels(kShard) + pubsub.patterns(), 0u);
}

TEST(PubSub, TheHookTellsOfTheFirstAndTheLastSubscription) {
  PubSub pubsub;
  std::vector<bool> told;
  pubsub.OnIdleChange([&] { told.push_back(pubsub.idle()); });
  const auto peer = std::make_shared<Listener>(1);
  const auto a = pubsub.Subscribe(kPlain, "c", peer);
  const auto b = pubsub.SubscribePattern("p", peer);
  pubsub.Unsubscribe(kPlain, "c", *a);
  pubsub.UnsubscribePattern("p", *b);
  EXPECT_THAT(told, ElementsAre(false, true));
}

// The text of a "message" or "pmessage".
std::string TextOf(const std::string& bytes) {
  const std::vector<std::string> lines = absl::StrSplit(bytes, "\r\n");
  return lines[lines.size() - 2];
}

// Publishers number their messages; listeners that stay must hear all of them, each publisher's in order, and all
// listeners of a channel in the same order, while others come and go.
TEST(PubSubP1, ListenersHearEveryMessageInOrderWhileOthersComeAndGo) {
  constexpr int kPublishers = 3;
  constexpr int kMessages = 1'000;
  PubSub pubsub;
  const auto channel = std::make_shared<Listener>(1);
  const auto channel_too = std::make_shared<Listener>(2);
  const auto pattern = std::make_shared<Listener>(3);
  const auto a = pubsub.Subscribe(kPlain, "busy", channel);
  const auto b = pubsub.Subscribe(kPlain, "busy", channel_too);
  const auto c = pubsub.SubscribePattern("bu?y", pattern);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&pubsub, &stop, seed, t] {
      std::mt19937_64 random(seed + t);
      const auto peer = std::make_shared<Listener>(10 + t);
      while (!stop.load()) {
        const std::string name = random() % 2 == 0 ? "busy" : absl::StrCat("other", random() % 4);
        const auto plain = pubsub.Subscribe(kPlain, name, peer);
        const std::string glob = absl::StrCat("b*", random() % 3 == 0 ? "y" : "z");
        const auto matching = pubsub.SubscribePattern(glob, peer);
        EXPECT_GE(pubsub.Subscribers(kPlain, name), 1u);
        pubsub.Unsubscribe(kPlain, name, *plain);
        pubsub.UnsubscribePattern(glob, *matching);
      }
    });
  }
  std::vector<std::thread> publishers;
  for (int p = 0; p < kPublishers; ++p) {
    publishers.emplace_back([&pubsub, p] {
      for (int i = 0; i < kMessages; ++i) EXPECT_GE(Publish(pubsub, "busy", absl::StrCat(p, ":", i)), 3u);
    });
  }
  for (std::thread& publisher : publishers) publisher.join();
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  std::vector<std::string> heard[3];
  for (const auto& [listener, place] : {std::pair(channel, 0), std::pair(channel_too, 1), std::pair(pattern, 2)}) {
    std::map<std::string, int> next;
    for (const std::string& bytes : listener->Texts()) {
      heard[place].push_back(TextOf(bytes));
      const std::pair<std::string, std::string> parts = absl::StrSplit(heard[place].back(), ':');
      int number = -1;
      ASSERT_TRUE(absl::SimpleAtoi(parts.second, &number));
      ASSERT_EQ(number, next[parts.first]++);
    }
    EXPECT_EQ(heard[place].size(), static_cast<size_t>(kPublishers) * kMessages);
  }
  EXPECT_EQ(heard[0], heard[1]);
  EXPECT_EQ(pubsub.patterns(), 1u);
  EXPECT_EQ(pubsub.channels(kPlain), 1u);
}

}  // namespace
}  // namespace idemd::server
