// Keyspace events: what befell a key, told to whoever wants to know, in the words of Redis.
//
// A unit remembers its events and hands them over when it commits: all at once, in order, with the LSN that they depend on.
// That happens while the unit still holds its locks, so the events of one key are handed over in the order of its changes,
// whichever threads they come from.
//
// Threads   EventSink: called by any thread, under locks of shards: it must neither wait nor use the store.
// Lifetime  The views of an Event live as long as the call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/effect.h"

namespace idemd::storage {

// The letters of Redis' notify-keyspace-events, a bit each (the same bits as server/admin/settings.h has).
enum class EventClass : uint32_t {
  kKeyspace = 1u << 0,  // K: told under __keyspace@db__:key
  kKeyevent = 1u << 1,  // E: told under __keyevent@db__:event
  kGeneric = 1u << 2,   // g: of any type: del, expire, rename_from
  kString = 1u << 3,    // $
  kList = 1u << 4,      // l
  kSet = 1u << 5,       // s
  kHash = 1u << 6,      // h
  kZset = 1u << 7,      // z
  kExpired = 1u << 8,   // x
  kEvicted = 1u << 9,   // e
  kStream = 1u << 10,   // t
  kKeyMiss = 1u << 11,  // m: a read found nothing
  kModule = 1u << 12,   // d
  kNew = 1u << 13,      // n: a key was added
};

using EventClasses = uint32_t;  // a set of them
constexpr EventClasses Bit(EventClass c) { return static_cast<EventClasses>(c); }

struct Event {
  EventClass event_class = EventClass::kGeneric;
  const char* name = "";  // a literal: "set", "expired"
  DbIndex db = 0;
  absl::string_view key;
};

// Whoever made a unit, as the sink knows it; see Unit::SetOrigin().
struct EventOrigin {};

class EventSink {
 public:
  virtual ~EventSink() = default;
  // The events of one unit. They may be shown when the log is as far as `need`. `origin` may be null.
  virtual void OnEvents(absl::Span<const Event> events, Lsn need, EventOrigin* origin) = 0;
};

// The events of a unit and what else is to be done at its end, in order, with copies of the keys: those of EXEC outlive
// the words of its commands.
class EventList {
 public:
  void Add(EventClass event_class, const char* name, DbIndex db, absl::string_view key);
  void Add(std::function<void(Lsn need)> call);
  void HandTo(EventSink* sink, Lsn need, EventOrigin* origin);  // no sink: only the calls

 private:
  struct Call {
    size_t place;  // before this event
    std::function<void(Lsn need)> call;
  };
  std::vector<Event> events_;  // their keys are set by HandTo()
  std::vector<size_t> key_ends_;
  std::vector<Call> calls_;
  std::string keys_;
};

}  // namespace idemd::storage
