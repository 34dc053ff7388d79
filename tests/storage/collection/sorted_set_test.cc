// Sorted sets of both forms against std:: containers, and what comes back from RDB.
#include "storage/collection/sorted_set.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/collection/rdb_collection.h"
#include "storage/snapshot/rdb_scanner.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
using Pairs = std::vector<std::pair<std::string, double>>;

Pairs PairsOf(const SortedSet& set, size_t first = 0, size_t count = SIZE_MAX, bool reverse = false) {
  Pairs pairs;
  set.ForRange(first, count, reverse,
               [&](absl::string_view member, double score) { pairs.emplace_back(std::string(member), score); });
  return pairs;
}

std::string RdbOf(const Collection& set) {
  std::string bytes;
  set.AppendRdb(RdbStrings::kPlain, bytes);
  return bytes;
}

// Null when the bytes are refused; more bytes than the value has are left alone.
std::unique_ptr<SortedSet> Read(uint8_t type, absl::string_view bytes) {
  bool given = false;
  RdbScanner scan([&](size_t) -> absl::StatusOr<absl::string_view> {
    return std::exchange(given, true) ? absl::string_view() : bytes;
  });
  std::unique_ptr<Collection> read = RdbCollectionReader(type)(type, scan);
  EXPECT_EQ(read == nullptr, !scan.failure().ok()) << "either a value or what is wrong with it";
  return std::unique_ptr<SortedSet>(static_cast<SortedSet*>(read.release()));
}

class SortedSetTest : public ::testing::Test {
 protected:
  void SetUp() override { SetLimits(128, 64); }
  void TearDown() override { SetLimits(128, 64); }
  static void SetLimits(int64_t entries, int64_t bytes) {
    SortedSet::limits().entries = entries;
    SortedSet::limits().value_bytes = bytes;
  }
};

TEST_F(SortedSetTest, BecomesLargeWhenRedisDoes) {
  SortedSet set;
  for (int i = 0; i < 128; ++i) set.Set(absl::StrCat(i), i);
  EXPECT_STREQ(set.encoding(), "listpack");
  set.Set("127", 5);
  EXPECT_STREQ(set.encoding(), "listpack") << "no member more";
  set.Set("another", 5);
  EXPECT_STREQ(set.encoding(), "skiplist");
  for (int i = 0; i < 128; ++i) set.Remove(absl::StrCat(i));
  EXPECT_STREQ(set.encoding(), "skiplist") << "and stays so";

  SortedSet wide;
  wide.Set(std::string(64, 'x'), 1);
  EXPECT_STREQ(wide.encoding(), "listpack");
  wide.Set(std::string(65, 'x'), 1);
  EXPECT_STREQ(wide.encoding(), "skiplist");

  SetLimits(0, 64);
  SortedSet none;
  none.Set("a", 1);
  EXPECT_STREQ(none.encoding(), "skiplist");
}

TEST_F(SortedSetTest, AnyScoreIsKept) {
  const double scores[] = {0,       1,      -1,        0.1,    1.0 / 3, 1e17,   -1e17, 1e300, 5e-324, 4611686018427387904.0,
                           9.3e18,  kInf,   -kInf,     3.5e-5, 1 << 20, 123.25, 9007199254740993.0,
                           -9.3e18, 1.7976931348623157e308};
  for (const int64_t entries : {128, 0}) {
    SetLimits(entries, 64);
    SortedSet set;
    for (const double score : scores) set.Set(absl::StrCat("m", score), score);
    for (const double score : scores) EXPECT_EQ(set.Score(absl::StrCat("m", score)), score) << set.encoding();
    const Pairs pairs = PairsOf(set);
    for (size_t i = 1; i < pairs.size(); ++i) EXPECT_LT(pairs[i - 1].second, pairs[i].second);
    EXPECT_EQ(PairsOf(*Read(set.rdb_type(), RdbOf(set))), pairs);
  }
}

