// From a hash to an id of one byte: an open-addressed index that only grows, read without a lock.
//
// Threads     Find() runs on any thread at any time. One thread at a time calls Add().
// Invariants  [I1] What an id stands for is written before Add(), and never again: a Find() that
// offers an id to `is` sees
//                  all of it.
//             [I2] A Find() that starts after Add() returned offers that id.
// Linearized  Add at the slot store; Find at the load that it answers from.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "storage/sync/sync.h"

namespace idemd::storage {

class IdIndex {
 public:
  // The id for which `is(id)` holds among those added with this hash; 0 when there is none.
  template <class Is>
  uint8_t Find(uint64_t hash, Is is) const {
    for (size_t i = hash & kMask;; i = (i + 1) & kMask) {
      // [I1] pairs with the store in Add().
      const uint32_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0) return 0;
      const auto id = static_cast<uint8_t>(slot);
      if (slot >> kIdBits == hash >> kHashShift && is(id)) return id;
    }
  }

  void Add(uint64_t hash, uint8_t id) {
    size_t i = hash & kMask;
    // Relaxed: only this thread stores.
    while (slots_[i].load(std::memory_order_relaxed) != 0) i = (i + 1) & kMask;
    slots_[i].store(static_cast<uint32_t>(hash >> kHashShift << kIdBits) | id,
                    std::memory_order_release);  // [I1] pairs with the load in Find()
  }

 private:
  // A slot, 0 when empty: 24 bits of hash | 8 bits of id, which is never 0.
  static constexpr int kIdBits = 8;
  static constexpr int kHashShift = 40;
  static_assert(64 - kHashShift + kIdBits == 32, "the fields tile the word");
  // Twice the ids: a search always meets an empty slot, soon.
  static constexpr size_t kSlots = 512;
  static constexpr size_t kMask = kSlots - 1;

  // Writer: the thread in Add(). Readers: Find(), any thread.
  alignas(64) std::array<RealSync::Atomic<uint32_t>, kSlots> slots_;
};

}  // namespace idemd::storage
