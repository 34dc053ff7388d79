// Where the events of storage go: to the channels of notify-keyspace-events, and to tracking.
//
// Threads   any; OnEvents() under locks of storage.
#pragma once

#include <atomic>
#include <functional>

#include "server/pubsub/pubsub.h"
#include "server/pubsub/tracking.h"
#include "storage/events.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class EventRouter final : public storage::EventSink {
 public:
  // `want` tells storage which classes it has to tell: none while nobody listens to anything, or while neither kind of
  // channel is asked for, and nobody tracks.
  EventRouter(PubSub& pubsub, Tracking& tracking, std::function<void(storage::EventClasses)> want);
  ~EventRouter() override;

  // The classes of notify-keyspace-events.
  void SetKeyspaceEvents(storage::EventClasses classes);

  void OnEvents(absl::Span<const storage::Event> events, storage::Lsn need, storage::EventOrigin* origin) override;

 private:
  void Refresh();
  void Publish(const storage::Event& event, storage::EventClasses classes, storage::Lsn need, Session* from);

  PubSub& pubsub_;
  Tracking& tracking_;
  const std::function<void(storage::EventClasses)> want_;
  storage::Mutex refresh_mutex_;  // the last one to refresh has seen all that changed before
  std::atomic<storage::EventClasses> classes_{0};
};

}  // namespace idemd::server
