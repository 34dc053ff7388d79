// The wait timer's order.
#include "storage/wait/wait_line.h"

#include <utility>

namespace idemd::storage {

std::vector<std::string> WaitLines::Names() const {
  std::vector<std::string> names;
  names.reserve(lines_.size());
  for (const auto& [name, line] : lines_) names.push_back(name);
  return names;
}

void WaitTimer::Move(uint32_t shard, const std::string& name, int64_t from_ms, int64_t to_ms) {
  if (from_ms == to_ms) return;
  MutexLock lock(mutex_);
  if (from_ms != kNoDeadline) due_.erase(Due{from_ms, shard, name});
  if (to_ms != kNoDeadline) due_.insert(Due{to_ms, shard, name});
  const int64_t before = next_ms_.load(std::memory_order_relaxed);
  const int64_t next = due_.empty() ? kNoDeadline : due_.begin()->at_ms;
  next_ms_.store(next, std::memory_order_relaxed);
  if (next < before && wake_) wake_();
}

std::vector<WaitTimer::Due> WaitTimer::TakeDue(int64_t now_ms) {
  std::vector<Due> taken;
  MutexLock lock(mutex_);
  auto last = due_.begin();
  for (; last != due_.end() && last->at_ms <= now_ms; ++last) taken.push_back(*last);
  due_.erase(due_.begin(), last);
  next_ms_.store(due_.empty() ? kNoDeadline : due_.begin()->at_ms, std::memory_order_relaxed);
  return taken;
}

size_t WaitTimer::size() const {
  MutexLock lock(mutex_);
  return due_.size();
}

void WaitTimer::SetWake(std::function<void()> wake) {
  MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace idemd::storage
