// Objects from malloc with a prefix that knows the heap.
#include "storage/memory/malloc_heap.h"

#include <cstdlib>
#include <new>

namespace idemd::storage {

struct alignas(kLargePrefixBytes) MallocHeap::Prefix {
  MallocHeap* heap;
  uint64_t serial;
};

void* MallocHeap::Allocate(size_t bytes) {
  void* const at = std::malloc(bytes + sizeof(Prefix));
  if (at == nullptr) throw std::bad_alloc();
  live_bytes_.fetch_add(ClassBytes(bytes), std::memory_order_relaxed);
  references_.fetch_add(1, std::memory_order_relaxed);
  return new (at) Prefix{this, next_serial_++} + 1;
}

void MallocHeap::Free(void* at, size_t bytes) {
  Prefix* const prefix = static_cast<Prefix*>(at) - 1;
  MallocHeap* const heap = prefix->heap;
  std::free(prefix);
  heap->live_bytes_.fetch_sub(ClassBytes(bytes), std::memory_order_relaxed);
  heap->DropReference();
}

void MallocHeap::DropReference() {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

bool MallocHeap::StartEvacuation() {
  if (leaving_below_ != 0) return true;
  const uint64_t live = references_.load(std::memory_order_relaxed) - 1;
  if (live == 0 || next_serial_ - since_ < 64 || live * 4 > (next_serial_ - since_) * 3)
    return false;
  since_ = next_serial_ - live;
  leaving_below_ = next_serial_;
  return true;
}

bool MallocHeap::Leaving(const void* at, size_t /*bytes*/) {
  const Prefix* const prefix = static_cast<const Prefix*>(at) - 1;
  return prefix->serial % 8 == 0 && prefix->serial < prefix->heap->leaving_below_;
}

}  // namespace idemd::storage
