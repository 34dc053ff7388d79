// HyperLogLogs: the bytes that Redis makes, both forms against plain registers, and damaged values.
#include "storage/value/hyperloglog.h"

#include <cmath>
#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::storage::hll {
namespace {

constexpr size_t kSparseMax = 3000;

std::string WithElements(std::initializer_list<absl::string_view> elements) {
  std::string value = Empty();
  for (absl::string_view element : elements) EXPECT_NE(Add(element, kSparseMax, value), Status::kDamaged);
  return value;
}

Registers RegistersOf(absl::string_view value) {
  Registers registers{};
  EXPECT_TRUE(Merge(value, registers));
  return registers;
}

TEST(HyperLogLog, MakesTheRunsThatRedisMakes) {
  EXPECT_EQ(Empty(), std::string("HYLL\x01\0\0\0\0\0\0\0\0\0\0\0\x7f\xff", 18));
  const std::string value = WithElements({"a", "b", "c", "d", "e", "f", "g", "foo", "bar", "zap"});
  EXPECT_EQ(Runs(value),
            "Z:1646 v:1,1 Z:5645 v:1,1 z:55 v:5,1 Z:520 v:2,1 Z:508 v:2,1 z:57 v:1,1 Z:1570 v:1,1 Z:2703 v:2,1 Z:2445 "
            "v:1,1 Z:622 v:1,1 Z:603");
  uint64_t count = 0;
  ASSERT_TRUE(Count(value, &count));
  EXPECT_EQ(count, 10u);
}

TEST(HyperLogLog, KeepsACountUntilItIsForgotten) {
  std::string value = Empty();
  uint64_t count = 7;
  EXPECT_TRUE(KnownCount(value, &count));
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(Add("a", kSparseMax, value), Status::kChanged);
  EXPECT_FALSE(KnownCount(value, &count));
  KeepCount(1, value);
  EXPECT_TRUE(KnownCount(value, &count));
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(Add("a", kSparseMax, value), Status::kSame);
  EXPECT_TRUE(KnownCount(value, &count));
}

TEST(HyperLogLog, BothFormsHoldTheRegistersOfAModel) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20; ++round) {
    // Registers close together meet each other's runs more often.
    const auto range = static_cast<uint32_t>(1 + random() % (round % 2 == 0 ? 300 : kRegisters));
    const auto numbers = static_cast<uint32_t>(round % 3 == 0 ? 2 : 32);
    std::string sparse = Empty(), dense = Empty();
    ASSERT_EQ(MakeDense(dense), Status::kChanged);
    Registers model{};
    for (int step = 0; step < 1'000; ++step) {
      const auto index = static_cast<uint32_t>(random() % range);
      const auto number = static_cast<uint8_t>(1 + random() % numbers);
      const Status expected = model[index] < number ? Status::kChanged : Status::kSame;
      model[index] = std::max(model[index], number);
      ASSERT_EQ(Raise(index, number, kSparseMax, sparse), expected);
      ASSERT_EQ(Raise(index, number, kSparseMax, dense), expected);
    }
    ASSERT_EQ(RegistersOf(sparse), model);
    ASSERT_EQ(RegistersOf(dense), model);
    ASSERT_LE(IsDense(sparse) ? 0 : sparse.size(), kSparseMax);
    uint64_t of_sparse = 0, of_dense = 0;
    ASSERT_TRUE(Count(sparse, &of_sparse) && Count(dense, &of_dense));
    EXPECT_EQ(of_sparse, of_dense);
    EXPECT_EQ(of_sparse, Count(model));
    ASSERT_NE(MakeDense(sparse), Status::kDamaged);
    EXPECT_EQ(RegistersOf(sparse), model);
  }
}

TEST(HyperLogLog, BecomesDenseForLargeNumbersAndAtItsLimit) {
  std::string value = Empty();
  EXPECT_EQ(Raise(5, 32, kSparseMax, value), Status::kChanged);
  EXPECT_FALSE(IsDense(value));
  EXPECT_EQ(Raise(6, 33, kSparseMax, value), Status::kChanged);
  EXPECT_TRUE(IsDense(value));
  EXPECT_EQ(value.size(), kDenseBytes);
  EXPECT_EQ(RegistersOf(value)[5], 32);
  EXPECT_EQ(RegistersOf(value)[6], 33);
  value = Empty();
  EXPECT_EQ(Add("a", 18, value), Status::kChanged);
  EXPECT_TRUE(IsDense(value));
}

TEST(HyperLogLog, CountsWithinItsError) {
  std::string value = Empty();
  const double standard_error = 1.04 / std::sqrt(kRegisters);
  uint64_t checkpoint = 10;
  for (uint64_t i = 1; i <= 300'000; ++i) {
    Add("element:" + std::to_string(i), kSparseMax, value);
    if (i != checkpoint) continue;
    checkpoint *= 3;
    uint64_t count = 0;
    ASSERT_TRUE(Count(value, &count));
    EXPECT_NEAR(static_cast<double>(count), static_cast<double>(i), std::ceil(5 * standard_error * static_cast<double>(i))) << i;
  }
}

TEST(HyperLogLog, DamagedValuesAreRefusedAndNothingElseHappens) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  std::string good = Empty();
  for (int i = 0; i < 300; ++i) Add(std::to_string(i), kSparseMax, good);
  int refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string value = good;
    if (random() % 2 == 0) value.resize(kHeaderBytes + random() % (value.size() - kHeaderBytes));
    for (uint64_t flips = random() % 3; flips != 0 && value.size() > kHeaderBytes; --flips)
      value[kHeaderBytes + random() % (value.size() - kHeaderBytes)] ^= static_cast<char>(1u << random() % 8);
    ASSERT_TRUE(Looks(value));
    Registers registers{};
    uint64_t count = 0;
    const bool whole = Merge(value, registers);
    ASSERT_EQ(Count(value, &count), whole);
    refused += whole ? 0 : 1;
    Runs(value);
    std::string changed = value;
    for (int element = 0; element < 5; ++element) Add("new:" + std::to_string(element), kSparseMax, changed);
    ASSERT_EQ(MakeDense(value) != Status::kDamaged, whole);
  }
  EXPECT_GT(refused, 5'000);
  EXPECT_FALSE(Looks(""));
  EXPECT_FALSE(Looks("HYLL"));
  EXPECT_FALSE(Looks(std::string("HYLL\x02", 5) + std::string(20, '\0')));
  EXPECT_FALSE(Looks(std::string("HYLL\0", 5) + std::string(kDenseBytes - 6, '\0')));
  EXPECT_TRUE(Looks(std::string("HYLL\0", 5) + std::string(kDenseBytes - 5, '\0')));
}

}  // namespace
}  // namespace idemd::storage::hll
