// The interface of SlabHeap on top of malloc, for sanitizers: each object is an allocation of its
// own.
//
// Nothing is ever sparse here, but moving has to be seen by sanitizers too: StartEvacuation() makes
// every eighth object leave once a quarter of those allocated before has been freed.
//
// Threads, lifetime as slab_heap.h says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "storage/memory/page_pool.h"
#include "storage/memory/size_classes.h"

namespace idemd::storage {

class MallocHeap {
 public:
  static MallocHeap* Make(PagePool& = ProcessPages()) { return new MallocHeap(); }
  void Abandon() { DropReference(); }
  MallocHeap(const MallocHeap&) = delete;
  MallocHeap& operator=(const MallocHeap&) = delete;

  [[nodiscard]] void* Allocate(size_t bytes);
  static void Free(void* at, size_t bytes);
  static size_t ClassBytes(size_t bytes) { return storage::ClassBytes(bytes); }
  bool Drain(size_t /*blocks_max*/ = SIZE_MAX) { return true; }

  uint64_t live_bytes() const { return live_bytes_.load(std::memory_order_relaxed); }
  uint64_t block_bytes() const { return 0; }
  uint64_t large_bytes() const { return live_bytes(); }

  bool StartEvacuation();
  static bool Leaving(const void* at, size_t bytes);
  void EndEvacuation() { leaving_below_ = 0; }
  void CheckInvariants() const {}

 private:
  struct Prefix;
  MallocHeap() = default;
  ~MallocHeap() = default;
  void DropReference();

  // Holder.
  uint64_t next_serial_ = 1;
  uint64_t since_ =
      1;  // serials from here on: what was live at the last evacuation, and what came since
  uint64_t leaving_below_ = 0;  // objects with lower serials that are multiples of 8 are leaving
  // Writers and readers: any thread.
  std::atomic<uint64_t> live_bytes_{0};
  std::atomic<uint64_t> references_{1};  // one for the owner and one per object
};

}  // namespace idemd::storage
