// The packed words of the table: a hash, a slot, a bucket's header and a directory's reference.
#pragma once

#include <cstdint>

#include "storage/check.h"

namespace idemd::storage {

// The hash of a key:
//
//   63    58 57    52 51                           26 25                            0
//   +-------+--------+-------------------------------+-------------------------------+
//   | shard | bucket | directory, high bits first    | only in tags                  |
//   +-------+--------+-------------------------------+-------------------------------+
//                    |<--- 16-bit window --->|  the tag in a segment of depth 0..7
//                        8 ->|<--- 16-bit window --->|  ... of depth 8..15, and so on
//
// A tag is a window into the directory's bits and what follows them. So the bit that decides to
// which half of a split a key goes stands in its tag, and a split reads no keys (but for every
// eighth level, where the window moves). Of the 16 bits at least 9 differ within a segment.
inline constexpr uint32_t kBucketBitsMax = 6;
inline constexpr uint32_t kDepthMax = 26;  // bucket and directory bits make up a 32-bit scan cursor

// Bits 57..26 as one number are the order in which a scan goes through the keys.
inline uint64_t HashAtScanPosition(uint32_t position) { return uint64_t{position} << 26; }

// The bucket among 2^bits. A first segment of fewer than 2^bits_max buckets goes by the high ones
// of the bits, so that its buckets halve in scan order too.
inline uint32_t BucketOf(uint64_t hash, uint32_t bits, uint32_t bits_max) {
  return (static_cast<uint32_t>(hash >> 52) & ((1u << bits_max) - 1)) >> (bits_max - bits);
}
// The first `depth` directory bits.
inline uint32_t DirectoryIndex(uint64_t hash, uint32_t depth) {
  return static_cast<uint32_t>(((hash << 12) >> 1) >> (63 - depth));
}
// The directory bit with this number; 0 is the highest.
inline bool DirectoryBit(uint64_t hash, uint32_t number) {
  return ((hash >> (51 - number)) & 1) != 0;
}
inline uint32_t TagWindow(uint32_t depth) { return depth & ~7u; }
inline uint64_t TagOf(uint64_t hash, uint32_t depth) {
  return (hash << (12 + TagWindow(depth))) >> 48;
}
// The directory bit number `depth`, out of a tag made at that depth.
inline bool DirectoryBitOfTag(uint64_t tag, uint32_t depth) {
  return ((tag >> (15 - (depth - TagWindow(depth)))) & 1) != 0;
}

// A slot: 0 when empty.
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

// A bucket's header:
//
//   63                              16 15     8 7      0
//   +---------------------------------+--------+--------+
//   | stash                           | next   | guests |
//   +---------------------------------+--------+--------+
//
// stash, next  how many of this bucket's keys live in the segment's stash, and in the next bucket.
//              While both are 0, a key that is not in this line is not in the table.
// guests       bit i: slot i holds a key of the bucket before this one.
struct Header {
  static constexpr uint32_t kGuestBits = 8, kNextBits = 8, kStashBits = 48;
  static constexpr uint64_t kOneNext = uint64_t{1} << kGuestBits;
  static constexpr uint64_t kOneStash = uint64_t{1} << (kGuestBits + kNextBits);

  static uint64_t Guests(uint64_t header) { return header & (kOneNext - 1); }
  static uint64_t Next(uint64_t header) { return (header >> kGuestBits) & ((1u << kNextBits) - 1); }
  static uint64_t Stash(uint64_t header) { return header >> (kGuestBits + kNextBits); }
  static bool Overflowed(uint64_t header) { return header >= kOneNext; }
};
static_assert(Header::kGuestBits + Header::kNextBits + Header::kStashBits == 64,
              "the fields tile the word");

// A directory's reference: the segment's address (a multiple of 64) with the segment's depth in the
// low bits, so that a reader knows the tag without reading the segment's first line.
inline constexpr uint64_t kDepthMask = 63;
static_assert(kDepthMax <= kDepthMask);
inline uint32_t DepthOf(uint64_t reference) {
  return static_cast<uint32_t>(reference & kDepthMask);
}

}  // namespace idemd::storage
