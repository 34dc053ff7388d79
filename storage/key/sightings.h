// How often something was seen, roughly: counters in a fixed array, for finding what is common
// among anything.
//
// A counter belongs to one hash at a time. Another hash that falls on it takes one off, and takes
// it over at 0: what is seen in most of a counter's sightings gets there however many rare things
// come by. (Majority vote, Boyer and Moore.)
//
// Threads   Any. Counts are lost when two threads write one counter at once: the writes are single
// stores, since a
//           sighting more or less decides nothing that matters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "storage/sync/sync.h"

namespace idemd::storage {

class Sightings {
 public:
  static constexpr uint32_t kEnough = 64;

  // Counts one. True when that makes it enough; the counter then starts over.
  bool Add(uint64_t hash) {
    RealSync::Atomic<uint32_t>& counter = counters_[(hash >> kIndexShift) & (kCounters - 1)];
    const auto owner = static_cast<uint32_t>(hash >> kOwnerShift);
    // Relaxed: a counter is all that its word says.
    const uint32_t word = counter.load(std::memory_order_relaxed);
    uint32_t count = word & kCountMask;
    if (word >> kCountBits == owner || count == 0) {
      ++count;
      counter.store(count < kEnough ? owner << kCountBits | count : 0, std::memory_order_relaxed);
      return count >= kEnough;
    }
    counter.store(word - 1, std::memory_order_relaxed);
    return false;
  }

 private:
  // A counter: 24 bits of the owner's hash | 8 bits of count.
  static constexpr int kCountBits = 8;
  static constexpr uint32_t kCountMask = (1u << kCountBits) - 1;
  static constexpr int kOwnerShift = 40;
  static constexpr int kIndexShift = 16;  // not the bits that IdIndex goes by
  static constexpr size_t kCounters = 1024;
  static_assert(64 - kOwnerShift + kCountBits == 32, "the fields tile the word");
  static_assert(kEnough <= kCountMask);

  // Writers and readers: Add(), any thread.
  alignas(64) std::array<RealSync::Atomic<uint32_t>, kCounters> counters_;
};

}  // namespace idemd::storage
