// The counter of the lfu policies: it rises more and more rarely, and falls with time.
#include "storage/use_count.h"

#include <gtest/gtest.h>

namespace idemd::storage {
namespace {

constexpr uint32_t kNow = 1'800'000'000;

TEST(UseCountTest, TheFirstUsesCountAndLaterOnesRarely) {
  const UseCounting counting{10, 1};
  uint32_t packed = PackUses(kNow, kFirstUses);
  packed = UseOnce(packed, kNow, counting, 0);
  EXPECT_EQ(UsesNow(packed, kNow, counting), kFirstUses + 1);
  EXPECT_EQ(UseOnce(packed, kNow, counting, 10), packed) << "one in eleven, now";
  EXPECT_EQ(UsesNow(UseOnce(packed, kNow, counting, 11), kNow, counting), kFirstUses + 2);
  // A hundred times as many uses are a few dozen steps more: the documented order of magnitude.
  const auto after = [&](int uses) {
    uint32_t now = PackUses(kNow, kFirstUses);
    uint64_t random = 88'172'645'463'325'252;  // xorshift
    for (int i = 0; i < uses; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      now = UseOnce(now, kNow, counting, random);
    }
    return int{UsesNow(now, kNow, counting)};
  };
  EXPECT_GT(after(100), 6);
  EXPECT_LT(after(100), 16);
  EXPECT_GT(after(100'000), 110);
  EXPECT_LT(after(100'000), 175);
  EXPECT_EQ(after(10'000'000), 255);
}

TEST(UseCountTest, WithoutAFactorEveryUseCountsUpToTheEnd) {
  uint32_t packed = PackUses(kNow, 250);
  for (uint64_t i = 0; i < 10; ++i) packed = UseOnce(packed, kNow, {0, 1}, i * 7919);
  EXPECT_EQ(UsesNow(packed, kNow, {0, 1}), 255);
}

TEST(UseCountTest, FallsByOneForEachPeriodAndNotBelowZero) {
  const uint32_t packed = PackUses(kNow, 20);
  EXPECT_EQ(UsesNow(packed, kNow + 59 - kNow % 60, {10, 1}), 20) << "the minute is not over";
  EXPECT_EQ(UsesNow(packed, kNow + 60, {10, 1}), 19);
  EXPECT_EQ(UsesNow(packed, kNow + 600, {10, 1}), 10);
  EXPECT_EQ(UsesNow(packed, kNow + 600, {10, 3}), 17);
  EXPECT_EQ(UsesNow(packed, kNow + 86'400, {10, 1}), 0);
  EXPECT_EQ(UsesNow(packed, kNow + 86'400, {10, 0}), 20) << "0: it does not fall";
}

TEST(UseCountTest, TheMinuteComesRound) {
  const uint32_t last_minute = 0xffff * 60;  // of its sixteen bits
  EXPECT_EQ(UsesNow(PackUses(last_minute, 20), last_minute + 120, {10, 1}), 18);
}

}  // namespace
}  // namespace idemd::storage
