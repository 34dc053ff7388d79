// What one key costs, computed from its sizes: readers hold views, not entries.
#include "storage/store.h"
#include "storage/table/entry.h"

namespace idemd::storage {
namespace {

// A table is at most about this full, so a key's share of it is a bit more than one pointer.
constexpr size_t kSlotBytes = sizeof(Entry*) * 3 / 2;

size_t Rounded(size_t bytes) { return (bytes + 15) & ~size_t{15}; }  // both allocators' classes for small sizes

}  // namespace

size_t MemoryUsage(absl::string_view key, const KeyView& view) {
  const size_t aligned_key = (key.size() + 7) & ~size_t{7};
  if (view.edited) {
    return Rounded(sizeof(Entry) + aligned_key + sizeof(Buffer)) + Rounded(view.bytes.size()) + kSlotBytes;
  }
  const size_t key_bytes = view.type == ValueType::kRecord ? aligned_key : key.size();
  return Rounded(sizeof(Entry) + key_bytes + view.bytes.size()) + kSlotBytes;
}

}  // namespace idemd::storage
