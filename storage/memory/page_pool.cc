// Takes spans out of chunks, gives idle pages back, touches chunks ahead.
#include "storage/memory/page_pool.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <utility>
#include <vector>

#include "storage/check.h"

namespace idemd::storage {
namespace {

#ifdef MADV_POPULATE_WRITE
constexpr int kPopulateWrite = MADV_POPULATE_WRITE;
#else
constexpr int kPopulateWrite = 23;  // Linux 5.14; older headers
#endif
constexpr auto kGrowthLasts = std::chrono::seconds(1);

char* Map(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(at);
}

// At a chunk's boundary. Once one mapping is there the system usually puts the next one right below
// it.
char* MapAligned(size_t bytes) {
  char* at = Map(bytes);
  if (reinterpret_cast<uintptr_t>(at) % kChunkBytes == 0) return at;
  munmap(at, bytes);
  at = Map(bytes + kChunkBytes);
  const size_t before = (kChunkBytes - reinterpret_cast<uintptr_t>(at) % kChunkBytes) % kChunkBytes;
  if (before != 0) munmap(at, before);
  munmap(at + before + bytes, kChunkBytes - before);
  return at + before;
}

// Makes all of it resident; its contents are zero before and after, and nobody else uses it.
void Touch(char* at, size_t bytes) {
  if (madvise(at, bytes, kPopulateWrite) == 0) return;
  for (size_t i = 0; i < bytes; i += kPageBytes) static_cast<volatile char*>(at)[i] = 0;
}

// Why the system would not give huge pages; empty if it would.
std::string HugePagesRefused() {
  std::string setting;
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  if (!std::getline(file, setting)) return "no transparent huge pages, as far as /sys tells";
  if (setting.find("[never]") != std::string::npos)
    return "transparent huge pages are off (/sys/kernel/mm/transparent_hugepage/enabled says "
           "never)";
  if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1)
    return "transparent huge pages are off for this process (prctl)";
  char* const probe = MapAligned(kChunkBytes);
  const int error = madvise(probe, kChunkBytes, MADV_HUGEPAGE) == 0 ? 0 : errno;
  munmap(probe, kChunkBytes);
  return error == 0 ? "" : std::string("madvise: ") + std::strerror(error);
}

char* ChunkStart(void* at) {
  return static_cast<char*>(at) - reinterpret_cast<uintptr_t>(at) % kChunkBytes;
}

uint32_t PowerFor(uint32_t pages) { return static_cast<uint32_t>(std::bit_width(pages - 1)); }

// Calls `run(first, pages)` for each run of pages in the set.
template <class Run>
void ForEachRun(const PageSet& set, Run run) {
  for (uint32_t first = set.Next(0); first != PageSet::kNone;) {
    const uint32_t end = set.NextAbsent(first);
    run(first, end - first);
    first = set.Next(end);
  }
}

}  // namespace

PagePool::PagePool(bool ask_for_huge_pages) : ask_for_huge_pages_(ask_for_huge_pages) {
  why_not_ = ask_for_huge_pages ? HugePagesRefused() : "not asked for";
  huge_pages_ = why_not_.empty();
}

PagePool::~PagePool() {
  const MutexLock lock(mutex_);
  Check(in_use_pages_ == 0, "no span outlives its pool");
  for (const auto& [at, chunk] : chunks_) munmap(at, kChunkBytes);
}

std::unique_ptr<Chunk> PagePool::MapChunk() const {
  char* const at = MapAligned(kChunkBytes);
  if (ask_for_huge_pages_) madvise(at, kChunkBytes, MADV_HUGEPAGE);  // refused: status() says so
  return std::make_unique<Chunk>(at);
}

Chunk& PagePool::Adopt(std::unique_ptr<Chunk> chunk) {
  Chunk& adopted = *chunk;
  chunks_[adopted.at] = std::move(chunk);
  lists_.Insert(adopted);
  ++empty_chunks_;
  return adopted;
}

Chunk& PagePool::ChunkWithRoom(uint32_t power) {
  Chunk* const chunk = lists_.Fullest(power);
  return chunk != nullptr ? *chunk : Adopt(MapChunk());
}

