// Waiting for a mutex for a while.
#include "storage/sync/mutex.h"

#include <pthread.h>
#include <time.h>

namespace idemd::storage {

bool Mutex::TryLockFor(std::chrono::nanoseconds time) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const std::chrono::nanoseconds until = std::chrono::steady_clock::now().time_since_epoch() + time;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(until);
  const timespec at{static_cast<time_t>(seconds.count()), static_cast<long>((until - seconds).count())};
  return pthread_mutex_clocklock(mutex_.native_handle(), CLOCK_MONOTONIC, &at) == 0;
}

}  // namespace idemd::storage
