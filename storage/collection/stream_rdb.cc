// Streams in RDB files: nodes and what is counted about the stream, then groups, what is pending there, and whose it is.
//
// Source    redis/src/rdb.c of versions 5.0 to 7.4. Type 15 has no counts but the length; type 21 also says when a consumer
//           last got something, which is not kept here.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/collection/stream.h"

namespace idemd::storage {
namespace {

enum RdbStream : uint8_t { kFirst = 15, kCounted = 19, kActiveTimes = 21 };

void AppendBytes(StreamId id, std::string& out) {
  char bytes[StreamId::kBytes];
  id.ToBytes(bytes);
  out.append(bytes, sizeof(bytes));
}

void AppendId(StreamId id, std::string& out) {
  AppendRdbLength(id.ms, out);
  AppendRdbLength(id.seq, out);
}

void AppendMs(int64_t ms, std::string& out) {
  char bytes[sizeof(ms)];
  std::memcpy(bytes, &ms, sizeof(ms));  // the machines that idemd runs on are little-endian
  out.append(bytes, sizeof(bytes));
}

bool ReadId(RdbScanner& scan, StreamId* id) { return scan.Length(&id->ms) && scan.Length(&id->seq); }

bool ReadIdBytes(RdbScanner& scan, StreamId* id) {
  std::string hold;
  absl::string_view bytes;
  if (!scan.Bytes(StreamId::kBytes, &bytes, hold)) return false;
  *id = StreamId::FromBytes(bytes.data());
  return true;
}

bool Wrong(RdbScanner& scan, absl::string_view why) { return scan.Damaged(scan.input().offset(), why); }

}  // namespace

uint8_t Stream::rdb_type() const { return kCounted; }

void Stream::AppendRdb(RdbStrings strings, std::string& out) const {
  AppendRdbLength(nodes_.size(), out);
  for (const auto& [key, node] : nodes_) {
    char bytes[StreamId::kBytes];
    key.ToBytes(bytes);
    AppendRdbString({bytes, sizeof(bytes)}, RdbStrings::kPlain, out);
    AppendRdbString(node.view(), strings, out);
  }
  AppendRdbLength(length_, out);
  AppendId(last_id_, out);
  AppendId(first_id_, out);
  AppendId(max_deleted_id_, out);
  AppendRdbLength(entries_added_, out);
  AppendRdbLength(groups_.size(), out);
  for (const auto& [name, group] : groups_) {
    AppendRdbString(ViewOf(name), strings, out);
    AppendId(group.last_id, out);
    AppendRdbLength(static_cast<uint64_t>(group.entries_read), out);
    AppendRdbLength(group.pending().size(), out);
    for (const auto& [id, pending] : group.pending()) {
      AppendBytes(id, out);
      AppendMs(pending.delivered_ms, out);
      AppendRdbLength(pending.deliveries, out);
    }
    AppendRdbLength(group.consumers().size(), out);
    for (const auto& [consumer_name, consumer] : group.consumers()) {
      AppendRdbString(ViewOf(consumer_name), strings, out);
      AppendMs(consumer.seen_ms, out);
      AppendRdbLength(consumer.pending.size(), out);
      for (const StreamId id : consumer.pending) AppendBytes(id, out);
    }
  }
}

// Nodes without a live entry are left out: who wrote them forgot to.
bool Stream::ReadNodes(uint64_t count, RdbScanner& scan, Stream& stream) {
  RdbHold key_hold, hold;
  std::optional<StreamId> last_key;
  StreamId last;
  for (; count > 0; --count) {
    absl::string_view key_bytes, bytes;
    if (!scan.String(key_hold, &key_bytes)) return false;
    if (key_bytes.size() != StreamId::kBytes) return Wrong(scan, "the ID of a stream's node was expected");
    const StreamId key = StreamId::FromBytes(key_bytes.data());
    if (!scan.String(hold, &bytes)) return false;
    std::optional<StreamNode> node = StreamNode::FromBytes(key, bytes);
    if (!node) return Wrong(scan, "a node of a stream was expected");
    if (last_key && (key <= *last_key || key <= last)) return Wrong(scan, "the IDs of a stream's entries do not ascend");
    last_key = key;
    const uint64_t live = node->live();
    if (live != 0) {
      StreamNode::Entry entry;
      for (StreamNode::At at = node->Last(); at != StreamNode::kNone; at = node->Previous(entry)) {
        entry = node->Read(key, at);
        if (!entry.deleted) break;
      }
      last = entry.id;
    }
    stream.length_ += live;
    const auto at = stream.nodes_.try_emplace(stream.nodes_.end(), key, *std::move(node));
    stream.node_bytes_ += at->second.memory_bytes();
  }
  stream.last_id_ = last;
  return true;
}

bool Stream::ReadGroup(uint8_t type, RdbScanner& scan, Stream& stream) {
  RdbHold hold;
  absl::string_view name;
  if (!scan.String(hold, &name)) return false;
  StreamGroup* const group = stream.AddGroup(name, StreamId::Min(), StreamGroup::kUnknown);
  if (group == nullptr) return Wrong(scan, "a group is there twice");
  uint64_t read = 0, pending_count = 0, consumers = 0;
  if (!ReadId(scan, &group->last_id)) return false;
  if (type == kFirst) {
    group->entries_read = stream.EntriesUpTo(group->last_id);
  } else {
    if (!scan.Length(&read)) return false;
    group->entries_read = static_cast<int64_t>(read);
  }
  // Whose an entry is comes later.
  absl::btree_map<StreamId, std::pair<int64_t, uint64_t>> unowned;
  if (!scan.Length(&pending_count)) return false;
  for (; pending_count > 0; --pending_count) {
    StreamId id;
    std::pair<int64_t, uint64_t> delivered;
    if (!ReadIdBytes(scan, &id) || !scan.Little(&delivered.first) || !scan.Length(&delivered.second)) return false;
    if (!unowned.emplace(id, delivered).second) return Wrong(scan, "an entry is pending twice");
  }
  if (!scan.Length(&consumers)) return false;
  for (; consumers > 0; --consumers) {
    int64_t seen_ms = 0, active_ms = 0;
    if (!scan.String(hold, &name)) return false;
    if (group->FindConsumer(name) != nullptr) return Wrong(scan, "a consumer is there twice");
    StreamGroup::Consumer& consumer = group->AddConsumer(name, 0);
    if (!scan.Little(&seen_ms) || (type == kActiveTimes && !scan.Little(&active_ms))) return false;
    consumer.second.seen_ms = seen_ms;
    if (!scan.Length(&pending_count)) return false;
    for (; pending_count > 0; --pending_count) {
      StreamId id;
      if (!ReadIdBytes(scan, &id)) return false;
      const auto found = unowned.find(id);
      if (found == unowned.end()) return Wrong(scan, "an entry is pending at a consumer and not in its group, or at two");
      group->Deliver(id, consumer, found->second.first, found->second.second);
      unowned.erase(found);
    }
  }
  return unowned.empty() || Wrong(scan, "an entry is pending at no consumer");
}

std::unique_ptr<Collection> Stream::ReadRdb(uint8_t type, RdbScanner& scan) {
  auto stream = std::make_unique<Stream>();
  uint64_t nodes = 0, length = 0, groups = 0;
  StreamId last, first;
  if (!scan.Length(&nodes) || !ReadNodes(nodes, scan, *stream) || !scan.Length(&length) || !ReadId(scan, &last)) return nullptr;
  if (length != stream->length_ || last < stream->last_id_) {
    Wrong(scan, absl::StrCat("the entries of a stream are not the ", length, " that were told"));
    return nullptr;
  }
  stream->last_id_ = last;
  stream->entries_added_ = length;
  stream->FindFirstId();
  if (type != kFirst && (!ReadId(scan, &first) || !ReadId(scan, &stream->max_deleted_id_) || !scan.Length(&stream->entries_added_)))
    return nullptr;
  if (!scan.Length(&groups)) return nullptr;
  for (; groups > 0; --groups)
    if (!ReadGroup(type, scan, *stream)) return nullptr;
  return stream;
}

}  // namespace idemd::storage
