// What one key costs, computed from its sizes: readers hold views, not entries.
#include "storage/key/shapes.h"
#include "storage/store.h"
#include "storage/table/entry.h"

namespace idemd::storage {
namespace {

// A segment is four fifths full on average.
constexpr size_t kSlotBytes = 64 / 6 * 5 / 4;
constexpr size_t kInlineBytes = 64 / 3 * 5 / 4;

size_t Rounded(size_t bytes) { return (bytes + 15) & ~size_t{15}; }

}  // namespace

size_t MemoryUsage(absl::string_view text, const KeyView& view) {
  const HashedKey key(text);
  if (view.collection != nullptr)
    return Entry::MemoryBytes(key, EntryForm::kCollection, 0) + view.collection->memory_bytes() + kSlotBytes;
  if (view.edited) return Entry::MemoryBytes(key, EntryForm::kBuffer, 0) + Rounded(view.bytes.size()) + kSlotBytes;
  if (view.type == ValueType::kRecord) {
    const EntryForm form = view.replays != nullptr ? EntryForm::kDone : EntryForm::kRecord;
    return Entry::MemoryBytes(key, form, view.bytes.size()) + kSlotBytes;
  }
  // Inline keys and shaped entries show the value that their shape has.
  const uint32_t shape = Shapes::Instance().Find(key.prefix(), key.tail.kind, view.bytes);
  if (shape != 0 && Shapes::Instance().At(static_cast<uint8_t>(shape)).value.data() == view.bytes.data())
    return view.inlined ? kInlineBytes : Entry::MemoryBytesShaped(key) + kSlotBytes;
  return Entry::MemoryBytes(key, EntryForm::kString, view.bytes.size()) + kSlotBytes;
}

}  // namespace idemd::storage
