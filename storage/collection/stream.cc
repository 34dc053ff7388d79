// Entries, and what is counted about them.
#include "storage/collection/stream.h"

#include <malloc.h>

#include <iterator>
#include <utility>

#include "storage/collection/stream_cursor.h"

namespace idemd::storage {

Stream::Stream()
    : own_bytes_(sizeof(Stream)), nodes_(Nodes::allocator_type(&bytes_)), groups_(Groups::allocator_type(&bytes_)) {}

std::unique_ptr<Collection> Stream::Clone() const {
  auto copy = std::make_unique<Stream>();
  for (const auto& [key, node] : nodes_) {
    const StreamNode& copied = copy->nodes_.try_emplace(copy->nodes_.end(), key, node)->second;
    copy->node_bytes_ += copied.memory_bytes();
  }
  for (const auto& [name, group] : groups_)
    copy->AddGroup(ViewOf(name), group.last_id, group.entries_read)->CopyFrom(group);
  copy->length_ = length_;
  copy->entries_added_ = entries_added_;
  copy->first_id_ = first_id_;
  copy->last_id_ = last_id_;
  copy->max_deleted_id_ = max_deleted_id_;
  return copy;
}

StreamId Stream::last_entry_id() const {
  StreamCursor cursor(*this, StreamId::Min(), StreamId::Max(), StreamCursor::Direction::kBackward);
  return cursor.Next() ? cursor.id() : StreamId::Min();
}

bool Stream::Has(StreamId id) const {
  StreamCursor cursor(*this, id, id);
  return cursor.Next();
}

std::optional<StreamId> Stream::NextId(int64_t now_ms) const {
  const auto ms = static_cast<uint64_t>(now_ms);
  if (ms > last_id_.ms) return StreamId{ms, 0};
  StreamId id = last_id_;
  if (!id.Increment()) return std::nullopt;
  return id;
}

void Stream::Append(StreamId id, Words words, const NodeLimits& limits) {
  auto node = nodes_.end();
  if (!nodes_.empty()) {
    node = std::prev(node);
    size_t bytes = node->second.size();
    for (const absl::string_view word : words) bytes += word.size();
    const size_t most = limits.bytes == 0 || limits.bytes > kEntryBytesMax ? kEntryBytesMax : limits.bytes;
    if (bytes >= most || (limits.entries != 0 && node->second.live() + node->second.deleted() >= limits.entries))
      node = nodes_.end();
  }
  if (node == nodes_.end()) {
    node = nodes_.try_emplace(nodes_.end(), id, words);
    node_bytes_ += node->second.memory_bytes();
  }
  node_bytes_ -= node->second.memory_bytes();
  node->second.Append(node->first, id, words);
  node_bytes_ += node->second.memory_bytes();
  if (length_++ == 0) first_id_ = id;
  ++entries_added_;
  last_id_ = id;
}

// Where an entry with this ID would be; end(): nowhere.
Stream::Nodes::iterator Stream::NodeOf(StreamId id) {
  const auto behind = nodes_.upper_bound(id);
  return behind == nodes_.begin() ? nodes_.end() : std::prev(behind);
}

bool Stream::Delete(StreamId id) {
  const auto found = NodeOf(id);
  if (found == nodes_.end()) return false;
  StreamNode& node = found->second;
  StreamNode::Entry entry;
  for (StreamNode::At at = node.First(); at != StreamNode::kNone; at = node.Next(entry)) {
    entry = node.Read(found->first, at);
    if (entry.deleted || entry.id != id) continue;
    node_bytes_ -= node.memory_bytes();
    if (node.live() == 1) {
      nodes_.erase(found);
    } else {
      node.Delete(entry);
      node_bytes_ += node.memory_bytes();
    }
    --length_;
    max_deleted_id_ = std::max(max_deleted_id_, id);
    if (id == first_id_) FindFirstId();
    return true;
  }
  return false;
}

void Stream::FindFirstId() {
  StreamCursor cursor(*this, StreamId::Min(), StreamId::Max());
  first_id_ = cursor.Next() ? cursor.id() : StreamId::Min();
}

void Stream::EraseFrontNode() {
  node_bytes_ -= nodes_.begin()->second.memory_bytes();
  nodes_.erase(nodes_.begin());
}

uint64_t Stream::Trim(const StreamTrim& trim) {
  if (trim.keep == StreamTrim::Keep::kAll) return 0;
  const bool by_length = trim.keep == StreamTrim::Keep::kNewest;
  const uint64_t before = length_;
  while (!nodes_.empty() && !(by_length && length_ <= trim.newest)) {
    const StreamId key = nodes_.begin()->first;
    StreamNode& node = nodes_.begin()->second;
    const uint64_t live = node.live();
    if (trim.most != 0 && before - length_ + live > static_cast<uint64_t>(trim.most)) break;
    const bool all = by_length ? length_ - live >= trim.newest : node.Read(key, node.Last()).id < trim.from;
    if (all) {
      EraseFrontNode();
      length_ -= live;
      continue;
    }
    if (trim.whole_nodes) break;
    node_bytes_ -= node.memory_bytes();
    length_ -= by_length ? node.DeleteFront(key, length_ - trim.newest, StreamId::Max())
                         : node.DeleteFront(key, UINT64_MAX, trim.from);
    node_bytes_ += node.memory_bytes();
    break;  // even if behind those that went only deleted ones were left: as in Redis, so that "~" trims the same later
  }
  if (length_ != before) FindFirstId();
  return before - length_;
}

// --- groups

const StreamGroup* Stream::FindGroup(absl::string_view name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : &found->second;
}

StreamGroup* Stream::FindGroup(absl::string_view name) {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : &found->second;
}

StreamGroup* Stream::AddGroup(absl::string_view name, StreamId last_id, int64_t entries_read) {
  if (FindGroup(name) != nullptr) return nullptr;
  StreamName key(name.data(), name.size(), StreamName::allocator_type(&bytes_));
  StreamGroup& group = groups_.try_emplace(std::move(key), &bytes_).first->second;
  group.last_id = last_id;
  group.entries_read = entries_read;
  return &group;
}

bool Stream::RemoveGroup(absl::string_view name) {
  const auto found = groups_.find(name);
  if (found == groups_.end()) return false;
  groups_.erase(found);
  return true;
}

bool Stream::HasGapFrom(StreamId id) const {
  return length_ != 0 && max_deleted_id_ != StreamId::Min() && first_id_ <= max_deleted_id_ && id <= max_deleted_id_;
}

int64_t Stream::EntriesUpTo(StreamId id) const {
  if (entries_added_ == 0) return 0;
  const auto all = static_cast<int64_t>(entries_added_);
  if (id == last_id_ || (length_ == 0 && id < last_id_)) return all;
  if (id > last_id_) return StreamGroup::kUnknown;
  if (max_deleted_id_ == StreamId::Min() || max_deleted_id_ < first_id_) {
    const int64_t before_first = all - static_cast<int64_t>(length_);
    if (id < first_id_) return before_first;
    if (id == first_id_) return before_first + 1;
  }
  return StreamGroup::kUnknown;
}

void Stream::Advance(StreamGroup& group, StreamId id) const {
  if (group.entries_read != StreamGroup::kUnknown && !HasGapFrom(id)) {
    ++group.entries_read;
  } else if (entries_added_ != 0) {
    group.entries_read = EntriesUpTo(id);
  }
  group.last_id = id;
}

std::optional<int64_t> Stream::Lag(const StreamGroup& group) const {
  if (entries_added_ == 0) return 0;
  const bool counted = group.entries_read != StreamGroup::kUnknown && !HasGapFrom(group.last_id);
  const int64_t read = counted ? group.entries_read : EntriesUpTo(group.last_id);
  if (read == StreamGroup::kUnknown) return std::nullopt;
  return static_cast<int64_t>(entries_added_) - read;
}

}  // namespace idemd::storage
