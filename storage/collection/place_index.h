// From hashes to places: which places of a table may hold what has this hash.
//
//   slot:  63            32 31             0
//          +---------------+---------------+
//          | top of hash   | place + 1     |   0: empty
//          +---------------+---------------+
//
// Open addressing, linear probing, at most four fifths full; erasing moves back what stands behind. It grows without looking at the
// elements, and from kSplitAt entries on it has 256 parts that grow each for itself, so that no single insertion takes long.
//
// Threads   one, or several that only read.
// Limits    places below 2^32 - 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace idemd::storage {

class PlaceIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  PlaceIndex() = default;
  ~PlaceIndex() { Clear(); }
  PlaceIndex(const PlaceIndex&) = delete;
  PlaceIndex& operator=(const PlaceIndex&) = delete;

  // The place for which `is(place)` holds, of those that were inserted with this hash; or kNone.
  template <class Is>
  uint32_t Find(uint64_t hash, Is is) const;
  void Insert(uint64_t hash, uint32_t place);
  // What was inserted with `hash` and `place`.
  void Erase(uint64_t hash, uint32_t place);
  void Move(uint64_t hash, uint32_t place, uint32_t to);
  void Clear();
  bool empty() const { return parts_.empty(); }  // cleared, or never inserted into
  size_t memory_bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kSlotsMin = 16;
  static constexpr uint32_t kSplitAt = 1u << 16;
  static constexpr uint32_t kParts = 256;

  struct Part {
    uint64_t* slots = nullptr;
    uint32_t mask = 0;
    uint32_t used = 0;
  };

  static uint32_t Tag(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  static uint64_t Slot(uint32_t tag, uint32_t place) { return uint64_t{tag} << 32 | (uint64_t{place} + 1); }
  static uint32_t PlaceOf(uint64_t slot) { return static_cast<uint32_t>(slot) - 1; }
  // The parts go by the top bits, the slots of a part by the lowest.
  const Part& PartOf(uint32_t tag) const { return parts_[parts_.size() == 1 ? 0 : tag >> 24]; }
  Part& PartOf(uint32_t tag) { return parts_[parts_.size() == 1 ? 0 : tag >> 24]; }
  static uint32_t At(const Part& part, uint64_t slot);
  static void Put(Part& part, uint64_t slot);
  void Allocate(Part& part, uint32_t slots);
  void Free(Part& part);
  void Resize(Part& part, uint32_t slots);
  void Split();

  std::vector<Part> parts_;  // none, one or kParts
  size_t bytes_ = 0;
};

template <class Is>
uint32_t PlaceIndex::Find(uint64_t hash, Is is) const {
  if (parts_.empty()) return kNone;
  const uint32_t tag = Tag(hash);
  const Part& part = PartOf(tag);
  for (uint32_t i = tag & part.mask;; i = (i + 1) & part.mask) {
    const uint64_t slot = part.slots[i];
    if (slot == 0) return kNone;
    if (static_cast<uint32_t>(slot >> 32) == tag && is(PlaceOf(slot))) return PlaceOf(slot);
  }
}

}  // namespace idemd::storage
