// Entries go straight from the stream's nodes into the reply.
#include "server/commands/stream_reply.h"

#include <charconv>

#include "absl/strings/str_cat.h"

namespace idemd::server {

using storage::HashedKey;
using storage::KeyView;
using storage::Stream;
using storage::StreamCursor;
using storage::StreamGroup;
using storage::StreamId;

bool FindStream(Context& c, const HashedKey& key, const Stream** stream) {
  const KeyView view = c.unit.Find(c.db(), key);
  *stream = nullptr;
  if (!view) return true;
  if (view.type != storage::ValueType::kStream) {
    c.reply.Error(protocol::errors::kWrongType);
    return false;
  }
  *stream = static_cast<const Stream*>(view.collection);
  return true;
}

bool FindGroup(Context& c, const HashedKey& key, absl::string_view group_name, const Stream** stream,
               const StreamGroup** group) {
  if (!FindStream(c, key, stream)) return false;
  *group = *stream == nullptr ? nullptr : (*stream)->FindGroup(group_name);
  if (*group != nullptr) return true;
  c.reply.Error(absl::StrCat("NOGROUP No such key '", key.bytes, "' or consumer group '", group_name, "'"));
  return false;
}

void ReplyId(protocol::Writer& reply, StreamId id) {
  StreamId::Digits digits;
  reply.Bulk(id.Text(digits));
}

void ReplyEntry(protocol::Writer& reply, StreamCursor& cursor) {
  reply.Array(2);
  ReplyId(reply, cursor.id());
  reply.Array(2 * cursor.fields());
  for (uint64_t left = cursor.fields(); left > 0; --left) {
    absl::string_view field, value;
    cursor.NextField(&field, &value);
    reply.Bulk(field);
    reply.Bulk(value);
  }
}

void ReplyRange(protocol::Writer& reply, const Stream& stream, StreamId start, StreamId end, uint64_t count,
                StreamCursor::Direction direction) {
  const size_t mark = reply.Mark();
  StreamCursor cursor(stream, start, end, direction);
  size_t entries = 0;
  while ((count == 0 || entries < count) && cursor.Next()) {
    ReplyEntry(reply, cursor);
    ++entries;
  }
  reply.InsertArray(mark, entries);
}

LogWords& LogWords::AddOwn(absl::string_view text) {
  text_.insert(text_.end(), text.begin(), text.end());
  pieces_.push_back({nullptr, text.size()});
  return *this;
}

LogWords& LogWords::Add(StreamId id) {
  StreamId::Digits digits;
  return AddOwn(id.Text(digits));
}

LogWords& LogWords::Add(int64_t number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  return AddOwn({digits, static_cast<size_t>(end - digits)});
}

absl::Span<const absl::string_view> LogWords::words() {
  words_.clear();
  size_t at = 0;
  for (const Piece& piece : pieces_) {
    words_.emplace_back(piece.data != nullptr ? piece.data : text_.data() + at, piece.size);
    if (piece.data == nullptr) at += piece.size;
  }
  return words_;
}

}  // namespace idemd::server
