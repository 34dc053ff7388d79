// Spans of 4 KiB pages cut out of 2 MiB chunks that ask for huge pages; one pool for the process.
//
// Threads     Allocate(), Free(), status(): any. One mutex: heaps come for a block once per few
// hundred objects, so it is
//             next to never contended. Tend(): one thread, every 50 to 100 ms; system calls that
//             take long are made outside the mutex.
// Lifetime    The pool outlives every span. ProcessPages() is never destroyed.
// Units       Pages are 4 KiB whatever the system backs them with.
// Invariants  [P1] A page belongs to at most one span.
//             [P2] A span that was asked for with Contents::kZero reads as zeros.
//             [P3] A page that Tend() gives back is in no span, and stays in none until the system
//             call is over. [P4] A chunk whose pages are given back one by one gets no huge pages
//             until it is nearly full again: the
//                  kernel's collapser would fill the holes and take the memory back.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "storage/memory/chunk.h"
#include "storage/sync/mutex.h"

namespace idemd::storage {

class PagePool {
 public:
  enum class Contents : uint8_t { kZero, kAny };
  using Time = std::chrono::steady_clock::time_point;

  // Free pages are given back after one to two of these.
  static constexpr std::chrono::milliseconds kIdlePeriod{500};
  // A huge page is broken up when at least this many of its pages have been idle: a sixteenth of it,
  // so that at most so much is kept from the system for the sake of fewer TLB misses.
  static constexpr uint32_t kIdlePagesToBreak = kChunkPages / 16;
  // Chunks touched ahead of need while there is growth, and at the most: enough for 200 MB/s at a tick of 50 ms. A first
  // touch of 2 MiB took 5 ms on a virtual machine whose host had to find the memory too.
  static constexpr uint32_t kSpareChunksGrowing = 2;
  static constexpr uint32_t kSpareChunksMax = 6;

  struct Status {
    uint64_t mapped_bytes = 0;        // address space held
    uint64_t in_use_bytes = 0;        // spans
    uint64_t free_touched_bytes = 0;  // in no span, and resident as far as is known
    uint64_t chunks = 0;
    bool huge_pages = false;  // asked for, and the system says that it grants them
    std::string why_not;      // empty when huge_pages
  };

  // Tests make their own; `ask_for_huge_pages` off leaves chunks as they are.
  explicit PagePool(bool ask_for_huge_pages = true);
  ~PagePool();  // no span is in use any more
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // `pages` contiguous ones, at a multiple of `align_pages` (a power of two up to 512). More than
  // 512 get a mapping of their own. Never null: std::bad_alloc as from operator new.
  [[nodiscard]] void* Allocate(uint32_t pages, uint32_t align_pages = 1,
                               Contents contents = Contents::kZero);
  // `pages` as asked for.
  void Free(void* at, uint32_t pages);

  // So many empty chunks are kept ready even when nothing grows, so that the first request after a rest finds one. Any
  // thread.
  void KeepSpare(uint32_t chunks);
  // Gives back what has been free for about a second; touches chunks ahead of need while allocation
  // goes on, so that no request pays for the first touch of a huge page. Returns bytes given back.
  size_t Tend(Time now = std::chrono::steady_clock::now());

  Status status() const;
  // Walks every chunk and stops the process if a count or a list is wrong.
  void CheckInvariants() const;

 private:
  Chunk& ChunkWithRoom(uint32_t power) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Chunk& Adopt(std::unique_ptr<Chunk> chunk) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<Chunk> MapChunk() const;
  size_t GiveBackIdle();
  size_t GiveBackPages(Chunk& chunk, const PageSet& pages);
  void TouchAhead(Time now);

  const bool ask_for_huge_pages_;
  // Set by the constructor.
  bool huge_pages_ = false;
  std::string why_not_;

  mutable Mutex mutex_;
  absl::flat_hash_map<char*, std::unique_ptr<Chunk>> chunks_
      ABSL_GUARDED_BY(mutex_);  // only Tend() erases
  ChunkLists lists_ ABSL_GUARDED_BY(mutex_);
  uint64_t in_use_pages_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t large_pages_ ABSL_GUARDED_BY(mutex_) = 0;  // of these in mappings of their own
  uint32_t spare_kept_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t empty_chunks_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t opened_ ABSL_GUARDED_BY(mutex_) =
      0;  // empty chunks that got a first span since the last TouchAhead()

  // Tend()'s own.
  Time period_began_{};
  Time last_growth_{};
  uint64_t in_use_seen_ = 0;
  uint32_t spare_wanted_ = 0;
};

PagePool& ProcessPages();

}  // namespace idemd::storage
