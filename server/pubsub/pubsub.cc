// The registry of channels and patterns.
#include "server/pubsub/pubsub.h"

#include <algorithm>

#include "absl/hash/hash.h"
#include "protocol/glob.h"
#include "protocol/resp/writer.h"
#include "storage/emptied.h"

namespace idemd::server {

std::shared_ptr<Subscription> SubscriptionSet::Take(const std::string& name) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return nullptr;
  std::shared_ptr<Subscription> taken = std::move(it->second);
  by_name_.erase(it);
  storage::FreeIfEmptied(by_name_);
  return taken;
}

std::vector<std::string> SubscriptionSet::Names() const {
  std::vector<std::pair<uint64_t, const std::string*>> found;
  found.reserve(by_name_.size());
  for (const auto& [name, subscription] : by_name_) found.emplace_back(subscription->number, &name);
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  names.reserve(found.size());
  for (const auto& [number, name] : found) names.push_back(*name);
  return names;
}

// A message on its way: its bytes are made when the first receiver with that version of RESP is found.
class PubSub::Message {
 public:
  Message(absl::string_view kind, absl::string_view pattern, absl::string_view channel, absl::string_view text)
      : kind_(kind), pattern_(pattern), channel_(channel), text_(text) {}

  const std::shared_ptr<const std::string>& For(int resp) {
    std::shared_ptr<const std::string>& bytes = resp == 2 ? resp2_ : resp3_;
    if (bytes == nullptr) bytes = Encode(resp);
    return bytes;
  }

 private:
  std::shared_ptr<const std::string> Encode(int resp) const {
    constexpr size_t kHeads = 64;
    auto out = std::make_shared<std::string>();
    out->reserve(kHeads + pattern_.size() + channel_.size() + text_.size());
    protocol::Writer writer(*out, resp);
    const bool with_pattern = kind_ == "pmessage";
    writer.Push(with_pattern ? 4 : 3);
    writer.Bulk(kind_);
    if (with_pattern) writer.Bulk(pattern_);
    writer.Bulk(channel_);
    writer.Bulk(text_);
    return out;
  }

  const absl::string_view kind_;
  const absl::string_view pattern_;
  const absl::string_view channel_;
  const absl::string_view text_;
  std::shared_ptr<const std::string> resp2_;
  std::shared_ptr<const std::string> resp3_;
};

void PubSub::Topic::Add(std::shared_ptr<Subscription> subscription) {
  storage::MutexLock lock(mutex);
  subscription->place = subscribers.size();
  subscribers.push_back(std::move(subscription));
}

size_t PubSub::Topic::Remove(Subscription& subscription) {
  storage::MutexLock lock(mutex);
  const size_t place = subscription.place;
  subscribers[place].swap(subscribers.back());
  subscribers[place]->place = place;
  subscribers.pop_back();
  return subscribers.size();
}

size_t PubSub::Topic::size() {
  storage::MutexLock lock(mutex);
  return subscribers.size();
}

size_t PubSub::Topic::Send(Message& message, storage::Lsn need, Session* from) {
  storage::MutexLock lock(mutex);
  for (const std::shared_ptr<Subscription>& subscription : subscribers) {
    const std::shared_ptr<Peer> peer = subscription->peer.lock();
    if (peer == nullptr) continue;
    const auto& bytes = message.For(peer->info().resp.load(std::memory_order_relaxed));
    if (from != nullptr && from->peer == peer) {
      from->pushes += *bytes;
    } else {
      peer->Send(bytes, need, std::shared_ptr<const std::atomic<bool>>(subscription, &subscription->live));
    }
  }
  return subscribers.size();
}

PubSub::Part& PubSub::PartOf(Parts& parts, absl::string_view channel) {
  return parts.parts[absl::HashOf(channel) >> 7 & (kParts - 1)];
}

std::shared_ptr<Subscription> PubSub::Make(std::shared_ptr<Peer> peer) {
  auto subscription = std::make_shared<Subscription>();
  subscription->peer = std::move(peer);
  subscription->number = next_number_.fetch_add(1, std::memory_order_relaxed);
  return subscription;
}

void PubSub::CountMore() {
  if (subscriptions_.fetch_add(1, std::memory_order_acq_rel) == 0 && on_idle_change_ != nullptr) on_idle_change_();
}

void PubSub::CountLess() {
  if (subscriptions_.fetch_sub(1, std::memory_order_acq_rel) == 1 && on_idle_change_ != nullptr) on_idle_change_();
}

std::shared_ptr<Subscription> PubSub::Subscribe(ChannelSpace space, const std::string& channel,
                                                std::shared_ptr<Peer> peer) {
  std::shared_ptr<Subscription> subscription = Make(std::move(peer));
  Parts& parts = PartsOf(space);
  Part& part = PartOf(parts, channel);
  {
    storage::MutexLock lock(part.mutex);
    std::shared_ptr<Topic>& topic = part.topics[channel];
    if (topic == nullptr) {
      topic = std::make_shared<Topic>(channel);
      parts.topics.fetch_add(1, std::memory_order_release);
    }
    topic->Add(subscription);
  }
  CountMore();
  return subscription;
}

void PubSub::Unsubscribe(ChannelSpace space, const std::string& channel, Subscription& subscription) {
  subscription.live.store(false, std::memory_order_relaxed);
  Parts& parts = PartsOf(space);
  Part& part = PartOf(parts, channel);
  {
    storage::MutexLock lock(part.mutex);
    const auto it = part.topics.find(channel);
    // Topics that publishers still hold may be forgotten here: nobody listens to them.
    if (it->second->Remove(subscription) == 0) {
      part.topics.erase(it);
      storage::FreeIfEmptied(part.topics);
      parts.topics.fetch_sub(1, std::memory_order_release);
    }
  }
  CountLess();
}

