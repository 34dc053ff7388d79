// A chunk: 512 pages of 4 KiB at a 2 MiB boundary, with a bit per page for each thing that is known
// about it.
//
// Threads     No locks of its own: the PagePool's mutex.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace idemd::storage {

inline constexpr size_t kPageBytes = 4096;
inline constexpr uint32_t kChunkPages = 512;
inline constexpr size_t kChunkBytes = kPageBytes * kChunkPages;

// A set of a chunk's pages.
class PageSet {
 public:
  static constexpr uint32_t kNone = kChunkPages;

  static PageSet All() {
    PageSet all;
    all.words_.fill(~uint64_t{0});
    return all;
  }
  void Add(uint32_t first, uint32_t pages);
  void Remove(uint32_t first, uint32_t pages);
  bool contains(uint32_t page) const { return (words_[page / 64] >> (page % 64) & 1) != 0; }
  bool empty() const { return count() == 0; }
  uint32_t count() const;
  // The first page >= from that is (not) in the set; kNone if none.
  uint32_t Next(uint32_t from) const;
  uint32_t NextAbsent(uint32_t from) const;

  PageSet& operator|=(const PageSet& other);
  PageSet& operator&=(const PageSet& other);
  PageSet& operator-=(const PageSet& other);
  friend PageSet operator|(PageSet a, const PageSet& b) { return a |= b; }
  friend PageSet operator&(PageSet a, const PageSet& b) { return a &= b; }
  friend PageSet operator-(PageSet a, const PageSet& b) { return a -= b; }
  bool operator==(const PageSet&) const = default;

  // The largest k for which 2^k pages at a multiple of 2^k are all absent; -1 if every page is in
  // the set.
  int LargestAbsentPower() const;

 private:
  std::array<uint64_t, kChunkPages / 64> words_{};
};

struct Chunk {
  explicit Chunk(char* start) : at(start) {}

  char* const at;
  PageSet taken;         // in a span, or being given back
  PageSet dirty;         // free and perhaps not zero
  PageSet resident;      // touched, as far as is known; pages in spans always
  PageSet idle;          // free and resident at the start of this period and ever since
  uint32_t used = 0;     // pages in spans
  bool touched = false;  // some page was: with huge pages all are
  bool broken = false;   // [P4] pages were given back one by one

  // Where ChunkLists has it.
  Chunk* next = nullptr;
  Chunk* previous = nullptr;
  int list = -1;

  // First fit; kNone if there is none.
  uint32_t Find(uint32_t pages, uint32_t align_pages) const;
};

// Chunks by how full they are and by the largest power of two of pages that fits: finds the fullest
// chunk with room without looking at any that has none.
class ChunkLists {
 public:
  void Insert(Chunk& chunk);
  void Erase(Chunk& chunk);
  void Update(Chunk& chunk) {
    Erase(chunk);
    Insert(chunk);
  }
  // The fullest chunk in which 2^power aligned pages are free (up to an eighth of a chunk); null if
  // none.
  Chunk* Fullest(uint32_t power) const;

 private:
  static constexpr uint32_t kFills = 8;
  static constexpr uint32_t kPowers = 10;
  std::array<std::array<Chunk*, kPowers>, kFills> first_{};
  std::array<uint32_t, kFills> present_{};  // bit per power
};

}  // namespace idemd::storage
