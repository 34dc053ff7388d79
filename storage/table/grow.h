// How a table grows and shrinks: segments are copied into new ones, published, and the old ones
// retired.
//
// Included by table.h only. A table begins with one segment of 4 buckets, which is replaced by
// larger ones up to 64 and then split in two by the next directory bit; a directory doubles when a
// segment as deep as itself splits. Two halves that are mostly empty become one again. Each step
// copies a few hundred words and leaves readers alone [T3].
#pragma once

#include "storage/table/table.h"

namespace idemd::storage {

template <class Entry, class Sync, class Shape>
BasicTable<Entry, Sync, Shape>::~BasicTable() {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return;
  for (uint32_t i = 0; i < directory->size();) {
    Segment* segment = SegmentOf(directory->at(i).load(std::memory_order_relaxed));
    i += 1u << (directory->depth() - segment->depth());
    VisitSegment(*segment, [](Entry& entry) { Entry::Destroy(&entry); });
    Segment::Free(segment);
  }
  Directory::Free(directory);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MakeFirst() {
  constexpr uint32_t kBits = Shape::kBucketBitsFirst;
  Segment* segment = Segment::Make(0, kBits, Segment::StashLines(kBits));
  Directory* directory = Directory::Make(0, kBits);
  AddBytes(segment->bytes());
  deepest_ = 1;
  Refer(*directory, 0, segment);
  PublishDirectory(directory);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MakeRoom(uint64_t hash) {
  const Where at = Locate(hash);
  const uint32_t depth = at.segment->depth();
  const bool may_double =
      depth < at.directory->depth() || size() >> depth >= Shape::kKeysPerReferenceMin;
  if (at.segment->bucket_bits() < Shape::kBucketBits) {
    ReplaceOnly(at.segment->bucket_bits() + 1);
  } else if (depth == kDepthMax || !may_double || at.segment->live < at.segment->slots() / 2) {
    WidenStash(at, hash);  // a hash that treats some buckets badly: splitting would not help them
  } else {
    Split(at, hash);
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MaybeShrink(uint64_t hash) {
  for (;;) {
    const Where at = Locate(hash);
    // When both halves are this empty they fit into one; the later one to become so merges them.
    if (at.segment->live > at.segment->slots() / (2 * Shape::kMergeDivisor)) return;
    if (at.segment->depth() != 0) {
      if (!Merge(at, hash)) return;
    } else if (at.segment->bucket_bits() > Shape::kBucketBitsFirst) {
      ReplaceOnly(at.segment->bucket_bits() - 1);
    } else {
      return;
    }
  }
}

// --- copying

// All entries of a segment, with their buckets as far as the place tells.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Gather(const Segment& segment, std::vector<Moving>& moving) {
  moving.reserve(moving.size() + segment.live);
  for (uint32_t b = 0; b < segment.lines(); ++b) {
    const Line& line = segment.line(b);
    const uint64_t guests = Header::Guests(line.header.load(std::memory_order_relaxed));
    for (uint32_t i = 0; i < Shape::kSlots; ++i) {
      const uint64_t word = line.slots[i].load(std::memory_order_relaxed);
      if (word == 0) continue;
      uint32_t bucket = b;
      if (b >= segment.buckets()) {
        bucket = kBucketUnknown;
      } else if (((guests >> i) & 1) != 0) {
        bucket = (b + segment.buckets() - 1) & (segment.buckets() - 1);
      }
      moving.push_back({word, bucket, DirectoryBitOfTag(word >> 48, segment.depth())});
    }
  }
}

// Finds out by hashing what Gather() could not tell: everything (`all`: tags or buckets change), or
// what was in a stash.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Readdress(std::vector<Moving>& moving, uint32_t old_depth,
                                               uint32_t depth, uint32_t bucket_bits, bool all) {
  constexpr size_t kAhead = 12;  // about as many cache misses as a core keeps in flight
  const auto needs = [&](const Moving& m) { return all || m.bucket == kBucketUnknown; };
  for (size_t i = 0; i < moving.size() + kAhead; ++i) {
    if (i < moving.size() && needs(moving[i])) {
      const auto* bytes = reinterpret_cast<const char*>(EntryOf<Entry>(moving[i].word));
      __builtin_prefetch(bytes);
      __builtin_prefetch(bytes + 64);
    }
    if (i < kAhead || !needs(moving[i - kAhead])) continue;
    Moving& m = moving[i - kAhead];
    const Entry* entry = EntryOf<Entry>(m.word);
    const uint64_t hash = EntryHash(*entry);
    m = {SlotWord(TagOf(hash, depth), entry), Bucket(hash, bucket_bits),
         DirectoryBit(hash, old_depth)};
  }
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Fill(Segment& segment, const std::vector<Moving>& moving,
                                          Half half) {
  for (const Moving& m : moving) {
    if (half != Half::kBoth && m.upper != (half == Half::kUpper)) continue;
    // Relaxed: nobody sees the segment before it is published with release.
    if (!Insert(segment, m.bucket, m.word, std::memory_order_relaxed)) return false;
  }
  return true;
}

template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Segment* BasicTable<Entry, Sync, Shape>::MakeFilled(
    uint32_t depth, uint32_t bucket_bits, uint32_t stash_lines, const std::vector<Moving>& moving,
    Half half, int64_t deadline_hint_ms) {
  for (;;) {
    Segment* segment = Segment::Make(depth, bucket_bits, stash_lines);
    if (Fill(*segment, moving, half)) {
      segment->deadline_hint_ms =
          deadline_hint_ms;  // [T5] of what it came from: may be too low, never too high
      return segment;
    }
    Segment::Free(segment);
    stash_lines *= 2;
  }
}

// --- steps. Each builds new segments, publishes them and retires the old ones.

// A table's only segment, with another number of buckets; the number stands in the directory.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::ReplaceOnly(uint32_t bucket_bits) {
  const Where at = Locate(0);
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Readdress(moving, 0, 0, bucket_bits, true);
  Segment* segment = MakeFilled(0, bucket_bits, Segment::StashLines(bucket_bits), moving,
                                Half::kBoth, at.segment->deadline_hint_ms);
  AddBytes(segment->bytes());
  Directory* directory = Directory::Make(0, bucket_bits);
  Refer(*directory, 0, segment);
  PublishDirectory(directory);
  RetireDirectory(at.directory);
  RetireSegment(at.segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::WidenStash(const Where& at, uint64_t hash) {
  const uint32_t depth = at.segment->depth();
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Readdress(moving, depth, depth, Shape::kBucketBits, false);
  Segment* segment = MakeFilled(depth, Shape::kBucketBits, at.segment->stash_lines() * 2, moving,
                                Half::kBoth, at.segment->deadline_hint_ms);
  AddBytes(segment->bytes());
  Refer(*at.directory, DirectoryIndex(hash, depth), segment);
  RetireSegment(at.segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Split(const Where& at, uint64_t hash) {
  constexpr uint32_t kBits = Shape::kBucketBits;
  const uint32_t depth = at.segment->depth();
  const uint32_t stash = Segment::StashLines(kBits);
  const int64_t hint = at.segment->deadline_hint_ms;
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Readdress(moving, depth, depth + 1, kBits, TagWindow(depth) != TagWindow(depth + 1));
  if constexpr (Sync::kFault == Fault::kSplitPublishedEarly) {
    Segment* lower = Segment::Make(depth + 1, kBits, stash);
    Segment* upper = Segment::Make(depth + 1, kBits, stash);
    PublishHalves(at, hash, lower, upper);
    Fill(*lower, moving, Half::kLower);
    Fill(*upper, moving, Half::kUpper);
  } else {
    const Segment* lower = MakeFilled(depth + 1, kBits, stash, moving, Half::kLower, hint);
    const Segment* upper = MakeFilled(depth + 1, kBits, stash, moving, Half::kUpper, hint);
    PublishHalves(at, hash, lower, upper);
  }
  RetireSegment(at.segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PublishHalves(const Where& at, uint64_t hash,
                                                   const Segment* lower, const Segment* upper) {
  const uint32_t depth = at.segment->depth();
  const uint32_t prefix = DirectoryIndex(hash, depth);
  AddBytes(lower->bytes() + upper->bytes());
  if (depth < at.directory->depth()) {
    Refer(*at.directory, prefix * 2, lower);
    Refer(*at.directory, prefix * 2 + 1, upper);
    if (depth + 1 == at.directory->depth()) deepest_ += 2;
    return;
  }
  Directory* directory = Directory::Make(depth + 1, Shape::kBucketBits);
  for (uint32_t i = 0; i < directory->size(); ++i)
    directory->at(i).store(at.directory->at(i / 2).load(std::memory_order_relaxed),
                           std::memory_order_relaxed);
  Refer(*directory, prefix * 2, lower);
  Refer(*directory, prefix * 2 + 1, upper);
  deepest_ = 2;
  PublishDirectory(directory);
  RetireDirectory(at.directory);
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Merge(const Where& at, uint64_t hash) {
  constexpr uint32_t kBits = Shape::kBucketBits;
  const uint32_t depth = at.segment->depth();
  const uint32_t prefix = DirectoryIndex(hash, depth);
  Segment* other = SegmentOf(at.directory->at((prefix ^ 1) << (at.directory->depth() - depth))
                                 .load(std::memory_order_relaxed));
  if (other->depth() != depth) return false;
  if (at.segment->live + other->live > Segment::SlotsOf(kBits) / Shape::kMergeDivisor) return false;
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Gather(*other, moving);
  Readdress(moving, depth, depth - 1, kBits, TagWindow(depth) != TagWindow(depth - 1));
  const Segment* merged =
      MakeFilled(depth - 1, kBits, Segment::StashLines(kBits), moving, Half::kBoth,
                 std::min(at.segment->deadline_hint_ms, other->deadline_hint_ms));
  AddBytes(merged->bytes());
  Refer(*at.directory, prefix / 2, merged);
  if (depth == at.directory->depth()) {
    deepest_ -= 2;
    if (deepest_ == 0) HalveDirectory(at.directory);
  }
  RetireSegment(at.segment);
  RetireSegment(other);
  return true;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::HalveDirectory(Directory* old) {
  const uint32_t depth = old->depth() - 1;
  Directory* directory = Directory::Make(depth, old->bucket_bits());
  for (uint32_t i = 0; i < directory->size(); ++i) {
    const uint64_t reference = old->at(i * 2).load(std::memory_order_relaxed);
    if (DepthOf(reference) == depth) ++deepest_;
    directory->at(i).store(reference, std::memory_order_relaxed);
  }
  PublishDirectory(directory);
  RetireDirectory(old);
}

// --- publishing and retiring

// Makes every reference whose index begins with `prefix` (as many bits as the segment is deep) lead
// to the segment.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Refer(Directory& directory, uint32_t prefix,
                                           const Segment* segment) {
  const uint32_t span_bits = directory.depth() - segment->depth();
  for (uint32_t i = 0; i < (1u << span_bits); ++i)
    directory.at((prefix << span_bits) + i)
        .store(ReferenceTo(segment),
               PublishUnless(Fault::kSegmentPublishedRelaxed));  // [T3] pairs with Find()
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PublishDirectory(Directory* directory) {
  AddBytes(directory->bytes());
  directory_.store(directory,
                   PublishUnless(Fault::kSegmentPublishedRelaxed));  // [T3] pairs with Find()
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::RetireSegment(Segment* segment) {
  SubtractBytes(segment->bytes());
  if constexpr (Sync::kFault == Fault::kSegmentFreedAtOnce) {
    Segment::Free(segment);
  } else {
    BasicRetire<Sync>(segment, &Segment::Free);  // [T4]
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::RetireDirectory(Directory* directory) {
  SubtractBytes(directory->bytes());
  BasicRetire<Sync>(directory, &Directory::Free);  // [T4]
}

}  // namespace idemd::storage
