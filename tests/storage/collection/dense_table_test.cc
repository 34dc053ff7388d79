// The table of collections against a model, and what a scan shows while elements come and go.
#include "storage/collection/dense_table.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

// Elements are numbers of texts that the test keeps.
struct Names {
  static std::vector<std::string>& All() {
    static std::vector<std::string> names;
    return names;
  }
  static absl::string_view Of(const uint32_t& number) { return All()[number]; }
};
using Table = DenseTable<uint32_t, Names>;

class DenseTableTest : public ::testing::Test {
 protected:
  DenseTableTest() {
    Names::All().clear();
    for (uint32_t i = 0; i < kNames; ++i) Names::All().push_back("name:" + std::to_string(i));
  }
  void Add(uint32_t number) { table_.Append(number, ElementHash(Names::Of(number))); }
  void Remove(uint32_t number) {
    const uint64_t hash = ElementHash(Names::Of(number));
    table_.Remove(table_.Find(Names::Of(number), hash), hash);
  }
  bool Has(uint32_t number) const { return table_.Find(Names::Of(number)) != Table::kNone; }
  void ExpectHolds(const std::set<uint32_t>& model) {
    ASSERT_EQ(table_.size(), model.size());
    std::set<uint32_t> held;
    for (uint32_t place = 0; place < table_.size(); ++place) held.insert(table_[place]);
    ASSERT_EQ(held, model);
  }

  static constexpr uint32_t kNames = 200'000;
  Table table_;
};

TEST_F(DenseTableTest, HoldsWhatAModelHoldsWhileItGrowsAndShrinks) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  std::set<uint32_t> model;
  // Ever wider ranges, each with a time of growing and one of shrinking.
  for (const uint32_t range : {6u, 12u, 40u, 5'000u, 12u}) {
    for (int step = 0; step < 30'000; ++step) {
      const auto number = static_cast<uint32_t>(random() % range);
      ASSERT_EQ(Has(number), model.count(number) == 1);
      const bool add = random() % 100 < (step < 15'000 ? 60u : 40u);
      if (add && model.insert(number).second) Add(number);
      if (!add && model.erase(number) == 1) Remove(number);
    }
    ExpectHolds(model);
  }
}

TEST_F(DenseTableTest, FindsAllOfManyElementsAndNothingElse) {
  for (uint32_t i = 0; i < kNames; i += 2) Add(i);
  for (uint32_t i = 0; i < kNames; ++i) ASSERT_EQ(Has(i), i % 2 == 0) << i;
  for (uint32_t i = 0; i < kNames; i += 4) Remove(i);
  for (uint32_t i = 0; i < kNames; ++i) ASSERT_EQ(Has(i), i % 4 == 2) << i;
}

TEST_F(DenseTableTest, GivesMemoryBack) {
  for (uint32_t i = 0; i < kNames; ++i) Add(i);
  const size_t full = table_.memory_bytes();
  EXPECT_LT(full, size_t{kNames} * 24);
  for (uint32_t i = 0; i + 10 < kNames; ++i) Remove(i);
  EXPECT_LT(table_.memory_bytes(), full / 20);
}

// One full scan, with changes between its calls. Returns how often each was shown.
template <class Change>
std::map<uint32_t, int> ScanWith(Table& table, uint64_t count, Change change) {
  std::map<uint32_t, int> shown;
  uint64_t cursor = 0;
  do {
    cursor = table.Scan(cursor, count, [&](uint32_t number) { ++shown[number]; });
    change();
  } while (cursor != 0);
  return shown;
}

TEST_F(DenseTableTest, AScanShowsEachElementOnceWhenNothingChanges) {
  for (const uint32_t size : {1u, 5u, 10u, 11u, 4'096u, 10'000u}) {
    while (table_.size() < size) Add(table_.size());
    for (const uint64_t count : {uint64_t{1}, uint64_t{10}, uint64_t{1000}, ~uint64_t{0}}) {
      const auto shown = ScanWith(table_, count, [] {});
      ASSERT_EQ(shown.size(), size);
      for (const auto& [number, times] : shown) ASSERT_EQ(times, 1) << number;
    }
  }
}

TEST_F(DenseTableTest, AScanShowsWhatIsThereThroughoutWhateverComesAndGoes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    std::set<uint32_t> model;
    while (table_.size() != 0) Remove(table_[table_.size() - 1]);
    const uint32_t range = 1u << random() % 12;
    for (uint32_t i = 0; i < range; ++i)
      if (random() % 2 == 0 && model.insert(i).second) Add(i);
    std::set<uint32_t> throughout = model;
    const auto adds = static_cast<uint32_t>(random() % 100);  // of 100 changes
    const auto shown = ScanWith(table_, 1 + random() % 20, [&] {
      for (uint64_t changes = random() % 40; changes != 0; --changes) {
        const auto number = static_cast<uint32_t>(random() % (range * 2));
        if (random() % 100 < adds) {
          if (model.insert(number).second) Add(number);
        } else if (model.erase(number) == 1) {
          Remove(number);
          throughout.erase(number);
        }
      }
    });
    for (const uint32_t number : throughout) ASSERT_EQ(shown.count(number), 1u) << number;
  }
}

TEST_F(DenseTableTest, AnyNumberIsACursor) {
  for (uint32_t i = 0; i < 100; ++i) Add(i);
  for (const uint64_t cursor : {uint64_t{1}, uint64_t{100}, uint64_t{101}, ~uint64_t{0}}) {
    size_t shown = 0;
    const uint64_t next = table_.Scan(cursor, 10, [&](uint32_t) { ++shown; });
    EXPECT_EQ(shown, std::min<uint64_t>(cursor, 10));
    EXPECT_EQ(next, std::min<uint64_t>(cursor, 100) - shown);
  }
  EXPECT_EQ(Table().Scan(5, 10, [](uint32_t) { FAIL(); }), 0u);
}

}  // namespace
}  // namespace idemd::storage
