// How long commands take: the clock is read once for several alike.
//
// Reading the clock costs as much as looking a key up. So commands of one pipeline that are the same, and take constant
// time but for their bytes, are timed together, up to kTogether of them, and each counts with its share. Their reading of the
// effective time is one, too (Unit::BeginAnew): they had all arrived when it was made.
//
// Threads   one.
#pragma once

#include <cstdint>
#include <utility>

#include "server/admin/stats.h"
#include "server/steady_time.h"

namespace idemd::server {

class CommandTimer {
 public:
  static constexpr uint32_t kTogether = 8;

  explicit CommandTimer(ThreadStats& stats) : stats_(stats) {}
  ~CommandTimer() { Flush(); }
  CommandTimer(const CommandTimer&) = delete;
  CommandTimer& operator=(const CommandTimer&) = delete;

  // When the clock was last read, in steady microseconds; at the first call it is read.
  int64_t now_us() {
    if (now_us_ == 0) now_us_ = SteadyUs();
    return now_us_;
  }

  // Whether the command that runs next is followed at once by another one that may be timed with it.
  void SetMore(bool more) { more_ = more && pending_ + 1 < kTogether; }
  bool more() const { return more_; }
  // Commands that have run and are not timed yet.
  uint32_t pending() const { return pending_; }

  // A command is over that succeeded, and more() holds.
  void Defer(uint32_t ordinal) {
    ordinal_ = ordinal;
    ++pending_;
  }
  // A command is over, and with it those that are pending: counts them, and returns what they took together.
  int64_t End(uint32_t ordinal, bool failed) {
    const int64_t before_us = now_us_;
    now_us_ = SteadyUs();
    const int64_t usec = now_us_ - before_us;
    stats_.OnCommands(ordinal, std::exchange(pending_, 0) + 1, usec);
    if (failed) stats_.OnFailed(ordinal);
    return usec;
  }
  // Those that are pending have no other behind them after all.
  void Flush() {
    more_ = false;
    if (pending_ == 0) return;
    const int64_t before_us = now_us_;
    now_us_ = SteadyUs();
    stats_.OnCommands(ordinal_, std::exchange(pending_, 0), now_us_ - before_us);
  }

 private:
  ThreadStats& stats_;
  int64_t now_us_ = 0;  // 0: not read yet
  uint32_t pending_ = 0;
  uint32_t ordinal_ = 0;  // of the pending ones
  bool more_ = false;
};

}  // namespace idemd::server
