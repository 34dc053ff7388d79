// Walks over a range of a stream's entries, in either direction, field by field.
//
//   StreamCursor cursor(stream, start, end, StreamCursor::Direction::kForward);
//   while (cursor.Next()) {
//     for (uint64_t i = cursor.fields(); i > 0; --i) {
//       cursor.NextField(&field, &value);
//     }
//   }
//
// Threads   one.
// Lifetime  of the stream, unchanged. What NextField() gives is good until it is called again.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/collection/stream.h"

namespace idemd::storage {

class StreamCursor {
 public:
  enum class Direction : uint8_t { kForward, kBackward };

  // Both ends are included.
  StreamCursor(const Stream& stream, StreamId start, StreamId end, Direction direction = Direction::kForward);

  // To the first entry, then to the next one. False: there are no more.
  [[nodiscard]] bool Next();
  StreamId id() const { return entry_.id; }
  uint64_t fields() const { return entry_.fields; }
  // At most fields() times.
  void NextField(absl::string_view* field, absl::string_view* value);

 private:
  const StreamNode& node() const { return node_->second; }
  bool NextNode();
  void EnterNode();

  const Stream::Nodes& nodes_;
  const StreamId start_, end_;
  const bool backward_;
  Stream::Nodes::const_iterator node_;
  StreamNode::At next_ = StreamNode::kNone;  // the entry to be read next
  bool in_node_ = false;
  StreamNode::Entry entry_;
  StreamNode::At name_ = StreamNode::kNone, body_ = StreamNode::kNone;
  uint64_t fields_left_ = 0;
  Listpack::Digits field_digits_, value_digits_;
};

}  // namespace idemd::storage
