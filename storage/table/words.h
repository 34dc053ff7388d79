// The packed words of the table: a hash, a bucket's header, its cells, a slot, a directory's reference.
#pragma once

#include <cstdint>

#include "storage/check.h"
#include "storage/clock.h"

namespace idemd::storage {

// The hash of a key:
//
//   63    58 57                 42 41                            16 15              0
//   +-------+---------------------+--------------------------------+-----------------+
//   | shard | place in a segment  | directory, high bits first     | tag             |
//   +-------+---------------------+--------------------------------+-----------------+
//
// The place is a fraction of 2^16: among n buckets a key's home is floor(place * n / 2^16), so that n need not be a power
// of two. The tag is independent of the other three.
inline constexpr uint32_t kPlaceBits = 16;
inline constexpr uint32_t kDepthMax = 22;  // of the 26 bits: place, depth and prefix make up a scan's cursor

inline uint32_t PlaceOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 42) & 0xffff; }
inline uint32_t BucketOfPlace(uint32_t place, uint32_t buckets) { return (place * buckets) >> kPlaceBits; }
inline uint32_t BucketOf(uint64_t hash, uint32_t buckets) { return BucketOfPlace(PlaceOf(hash), buckets); }
// The first place of a bucket, 2^16 for the one behind the last.
inline uint32_t FirstPlaceOf(uint32_t bucket, uint32_t buckets) {
  return ((bucket << kPlaceBits) + buckets - 1) / buckets;
}
// The first `depth` directory bits.
inline uint32_t DirectoryIndex(uint64_t hash, uint32_t depth) {
  return static_cast<uint32_t>(((hash << 22) >> 1) >> (63 - depth));
}
// The directory bit with this number; 0 is the highest.
inline bool DirectoryBit(uint64_t hash, uint32_t number) { return ((hash >> (41 - number)) & 1) != 0; }
// A hash with these kDepthMax directory bits.
inline uint64_t HashOfPrefix(uint32_t prefix) { return uint64_t{prefix} << (42 - kDepthMax); }
inline uint64_t TagOf(uint64_t hash) { return hash & 0xffff; }

// A slot, one word: 0 when empty.
//
//   63    48 47                                    0
//   +-------+---------------------------------------+
//   | tag   | address of the entry                  |
//   +-------+---------------------------------------+
inline constexpr uint64_t kAddressMask = (uint64_t{1} << 48) - 1;

inline uint64_t SlotWord(uint64_t tag, const void* entry) {
  const auto address = reinterpret_cast<uintptr_t>(entry);
  Check((address & ~kAddressMask) == 0, "an address has 48 bits");
  return (tag << 48) | address;
}
template <class Entry>
Entry* EntryOf(uint64_t word) {
  return reinterpret_cast<Entry*>(word & kAddressMask);
}

// A bucket's three pairs of words hold one inline key each, or two slots. What they hold says the header:
//
//   63                          32 31      24 23    16 15     8 7      0
//   +-----------------------------+----------+--------+--------+--------+
//   | cell of pair 0              | overflow | pair 2 | pair 1 | pair 0 |
//   +-----------------------------+----------+--------+--------+--------+
//
// pair         kFree, kSlots, or the shape of an inline key (from kShapeMin on).
// overflow     how many keys found no room here or before and live in a later line (from kOverflowFull on nobody counts
//              any more). While it is 0, a key that would be looked for here, and is not here, is not in the table.
// cell         of a free pair: the low half of the epoch in which it was emptied; of an inline key: the low half of its
//              deadline; of two slots: two coarse deadlines (below).
//
// The cells of pairs 1 and 2 are the line's last word, pair 1 in the low half.
struct Header {
  static constexpr uint32_t kPairs = 3;
  static constexpr uint64_t kFree = 0, kSlots = 1, kShapeMin = 2;
  static constexpr uint32_t kPairBits = 8, kOverflowBits = 8, kCellBits = 32;
  static constexpr uint32_t kOverflowAt = kPairs * kPairBits, kCellAt = kOverflowAt + kOverflowBits;
  static constexpr uint64_t kOneOverflow = uint64_t{1} << kOverflowAt;
  static constexpr uint64_t kOverflowFull = (1u << kOverflowBits) - 1;

