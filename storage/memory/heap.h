// The heap that the rest of storage uses: slabs in the server, malloc under a sanitizer.
//
// Both have one interface, written out in slab_heap.h. Under AddressSanitizer and ThreadSanitizer
// each object is an allocation of its own, so that a use after free is seen.
#pragma once

#include <memory>

#include "storage/memory/malloc_heap.h"
#include "storage/memory/slab_heap.h"

namespace idemd::storage {

#if defined(IDEMD_SANITIZED) || defined(__SANITIZE_THREAD__)
using Heap = MallocHeap;
#else
using Heap = SlabHeap;
#endif

// Owns a heap: abandoned at the end, which leaves live objects valid.
struct AbandonHeap {
  template <class AnyHeap>
  void operator()(AnyHeap* heap) const {
    heap->Abandon();
  }
};
using HeapPtr = std::unique_ptr<Heap, AbandonHeap>;

}  // namespace idemd::storage
