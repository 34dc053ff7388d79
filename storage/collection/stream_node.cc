// Reading, appending and marking entries.
#include "storage/collection/stream_node.h"

#include <utility>

#include "absl/container/inlined_vector.h"

namespace idemd::storage {
namespace {

using Elements = absl::InlinedVector<Listpack::Value, 24>;

Listpack::Value NumberValue(uint64_t number) {
  Listpack::Value value;
  value.number = static_cast<int64_t>(number);
  value.is_number = true;
  return value;
}

Listpack::Value TextValue(absl::string_view text) {
  Listpack::Value value;
  value.text = text;
  return value;
}

}  // namespace

StreamNode::StreamNode(Words words) {
  Elements elements{NumberValue(0), NumberValue(0), NumberValue(words.size() / 2)};
  for (size_t i = 0; i < words.size(); i += 2) elements.push_back(TextValue(words[i]));
  elements.push_back(NumberValue(0));
  pack_.AppendAll(elements);
}

std::optional<StreamNode> StreamNode::FromBytes(StreamId key, absl::string_view bytes) {
  std::optional<Listpack> pack = Listpack::FromBytes(bytes);
  if (!pack) return std::nullopt;
  StreamNode node(*std::move(pack));
  if (!node.IsSound(key)) return std::nullopt;
  return node;
}

// Every count is compared with what is there before it is believed.
bool StreamNode::IsSound(StreamId key) const {
  At at = pack_.First();
  const auto number = [&](int64_t* value) {
    if (at == kNone) return false;
    const Listpack::Value read = pack_.Get(at);
    at = pack_.Next(at);
    *value = read.number;
    return read.is_number;
  };
  const auto skip = [&](int64_t elements) {
    for (; elements > 0 && at != kNone; --elements) at = pack_.Next(at);
    return elements == 0;
  };
  int64_t live = 0, deleted = 0, names = 0, end = 0;
  if (!number(&live) || !number(&deleted) || !number(&names) || !skip(names) || !number(&end) || end != 0) return false;
  std::optional<StreamId> before;
  while (at != kNone) {
    int64_t flags = 0, ms = 0, seq = 0, fields = names, count = 0;
    if (!number(&flags) || !number(&ms) || !number(&seq)) return false;
    const bool same = (static_cast<uint64_t>(flags) & kSameFields) != 0;
    if (!same && (!number(&fields) || fields < 0 || fields > INT32_MAX)) return false;
    if (!skip(same ? fields : 2 * fields) || !number(&count)) return false;
    if (count != (same ? 3 + fields : 4 + 2 * fields)) return false;
    if ((static_cast<uint64_t>(flags) & kDeleted) != 0) {
      --deleted;
      continue;
    }
    --live;
    const StreamId id{key.ms + static_cast<uint64_t>(ms), key.seq + static_cast<uint64_t>(seq)};
    if (id < key || (before && id <= *before)) return false;
    before = id;
  }
  return live == 0 && deleted == 0;
}

StreamNode::At StreamNode::First() const {
  At at = FirstName();
  for (uint64_t names = Names(); names > 0; --names) at = pack_.Next(at);
  return pack_.Next(at);  // behind the zero
}

// `at` is the last element of an entry, or of the master entry.
StreamNode::At StreamNode::BeforeCount(At at) const {
  uint64_t elements = Number(at);
  if (elements == 0) return kNone;
  for (; elements > 0; --elements) at = pack_.Previous(at);
  return at;
}

StreamNode::At StreamNode::Next(const Entry& entry) const {
  At at = entry.body;
  for (uint64_t left = entry.same_fields ? entry.fields : 2 * entry.fields; left > 0; --left) at = pack_.Next(at);
  return pack_.Next(at);  // behind the count
}

StreamNode::Entry StreamNode::Read(StreamId key, At at) const {
  Entry entry;
  entry.at = at;
  const uint64_t flags = Number(at);
  entry.deleted = (flags & kDeleted) != 0;
  entry.same_fields = (flags & kSameFields) != 0;
  at = pack_.Next(at);
  entry.id.ms = key.ms + Number(at);
  at = pack_.Next(at);
  entry.id.seq = key.seq + Number(at);
  at = pack_.Next(at);
  if (entry.same_fields) {
    entry.fields = Names();
  } else {
    entry.fields = Number(at);
    at = pack_.Next(at);
  }
  entry.body = at;
  return entry;
}

bool StreamNode::HasNames(Words words) const {
  if (Names() != words.size() / 2) return false;
  At at = FirstName();
  for (size_t i = 0; i < words.size(); i += 2, at = pack_.Next(at))
    if (!pack_.Equals(at, words[i])) return false;
  return true;
}

void StreamNode::Append(StreamId key, StreamId id, Words words) {
  const bool same = HasNames(words);
  Elements elements{NumberValue(same ? kSameFields : 0), NumberValue(id.ms - key.ms), NumberValue(id.seq - key.seq)};
  if (!same) elements.push_back(NumberValue(words.size() / 2));
  for (size_t i = 0; i < words.size(); i += 2) {
    if (!same) elements.push_back(TextValue(words[i]));
    elements.push_back(TextValue(words[i + 1]));
  }
  elements.push_back(NumberValue(elements.size()));
  CountsChange(1, 0);
  pack_.AppendAll(elements);
}

// The flags take as much room as before: no position changes.
void StreamNode::Mark(const Entry& entry) {
  Listpack::Digits room;
  const uint64_t flags = kDeleted | (entry.same_fields ? kSameFields : 0);
  room.bytes[0] = static_cast<char>('0' + flags);
  pack_.Replace(entry.at, {room.bytes, 1});
}

void StreamNode::CountsChange(int64_t live, int64_t deleted) {
  At at = pack_.First();
  for (const int64_t change : {live, deleted}) {
    Listpack::Digits room;
    const int64_t count = pack_.Get(at).number + change;
    const auto end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), count).ptr;
    if (change != 0) pack_.Replace(at, {room.bytes, static_cast<size_t>(end - room.bytes)});
    at = pack_.Next(at);
  }
}

void StreamNode::Delete(const Entry& entry) {
  Mark(entry);
  CountsChange(-1, 1);
}

uint64_t StreamNode::DeleteFront(StreamId key, uint64_t most, StreamId below) {
  uint64_t marked = 0;
  for (At at = First(); at != kNone && marked < most;) {
    const Entry entry = Read(key, at);
    if (entry.id >= below) break;
    at = Next(entry);
    if (entry.deleted) continue;
    Mark(entry);
    ++marked;
  }
  CountsChange(-static_cast<int64_t>(marked), static_cast<int64_t>(marked));
  return marked;
}

}  // namespace idemd::storage
