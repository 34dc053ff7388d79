// The latency monitor's series.
#include "server/admin/latency.h"

#include <algorithm>
#include <ctime>

namespace idemd::server {

void LatencyMonitor::Keep(const char* event, int64_t ms) {
  AddAt(event, ms, static_cast<int64_t>(std::time(nullptr)));
}

void LatencyMonitor::AddAt(absl::string_view event, int64_t ms, int64_t unix_s) {
  storage::MutexLock lock(mutex_);
  auto it = events_.find(event);
  if (it == events_.end()) it = events_.emplace(std::string(event), Series{}).first;
  Series& series = it->second;
  series.max_ms = std::max(series.max_ms, ms);
  // One sample per second: the second's worst.
  LatencySample& last = series.ring[(series.next + kSamples - 1) % kSamples];
  if (last.unix_s == unix_s) {
    last.ms = std::max(last.ms, ms);
    return;
  }
  series.ring[series.next] = {unix_s, ms};
  series.next = (series.next + 1) % kSamples;
}

LatencyMonitor::Event LatencyMonitor::Describe(const std::string& name, const Series& series) {
  Event event;
  event.name = name;
  event.max_ms = series.max_ms;
  for (size_t i = 0; i < kSamples; ++i) {
    const LatencySample& sample = series.ring[(series.next + i) % kSamples];
    if (sample.unix_s != 0) event.samples.push_back(sample);
  }
  return event;
}

std::vector<LatencyMonitor::Event> LatencyMonitor::Events() const {
  storage::MutexLock lock(mutex_);
  std::vector<Event> all;
  for (const auto& [name, series] : events_) all.push_back(Describe(name, series));
  return all;
}

bool LatencyMonitor::Find(absl::string_view name, Event* event) const {
  storage::MutexLock lock(mutex_);
  auto it = events_.find(name);
  if (it == events_.end()) return false;
  *event = Describe(it->first, it->second);
  return true;
}

size_t LatencyMonitor::Reset() {
  storage::MutexLock lock(mutex_);
  const size_t n = events_.size();
  events_.clear();
  return n;
}

bool LatencyMonitor::Reset(absl::string_view name) {
  storage::MutexLock lock(mutex_);
  auto it = events_.find(name);
  if (it == events_.end()) return false;
  events_.erase(it);
  return true;
}

}  // namespace idemd::server
