// Numbers: each order hands out what it says, over all threads together. Outcomes: counted, and
// held against what was expected.
#include "bench/load/pass.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace idemd::bench {
namespace {

using ::testing::IsEmpty;

std::vector<uint64_t> TakeAll(NumberSource& source, size_t batch) {
  Random random(3);
  std::vector<uint64_t> all, some(batch);
  while (const size_t n = source.Take(batch, random, some.data())) {
    all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(n));
  }
  return all;
}

std::vector<uint64_t> Range(uint64_t first, uint64_t count) {
  std::vector<uint64_t> range(count);
  std::iota(range.begin(), range.end(), first);
  return range;
}

TEST(NumberSource, InOrderHandsOutEachOnceAndNoMoreThanTheLimit) {
  NumberSource source(Order::kInOrder, 5, 10, 10, 0);
  EXPECT_EQ(TakeAll(source, 3), Range(5, 10));
  EXPECT_EQ(source.used(), 10u);
  NumberSource fresh(Order::kNew, 100, 1, 7, 0);
  EXPECT_EQ(TakeAll(fresh, 4), Range(100, 7));
  EXPECT_EQ(fresh.used(), 7u);
}

TEST(NumberSource, TellsHowFarItCameWhenItWasStopped) {
  NumberSource source(Order::kNew, 100, 1, 1000, 0);
  Random random(1);
  uint64_t numbers[4];
  ASSERT_EQ(source.Take(4, random, numbers), 4u);
  ASSERT_EQ(source.Take(4, random, numbers), 4u);
  EXPECT_EQ(source.used(), 8u);
}

TEST(NumberSource, PreparedOnesComeEachOnceAndFarApart) {
  for (const uint64_t count : {1, 2, 3, 10, 97, 1000, 1 << 16}) {
    NumberSource source(Order::kPrepared, 50, count, count, 0);
    std::vector<uint64_t> taken = TakeAll(source, 7);
    if (count >= 1000) {
      for (size_t i = 1; i < taken.size(); ++i) {
        const uint64_t apart =
            taken[i] > taken[i - 1] ? taken[i] - taken[i - 1] : taken[i - 1] - taken[i];
        ASSERT_GT(apart, count / 4);
      }
    }
    std::sort(taken.begin(), taken.end());
    EXPECT_EQ(taken, Range(50, count)) << count;
  }
}

TEST(NumberSource, RandomOnesStayInTheRangeAndReachAllOfIt) {
  for (const Order order : {Order::kRandom, Order::kRepeated}) {
    NumberSource source(order, 20, 10, 1000, 0);
    const std::vector<uint64_t> taken = TakeAll(source, 9);
    EXPECT_EQ(taken.size(), 1000u);
    EXPECT_EQ(std::set<uint64_t>(taken.begin(), taken.end()).size(), 10u);
    EXPECT_EQ(*std::min_element(taken.begin(), taken.end()), 20u);
    EXPECT_EQ(*std::max_element(taken.begin(), taken.end()), 29u);
    EXPECT_EQ(source.used(), 10u);
  }
}

