// Makes, reads, resizes and frees entries: one allocation each, a second one for edited strings.
#include "storage/table/entry.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "storage/key/prefixes.h"
#include "storage/varint.h"

namespace idemd::storage {
namespace {

size_t Aligned(size_t at) { return (at + 7) & ~size_t{7}; }

}  // namespace

absl::string_view TextOf(absl::string_view prefix, TailKind kind, const uint64_t* words, KeyText& room) {
  std::memcpy(room.bytes, prefix.data(), prefix.size());
  WriteTail(kind, words, room.bytes + prefix.size());
  return {room.bytes, prefix.size() + TailChars(kind)};
}

absl::string_view KeyIn(const Item<Entry>& item, KeyText& room) {
  if (item.entry != nullptr) return item.entry->Text(room);
  const Shape& shape = Shapes::Instance().At(static_cast<uint8_t>(item.shape));
  return TextOf(shape.prefix, shape.kind, item.words, room);
}

// --- making

Entry::Layout Entry::LayoutOf(const HashedKey& key, EntryForm form, size_t value_size, bool wide, bool sight_prefix) {
  Layout layout{};
  layout.key_at = wide ? kWideBodyAt : form == EntryForm::kRecord ? kWordBytes : kWordBytes + kCounterBytes;
  size_t at = layout.key_at;
  if (key.tail.kind == TailKind::kNone) {
    at += VarintBytes(key.bytes.size()) + key.bytes.size();
  } else {
    Prefixes& prefixes = Prefixes::Instance();
    layout.prefix_id = sight_prefix ? prefixes.Id(key.prefix()) : prefixes.Find(key.prefix());
    if (layout.prefix_id == 0) {
      layout.prefix_id = kLiteralPrefix;
      at += 1 + key.tail.prefix_bytes;
    }
    at += 1 + TailBytes(key.tail.kind);
  }
  if (form == EntryForm::kBuffer || form == EntryForm::kCollection) {
    layout.value_at = Aligned(at);
    layout.bytes = layout.value_at + (form == EntryForm::kBuffer ? sizeof(Buffer) : sizeof(Holder));
  } else {
    layout.value_at = at + VarintBytes(value_size);
    layout.bytes = layout.value_at + value_size;
  }
  return layout;
}

// All but the value.
Entry* Entry::Begin(Heap& heap, const HashedKey& key, EntryForm form, size_t value_size, int64_t deadline_ms, Layout* out) {
  const bool wide = deadline_ms != kNoDeadline && static_cast<uint64_t>(deadline_ms) >= kNone;
  const Layout layout = *out = LayoutOf(key, form, value_size, wide, true);
  const uint64_t deadline = deadline_ms == kNoDeadline || wide ? kNone : static_cast<uint64_t>(deadline_ms);
  const uint64_t word = deadline << kDeadlineAt | (wide ? kWide : 0) | static_cast<uint64_t>(key.tail.kind) << kKindAt |
                        WordOf(form);
  auto* const entry = new (heap.Allocate(layout.bytes)) Entry(word);
  if (form != EntryForm::kRecord) new (&entry->counter()) std::atomic<uint32_t>(0);
  if (wide) new (&entry->wide()) std::atomic<int64_t>(deadline_ms);
  char* at = reinterpret_cast<char*>(entry) + layout.key_at;
  if (key.tail.kind == TailKind::kNone) {
    at = WriteVarint(at, key.bytes.size());
    std::memcpy(at, key.bytes.data(), key.bytes.size());
    at += key.bytes.size();
  } else {
    *at++ = static_cast<char>(layout.prefix_id);
    if (layout.prefix_id == kLiteralPrefix) {
      *at++ = static_cast<char>(key.tail.prefix_bytes);
      std::memcpy(at, key.bytes.data(), key.tail.prefix_bytes);
      at += key.tail.prefix_bytes;
    }
    std::memcpy(at, key.tail.word, TailBytes(key.tail.kind));
    at += TailBytes(key.tail.kind);
  }
  if (form != EntryForm::kBuffer && form != EntryForm::kCollection) WriteVarint(at, value_size);
  return entry;
}

Entry* Entry::Make(Heap& heap, const HashedKey& key, EntryForm form, size_t value_size, int64_t deadline_ms) {
  Layout layout;
  return Begin(heap, key, form, value_size, deadline_ms, &layout);
}

Entry::Made Entry::MakeWith(Heap& heap, const HashedKey& key, EntryForm form, absl::string_view value, int64_t deadline_ms) {
  Layout layout;
  Entry* const entry = Begin(heap, key, form, value.size(), deadline_ms, &layout);
  std::memcpy(reinterpret_cast<char*>(entry) + layout.value_at, value.data(), value.size());
  return {entry, Heap::ClassBytes(layout.bytes)};
}

Entry* Entry::MakeShaped(Heap& heap, const HashedKey& key, uint32_t shape, int64_t deadline_ms) {
  const size_t tail_bytes = TailBytes(key.tail.kind);
  const uint64_t deadline = deadline_ms == kNoDeadline ? kNone : static_cast<uint64_t>(deadline_ms);
  const uint64_t word = deadline << kDeadlineAt | uint64_t{shape} << kShapeAt | kShaped |
                        static_cast<uint64_t>(key.tail.kind) << kKindAt | WordOf(EntryForm::kString);
  auto* const entry = new (heap.Allocate(kWordBytes + tail_bytes)) Entry(word);
  std::memcpy(reinterpret_cast<char*>(entry) + kWordBytes, key.tail.word, tail_bytes);
  return entry;
}

Entry* Entry::MakeBuffer(Heap& heap, const HashedKey& key, size_t size, size_t capacity, int64_t deadline_ms) {
  capacity = std::max(size, capacity);
  std::unique_ptr<char, decltype(&std::free)> data(static_cast<char*>(std::calloc(std::max<size_t>(capacity, 1), 1)), &std::free);
  if (data == nullptr) throw std::bad_alloc();
  Entry* entry = Make(heap, key, EntryForm::kBuffer, sizeof(Buffer), deadline_ms);
  new (&entry->buffer()) Buffer{data.release(), size, capacity};
  return entry;
}

Entry* Entry::MakeHolder(Heap& heap, const HashedKey& key, std::unique_ptr<Collection> collection, int64_t deadline_ms) {
  Entry* entry = Make(heap, key, EntryForm::kCollection, sizeof(Holder), deadline_ms);
  const size_t bytes = collection->memory_bytes();
  new (&entry->holder()) Holder{collection.release(), bytes};
  return entry;
}

Entry* Entry::MakeCopy(Heap& heap, const Entry& of) {
  const size_t size = of.size_bytes();
  void* const at = heap.Allocate(size);
  const size_t body = of.shaped() ? kWordBytes : of.key_at();
  auto* const entry = new (at) Entry(of.word_.load(std::memory_order_relaxed));
  if (of.form() != EntryForm::kRecord && !of.shaped())
    new (&entry->counter()) std::atomic<uint32_t>(of.counter().load(std::memory_order_relaxed));
  if (body == kWideBodyAt) new (&entry->wide()) std::atomic<int64_t>(of.wide().load(std::memory_order_relaxed));
  std::memcpy(static_cast<char*>(at) + body, of.bytes() + body, size - body);
  return entry;
}

void Entry::ReserveBuffer(size_t size) {
  Buffer& b = buffer();
  if (size <= b.capacity) return;
  // Doubling while small, then a megabyte at a time, as Redis' strings grow.
  const size_t capacity = size < (1u << 20) ? size * 2 : size + (1u << 20);
  char* data = static_cast<char*>(std::realloc(b.data, capacity));
  if (data == nullptr) throw std::bad_alloc();
  b.data = data;
  b.capacity = capacity;
}

void Entry::ResizeBuffer(size_t size) {
  ReserveBuffer(size);
  Buffer& b = buffer();
  if (size > b.size) std::memset(b.data + b.size, 0, size - b.size);
  b.size = size;
}

void Entry::Destroy(Entry* entry) {
  if (entry->form() == EntryForm::kBuffer) std::free(entry->buffer().data);
  if (entry->form() == EntryForm::kCollection) delete entry->holder().collection;
  const size_t size = entry->size_bytes();
  entry->~Entry();
  Heap::Free(entry, size);
}

// --- reading

uint64_t Entry::InlineHash(uint32_t shape, const uint64_t* words) {
  const Shape& s = Shapes::Instance().At(static_cast<uint8_t>(shape));
  return HashOfTail(s.kind, words, s.prefix_hash);
}

absl::string_view Entry::Prefix(const char** at) const {
  const auto id = static_cast<uint8_t>(*(*at)++);
  if (id != kLiteralPrefix) return Prefixes::Instance().At(id);
  const auto size = static_cast<uint8_t>(*(*at)++);
  const absl::string_view prefix(*at, size);
  *at += size;
  return prefix;
}

// Whether these are the bytes of a tail, of 16 or 24: compared as words, without a call.
static bool IsTail(const char* at, const Tail& tail) {
  uint64_t word[kTailWords];
  std::memcpy(word, at, 16);
  if (((word[0] ^ tail.word[0]) | (word[1] ^ tail.word[1])) != 0) return false;
  if (tail.kind != TailKind::kToken) return true;
  std::memcpy(&word[2], at + 16, 8);
  return word[2] == tail.word[2];
}

bool Entry::Is(const HashedKey& key) const {
  if (kind() != key.tail.kind) return false;
  if (shaped()) return IsTail(bytes() + kWordBytes, key.tail) && shape().prefix == key.prefix();
  const char* at = bytes() + key_at();
  if (key.tail.kind == TailKind::kNone) {
    const size_t size = ReadVarint(&at);
    return size == key.bytes.size() && std::memcmp(at, key.bytes.data(), size) == 0;
  }
  const absl::string_view prefix = Prefix(&at);
  return IsTail(at, key.tail) && prefix == key.prefix();
}

uint64_t Entry::hash() const {
  if (shaped()) {
    uint64_t tail[kTailWords] = {};
    std::memcpy(tail, bytes() + kWordBytes, TailBytes(kind()));
    return HashOfTail(kind(), tail, shape().prefix_hash);
  }
  const char* at = bytes() + key_at();
  if (kind() == TailKind::kNone) {
    const size_t size = ReadVarint(&at);
    return TextHash({at, size});
  }
  const auto id = static_cast<uint8_t>(*at);
  const absl::string_view prefix = Prefix(&at);
  uint64_t words[kTailWords] = {};
  std::memcpy(words, at, TailBytes(kind()));
  return HashOfTail(kind(), words, id != kLiteralPrefix ? Prefixes::Instance().HashAt(id) : PrefixHash(prefix));
}

absl::string_view Entry::Text(KeyText& room) const {
  if (shaped()) {
    uint64_t tail[kTailWords] = {};
    std::memcpy(tail, bytes() + kWordBytes, TailBytes(kind()));
    return TextOf(shape().prefix, kind(), tail, room);
  }
  const char* at = bytes() + key_at();
  if (kind() == TailKind::kNone) {
    const size_t size = ReadVarint(&at);
    return {at, size};
  }
  const absl::string_view prefix = Prefix(&at);
  uint64_t words[kTailWords] = {};
  std::memcpy(words, at, TailBytes(kind()));
  return TextOf(prefix, kind(), words, room);
}

const char* Entry::AfterKey() const {
  const char* at = bytes() + key_at();
  if (kind() == TailKind::kNone) {
    const size_t size = ReadVarint(&at);
    return at + size;
  }
  Prefix(&at);
  return at + TailBytes(kind());
}

absl::string_view Entry::value() const {
  if (shaped()) return shape().value;
  if (form() == EntryForm::kBuffer) return {buffer().data, static_cast<size_t>(buffer().size)};
  const char* at = AfterKey();
  const size_t size = ReadVarint(&at);
  return {at, size};
}

const Buffer& Entry::buffer() const {
  return *reinterpret_cast<const Buffer*>(bytes() + Aligned(static_cast<size_t>(AfterKey() - bytes())));
}

const Holder& Entry::holder() const {
  return *reinterpret_cast<const Holder*>(bytes() + Aligned(static_cast<size_t>(AfterKey() - bytes())));
}

bool Entry::set_deadline_ms(int64_t at) {
  if (is_record()) return false;
  const uint64_t word = word_.load(std::memory_order_relaxed);
  if ((word & kWide) != 0) {
    wide().store(at, std::memory_order_release);
    return true;
  }
  if (at != kNoDeadline && static_cast<uint64_t>(at) >= kNone) return false;
  const uint64_t deadline = at == kNoDeadline ? kNone : static_cast<uint64_t>(at);
  word_.store((word & ((uint64_t{1} << kDeadlineAt) - 1)) | deadline << kDeadlineAt, std::memory_order_release);
  return true;
}

size_t Entry::size_bytes() const {
  if (shaped()) return kWordBytes + TailBytes(kind());
  if (form() == EntryForm::kBuffer)
    return static_cast<size_t>(reinterpret_cast<const char*>(&buffer()) - bytes()) + sizeof(Buffer);
  if (form() == EntryForm::kCollection)
    return static_cast<size_t>(reinterpret_cast<const char*>(&holder()) - bytes()) + sizeof(Holder);
  const absl::string_view v = value();
  return static_cast<size_t>(v.data() - bytes()) + v.size();
}

size_t Entry::memory_bytes() const {
  size_t size = Heap::ClassBytes(size_bytes());
  if (form() == EntryForm::kBuffer) size += malloc_usable_size(buffer().data);
  if (form() == EntryForm::kCollection) size += holder().bytes;
  return size;
}

size_t Entry::MemoryBytesShaped(const HashedKey& key) { return Heap::ClassBytes(kWordBytes + TailBytes(key.tail.kind)); }

size_t Entry::MemoryBytes(const HashedKey& key, EntryForm form, size_t value_size) {
  return Heap::ClassBytes(LayoutOf(key, form, value_size, false, false).bytes);
}

}  // namespace idemd::storage
