// The atomics policy: lock-free code is written against a Sync, so that a test can step through it.
//
// A Sync has Atomic<T> (every operation names its ordering), Allocate/Free for memory that readers
// may still look at, and kFault. RealSync is what the server runs on; tests/schedule/step_sync.h
// runs one atomic operation at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace idemd::storage {

// Planted faults: a test's Sync names one and the code below it breaks that rule, to show that a
// test would notice. The server's Sync names none, and the branches vanish.
enum class Fault : uint8_t {
  kNone,
  // storage/sync/epoch.h
  kFreedOneEpochEarly,     // [R2]
  kEnteredWithoutRecheck,  // [R1] the epoch may have moved on before the slot was seen
  kEnteredRelaxed,         // [R1] the slot's store is no longer seq_cst
  kLeftRelaxed,            // [R2] the end of a guard no longer happens before the free
  // storage/table/
  kSlotPublishedRelaxed,     // [T1]
  kSegmentPublishedRelaxed,  // [T3]
  kOverflowNotRaised,        // [T2]
  kReplacedByHalves,         // [T2] the slot is empty for a moment
  kPairPublishedRelaxed,     // [T1] an inline key's shape is seen before its bytes
  kInlineNotRechecked,       // [T2] the pair may have been emptied and its cell reused since the header was read
  kOutOfLineAnywhere,        // [T7] a guest that goes out of line may go home, behind the reader
  kPairReusedAtOnce,         // [T4] another key in a pair that a guard may still be reading
  kEpochBeforeHeader,        // [T4] the cell of a pair that is still seen as a key's
  kSplitPublishedEarly,      // [T3] the halves are published first and filled then
  kSegmentFreedAtOnce,       // [T4]
  kHintNotLowered,           // [T5]
  kReplacedUnsaved,          // [T8] a key of a line that is not saved gets another value or deadline in place
  kFilledUnsaved,            // [T8] a key is put into a line that is not saved
  kErasedUnsaved,            // [T8] a key is taken out of a line that is not saved
  kEditedUnsaved,            // [T8] an entry is changed in place, and its line saved after that
  kCopiedUnsaved,            // [T8] a segment is copied before its lines are saved
  // storage/snapshot/
  kDroppedForgotten,         // [N2] a table that was dropped after the cut is not walked
};

struct RealSync {
  static constexpr Fault kFault = Fault::kNone;

  template <class T>
  class Atomic {
   public:
    Atomic() : value_{} {}
    explicit Atomic(T value) : value_(value) {}
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    T load(std::memory_order order) const { return value_.load(order); }
    void store(T value, std::memory_order order) { value_.store(value, order); }
    T exchange(T value, std::memory_order order) { return value_.exchange(value, order); }
    // On failure `expected` is what was there, read with relaxed ordering.
    bool compare_exchange(T& expected, T value, std::memory_order order) {
      return value_.compare_exchange_strong(expected, value, order, std::memory_order_relaxed);
    }

   private:
    std::atomic<T> value_;
  };

  // 64-aligned; a page and more out of the process's pages (storage/memory/page_pool.h).
  static void* Allocate(size_t bytes);
  static void Free(void* at, size_t bytes);
};

}  // namespace idemd::storage
