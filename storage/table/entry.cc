// Makes, resizes and frees entries: one allocation each, a second one for edited strings.
#include "storage/table/entry.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace idemd::storage {

Entry::Entry(absl::string_view key, EntryForm form, size_t value_size, int64_t deadline_ms)
    : deadline_ms_(deadline_ms),
      key_size_(static_cast<uint32_t>(key.size())),
      value_size_(static_cast<uint32_t>(value_size)),
      form_(form) {
  std::memcpy(bytes(), key.data(), key.size());
}

Entry* Entry::Make(absl::string_view key, EntryForm form, size_t value_size, int64_t deadline_ms) {
  const size_t offset = form == EntryForm::kString ? key.size() : (key.size() + 7) & ~size_t{7};
  void* at = ::operator new(sizeof(Entry) + offset + value_size);
  return new (at) Entry(key, form, value_size, deadline_ms);
}

Entry* Entry::MakeBuffer(absl::string_view key, size_t size, size_t capacity, int64_t deadline_ms) {
  Entry* entry = Make(key, EntryForm::kBuffer, sizeof(Buffer), deadline_ms);
  capacity = std::max(size, capacity);
  char* data = static_cast<char*>(std::calloc(std::max<size_t>(capacity, 1), 1));
  if (data == nullptr) throw std::bad_alloc();
  new (&entry->buffer()) Buffer{data, size, capacity};
  return entry;
}

void Entry::ResizeBuffer(size_t size) {
  Buffer& b = buffer();
  if (size > b.capacity) {
    // Doubling while small, then a megabyte at a time, as Redis' strings grow.
    const size_t capacity = size < (1u << 20) ? size * 2 : size + (1u << 20);
    char* data = static_cast<char*>(std::realloc(b.data, capacity));
    if (data == nullptr) throw std::bad_alloc();
    b.data = data;
    b.capacity = capacity;
  }
  if (size > b.size) std::memset(b.data + b.size, 0, size - b.size);
  b.size = size;
}

void Entry::Destroy(Entry* entry) {
  if (entry->form_ == EntryForm::kBuffer) std::free(entry->buffer().data);
  entry->~Entry();
  ::operator delete(entry);
}

size_t Entry::memory_bytes() const {
  size_t bytes = malloc_usable_size(const_cast<Entry*>(this));
  if (form_ == EntryForm::kBuffer) bytes += malloc_usable_size(buffer().data);
  return bytes;
}

}  // namespace idemd::storage
