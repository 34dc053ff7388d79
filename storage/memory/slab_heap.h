// One shard's heap: objects of one size class side by side in blocks of pages; large ones from
// malloc.
//
//   Allocate ── class ── current block: free list, then what was never used      (the lock's
//   holder; no atomics)
//                  └──── lists of other blocks by how full they are
//   Free ── mask ── block: freed list ──(the first one into it)── heap: touched blocks ── Drain
//   (any thread)
//
// Threads     "Holder" below means: the holder of the lock that the heap belongs to (its shard's).
// Free() and the byte
//             counts: any thread, any time.
// Lifetime    Objects may be freed by other threads long after their shard went away, so a heap is
// not destroyed:
//             Abandon() gives it up, and the last Free() deletes it. Its PagePool outlives it.
// Invariants  [H1] An object lies in one block, at its class's stride; no two live objects overlap;
// 8-aligned.
//             [H2] A block's freed word is not 0 exactly while one notice of it is on the way: its
//             notifier is about to
//                  push it to touched_, or it is there, or Drain() holds it. So it is never pushed
//                  twice.
//             [H3] A block goes back to the pool only when Drain() has counted every object as
//             freed: no Free() touches
//                  it any more, since a Free() that was not the first is over with its exchange,
//                  and that of the first is over with the push that Drain() took.
//             [H4] No object is handed out from a leaving block.
//             [H5] used of a block counts what is allocated, what was freed and not yet drained,
//             and for a current block
//                  what its class holds ready.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "storage/memory/page_pool.h"
#include "storage/memory/size_classes.h"

namespace idemd::storage {

class SlabHeap {
 public:
  // Blocks taken in per call of Allocate() that found its class empty: a flush of millions leaves
  // many, and one insert must not pay for them all.
  static constexpr size_t kDrainBlocks = 32;
  // StartEvacuation() answers false below this, or while less than a quarter is free.
  static constexpr size_t kFreeBytesMin = 128 << 10;
  // Per evacuation: some 16 MiB. Marking costs a cache miss each, under the lock.
  static constexpr uint32_t kLeavingMax = 1024;

  static SlabHeap* Make(PagePool& pool = ProcessPages()) { return new SlabHeap(pool); }
  // Holder, last call: the heap is deleted when its last object is freed, which may be now.
  void Abandon();
  SlabHeap(const SlabHeap&) = delete;
  SlabHeap& operator=(const SlabHeap&) = delete;

  // Holder. Never null: std::bad_alloc. Contents are whatever was there.
  [[nodiscard]] void* Allocate(size_t bytes) {
    if (bytes > kSlabBytesMax) [[unlikely]]
      return AllocateLarge(bytes);
    const uint32_t number = SizeClassOf(bytes);
    SizeClass& c = classes_[number];
    if (c.ready == 0) [[unlikely]]
      Refill(number);
    --c.ready;
    // Holder is the only writer.
    slab_live_bytes_.store(slab_live_bytes_.load(std::memory_order_relaxed) + c.bytes,
                           std::memory_order_relaxed);
    if (c.free != nullptr) {
      FreeObject* const at = c.free;
      c.free = at->next;
      return at;
    }
    char* const at = c.unused;
    c.unused += c.bytes;
    return at;
  }
  // Any thread, any time; `bytes` as asked for. Lock-free.
  static void Free(void* at, size_t bytes);
  // What Allocate(bytes) really takes.
  static size_t ClassBytes(size_t bytes) { return storage::ClassBytes(bytes); }

  // Holder: takes in what was freed since; blocks without objects go back to the pool. At most
  // `blocks_max` blocks; true when there is nothing left to take in. To be called now and then also
  // where nothing is allocated: until then freed bytes count as live.
  bool Drain(size_t blocks_max = SIZE_MAX);

  // Any thread. Sum of ClassBytes() of what is allocated and not yet known to be freed.
  uint64_t live_bytes() const {
    return slab_live_bytes_.load(std::memory_order_relaxed) + large_bytes();
  }
  uint64_t block_bytes() const { return block_bytes_.load(std::memory_order_relaxed); }
  uint64_t large_bytes() const { return large_bytes_.load(std::memory_order_relaxed); }

  // Compaction: the caller moves (allocates anew, copies, frees), the heap chooses.
  //
  // Holder: when more than a quarter of the slab bytes are free, marks the sparsest blocks as
  // leaving, as many as the others have room for. True if any are leaving, also from an earlier
  // call.
  bool StartEvacuation();
  // Holder: whether it lies in such a block. A mask and one load.
  static bool Leaving(const void* at, size_t bytes);
  // Holder: leaving blocks that are not empty become ordinary again.
  void EndEvacuation();

  // Holder: walks every block and stops the process if a count, a list or a free list is wrong.
  void CheckInvariants() const;

 private:
  struct FreeObject {
    FreeObject* next;
  };
  struct Block;
  struct Large;
  // touched_ of a heap that nobody drains any more.
  static Block* Abandoned() { return reinterpret_cast<Block*>(uintptr_t{1}); }

  // Blocks that are not current, by eighths of how full they are; the last one is full.
  static constexpr uint32_t kFillLists = 9;
  static constexpr uint32_t kFullList = kFillLists - 1;
  static constexpr uint32_t kLeavingList = kFillLists;
  static constexpr uint32_t kNoList = kFillLists + 1;  // current blocks

  struct SizeClass {
    FreeObject* free = nullptr;  // of the current block
    char* unused = nullptr;      // where the current block was never used
    uint32_t ready = 0;          // objects in `free` and from `unused` on
    uint32_t bytes = 0;
    Block* current = nullptr;
    uint64_t free_listed = 0;  // objects free in the blocks of `lists`
    std::array<Block*, kFillLists> lists{};
  };

  explicit SlabHeap(PagePool& pool);
  ~SlabHeap();

  void* AllocateLarge(size_t bytes);
  static void FreeLarge(void* at, size_t bytes);
  // Free()'s second half, for the first object freed into a block.
  static void Notify(Block* block);
  void FreeAbandoned(Block* block);
  void DropReferences(uint64_t n);

  void Refill(uint32_t number);
  bool TakeInSome(size_t blocks_max);
  uint64_t TakeIn(Block* block);
  void MakeCurrent(SizeClass& c, Block* block);
  Block* NewBlock(uint32_t number);
  void ReleaseBlock(Block* block);
  // A block that is not current is in one list: by how full it is, or the leaving ones.
  void Link(Block* block, uint32_t list);
  void Unlink(Block* block);
  static uint32_t FillList(const Block& block);
  static Block* BlockOf(const void* at, size_t bytes);
  template <class Visit>
  void ForEachBlock(Visit visit) const;

  std::array<SizeClass, kSizeClasses> classes_;
  Block* leaving_ = nullptr;
  Block* taken_ = nullptr;  // from touched_, not yet taken in
  PagePool& pool_;

  // Writer: holder. Readers: any.
  std::atomic<uint64_t> slab_live_bytes_{0};
  std::atomic<uint64_t> block_bytes_{0};

  // Its own line: other threads write here. Blocks with freed objects; Abandoned() once nobody
  // drains any more. Writers: Notify() pushes, any thread; holder takes all.
  alignas(64) std::atomic<Block*> touched_{nullptr};
  // Writers: any thread. Bytes of large objects.
  std::atomic<uint64_t> large_bytes_{0};
  // Writers: any thread. One for the owner, one per large object, and once abandoned one per
  // object.
  std::atomic<uint64_t> references_{1};
};

}  // namespace idemd::storage
