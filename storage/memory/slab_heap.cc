// Blocks: refilling a class, taking in what others freed, choosing what to move.
#include "storage/memory/slab_heap.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "storage/check.h"

namespace idemd::storage {

// At the start of a span of SizeClassSpec::block_bytes, and at a multiple of that.
//
//   0        8              16          20       24     32     40     48     56   58         60 61
//   62 freed  | next_touched | last_freed | unused | free | heap | next | prev | used | capacity |
//   number | list |
struct alignas(kBlockHeaderBytes) SlabHeap::Block {
  // Objects freed and not yet taken in: count << 32 | offset of the last one freed, which links to
  // the one before. Writers: Free(), any thread; TakeIn() sets it to 0.
  std::atomic<uint64_t> freed{0};
  // Written by the notifier, read by whoever takes the notice: handed over by touched_.
  Block* next_touched = nullptr;
  uint32_t last_freed = 0;  // offset of the end of the freed list, which was freed first
  // Holder.
  uint32_t unused;             // offset of the first object that was never handed out
  FreeObject* free = nullptr;  // what TakeIn() got; a current block's also stand in its class
  SlabHeap* const heap;        // never changes: read by Free()
  Block* next = nullptr;
  Block* previous = nullptr;
  uint16_t used = 0;  // [H5]
  const uint16_t capacity;
  const uint8_t number;  // of its class
  uint8_t list = kNoList;