TEST_F(SortedSetTest, OnlyALargeOneKnowsANegativeZero) {
  SortedSet small;
  small.Set("a", -0.0);
  EXPECT_FALSE(std::signbit(*small.Score("a")));
  SetLimits(0, 64);
  SortedSet large;
  large.Set("a", -0.0);
  EXPECT_TRUE(std::signbit(*large.Score("a")));
}

TEST_F(SortedSetTest, TheRuleDecides) {
  using Outcome = SortedSet::Outcome;
  for (const int64_t entries : {128, 0}) {
    SetLimits(entries, 64);
    SortedSet set;
    EXPECT_EQ(set.Set("a", 1, {.only_old = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.size(), 0u);
    EXPECT_EQ(set.Set("a", 1, {.only_new = true}).outcome, Outcome::kAdded);
    EXPECT_EQ(set.Set("a", 2, {.only_new = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.Set("a", 1, {.only_old = true}).outcome, Outcome::kSame);
    EXPECT_EQ(set.Set("a", 0, {.only_above = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.Set("a", 1, {.only_above = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.Set("a", 2, {.only_below = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.Set("a", 2, {.only_above = true}).outcome, Outcome::kMoved);
    EXPECT_EQ(set.Set("a", 3, {.add = true}).score, 5);
    EXPECT_EQ(set.Set("a", 1, {.only_below = true, .add = true}).outcome, Outcome::kRefused);
    EXPECT_EQ(set.Set("a", kInf, {.add = true}).outcome, Outcome::kMoved);
    EXPECT_EQ(set.Set("a", -kInf, {.add = true}).outcome, Outcome::kNan);
    EXPECT_EQ(set.Set("b", 7, {.only_below = true}).outcome, Outcome::kAdded);
    EXPECT_EQ(set.Score("a"), kInf);
  }
}

// Random steps, with limits low enough that sets become large in their midst.
TEST_F(SortedSetTest, DoesAsAMapAndASetDo) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    SetLimits(static_cast<int64_t>(random() % 100), random() % 2 == 0 ? 64 : 12);
    const uint64_t names = 1 + random() % (round % 3 == 0 ? 2000 : 150);
    auto set = std::make_unique<SortedSet>();
    std::map<std::string, double> scores;
    std::set<std::pair<double, std::string>> order;
    const auto name = [&] {
      const uint64_t n = random() % names;
      return n % 7 == 0 ? absl::StrCat("a longer name ", n) : n % 2 == 0 ? absl::StrCat(n) : absl::StrCat("n", n, std::string(1, '\0'));
    };
    const auto score = [&] { return static_cast<double>(random() % 21) / (random() % 2 == 0 ? 1 : 4) - 3; };
    const auto forget = [&](const std::string& member) {
      order.erase({scores[member], member});
      scores.erase(member);
    };
    for (int step = 0; step < 1500; ++step) {
      const std::string member = name();
      switch (random() % 12) {
        case 0:
        case 1: {
          ASSERT_EQ(set->Remove(member), scores.contains(member));
          if (scores.contains(member)) forget(member);
          break;
        }
        case 2: {
          const size_t first = random() % (order.size() + 2), count = random() % 4;
          std::vector<std::string> gone;
          size_t rank = 0;
          for (const auto& [s, m] : order) {
            if (rank >= first && rank - first < count) gone.push_back(m);
            ++rank;
          }
          set->RemoveRange(first, count);
          for (const std::string& m : gone) forget(m);
          break;
        }
        case 3:
          set.reset(static_cast<SortedSet*>(set->Clone().release()));
          break;
        case 4:
          set = Read(set->rdb_type(), RdbOf(*set));
          ASSERT_NE(set, nullptr);
          break;
        default: {
          const bool add = random() % 4 == 0;
          const double given = score();
          const double now = add && scores.contains(member) ? scores[member] + given : given;
          ASSERT_EQ(set->Set(member, given, {.add = add}).score, now);
          if (scores.contains(member)) forget(member);
          scores[member] = now;
          order.insert({now, member});
        }
      }
      ASSERT_EQ(set->size(), scores.size());
      ASSERT_EQ(set->Score(member).has_value(), scores.contains(member));
      if (scores.contains(member)) {
        ASSERT_EQ(*set->Score(member), scores[member]);
        const auto rank = std::distance(order.begin(), order.find({scores[member], member}));
        ASSERT_EQ(set->Rank(member), static_cast<size_t>(rank));
      }
      if (step % 50 != 0) continue;
      set->CheckInvariants();
      Pairs expected;
      for (const auto& [s, m] : order) expected.emplace_back(m, s);
      ASSERT_EQ(PairsOf(*set), expected);
      const size_t first = random() % (order.size() + 1), count = random() % 10;
      Pairs part;
      for (size_t i = 0; i < count && first + i < expected.size(); ++i) part.push_back(expected[expected.size() - 1 - first - i]);
      ASSERT_EQ(PairsOf(*set, first, count, true), part);
      const double bound = score();
      size_t below = 0, not_above = 0;
      for (const auto& [m, s] : expected) below += s < bound, not_above += s <= bound;
      ASSERT_EQ(set->CountBelow(bound, false), below);
      ASSERT_EQ(set->CountBelow(bound, true), not_above);
    }
  }
}

TEST_F(SortedSetTest, BytesOfMembersDecideWhereAllScoresAreEqual) {
  for (const int64_t entries : {1000, 0}) {
    SetLimits(entries, 64);
    SortedSet set;
    for (int i = 0; i < 300; ++i) set.Set(absl::StrCat(i), 0);
    EXPECT_EQ(set.CountBelow(absl::string_view("2"), false), 112u);
    EXPECT_EQ(set.CountBelow(absl::string_view("2"), true), 113u);
    EXPECT_EQ(set.CountBelow(absl::string_view(""), true), 0u);
    EXPECT_EQ(set.CountBelow(absl::string_view("x"), false), 300u);
  }
}

#ifndef IDEMD_SANITIZED  // whose allocations have other sizes
TEST_F(SortedSetTest, KnowsItsMemory) {
  const auto heap_bytes = [] {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  constexpr size_t kWord = 8;  // in front of each allocation, where nobody can use it
  for (const size_t members : {10u, 1000u, 100'000u}) {
    std::vector<std::unique_ptr<SortedSet>> sets(200'000 / members);
    const size_t before = heap_bytes();
    size_t told = 0;
    for (std::unique_ptr<SortedSet>& set : sets) {
      set = std::make_unique<SortedSet>();
      for (size_t i = 0; i < members; ++i) set->Set(absl::StrCat("member:", i * 7919 % members), static_cast<double>(i * 31 % 997));
      told += set->memory_bytes() + kWord * (members > 128 ? members + 1 : 2);
    }
    EXPECT_NEAR(static_cast<double>(told) / static_cast<double>(heap_bytes() - before), 1, 0.05) << members;
  }
}
#endif

// --- what files hold

std::string Text(absl::string_view text) {
  std::string bytes;
  AppendRdbString(text, RdbStrings::kPlain, bytes);
  return bytes;
}

TEST_F(SortedSetTest, OldFilesHaveScoresAsTexts) {
  const std::string bytes = std::string("\x04", 1) + Text("a") + "\x03" + "1.5" + Text("b") + "\xff" + Text("c") + "\xfe" + Text("12") + "\x12" + "3.0000000000000001";
  const std::unique_ptr<SortedSet> set = Read(SortedSet::kRdbTexts, bytes);
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(PairsOf(*set), (Pairs{{"b", -kInf}, {"a", 1.5}, {"12", 3}, {"c", kInf}}));
  EXPECT_EQ(Read(SortedSet::kRdbTexts, std::string("\x01", 1) + Text("a") + "\xfd"), nullptr) << "not a number";
  EXPECT_EQ(Read(SortedSet::kRdbTexts, std::string("\x01", 1) + Text("a") + "\x01" + "x"), nullptr);
  EXPECT_EQ(Read(SortedSet::kRdbTexts, std::string("\x01", 1) + Text("a") + "\x03" + "nan"), nullptr);
}

TEST_F(SortedSetTest, AMemberMayNotBeThereTwice) {
  Listpack twice;
  for (const char* text : {"a", "1", "a", "2"}) twice.Append(text);
  EXPECT_EQ(Read(SortedSet::kRdbListpack, Text(twice.view())), nullptr);
  std::string bytes;
  AppendRdbLength(2, bytes);
  for (const double score : {2.0, 1.0}) {
    bytes += Text("a");
    AppendRdbDouble(score, bytes);
  }
  EXPECT_EQ(Read(SortedSet::kRdbDoubles, bytes), nullptr);
}

TEST_F(SortedSetTest, AListpackOutOfOrderIsPutInOrder) {
  Listpack mixed;
  for (const char* text : {"c", "3", "a", "1", "b", "2.5"}) mixed.Append(text);
  const std::unique_ptr<SortedSet> set = Read(SortedSet::kRdbListpack, Text(mixed.view()));
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(PairsOf(*set), (Pairs{{"a", 1}, {"b", 2.5}, {"c", 3}}));
}

TEST_F(SortedSetTest, AListpackMustHoldPairsWithNumbers) {
  Listpack odd;
  for (const char* text : {"a", "1", "b"}) odd.Append(text);
  EXPECT_EQ(Read(SortedSet::kRdbListpack, Text(odd.view())), nullptr);
  for (const char* score : {"x", "", "nan", "1e999", "1 "}) {
    Listpack wrong;
    wrong.Append("a");
    wrong.Append(score);
    EXPECT_EQ(Read(SortedSet::kRdbListpack, Text(wrong.view())), nullptr) << score;
  }
}

TEST_F(SortedSetTest, LimitsDecideTheFormOfWhatIsRead) {
  SortedSet small;
  for (int i = 0; i < 20; ++i) small.Set(absl::StrCat("m", i), i);
  SetLimits(10, 64);
  const std::unique_ptr<SortedSet> large = Read(small.rdb_type(), RdbOf(small));
  EXPECT_STREQ(large->encoding(), "skiplist");
  EXPECT_EQ(PairsOf(*large), PairsOf(small));
  SetLimits(128, 64);
  EXPECT_STREQ(Read(large->rdb_type(), RdbOf(*large))->encoding(), "listpack");
}

TEST_F(SortedSetTest, DamagedBytesAreRefusedOrGiveAValidSet) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (const uint8_t type : {SortedSet::kRdbDoubles, SortedSet::kRdbListpack}) {
    SetLimits(type == SortedSet::kRdbDoubles ? 0 : 128, 64);
    SortedSet set;
    for (int i = 0; i < 30; ++i) set.Set(absl::StrCat(i % 3 == 0 ? "" : "member", i), i % 2 == 0 ? i : i / 7.0);
    ASSERT_EQ(set.rdb_type(), type);
    const std::string good = RdbOf(set);
    for (size_t size = 0; size < good.size(); ++size)
      EXPECT_EQ(Read(type, absl::string_view(good).substr(0, size)), nullptr) << "cut at " << size;
    for (int i = 0; i < 20'000; ++i) {
      std::string bad = good;
      for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) bad[random() % bad.size()] ^= static_cast<char>(1 << random() % 8);
      for (const uint8_t as : {type, SortedSet::kRdbTexts, SortedSet::kRdbZiplist}) {
        const std::unique_ptr<SortedSet> read = Read(as, bad);
        if (read == nullptr) continue;
        read->CheckInvariants();
        const Pairs pairs = PairsOf(*read);
        ASSERT_EQ(pairs.size(), read->size());
        for (size_t p = 1; p < pairs.size(); ++p)
          ASSERT_TRUE(ScoredBefore(pairs[p - 1].second, pairs[p - 1].first, pairs[p].second, pairs[p].first));
        for (const auto& [member, score] : pairs) ASSERT_EQ(read->Score(member), score);
      }
    }
  }
}

}  // namespace
}  // namespace idemd::storage
