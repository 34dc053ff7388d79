// The one mutex of storage: std::mutex with thread-safety annotations.
//
// Clang's -Wthread-safety and TSan both follow it; the packaged absl::Mutex gives TSan false reports.
#pragma once

#include <chrono>
#include <mutex>

#include "absl/base/thread_annotations.h"

namespace idemd::storage {

class ABSL_LOCKABLE Mutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() { mutex_.lock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mutex_.unlock(); }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mutex_.try_lock(); }
  // Waits no longer than that. The clock is the steady one.
  bool TryLockFor(std::chrono::nanoseconds time) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true);
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace idemd::storage
