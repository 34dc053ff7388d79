// Counters of storage: hits, misses, expirations, waits, changes, evictions, large values freed later. Spread over cache lines so that threads do not share one.
//
// Threads   any; each thread adds to its own line (two threads share one only past 64), readers sum all lines.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace idemd::storage {

class StorageStats {
 public:
  enum Counter : uint8_t { kHits, kMisses, kExpired, kWaits, kWaitsServed, kChanges, kEvicted, kLazyFreed, kCounters };

  void Add(Counter counter, uint64_t n = 1) {
    lines_[Line()].values[counter].fetch_add(n, std::memory_order_relaxed);
  }
  uint64_t Get(Counter counter) const {
    uint64_t sum = 0;
    for (const auto& line : lines_) sum += line.values[counter].load(std::memory_order_relaxed);
    return sum;
  }
  void Reset() {
    for (auto& line : lines_)
      for (auto& value : line.values) value.store(0, std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kLines = 64;
  static uint32_t Line() {
    static std::atomic<uint32_t> next{0};
    thread_local const uint32_t mine = next.fetch_add(1, std::memory_order_relaxed) % kLines;
    return mine;
  }
  struct alignas(64) CounterLine {
    std::array<std::atomic<uint64_t>, kCounters> values{};
  };
  std::array<CounterLine, kLines> lines_{};
};

}  // namespace idemd::storage