  static uint64_t Pair(uint64_t header, uint32_t pair) { return (header >> (pair * kPairBits)) & 0xff; }
  // Whether any pair holds slots: a byte that is 1.
  static bool HasSlots(uint64_t header) {
    const uint64_t zero_where_slots = (header & 0xffffff) ^ 0x010101;
    return ((zero_where_slots - 0x010101) & ~zero_where_slots & 0x808080) != 0;
  }
  static uint64_t WithPair(uint64_t header, uint32_t pair, uint64_t what) {
    return (header & ~(uint64_t{0xff} << (pair * kPairBits))) | what << (pair * kPairBits);
  }
  static uint64_t Overflow(uint64_t header) { return (header >> kOverflowAt) & kOverflowFull; }
  static uint32_t Cell(uint64_t header) { return static_cast<uint32_t>(header >> kCellAt); }
  static uint64_t WithCell(uint64_t header, uint32_t cell) {
    return (header & ((uint64_t{1} << kCellAt) - 1)) | uint64_t{cell} << kCellAt;
  }
};
static_assert(Header::kCellAt + Header::kCellBits == 64, "the fields tile the word");

// An inline deadline: its low 32 bits, which are enough while all deadlines lie within 2^32 ms (49 days) from a base that
// everybody knows.
inline constexpr uint32_t kCellNone = UINT32_MAX;
inline bool FitsCell(int64_t deadline_ms, int64_t base_ms) {
  constexpr int64_t kReach = (int64_t{1} << 32) - 86'400'000;  // a day short: the base moves while others look
  if (deadline_ms == kNoDeadline) return true;
  return deadline_ms >= base_ms && deadline_ms - base_ms < kReach && static_cast<uint32_t>(deadline_ms) != kCellNone;
}
inline uint32_t CellOf(int64_t deadline_ms) {
  return deadline_ms == kNoDeadline ? kCellNone : static_cast<uint32_t>(deadline_ms);
}
inline int64_t DeadlineOfCell(uint32_t cell, int64_t base_ms) {
  return cell == kCellNone ? kNoDeadline
                           : base_ms + int64_t{static_cast<uint32_t>(cell - static_cast<uint32_t>(base_ms))};
}

// A slot's coarse deadline: seconds (of 1024 ms) from its segment's base, rounded down. 0: at the base or before it.
inline constexpr uint32_t kCoarseNone = 0xffff;
inline constexpr uint32_t kCoarseFar = 0xfffe;  // so far that the segment has to be coded anew before
inline constexpr int64_t kCoarseFarMs = int64_t{kCoarseFar} * 1024;
inline uint32_t CoarseOf(int64_t deadline_ms, int64_t base_ms) {
  if (deadline_ms == kNoDeadline) return kCoarseNone;
  if (deadline_ms <= base_ms) return 0;
  return deadline_ms - base_ms >= kCoarseFarMs ? kCoarseFar : static_cast<uint32_t>((deadline_ms - base_ms) >> 10);
}

// A directory's reference: the segment's address (a multiple of 64) with its depth in the low bits and the number of its
// buckets in the high ones, so that a reader finds the bucket without reading the segment's first line.
inline constexpr uint32_t kBucketsMax = 0xffff;
inline uint64_t Reference(const void* segment, uint32_t depth, uint32_t buckets) {
  return SlotWord(buckets, segment) | depth;
}
inline uint32_t DepthOf(uint64_t reference) { return static_cast<uint32_t>(reference & 63); }
inline uint32_t BucketsOf(uint64_t reference) { return static_cast<uint32_t>(reference >> 48); }
static_assert(kDepthMax <= 63);

}  // namespace idemd::storage
