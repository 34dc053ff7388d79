// An entry is written, counted for the group and made pending in one walk.
#include "server/commands/stream_delivery.h"

namespace idemd::server {

using storage::Stream;
using storage::StreamCursor;
using storage::StreamGroup;
using storage::StreamId;

void ClaimLog::Add(StreamId id, int64_t delivered_ms, uint64_t deliveries) {
  if (!ids_.empty() && (delivered_ms != delivered_ms_ || deliveries != deliveries_)) Flush();
  delivered_ms_ = delivered_ms;
  deliveries_ = deliveries;
  ids_.push_back(id);
}

void ClaimLog::Flush() {
  if (ids_.empty()) return;
  LogWords log;
  log.Add("XCLAIM").Add(key_.key.bytes).Add(group_name_).Add(consumer_name_).Add("0");
  for (const StreamId id : ids_) log.Add(id);
  log.Add("TIME").Add(delivered_ms_).Add("RETRYCOUNT").Add(static_cast<int64_t>(deliveries_)).Add("FORCE").Add("JUSTID");
  key_.GroupChanged(log.words());
  ids_.clear();
}

void LogGroupRead(const StreamKey& key, absl::string_view group_name, const StreamGroup& group) {
  LogWords log;
  log.Add("XGROUP").Add("SETID").Add(key.key.bytes).Add(group_name).Add(group.last_id);
  log.Add("ENTRIESREAD").Add(group.entries_read);
  key.GroupChanged(log.words());
}

StreamGroup::Consumer& SeeConsumer(const StreamKey& key, absl::string_view group_name, StreamGroup& group,
                                   absl::string_view consumer_name) {
  const int64_t now_ms = key.unit.now_ms();
  if (StreamGroup::Consumer* const known = group.FindConsumer(consumer_name); known != nullptr) {
    known->second.seen_ms = now_ms;
    return *known;
  }
  StreamGroup::Consumer& consumer = group.AddConsumer(consumer_name, now_ms);
  key.GroupChanged({"XGROUP", "CREATECONSUMER", key.key.bytes, group_name, consumer_name});
  key.Notify("xgroup-createconsumer");
  return consumer;
}

void DeliverNew(const Delivery& delivery, protocol::Writer& reply) {
  Stream& stream = delivery.key.Edit();
  StreamGroup& group = *stream.FindGroup(delivery.group_name);
  StreamGroup::Consumer& consumer = SeeConsumer(delivery.key, delivery.group_name, group, delivery.consumer_name);
  const int64_t now_ms = delivery.key.unit.now_ms();
  const size_t mark = reply.Mark();
  size_t entries = 0;
  {
    ClaimLog claims(delivery.key, delivery.group_name, delivery.consumer_name);
    StreamId start = group.last_id;
    start.Increment();
    StreamCursor cursor(stream, start, StreamId::Max());
    for (; (delivery.count == 0 || entries < delivery.count) && cursor.Next(); ++entries) {
      ReplyEntry(reply, cursor);
      stream.Advance(group, cursor.id());
      if (delivery.acknowledged) continue;
      group.Deliver(cursor.id(), consumer, now_ms, 1);
      claims.Add(cursor.id(), now_ms, 1);
    }
  }
  reply.InsertArray(mark, entries);
  if (entries != 0) {
    LogGroupRead(delivery.key, delivery.group_name, group);
  } else {
    delivery.key.GroupChanged();
  }
}

void DeliverPending(const Delivery& delivery, StreamId after, protocol::Writer& reply) {
  Stream& stream = delivery.key.Edit();
  StreamGroup& group = *stream.FindGroup(delivery.group_name);
  StreamGroup::Consumer& consumer = SeeConsumer(delivery.key, delivery.group_name, group, delivery.consumer_name);
  const int64_t now_ms = delivery.key.unit.now_ms();
  const size_t mark = reply.Mark();
  size_t entries = 0;
  {
    ClaimLog claims(delivery.key, delivery.group_name, delivery.consumer_name);
    const storage::StreamConsumer::Ids& ids = consumer.second.pending;
    for (auto at = ids.upper_bound(after); at != ids.end() && (delivery.count == 0 || entries < delivery.count); ++at, ++entries) {
      StreamCursor cursor(stream, *at, *at);
      if (!cursor.Next()) {  // deleted since
        reply.Array(2);
        ReplyId(reply, *at);
        reply.NullArray();
        continue;
      }
      ReplyEntry(reply, cursor);
      const uint64_t deliveries = group.FindPending(*at)->deliveries + 1;
      group.Deliver(*at, consumer, now_ms, deliveries);
      claims.Add(*at, now_ms, deliveries);
    }
  }
  reply.InsertArray(mark, entries);
  delivery.key.GroupChanged();
}

}  // namespace idemd::server
