// The list that a unit keeps of its events.
#include "storage/events.h"

namespace idemd::storage {

void EventList::Add(EventClass event_class, const char* name, DbIndex db, absl::string_view key) {
  events_.push_back({event_class, name, db, {}});
  keys_.append(key.data(), key.size());
  key_ends_.push_back(keys_.size());
}

void EventList::HandTo(EventSink& sink, Lsn need, EventOrigin* origin) {
  size_t begin = 0;
  for (size_t i = 0; i < events_.size(); ++i) {
    events_[i].key = absl::string_view(keys_).substr(begin, key_ends_[i] - begin);
    begin = key_ends_[i];
  }
  sink.OnEvents(events_, need, origin);
}

}  // namespace idemd::storage
