// A consumer group of a stream: how far it has read, and which entries were delivered to whom and not acknowledged yet.
//
// Threads   those of the stream that it belongs to.
// Lifetime  consumers stay where they are until they are removed; pending entries move with every change.
// Units     unix milliseconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "storage/collection/counting_allocator.h"
#include "storage/collection/stream_id.h"

namespace idemd::storage {

// Names of groups and consumers, in the order of their bytes.
using StreamName = std::basic_string<char, std::char_traits<char>, CountingAllocator<char>>;
inline absl::string_view ViewOf(absl::string_view name) { return name; }
inline absl::string_view ViewOf(const StreamName& name) { return {name.data(), name.size()}; }
struct StreamNameLess {
  using is_transparent = void;
  template <class A, class B>
  bool operator()(const A& a, const B& b) const {
    return ViewOf(a) < ViewOf(b);
  }
};
template <class T>
using ByStreamName = std::map<StreamName, T, StreamNameLess, CountingAllocator<std::pair<const StreamName, T>>>;

struct StreamConsumer {
  using Ids = absl::btree_set<StreamId, std::less<StreamId>, CountingAllocator<StreamId>>;

  explicit StreamConsumer(size_t* bytes) : pending(CountingAllocator<StreamId>(bytes)) {}

  int64_t seen_ms = 0;  // when it last asked for something
  Ids pending;          // the rest about them is in the group
};

class StreamGroup {
 public:
  using Consumers = ByStreamName<StreamConsumer>;
  using Consumer = Consumers::value_type;
  static constexpr int64_t kUnknown = -1;

  struct Pending {
    Consumer* consumer = nullptr;
    int64_t delivered_ms = 0;  // the last time
    uint64_t deliveries = 0;
  };
  using AllPending =
      absl::btree_map<StreamId, Pending, std::less<StreamId>, CountingAllocator<std::pair<const StreamId, Pending>>>;

  // What it takes is added to `*bytes`.
  explicit StreamGroup(size_t* bytes)
      : pending_(AllPending::allocator_type(bytes)), consumers_(Consumers::allocator_type(bytes)), bytes_(bytes) {}
  StreamGroup(const StreamGroup&) = delete;
  StreamGroup& operator=(const StreamGroup&) = delete;

  StreamId last_id;                  // the last one that was delivered
  int64_t entries_read = kUnknown;   // how many entries of the stream's whole life lie up to there

  const AllPending& pending() const { return pending_; }
  const Consumers& consumers() const { return consumers_; }
  const Consumer* FindConsumer(absl::string_view name) const;
  // Null: there is none. Whoever asks for something with it sets seen_ms.
  Consumer* FindConsumer(absl::string_view name);
  // There must be none yet.
  Consumer& AddConsumer(absl::string_view name, int64_t now_ms);
  // With all that is pending there. Returns how many entries that were.
  uint64_t RemoveConsumer(absl::string_view name);

  // Null: it is not pending. Good until the next change.
  const Pending* FindPending(StreamId id) const;
  // Makes the entry pending at this consumer, wherever it was before.
  void Deliver(StreamId id, Consumer& consumer, int64_t delivered_ms, uint64_t deliveries);
  // False: it was not pending.
  bool Acknowledge(StreamId id);

  // Becomes equal to another one; must be fresh.
  void CopyFrom(const StreamGroup& other);

 private:
  AllPending pending_;
  Consumers consumers_;
  size_t* const bytes_;
};

}  // namespace idemd::storage
