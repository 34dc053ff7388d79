// Quantiles, and the way back from a bucket to what it holds.
#include "bench/load/histogram.h"

#include <algorithm>
#include <cmath>

namespace idemd::bench {

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

uint64_t Histogram::Quantile(double share) const {
  if (count_ == 0) return 0;
  const double wanted = std::ceil(share * static_cast<double>(count_));
  const uint64_t rank = wanted < 1 ? 1 : std::min(count_, static_cast<uint64_t>(wanted));
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    // The last bucket also holds what is longer than all buckets.
    if (seen >= rank) return i + 1 == counts_.size() ? max_ : std::min(UpperEdge(i), max_);
  }
  return max_;
}

uint64_t Histogram::UpperEdge(size_t bucket) {
  constexpr size_t kExact = size_t{1} << (kPrecisionBits + 1);
  if (bucket < kExact) return bucket;
  const size_t shift = (bucket >> kPrecisionBits) - 1;
  const uint64_t head = bucket - (shift << kPrecisionBits);
  return ((head + 1) << shift) - 1;
}

}  // namespace idemd::bench
