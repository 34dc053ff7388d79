// Entries are mostly delivered in order: a hint at the end saves the way down the trees.
#include "storage/collection/stream_group.h"

namespace idemd::storage {

const StreamGroup::Consumer* StreamGroup::FindConsumer(absl::string_view name) const {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : &*found;
}

StreamGroup::Consumer* StreamGroup::FindConsumer(absl::string_view name) {
  const auto found = consumers_.find(name);
  return found == consumers_.end() ? nullptr : &*found;
}

StreamGroup::Consumer& StreamGroup::AddConsumer(absl::string_view name, int64_t now_ms) {
  StreamName key(name.data(), name.size(), StreamName::allocator_type(bytes_));
  Consumer& consumer = *consumers_.try_emplace(std::move(key), bytes_).first;
  consumer.second.seen_ms = now_ms;
  return consumer;
}

uint64_t StreamGroup::RemoveConsumer(absl::string_view name) {
  const auto found = consumers_.find(name);
  if (found == consumers_.end()) return 0;
  const uint64_t pending = found->second.pending.size();
  for (const StreamId id : found->second.pending) pending_.erase(id);
  consumers_.erase(found);
  return pending;
}

const StreamGroup::Pending* StreamGroup::FindPending(StreamId id) const {
  const auto found = pending_.find(id);
  return found == pending_.end() ? nullptr : &found->second;
}

void StreamGroup::Deliver(StreamId id, Consumer& consumer, int64_t delivered_ms, uint64_t deliveries) {
  Pending& pending = pending_.try_emplace(pending_.end(), id)->second;
  if (pending.consumer != &consumer) {
    if (pending.consumer != nullptr) pending.consumer->second.pending.erase(id);
    consumer.second.pending.insert(consumer.second.pending.end(), id);
    pending.consumer = &consumer;
  }
  pending.delivered_ms = delivered_ms;
  pending.deliveries = deliveries;
}

bool StreamGroup::Acknowledge(StreamId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return false;
  found->second.consumer->second.pending.erase(id);
  pending_.erase(found);
  return true;
}

void StreamGroup::CopyFrom(const StreamGroup& other) {
  last_id = other.last_id;
  entries_read = other.entries_read;
  for (const Consumer& consumer : other.consumers_) AddConsumer(ViewOf(consumer.first), consumer.second.seen_ms);
  for (const auto& [id, pending] : other.pending_)
    Deliver(id, *FindConsumer(ViewOf(pending.consumer->first)), pending.delivered_ms, pending.deliveries);
}

}  // namespace idemd::storage
