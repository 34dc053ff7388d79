// The table against a std::unordered_map: random operations with growth, shrinking, scans, sweeps
// and bad hashes.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <unordered_map>

#include "storage/table/table.h"
#include "tests/storage/table/plain_entry.h"

namespace idemd::storage {
namespace {

using PlainTable = BasicTable<PlainEntry, RealSync>;

uint64_t Seed(uint64_t otherwise) {
  const char* seed = std::getenv("IDEMD_SEED");
  return seed == nullptr ? otherwise : std::strtoull(seed, nullptr, 10);
}

// A table, a map that knows what must be in it, and one way to hash the keys of both.
class Modelled {
 public:
  explicit Modelled(uint64_t (*hash)(uint64_t)) : hash_(hash) {}
  ~Modelled() { DrainForTest(); }

  void Put(uint64_t key, int64_t deadline_ms = kNoDeadline) {
    const EpochGuard guard;
    auto* fresh = new PlainEntry(hash_(key), Name(key), ++version_, deadline_ms);
    PlainEntry* old = table_.Put(hash_(key), fresh);
    const auto known = model_.find(key);
    ASSERT_EQ(old != nullptr, known != model_.end()) << key;
    if (old != nullptr) {
      ASSERT_EQ(old->version(), known->second.version);
      Retire(old, &PlainEntry::DestroyRetired);
    }
    model_[key] = {version_, deadline_ms};
  }
  void Take(uint64_t key) {
    const EpochGuard guard;
    PlainEntry* old = table_.Take(hash_(key), Name(key));
    ASSERT_EQ(old != nullptr, model_.erase(key) == 1) << key;
    if (old != nullptr) Retire(old, &PlainEntry::DestroyRetired);
  }
  void Find(uint64_t key) const {
    const EpochGuard guard;
    table_.Prefetch(hash_(key));
    table_.PrefetchEntry(hash_(key));
    const PlainEntry* entry = table_.Find(hash_(key), Name(key));
    const auto known = model_.find(key);
    ASSERT_EQ(entry != nullptr, known != model_.end()) << key;
    if (entry != nullptr) {
      ASSERT_EQ(entry->version(), known->second.version);
    }
  }
  void SetDeadline(uint64_t key, int64_t deadline_ms) {
    const EpochGuard guard;
    PlainEntry* entry = table_.Find(hash_(key), Name(key));
    if (entry == nullptr) return;
    entry->set_deadline_ms(deadline_ms);
    table_.NoteDeadline(hash_(key), deadline_ms);
    model_[key].deadline_ms = deadline_ms;
  }
  // Takes what is due, a few segments at a time; all of it must come in one pass.
  void Expire(int64_t now_ms, size_t segments) {
    std::set<std::string> expected, taken;
    for (const auto& [key, value] : model_)
      if (value.deadline_ms <= now_ms) expected.insert(Name(key));
    uint64_t position = 0;
    do {
      const EpochGuard guard;
      std::vector<PlainEntry*> due;
      table_.Due(now_ms, &position, segments, due);
      for (PlainEntry* entry : due) {
        taken.emplace(entry->key());
        ASSERT_EQ(table_.Take(entry->hash(), entry->key()), entry);
        Retire(entry, &PlainEntry::DestroyRetired);
      }
    } while (position != 0);
    ASSERT_EQ(taken, expected);
    for (auto it = model_.begin(); it != model_.end();)
      it = it->second.deadline_ms <= now_ms ? model_.erase(it) : std::next(it);
  }
  void CheckWhole() const {
    const EpochGuard guard;
    table_.CheckInvariants();
    ASSERT_EQ(table_.size(), model_.size());
    size_t walked = 0;
    table_.ForEach([&](PlainEntry& entry) {
      ++walked;
      ASSERT_EQ(model_.at(std::stoull(std::string(entry.key()))).version, entry.version());
    });
    ASSERT_EQ(walked, model_.size());
    ASSERT_EQ(table_.Random(version_) == nullptr, model_.empty());
  }

  PlainTable& table() { return table_; }
  size_t size() const { return model_.size(); }
  bool has(uint64_t key) const { return model_.count(key) == 1; }
  static std::string Name(uint64_t key) { return std::to_string(key); }

