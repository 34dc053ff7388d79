// Names the channels of keyspace events, and tells storage what to tell.
#include "server/pubsub/event_router.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

using storage::Bit;
using storage::EventClass;
using storage::EventClasses;

constexpr EventClasses kForTracking = Bit(EventClass::kChanged) | Bit(EventClass::kFlushed);

}  // namespace

EventRouter::EventRouter(PubSub& pubsub, Tracking& tracking, std::function<void(EventClasses)> want)
    : pubsub_(pubsub), tracking_(tracking), want_(std::move(want)) {
  pubsub_.OnIdleChange([this] { Refresh(); });
  tracking_.OnClientsChange([this] { Refresh(); });
}

EventRouter::~EventRouter() {
  pubsub_.OnIdleChange(nullptr);
  tracking_.OnClientsChange(nullptr);
}

void EventRouter::SetKeyspaceEvents(EventClasses classes) {
  classes_.store(classes & ~kForTracking, std::memory_order_relaxed);
  Refresh();
}

void EventRouter::Refresh() {
  storage::MutexLock lock(refresh_mutex_);
  const EventClasses classes = classes_.load(std::memory_order_relaxed);
  const bool asked_for = (classes & (Bit(EventClass::kKeyspace) | Bit(EventClass::kKeyevent))) != 0;
  EventClasses wanted = asked_for && !pubsub_.idle() ? classes : 0;
  if (tracking_.clients() != 0) wanted |= kForTracking;
  want_(wanted);
}

void EventRouter::OnEvents(absl::Span<const storage::Event> events, storage::Lsn need, storage::EventOrigin* origin) {
  const EventClasses classes = classes_.load(std::memory_order_relaxed);
  auto* const from = static_cast<Session*>(origin);
  if (tracking_.clients() != 0) tracking_.OnEvents(events, need, from);
  for (const storage::Event& event : events)
    if ((classes & Bit(event.event_class)) != 0) Publish(event, classes, need, from);
}

void EventRouter::Publish(const storage::Event& event, EventClasses classes, storage::Lsn need, Session* from) {
  if ((classes & Bit(EventClass::kKeyspace)) != 0) {
    const std::string channel = absl::StrCat("__keyspace@", event.db, "__:", event.key);
    pubsub_.Publish(ChannelSpace::kPlain, channel, event.name, need, from);
  }
  if ((classes & Bit(EventClass::kKeyevent)) != 0) {
    const std::string channel = absl::StrCat("__keyevent@", event.db, "__:", event.name);
    pubsub_.Publish(ChannelSpace::kPlain, channel, event.key, need, from);
  }
}

}  // namespace idemd::server
