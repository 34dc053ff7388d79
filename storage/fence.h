// Fences: integers that only grow, one counter for the whole process.
//
// A fence must be larger than every fence given out before on any key, so this counter is shared by all threads on
// purpose; it is touched once per granted claim, not per request.
// Source of the start value: the contract's "fence" paragraph.
#pragma once

#include <atomic>
#include <cstdint>

#include "storage/effect_log.h"

namespace idemd::storage {

inline constexpr uint64_t kFenceLimit = uint64_t{1} << 53;      // safe in JavaScript
inline constexpr uint64_t kFenceHeadroom = uint64_t{1} << 50;   // a record's fence may lie this far above the clock's

// The clock's floor for fences.
inline uint64_t FenceFloor(int64_t effective_ms) { return static_cast<uint64_t>(effective_ms) * 1024; }

// Fences are reserved in the log in blocks of so many, before the first of them is used: a restart begins behind the block.
inline constexpr uint64_t kFenceBlock = uint64_t{1} << 20;

class FenceCounter {
 public:
  FenceCounter(uint64_t start, EffectLog& log) : log_(log), last_(start) {}
  uint64_t Next() {
    const uint64_t fence = last_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (fence > reserved_.load(std::memory_order_acquire)) [[unlikely]]
      Reserve(fence);
    return fence;
  }
  // A record that came from outside raises the mark.
  void Raise(uint64_t seen) {
    uint64_t last = last_.load(std::memory_order_relaxed);
    while (last < seen && !last_.compare_exchange_weak(last, seen, std::memory_order_relaxed)) {
    }
  }
  uint64_t last() const { return last_.load(std::memory_order_relaxed); }
  // The log knows already that all up to `fence` may have been given out.
  void SetReserved(uint64_t fence) { reserved_.store(fence, std::memory_order_release); }

 private:
  void Reserve(uint64_t fence) {
    // Several threads may do so at once; who finds a block reserved finds it in the log, in front of its own effects.
    log_.ReserveFences(fence + kFenceBlock);
    uint64_t reserved = reserved_.load(std::memory_order_relaxed);
    while (reserved < fence + kFenceBlock &&
           !reserved_.compare_exchange_weak(reserved, fence + kFenceBlock, std::memory_order_release)) {
    }
  }

  EffectLog& log_;
  std::atomic<uint64_t> last_;
  std::atomic<uint64_t> reserved_{0};
};

// Whether a record with this fence may be believed at this time.
inline bool FencePlausible(uint64_t fence, int64_t effective_ms) {
  return fence < kFenceLimit && fence <= FenceFloor(effective_ms) + kFenceHeadroom;
}

}  // namespace idemd::storage
