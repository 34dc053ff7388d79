// What stream commands share: finding a stream, writing its entries, and putting words together for the log.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/context.h"
#include "storage/collection/stream.h"
#include "storage/collection/stream_cursor.h"

namespace idemd::server {

// A stream's key, in the unit that holds its lock and is going to change it.
struct StreamKey {
  storage::Unit& unit;
  storage::DbIndex db;
  const storage::HashedKey& key;

  // Changed() follows.
  storage::Stream& Edit() const { return static_cast<storage::Stream&>(unit.EditCollection(db, key)); }
  storage::Stream& Create() const {
    return static_cast<storage::Stream&>(unit.CreateCollection(db, key, std::make_unique<storage::Stream>()));
  }
  // `command` is for the log; none: nothing that counts has changed.
  void Changed(absl::Span<const absl::string_view> command) const { unit.CollectionChanged(db, key, command); }
  // The same after a change that leaves the entries alone.
  void GroupChanged(absl::Span<const absl::string_view> command = {}) const {
    unit.CollectionChanged(db, key, command, storage::Unit::Told::kLog);
  }
  void Notify(const char* event) const { unit.Notify(storage::EventClass::kStream, event, db, key.bytes); }
};

// The stream at a key, null where nothing is. False: WRONGTYPE was written.
[[nodiscard]] bool FindStream(Context& c, const storage::HashedKey& key, const storage::Stream** stream);
// A stream and a group of it. False, with the error written: one of them is not there, or it is no stream.
[[nodiscard]] bool FindGroup(Context& c, const storage::HashedKey& key, absl::string_view group_name,
                             const storage::Stream** stream, const storage::StreamGroup** group);
// For commands that write and look at their key like those that read: a key that is not there is an event.
inline void LockToRead(Context& c, const storage::HashedKey& key) {
  c.unit.Lock(key);
  c.unit.ReportMisses(true);
}

void ReplyId(protocol::Writer& reply, storage::StreamId id);
// The entry that the cursor is at: its ID and its fields.
void ReplyEntry(protocol::Writer& reply, storage::StreamCursor& cursor);
// The entries of a range, `count` at most (0: all), as an array.
void ReplyRange(protocol::Writer& reply, const storage::Stream& stream, storage::StreamId start, storage::StreamId end,
                uint64_t count, storage::StreamCursor::Direction direction);

// A command for the log, put together on the stack.
class LogWords {
 public:
  LogWords& Add(absl::string_view word) {  // outlives this
    pieces_.push_back({word.data(), word.size()});
    return *this;
  }
  LogWords& Add(storage::StreamId id);
  LogWords& Add(int64_t number);
  // Good until more is added.
  absl::Span<const absl::string_view> words();

 private:
  struct Piece {
    const char* data;  // null: in text_
    size_t size;
  };
  LogWords& AddOwn(absl::string_view text);
  absl::InlinedVector<Piece, 16> pieces_;
  absl::InlinedVector<char, 256> text_;
  absl::InlinedVector<absl::string_view, 16> words_;
};

}  // namespace idemd::server
