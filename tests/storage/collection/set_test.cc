// Sets against a model, in both forms and across the border between them.
#include "storage/collection/set.h"

#include <malloc.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/storage/collection/rdb_round_trip.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using Model = std::set<std::string>;

Model MembersOf(const Collection& set) {
  Model members;
  set.ForEach([&](absl::string_view member) { EXPECT_TRUE(members.insert(std::string(member)).second) << member; });
  EXPECT_EQ(members.size(), set.size());
  return members;
}

// Mostly numbers, or anything.
std::string Member(std::mt19937_64& random, bool numbers) {
  switch (numbers ? random() % 3 : random() % 8) {
    case 0:
      return std::to_string(static_cast<int64_t>(random() % 20) - 10);
    case 1:
      return std::to_string(static_cast<int32_t>(random() % 30) * 100'000);
    case 2:
      return std::to_string(INT64_MIN + static_cast<int64_t>(random() % 10));
    case 3:
      return "0" + std::to_string(random() % 10);
    case 4:
      return std::string(random() % 40, static_cast<char>('a' + random() % 3));
    case 5:
      return std::string(14 + random() % 4, 'x');
    case 6:
      return std::string(random() % 3, '\0');
    default:
      return std::to_string(random() % 10) + ".5";
  }
}

class SetTest : public ::testing::Test {
 protected:
  ~SetTest() override { Set::intset_members_max = 512; }
};

TEST_F(SetTest, HoldsWhatAModelHolds) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    Set::intset_members_max = random() % 3 == 0 ? 512 : random() % 30;
    auto set = std::make_unique<Set>();
    Model model;
    bool numbers = random() % 2 == 0;
    for (int step = 0; step < 1'000; ++step) {
      if (random() % 200 == 0) numbers = false;
      const std::string member = Member(random, numbers);
      ASSERT_EQ(set->Contains(member), model.count(member) == 1) << member;
      if (random() % 5 < 3)
        ASSERT_EQ(set->Add(member), model.insert(member).second) << member;
      else
        ASSERT_EQ(set->Remove(member), model.erase(member) == 1) << member;
      ASSERT_EQ(set->size(), model.size());
      if (random() % 100 != 0) continue;
      ASSERT_EQ(MembersOf(*set), model);
      const std::unique_ptr<Collection> copy = set->Clone();
      ASSERT_EQ(MembersOf(*copy), model);
      const std::unique_ptr<Collection> read = RoundTrip(*set, RdbStrings::kCompressed, 1 + random() % 50);
      ASSERT_NE(read, nullptr);
      ASSERT_EQ(MembersOf(*read), model);
      if (random() % 2 == 0) set = std::make_unique<Set>(static_cast<const Set&>(*read));
    }
  }
}

TEST_F(SetTest, AnIntsetIsInOrderAndBecomesATableWhereRedisMakesOne) {
  Set set;
  for (int i = 511; i >= 0; --i) EXPECT_TRUE(set.Add(std::to_string(i)));
  EXPECT_STREQ(set.encoding(), "intset");
  int expected = 0;
  set.ForEach([&](absl::string_view member) { EXPECT_EQ(member, std::to_string(expected++)); });
  EXPECT_FALSE(set.Add("17"));
  EXPECT_STREQ(set.encoding(), "intset");
  EXPECT_TRUE(set.Add("512"));
  EXPECT_STREQ(set.encoding(), "hashtable");
  EXPECT_EQ(set.size(), 513u);
  Set mixed;
  EXPECT_TRUE(mixed.Add("1"));
  EXPECT_FALSE(mixed.Contains("01"));
  EXPECT_TRUE(mixed.Add("01"));
  EXPECT_STREQ(mixed.encoding(), "hashtable");
  EXPECT_TRUE(mixed.Remove("01"));
  EXPECT_STREQ(mixed.encoding(), "hashtable");
  mixed.Remake();
  EXPECT_STREQ(mixed.encoding(), "intset");
}

TEST_F(SetTest, MemoryIsWhatIsAllocated) {
  for (const char* prefix : {"", "m", "a-rather-long-prefix-of-members:"}) {
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    auto set = std::make_unique<Set>();
    for (int i = 0; i < 50'000; ++i) set->Add(prefix + std::to_string(i));
    const auto taken = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd - before);
    if (taken == 0) GTEST_SKIP() << "this allocator does not tell";
    const double blocks = std::string(prefix).size() > 15 ? 50'000 : 0;
    constexpr double kBlockHead = 8;  // the allocator's
    EXPECT_NEAR(static_cast<double>(set->memory_bytes()) + blocks * kBlockHead, taken, taken * 0.02) << prefix;
    set->Remove(prefix + std::string("7"));
    const std::unique_ptr<Collection> copy = set->Clone();
    EXPECT_NEAR(static_cast<double>(copy->memory_bytes()), static_cast<double>(set->memory_bytes()),
                static_cast<double>(set->memory_bytes()) * 0.01);
  }
}

TEST_F(SetTest, DamagedBytesAreRefusedOrReadable) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Set numbers, texts;
  for (int i = 0; i < 40; ++i) {
    numbers.Add(std::to_string(i * 1000));
    texts.Add("x" + std::to_string(i * 1000));
  }
  ReadDamaged(numbers, random, 20'000);
  ReadDamaged(texts, random, 20'000);
}

TEST_F(SetTest, OtherEncodingsOfRdbAreRead) {
  const std::string listpack("\x10\x00\x00\x00\x03\x00\x81x\x02\x01\x01\x82yz\x03\xff", 16);
  const std::string text = static_cast<char>(listpack.size()) + listpack;
  const auto set = ReadRdbBytes(20, text, 1);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(MembersOf(*set), (Model{"x", "1", "yz"}));
  // The same member twice.
  EXPECT_EQ(ReadRdbBytes(2, std::string("\x02\x01x\x01x", 5), 100), nullptr);
  const std::string falling("\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x05\x00\x03\x00", 13);
  EXPECT_EQ(ReadRdbBytes(11, falling, 100), nullptr);
  const auto empty = ReadRdbBytes(2, std::string("\0", 1), 100);
  ASSERT_NE(empty, nullptr);
  EXPECT_TRUE(empty->gone());
}

TEST_F(SetTest, AScanOfANumbersSetIsWhole) {
  Set set;
  for (int i = 0; i < 100; ++i) set.Add(std::to_string(i));
  size_t shown = 0;
  EXPECT_EQ(set.Scan(55, 1, [&](absl::string_view) { ++shown; }), 0u);
  EXPECT_EQ(shown, 100u);
  set.Add("x");
  shown = 0;
  EXPECT_EQ(set.Scan(0, 10, [&](absl::string_view) { ++shown; }), 91u);
  EXPECT_EQ(shown, 10u);
}

}  // namespace
}  // namespace idemd::storage
