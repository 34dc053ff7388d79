// What one client listens to: a subscription for each channel and pattern, kept by its session.
//
// Threads   Subscriptions belong to the connection's thread. Of a Subscription, others read `live` and `peer`, and the
//           topic's lists have `place` under the topic's mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "server/session.h"

namespace idemd::server {

struct Subscription {
  std::weak_ptr<Peer> peer;
  uint64_t number = 0;  // of all subscriptions of the server, in the order in which they were made
  // False from the moment the client is told that it ended: what is still on its way is not delivered.
  std::atomic<bool> live{true};
  size_t place = 0;
};

// Channels of one kind, or patterns, by name.
class SubscriptionSet {
 public:
  size_t size() const { return by_name_.size(); }
  bool Has(const std::string& name) const { return by_name_.contains(name); }
  void Add(const std::string& name, std::shared_ptr<Subscription> subscription) {
    by_name_[name] = std::move(subscription);
  }
  // Null when there was none.
  std::shared_ptr<Subscription> Take(const std::string& name);
  std::vector<std::string> Names() const;  // in the order in which they were subscribed to

 private:
  absl::flat_hash_map<std::string, std::shared_ptr<Subscription>> by_name_;
};

struct Subscriptions {
  SubscriptionSet channels;
  SubscriptionSet patterns;
  SubscriptionSet shard_channels;

  size_t total() const { return channels.size() + patterns.size() + shard_channels.size(); }
};

}  // namespace idemd::server
