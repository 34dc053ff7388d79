// Sets of pages word by word, and the lists in which chunks wait for a span that fits.
#include "storage/memory/chunk.h"

#include <algorithm>

namespace idemd::storage {
namespace {

// Calls `change(word, mask)` for the words that `pages` pages from `first` on lie in.
template <class Change>
void ForWords(uint32_t first, uint32_t pages, Change change) {
  const uint32_t end = first + pages;
  while (first < end) {
    const uint32_t bit = first % 64;
    const uint32_t n = std::min(64 - bit, end - first);
    change(first / 64, (n == 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1) << bit);
    first += n;
  }
}

// Bits at multiples of 2^k, k < 6.
constexpr std::array<uint64_t, 6> kAligned = {~uint64_t{0},       0x5555555555555555,
                                              0x1111111111111111, 0x0101010101010101,
                                              0x0001000100010001, 0x0000000100000001};

}  // namespace

void PageSet::Add(uint32_t first, uint32_t pages) {
  ForWords(first, pages, [this](uint32_t word, uint64_t mask) { words_[word] |= mask; });
}

void PageSet::Remove(uint32_t first, uint32_t pages) {
  ForWords(first, pages, [this](uint32_t word, uint64_t mask) { words_[word] &= ~mask; });
}

uint32_t PageSet::count() const {
  uint32_t n = 0;
  for (const uint64_t word : words_) n += static_cast<uint32_t>(std::popcount(word));
  return n;
}

uint32_t PageSet::Next(uint32_t from) const {
  if (from >= kChunkPages) return kNone;
  uint32_t i = from / 64;
  uint64_t word = words_[i] & ~uint64_t{0} << from % 64;
  while (word == 0) {
    if (++i == words_.size()) return kNone;
    word = words_[i];
  }
  return i * 64 + static_cast<uint32_t>(std::countr_zero(word));
}

uint32_t PageSet::NextAbsent(uint32_t from) const {
  if (from >= kChunkPages) return kNone;
  uint32_t i = from / 64;
  uint64_t word = ~words_[i] & ~uint64_t{0} << from % 64;
  while (word == 0) {
    if (++i == words_.size()) return kNone;
    word = ~words_[i];
  }
  return i * 64 + static_cast<uint32_t>(std::countr_zero(word));
}

PageSet& PageSet::operator|=(const PageSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  return *this;
}

PageSet& PageSet::operator&=(const PageSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  return *this;
}

PageSet& PageSet::operator-=(const PageSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
  return *this;
}

int PageSet::LargestAbsentPower() const {
  std::array<uint64_t, kChunkPages / 64> runs{};  // bit: 2^power pages from here on are absent
  for (size_t i = 0; i < runs.size(); ++i) runs[i] = ~words_[i];
  int largest = -1;
  for (uint32_t power = 0; power < 6; ++power) {
    uint64_t any = 0;
    for (uint64_t& word : runs) {
      if (power > 0) word &= word >> (1u << (power - 1));
      any |= word & kAligned[power];
    }
    if (any == 0) return largest;
    largest = static_cast<int>(power);
  }
  for (uint32_t words = 1, power = 6; words <= runs.size(); words *= 2, ++power) {
    bool any = false;
    for (uint32_t i = 0; i < runs.size() && !any; i += words)
      any = std::all_of(words_.begin() + i, words_.begin() + i + words,
                        [](uint64_t word) { return word == 0; });
    if (!any) return largest;
    largest = static_cast<int>(power);
  }
  return largest;
}

uint32_t Chunk::Find(uint32_t pages, uint32_t align_pages) const {
  uint32_t first = 0;
  for (;;) {
    first = taken.NextAbsent(first);
    if (first == PageSet::kNone) return PageSet::kNone;
    first = (first + align_pages - 1) & ~(align_pages - 1);
    if (first + pages > kChunkPages) return PageSet::kNone;
    const uint32_t end = taken.Next(first);
    if (end >= first + pages) return first;
    first = end;
  }
}

void ChunkLists::Insert(Chunk& chunk) {
  const int power = chunk.taken.LargestAbsentPower();
  if (power < 0) {
    chunk.list = -1;
    return;
  }
  const uint32_t fill = std::min(chunk.used * kFills / kChunkPages, kFills - 1);
  Chunk*& first = first_[fill][static_cast<uint32_t>(power)];
  chunk.previous = nullptr;
  chunk.next = first;
  if (first != nullptr) first->previous = &chunk;
  first = &chunk;
  present_[fill] |= 1u << power;
  chunk.list = static_cast<int>(fill * kPowers) + power;
}

void ChunkLists::Erase(Chunk& chunk) {
  if (chunk.list < 0) return;
  const uint32_t fill = static_cast<uint32_t>(chunk.list) / kPowers;
  const uint32_t power = static_cast<uint32_t>(chunk.list) % kPowers;
  if (chunk.next != nullptr) chunk.next->previous = chunk.previous;
  if (chunk.previous != nullptr) {
    chunk.previous->next = chunk.next;
  } else {
    first_[fill][power] = chunk.next;
    if (chunk.next == nullptr) present_[fill] &= ~(1u << power);
  }
  chunk.list = -1;
}

Chunk* ChunkLists::Fullest(uint32_t power) const {
  for (uint32_t fill = kFills; fill-- > 0;) {
    const uint32_t fits = present_[fill] >> power << power;
    if (fits != 0) return first_[fill][static_cast<uint32_t>(std::countr_zero(fits))];
  }
  return nullptr;
}

}  // namespace idemd::storage
