// Growing, splitting and erasing.
#include "storage/collection/place_index.h"

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace idemd::storage {

// Where this very slot stands.
uint32_t PlaceIndex::At(const Part& part, uint64_t slot) {
  uint32_t i = static_cast<uint32_t>(slot >> 32) & part.mask;
  while (part.slots[i] != slot) i = (i + 1) & part.mask;
  return i;
}

void PlaceIndex::Put(Part& part, uint64_t slot) {
  uint32_t i = static_cast<uint32_t>(slot >> 32) & part.mask;
  while (part.slots[i] != 0) i = (i + 1) & part.mask;
  part.slots[i] = slot;
  ++part.used;
}

void PlaceIndex::Allocate(Part& part, uint32_t slots) {
  part.slots = static_cast<uint64_t*>(std::calloc(slots, sizeof(uint64_t)));
  if (part.slots == nullptr) throw std::bad_alloc();
  part.mask = slots - 1;
  part.used = 0;
  bytes_ += malloc_usable_size(part.slots);
}

void PlaceIndex::Free(Part& part) {
  bytes_ -= malloc_usable_size(part.slots);
  std::free(part.slots);
}

void PlaceIndex::Clear() {
  for (Part& part : parts_) Free(part);
  parts_ = {};
  bytes_ = 0;
}

void PlaceIndex::Resize(Part& part, uint32_t slots) {
  Part old = part;
  Allocate(part, slots);
  for (uint32_t i = 0; i <= old.mask; ++i)
    if (old.slots[i] != 0) Put(part, old.slots[i]);
  Free(old);
}

void PlaceIndex::Split() {
  Part whole = parts_[0];
  parts_.assign(kParts, {});
  bytes_ += kParts * sizeof(Part);
  for (Part& part : parts_) Allocate(part, kSplitAt / kParts * 2);
  for (uint32_t i = 0; i <= whole.mask; ++i) {
    const uint64_t slot = whole.slots[i];
    if (slot == 0) continue;
    Part& part = PartOf(static_cast<uint32_t>(slot >> 32));
    if (part.used == part.mask / 5 * 4) Resize(part, (part.mask + 1) * 2);
    Put(part, slot);
  }
  Free(whole);
}

void PlaceIndex::Insert(uint64_t hash, uint32_t place) {
  if (parts_.empty()) {
    parts_.resize(1);
    Allocate(parts_[0], kSlotsMin);
  }
  if (parts_.size() == 1 && parts_[0].used == kSplitAt) Split();
  Part& part = PartOf(Tag(hash));
  if (uint64_t{part.used} * 5 >= (uint64_t{part.mask} + 1) * 4) Resize(part, (part.mask + 1) * 2);
  Put(part, Slot(Tag(hash), place));
}

void PlaceIndex::Erase(uint64_t hash, uint32_t place) {
  Part& part = PartOf(Tag(hash));
  uint32_t hole = At(part, Slot(Tag(hash), place));
  for (uint32_t i = (hole + 1) & part.mask; part.slots[i] != 0; i = (i + 1) & part.mask) {
    // It may move back unless its home lies between the hole and itself.
    const uint32_t home = static_cast<uint32_t>(part.slots[i] >> 32) & part.mask;
    if (((i - home) & part.mask) < ((i - hole) & part.mask)) continue;
    part.slots[hole] = part.slots[i];
    hole = i;
  }
  part.slots[hole] = 0;
  --part.used;
  if (part.mask >= kSlotsMin && part.used < (part.mask + 1) / 8) Resize(part, (part.mask + 1) / 2);
}

void PlaceIndex::Move(uint64_t hash, uint32_t place, uint32_t to) {
  Part& part = PartOf(Tag(hash));
  part.slots[At(part, Slot(Tag(hash), place))] = Slot(Tag(hash), to);
}

}  // namespace idemd::storage
