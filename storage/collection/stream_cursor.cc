// Entries that were deleted are passed over.
#include "storage/collection/stream_cursor.h"

#include <iterator>

namespace idemd::storage {

StreamCursor::StreamCursor(const Stream& stream, StreamId start, StreamId end, Direction direction)
    : nodes_(stream.nodes()), start_(start), end_(end), backward_(direction == Direction::kBackward), node_(nodes_.end()) {
  if (start > end) return;
  if (backward_) {
    node_ = end == StreamId::Max() ? nodes_.end() : nodes_.upper_bound(end);
    if (node_ == nodes_.begin()) {
      node_ = nodes_.end();
      return;
    }
    --node_;
  } else {
    node_ = start == StreamId::Min() ? nodes_.begin() : nodes_.upper_bound(start);
    if (node_ != nodes_.begin()) --node_;
  }
  if (node_ != nodes_.end()) EnterNode();
}

void StreamCursor::EnterNode() {
  in_node_ = true;
  if (backward_) {
    next_ = node().Last();
    return;
  }
  next_ = node().First();
  // Whoever reads what came last begins close to the end of the last node.
  if (start_ <= node_->first || std::next(node_) != nodes_.end()) return;
  next_ = StreamNode::kNone;
  StreamNode::At at = node().Last();
  while (at != StreamNode::kNone) {
    const StreamNode::Entry entry = node().Read(node_->first, at);
    if (!entry.deleted && entry.id < start_) return;
    next_ = at;
    at = node().Previous(entry);
  }
}

bool StreamCursor::NextNode() {
  in_node_ = false;
  if (!backward_) {
    if (++node_ == nodes_.end()) return false;
  } else {
    if (node_ == nodes_.begin()) return false;
    --node_;
  }
  EnterNode();
  return true;
}

bool StreamCursor::Next() {
  if (!in_node_) return false;
  // What is left of the entry before lies between here and the next one.
  if (!backward_ && body_ != StreamNode::kNone) {
    for (uint64_t left = entry_.same_fields ? fields_left_ : 2 * fields_left_; left > 0; --left) body_ = node().After(body_);
    next_ = node().After(body_);
    body_ = StreamNode::kNone;
  }
  while (true) {
    if (next_ == StreamNode::kNone) {
      if (!NextNode()) return false;
      continue;
    }
    entry_ = node().Read(node_->first, next_);
    if (!entry_.deleted) {
      if (entry_.id < start_ && backward_) break;
      if (entry_.id > end_ && !backward_) break;
      if (entry_.id >= start_ && entry_.id <= end_) {
        if (backward_) next_ = node().Previous(entry_);
        body_ = entry_.body;
        fields_left_ = entry_.fields;
        if (entry_.same_fields) name_ = node().FirstName();
        return true;
      }
    }
    next_ = backward_ ? node().Previous(entry_) : node().Next(entry_);
  }
  in_node_ = false;
  return false;
}

void StreamCursor::NextField(absl::string_view* field, absl::string_view* value) {
  StreamNode::At& name = entry_.same_fields ? name_ : body_;
  *field = node().Text(name, field_digits_);
  name = node().After(name);
  *value = node().Text(body_, value_digits_);
  body_ = node().After(body_);
  --fields_left_;
}

}  // namespace idemd::storage
