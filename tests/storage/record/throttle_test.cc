// THROTTLE: the cell rate algorithm, against redis-cell's numbers and against counting.
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

constexpr int64_t kNs = 1'000'000'000;
constexpr int64_t kNowNs = kNow * 1'000'000;

// A key that keeps its state between calls.
class Bucket {
 public:
  ThrottleOutcome Ask(const ThrottleRequest& request) {
    Subject subject;
    if (!state_.empty()) subject = Plain(state_, deadline_ms_);
    const ThrottleOutcome o = Throttle(subject, request, now_ns_);
    if (o.write) {
      state_ = std::to_string(o.tat_ns);
      deadline_ms_ = o.deadline_ms;
      EXPECT_GT(deadline_ms_ * 1'000'000, now_ns_);
    }
    return o;
  }
  void Advance(int64_t ns) {
    now_ns_ += ns;
    if (deadline_ms_ <= now_ns_ / 1'000'000) state_.clear();
  }
  const std::string& state() const { return state_; }

 private:
  int64_t now_ns_ = kNowNs;
  int64_t deadline_ms_ = kNoDeadline;
  std::string state_;
};

std::string Numbers(const ThrottleOutcome& o) {
  return std::to_string(o.limited) + " " + std::to_string(o.limit) + " " +
         std::to_string(o.remaining) + " " + std::to_string(o.retry_after_ns) + " " +
         std::to_string(o.reset_after_ns);
}

const ThrottleRequest kCell = {.max_burst = 15, .count = 30, .period_ns = 60 * kNs};

TEST(Throttle, FirstCallOfTheWellKnownExample) {
  EXPECT_EQ(Numbers(Bucket().Ask(kCell)), "0 16 15 -1 2000000000");
}

TEST(Throttle, ABurstThenTheRate) {
  Bucket bucket;
  for (int i = 15; i >= 0; --i) {
    const ThrottleOutcome o = bucket.Ask(kCell);
    EXPECT_FALSE(o.limited);
    EXPECT_EQ(o.remaining, i);
  }
  EXPECT_EQ(Numbers(bucket.Ask(kCell)), "1 16 0 2000000000 32000000000");
  bucket.Advance(2 * kNs - 1);
  EXPECT_EQ(Numbers(bucket.Ask(kCell)), "1 16 0 1 30000000001");
  bucket.Advance(1);
  EXPECT_EQ(Numbers(bucket.Ask(kCell)), "0 16 0 -1 32000000000");
}

TEST(Throttle, PeekAndCostZeroStoreNothing) {
  Bucket bucket;
  ThrottleRequest peek = kCell;
  peek.store = false;
  EXPECT_EQ(Numbers(bucket.Ask(peek)), "0 16 16 -1 0");
  ThrottleRequest zero = kCell;
  zero.cost = 0;
  EXPECT_EQ(Numbers(bucket.Ask(zero)), "0 16 16 -1 0");
  EXPECT_EQ(bucket.state(), "");
  for (int i = 0; i < 16; ++i) bucket.Ask(kCell);
  const std::string state = bucket.state();
  EXPECT_EQ(Numbers(bucket.Ask(peek)), "1 16 0 2000000000 32000000000");
  EXPECT_EQ(Numbers(bucket.Ask(zero)), "0 16 0 -1 32000000000");
  peek.cost = 3;
  EXPECT_EQ(Numbers(bucket.Ask(peek)), "1 16 0 6000000000 32000000000");
  EXPECT_EQ(bucket.state(), state);
}

TEST(Throttle, ALimitedCallCostsNothing) {
  Bucket bucket;
  ThrottleRequest ten = kCell;
  ten.cost = 10;
  EXPECT_FALSE(bucket.Ask(ten).limited);
  const std::string state = bucket.state();
  EXPECT_EQ(Numbers(bucket.Ask(ten)), "1 16 6 8000000000 20000000000");
  EXPECT_EQ(bucket.state(), state);
  ThrottleRequest six = kCell;
  six.cost = 6;
  EXPECT_FALSE(bucket.Ask(six).limited);
}

