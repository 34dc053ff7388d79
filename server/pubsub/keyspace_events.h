// Keyspace events as messages: what storage tells of keys goes to the channels of notify-keyspace-events.
//
// Threads   any; OnEvents() under locks of storage.
#pragma once

#include <atomic>
#include <functional>

#include "server/pubsub/pubsub.h"
#include "storage/events.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class KeyspaceEvents final : public storage::EventSink {
 public:
  // `want` tells storage which classes it has to tell: none while nobody listens to anything, or while neither kind of
  // channel is asked for.
  KeyspaceEvents(PubSub& pubsub, std::function<void(storage::EventClasses)> want);
  ~KeyspaceEvents() override;

  // The classes of notify-keyspace-events.
  void Set(storage::EventClasses classes);

  void OnEvents(absl::Span<const storage::Event> events, storage::Lsn need, storage::EventOrigin* origin) override;

 private:
  void Refresh();

  PubSub& pubsub_;
  const std::function<void(storage::EventClasses)> want_;
  storage::Mutex refresh_mutex_;  // the last one to refresh has seen all that changed before
  std::atomic<storage::EventClasses> classes_{0};
};

}  // namespace idemd::server