std::shared_ptr<Subscription> PubSub::SubscribePattern(const std::string& pattern, std::shared_ptr<Peer> peer) {
  std::shared_ptr<Subscription> subscription = Make(std::move(peer));
  {
    storage::MutexLock lock(patterns_mutex_);
    std::shared_ptr<Topic>& topic = patterns_[pattern];
    if (topic == nullptr) {
      topic = std::make_shared<Topic>(pattern);
      pattern_list_.reset();
      pattern_count_.fetch_add(1, std::memory_order_release);
    }
    topic->Add(subscription);
  }
  CountMore();
  return subscription;
}

void PubSub::UnsubscribePattern(const std::string& pattern, Subscription& subscription) {
  subscription.live.store(false, std::memory_order_relaxed);
  {
    storage::MutexLock lock(patterns_mutex_);
    const auto it = patterns_.find(pattern);
    if (it->second->Remove(subscription) == 0) {
      patterns_.erase(it);
      storage::FreeIfEmptied(patterns_);
      pattern_list_.reset();
      pattern_count_.fetch_sub(1, std::memory_order_release);
    }
  }
  CountLess();
}

void PubSub::UnsubscribeAll(Subscriptions& subscriptions) {
  for (const std::string& name : subscriptions.channels.Names())
    Unsubscribe(ChannelSpace::kPlain, name, *subscriptions.channels.Take(name));
  for (const std::string& name : subscriptions.shard_channels.Names())
    Unsubscribe(ChannelSpace::kShard, name, *subscriptions.shard_channels.Take(name));
  for (const std::string& name : subscriptions.patterns.Names())
    UnsubscribePattern(name, *subscriptions.patterns.Take(name));
}

std::shared_ptr<PubSub::Topic> PubSub::Find(ChannelSpace space, absl::string_view channel) {
  Parts& parts = PartsOf(space);
  if (parts.topics.load(std::memory_order_acquire) == 0) return nullptr;
  Part& part = PartOf(parts, channel);
  storage::MutexLock lock(part.mutex);
  const auto it = part.topics.find(channel);
  return it == part.topics.end() ? nullptr : it->second;
}

std::shared_ptr<const PubSub::TopicList> PubSub::Patterns() {
  storage::MutexLock lock(patterns_mutex_);
  if (pattern_list_ == nullptr) {
    auto list = std::make_shared<TopicList>();
    list->reserve(patterns_.size());
    for (const auto& [pattern, topic] : patterns_) list->push_back(topic);
    pattern_list_ = std::move(list);
  }
  return pattern_list_;
}

size_t PubSub::Publish(ChannelSpace space, absl::string_view channel, absl::string_view text, storage::Lsn need,
                       Session* from) {
  size_t receivers = 0;
  if (const std::shared_ptr<Topic> topic = Find(space, channel); topic != nullptr) {
    Message message(space == ChannelSpace::kPlain ? "message" : "smessage", {}, channel, text);
    receivers += topic->Send(message, need, from);
  }
  if (space == ChannelSpace::kShard || pattern_count_.load(std::memory_order_acquire) == 0) return receivers;
  const std::shared_ptr<const TopicList> patterns = Patterns();
  for (const std::shared_ptr<Topic>& pattern : *patterns) {
    if (!protocol::GlobMatch(pattern->name, channel)) continue;
    Message message("pmessage", pattern->name, channel, text);
    receivers += pattern->Send(message, need, from);
  }
  return receivers;
}

size_t PubSub::Receivers(ChannelSpace space, absl::string_view channel) {
  size_t receivers = Subscribers(space, channel);
  if (space == ChannelSpace::kShard || pattern_count_.load(std::memory_order_acquire) == 0) return receivers;
  const std::shared_ptr<const TopicList> patterns = Patterns();
  for (const std::shared_ptr<Topic>& pattern : *patterns)
    if (protocol::GlobMatch(pattern->name, channel)) receivers += pattern->size();
  return receivers;
}

size_t PubSub::Subscribers(ChannelSpace space, absl::string_view channel) {
  const std::shared_ptr<Topic> topic = Find(space, channel);
  return topic == nullptr ? 0 : topic->size();
}

std::vector<std::string> PubSub::Channels(ChannelSpace space, const absl::string_view* pattern) {
  std::vector<std::string> names;
  for (Part& part : PartsOf(space).parts) {
    storage::MutexLock lock(part.mutex);
    for (const auto& [name, topic] : part.topics)
      if (pattern == nullptr || protocol::GlobMatch(*pattern, name)) names.push_back(name);
  }
  return names;
}

void PubSub::ForEachSubscription(Each each) {
  const auto visit = [&](Topic& topic, bool pattern) {
    storage::MutexLock lock(topic.mutex);
    for (const std::shared_ptr<Subscription>& subscription : topic.subscribers) {
      if (const std::shared_ptr<Peer> peer = subscription->peer.lock(); peer != nullptr) each(topic.name, pattern, *peer);
    }
  };
  for (Parts* parts : {&plain_, &shard_}) {
    for (Part& part : parts->parts) {
      storage::MutexLock lock(part.mutex);
      for (const auto& [name, topic] : part.topics) visit(*topic, false);
    }
  }
  storage::MutexLock lock(patterns_mutex_);
  for (const auto& [name, topic] : patterns_) visit(*topic, true);
}

}  // namespace idemd::server
