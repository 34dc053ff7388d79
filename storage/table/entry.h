// One key out of line with all it holds: a small head, the key, the value, one after another.
//
//   0          8            body
//   +----------+- - - - - -+--------------------------------------+-------------------+-------------+
//   | deadline | counter   | key: size, bytes                     | size of the value | value       |
//   | and form | (4 bytes) |  or: prefix id [size, bytes], tail   |                   |             |
//   +----------+- - - - - -+--------------------------------------+-------------------+-------------+
//
// The first word:
//
//   63                                    16 15     8  7    6      5   4      2 1    0
//   +---------------------------------------+--------+----+------+------+--------+------+
//   | deadline, unix ms; all ones for none  | shape  |form|shaped| wide | kind   | form |
//   +---------------------------------------+--------+----+------+------+--------+------+
//
// shaped  a string whose prefix and value are those of a shape (storage/key/shapes.h): the tail at 8 is all that follows.
//         So a token takes 32 bytes, and a key that was inline keeps its value in one byte when it goes out of line.
// kind    TailKind: of a key with a tail its bytes are kept, and the prefix once for all (storage/key/prefixes.h).
// wide    the deadline is beyond the year 10 889 and has a word of its own at 16; the body begins at 24.
// form    its third bit stands apart.
// counter kString, kBuffer and kCollection: second of the last use. kDone: replays. kRecord has none; its body begins at 8.
// Sizes are varints. A Buffer, or a Holder, lies 8-aligned.
//
// Threads     made and destroyed by the holder of the shard's lock (destroyed through the epochs); what may change after
//             it was published is atomic, everything else is immutable.
// Invariants  [E1] A key, and the value of every form but kBuffer, never change once a slot holds the entry: a new value
//                  is a new entry.
//             [E2] kBuffer is a large string that is edited in place: its bytes are read under the shard's lock only.
//             [E4] kCollection is changed in place: it is looked at under the shard's lock only.
//             [E3] The deadline of a record never changes: its packed form leans on it (storage/record/record.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/string_view.h"
#include "storage/clock.h"
#include "storage/collection/collection.h"
#include "storage/key/hashed_key.h"
#include "storage/key/shapes.h"
#include "storage/memory/heap.h"
#include "storage/table/table.h"

namespace idemd::storage {

enum class EntryForm : uint8_t {
  kString,  // value bytes inline, immutable
  kBuffer,  // value bytes in a Buffer, edited in place under the lock
  kRecord,  // a packed record that is not done
  kDone,    // a packed record that is done; its replay counter moves
  kCollection,  // a hash, list, set, sorted set or stream, changed in place under the lock
};

struct Buffer {
  char* data = nullptr;
  uint64_t size = 0;
  uint64_t capacity = 0;
};

// What a kCollection holds: the collection, which the entry owns, and the bytes it is counted with.
struct Holder {
  Collection* collection = nullptr;
  uint64_t bytes = 0;
};

// Room for the text of a key with a tail.
struct KeyText {
  char bytes[kTailPrefixBytesMax + TailChars(TailKind::kUuid)];
};
absl::string_view TextOf(absl::string_view prefix, TailKind kind, const uint64_t* words, KeyText& room);

class Entry {
 public:
  using Key = HashedKey;

  // Makes an unpublished entry. `value_size` bytes at value_data() are the caller's to fill before it is published.
  static Entry* Make(Heap& heap, const HashedKey& key, EntryForm form, size_t value_size, int64_t deadline_ms);
  // An entry, and what memory_bytes() says of it.
  struct Made {
    Entry* entry;
    size_t memory_bytes;
  };
  static Made MakeWith(Heap& heap, const HashedKey& key, EntryForm form, absl::string_view value, int64_t deadline_ms);
  static Entry* MakeBuffer(Heap& heap, const HashedKey& key, size_t size, size_t capacity, int64_t deadline_ms);
  static Entry* MakeHolder(Heap& heap, const HashedKey& key, std::unique_ptr<Collection> collection, int64_t deadline_ms);
  // A string with the shape's value; the key has a tail, and the shape's prefix and kind. Not for deadlines that are wide.
  static Entry* MakeShaped(Heap& heap, const HashedKey& key, uint32_t shape, int64_t deadline_ms);
  static bool CanBeShaped(const HashedKey& key, size_t value_size, int64_t deadline_ms) {
    return key.tail.kind != TailKind::kNone && value_size <= kShapeValueBytesMax &&
           (deadline_ms == kNoDeadline || static_cast<uint64_t>(deadline_ms) < kNone);
  }
  // The same in another place, for compaction; not for what owns something beside it.
  static Entry* MakeCopy(Heap& heap, const Entry& of);
  // Frees an entry that no slot and no reader holds any more.
  static void Destroy(Entry* entry);
  static void DestroyRetired(void* at) { Destroy(static_cast<Entry*>(at)); }  // for the epochs
  // What such an entry takes, allocator rounding included (without what a Buffer or Holder owns).
  static size_t MemoryBytes(const HashedKey& key, EntryForm form, size_t value_size);
  static size_t MemoryBytesShaped(const HashedKey& key);

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // --- what the table asks
  static const uint64_t* Words(const HashedKey& key) { return TailBytes(key.tail.kind) == 16 ? key.tail.word : nullptr; }
  static bool ShapeIs(uint32_t shape, const HashedKey& key) {
    const Shape& s = Shapes::Instance().At(static_cast<uint8_t>(shape));
    return s.kind == key.tail.kind && s.prefix == key.prefix();
  }
  static uint64_t InlineHash(uint32_t shape, const uint64_t* words);
  bool Is(const HashedKey& key) const;
  uint64_t hash() const;
  int64_t deadline_ms() const {
    const uint64_t word = word_.load(std::memory_order_acquire);
    if ((word & kWide) != 0) [[unlikely]]
      return wide().load(std::memory_order_acquire);
    return word >> kDeadlineAt == kNone ? kNoDeadline : static_cast<int64_t>(word >> kDeadlineAt);
  }

