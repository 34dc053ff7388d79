// How a table is walked: scans, sweeps for deadlines, a random key, and the check of its
// invariants.
//
// Included by table.h only.
#pragma once

#include "storage/table/table.h"

namespace idemd::storage {

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::VisitSlots(const Line& line, uint64_t which,
                                                absl::FunctionRef<void(Entry&)> each) {
  for (uint32_t i = 0; i < Shape::kSlots; ++i) {
    if (((which >> i) & 1) == 0) continue;
    const uint64_t word = line.slots[i].load(std::memory_order_acquire);  // [T1]
    if (word != 0) each(*EntryOf<Entry>(word));
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::VisitSegment(const Segment& segment,
                                                  absl::FunctionRef<void(Entry&)> each) {
  for (uint32_t i = 0; i < segment.lines(); ++i) VisitSlots(segment.line(i), ~uint64_t{0}, each);
}

// A cursor is a place in the order of (bucket, directory bits), which no growth changes: a bucket
// of a segment is an interval of it, halved by a split and doubled by a merge. A call visits the
// interval that the cursor lies in and returns its end, so that the keys before the cursor are
// always done [T6]. After a merge some keys are visited twice.
template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::Scan(uint32_t cursor,
                                              absl::FunctionRef<void(Entry&)> each) const {
  Directory* directory = directory_.load(std::memory_order_acquire);  // [T3]
  if (directory == nullptr) return 0;
  const uint64_t hash = HashAtScanPosition(cursor);
  const uint64_t reference = directory->at(DirectoryIndex(hash, directory->depth()))
                                 .load(std::memory_order_acquire);  // [T3]
  const Segment& segment = *SegmentOf(reference);
  const uint32_t bucket_bits = directory->bucket_bits();
  const uint32_t bucket = Bucket(hash, bucket_bits);

  // A key that is there throughout had its guest bit and counts set before the scan began, and
  // keeps them.
  const Line& home = segment.line(bucket);
  const uint64_t header = home.header.load(std::memory_order_acquire);  // [T6]
  VisitSlots(home, ~Header::Guests(header), each);
  if (Header::Next(header) != 0) {
    const Line& next = segment.line(segment.NextBucket(bucket));
    VisitSlots(next, Header::Guests(next.header.load(std::memory_order_acquire)), each);
  }
  if (Header::Stash(header) != 0) {
    for (uint32_t i = segment.buckets(); i < segment.lines(); ++i) {
      VisitSlots(segment.line(i), ~uint64_t{0}, [&](Entry& entry) {
        if (Bucket(EntryHash(entry), bucket_bits) == bucket) each(entry);
      });
    }
  }
  const uint64_t interval = uint64_t{1}
                            << (kDepthMax + Shape::kBucketBits - bucket_bits - DepthOf(reference));
  const uint64_t next = (cursor & ~(interval - 1)) + interval;
  return next >> (kDepthMax + Shape::kBucketBits) != 0 ? 0 : static_cast<uint32_t>(next);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::ForEach(absl::FunctionRef<void(Entry&)> each) const {
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
size_t BasicTable<Entry, Sync, Shape>::Due(int64_t now_ms, uint64_t* position, size_t max_segments,
                                           std::vector<Entry*>& due) {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) {
    *position = 0;
    return 0;
  }
  const uint32_t step_bits = kDepthMax - directory->depth();
  size_t looked_at = 0;
  std::vector<Entry*> entries;
  for (size_t n = 0; n < max_segments; ++n) {
    const auto index = static_cast<uint32_t>(*position >> step_bits);
    Segment& segment = *SegmentOf(directory->at(index).load(std::memory_order_relaxed));
    if (segment.deadline_hint_ms <= now_ms) {
      entries.clear();
      VisitSegment(segment, [&](Entry& entry) {
        __builtin_prefetch(&entry);
        entries.push_back(&entry);
      });
      // Those that are due count too: the caller may not take them after all, and the hint must
      // stay true [T5].
      int64_t earliest = kNoDeadline;
      for (Entry* entry : entries) {
        const int64_t deadline = entry->deadline_ms();
        earliest = std::min(earliest, deadline);
        if (deadline <= now_ms) due.push_back(entry);
      }
      segment.deadline_hint_ms = earliest;
      looked_at += entries.size();
    }
    const uint64_t interval = uint64_t{1} << (kDepthMax - segment.depth());
    *position = (*position & ~(interval - 1)) + interval;
    if (*position >> kDepthMax != 0) {
      *position = 0;
      break;
    }
  }
  return looked_at;
}

// Probes random slots: a segment covers as much of the hash as it has keys, so slots are about
// equally likely. A table that is nearly empty is walked from a random place instead.
template <class Entry, class Sync, class Shape>
Entry* BasicTable<Entry, Sync, Shape>::Random(uint64_t random) const {
  constexpr int kProbes =
      32;  // segments are at least an eighth full as a rule: fails once in 70 times
  const Directory* directory = directory_.load(std::memory_order_acquire);  // [T3]
  if (directory == nullptr) return nullptr;
  for (int probe = 0; probe < kProbes; ++probe) {
    random = random * 6364136223846793005u +
             1442695040888963407u;  // Knuth's generator; its high bits are good
    const auto index = static_cast<uint32_t>(((random >> 1) >> (63 - directory->depth())));
    const Segment& segment =
        *SegmentOf(directory->at(index).load(std::memory_order_acquire));  // [T3]
    const uint32_t slot = static_cast<uint32_t>(((random & 0xffffffff) * segment.slots()) >> 32);
    const uint64_t word = segment.line(slot / Shape::kSlots)
                              .slots[slot % Shape::kSlots]
                              .load(std::memory_order_acquire);  // [T1]
    if (word != 0) return EntryOf<Entry>(word);
  }
  const auto first = static_cast<uint32_t>((random >> 1) >> (63 - directory->depth()));
  for (uint32_t i = 0; i < directory->size(); ++i) {
    const uint64_t reference = directory->at((first + i) & (directory->size() - 1))
                                   .load(std::memory_order_acquire);  // [T3]
    if (Entry* entry = AnyIn(*SegmentOf(reference), random)) return entry;
  }
  return nullptr;
}

template <class Entry, class Sync, class Shape>
Entry* BasicTable<Entry, Sync, Shape>::AnyIn(const Segment& segment, uint64_t random) {
  Entry* any = nullptr;
  const auto first = static_cast<uint32_t>((random & 0xffffffff) % segment.lines());
  for (uint32_t i = 0; i < segment.lines() && any == nullptr; ++i)
    VisitSlots(segment.line((first + i) % segment.lines()), ~uint64_t{0},
               [&](Entry& entry) { any = &entry; });
  return any;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::CheckInvariants() const {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return Check(size() == 0, "a table without a directory is empty");
  size_t keys = 0, bytes = directory->bytes();
  uint32_t deepest = 0;
  for (uint32_t i = 0; i < directory->size();) {
    const uint64_t reference = directory->at(i).load(std::memory_order_relaxed);
    const Segment& segment = *SegmentOf(reference);
    Check(DepthOf(reference) == segment.depth() && segment.depth() <= directory->depth(),
          "a reference knows its depth");
    Check(segment.bucket_bits() == directory->bucket_bits(),
          "a directory knows how many buckets segments have");
    Check(segment.bucket_bits() == Shape::kBucketBits || directory->depth() == 0,
          "only a first segment is small");
    const uint32_t span = 1u << (directory->depth() - segment.depth());
    for (uint32_t j = 0; j < span; ++j)
      Check(directory->at(i + j).load(std::memory_order_relaxed) == reference,
            "references to a segment are neighbours");
    CheckSegment(segment, i / span);
    i += span;
    keys += segment.live;
    bytes += segment.bytes();
    deepest += segment.depth() == directory->depth() ? 1 : 0;
  }
  Check(keys == size(), "segments hold as many keys as the table says");
  Check(bytes == bytes_.load(std::memory_order_relaxed), "the table knows its bytes");
  Check(deepest == deepest_ && deepest_ != 0,
        "the table knows how many segments are as deep as its directory");
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::CheckSegment(const Segment& segment, uint32_t prefix) {
  struct Counts {
    uint64_t next = 0, stash = 0;
  };
  std::vector<Counts> counts(segment.buckets());
  uint32_t live = 0;
  for (uint32_t b = 0; b < segment.lines(); ++b) {
    const Line& line = segment.line(b);
    const uint64_t guests = Header::Guests(line.header.load(std::memory_order_relaxed));
    for (uint32_t i = 0; i < Shape::kSlots; ++i) {
      const uint64_t word = line.slots[i].load(std::memory_order_relaxed);
      const bool guest = ((guests >> i) & 1) != 0;
      Check(word != 0 || !guest, "an empty slot holds no guest");
      if (word == 0) continue;
      ++live;
      const Entry& entry = *EntryOf<Entry>(word);
      const uint64_t hash = EntryHash(entry);
      const uint32_t home = Bucket(hash, segment.bucket_bits());
      Check(DirectoryIndex(hash, segment.depth()) == prefix, "a key is in its segment");
      Check(word >> 48 == TagOf(hash, segment.depth()), "a slot has its key's tag");
      Check(segment.deadline_hint_ms <= entry.deadline_ms(),
            "no deadline comes before the hint [T5]");
      if (b >= segment.buckets()) {
        ++counts[home].stash;
      } else if (guest) {
        Check(segment.NextBucket(home) == b, "a guest comes from the bucket before");
        ++counts[home].next;
      } else {
        Check(home == b, "a key is at home, a guest or in the stash");
      }
    }
  }
  Check(live == segment.live, "a segment knows how many keys it holds");
  for (uint32_t b = 0; b < segment.buckets(); ++b) {
    const uint64_t header = segment.line(b).header.load(std::memory_order_relaxed);
    Check(Header::Next(header) == counts[b].next,
          "a bucket knows how many of its keys are next door [T2]");
    Check(Header::Stash(header) == counts[b].stash,
          "a bucket knows how many of its keys are in the stash [T2]");
  }
}

}  // namespace idemd::storage