TEST(Throttle, ACostAboveTheLimitCanNeverPass) {
  Bucket bucket;
  ThrottleRequest request = kCell;
  request.cost = 17;
  EXPECT_EQ(Numbers(bucket.Ask(request)), "1 16 16 -1 0");
  request.cost = INT64_MAX;
  EXPECT_EQ(Numbers(bucket.Ask(request)), "1 16 16 -1 0");
  request.cost = 16;
  EXPECT_EQ(Numbers(bucket.Ask(request)), "0 16 0 -1 32000000000");
}

TEST(Throttle, IsExactAtEightThousandPerSecond) {
  Bucket bucket;
  const ThrottleRequest request = {.max_burst = 99, .count = 8'000, .period_ns = kNs};
  int allowed = 0;
  constexpr int64_t kStep = 31'250;  // 32 000 calls per second for a second
  for (int i = 0; i < 32'000; ++i) {
    if (!bucket.Ask(request).limited) ++allowed;
    bucket.Advance(kStep);
  }
  // The burst at once, and one each 125 µs after the start.
  EXPECT_EQ(allowed, 100 + (31'999 * kStep) / 125'000);
}

TEST(Throttle, TighterLimitsApplyAtOnce) {
  Bucket bucket;
  ThrottleRequest ten = kCell;
  ten.cost = 16;
  bucket.Ask(ten);
  const ThrottleRequest tight = {.max_burst = 0, .count = 1, .period_ns = kNs};
  EXPECT_EQ(Numbers(bucket.Ask(tight)), "1 1 0 32000000000 32000000000");
}

TEST(Throttle, ABucketDeeperThanTimeItselfIsARangeError) {
  const ThrottleRequest requests[] = {
      {.max_burst = INT64_MAX - 1, .count = 1, .period_ns = INT64_MAX, .cost = 0},
      {.max_burst = 0, .count = 1, .period_ns = INT64_MAX},
      {.max_burst = 1'000'000, .count = 1, .period_ns = INT64_MAX / 1'000'000}};
  for (const ThrottleRequest& request : requests)
    EXPECT_EQ(Throttle(Absent(), request, kNowNs).error, LifeError::kRange);
}

TEST(Throttle, ExtremeRatesSaturate) {
  // More than one a nanosecond.
  Bucket fast;
  EXPECT_EQ(Numbers(fast.Ask({.max_burst = 1, .count = INT64_MAX, .period_ns = 1})), "0 2 1 -1 1");
}

TEST(Throttle, NonsenseIsARangeError) {
  const ThrottleRequest requests[] = {{.max_burst = -1, .count = 1, .period_ns = 1},
                                      {.max_burst = INT64_MAX, .count = 1, .period_ns = 1},
                                      {.max_burst = 1, .count = 0, .period_ns = 1},
                                      {.max_burst = 1, .count = 1, .period_ns = 0},
                                      {.max_burst = 1, .count = 1, .period_ns = 1, .cost = -1}};
  for (const ThrottleRequest& request : requests)
    EXPECT_EQ(Throttle(Absent(), request, kNowNs).error, LifeError::kRange);
}

TEST(Throttle, AStateIsOneInteger) {
  for (const char* text :
       {"", "x", "1.5", "+1", " 1", "1 ", "01", "-0", "-", "9223372036854775808"})
    EXPECT_TRUE(Throttle(Plain(text), kCell, kNowNs).bad_state) << text;
  for (const char* text : {"0", "-5", "9223372036854775807"})
    EXPECT_FALSE(Throttle(Plain(text), kCell, kNowNs).bad_state) << text;
  EXPECT_TRUE(Throttle(Plain("9223372036854775807"), kCell, kNowNs).limited);
}

}  // namespace
}  // namespace idemd::storage
