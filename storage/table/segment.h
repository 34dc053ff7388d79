// A segment: buckets of one cache line each; and the directory that refers to segments.
//
//   line 0        about the segment itself; only lock holders come here
//   line 1..n     the buckets:   | header | word word | word word | word word | cells |
//
// A key is put into its home bucket or else into the first one after it that has room (round the end), and stays there
// until it is removed or the whole segment is replaced.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>

#include "storage/clock.h"
#include "storage/sync/sync.h"
#include "storage/table/words.h"

namespace idemd::storage {

// The sizes that the server uses; schedules use smaller ones, so that a handful of keys fills a segment.
struct ServerShape {
  static constexpr uint32_t kPairs = Header::kPairs;  // of a line, that are used
  static constexpr uint32_t kLinesFirst = 4;  // a table's first segment, line 0 included; it doubles up to kLinesMin
  static constexpr uint32_t kLinesMin = 192;  // 12 KiB. A full one grows by kLinesStep, the largest splits
  static constexpr uint32_t kLinesStep = 64;
  static constexpr uint32_t kLinesMax = 320;
  // Some segments split later than others, by up to so many steps (which ones follows from the prefix): so segments of all
  // sizes exist at any time, and what one leaves behind is of use to another.
  static constexpr uint32_t kStepsMore = 4;
  static constexpr uint32_t kFillMax = 84;  // percent of a segment's words; above that keys get far from home
  // The directory doubles only while it has at least this many keys per reference (usually some 500): keys that all
  // share one prefix widen a segment instead of blowing up the directory.
  static constexpr size_t kKeysPerReferenceMin = 32;
};

template <class Sync>
struct alignas(64) BasicLine {
  using Word = typename Sync::template Atomic<uint64_t>;

  // Writer: holder of the shard's lock. Readers: any thread inside a guard.
  Word header;
  std::array<Word, 2 * Header::kPairs> words;
  Word cells;
};
static_assert(sizeof(BasicLine<RealSync>) == 64, "a bucket is one cache line");

template <class Sync, class Shape>
class alignas(64) BasicSegment {
 public:
  using Line = BasicLine<Sync>;
  static constexpr uint32_t kWordsPerLine = 2 * Shape::kPairs;

  static uint32_t WordsOf(uint32_t size) { return (size - 1) * kWordsPerLine; }
  // `size` lines in all, line 0 included. More than Shape's largest only where hashes are bad.
  static BasicSegment* Make(uint32_t depth, uint32_t size, int64_t coarse_base_ms) {
    void* at = Sync::Allocate(size * sizeof(Line));
    auto* segment = new (at) BasicSegment(depth, size, coarse_base_ms);
    for (uint32_t i = 0; i < segment->buckets(); ++i) new (segment->first() + i) Line();
    return segment;
  }
  static void Free(void* at) {
    auto* segment = static_cast<BasicSegment*>(at);
    const size_t bytes = segment->bytes();
    for (uint32_t i = 0; i < segment->buckets(); ++i) segment->line(i).~Line();
    segment->~BasicSegment();
    Sync::Free(at, bytes);
  }

  uint32_t depth() const { return depth_; }
  uint32_t size() const { return size_; }
  uint32_t buckets() const { return size_ - 1; }
  uint32_t capacity_words() const { return WordsOf(size_); }
  size_t bytes() const { return size_ * sizeof(Line); }
  Line& line(uint32_t bucket) { return first()[bucket]; }
  const Line& line(uint32_t bucket) const { return first()[bucket]; }
  uint32_t NextBucket(uint32_t bucket) const { return bucket + 1 == buckets() ? 0 : bucket + 1; }

  // Holder of the shard's lock.
  uint32_t live = 0;                       // keys in it
  uint32_t words = 0;                      // that they take: one out of line, two inline
  int64_t deadline_hint_ms = kNoDeadline;  // [T5] no key in it has an earlier deadline
  int64_t queued_ms = kNoDeadline;         // [T5] the time at which it stands in the table's queue
  int64_t coarse_base_ms;                  // of its slots' coarse deadlines

  // [T8] Holder of the shard's lock. Which of its lines are saved as of the cut with this epoch (never 0): those that are
  // marked one by one, or all.
  bool AllSaved(uint32_t epoch) const { return saved_epoch_ == epoch; }
  void MarkAllSaved(uint32_t epoch) {
    saved_epoch_ = epoch;
    saved_lines_.reset();
  }
  bool Saved(uint32_t epoch, uint32_t bucket) const {
    if (AllSaved(epoch)) return true;
    return saved_lines_ != nullptr && saved_lines_[0] == epoch && (saved_lines_[1 + bucket / 64] >> bucket % 64 & 1) != 0;
  }
  void MarkSaved(uint32_t epoch, uint32_t bucket) {
    if (saved_lines_ == nullptr || saved_lines_[0] != epoch) {
      saved_lines_ = std::make_unique<uint64_t[]>(1 + (buckets() + 63) / 64);  // zeroes
      saved_lines_[0] = epoch;
    }
    saved_lines_[1 + bucket / 64] |= uint64_t{1} << bucket % 64;
  }

 private:
  BasicSegment(uint32_t depth, uint32_t size, int64_t base_ms) : coarse_base_ms(base_ms), depth_(depth), size_(size) {}
  ~BasicSegment() = default;
  Line* first() { return reinterpret_cast<Line*>(this + 1); }
  const Line* first() const { return reinterpret_cast<const Line*>(this + 1); }

  const uint32_t depth_;  // directory bits that all its keys share
  const uint32_t size_;
  uint32_t saved_epoch_ = 0;                 // all its lines are saved as of this cut
  std::unique_ptr<uint64_t[]> saved_lines_;  // the epoch of the cut of which some are, then a bit a line
};
static_assert(sizeof(BasicSegment<RealSync, ServerShape>) == sizeof(BasicLine<RealSync>), "it lies in front of its lines");

// 2^depth references to segments; a segment of a smaller depth is referred to several times.
template <class Sync>
class BasicDirectory {
 public:
  using Word = typename Sync::template Atomic<uint64_t>;

  static BasicDirectory* Make(uint32_t depth) {
    void* at = Sync::Allocate(Bytes(depth));
    auto* directory = new (at) BasicDirectory(depth);
    for (uint32_t i = 0; i < directory->size(); ++i) new (directory->first() + i) Word(0);
    return directory;
  }
  static void Free(void* at) {
    auto* directory = static_cast<BasicDirectory*>(at);
    const size_t bytes = directory->bytes();
    for (uint32_t i = 0; i < directory->size(); ++i) directory->at(i).~Word();
    directory->~BasicDirectory();
    Sync::Free(at, bytes);
  }

  uint32_t depth() const { return depth_; }
  uint32_t size() const { return 1u << depth_; }
  size_t bytes() const { return Bytes(depth_); }
  // Writer: holder of the shard's lock. Readers: any thread inside a guard.
  Word& at(uint32_t i) { return first()[i]; }
  const Word& at(uint32_t i) const { return first()[i]; }

 private:
  explicit BasicDirectory(uint32_t depth) : depth_(depth) {}
  ~BasicDirectory() = default;
  static size_t Bytes(uint32_t depth) { return sizeof(BasicDirectory) + (sizeof(Word) << depth); }
  Word* first() { return reinterpret_cast<Word*>(this + 1); }
  const Word* first() const { return reinterpret_cast<const Word*>(this + 1); }

  alignas(8) const uint32_t depth_;
};

}  // namespace idemd::storage
