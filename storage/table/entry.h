// One key with what it holds, as the table points to it.
//
//   0        8        16       20       24       28       29      30 ...
//   deadline | lsn    | access | ksize  | vsize  | form   | -     | key bytes | value bytes (or a Buffer*)
//
// Threads     Readers inside an epoch guard may read everything; a writer (the shard's lock) may store to the three
//             atomics and, for kBuffer, change the buffer.
// Invariants  [E1] Key, form and (but for kBuffer) value bytes never change once a slot holds the entry: a new value is
//                  a new entry.
//             [E2] kBuffer is a large string that is edited in place: its bytes are read under the shard's lock only.
//             [E3] deadline_ms is the one place of the deadline; kNoDeadline when there is none.
//             [E4] lsn is kLsnPending from before a change is visible until the change is in the log: a lock-free
//                  reader that sees it takes the lock instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "storage/effect.h"
#include "storage/hashed_key.h"

namespace idemd::storage {

inline constexpr Lsn kLsnPending = UINT64_MAX;

enum class EntryForm : uint8_t {
  kString,  // value bytes inline, immutable
  kBuffer,  // value bytes in a Buffer, edited in place under the lock
  kRecord,  // a packed record (storage/record/packed.h) inline; its replay counter is the only thing that moves
};

struct Buffer {
  char* data = nullptr;
  uint64_t size = 0;
  uint64_t capacity = 0;
};

class Entry {
 public:
  // Makes an unpublished entry. `value_size` bytes at value_data() are the caller's to fill before it is published.
  static Entry* Make(absl::string_view key, EntryForm form, size_t value_size, int64_t deadline_ms);
  static Entry* MakeBuffer(absl::string_view key, size_t size, size_t capacity, int64_t deadline_ms);
  // Frees an entry that no slot and no reader holds any more.
  static void Destroy(Entry* entry);

  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  absl::string_view key() const { return {bytes(), key_size_}; }
  EntryForm form() const { return form_; }
  // [E1] for kString and kRecord; for kBuffer only under the lock [E2].
  absl::string_view value() const {
    if (form_ == EntryForm::kBuffer) return {buffer().data, static_cast<size_t>(buffer().size)};
    return {bytes() + value_offset(), value_size_};
  }
  char* value_data() { return bytes() + value_offset(); }
  Buffer& buffer() { return *reinterpret_cast<Buffer*>(bytes() + value_offset()); }
  const Buffer& buffer() const { return *reinterpret_cast<const Buffer*>(bytes() + value_offset()); }
  // Grows (zero-filled) or keeps a kBuffer's size; holder of the shard's lock.
  void ResizeBuffer(size_t size);

  int64_t deadline_ms() const { return deadline_ms_.load(std::memory_order_acquire); }
  void set_deadline_ms(int64_t at) { deadline_ms_.store(at, std::memory_order_release); }
  bool expired(int64_t now_ms) const { return deadline_ms() <= now_ms; }
  Lsn lsn() const { return lsn_.load(std::memory_order_acquire); }
  void set_lsn(Lsn lsn) { lsn_.store(lsn, std::memory_order_release); }

  // Seconds of the last use, for OBJECT IDLETIME. Stored only when it changed, so hot keys stay read-only lines.
  uint32_t access_s() const { return access_s_.load(std::memory_order_relaxed); }
  void touch(uint32_t now_s) {
    if (access_s_.load(std::memory_order_relaxed) != now_s)
      access_s_.store(now_s, std::memory_order_relaxed);
  }
  void set_access_s(uint32_t s) { access_s_.store(s, std::memory_order_relaxed); }

  // Heap bytes of this entry, allocator rounding included where it is known.
  size_t memory_bytes() const;

 private:
  Entry(absl::string_view key, EntryForm form, size_t value_size, int64_t deadline_ms);
  ~Entry() = default;
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  const char* bytes() const { return reinterpret_cast<const char*>(this + 1); }
  // Values of kBuffer and kRecord hold words and begin 8-aligned; plain strings follow the key at once.
  size_t value_offset() const {
    return form_ == EntryForm::kString ? key_size_ : (key_size_ + size_t{7}) & ~size_t{7};
  }

  std::atomic<int64_t> deadline_ms_;
  std::atomic<Lsn> lsn_{kLsnPending};
  std::atomic<uint32_t> access_s_{0};
  uint32_t key_size_;
  uint32_t value_size_;
  EntryForm form_;
};

inline uint64_t EntryHash(const Entry& entry) { return HashedKey(entry.key()).hash; }

static_assert(sizeof(Entry) == 32, "entry header is four words");

}  // namespace idemd::storage
