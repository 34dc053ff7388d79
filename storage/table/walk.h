// How a table is walked: scans, a random key, compaction, and the check of its invariants.
//
// Included by table.h only.
#pragma once

#include "storage/table/table.h"

namespace idemd::storage {

// Visits what is in a line; false when an inline key was emptied under the reader's eyes, who then visits the line again.
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::VisitLine(const Line& line, uint64_t header,
                                               absl::FunctionRef<void(const Item&)> each) {
  for (uint32_t pair = 0; pair < Shape::kPairs; ++pair) {
    const uint64_t what = Header::Pair(header, pair);
    if (what == Header::kFree) continue;
    Item item;
    if (what == Header::kSlots) {
      for (uint32_t i = 2 * pair; i < 2 * pair + 2; ++i) {
        const uint64_t word = line.words[i].load(std::memory_order_acquire);  // [T1]
        if (word == 0) continue;
        item.entry = EntryOf<Entry>(word);
        each(item);
      }
      continue;
    }
    item.shape = static_cast<uint32_t>(what);
    item.words[0] = line.words[2 * pair].load(std::memory_order_acquire);
    item.words[1] = line.words[2 * pair + 1].load(std::memory_order_acquire);
    item.cell = CellAt(line, header, pair);
    if (Header::Pair(line.header.load(std::memory_order_acquire), pair) != what) return false;  // as in LookInLine()
    each(item);
  }
  return true;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::VisitSegment(const Segment& segment, absl::FunctionRef<void(const Item&)> each) {
  for (uint32_t i = 0; i < segment.buckets(); ++i)
    VisitLine(segment.line(i), segment.line(i).header.load(std::memory_order_acquire), each);  // [T1]
}

// A cursor is a place in the order of (directory bits, place in a segment), with the depth that the segment had:
//
//   42            21 20        5 4     0
//   +----------------+----------+-------+
//   | directory bits | place    | depth |
//   +----------------+----------+-------+
//
// What lies before it has been visited. A call visits the bucket in which the place lies and returns the bucket's end. A
// split does not disturb that: the lower half is gone on with, the upper one begun anew. After a merge (the depth tells)
// the keys of the other half were not visited up to that place: the segment is begun anew.
template <class Entry, class Sync, class Shape>
uint64_t BasicTable<Entry, Sync, Shape>::Scan(uint64_t cursor, absl::FunctionRef<void(const Item&)> each) const {
  Directory* directory = directory_.load(std::memory_order_acquire);  // [T3]
  if (directory == nullptr) return 0;
  auto prefix = static_cast<uint32_t>(cursor >> (kPlaceBits + kDepthBits)) & ((1u << kDepthMax) - 1);
  auto place = static_cast<uint32_t>(cursor >> kDepthBits) & ((1u << kPlaceBits) - 1);
  const auto then_depth = static_cast<uint32_t>(cursor & ((1u << kDepthBits) - 1));
  const uint64_t reference = directory->at(DirectoryIndex(HashOfPrefix(prefix), directory->depth()))
                                 .load(std::memory_order_acquire);  // [T3]
  const Segment& segment = *SegmentOf(reference);
  const uint32_t depth = DepthOf(reference), buckets = BucketsOf(reference);
  if (then_depth > depth) place = 0;
  const uint32_t bucket = BucketOfPlace(place, buckets);
  // [T6] As a Find() of each key that is there throughout; see Look().
  uint32_t number = bucket;
  for (uint32_t distance = 0; distance < buckets; ++distance, number = number + 1 == buckets ? 0 : number + 1) {
    const Line& line = segment.line(number);
    uint64_t header = 0;
    do {
      header = line.header.load(std::memory_order_acquire);
    } while (!VisitLine(line, header, [&](const Item& item) {
      if (BucketOf(ItemHash(item), buckets) == bucket) each(item);
    }));
    if (Header::Overflow(header) == 0) break;
  }
  const uint64_t next_place = FirstPlaceOf(bucket + 1, buckets);
  if (bucket + 1 < buckets)
    return uint64_t{prefix} << (kPlaceBits + kDepthBits) | next_place << kDepthBits | depth;
  const uint32_t span = 1u << (kDepthMax - depth);
  prefix = (prefix & ~(span - 1)) + span;
  return prefix >> kDepthMax != 0 ? 0 : uint64_t{prefix} << (kPlaceBits + kDepthBits);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::ForEach(absl::FunctionRef<void(const Item&)> each) const {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return;
  for (uint32_t i = 0; i < directory->size();) {
    const Segment& segment = *SegmentOf(directory->at(i).load(std::memory_order_relaxed));
    i += 1u << (directory->depth() - segment.depth());
    VisitSegment(segment, each);
  }
}

// The position counts in steps of the deepest directory there can be, so that it survives splits
// and merges.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Relocate(uint64_t* position, size_t max_segments,
                                              absl::FunctionRef<Entry*(Entry&)> move) {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  for (; directory != nullptr && max_segments != 0; --max_segments) {
    const auto index = static_cast<uint32_t>(*position >> (kDepthMax - directory->depth()));
    Segment& segment = *SegmentOf(directory->at(index).load(std::memory_order_relaxed));
    for (uint32_t number = 0; number < segment.buckets(); ++number) {
      Line& line = segment.line(number);
      const uint64_t header = line.header.load(std::memory_order_relaxed);
      for (uint32_t i = 0; i < 2 * Shape::kPairs; ++i) {
        if (Header::Pair(header, i / 2) != Header::kSlots) continue;
        const uint64_t word = line.words[i].load(std::memory_order_relaxed);
        if (word == 0) continue;
        if (Entry* moved = move(*EntryOf<Entry>(word)))
          line.words[i].store(SlotWord(word >> 48, moved), std::memory_order_release);  // [T1] [T2] as in Put()
      }
    }
    const uint64_t interval = uint64_t{1} << (kDepthMax - segment.depth());
    *position = (*position & ~(interval - 1)) + interval;
    if (*position >> kDepthMax != 0) directory = nullptr;
  }
  if (directory == nullptr) *position = 0;
}

// Probes random places: a segment covers as much of the hash as it has keys, so places are about
// equally likely. A table that is nearly empty is walked from a random place instead.
template <class Entry, class Sync, class Shape>
Item<Entry> BasicTable<Entry, Sync, Shape>::Random(uint64_t random) const {
  constexpr int kProbes = 48;  // segments are about half full at least: fails once in 10^14 times
  const Directory* directory = directory_.load(std::memory_order_acquire);  // [T3]
  if (directory == nullptr) return {};
  for (int probe = 0; probe < kProbes; ++probe) {
    random = random * 6364136223846793005u + 1442695040888963407u;  // Knuth's generator; its high bits are good
    const auto index = static_cast<uint32_t>(((random >> 1) >> (63 - directory->depth())));
    const Segment& segment = *SegmentOf(directory->at(index).load(std::memory_order_acquire));  // [T3]
    const uint32_t at = static_cast<uint32_t>(((random & 0xffffffff) * segment.capacity_words()) >> 32);
    // Of the line's words: an inline key answers for its first word only, so that it is as likely as a slot.
    const uint32_t wanted = at % Segment::kWordsPerLine, pair = wanted / 2;
    const Line& line = segment.line(at / Segment::kWordsPerLine);
    const uint64_t header = line.header.load(std::memory_order_acquire);
    const uint64_t what = Header::Pair(header, pair);
    if (what == Header::kFree || (what != Header::kSlots && wanted % 2 != 0)) continue;
    Item any;
    if (what == Header::kSlots) {
      const uint64_t slot = line.words[wanted].load(std::memory_order_acquire);  // [T1]
      if (slot != 0) any.entry = EntryOf<Entry>(slot);
    } else {
      any.shape = static_cast<uint32_t>(what);
      for (uint32_t i = 0; i < 2; ++i) any.words[i] = line.words[wanted + i].load(std::memory_order_acquire);
      any.cell = CellAt(line, header, pair);
      if (Header::Pair(line.header.load(std::memory_order_acquire), pair) != what) continue;  // as in LookInLine()
    }
    if (any) return any;
  }
  Item any;
  const auto first = static_cast<uint32_t>((random >> 1) >> (63 - directory->depth()));
  for (uint32_t i = 0; i < directory->size() && !any; ++i) {
    const Segment& segment =
        *SegmentOf(directory->at((first + i) & (directory->size() - 1)).load(std::memory_order_acquire));  // [T3]
    const auto from = static_cast<uint32_t>((random & 0xffffffff) % segment.buckets());
    for (uint32_t j = 0; j < segment.buckets() && !any; ++j) {
      const Line& line = segment.line((from + j) % segment.buckets());
      while (!VisitLine(line, line.header.load(std::memory_order_acquire), [&](const Item& item) { any = item; })) {
      }
    }
  }
  return any;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::CheckInvariants(int64_t base_ms) const {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return Check(size() == 0, "a table without a directory is empty");
  size_t keys = 0, bytes = directory->bytes();
  uint32_t deepest = 0, segments = 0;
  for (uint32_t i = 0; i < directory->size();) {
    const uint64_t reference = directory->at(i).load(std::memory_order_relaxed);
    const Segment& segment = *SegmentOf(reference);
    Check(DepthOf(reference) == segment.depth() && segment.depth() <= directory->depth() &&
              BucketsOf(reference) == segment.buckets(),
          "a reference knows its segment's depth and buckets");
    Check(segment.size() >= Shape::kLinesMin || directory->depth() == 0, "only a first segment is small");
    const uint32_t span = 1u << (directory->depth() - segment.depth());
    for (uint32_t j = 0; j < span; ++j)
      Check(directory->at(i + j).load(std::memory_order_relaxed) == reference,
            "references to a segment are neighbours");
    CheckSegment(segment, i / span, base_ms);
    bool queued = segment.deadline_hint_ms == kNoDeadline;
    const uint32_t from = i << (kDepthMax - directory->depth());
    for (const Queued& q : queue_)
      queued |= q.at_ms <= segment.deadline_hint_ms && q.at_ms == segment.queued_ms && q.prefix >= from &&
                q.prefix - from < 1u << (kDepthMax - segment.depth());
    Check(queued, "a segment with a hint stands in the queue [T5]");
    i += span;
    ++segments;
    keys += segment.live;
    bytes += segment.bytes();
    deepest += segment.depth() == directory->depth() ? 1 : 0;
  }
  Check(keys == size(), "segments hold as many keys as the table says");
  Check(segments == segments_, "the table knows how many segments it has");
  Check(bytes == bytes_.load(std::memory_order_relaxed), "the table knows its bytes");
  Check(deepest == deepest_ && deepest_ != 0,
        "the table knows how many segments are as deep as its directory");
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::CheckSegment(const Segment& segment, uint32_t prefix, int64_t base_ms) {
  std::vector<uint64_t> overflow(segment.buckets());
  uint32_t live = 0, words = 0;
  for (uint32_t b = 0; b < segment.buckets(); ++b) {
    const Line& line = segment.line(b);
    const uint64_t header = line.header.load(std::memory_order_relaxed);
    VisitLine(line, header, [&](const Item& item) {
      ++live;
      words += item.entry != nullptr ? 1 : 2;
      const uint64_t hash = ItemHash(item);
      const uint32_t home = BucketOf(hash, segment.buckets());
      Check(DirectoryIndex(hash, segment.depth()) == prefix, "a key is in its segment");
      const int64_t deadline_ms = item.entry != nullptr ? item.entry->deadline_ms() : DeadlineOfCell(item.cell, base_ms);
      Check(segment.deadline_hint_ms <= deadline_ms, "no deadline comes before the hint [T5]");
      for (uint32_t number = home; number != b; number = segment.NextBucket(number)) ++overflow[number];
    });
    for (uint32_t i = 0; i < Segment::kWordsPerLine; ++i) {
      const uint64_t word = line.words[i].load(std::memory_order_relaxed);
      if (Header::Pair(header, i / 2) != Header::kSlots || word == 0) continue;
      const Entry& entry = *EntryOf<Entry>(word);
      Check(word >> 48 == TagOf(entry.hash()), "a slot has its key's tag");
      const uint32_t coarse = CellAt(line, header, i / 2) >> (i % 2 * 16) & 0xffff;
      Check(coarse == CoarseOf(entry.deadline_ms(), segment.coarse_base_ms), "a slot has its coarse deadline [T5]");
    }
  }
  Check(live == segment.live, "a segment knows how many keys it holds");
  Check(words == segment.words, "a segment knows how many words they take");
  for (uint32_t b = 0; b < segment.buckets(); ++b) {
    const uint64_t counted = Header::Overflow(segment.line(b).header.load(std::memory_order_relaxed));
    Check(counted == overflow[b] || counted == Header::kOverflowFull, "a line knows how many keys went past it [T2]");
  }
}

}  // namespace idemd::storage
