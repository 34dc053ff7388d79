// How a table finds what has expired: each segment has a hint, and a queue says which segment to look at next.
//
// Included by table.h only. The cost follows the keys that expire: a segment is looked at when something in it may be due,
// its lines are read one after another, and of entries out of line only those whose coarse deadline has come.
#pragma once

#include <algorithm>

#include "storage/table/table.h"

namespace idemd::storage {

template <class Entry, class Sync, class Shape>
class BasicTable<Entry, Sync, Shape>::Due {
 public:
  Item item;
  uint64_t hash = 0;

 private:
  friend class BasicTable;
  Segment* segment_ = nullptr;
  Spot spot_;
};

// The queue holds each segment that has a hint at least once at a time that is not later; what it says of segments that
// were replaced meanwhile is passed over.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::NoteDeadline(Segment& segment, uint64_t hash, int64_t deadline_ms) {
  if constexpr (Sync::kFault == Fault::kHintNotLowered) return;
  if (deadline_ms >= segment.deadline_hint_ms) return;
  segment.deadline_hint_ms = deadline_ms;  // [T5]
  Enqueue(segment, DirectoryIndex(hash, kDepthMax));
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Enqueue(Segment& segment, uint32_t prefix) {
  if (segment.deadline_hint_ms >= segment.queued_ms) return;
  segment.queued_ms = segment.deadline_hint_ms;
  queue_.push_back({segment.queued_ms, prefix});
  std::push_heap(queue_.begin(), queue_.end());
  if (queue_.size() > 64 + 4 * size_t{segments_}) CompactQueue();
  SetNextDue();
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SetNextDue() {
  next_due_ms_.store(queue_.empty() ? kNoDeadline : queue_.front().at_ms, std::memory_order_relaxed);
}

// Copies leave their predecessors' places in the queue behind.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::CompactQueue() {
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  queue_.clear();
  for (uint32_t i = 0; i < directory->size();) {
    Segment& segment = *SegmentOf(directory->at(i).load(std::memory_order_relaxed));
    if (segment.deadline_hint_ms != kNoDeadline) queue_.push_back({segment.deadline_hint_ms, i << (kDepthMax - directory->depth())});
    segment.queued_ms = segment.deadline_hint_ms;
    i += 1u << (directory->depth() - segment.depth());
  }
  std::make_heap(queue_.begin(), queue_.end());
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::CollectDue(int64_t now_ms, int64_t base_ms, size_t max_segments,
                                                std::vector<Due>& due) {
  time_ms_ = std::max(time_ms_, now_ms);
  const Directory* directory = directory_.load(std::memory_order_relaxed);
  while (!queue_.empty() && queue_.front().at_ms <= now_ms && max_segments-- != 0) {
    const Queued top = queue_.front();
    std::pop_heap(queue_.begin(), queue_.end());
    queue_.pop_back();
    Segment& segment =
        *SegmentOf(directory->at(top.prefix >> (kDepthMax - directory->depth())).load(std::memory_order_relaxed));
    if (segment.queued_ms != top.at_ms) continue;
    segment.queued_ms = kNoDeadline;
    if (segment.deadline_hint_ms <= now_ms) SweepSegment(segment, now_ms, base_ms, due);
    Enqueue(segment, top.prefix);
  }
  SetNextDue();
  return next_due_ms() <= now_ms;
}

// Collects what is due and makes the hint the earliest of the others, as far as the lines tell.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SweepSegment(Segment& segment, int64_t now_ms, int64_t base_ms,
                                                  std::vector<Due>& due) {
  const int64_t coded_ms = segment.coarse_base_ms;
  const int64_t far_ms = coded_ms + kCoarseFarMs;
  const bool code_anew = far_ms <= now_ms;
  if (code_anew) segment.coarse_base_ms = now_ms;
  int64_t earliest = kNoDeadline;
  const auto add = [&](const Item& item, uint64_t hash, uint32_t number, uint32_t word) {
    Due found;
    found.item = item;
    found.hash = hash;
    found.segment_ = &segment;
    found.spot_.line = &segment.line(number);
    found.spot_.word = word;
    const uint32_t home = BucketOf(hash, segment.buckets());
    found.spot_.distance = number >= home ? number - home : number + segment.buckets() - home;
    due.push_back(found);
  };
  // Inline deadlines as distances from the base, so that the usual line costs a few instructions: [T2] all of them lie
  // less than 2^32 ms after it.
  const auto base = static_cast<uint32_t>(base_ms);
  const auto until_now = static_cast<uint32_t>(std::clamp<int64_t>(now_ms - base_ms, 0, UINT32_MAX - 1));
  uint32_t earliest_inline = UINT32_MAX;
  for (uint32_t number = 0; number < segment.buckets(); ++number) {
    Line& line = segment.line(number);
    const uint64_t header = line.header.load(std::memory_order_relaxed);
    const uint64_t cells = line.cells.load(std::memory_order_relaxed);
    const uint32_t cell_of[Header::kPairs] = {Header::Cell(header), static_cast<uint32_t>(cells),
                                              static_cast<uint32_t>(cells >> 32)};
    for (uint32_t pair = 0; pair < Shape::kPairs; ++pair) {
      const uint64_t what = Header::Pair(header, pair);
      const uint32_t cell = cell_of[pair];
      if (what >= Header::kShapeMin) {
        const uint32_t distance = cell == kCellNone ? UINT32_MAX : cell - base;
        if (distance > until_now) {
          earliest_inline = std::min(earliest_inline, distance);
          continue;
        }
        Item item;
        item.shape = static_cast<uint32_t>(what);
        item.cell = cell;
        item.words[0] = line.words[2 * pair].load(std::memory_order_relaxed);
        item.words[1] = line.words[2 * pair + 1].load(std::memory_order_relaxed);
        add(item, Entry::InlineHash(item.shape, item.words), number, 2 * pair);
        continue;
      }
      if (what == Header::kFree) continue;
      for (uint32_t i = 0; i < 2; ++i) {
        const uint32_t coarse = cell >> (16 * i) & 0xffff;
        if (coarse == kCoarseNone) continue;
        const int64_t from_ms = coarse == kCoarseFar ? far_ms : coded_ms + int64_t{coarse} * 1024;
        if (!code_anew && coarse != 0 && from_ms > now_ms) {
          earliest = std::min(earliest, from_ms);
          continue;
        }
        const uint64_t word = line.words[2 * pair + i].load(std::memory_order_relaxed);
        if (word == 0) continue;
        Item item;
        item.entry = EntryOf<Entry>(word);
        const int64_t deadline_ms = item.entry->deadline_ms();
        if (code_anew) SetCoarse(line, 2 * pair + i, CoarseOf(deadline_ms, now_ms));
        if (deadline_ms <= now_ms)
          add(item, item.entry->hash(), number, 2 * pair + i);
        else
          earliest = std::min(earliest, deadline_ms);
      }
    }
  }
  if (earliest_inline != UINT32_MAX) earliest = std::min(earliest, base_ms + int64_t{earliest_inline});
  segment.deadline_hint_ms = earliest;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Remove(const Due& due) {
  Erase(*due.segment_, BucketOf(due.hash, due.segment_->buckets()), due.spot_, due.item.entry == nullptr);
  SetSize(size() - 1);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::FinishDue(const std::vector<Due>& due) {
  const Segment* last = nullptr;
  for (const Due& d : due) {
    if (d.segment_ == last) continue;
    last = d.segment_;
    MaybeShrink(d.hash);
  }
}

}  // namespace idemd::storage
