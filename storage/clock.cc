// The effective clock's arithmetic: anchor, slew, and what to do with a wall clock that jumped.
#include "storage/clock.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace idemd::storage {
namespace {

constexpr int64_t kNsPerMs = 1'000'000;
constexpr int64_t kFollowBelowNs = 1'000 * kNsPerMs;   // a larger difference is a jump, not drift
constexpr int64_t kSlewPpm = 500;                      // 0.5 ms per second
constexpr int64_t kHalfSpeedPpm = -500'000;            // while an accepted jump back is caught up
constexpr int64_t kBendAheadNs = 5 * kNsPerMs;         // a new slope is published before it begins

int64_t Read(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

class SystemTimeSource final : public TimeSource {
 public:
  int64_t BootNs() override { return Read(CLOCK_BOOTTIME); }
  int64_t WallNs() override { return Read(CLOCK_REALTIME); }
  std::string BootId() override {
    std::ifstream in("/proc/sys/kernel/random/boot_id");
    std::string id;
    return std::getline(in, id) && !id.empty() ? id : TimeSource::BootId();
  }
};

}  // namespace

std::unique_ptr<TimeSource> SystemTime() { return std::make_unique<SystemTimeSource>(); }

int64_t EffectiveClock::At(const Line& line, int64_t boot_ns) {
  const int64_t since = boot_ns - line.boot_ns;
  const int64_t ppm = since < 0 ? line.ppm_before : line.ppm;
  // Whole milliseconds and the rest apart, so that years of uptime do not overflow.
  return line.at_ns + since + since / kNsPerMs * ppm + since % kNsPerMs * ppm / kNsPerMs;
}

EffectiveClock::EffectiveClock(TimeSource& source, int64_t floor_ms) : source_(source) {
  Line line;
  line.boot_ns = source.BootNs();
  const int64_t wall = source.WallNs();
  line.at_ns = std::max(wall, floor_ms * kNsPerMs);
  if (line.at_ns - wall >= kFollowBelowNs) suspect_.store(true, std::memory_order_relaxed);
  Publish(line);
}

void EffectiveClock::Resume(int64_t effective_ms, int64_t boot_ms, bool same_boot) {
  MutexLock lock(mutex_);
  Line line;
  line.boot_ns = source_.BootNs();
  const int64_t wall = source_.WallNs();
  const int64_t floor = effective_ms * kNsPerMs;
  line.at_ns = std::max(wall, floor);
  if (same_boot && line.boot_ns >= boot_ms * kNsPerMs) {
    const int64_t gone_on = floor + (line.boot_ns - boot_ms * kNsPerMs);
    // A difference that drift explains is forgotten; a larger one is a jump, and not followed.
    if (std::abs(wall - gone_on) >= kFollowBelowNs) line.at_ns = gone_on;
  }
  const bool suspect = std::abs(line.at_ns - wall) >= kFollowBelowNs;
  suspect_.store(suspect, std::memory_order_relaxed);
  if (suspect) jumps_seen_.fetch_add(1, std::memory_order_relaxed);
  last_difference_ns_ = wall - line.at_ns;
  Publish(line);
}

EffectiveClock::Line EffectiveClock::Load() const {
  Line line;
  uint64_t before = 0;
  do {
    before = version_.load(std::memory_order_acquire);
    line.boot_ns = boot_ns_.load(std::memory_order_acquire);
    line.at_ns = at_ns_.load(std::memory_order_acquire);
    line.ppm_before = ppm_before_.load(std::memory_order_acquire);
    line.ppm = ppm_.load(std::memory_order_acquire);
    // The acquire loads above keep this one behind them.
  } while ((before & 1) != 0 || version_.load(std::memory_order_relaxed) != before);
  return line;
}

void EffectiveClock::Publish(const Line& line) {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
  // Release stores: whoever reads a new word also sees the odd version.
  boot_ns_.store(line.boot_ns, std::memory_order_release);
  at_ns_.store(line.at_ns, std::memory_order_release);
  ppm_before_.store(line.ppm_before, std::memory_order_release);
  ppm_.store(line.ppm, std::memory_order_release);
  version_.store(version + 2, std::memory_order_release);
}

int64_t EffectiveClock::NowNs() {
  // The boot time is read after the line: a reader that was held up then uses an old line at a late time, which differs
  // from the new one by less than the slew over its delay.
  const Line line = Load();
  return At(line, source_.BootNs());
}

void EffectiveClock::Bend(int64_t boot_ns, int64_t ppm) {
  const Line old = Load();
  if (boot_ns + kBendAheadNs <= old.boot_ns || old.ppm == ppm) return;
  Line line;
  line.boot_ns = boot_ns + kBendAheadNs;
  line.at_ns = At(old, line.boot_ns);
  line.ppm_before = old.ppm;
  line.ppm = ppm;
  Publish(line);
}

void EffectiveClock::Discipline() {
  MutexLock lock(mutex_);
  const int64_t boot = source_.BootNs();
  const int64_t difference = source_.WallNs() - At(Load(), boot);
  const int64_t before = last_difference_ns_;
  last_difference_ns_ = difference;
  if (std::abs(difference) < kFollowBelowNs) {
    following_back_ = false;
    suspect_.store(false, std::memory_order_relaxed);
    Bend(boot, std::clamp(difference / 1000, -kSlewPpm, kSlewPpm));  // ns of difference over 1 s
    return;
  }
  if (following_back_ && difference < 0) {
    Bend(boot, kHalfSpeedPpm);
    return;
  }
  following_back_ = false;
  if (!suspect_.exchange(true, std::memory_order_relaxed) || std::abs(difference - before) >= kFollowBelowNs)
    jumps_seen_.fetch_add(1, std::memory_order_relaxed);
  Bend(boot, 0);
}

ClockState EffectiveClock::State() {
  ClockState state;
  state.wall_ms = source_.WallNs() / kNsPerMs;
  state.effective_ms = NowMs();
  state.difference_ms = state.wall_ms - state.effective_ms;
  state.suspect = suspect_.load(std::memory_order_relaxed) ||
                  std::abs(state.difference_ms) >= kFollowBelowNs / kNsPerMs;
  return state;
}

ClockState EffectiveClock::Accept() {
  {
    MutexLock lock(mutex_);
    const int64_t boot = source_.BootNs();
    const int64_t wall = source_.WallNs();
    const int64_t now = At(Load(), boot);
    if (wall >= now) {
      Line line;
      line.boot_ns = boot;
      line.at_ns = wall;
      Publish(line);
      following_back_ = false;
    } else if (now - wall >= kFollowBelowNs) {
      following_back_ = true;
      Bend(boot, kHalfSpeedPpm);
    }
    last_difference_ns_ = wall - std::max(now, wall);
    suspect_.store(false, std::memory_order_relaxed);
  }
  return State();
}

}  // namespace idemd::storage
