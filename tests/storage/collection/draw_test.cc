// Draws: within their limits, different where they have to be, and no number favoured.
#include "storage/collection/draw.h"

#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace idemd::storage {
namespace {

TEST(Draw, EveryNumberBelowTheLimitComesAboutAsOften) {
  constexpr uint64_t kLimit = 10, kDraws = 100'000;
  std::vector<uint64_t> times(kLimit, 0);
  for (uint64_t i = 0; i < kDraws; ++i) {
    const uint64_t drawn = DrawBelow(kLimit);
    ASSERT_LT(drawn, kLimit);
    ++times[drawn];
  }
  // Ten standard deviations.
  for (const uint64_t n : times) EXPECT_NEAR(static_cast<double>(n), kDraws / kLimit, 950);
  EXPECT_EQ(DrawBelow(1), 0u);
}

TEST(Draw, DistinctNumbersAreDistinctAndBelowTheLimit) {
  for (const uint32_t limit : {1u, 2u, 10u, 1000u}) {
    for (uint32_t count = 0; count <= limit; count += 1 + limit / 50) {
      const std::vector<uint32_t> drawn = DrawDistinct(limit, count);
      const std::set<uint32_t> different(drawn.begin(), drawn.end());
      ASSERT_EQ(drawn.size(), count);
      ASSERT_EQ(different.size(), count);
      for (const uint32_t number : drawn) ASSERT_LT(number, limit);
    }
  }
}

TEST(Draw, DistinctNumbersAreDrawnEvenlyInBothWays) {
  constexpr uint32_t kLimit = 40, kRounds = 40'000;
  for (const uint32_t count : {4u, 30u}) {
    std::vector<uint32_t> times(kLimit, 0);
    for (uint32_t round = 0; round < kRounds; ++round)
      for (const uint32_t number : DrawDistinct(kLimit, count)) ++times[number];
    const double expected = double{kRounds} * count / kLimit;
    for (const uint32_t n : times) EXPECT_NEAR(n, expected, expected * 0.2) << count;
  }
}

}  // namespace
}  // namespace idemd::storage
