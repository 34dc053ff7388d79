// A segment: up to 64 buckets of one cache line each, with a stash for what does not fit.
//
//   line 0        about the segment itself; readers come here only when a bucket has stashed keys
//   line 1..64    the buckets: | header | slot | slot | slot | slot | slot | slot | slot |
//   line 65..68   the stash: slots that belong to no bucket in particular
//
// A key is put into its home bucket, else into the next bucket as a guest, else into the stash, and
// stays there until it is removed or the whole segment is replaced.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <new>

#include "storage/clock.h"
#include "storage/sync/sync.h"
#include "storage/table/words.h"

namespace idemd::storage {

// The sizes that the server uses; schedules use smaller ones, so that a handful of keys fills a
// segment.
struct ServerShape {
  static constexpr uint32_t kSlots = 7;             // with the header one line of 64 bytes
  static constexpr uint32_t kBucketBits = 6;        // 64 buckets
  static constexpr uint32_t kBucketBitsFirst = 2;   // a table's first segment has 4
  static constexpr uint32_t kBucketsPerStash = 16;  // 4 stash lines for 64 buckets
  // Halves merge when together they fill this part of a segment's slots. A split leaves two fifths
  // in each, so that one does not soon follow the other.
  static constexpr uint32_t kMergeDivisor = 4;
  // The directory doubles only while it has at least this many keys per reference (usually some
  // 200): keys that all share one prefix widen a stash instead of blowing up the directory.
  static constexpr size_t kKeysPerReferenceMin = 16;
};

template <class Sync, class Shape>
struct alignas(64) BasicLine {
  // Writer: holder of the shard's lock. Readers: any thread inside a guard.
  typename Sync::template Atomic<uint64_t> header;
  std::array<typename Sync::template Atomic<uint64_t>, Shape::kSlots> slots;
};
static_assert(sizeof(BasicLine<RealSync, ServerShape>) == 64, "a bucket is one cache line");

template <class Sync, class Shape>
class alignas(64) BasicSegment {
  static_assert(Shape::kBucketBits <= kBucketBitsMax && Shape::kSlots < Header::kGuestBits);

 public:
  using Line = BasicLine<Sync, Shape>;

  static uint32_t StashLines(uint32_t bucket_bits) {
    return std::max(1u, (1u << bucket_bits) / Shape::kBucketsPerStash);
  }
  static uint32_t SlotsOf(uint32_t bucket_bits) {
    return ((1u << bucket_bits) + StashLines(bucket_bits)) * Shape::kSlots;
  }
  static BasicSegment* Make(uint32_t depth, uint32_t bucket_bits, uint32_t stash_lines) {
    const size_t lines = (size_t{1} << bucket_bits) + stash_lines;
    void* at = Sync::Allocate(sizeof(BasicSegment) + lines * sizeof(Line));
    auto* segment = new (at) BasicSegment(depth, bucket_bits, stash_lines);
    for (size_t i = 0; i < lines; ++i) new (segment->first() + i) Line();
    return segment;
  }
  static void Free(void* at) {
    auto* segment = static_cast<BasicSegment*>(at);
    for (uint32_t i = 0; i < segment->lines(); ++i) segment->line(i).~Line();
    segment->~BasicSegment();
    Sync::Free(at);
  }

  uint32_t depth() const { return depth_; }
  uint32_t bucket_bits() const { return bucket_bits_; }
  uint32_t buckets() const { return 1u << bucket_bits_; }
  uint32_t stash_lines() const { return stash_lines_; }
  uint32_t lines() const { return buckets() + stash_lines_; }
  uint32_t slots() const { return lines() * Shape::kSlots; }
  size_t bytes() const { return sizeof(BasicSegment) + lines() * sizeof(Line); }
  // Buckets first, then the stash.
  Line& line(uint32_t i) { return first()[i]; }
  const Line& line(uint32_t i) const { return first()[i]; }
  uint32_t NextBucket(uint32_t bucket) const { return (bucket + 1) & (buckets() - 1); }

  // Holder of the shard's lock.
  uint32_t live = 0;                       // keys in it
  int64_t deadline_hint_ms = kNoDeadline;  // [T5] no key in it has an earlier deadline

 private:
  BasicSegment(uint32_t depth, uint32_t bucket_bits, uint32_t stash_lines)
      : depth_(depth), bucket_bits_(bucket_bits), stash_lines_(stash_lines) {}
  ~BasicSegment() = default;
  Line* first() { return reinterpret_cast<Line*>(this + 1); }
  const Line* first() const { return reinterpret_cast<const Line*>(this + 1); }

  const uint32_t depth_;        // directory bits that all its keys share
  const uint32_t bucket_bits_;  // below Shape::kBucketBits only while it is a table's only segment
  const uint32_t stash_lines_;
};

// 2^depth references to segments; a segment of a smaller depth is referred to several times.
template <class Sync>
class BasicDirectory {
 public:
  using Reference = typename Sync::template Atomic<uint64_t>;

  static BasicDirectory* Make(uint32_t depth, uint32_t bucket_bits) {
    void* at = Sync::Allocate(Bytes(depth));
    auto* directory = new (at) BasicDirectory(depth, bucket_bits);
    for (uint32_t i = 0; i < directory->size(); ++i) new (directory->first() + i) Reference(0);
    return directory;
  }
  static void Free(void* at) {
    auto* directory = static_cast<BasicDirectory*>(at);
    for (uint32_t i = 0; i < directory->size(); ++i) directory->at(i).~Reference();
    directory->~BasicDirectory();
    Sync::Free(at);
  }

  uint32_t depth() const { return depth_; }
  uint32_t bucket_bits() const { return bucket_bits_; }  // of its segments
  uint32_t size() const { return 1u << depth_; }
  size_t bytes() const { return Bytes(depth_); }
  // Writer: holder of the shard's lock. Readers: any thread inside a guard.
  Reference& at(uint32_t i) { return first()[i]; }
  const Reference& at(uint32_t i) const { return first()[i]; }

 private:
  BasicDirectory(uint32_t depth, uint32_t bucket_bits) : depth_(depth), bucket_bits_(bucket_bits) {}
  ~BasicDirectory() = default;
  static size_t Bytes(uint32_t depth) {
    return sizeof(BasicDirectory) + (sizeof(Reference) << depth);
  }
  Reference* first() { return reinterpret_cast<Reference*>(this + 1); }
  const Reference* first() const { return reinterpret_cast<const Reference*>(this + 1); }

  const uint32_t depth_;
  const uint32_t bucket_bits_;
};

}  // namespace idemd::storage