  Block(SlabHeap* owner, uint32_t class_number)
      : unused(kBlockHeaderBytes),
        heap(owner),
        capacity(static_cast<uint16_t>(SizeClassAt(class_number).capacity)),
        number(static_cast<uint8_t>(class_number)) {}
  char* at(uint64_t offset) { return reinterpret_cast<char*>(this) + offset; }
  uint32_t bytes() const { return SizeClassAt(number).bytes; }
  uint32_t block_bytes() const { return SizeClassAt(number).block_bytes; }
};

// In front of an object from malloc.
struct alignas(kLargePrefixBytes) SlabHeap::Large {
  SlabHeap* heap;
  size_t bytes;
};

namespace {

constexpr uint64_t kOffsetMask = UINT32_MAX;
constexpr uint32_t kFreedCountShift = 32;

void AddTo(std::atomic<uint64_t>& count, uint64_t n) {  // one writer; the sum may wrap, to subtract
  count.store(count.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

// --- any thread

SlabHeap::Block* SlabHeap::BlockOf(const void* at, size_t bytes) {
  return reinterpret_cast<Block*>(reinterpret_cast<uintptr_t>(at) & ~(BlockBytesFor(bytes) - 1));
}

void SlabHeap::Free(void* at, size_t bytes) {
  if (bytes > kSlabBytesMax) [[unlikely]]
    return FreeLarge(at, bytes);
  Block* const block = BlockOf(at, bytes);
  auto* const object = static_cast<FreeObject*>(at);
  const auto offset = static_cast<uint64_t>(static_cast<char*>(at) - block->at(0));
  // Relaxed: a guess, which the exchange decides.
  uint64_t before = block->freed.load(std::memory_order_relaxed);
  uint64_t after = 0;
  do {
    object->next =
        before == 0 ? nullptr : reinterpret_cast<FreeObject*>(block->at(before & kOffsetMask));
    after = ((before >> kFreedCountShift) + 1) << kFreedCountShift | offset;
    // Release: the link, and all that this thread did with the object, before TakeIn() hands it out
    // again. Acquire, for the first: TakeIn() has read the last notice before this thread writes
    // the next one. [H2]
  } while (!block->freed.compare_exchange_weak(before, after, std::memory_order_acq_rel,
                                               std::memory_order_relaxed));
  // Unless it was the first, the block may be gone by now. [H3]
  if (before == 0) {
    block->last_freed = static_cast<uint32_t>(offset);
    Notify(block);
  }
}

void SlabHeap::Notify(Block* block) {
  SlabHeap* const heap = block->heap;
  Block* const abandoned = Abandoned();
  Block* first = heap->touched_.load(std::memory_order_acquire);
  do {
    // The heap is there: the objects just freed are not counted yet.
    if (first == abandoned) [[unlikely]]
      return heap->FreeAbandoned(block);
    block->next_touched = first;
    // Release: the notice, whole, before TakeInSome() takes it. Acquire on the failure that finds
    // it abandoned: the references that Abandon() added.
  } while (!heap->touched_.compare_exchange_weak(first, block, std::memory_order_release,
                                                 std::memory_order_acquire));
}

void SlabHeap::FreeAbandoned(Block* block) {
  // Acquire, and the release in DropReferences(): what other threads did in this block comes before
  // its pages go.
  const uint64_t freed = block->freed.exchange(0, std::memory_order_acq_rel);
  DropReferences(freed >> kFreedCountShift);
}

void SlabHeap::DropReferences(uint64_t n) {
  if (references_.fetch_sub(n, std::memory_order_acq_rel) == n) delete this;
}

void* SlabHeap::AllocateLarge(size_t bytes) {
  void* const at = std::malloc(bytes + kLargePrefixBytes);
  if (at == nullptr) throw std::bad_alloc();
  large_bytes_.fetch_add(LargeClassBytes(bytes), std::memory_order_relaxed);
  references_.fetch_add(1, std::memory_order_relaxed);
  return new (at) Large{this, bytes} + 1;
}

void SlabHeap::FreeLarge(void* at, size_t bytes) {
  Large* const large = static_cast<Large*>(at) - 1;
  Check(large->bytes == bytes, "an object is freed with the size that was asked for");
  SlabHeap* const heap = large->heap;
  std::free(large);
  heap->large_bytes_.fetch_sub(LargeClassBytes(bytes), std::memory_order_relaxed);
  heap->DropReferences(1);
}

// --- its life

SlabHeap::SlabHeap(PagePool& pool) : pool_(pool) {
  for (uint32_t i = 0; i < kSizeClasses; ++i) classes_[i].bytes = SizeClassAt(i).bytes;
}

SlabHeap::~SlabHeap() {
  ForEachBlock([this](Block* block) { ReleaseBlock(block); });
}

void SlabHeap::Abandon() {
  uint64_t live = 0;
  ForEachBlock([&](Block* block) {
    live += block->used;
    if (block->list == kNoList) live -= classes_[block->number].ready;
  });
  // Before others can see that it is abandoned and begin to subtract.
  references_.fetch_add(live, std::memory_order_relaxed);
  uint64_t taken_in = 0;
  const auto take_in = [&](Block* block) {
    while (block != nullptr) {
      Block* const next = block->next_touched;
      taken_in += TakeIn(block);
      block = next;
    }
  };
  take_in(std::exchange(taken_, nullptr));
  // Release: the references; acquire: the notices. Whoever frees from here on counts for himself.
  take_in(touched_.exchange(Abandoned(), std::memory_order_acq_rel));
  DropReferences(taken_in + 1);
}

// --- holder

void SlabHeap::Refill(uint32_t number) {
  SizeClass& c = classes_[number];
  TakeInSome(kDrainBlocks);
  if (c.current != nullptr) {
    c.current->unused = c.current->block_bytes();
    if (c.current->used < c.current->capacity) return MakeCurrent(c, c.current);
    Block* const full = std::exchange(c.current, nullptr);
    Link(full, kFullList);
  }
  for (uint32_t list = kFullList; list-- > 0;) {  // fuller ones first, so that the others empty
    Block* const block = c.lists[list];
    if (block == nullptr) continue;
    Unlink(block);
    return MakeCurrent(c, block);
  }
  MakeCurrent(c, NewBlock(number));
}

void SlabHeap::MakeCurrent(SizeClass& c, Block* block) {
  c.current = block;
  c.free = std::exchange(block->free, nullptr);
  c.unused = block->at(block->unused);
  c.ready = static_cast<uint32_t>(block->capacity - block->used);
  block->used = block->capacity;  // [H5]
}

bool SlabHeap::TakeInSome(size_t blocks_max) {
  for (size_t n = 0;; ++n) {
    if (taken_ == nullptr) {
      if (touched_.load(std::memory_order_relaxed) == nullptr)
        return true;  // a hint: the exchange acquires
      taken_ = touched_.exchange(nullptr, std::memory_order_acquire);  // pairs with Notify()
    }
    if (n == blocks_max) return false;
    Block* const block = taken_;
    taken_ = block->next_touched;
    __builtin_prefetch(taken_);
    TakeIn(block);
  }
}

uint64_t SlabHeap::TakeIn(Block* block) {
  const uint32_t last_freed = block->last_freed;
  // Acquire: the links, and what others did with the objects. Release: the notice was read. [H2]
  // Pairs with Free().
  const uint64_t freed = block->freed.exchange(0, std::memory_order_acq_rel);
  const uint64_t n = freed >> kFreedCountShift;
  SizeClass& c = classes_[block->number];
  Check(n <= block->used - (block == c.current ? c.ready : 0), "an object is freed once");
  reinterpret_cast<FreeObject*>(block->at(last_freed))->next = block->free;
  block->free = reinterpret_cast<FreeObject*>(block->at(freed & kOffsetMask));
  AddTo(slab_live_bytes_, -(n * c.bytes));

  const uint32_t list = block->list;
  const auto used = static_cast<uint16_t>(block->used - n);
  if (list == kNoList) {
    block->used = used;  // Refill() looks here first
  } else if (used == 0) {
    Unlink(block);
    ReleaseBlock(block);
  } else if (list == kLeavingList) {
    block->used = used;
  } else {
    const uint32_t fill = used * kFullList / block->capacity;
    if (fill == list) {
      block->used = used;
      c.free_listed += n;
    } else {
      Unlink(block);
      block->used = used;
      Link(block, fill);
    }
  }
  return n;
}

bool SlabHeap::Drain(size_t blocks_max) {
  const bool all = TakeInSome(blocks_max);
  for (SizeClass& c : classes_) {
    Block* const block = c.current;
    if (block == nullptr || block->used != c.ready) continue;
    c.current = nullptr;
    c.free = nullptr;
    c.ready = 0;
    ReleaseBlock(block);
  }
  return all;
}

SlabHeap::Block* SlabHeap::NewBlock(uint32_t number) {
  const uint32_t bytes = SizeClassAt(number).block_bytes;
  const uint32_t pages = bytes / static_cast<uint32_t>(kPageBytes);
  void* const at = pool_.Allocate(pages, pages, PagePool::Contents::kAny);
  AddTo(block_bytes_, bytes);
  return new (at) Block(this, number);
}

void SlabHeap::ReleaseBlock(Block* block) {
  AddTo(block_bytes_, -uint64_t{block->block_bytes()});
  pool_.Free(block, block->block_bytes() / static_cast<uint32_t>(kPageBytes));
}

uint32_t SlabHeap::FillList(const Block& block) { return block.used * kFullList / block.capacity; }

void SlabHeap::Link(Block* block, uint32_t list) {
  SizeClass& c = classes_[block->number];
  Block*& first = list == kLeavingList ? leaving_ : c.lists[list];
  block->list = static_cast<uint8_t>(list);
  block->previous = nullptr;
  block->next = first;
  if (first != nullptr) first->previous = block;
  first = block;
  if (list != kLeavingList) c.free_listed += static_cast<uint64_t>(block->capacity - block->used);
}

void SlabHeap::Unlink(Block* block) {
  SizeClass& c = classes_[block->number];
  if (block->list != kLeavingList)
    c.free_listed -= static_cast<uint64_t>(block->capacity - block->used);
  if (block->next != nullptr) block->next->previous = block->previous;
  if (block->previous != nullptr) {
    block->previous->next = block->next;
  } else {
    (block->list == kLeavingList ? leaving_ : c.lists[block->list]) = block->next;
  }
  block->list = kNoList;
}

// --- compaction

bool SlabHeap::StartEvacuation() {
  if (leaving_ != nullptr) return true;
  const uint64_t held = block_bytes();
  const uint64_t free = held - slab_live_bytes_.load(std::memory_order_relaxed);
  if (free < kFreeBytesMin || free <= held / 4) return false;
  uint32_t leaving = 0;
  for (SizeClass& c : classes_) {
    uint64_t room = c.free_listed;
    if (c.current != nullptr)
      room += c.ready + static_cast<uint32_t>(c.current->capacity - c.current->used);
    // A block that leaves takes its own free objects out of the room and fills as much as it holds:
    // a capacity in all.
    for (uint32_t list = 0; list < kFullList; ++list) {
      for (Block* block = c.lists[list];
           block != nullptr && room >= block->capacity && leaving < kLeavingMax;) {
        Block* const next = block->next;
        Unlink(block);
        Link(block, kLeavingList);
        room -= block->capacity;
        ++leaving;
        block = next;
      }
    }
  }
  return leaving_ != nullptr;
}

bool SlabHeap::Leaving(const void* at, size_t bytes) {
  return bytes <= kSlabBytesMax && BlockOf(at, bytes)->list == kLeavingList;
}

void SlabHeap::EndEvacuation() {
  while (leaving_ != nullptr) {
    Block* const block = leaving_;
    Unlink(block);
    Link(block, FillList(*block));
  }
}

// --- checks

template <class Visit>
void SlabHeap::ForEachBlock(Visit visit) const {
  const auto visit_list = [&](Block* block) {
    while (block != nullptr) visit(std::exchange(block, block->next));
  };
  for (const SizeClass& c : classes_) {
    if (c.current != nullptr) visit(c.current);
    for (Block* const first : c.lists) visit_list(first);
  }
  visit_list(leaving_);
}

void SlabHeap::CheckInvariants() const {
  uint64_t live_bytes = 0;
  uint64_t held = 0;
  std::array<uint64_t, kSizeClasses> free_listed{};
  ForEachBlock([&](Block* block) {
    const SizeClass& c = classes_[block->number];
    const bool current = block == c.current;
    Check(block->heap == this && (block->list == kNoList) == current,
          "a block is current or in a list");
    Check(current || block->list == kLeavingList || block->list == FillList(*block),
          "a block is in the list of its fill");
    const auto count = [&](FreeObject* object) {
      uint32_t n = 0;
      for (; object != nullptr; object = object->next, ++n) {
        const auto offset = static_cast<uint64_t>(reinterpret_cast<char*>(object) - block->at(0));
        Check(offset >= kBlockHeaderBytes && (offset - kBlockHeaderBytes) % c.bytes == 0 &&
                  offset + c.bytes <= block->block_bytes() && n < block->capacity,
              "[H1] a free object lies at its block's stride");
      }
      return n;
    };
    const auto never_used = [&](uint64_t offset) {
      return offset >= block->block_bytes() ? 0 : (block->block_bytes() - offset) / c.bytes;
    };
    const uint32_t listed = count(block->free);
    if (current) {
      Check(block->used + listed == block->capacity,
            "[H5] what a current block got back is not used");
      Check(count(c.free) + never_used(static_cast<uint64_t>(c.unused - block->at(0))) == c.ready,
            "a class counts what it holds ready");
    } else {
      Check(block->used + listed + never_used(block->unused) == block->capacity,
            "a block's objects add up");
      if (block->list != kLeavingList)
        free_listed[block->number] += block->capacity - uint64_t{block->used};
    }
    live_bytes += uint64_t{c.bytes} * (block->used - (current ? c.ready : 0));
    held += block->block_bytes();
  });
  for (uint32_t i = 0; i < kSizeClasses; ++i)
    Check(free_listed[i] == classes_[i].free_listed,
          "a class counts the free objects in its lists");
  Check(live_bytes == slab_live_bytes_.load(std::memory_order_relaxed), "live bytes add up");
  Check(held == block_bytes(), "blocks add up");
}

}  // namespace idemd::storage
