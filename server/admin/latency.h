// The latency monitor: per kind of event, the last seconds in which something took too long.
//
// Threads   any. Add() below the threshold is one relaxed load; the lock is taken only for what is
// kept and by LATENCY.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

struct LatencySample {
  int64_t unix_s = 0;
  int64_t ms = 0;  // the worst of that second
};

class LatencyMonitor {
 public:
  static constexpr size_t kSamples = 160;  // per event, as Redis

  // Setting latency-monitor-threshold, 0: off; stored by CONFIG SET.
  std::atomic<int64_t> threshold_ms{0};

  // Keeps the sample if the monitor is on and `ms` reaches its threshold.
  bool IsSlow(int64_t ms) const {
    const int64_t limit = threshold_ms.load(std::memory_order_relaxed);
    return limit != 0 && ms >= limit;
  }
  void Add(const char* event, int64_t ms) {
    if (IsSlow(ms)) Keep(event, ms);
  }
  void AddAt(absl::string_view event, int64_t ms, int64_t unix_s);

  struct Event {
    std::string name;
    int64_t max_ms = 0;                  // since the event's last reset
    std::vector<LatencySample> samples;  // oldest first
  };
  std::vector<Event> Events() const;  // by name
  // False when there is no such event.
  bool Find(absl::string_view name, Event* event) const;
  // All, or those named; returns how many there were.
  size_t Reset();
  bool Reset(absl::string_view name);

 private:
  void Keep(const char* event, int64_t ms);

  struct Series {
    int64_t max_ms = 0;
    size_t next = 0;  // where the next sample goes
    std::array<LatencySample, kSamples> ring{};
  };
  static Event Describe(const std::string& name, const Series& series);

  mutable storage::Mutex mutex_;
  std::map<std::string, Series, std::less<>> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server
