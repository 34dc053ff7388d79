// How a table is saved as of one moment while it changes: line by line, each before its first change.
//
// Included by table.h only. Which lines are saved is a mark in their segment (segment.h); without a cut under way all that
// a change pays is a look at a null pointer.
#pragma once

#include "storage/table/table.h"

namespace idemd::storage {

template <class Entry, class Sync, class Shape>
[[gnu::noinline]] void BasicTable<Entry, Sync, Shape>::SaveUnlessSaved(Segment& segment, uint32_t bucket) {
  const uint32_t epoch = cut_->epoch();
  if (segment.Saved(epoch, bucket)) return;
  const Line& line = segment.line(bucket);
  VisitLine(line, line.header.load(std::memory_order_relaxed), [&](const Item& item) { cut_->Save(item); });
  segment.MarkSaved(epoch, bucket);
}

// All of a segment, before it is copied and goes.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SaveSegment(Segment& segment) {
  if (cut_ == nullptr || Sync::kFault == Fault::kCopiedUnsaved || segment.AllSaved(cut_->epoch())) return;
  for (uint32_t bucket = 0; bucket < segment.buckets(); ++bucket) {
    PrefetchLine(segment, bucket);
    SaveUnlessSaved(segment, bucket);
  }
  segment.MarkAllSaved(cut_->epoch());
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SaveBefore(const Key& key) {
  if (cut_ == nullptr || Sync::kFault == Fault::kEditedUnsaved) [[likely]]
    return;
  const Where at = Locate(key.hash);
  Item item;
  Spot spot;
  if (Look(*at.segment, at.buckets, at.bucket, key, &item, &spot) == Seen::kHere) SaveLine(*at.segment, *spot.line);
}

// As for Relocate(), the position survives splits and merges: segments that these make are marked, so that nothing is lost
// or saved twice wherever they lie. Of a segment that was not finished the marks tell what is left.
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::SaveNext(uint64_t* position, absl::FunctionRef<bool()> enough) {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  if (directory == nullptr) return true;
  const uint32_t epoch = cut_->epoch();
  while (*position >> kDepthMax == 0) {
    const auto index = static_cast<uint32_t>(*position >> (kDepthMax - directory->depth()));
    Segment& segment = *SegmentOf(directory->at(index).load(std::memory_order_relaxed));
    if (!segment.AllSaved(epoch)) {
      for (uint32_t bucket = 0; bucket < segment.buckets(); ++bucket) {
        if (segment.Saved(epoch, bucket)) continue;
        PrefetchLine(segment, bucket);
        SaveUnlessSaved(segment, bucket);
        if (enough()) return false;
      }
      segment.MarkAllSaved(epoch);
    }
    const uint64_t interval = uint64_t{1} << (kDepthMax - segment.depth());
    *position = (*position & ~(interval - 1)) + interval;
  }
  return true;
}

// Brings into the cache what will be saved soon after this bucket: entries two lines on.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PrefetchLine(const Segment& segment, uint32_t bucket) {
  constexpr uint32_t kAhead = 2;  // with six entries each, about as many cache misses as a core keeps in flight
  if (bucket + kAhead >= segment.buckets()) return;
  const Line& line = segment.line(bucket + kAhead);
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  if (!Header::HasSlots(header)) return;
  for (uint32_t i = 0; i < 2 * Shape::kPairs; ++i) {
    if (Header::Pair(header, i / 2) != Header::kSlots) continue;
    const uint64_t word = line.words[i].load(std::memory_order_relaxed);
    if (word == 0) continue;
    __builtin_prefetch(EntryOf<char>(word));
    __builtin_prefetch(EntryOf<char>(word) + 63);
  }
}

}  // namespace idemd::storage
