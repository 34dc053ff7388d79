// How a table grows and shrinks: segments are copied into new ones, published, and the old ones
// retired.
//
// Included by table.h only. A table begins with one small segment, which is replaced by larger ones; from kLinesMin lines
// on by a step more at a time, so that segments are rather full whatever the number of keys; the largest is split in two
// by the next directory bit. A directory doubles when a segment as deep as itself splits. Two halves that are mostly empty
// become one again. Each step copies a few thousand words at the most and leaves readers alone [T3].
#pragma once

#include <algorithm>
#include <cmath>

#include "storage/table/table.h"

namespace idemd::storage {

// In percent of a segment's words: a copy is filled this much at the most.
inline constexpr uint32_t kFillGrown = 78;
inline constexpr uint32_t kFillShrunk = 65;
inline constexpr uint32_t kFillShrinks = 25;

template <class Entry, class Sync, class Shape>
BasicTable<Entry, Sync, Shape>::~BasicTable() {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return;
  for (uint32_t i = 0; i < directory->size();) {
    Segment* segment = SegmentOf(directory->at(i).load(std::memory_order_relaxed));
    i += 1u << (directory->depth() - segment->depth());
    VisitSegment(*segment, [](const Item& item) {
      if (item.entry != nullptr) Entry::Destroy(item.entry);
    });
    Segment::Free(segment);
  }
  Directory::Free(directory);
}

template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::NextSize(uint32_t size) {
  return size < Shape::kLinesMin ? std::min(2 * size, Shape::kLinesMin) : size + Shape::kLinesStep;
}

// The smallest segment that these words fill to no more than `percent`; the largest if none does.
template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::SizeFor(size_t words, uint32_t percent, bool first) {
  uint32_t size = first ? Shape::kLinesFirst : Shape::kLinesMin;
  while (size < kLargest && size_t{Segment::WordsOf(size)} * percent < words * 100) size = NextSize(size);
  return size;
}

// The size at which a segment of this prefix splits.
template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::SizeMax(uint64_t hash, uint32_t depth) {
  const uint64_t mixed = (uint64_t{DirectoryIndex(hash, depth)} + depth + 1) * 0x9e3779b97f4a7c15u;  // Knuth's multiplicative hash
  return Shape::kLinesMax + static_cast<uint32_t>(((mixed >> 32) * (Shape::kStepsMore + 1)) >> 32) * Shape::kLinesStep;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MakeFirst() {
  Segment* segment = MakeSegment(0, Shape::kLinesFirst);
  Directory* directory = Directory::Make(0);
  AddBytes(segment->bytes());
  deepest_ = segments_ = 1;
  Refer(*directory, 0, segment);
  PublishDirectory(directory);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Reserve(size_t words) {
  if (directory_.load(std::memory_order_relaxed) != nullptr) return;
  const size_t most = size_t{Segment::WordsOf(Shape::kLinesMax)} * kFillGrown / 100;
  uint32_t depth = 0;
  while (depth < kDepthMax && words >> depth > most) ++depth;
  // Keys do not spread evenly: two standard deviations more, so that few segments have to grow all the same.
  const size_t each = words >> depth;
  const uint32_t size = SizeFor(each + static_cast<size_t>(2 * std::sqrt(2.0 * static_cast<double>(each))), kFillGrown, depth == 0);
  Directory* directory = Directory::Make(depth);
  for (uint32_t i = 0; i < directory->size(); ++i) {
    Segment* segment = MakeSegment(depth, size);
    AddBytes(segment->bytes());
    Refer(*directory, i, segment);
  }
  deepest_ = segments_ = directory->size();
  PublishDirectory(directory);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MakeRoom(uint64_t hash, int attempt) {
  const Where at = Locate(hash);
  const Segment& segment = *at.segment;
  const uint32_t depth = segment.depth();
  const bool may_double = depth < at.directory->depth() || size() >> depth >= Shape::kKeysPerReferenceMin;
  if (!Crowded(segment) && attempt == 0) {
    // A copy leaves the pairs behind that wait for guards, and puts single slots together.
    Replace(at, hash, segment.size());
  } else if (segment.size() < SizeMax(hash, depth)) {
    Replace(at, hash, std::max(NextSize(segment.size()), SizeFor(segment.words, kFillGrown, depth == 0)));
  } else if (depth < kDepthMax && (may_double || segment.size() > kBucketsMax / 2)) {
    Split(at, hash);
  } else {
    Replace(at, hash, segment.size() * 2);  // so many keys of one prefix take a known seed: a split would not help
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::MaybeShrink(uint64_t hash) {
  for (;;) {
    const Where at = Locate(hash);
    const Segment& segment = *at.segment;
    if (segment.words * 100 > segment.capacity_words() * kFillShrinks) return;
    const bool first = segment.depth() == 0;
    const uint32_t size = SizeFor(segment.words, kFillShrunk, first);
    if (size < segment.size()) {
      Replace(at, hash, size);
    } else if (first || !Merge(at, hash)) {
      return;
    }
  }
}

// --- copying

// [T8] What is made after the cut will hold what was saved before it was copied, and what comes later: there is nothing to
// save, and no line has to be marked one by one.
template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Segment* BasicTable<Entry, Sync, Shape>::MakeSegment(uint32_t depth,
                                                                                              uint32_t size) {
  Segment* segment = Segment::Make(depth, size, time_ms_);
  if (cut_ != nullptr) segment->MarkAllSaved(cut_->epoch());
  return segment;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Gather(const Segment& segment, std::vector<Moving>& moving) {
  constexpr size_t kAhead = 12;  // about as many cache misses as a core keeps in flight
  size_t i = moving.size();
  moving.reserve(i + segment.live);
  const auto finish = [&](size_t end) {
    for (; i < end; ++i) moving[i].hash = ItemHash(moving[i].item);
  };
  VisitSegment(segment, [&](const Item& item) {
    if (item.entry != nullptr) {
      __builtin_prefetch(reinterpret_cast<const char*>(item.entry));
      __builtin_prefetch(reinterpret_cast<const char*>(item.entry) + 63);
    }
    moving.push_back({0, item});
    if (moving.size() > kAhead) finish(moving.size() - kAhead);
  });
  finish(moving.size());
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Fill(Segment& segment, const std::vector<Moving>& moving, Half half) {
  // Relaxed: nobody sees the segment before it is published.
  const auto fill = [&](const Moving& m) {
    return Insert(segment, BucketOf(m.hash, segment.buckets()), m.item, m.hash, 0, std::memory_order_relaxed);
  };
  for (const Moving& m : moving) {
    if (half != Half::kBoth && DirectoryBit(m.hash, segment.depth() - 1) != (half == Half::kUpper)) continue;
    if (!fill(m)) return false;
  }
  return true;
}

template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Segment* BasicTable<Entry, Sync, Shape>::MakeFilled(
    uint32_t depth, uint32_t size, const std::vector<Moving>& moving, Half half, int64_t deadline_hint_ms) {
  for (;;) {
    Segment* segment = MakeSegment(depth, size);
    if (Fill(*segment, moving, half)) {
      segment->deadline_hint_ms = deadline_hint_ms;  // [T5] of what it came from: may be too low, never too high
      return segment;
    }
    Segment::Free(segment);  // all keys went to one half
    size = NextSize(size);
  }
}

// --- steps. Each saves the old segments [T8], builds new ones, publishes them and retires the old.

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Replace(const Where& at, uint64_t hash, uint32_t size) {
  const uint32_t depth = at.segment->depth();
  SaveSegment(*at.segment);
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Segment* segment = MakeFilled(depth, size, moving, Half::kBoth, at.segment->deadline_hint_ms);
  AddBytes(segment->bytes());
  Refer(*at.directory, DirectoryIndex(hash, depth), segment);
  Enqueue(*segment, DirectoryIndex(hash, kDepthMax));
  RetireSegment(at.segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Split(const Where& at, uint64_t hash) {
  const uint32_t depth = at.segment->depth();
  const int64_t hint = at.segment->deadline_hint_ms;
  SaveSegment(*at.segment);
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  size_t words[2] = {0, 0};
  for (const Moving& m : moving) words[DirectoryBit(m.hash, depth) ? 1 : 0] += m.item.entry != nullptr ? 1 : 2;
  const auto size = [&](int half) { return SizeFor(words[half], kFillGrown, false); };
  if constexpr (Sync::kFault == Fault::kSplitPublishedEarly) {
    Segment* lower = MakeSegment(depth + 1, size(0));
    Segment* upper = MakeSegment(depth + 1, size(1));
    PublishHalves(at, hash, lower, upper);
    Fill(*lower, moving, Half::kLower);
    Fill(*upper, moving, Half::kUpper);
  } else {
    Segment* lower = MakeFilled(depth + 1, size(0), moving, Half::kLower, hint);
    Segment* upper = MakeFilled(depth + 1, size(1), moving, Half::kUpper, hint);
    PublishHalves(at, hash, lower, upper);
  }
  RetireSegment(at.segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PublishHalves(const Where& at, uint64_t hash, Segment* lower, Segment* upper) {
  const uint32_t depth = at.segment->depth();
  const uint32_t prefix = DirectoryIndex(hash, depth);
  AddBytes(lower->bytes() + upper->bytes());
  ++segments_;
  if (depth < at.directory->depth()) {
    Refer(*at.directory, prefix * 2, lower);
    Refer(*at.directory, prefix * 2 + 1, upper);
    if (depth + 1 == at.directory->depth()) deepest_ += 2;
  } else {
    Directory* directory = Directory::Make(depth + 1);
    for (uint32_t i = 0; i < directory->size(); ++i)
      directory->at(i).store(at.directory->at(i / 2).load(std::memory_order_relaxed), std::memory_order_relaxed);
    Refer(*directory, prefix * 2, lower);
    Refer(*directory, prefix * 2 + 1, upper);
    deepest_ = 2;
    PublishDirectory(directory);
    RetireDirectory(at.directory);
  }
  Enqueue(*lower, (prefix * 2) << (kDepthMax - depth - 1));
  Enqueue(*upper, (prefix * 2 + 1) << (kDepthMax - depth - 1));
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Merge(const Where& at, uint64_t hash) {
  const uint32_t depth = at.segment->depth();
  const uint32_t prefix = DirectoryIndex(hash, depth);
  Segment* other =
      SegmentOf(at.directory->at((prefix ^ 1) << (at.directory->depth() - depth)).load(std::memory_order_relaxed));
  if (other->depth() != depth) return false;
  const size_t words = size_t{at.segment->words} + other->words;
  if (words * 100 > size_t{Segment::WordsOf(SizeMax(hash, depth - 1))} * kFillShrunk) return false;
  SaveSegment(*at.segment);
  SaveSegment(*other);
  std::vector<Moving> moving;
  Gather(*at.segment, moving);
  Gather(*other, moving);
  Segment* merged = MakeFilled(depth - 1, SizeFor(words, kFillShrunk, depth == 1), moving, Half::kBoth,
                               std::min(at.segment->deadline_hint_ms, other->deadline_hint_ms));
  AddBytes(merged->bytes());
  --segments_;
  Refer(*at.directory, prefix / 2, merged);
  Enqueue(*merged, (prefix / 2) << (kDepthMax - depth + 1));
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
  Directory* directory = Directory::Make(depth);
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
void BasicTable<Entry, Sync, Shape>::Refer(Directory& directory, uint32_t prefix, const Segment* segment) {
  const uint32_t span_bits = directory.depth() - segment->depth();
  for (uint32_t i = 0; i < (1u << span_bits); ++i)
    directory.at((prefix << span_bits) + i)
        .store(ReferenceTo(segment), PublishUnless(Fault::kSegmentPublishedRelaxed));  // [T3] pairs with Find()
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PublishDirectory(Directory* directory) {
  AddBytes(directory->bytes());
  directory_.store(directory, PublishUnless(Fault::kSegmentPublishedRelaxed));  // [T3] pairs with Find()
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
