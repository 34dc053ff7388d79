// Who listens to which channel or pattern, and how a message gets to all of them.
//
// Each channel is a topic with a lock of its own: publishers of different channels meet only for a look-up in one of 64
// parts of the channels' table, and all listeners of a channel hear its messages in the same order. Patterns are few or
// none: a publisher walks a list of them that nobody changes, made anew when patterns have come or gone. A message is
// encoded once for each version of RESP, and shared.
//
// Threads     any.
// Invariants  [P1] Whoever was told that it is subscribed gets every message that is published afterwards, once for each
//                  subscription, those of one publisher in the order in which it published them.
//             [P2] Whoever was told that a subscription ended gets nothing more of it.
// Lock order  a part of the table, then a topic. Both may be taken under locks of storage's shards (keyspace events).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/pubsub/subscription.h"
#include "server/session.h"
#include "storage/effect.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// Channels of SUBSCRIBE and those of SSUBSCRIBE have nothing to do with each other.
enum class ChannelSpace : uint8_t { kPlain, kShard };

class PubSub {
 public:
  PubSub() = default;
  PubSub(const PubSub&) = delete;
  PubSub& operator=(const PubSub&) = delete;

  std::shared_ptr<Subscription> Subscribe(ChannelSpace space, const std::string& channel, std::shared_ptr<Peer> peer);
  void Unsubscribe(ChannelSpace space, const std::string& channel, Subscription& subscription);
  std::shared_ptr<Subscription> SubscribePattern(const std::string& pattern, std::shared_ptr<Peer> peer);
  void UnsubscribePattern(const std::string& pattern, Subscription& subscription);
  // All of a client's, when it is gone or starts anew.
  void UnsubscribeAll(Subscriptions& subscriptions);

  // Sends `text` to all who listen and returns how many those are. The messages leave when the log is as far as `need`.
  // What the publisher's own connection gets is put into `from->pushes`; `from` may be null.
  size_t Publish(ChannelSpace space, absl::string_view channel, absl::string_view text, storage::Lsn need, Session* from);
  // How many Publish() would reach.
  size_t Receivers(ChannelSpace space, absl::string_view channel);

  // Whether anybody listens to anything.
  bool idle() const { return subscriptions_.load(std::memory_order_acquire) == 0; }
  // `hook` runs when idle() has changed, before whoever changed it is told; maybe on several threads at a time. Set it
  // while nobody subscribes.
  void OnIdleChange(std::function<void()> hook) { on_idle_change_ = std::move(hook); }

  // --- PUBSUB and INFO
  size_t channels(ChannelSpace space) const { return PartsOf(space).topics.load(std::memory_order_relaxed); }
  size_t patterns() const { return pattern_count_.load(std::memory_order_relaxed); }
  size_t Subscribers(ChannelSpace space, absl::string_view channel);
  // Calls `each` for every subscription, under locks.
  using Each = absl::FunctionRef<void(absl::string_view name, bool pattern, Peer& peer)>;
  void ForEachSubscription(Each each);
  // Those that match the pattern; null: all.
  std::vector<std::string> Channels(ChannelSpace space, const absl::string_view* pattern);

 private:
  class Message;
  struct Topic {
    explicit Topic(std::string n) : name(std::move(n)) {}
    void Add(std::shared_ptr<Subscription> subscription);
    size_t Remove(Subscription& subscription);  // how many are left
    size_t Send(Message& message, storage::Lsn need, Session* from);
    size_t size();

    const std::string name;
    storage::Mutex mutex;
    std::vector<std::shared_ptr<Subscription>> subscribers ABSL_GUARDED_BY(mutex);
  };
  using TopicMap = absl::flat_hash_map<std::string, std::shared_ptr<Topic>>;
  using TopicList = std::vector<std::shared_ptr<Topic>>;
  struct Part {
    storage::Mutex mutex;
    TopicMap topics ABSL_GUARDED_BY(mutex);
  };
  static constexpr size_t kParts = 64;
  struct Parts {
    std::array<Part, kParts> parts;
    std::atomic<size_t> topics{0};  // written under a part's mutex; zero lets publishers skip the look-up
  };

  Parts& PartsOf(ChannelSpace space) { return space == ChannelSpace::kPlain ? plain_ : shard_; }
  const Parts& PartsOf(ChannelSpace space) const { return space == ChannelSpace::kPlain ? plain_ : shard_; }
  static Part& PartOf(Parts& parts, absl::string_view channel);
  std::shared_ptr<Topic> Find(ChannelSpace space, absl::string_view channel);
  std::shared_ptr<const TopicList> Patterns();
  std::shared_ptr<Subscription> Make(std::shared_ptr<Peer> peer);
  void CountMore();
  void CountLess();

  Parts plain_;
  Parts shard_;
  storage::Mutex patterns_mutex_;
  TopicMap patterns_ ABSL_GUARDED_BY(patterns_mutex_);
  std::shared_ptr<const TopicList> pattern_list_ ABSL_GUARDED_BY(patterns_mutex_);  // null: to be made of patterns_
  std::atomic<size_t> pattern_count_{0};
  std::atomic<uint64_t> next_number_{0};
  std::atomic<size_t> subscriptions_{0};
  std::function<void()> on_idle_change_;
};

}  // namespace idemd::server
