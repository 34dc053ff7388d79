// Delivering a stream's entries to a consumer of a group: what is new to the group, or once more what is pending there.
//
// Each writes the entries as an array, and what it came to into the log: XCLAIM for what is pending now, XGROUP SETID for how
// far the group has read.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "server/commands/stream_reply.h"
#include "storage/collection/stream.h"

namespace idemd::server {

struct Delivery {
  const StreamKey& key;
  absl::string_view group_name;
  absl::string_view consumer_name;  // made where it is not there yet
  uint64_t count = 0;               // 0: all
  bool acknowledged = false;        // NOACK: nothing becomes pending
};

// There are the stream and the group.
void DeliverNew(const Delivery& delivery, protocol::Writer& reply);
// What is pending at the consumer, behind this ID.
void DeliverPending(const Delivery& delivery, storage::StreamId after, protocol::Writer& reply);

// The log's command for entries that are pending at a consumer now: all of them with one time and number of deliveries.
class ClaimLog {
 public:
  ClaimLog(const StreamKey& key, absl::string_view group_name, absl::string_view consumer_name)
      : key_(key), group_name_(group_name), consumer_name_(consumer_name) {}
  ~ClaimLog() { Flush(); }
  ClaimLog(const ClaimLog&) = delete;
  ClaimLog& operator=(const ClaimLog&) = delete;

  void Add(storage::StreamId id, int64_t delivered_ms, uint64_t deliveries);
  // Tells what was added so far; so must whoever tells something else in between.
  void Flush();

 private:
  const StreamKey& key_;
  const absl::string_view group_name_, consumer_name_;
  absl::InlinedVector<storage::StreamId, 16> ids_;
  int64_t delivered_ms_ = 0;
  uint64_t deliveries_ = 0;
};

// Tells how far the group has read.
void LogGroupRead(const StreamKey& key, absl::string_view group_name, const storage::StreamGroup& group);

// The consumer, which has just asked for something; a new one is told.
storage::StreamGroup::Consumer& SeeConsumer(const StreamKey& key, absl::string_view group_name,
                                            storage::StreamGroup& group, absl::string_view consumer_name);

}  // namespace idemd::server
