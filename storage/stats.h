// Counters of storage: hits, misses, expirations, waits, changes, evictions, large values freed later.
//
// Threads   any; each thread adds to its own line, those past 63 to one that they share; readers sum all lines.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace idemd::storage {

class StorageStats {
 public:
  enum Counter : uint8_t { kHits, kMisses, kExpired, kWaits, kWaitsServed, kChanges, kEvicted, kLazyFreed, kCounters };

  void Add(Counter counter, uint64_t n = 1) {
    const uint32_t line = Line();
    std::atomic<uint64_t>& value = lines_[line].values[counter];
    if (line == kShared) [[unlikely]] {
      value.fetch_add(n, std::memory_order_relaxed);
    } else {  // its only writer is this thread
      value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  }
  // Since the last reset.
  uint64_t Get(Counter counter) const { return Sum(counter) - base_[counter].load(std::memory_order_relaxed); }
  // Of all but the changes: how many there were since a snapshot is told by their difference.
  void Reset() {
    for (uint8_t i = 0; i < kCounters; ++i)
      if (i != kChanges) base_[i].store(Sum(static_cast<Counter>(i)), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kLines = 64;
  static constexpr uint32_t kShared = kLines - 1;
  static uint32_t Line() {
    static std::atomic<uint32_t> next{0};
    static constexpr uint32_t kNone = UINT32_MAX;
    static constinit thread_local uint32_t mine = kNone;
    if (mine == kNone) [[unlikely]]
      mine = std::min(next.fetch_add(1, std::memory_order_relaxed), kShared);
    return mine;
  }
  uint64_t Sum(Counter counter) const {
    uint64_t sum = 0;
    for (const auto& line : lines_) sum += line.values[counter].load(std::memory_order_relaxed);
    return sum;
  }
  struct alignas(64) CounterLine {
    std::array<std::atomic<uint64_t>, kCounters> values{};
  };
  std::array<CounterLine, kLines> lines_{};
  std::array<std::atomic<uint64_t>, kCounters> base_{};  // at the last reset
};

}  // namespace idemd::storage