TEST(NumberSource, AStormRepeatsAsManyAsItWasTold) {
  NumberSource source(Order::kStorm, 1000, 1, 100'000, 0.8);
  const std::vector<uint64_t> taken = TakeAll(source, 16);
  ASSERT_EQ(taken.size(), 100'000u);
  uint64_t fresh = 1000, repeated = 0;
  for (const uint64_t number : taken) {
    ASSERT_LE(number, fresh);  // never one that has not been
    if (number == fresh) {
      ++fresh;
    } else {
      ++repeated;
      ASSERT_LE(fresh - number, 10'000u);  // and a recent one
    }
  }
  EXPECT_NEAR(static_cast<double>(repeated), 80'000, 1000);
  EXPECT_EQ(source.used(), fresh - 1000);
}

TEST(NumberSource, SeveralThreadsGetEachNumberOnce) {
  NumberSource source(Order::kPrepared, 0, 100'003, 100'003, 0);
  std::vector<std::vector<uint64_t>> taken(4);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < taken.size(); ++i) {
    threads.emplace_back([&, i] { taken[i] = TakeAll(source, 5 + i); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const auto& some : taken) all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, Range(0, 100'003));
}

std::map<std::string, uint64_t> Counts(const Outcomes& outcomes) {
  std::map<std::string, uint64_t> counts;
  for (const auto& entry : outcomes.entries()) counts[entry.head] = entry.times;
  return counts;
}

TEST(Outcomes, CountsHowRepliesBeginAndWhatWasNotExpected) {
  Outcomes outcomes({"RESERVED", "PENDING"});
  for (int i = 0; i < 3; ++i) outcomes.Add("RESERVED");
  outcomes.Add("DONE");
  outcomes.Add("PENDING");
  outcomes.Add("DONE");
  EXPECT_EQ(Counts(outcomes),
            (std::map<std::string, uint64_t>{{"RESERVED", 3}, {"DONE", 2}, {"PENDING", 1}}));
  EXPECT_EQ(outcomes.unexpected(), 2u);
  EXPECT_EQ(outcomes.others(), 0u);
}

TEST(Outcomes, ExpectsAnythingWhereNothingIsSaid) {
  Outcomes outcomes;
  outcomes.Add("whatever");
  EXPECT_EQ(outcomes.unexpected(), 0u);
}

TEST(Outcomes, ManyDifferentOnesAreCountedTogether) {
  Outcomes any, only_one({"0"});
  for (int i = 0; i < 100; ++i) {
    any.Add(std::to_string(i));
    only_one.Add(std::to_string(i));
  }
  EXPECT_EQ(any.entries().size(), Outcomes::kDistinct);
  EXPECT_EQ(any.others(), 100 - Outcomes::kDistinct);
  EXPECT_EQ(any.unexpected(), 0u);
  EXPECT_EQ(only_one.unexpected(), 99u);
}

TEST(Outcomes, MergeAddsUp) {
  Outcomes one({"a"}), two({"a"});
  one.Add("a");
  two.Add("a");
  two.Add("b");
  for (int i = 0; i < 20; ++i) two.Add(std::to_string(i));
  one.Merge(two);
  EXPECT_EQ(Counts(one)["a"], 2u);
  EXPECT_EQ(one.unexpected(), 21u);
  uint64_t sum = one.others();
  for (const auto& entry : one.entries()) sum += entry.times;
  EXPECT_EQ(sum, 23u);
}

TEST(PassResult, IsCleanOnlyWhenEveryRequestHasItsReplyAndNoneIsAnError) {
  PassResult result;
  result.requests = result.replies = 10;
  EXPECT_TRUE(result.clean());
  PassResult error = result;
  error.errors = 1;
  EXPECT_FALSE(error.clean());
  PassResult unanswered = result;
  unanswered.requests = 11;
  EXPECT_EQ(unanswered.unanswered(), 1u);
  EXPECT_FALSE(unanswered.clean());
  PassResult lost = result;
  lost.lost_connections = 1;
  EXPECT_FALSE(lost.clean());
  PassResult unexpected = result;
  unexpected.outcomes.emplace_back(std::vector<absl::string_view>{"OK"});
  unexpected.outcomes[0].Add("nil");
  EXPECT_FALSE(unexpected.clean());
  result.Merge(unexpected);
  EXPECT_FALSE(result.clean());
  EXPECT_EQ(result.replies, 20u);
}

TEST(PassResult, ComplaintsAreKeptOnceEachKind) {
  PassResult result;
  result.Complain("ERR unknown command 'A', with args beginning with: '1'");
  result.Complain("ERR unknown command 'A', with args beginning with: '2'");
  result.Complain("OOM");
  result.Complain("OOM");
  EXPECT_EQ(result.complaints.size(), 2u);
  EXPECT_THAT(PassResult().complaints, IsEmpty());
}

}  // namespace
}  // namespace idemd::bench