void* PagePool::Allocate(uint32_t pages, uint32_t align_pages, Contents contents) {
  Check(pages > 0 && std::has_single_bit(align_pages) && align_pages <= kChunkPages,
        "a span has pages, at a power of two within a chunk");
  if (pages > kChunkPages) {
    char* const at = MapAligned(pages * kPageBytes);
    if (ask_for_huge_pages_) madvise(at, pages * kPageBytes, MADV_HUGEPAGE);
    const MutexLock lock(mutex_);
    in_use_pages_ += pages;
    large_pages_ += pages;
    return at;
  }
  char* chunk_at = nullptr;
  uint32_t first = 0;
  PageSet span;
  PageSet dirty;
  {
    const MutexLock lock(mutex_);
    Chunk& chunk = ChunkWithRoom(PowerFor(std::max(pages, align_pages)));
    chunk_at = chunk.at;
    first = chunk.Find(pages, align_pages);
    Check(first != PageSet::kNone, "the lists know which chunk has room");
    span.Add(first, pages);
    if (chunk.used == 0) {
      --empty_chunks_;
      ++opened_;
    }
    chunk.used += pages;
    in_use_pages_ += pages;
    chunk.taken |= span;
    // The first touch of a fresh chunk makes all of a huge page resident.
    chunk.resident |= huge_pages_ && !chunk.touched ? PageSet::All() : span;
    chunk.touched = true;
    chunk.idle -= span;
    dirty = chunk.dirty & span;
    chunk.dirty -= span;
    lists_.Update(chunk);
  }
  if (contents == Contents::kZero) {  // [P2]
    ForEachRun(dirty, [&](uint32_t from, uint32_t n) {
      std::memset(chunk_at + from * kPageBytes, 0, n * kPageBytes);
    });
  }
  return chunk_at + first * kPageBytes;
}

void PagePool::Free(void* at, uint32_t pages) {
  if (pages > kChunkPages) {
    munmap(at, pages * kPageBytes);
    const MutexLock lock(mutex_);
    in_use_pages_ -= pages;
    large_pages_ -= pages;
    return;
  }
  char* const start = ChunkStart(at);
  const auto first =
      static_cast<uint32_t>((static_cast<char*>(at) - start) / static_cast<ptrdiff_t>(kPageBytes));
  PageSet span;
  span.Add(first, pages);
  const MutexLock lock(mutex_);
  const auto found = chunks_.find(start);
  Check(found != chunks_.end(), "a span that is freed lies in a chunk");
  Chunk& chunk = *found->second;
  Check((chunk.taken & span) == span && (chunk.dirty & span).empty(), "a span is freed once");
  chunk.taken -= span;
  chunk.dirty |= span;
  chunk.used -= pages;
  in_use_pages_ -= pages;
  if (chunk.used == 0) ++empty_chunks_;
  lists_.Update(chunk);
}

size_t PagePool::Tend(Time now) {
  TouchAhead(now);
  if (now - period_began_ < kIdlePeriod) return 0;
  period_began_ = now;
  return GiveBackIdle();
}

size_t PagePool::GiveBackIdle() {
  std::vector<Chunk*> chunks;
  {
    const MutexLock lock(mutex_);
    chunks.reserve(chunks_.size());
    for (const auto& [at, chunk] : chunks_) chunks.push_back(chunk.get());
  }
  size_t given_back = 0;
  const uint32_t idle_pages_to_break = huge_pages_ ? kIdlePagesToBreak : 1;
  for (Chunk* const chunk : chunks) {  // none goes away meanwhile: that is done here
    PageSet pages;
    std::unique_ptr<Chunk> unused;
    bool mend = false;
    {
      const MutexLock lock(mutex_);
      const bool spare = empty_chunks_ <= spare_wanted_ && !chunk->broken;
      if (chunk->used == 0) {
        if (!spare && (chunk->resident - chunk->idle).empty()) {
          lists_.Erase(*chunk);
          --empty_chunks_;
          unused = std::move(chunks_.extract(chunk->at).mapped());
        }
      } else if (chunk->broken && chunk->used + kIdlePagesToBreak > kChunkPages) {
        mend = true;
        chunk->broken = false;
        chunk->resident = PageSet::All();  // the collapser may fill its holes
      } else if (chunk->idle.count() >= (chunk->broken ? 1 : idle_pages_to_break)) {
        pages = chunk->idle;
        chunk->taken |= pages;  // [P3] until the system call is over
        lists_.Update(*chunk);
      }
      chunk->idle = chunk->resident - chunk->taken;
    }
    if (unused != nullptr) {
      given_back += unused->resident.count() * kPageBytes;
      munmap(unused->at, kChunkBytes);
    }
    if (mend && ask_for_huge_pages_) madvise(chunk->at, kChunkBytes, MADV_HUGEPAGE);
    if (!pages.empty()) given_back += GiveBackPages(*chunk, pages);
  }
  return given_back;
}

