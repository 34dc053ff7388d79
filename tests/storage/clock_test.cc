// The effective clock: slew, jumps, Accept(), and that it never goes back.
#include "storage/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

namespace idemd::storage {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000 * kMs;

class FakeTime : public TimeSource {
 public:
  int64_t BootNs() override { return boot.load(); }
  int64_t WallNs() override { return wall.load(); }
  void Advance(int64_t ns) {
    boot += ns;
    wall += ns;
  }
  std::atomic<int64_t> boot{50 * kSecond};
  std::atomic<int64_t> wall{1'700'000'000 * kSecond};
};

TEST(EffectiveClock, StartsAtTheWallClockAndRunsWithBootTime) {
  FakeTime time;
  EffectiveClock clock(time, 0);
  EXPECT_EQ(clock.NowNs(), time.wall);
  time.Advance(1'234 * kMs);
  EXPECT_EQ(clock.NowNs(), time.wall);
}

TEST(EffectiveClock, NeverStartsBeforeTheLogsLastTime) {
  FakeTime time;
  const int64_t floor_ms = time.wall / kMs + 3'600'000;
  EffectiveClock clock(time, floor_ms);
  EXPECT_EQ(clock.NowMs(), floor_ms);
  EXPECT_TRUE(clock.State().suspect);
}

TEST(EffectiveClock, IsDrawnToASmallDifferenceByHalfAMillisecondPerSecondAtMost) {
  FakeTime time;
  EffectiveClock clock(time, 0);
  time.wall += 10 * kMs;  // 10 ms ahead: drift, not a jump
  int64_t before = time.wall - clock.NowNs();
  int seconds = 0;
  while (time.wall - clock.NowNs() > kMs / 100 && seconds < 60) {
    clock.Discipline();
    time.Advance(kSecond);
    const int64_t difference = time.wall - clock.NowNs();
    EXPECT_LE(before - difference, kMs / 2 + 10) << "after " << seconds << " s";
    EXPECT_LE(difference, before);
    before = difference;
    ++seconds;
  }
  EXPECT_GE(seconds, 19);
  EXPECT_LT(seconds, 60) << "the difference must vanish";
  EXPECT_FALSE(clock.State().suspect);
}

TEST(EffectiveClock, DoesNotFollowAJumpForwardUntilTold) {
  FakeTime time;
  EffectiveClock clock(time, 0);
  const int64_t start = clock.NowMs();
  time.wall += 2 * 86'400 * kSecond;
  clock.Discipline();
  time.Advance(kSecond);
  clock.Discipline();
  EXPECT_EQ(clock.NowMs(), start + 1'000);
  EXPECT_TRUE(clock.State().suspect);
  EXPECT_EQ(clock.jumps_seen(), 1u);
  EXPECT_EQ(clock.State().difference_ms, 2 * 86'400'000LL);

  const ClockState state = clock.Accept();
  EXPECT_FALSE(state.suspect);
  EXPECT_EQ(clock.NowNs(), time.wall);
}

TEST(EffectiveClock, AJumpBackIsCaughtUpAtHalfSpeedAfterAccept) {
  FakeTime time;
  EffectiveClock clock(time, 0);
  time.wall -= 10 * kSecond;
  clock.Discipline();
  EXPECT_TRUE(clock.State().suspect);
  clock.Accept();
  int64_t last = clock.NowNs();
  int seconds = 0;
  for (; seconds < 40 && clock.State().difference_ms < -10; ++seconds) {
    time.Advance(kSecond);
    const int64_t now = clock.NowNs();
    EXPECT_GT(now, last);
    last = now;
    clock.Discipline();
  }
  EXPECT_GE(seconds, 18);
  EXPECT_FALSE(clock.State().suspect);
  EXPECT_GT(clock.State().difference_ms, -1'000);
}

TEST(EffectiveClock, NeverGoesBackWhateverTheWallClockDoes) {
  const char* text = std::getenv("IDEMD_SEED");
  unsigned seed = text != nullptr ? static_cast<unsigned>(std::atoi(text)) : 12345;
  SCOPED_TRACE(seed);
  FakeTime time;
  EffectiveClock clock(time, 0);
  int64_t last = clock.NowNs();
  for (int i = 0; i < 20'000; ++i) {
    seed = seed * 1103515245 + 12345;
    const int64_t r = (seed >> 8) & 0xffff;
    switch (r % 8) {
      case 0:
        time.wall += (r - 0x8000) * kMs / 16;  // up to two seconds either way
        break;
      case 1:
        clock.Discipline();
        break;
      case 2:
        if (r % 64 == 2) clock.Accept();
        break;
      default:
        time.Advance(r * 1'000);
    }
    const int64_t now = clock.NowNs();
    ASSERT_GE(now, last) << "step " << i;
    last = now;
  }
}

TEST(EffectiveClock, ReadersOnOtherThreadsSeeNoTornLine) {
  FakeTime time;
  EffectiveClock clock(time, 0);
  std::atomic<bool> stop{false};
  std::atomic<int64_t> worst{0};
  std::thread reader([&] {
    while (!stop.load()) {
      const int64_t difference = std::abs(clock.NowNs() - time.wall.load());
      if (difference > worst.load()) worst.store(difference);
    }
  });
  for (int i = 0; i < 20'000; ++i) {
    time.wall += (i % 2 == 0 ? 400 : -400) * 1'000;
    time.boot += 2'000;
    time.wall += 2'000;
    clock.Discipline();
  }
  stop = true;
  reader.join();
  EXPECT_LT(worst.load(), 100 * kMs) << "a torn line would be off by the whole boot time";
}

}  // namespace
}  // namespace idemd::storage
