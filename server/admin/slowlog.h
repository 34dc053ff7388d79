// The slow log: the last commands that took longer than a threshold, in a ring.
//
// Threads   any. IsSlow() is one relaxed load; the lock is taken only for a slow command and by
// SLOWLOG.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

struct SlowLogEntry {
  int64_t id = 0;
  int64_t unix_s = 0;
  int64_t usec = 0;
  std::vector<std::string> words;  // shortened: kWordsMax words of kWordBytesMax bytes
  std::string address;
  std::string client_name;
};

class SlowLog {
 public:
  // As Redis: a longer command ends in "... (n more arguments)", a longer word in "... (n more
  // bytes)".
  static constexpr size_t kWordsMax = 32;
  static constexpr size_t kWordBytesMax = 128;

  // Settings slowlog-log-slower-than (negative: never, 0: always) and slowlog-max-len; stored by
  // CONFIG SET.
  std::atomic<int64_t> slower_than_us{10'000};
  std::atomic<int64_t> max_len{128};

  bool IsSlow(int64_t usec) const {
    const int64_t limit = slower_than_us.load(std::memory_order_relaxed);
    return limit >= 0 && usec >= limit;
  }
  // Keeps the command. Secrets among the words are the caller's to hide
  // (server/commands/observe.h).
  void Add(int64_t usec, int64_t unix_s, absl::Span<const absl::string_view> words,
           absl::string_view address, absl::string_view client_name);

  std::vector<SlowLogEntry> Latest(size_t count) const;  // newest first
  size_t size() const;
  void Reset();

 private:
  mutable storage::Mutex mutex_;
  std::deque<SlowLogEntry> entries_ ABSL_GUARDED_BY(mutex_);  // newest in front
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace idemd::server
