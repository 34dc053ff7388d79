// The effective clock: the one time that decides what has lapsed.
//
// Callers send durations; the server turns them into absolute unix milliseconds on this clock and nothing else.
// Threads   every method may be called from any thread.
// Units     unix milliseconds and unix nanoseconds, signed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/sync/mutex.h"

namespace idemd::storage {

// A deadline that never comes. Deadlines are compared with `deadline <= now`.
inline constexpr int64_t kNoDeadline = INT64_MAX;

class Clock {
 public:
  virtual ~Clock() = default;
  // Effective time; never goes back.
  virtual int64_t NowNs() = 0;
  int64_t NowMs() { return NowNs() / 1'000'000; }
};

// What the system tells about time; faked in tests.
class TimeSource {
 public:
  virtual ~TimeSource() = default;
  virtual int64_t BootNs() = 0;  // CLOCK_BOOTTIME: steady, counts sleep
  virtual int64_t WallNs() = 0;  // CLOCK_REALTIME: may be stepped
  // Names the boot that BootNs() counts from.
  virtual std::string BootId() { return "none"; }
};
std::unique_ptr<TimeSource> SystemTime();

struct ClockState {
  int64_t effective_ms = 0;
  int64_t wall_ms = 0;
  int64_t difference_ms = 0;  // wall - effective
  bool suspect = false;       // the wall clock jumped and was not followed
};

// A line through CLOCK_BOOTTIME, drawn to the wall clock by at most 0.5 ms per second while the two differ by less than
// a second. A jump of the wall clock is not followed until Accept(): late expiry is safe, early expiry is a double
// charge. The line is bent, never broken backwards: each new slope begins at a bend a few milliseconds ahead, so that
// every reader computes the same time for the same boot time and nobody sees time go back.
class EffectiveClock final : public Clock {
 public:
  // Starts at the wall clock, but not before `floor_ms` (the last time of the log).
  EffectiveClock(TimeSource& source, int64_t floor_ms);
  int64_t NowNs() override;
  // At start, before anybody has asked for the time: goes on where a log ended that says it was `effective_ms` when the boot
  // time was `boot_ms`. In the same boot the line goes on as though nobody had stopped, whatever the wall clock says meanwhile;
  // else it begins at the wall clock, but not before `effective_ms`.
  void Resume(int64_t effective_ms, int64_t boot_ms, bool same_boot);
  ClockState State();
  // Follows a wall clock that jumped: forward at once; backward by running at half speed until the wall clock has
  // caught up, since effective time never goes back.
  ClockState Accept();
  // Call about once a second: measures the wall clock and sets the slope until the next call.
  void Discipline();
  uint64_t jumps_seen() const { return jumps_seen_.load(std::memory_order_relaxed); }

 private:
  // effective(boot) = at_ns + (boot - boot_ns) * (1 + ppm / 1e6), with ppm_before left of the bend.
  struct Line {
    int64_t boot_ns = 0;
    int64_t at_ns = 0;
    int64_t ppm_before = 0;
    int64_t ppm = 0;
  };
  static int64_t At(const Line& line, int64_t boot_ns);
  Line Load() const;
  void Publish(const Line& line);  // holder of mutex_
  void Bend(int64_t boot_ns, int64_t ppm) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  TimeSource& source_;
  Mutex mutex_;  // Discipline() and Accept()
  bool following_back_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t last_difference_ns_ ABSL_GUARDED_BY(mutex_) = 0;
  // Seqlock over the line: odd while it is written. Writers hold mutex_; readers are NowNs(), any thread.
  std::atomic<uint64_t> version_{0};
  std::atomic<int64_t> boot_ns_{0};
  std::atomic<int64_t> at_ns_{0};
  std::atomic<int64_t> ppm_before_{0};
  std::atomic<int64_t> ppm_{0};
  std::atomic<bool> suspect_{false};
  std::atomic<uint64_t> jumps_seen_{0};
};

// A clock that moves only when told to.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(int64_t now_ms = 1'700'000'000'000) : now_ns_(now_ms * 1'000'000) {}
  int64_t NowNs() override { return now_ns_.load(std::memory_order_relaxed); }
  void AdvanceMs(int64_t ms) { now_ns_.fetch_add(ms * 1'000'000, std::memory_order_relaxed); }
  void AdvanceNs(int64_t ns) { now_ns_.fetch_add(ns, std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> now_ns_;
};

}  // namespace idemd::storage