  absl::string_view Text(KeyText& room) const;
  EntryForm form() const { return FormOf(word_.load(std::memory_order_relaxed)); }
  bool is_record() const { return form() == EntryForm::kRecord || form() == EntryForm::kDone; }
  // Whether it is changed in place and so looked at under the lock only, and owns something beside it: kBuffer, kCollection.
  bool in_place() const { return form() == EntryForm::kBuffer || form() == EntryForm::kCollection; }
  // [E1] for kString and records; for kBuffer only under the lock [E2]. Not for kCollection.
  absl::string_view value() const;
  char* value_data() { return const_cast<char*>(value().data()); }
  Buffer& buffer() { return const_cast<Buffer&>(static_cast<const Entry*>(this)->buffer()); }
  const Buffer& buffer() const;
  Holder& holder() { return const_cast<Holder&>(static_cast<const Entry*>(this)->holder()); }
  const Holder& holder() const;
  // Grows (zero-filled) or keeps a kBuffer's size; holder of the shard's lock. After ReserveBuffer() no memory is needed.
  void ResizeBuffer(size_t size);
  void ReserveBuffer(size_t size);

  // Holder of the shard's lock. False: it takes another entry (a record, or a deadline beyond what this one can hold).
  [[nodiscard]] bool set_deadline_ms(int64_t at);

  // When it was used last, or how often (KeyView::access); 0 where it is not kept. Stored only when it changed, so hot keys
  // stay read-only lines.
  uint32_t access() const { return keeps_access() ? counter().load(std::memory_order_relaxed) : 0; }
  void touch(uint32_t access) {
    if (keeps_access() && counter().load(std::memory_order_relaxed) != access)
      counter().store(access, std::memory_order_relaxed);
  }
  // kDone: replies of the stored answer since it was stored or loaded.
  std::atomic<uint32_t>* replays() const { return form() == EntryForm::kDone ? &counter() : nullptr; }

  // Bytes of this entry as allocated (without what it owns), and with the allocator's rounding and all.
  size_t size_bytes() const;
  size_t memory_bytes() const;

 private:
  static constexpr uint64_t kWide = 32, kShaped = 64, kNone = (uint64_t{1} << 48) - 1;
  static EntryForm FormOf(uint64_t word) { return static_cast<EntryForm>((word & 3) | (word >> 5 & 4)); }
  static uint64_t WordOf(EntryForm form) {
    return (static_cast<uint64_t>(form) & 3) | (static_cast<uint64_t>(form) & 4) << 5;
  }
  static constexpr uint32_t kKindAt = 2, kShapeAt = 8, kDeadlineAt = 16;
  static constexpr size_t kWordBytes = 8, kCounterBytes = 4, kWideBodyAt = 24;
  static constexpr uint8_t kLiteralPrefix = 255;

  struct Layout {
    size_t key_at;
    size_t value_at;
    size_t bytes;
    uint8_t prefix_id;
  };
  static Layout LayoutOf(const HashedKey& key, EntryForm form, size_t value_size, bool wide, bool sight_prefix);
  static Entry* Begin(Heap& heap, const HashedKey& key, EntryForm form, size_t value_size, int64_t deadline_ms, Layout* layout);

  explicit Entry(uint64_t word) : word_(word) {}
  ~Entry() = default;
  const char* bytes() const { return reinterpret_cast<const char*>(this); }
  bool shaped() const { return (word_.load(std::memory_order_relaxed) & kShaped) != 0; }
  const Shape& shape() const {
    return Shapes::Instance().At(static_cast<uint8_t>(word_.load(std::memory_order_relaxed) >> kShapeAt));
  }
  bool keeps_access() const { return !is_record() && !shaped(); }
  TailKind kind() const { return static_cast<TailKind>(word_.load(std::memory_order_relaxed) >> kKindAt & 7); }
  size_t key_at() const {
    const uint64_t word = word_.load(std::memory_order_relaxed);
    if ((word & kWide) != 0) return kWideBodyAt;
    return FormOf(word) == EntryForm::kRecord ? kWordBytes : kWordBytes + kCounterBytes;
  }
  std::atomic<uint32_t>& counter() const {
    return *reinterpret_cast<std::atomic<uint32_t>*>(const_cast<char*>(bytes()) + kWordBytes);
  }
  std::atomic<int64_t>& wide() const {
    return *reinterpret_cast<std::atomic<int64_t>*>(const_cast<char*>(bytes()) + 16);
  }
  // Behind the key.
  const char* AfterKey() const;
  absl::string_view Prefix(const char** at) const;

  std::atomic<uint64_t> word_;
};
static_assert(sizeof(Entry) == 8, "the rest of an entry follows its first word");

using Table = BasicTable<Entry, RealSync>;

// The text of a key in a table; in the entry, or written into `room`.
absl::string_view KeyIn(const Item<Entry>& item, KeyText& room);

}  // namespace idemd::storage
