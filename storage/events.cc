// The list that a unit keeps of its events.
#include "storage/events.h"

#include <utility>

namespace idemd::storage {

void EventList::Add(EventClass event_class, const char* name, DbIndex db, absl::string_view key) {
  events_.push_back({event_class, name, db, {}});
  keys_.append(key.data(), key.size());
  key_ends_.push_back(keys_.size());
}

void EventList::Add(std::function<void(Lsn need)> call) { calls_.push_back({events_.size(), std::move(call)}); }

void EventList::HandTo(EventSink* sink, Lsn need, EventOrigin* origin) {
  size_t begin = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    events_[i].key = absl::string_view(keys_).substr(begin, key_ends_[i] - begin);
    begin = key_ends_[i];
  }
  size_t told = 0;
  const auto tell_to = [&](size_t end) {
    if (sink != nullptr && told != end)
      sink->OnEvents(absl::MakeConstSpan(events_).subspan(told, end - told), need, origin);
    told = end;
  };
  for (const Call& call : calls_) {
    tell_to(call.place);
    call.call(need);
  }
  tell_to(events_.size());
}

}  // namespace idemd::storage
