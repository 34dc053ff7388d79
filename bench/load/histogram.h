// Durations counted in buckets whose width grows with what they hold, so that a quantile of many
// millions costs a few KiB.
//
// Values up to 255 have a bucket each; above that every power of two is cut into 128 of equal width
// (log-linear, as in HdrHistogram by Gil Tene). A quantile is the upper edge of its bucket: at most
// 1/128 above the exact one, never below it. Minimum, maximum, sum and count are exact.
//
// Threads   one; histograms of several threads are merged when they are done.
// Units     the caller's: nanoseconds here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace idemd::bench {

class Histogram {
 public:
  static constexpr int kPrecisionBits = 7;
  // Longer ones (over an hour, in nanoseconds) are counted in the last bucket; max() knows them.
  static constexpr uint64_t kLongest = (uint64_t{1} << 42) - 1;

  Histogram() : counts_(BucketOf(kLongest) + 1) {}
  void Add(uint64_t value, uint64_t times = 1) {
    if (times == 0) return;
    counts_[BucketOf(value < kLongest ? value : kLongest)] += times;
    count_ += times;
    sum_ += value * times;
    if (value < min_) min_ = value;
    if (value > max_) max_ = value;
  }
  void Merge(const Histogram& other);

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ == 0 ? 0 : min_; }
  uint64_t max() const { return max_; }
  double mean() const {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  // The least value that at least this share (0..1) of all are not above; 0 where there are none.
  uint64_t Quantile(double share) const;

 private:
  static size_t BucketOf(uint64_t value) {
    const int bits = 64 - __builtin_clzll(value | 1);
    const int shift = bits > kPrecisionBits + 1 ? bits - (kPrecisionBits + 1) : 0;
    return (static_cast<size_t>(shift) << kPrecisionBits) + static_cast<size_t>(value >> shift);
  }
  static uint64_t UpperEdge(size_t bucket);

  std::vector<uint64_t> counts_;
  uint64_t count_ = 0, sum_ = 0, min_ = UINT64_MAX, max_ = 0;
};

}  // namespace idemd::bench
