// The histogram beside sorted values: its quantiles are the exact ones, at most 1/128 too long.
#include "bench/load/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::bench {
namespace {

constexpr double kShares[] = {0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1};

uint64_t Exact(const std::vector<uint64_t>& sorted, double share) {
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[rank == 0 ? 0 : rank - 1];
}

void ExpectQuantiles(const Histogram& histogram, std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  ASSERT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.min(), values.front());
  EXPECT_EQ(histogram.max(), values.back());
  for (const double share : kShares) {
    const uint64_t exact = Exact(values, share), told = histogram.Quantile(share);
    EXPECT_GE(told, exact) << share;
    EXPECT_LE(told, exact + exact / 128) << share;
  }
}

TEST(Histogram, IsEmptyAtFirst) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.min(), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.Quantile(0.5), 0u);
}

TEST(Histogram, KeepsSmallValuesExactly) {
  for (uint64_t value = 0; value < 256; ++value) {
    Histogram histogram;
    histogram.Add(value);
    histogram.Add(100'000);
    EXPECT_EQ(histogram.Quantile(0.5), value);
  }
}

TEST(Histogram, QuantilesAreTheExactOnesWithinOnePartIn128) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> durations(11, 2);
  for (const size_t n : {1, 2, 3, 10, 1000, 100'000}) {
    Histogram histogram;
    std::vector<uint64_t> values;
    for (size_t i = 0; i < n; ++i) {
      values.push_back(static_cast<uint64_t>(durations(random)));
      histogram.Add(values.back());
    }
    ExpectQuantiles(histogram, std::move(values));
  }
}

TEST(Histogram, HoldsAtBothSidesOfEveryPowerOfTwo) {
  for (int bit = 1; bit < 42; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t value : {power - 1, power, power + 1}) {
      if (value > Histogram::kLongest) continue;
      Histogram histogram;
      histogram.Add(value);
      histogram.Add(Histogram::kLongest);
      const uint64_t told = histogram.Quantile(0.5);
      EXPECT_GE(told, value);
      EXPECT_LE(told, value + value / 128);
    }
  }
}

TEST(Histogram, AddsManyAtOnceAndMerges) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Histogram parts[3], whole;
  std::vector<uint64_t> values;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random() >> (22 + random() % 40);
    const uint64_t times = random() % 5;
    parts[random() % 3].Add(value, times);
    values.insert(values.end(), times, value);
  }
  for (const Histogram& part : parts) whole.Merge(part);
  double sum = 0;
  for (const uint64_t value : values) sum += static_cast<double>(value);
  EXPECT_NEAR(whole.mean(), sum / static_cast<double>(values.size()), 1e-6 * whole.mean());
  ExpectQuantiles(whole, std::move(values));
}

TEST(Histogram, MergingNothingChangesNothing) {
  Histogram histogram;
  histogram.Add(7);
  histogram.Merge(Histogram());
  EXPECT_EQ(histogram.min(), 7u);
  EXPECT_EQ(histogram.max(), 7u);
  EXPECT_EQ(histogram.count(), 1u);
}

TEST(Histogram, TellsTheLongestEvenWhereThereIsNoBucketForIt) {
  Histogram histogram;
  histogram.Add(3);
  histogram.Add(UINT64_MAX / 4);
  EXPECT_EQ(histogram.max(), UINT64_MAX / 4);
  EXPECT_EQ(histogram.Quantile(1), UINT64_MAX / 4);
  EXPECT_EQ(histogram.Quantile(0.5), 3u);
}

}  // namespace
}  // namespace idemd::bench
