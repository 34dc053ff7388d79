// Names the channels of keyspace events.
#include "server/pubsub/keyspace_events.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::server {

using storage::Bit;
using storage::EventClass;

KeyspaceEvents::KeyspaceEvents(PubSub& pubsub, std::function<void(storage::EventClasses)> want)
    : pubsub_(pubsub), want_(std::move(want)) {
  pubsub_.OnIdleChange([this] { Refresh(); });
}

KeyspaceEvents::~KeyspaceEvents() { pubsub_.OnIdleChange(nullptr); }

void KeyspaceEvents::Set(storage::EventClasses classes) {
  classes_.store(classes, std::memory_order_relaxed);
  Refresh();
}

void KeyspaceEvents::Refresh() {
  storage::MutexLock lock(refresh_mutex_);
  const storage::EventClasses classes = classes_.load(std::memory_order_relaxed);
  const bool asked_for = (classes & (Bit(EventClass::kKeyspace) | Bit(EventClass::kKeyevent))) != 0;
  want_(asked_for && !pubsub_.idle() ? classes : 0);
}

void KeyspaceEvents::OnEvents(absl::Span<const storage::Event> events, storage::Lsn need,
                              storage::EventOrigin* origin) {
  const storage::EventClasses classes = classes_.load(std::memory_order_relaxed);
  auto* const from = static_cast<Session*>(origin);
  std::string channel;
  for (const storage::Event& event : events) {
    if ((classes & Bit(event.event_class)) == 0) continue;
    if ((classes & Bit(EventClass::kKeyspace)) != 0) {
      channel.clear();
      absl::StrAppend(&channel, "__keyspace@", event.db, "__:", event.key);
      pubsub_.Publish(ChannelSpace::kPlain, channel, event.name, need, from);
    }
    if ((classes & Bit(EventClass::kKeyevent)) != 0) {
      channel.clear();
      absl::StrAppend(&channel, "__keyevent@", event.db, "__:", event.name);
      pubsub_.Publish(ChannelSpace::kPlain, channel, event.key, need, from);
    }
  }
}

}  // namespace idemd::server