size_t PagePool::GiveBackPages(Chunk& chunk, const PageSet& pages) {
  // [P4] Before the pages go. Refused (too many mappings): they may come back, no more than that.
  if (ask_for_huge_pages_) madvise(chunk.at, kChunkBytes, MADV_NOHUGEPAGE);
  PageSet given;
  ForEachRun(pages, [&](uint32_t first, uint32_t n) {
    if (madvise(chunk.at + first * kPageBytes, n * kPageBytes, MADV_DONTNEED) == 0)
      given.Add(first, n);
  });
  const MutexLock lock(mutex_);
  chunk.broken = true;
  chunk.taken -= pages;
  chunk.resident -= given;
  chunk.dirty -= given;
  lists_.Update(chunk);
  return given.count() * kPageBytes;
}

void PagePool::KeepSpare(uint32_t chunks) {
  const MutexLock lock(mutex_);
  spare_kept_ = chunks;
}

void PagePool::TouchAhead(Time now) {
  uint32_t empty = 0;
  {
    const MutexLock lock(mutex_);
    const uint32_t opened = std::exchange(opened_, 0);
    if (in_use_pages_ > in_use_seen_) last_growth_ = now;
    in_use_seen_ = in_use_pages_;
    // Twice what the last interval took.
    spare_wanted_ = std::max({std::min(2 * opened, kSpareChunksMax), spare_wanted_ / 2, spare_kept_});
    const bool growing = last_growth_ != Time{} && now - last_growth_ < kGrowthLasts;
    if (growing) spare_wanted_ = std::max(spare_wanted_, kSpareChunksGrowing);
    empty = empty_chunks_;
  }
  for (; empty < spare_wanted_; ++empty) {
    std::unique_ptr<Chunk> chunk = MapChunk();
    Touch(chunk->at, kChunkBytes);
    chunk->resident = PageSet::All();
    chunk->touched = true;
    const MutexLock lock(mutex_);
    Adopt(std::move(chunk));
  }
}

PagePool::Status PagePool::status() const {
  Status status;
  status.huge_pages = huge_pages_;
  status.why_not = why_not_;
  const MutexLock lock(mutex_);
  status.chunks = chunks_.size();
  status.mapped_bytes = chunks_.size() * kChunkBytes + large_pages_ * kPageBytes;
  status.in_use_bytes = in_use_pages_ * kPageBytes;
  for (const auto& [at, chunk] : chunks_)
    status.free_touched_bytes += (chunk->resident - chunk->taken).count() * kPageBytes;
  return status;
}

void PagePool::CheckInvariants() const {
  const MutexLock lock(mutex_);
  uint64_t in_use = large_pages_;
  uint32_t empty = 0;
  for (const auto& [at, chunk] : chunks_) {
    Check(chunk->at == at && ChunkStart(at) == at, "a chunk is found by its address");
    Check(chunk->taken.count() == chunk->used, "used counts the pages taken");
    Check((chunk->taken - chunk->resident).empty(), "pages in spans count as resident");
    Check((chunk->idle - (chunk->resident - chunk->taken)).empty(),
          "idle pages are free and resident");
    Check((chunk->dirty - (chunk->resident - chunk->taken)).empty(),
          "dirty pages are free and resident");
    Check((chunk->list >= 0) == (chunk->used < kChunkPages), "a chunk with room is in a list");
    in_use += chunk->used;
    if (chunk->used == 0) ++empty;
  }
  Check(in_use == in_use_pages_, "the pages of all chunks add up");
  Check(empty == empty_chunks_, "empty chunks are counted");
}

PagePool& ProcessPages() {
  // Never destroyed: objects may be freed after static destructors have begun.
  static PagePool& pool = *new PagePool();
  return pool;
}

}  // namespace idemd::storage
