// The wait timer's heap.
#include "storage/wait/wait_line.h"

#include <utility>

namespace idemd::storage {

std::vector<std::string> WaitLines::Names() const {
  std::vector<std::string> names;
  names.reserve(lines_.size());
  for (const auto& [name, line] : lines_) names.push_back(name);
  return names;
}

void WaitTimer::Add(Due due) {
  MutexLock lock(mutex_);
  const bool earlier = due.at_ms < next_ms_.load(std::memory_order_relaxed);
  if (earlier) next_ms_.store(due.at_ms, std::memory_order_relaxed);
  due_.push(std::move(due));
  if (earlier && wake_) wake_();
}

std::vector<WaitTimer::Due> WaitTimer::TakeDue(int64_t now_ms) {
  std::vector<Due> taken;
  MutexLock lock(mutex_);
  while (!due_.empty() && due_.top().at_ms <= now_ms) {
    taken.push_back(due_.top());
    due_.pop();
  }
  next_ms_.store(due_.empty() ? kNoDeadline : due_.top().at_ms, std::memory_order_relaxed);
  return taken;
}

void WaitTimer::SetWake(std::function<void()> wake) {
  MutexLock lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace idemd::storage
