// Holds writers back, before they take a lock, while more is saved for a snapshot than its walker has taken over.
//
// Threads   Wait() and on(): any that holds no shard lock. Tighten(): any. Release(), Exempt(): the walker.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace idemd::storage {

class Brake {
 public:
  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Until the brake is released. Not for the walker, who would wait for itself.
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    if (walker_ == std::this_thread::get_id() || !on()) return;
    waiting_.fetch_add(1, std::memory_order_relaxed);
    // Who was let go goes, also when others have tightened it again.
    released_.wait(lock, [this, before = releases_] { return releases_ != before; });
  }
  uint32_t waiting() const { return waiting_.load(std::memory_order_relaxed); }
  // Somebody who is told a moment too late writes a little more: the limit is a rough one.
  void Tighten() { on_.store(true, std::memory_order_relaxed); }
  void Release() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      on_.store(false, std::memory_order_relaxed);
      waiting_.store(0, std::memory_order_relaxed);
      ++releases_;
    }
    released_.notify_all();
  }
  void Exempt(std::thread::id walker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    walker_ = walker;
  }

 private:
  // Writers: Tighten() and Release(). Read by every unit that takes a lock; stored to only when writers have to wait.
  std::atomic<bool> on_{false};
  std::atomic<uint32_t> waiting_{0};  // changed under mutex_
  std::mutex mutex_;
  std::condition_variable released_;
  // Under mutex_.
  uint64_t releases_ = 0;
  std::thread::id walker_;
};

}  // namespace idemd::storage