 private:
  struct Known {
    uint64_t version;
    int64_t deadline_ms;
  };
  uint64_t (*const hash_)(uint64_t);
  PlainTable table_;
  std::unordered_map<uint64_t, Known> model_;
  uint64_t version_ = 0;
};

uint64_t GoodHash(uint64_t key) { return MixedHash(key); }
uint64_t OneHash(uint64_t) { return 0x0123456789abcdefu; }
uint64_t OneBucket(uint64_t key) {
  return (MixedHash(key) & ~(uint64_t{63} << 52)) | uint64_t{5} << 52;
}
uint64_t OnePrefix(uint64_t key) { return MixedHash(key) & ~(((uint64_t{1} << 40) - 1) << 12); }
// Half of the directory stays one segment, and the rest gets so deep that the window of the tags
// moves.
uint64_t NarrowPrefix(uint64_t key) { return MixedHash(key) & ~(uint64_t{15} << 48); }
uint64_t FewHashes(uint64_t key) { return MixedHash(key % 7); }

struct Hashing {
  const char* name;
  uint64_t (*hash)(uint64_t);
  uint64_t keys;
};

class TableModel : public testing::TestWithParam<Hashing> {};

TEST_P(TableModel, T2AnswersAsAMapDoesWhileItGrowsAndShrinks) {
  const uint64_t seed = Seed(20260101);
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  const int64_t living = PlainEntry::living.load();
  {
    Modelled m(GetParam().hash);
    std::mt19937_64 random(seed);
    const uint64_t keys = GetParam().keys;
    for (int phase = 0; phase < 8; ++phase) {
      const uint64_t puts_of_16 = phase % 2 == 0 ? 13 : 2;
      const uint64_t range = keys >> (phase / 2 * 2);
      for (uint64_t i = 0; i < range * 2; ++i) {
        const uint64_t key = random() % range;
        random() % 16 < puts_of_16 ? m.Put(key) : m.Take(key);
        m.Find(random() % keys);
        if (HasFatalFailure()) return;
      }
      m.CheckWhole();
    }
    for (uint64_t key = 0; key < keys; ++key) m.Take(key);
    m.CheckWhole();
    EXPECT_EQ(m.size(), 0u);
    EXPECT_LT(m.table().memory_bytes(), 1000u) << "an emptied table is small again";
    for (uint64_t key = 0; key < 100; ++key) m.Put(key);
  }
  EXPECT_EQ(PlainEntry::living.load(), living) << "every entry is destroyed once";
}

INSTANTIATE_TEST_SUITE_P(Hashes, TableModel,
                         testing::Values(Hashing{"Good", &GoodHash, 60'000},
                                         Hashing{"One", &OneHash, 400},
                                         Hashing{"OneBucket", &OneBucket, 3000},
                                         Hashing{"OnePrefix", &OnePrefix, 3000},
                                         Hashing{"NarrowPrefix", &NarrowPrefix, 24'000},
                                         Hashing{"Few", &FewHashes, 1500}),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(TableModelT5, DueFindsExactlyWhatIsDueWhateverHappenedToTheDeadlines) {
  const uint64_t seed = Seed(77);
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  Modelled m(&GoodHash);
  std::mt19937_64 random(seed);
  int64_t now_ms = 1'000'000;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 400; ++i) {
      const uint64_t key = random() % 4000;
      const int64_t deadline_ms =
          random() % 3 == 0 ? kNoDeadline : now_ms + 1 + static_cast<int64_t>(random() % 3000);
      switch (random() % 4) {
        case 0:
          m.SetDeadline(key, deadline_ms);
          break;
        case 1:
          m.Take(key);
          break;
        default:
          m.Put(key, deadline_ms);
      }
    }
    now_ms += static_cast<int64_t>(random() % 400);
    m.Expire(now_ms, 1 + random() % 5);
    if (HasFatalFailure()) return;
    m.CheckWhole();
  }
}

TEST(TableModelT5, DuePassesOverSegmentsInWhichNothingCanBeDue) {
  Modelled m(&GoodHash);
  for (uint64_t key = 0; key < 5000; ++key) m.Put(key, 1000);
  m.Put(5000, 10);
  const EpochGuard guard;
  std::vector<PlainEntry*> due;
  uint64_t position = 0;
  const size_t looked_at = m.table().Due(10, &position, SIZE_MAX, due);
  EXPECT_EQ(position, 0u);
  EXPECT_EQ(due.size(), 1u);
  EXPECT_LT(looked_at, 500u) << "one segment of many";
  EXPECT_EQ(m.table().Due(9, &position, SIZE_MAX, due), 0u);
}

TEST(TableModelT6, AScanSeesAllThatStaysWhileTheTableGrowsAndShrinksUnderIt) {
  const uint64_t seed = Seed(99);
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 12; ++round) {
    Modelled m(round % 4 == 3 ? &FewHashes : &GoodHash);
    const uint64_t stable = 1 + random() % 300;
    for (uint64_t key = 0; key < stable; ++key) m.Put(key);
    uint64_t passing = stable + (round % 2 == 0 ? 0 : 1000);
    for (uint64_t key = stable; key < passing; ++key) m.Put(key);
    std::set<uint64_t> seen;
    uint32_t cursor = 0;
    size_t calls = 0;
    do {
      const EpochGuard guard;
      cursor = m.table().Scan(
          cursor, [&](PlainEntry& entry) { seen.insert(std::stoull(std::string(entry.key()))); });
      // Grows in half of the rounds, shrinks in the others, sometimes by much between two calls.
      for (uint64_t i = random() % (calls % 16 == 0 ? 200 : 8); i > 0; --i) {
        if (round % 2 == 0) {
          if (passing < 1500) m.Put(passing++);
        } else if (passing > stable) {
          m.Take(--passing);
        }
      }
      ASSERT_LT(++calls, 100'000u);
    } while (cursor != 0);
    for (uint64_t key = 0; key < stable; ++key)
      ASSERT_EQ(seen.count(key), 1u) << key << " in round " << round;
  }
}

TEST(TableModelT6, AScanOfAQuietTableSeesEachKeyOnce) {
  for (const uint64_t keys : {1u, 20u, 300u, 5000u}) {
    Modelled m(&GoodHash);
    for (uint64_t key = 0; key < keys; ++key) m.Put(key);
    std::multiset<std::string> seen;
    const EpochGuard guard;
    uint32_t cursor = 0;
    do {
      cursor = m.table().Scan(cursor, [&](PlainEntry& entry) { seen.emplace(entry.key()); });
    } while (cursor != 0);
    EXPECT_EQ(seen.size(), keys);
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), keys);
  }
}

TEST(TableModel, RandomDrawsEveryKeyAboutEquallyOften) {
  Modelled m(&GoodHash);
  constexpr uint64_t kKeys = 2000, kDraws = 200 * kKeys;
  for (uint64_t key = 0; key < kKeys; ++key) m.Put(key);
  std::map<std::string, int> drawn;
  std::mt19937_64 random(5);
  const EpochGuard guard;
  for (uint64_t i = 0; i < kDraws; ++i) ++drawn[std::string(m.table().Random(random())->key())];
  EXPECT_EQ(drawn.size(), kKeys);
  for (const auto& [key, times] : drawn) {
    EXPECT_GT(times, 200 / 4) << key;
    EXPECT_LT(times, 200 * 4) << key;
  }
}

TEST(TableModel, AnEmptyTableCostsNextToNothingAndASmallOneLittle) {
  PlainTable table;
  EXPECT_LT(table.memory_bytes(), 200u);
  EXPECT_EQ(table.Find(1, "a"), nullptr);
  EXPECT_EQ(table.Take(1, "a"), nullptr);
  EXPECT_EQ(table.Scan(0, [](PlainEntry&) {}), 0u);
  EXPECT_EQ(table.Random(1), nullptr);
  uint64_t position = 0;
  std::vector<PlainEntry*> due;
  EXPECT_EQ(table.Due(1, &position, 10, due), 0u);
  table.Put(MixedHash(1), new PlainEntry(MixedHash(1), "1", 1));
  EXPECT_LT(table.memory_bytes(), 600u);
}

TEST(TableModel, AFullTableUsesAFewBytesPerKey) {
  Modelled m(&GoodHash);
  double worst = 0;
  for (uint64_t key = 0; key < 100'000; ++key) {
    m.Put(key);
    if (key > 10'000 && key % 1000 == 0)
      worst =
          std::max(worst, static_cast<double>(m.table().memory_bytes()) / static_cast<double>(key));
  }
  EXPECT_LT(worst, 24) << "a slot, its part of a header, and room to grow";
}

TEST(TableModel, KeysWithOneTagAreToldApartByTheirBytes) {
  Modelled m(&OneHash);
  m.Put(1);
  m.Put(2);
  m.Find(1);
  m.Find(3);
  m.Take(1);
  m.Find(2);
  m.CheckWhole();
}

}  // namespace
}  // namespace idemd::storage
