// How a line of the table changes: filled, emptied, counted.
//
// Included by table.h only. Everything here is done by the holder of the shard's lock while readers look on, or to a
// segment that nobody sees yet; then `order` is relaxed.
#pragma once

#include "storage/table/table.h"

namespace idemd::storage {

// [T4] Whether no guard can be reading what a free pair held before: `cell` is the low half of the epoch that the guard had
// pinned under which it was emptied (0: never held anything). A wrong "no" costs a place for a while.
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::CanReuse(uint32_t cell) {
  if constexpr (Sync::kFault == Fault::kPairReusedAtOnce) return true;
  const uint64_t epoch = ThisThread<Sync>::Participant().domain_epoch();
  return static_cast<uint32_t>(epoch) - cell >= BasicEpochDomain<Sync>::kGrace;
}

template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::CellAt(const Line& line, uint64_t header, uint32_t pair) {
  if (pair == 0) return Header::Cell(header);
  const uint64_t cells = line.cells.load(std::memory_order_acquire);
  return static_cast<uint32_t>(pair == 1 ? cells : cells >> 32);
}

template <class Entry, class Sync, class Shape>
uint64_t BasicTable<Entry, Sync, Shape>::CellsWith(const Line& line, uint32_t pair, uint32_t cell) {
  const uint64_t cells = line.cells.load(std::memory_order_relaxed);
  return pair == 1 ? (cells & ~uint64_t{UINT32_MAX}) | cell : (cells & UINT32_MAX) | uint64_t{cell} << 32;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SetCoarse(Line& line, uint32_t word, uint32_t coarse) {
  const uint32_t pair = word / 2, shift = word % 2 * 16;
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  const uint32_t cell = (CellAt(line, header, pair) & ~(0xffffu << shift)) | coarse << shift;
  if (pair == 0)
    line.header.store(Header::WithCell(header, cell), std::memory_order_release);
  else
    line.cells.store(CellsWith(line, pair, cell), std::memory_order_release);
}

// Where in the line a slot fits: the number of the word, or kNoRoom. Half a pair first: whole ones are for inline keys.
inline constexpr uint32_t kNoRoom = UINT32_MAX;
template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::RoomForSlot(const Line& line) {
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  uint32_t empty = kNoRoom, free = kNoRoom;
  for (uint32_t word = 0; word < 2 * Shape::kPairs; word += 2) {
    const uint64_t what = Header::Pair(header, word / 2);
    if (what == Header::kFree) {
      // Not before its grace is over, for a slot either: who reads the key that was here, and whose header is the old one,
      // must find it or be told by the header, also when that key lives elsewhere by now.
      if (free == kNoRoom && CanReuse(CellAt(line, header, word / 2))) free = word;
    } else if (what == Header::kSlots) {
      const bool first = line.words[word].load(std::memory_order_relaxed) != 0;
      const bool second = line.words[word + 1].load(std::memory_order_relaxed) != 0;
      if (first != second) return word + (first ? 1 : 0);
      if (!first && empty == kNoRoom) empty = word;
    }
  }
  return empty != kNoRoom ? empty : free;
}

// Where in the line an inline key fits: the number of the pair, or kNoRoom.
template <class Entry, class Sync, class Shape>
uint32_t BasicTable<Entry, Sync, Shape>::RoomForPair(Line& line) {
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  for (uint32_t pair = 0; pair < Shape::kPairs; ++pair)
    if (Header::Pair(header, pair) == Header::kFree && CanReuse(CellAt(line, header, pair))) return pair;
  // Two slots that became empty are of use to an inline key when no guard takes them for slots any more.
  for (uint32_t pair = 0; pair < Shape::kPairs; ++pair) {
    if (Header::Pair(header, pair) != Header::kSlots || line.words[2 * pair].load(std::memory_order_relaxed) != 0 ||
        line.words[2 * pair + 1].load(std::memory_order_relaxed) != 0) {
      continue;
    }
    EmptyPair(line, pair);
    break;
  }
  return kNoRoom;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::FillSlot(Line& line, uint32_t word, uint64_t slot, uint32_t coarse,
                                              std::memory_order order) {
  const uint32_t pair = word / 2;
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  if (Header::Pair(header, pair) == Header::kSlots) {
    SetCoarse(line, word, coarse);
    line.words[word].store(slot, order);  // [T1] pairs with LookInLine()
    return;
  }
  line.words[word].store(slot, order);
  line.words[word ^ 1].store(0, order);
  const uint32_t cell = word % 2 == 0 ? kCoarseNone << 16 | coarse : coarse << 16 | kCoarseNone;
  uint64_t changed = Header::WithPair(header, pair, Header::kSlots);
  if (pair == 0)
    changed = Header::WithCell(changed, cell);
  else
    line.cells.store(CellsWith(line, pair, cell), order);
  line.header.store(changed, order);  // [T1] the words before the header that makes slots of them
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::FillPair(Line& line, uint32_t pair, const Item& item, std::memory_order order) {
  line.words[2 * pair].store(item.words[0], order);
  line.words[2 * pair + 1].store(item.words[1], order);
  uint64_t header = Header::WithPair(line.header.load(std::memory_order_relaxed), pair, item.shape);
  if (pair == 0)
    header = Header::WithCell(header, item.cell);
  else
    line.cells.store(CellsWith(line, pair, item.cell), order);
  line.header.store(header, order);  // [T1] the key before its shape
}

// An inline key's new deadline, and its new shape where both are one word. False: a reader could see the one without the
// other.
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::ChangeInPlace(Line& line, uint32_t pair, uint32_t old_shape, const Item& item) {
  if (pair == 0) {
    const uint64_t header = Header::WithPair(line.header.load(std::memory_order_relaxed), pair, item.shape);
    line.header.store(Header::WithCell(header, item.cell), std::memory_order_release);
    return true;
  }
  if (old_shape != item.shape) return false;
  line.cells.store(CellsWith(line, pair, item.cell), std::memory_order_release);
  return true;
}

// [T4] The header first: who reads the epoch in the cell sees that the pair is empty.
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::EmptyPair(Line& line, uint32_t pair) {
  const auto pin = static_cast<uint32_t>(ThisThread<Sync>::Participant().pin());
  uint64_t header = line.header.load(std::memory_order_relaxed);
  header = Header::WithPair(header, pair, Header::kFree);
  if (pair == 0) return line.header.store(Header::WithCell(header, pin), std::memory_order_release);
  if constexpr (Sync::kFault == Fault::kEpochBeforeHeader)
    line.cells.store(CellsWith(line, pair, pin), std::memory_order_release);
  line.header.store(header, std::memory_order_release);
  line.cells.store(CellsWith(line, pair, pin), std::memory_order_release);
}

// One key more, or one less, lives behind this line. [T2] release: who sees a count lowered sees the place emptied too, and
// never the key again; pairs with Look().
template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Raise(Line& line, std::memory_order order) {
  if constexpr (Sync::kFault == Fault::kOverflowNotRaised) return;
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  if (Header::Overflow(header) != Header::kOverflowFull) line.header.store(header + Header::kOneOverflow, order);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Lower(Line& line) {
  if constexpr (Sync::kFault == Fault::kOverflowNotRaised) return;
  const uint64_t header = line.header.load(std::memory_order_relaxed);
  if (Header::Overflow(header) != Header::kOverflowFull)
    line.header.store(header - Header::kOneOverflow, std::memory_order_release);
}

// Puts a key that is not there, or one that is inline there and goes out of line, not before `distance_min` [T7].
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Insert(Segment& segment, uint32_t bucket, const Item& item, uint64_t hash,
                                            uint32_t distance_min, std::memory_order order) {
  const bool inlined = item.entry == nullptr;
  uint32_t number = bucket, distance = 0, room = kNoRoom;
  for (;; ++distance, number = segment.NextBucket(number)) {
    if (distance == segment.buckets()) return false;
    Line& line = segment.line(number);
    if (distance >= distance_min) room = inlined ? RoomForPair(line) : RoomForSlot(line);
    if (room != kNoRoom) break;
  }
  if constexpr (Sync::kFault != Fault::kFilledUnsaved) SaveLine(segment, segment.line(number));  // [T8]
  // [T2] The counts before the place.
  for (uint32_t on_the_way = bucket; on_the_way != number; on_the_way = segment.NextBucket(on_the_way))
    Raise(segment.line(on_the_way), order);
  if (inlined)
    FillPair(segment.line(number), room, item, order);
  else
    FillSlot(segment.line(number), room, SlotWord(TagOf(hash), item.entry),
             CoarseOf(item.entry->deadline_ms(), segment.coarse_base_ms), order);
  ++segment.live;
  segment.words += inlined ? 2 : 1;
  return true;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Erase(Segment& segment, uint32_t bucket, const Spot& spot, bool inlined) {
  if constexpr (Sync::kFault != Fault::kErasedUnsaved) SaveLine(segment, *spot.line);  // [T8]
  if (inlined) {
    EmptyPair(*spot.line, spot.pair());
  } else {
    // Release: who is told "absent" sees what was done before the removal; pairs with LookInLine().
    spot.line->words[spot.word].store(0, std::memory_order_release);
  }
  --segment.live;
  segment.words -= inlined ? 2 : 1;
  for (uint32_t i = 0, number = bucket; i < spot.distance; ++i, number = segment.NextBucket(number))
    Lower(segment.line(number));
}

}  // namespace idemd::storage
