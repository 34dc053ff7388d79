// The table against a std::unordered_map: random operations with growth, shrinking, scans, sweeps, both forms of keys
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
using PlainItem = Item<PlainEntry>;

constexpr int64_t kBase = 1'700'000'000'000;  // of inline deadlines

uint64_t Seed(uint64_t otherwise) {
  const char* seed = std::getenv("IDEMD_SEED");
  return seed == nullptr ? otherwise : std::strtoull(seed, nullptr, 10);
}

uint64_t NumberOf(const PlainItem& item) {
  return item.entry != nullptr ? item.entry->number() : PlainEntry::NumberOf(item.shape, item.words);
}

// A table, a map that knows what must be in it, and one way to hash the keys of both.
class Modelled {
 public:
  explicit Modelled(HashFunction hash) { PlainEntry::hash_function = hash; }
  ~Modelled() {
    DrainForTest();
    PlainEntry::hash_function = &MixedHash;
  }

  // Inline where that is asked for and the key allows it.
  void Put(uint64_t number, int64_t deadline_ms = kNoDeadline, bool want_inline = true) {
    const EpochGuard guard;
    const PlainKey key(number);
    const auto known = model_.find(number);
    ++version_;
    if (want_inline && PlainKey::CanBeInline(number)) {
      const uint32_t shape = key.ShapeFor(version_);
      PlainItem old;
      const bool out_of_line = known != model_.end() && known->second.shape == 0;
      ASSERT_EQ(table_.PutInline(key, shape, deadline_ms, now_ms_, kBase, &old, Held(key)), !out_of_line) << number;
      if (!out_of_line) {
        ASSERT_EQ(static_cast<bool>(old), known != model_.end()) << number;
        if (old) ExpectKnown(old, number);
        model_[number] = {0, shape, deadline_ms};
        return;
      }
    }
    const PlainItem old = table_.Put(key, new PlainEntry(number, version_, deadline_ms), Held(key));
    ASSERT_EQ(static_cast<bool>(old), known != model_.end()) << number;
    if (old) ExpectKnown(old, number);
    Retire(old);
    model_[number] = {version_, 0, deadline_ms};
  }
  void Take(uint64_t number) {
    const EpochGuard guard;
    const PlainKey key(number);
    const PlainItem old = table_.Take(key, Held(key));
    ASSERT_EQ(static_cast<bool>(old), model_.count(number) == 1) << number;
    if (old) ExpectKnown(old, number);
    Retire(old);
    model_.erase(number);
  }
  void Find(uint64_t number) const {
    const EpochGuard guard;
    const PlainKey key(number);
    table_.PrefetchReference(key.hash);
    table_.Prefetch(key.hash, number % 2 == 0);
    table_.PrefetchEntry(key.hash);
    const PlainItem item = table_.Find(key);
    ASSERT_EQ(static_cast<bool>(item), model_.count(number) == 1) << number;
    if (item) ExpectKnown(item, number);
  }
  void SetDeadline(uint64_t number, int64_t deadline_ms) {
    const EpochGuard guard;
    const PlainKey key(number);
    const PlainItem item = table_.Find(key);
    if (!item) return;
    if (item.entry != nullptr) item.entry->set_deadline_ms(deadline_ms);
    table_.SetDeadline(key, deadline_ms);
    model_[number].deadline_ms = deadline_ms;
  }
  // Takes what is due, a few segments at a time; all of it must come.
  void Expire(int64_t now_ms, size_t segments) {
    now_ms_ = now_ms;
    std::set<uint64_t> expected, taken;
    for (const auto& [number, value] : model_)
      if (value.deadline_ms <= now_ms) expected.insert(number);
    bool more = true;
    while (more) {
      const EpochGuard guard;
      std::vector<PlainTable::Due> due;
      more = table_.CollectDue(now_ms, kBase, segments, due);
      for (const PlainTable::Due& d : due) {
        ASSERT_TRUE(taken.insert(NumberOf(d.item)).second);
        ASSERT_EQ(d.hash, PlainKey(NumberOf(d.item)).hash);
        table_.Remove(d);
        Retire(d.item);
      }
      table_.FinishDue(due);
    }
    ASSERT_EQ(taken, expected);
    ASSERT_GT(table_.next_due_ms(), now_ms);
    for (auto it = model_.begin(); it != model_.end();)
      it = it->second.deadline_ms <= now_ms ? model_.erase(it) : std::next(it);
  }
  // Moves every entry for which `which` says so.
  size_t Relocate(size_t segments, bool (*which)(uint64_t number)) {
    size_t moved = 0;
    uint64_t position = 0;
    do {
      const EpochGuard guard;
      table_.Relocate(&position, segments, [&](PlainEntry& entry) -> PlainEntry* {
        if (!which(entry.number())) return nullptr;
        ++moved;
        auto* copy = new PlainEntry(entry.number(), entry.version(), entry.deadline_ms());
        storage::Retire(&entry, &PlainEntry::DestroyRetired);
        return copy;
      });
    } while (position != 0);
    return moved;
  }
  void CheckWhole() const {
    const EpochGuard guard;
    table_.CheckInvariants(kBase);
    ASSERT_EQ(table_.size(), model_.size());
    std::set<uint64_t> walked;
    table_.ForEach([&](const PlainItem& item) {
      ASSERT_TRUE(walked.insert(NumberOf(item)).second);
      ExpectKnown(item, NumberOf(item));
    });
    ASSERT_EQ(walked.size(), model_.size());
    ASSERT_EQ(static_cast<bool>(table_.Random(version_)), !model_.empty());
  }

  PlainTable& table() { return table_; }
  size_t size() const { return model_.size(); }
  size_t inlined() const {
    size_t n = 0;
    for (const auto& [number, value] : model_) n += value.shape != 0 ? 1 : 0;
    return n;
  }

 private:
  struct Known {
    uint64_t version;  // out of line
    uint32_t shape;    // inline
    int64_t deadline_ms;
  };
  // Every other change is told where the key is, or is not.
  const PlainTable::Held* Held(const PlainKey& key) {
    if (++changes_ % 2 == 0) return nullptr;
    held_ = {};
    table_.FindHeld(key, &held_);
    return &held_;
  }
  static void Retire(const PlainItem& item) {
    if (item.entry != nullptr) storage::Retire(item.entry, &PlainEntry::DestroyRetired);
  }
  void ExpectKnown(const PlainItem& item, uint64_t number) const {
    const auto it = model_.find(number);
    ASSERT_NE(it, model_.end()) << number;
    ASSERT_EQ(item.shape, it->second.shape);
    if (item.entry != nullptr) {
      ASSERT_EQ(item.entry->number(), number);
      ASSERT_EQ(item.entry->version(), it->second.version);
      ASSERT_EQ(item.entry->deadline_ms(), it->second.deadline_ms);
    } else {
      ASSERT_EQ(NumberOf(item), number);
      ASSERT_EQ(DeadlineOfCell(item.cell, kBase), it->second.deadline_ms);
    }
  }

  PlainTable table_{kBase};
  std::unordered_map<uint64_t, Known> model_;
  PlainTable::Held held_;
  uint64_t changes_ = 0;
  uint64_t version_ = 0;
  int64_t now_ms_ = kBase;
};

uint64_t GoodHash(uint64_t number) { return MixedHash(number); }
uint64_t OneHash(uint64_t) { return 0x0123456789abcdefu; }
uint64_t OneBucket(uint64_t number) { return (MixedHash(number) & ~(uint64_t{0xffff} << 42)) | uint64_t{0x5555} << 42; }
uint64_t OnePrefix(uint64_t number) { return MixedHash(number) & ~(((uint64_t{1} << 26) - 1) << 16); }
// Half of the directory stays one segment, and the rest gets deep.
uint64_t NarrowPrefix(uint64_t number) { return MixedHash(number) & ~(uint64_t{15} << 38); }
uint64_t FewHashes(uint64_t number) { return MixedHash(number % 7); }

struct Hashing {
  const char* name;
  HashFunction hash;
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
        if (random() % 16 < puts_of_16)
          m.Put(key, random() % 2 == 0 ? kNoDeadline : kBase + 1 + static_cast<int64_t>(random() % 100'000'000),
                random() % 8 != 0);
        else
          m.Take(key);
        m.Find(random() % keys);
        if (random() % 16 == 0) m.SetDeadline(random() % keys, kBase + 1 + static_cast<int64_t>(random() % 100'000));
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

TEST(TableModelT5, WhatIsDueIsCollectedWhateverHappenedToTheDeadlines) {
  const uint64_t seed = Seed(77);
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  Modelled m(&GoodHash);
  std::mt19937_64 random(seed);
  int64_t now_ms = kBase;
  for (int round = 0; round < 60; ++round) {
    // In some rounds far deadlines and long steps, so that coarse deadlines are coded anew.
    const int64_t reach_ms = round % 3 == 0 ? 200'000'000 : 3000;
    for (int i = 0; i < 400; ++i) {
      const uint64_t key = random() % 4000;
      const int64_t deadline_ms =
          random() % 3 == 0 ? kNoDeadline
                            : now_ms + 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(reach_ms));
      switch (random() % 4) {
        case 0:
          m.SetDeadline(key, deadline_ms);
          break;
        case 1:
          m.Take(key);
          break;
        default:
          m.Put(key, deadline_ms, random() % 4 != 0);
      }
    }
    now_ms += static_cast<int64_t>(random() % (round % 5 == 4 ? 40'000'000 : 400));
    m.Expire(now_ms, 1 + random() % 5);
    if (HasFatalFailure()) return;
    m.CheckWhole();
  }
}

TEST(TableModelT5, OnlySegmentsInWhichSomethingCanBeDueAreLookedAt) {
  Modelled m(&GoodHash);
  for (uint64_t key = 0; key < 20'000; ++key) m.Put(key, kBase + 1'000'000);
  EXPECT_EQ(m.table().next_due_ms(), kBase + 1'000'000);
  m.Put(50'000, kBase + 10);
  EXPECT_EQ(m.table().next_due_ms(), kBase + 10);
  const EpochGuard guard;
  std::vector<PlainTable::Due> due;
  EXPECT_FALSE(m.table().CollectDue(kBase + 9, kBase, SIZE_MAX, due));
  EXPECT_EQ(due.size(), 0u);
  EXPECT_FALSE(m.table().CollectDue(kBase + 10, kBase, 2, due)) << "two segments are enough, of many";
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(NumberOf(due[0].item), 50'000u);
  m.table().Remove(due[0]);
  m.table().FinishDue(due);
}

TEST(TableModel, AnInlineDeadlineIsExactUpToItsReachAndAnyBaseInBetween) {
  for (const int64_t after : {int64_t{0}, int64_t{1}, int64_t{999}, int64_t{4'000'000'000}}) {
    const int64_t deadline_ms = kBase + after;
    ASSERT_TRUE(FitsCell(deadline_ms, kBase)) << after;
    for (const int64_t base : {kBase, kBase + after / 2, deadline_ms})
      EXPECT_EQ(DeadlineOfCell(CellOf(deadline_ms), base), deadline_ms);
  }
  EXPECT_FALSE(FitsCell(kBase + (int64_t{1} << 32), kBase));
  EXPECT_FALSE(FitsCell(kBase - 1, kBase));
  EXPECT_FALSE(FitsCell((int64_t{0x18c} << 32) + 0xffffffff, int64_t{0x18c} << 32)) << "looks like none";
  EXPECT_TRUE(FitsCell(kNoDeadline, kBase));
  EXPECT_EQ(DeadlineOfCell(CellOf(kNoDeadline), kBase), kNoDeadline);
}

TEST(TableModelT6, AScanSeesAllThatStaysWhileTheTableGrowsAndShrinksUnderIt) {
  const uint64_t seed = Seed(99);
  SCOPED_TRACE("IDEMD_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 16; ++round) {
    Modelled m(round % 4 == 3 ? &FewHashes : &GoodHash);
    const uint64_t stable = 1 + random() % 3000;
    const uint64_t more = round % 4 == 3 ? 500 : 20'000;
    for (uint64_t key = 0; key < stable; ++key) m.Put(key, kNoDeadline, random() % 2 == 0);
    uint64_t passing = stable + (round % 2 == 0 ? 0 : more);
    for (uint64_t key = stable; key < passing; ++key) m.Put(key);
    std::set<uint64_t> seen;
    uint64_t cursor = 0;
    size_t calls = 0;
    do {
      const EpochGuard guard;
      cursor = m.table().Scan(cursor, [&](const PlainItem& item) { seen.insert(NumberOf(item)); });
      ASSERT_EQ(cursor >> PlainTable::kCursorBits, 0u);
      // Grows in half of the rounds, shrinks in the others, sometimes by much between two calls.
      for (uint64_t i = random() % (calls % 64 == 0 ? 2000 : 16); i > 0; --i) {
        if (round % 2 == 0) {
          if (passing < stable + more) m.Put(passing++);
        } else if (passing > stable) {
          m.Take(--passing);
        }
      }
      ASSERT_LT(++calls, 1'000'000u);
    } while (cursor != 0);
    for (uint64_t key = 0; key < stable; ++key)
      ASSERT_EQ(seen.count(key), 1u) << key << " in round " << round;
  }
}

TEST(TableModelT6, AScanOfAQuietTableSeesEachKeyOnce) {
  for (const uint64_t keys : {1u, 20u, 300u, 50'000u}) {
    Modelled m(&GoodHash);
    for (uint64_t key = 0; key < keys; ++key) m.Put(key);
    std::multiset<uint64_t> seen;
    const EpochGuard guard;
    uint64_t cursor = 0;
    do {
      cursor = m.table().Scan(cursor, [&](const PlainItem& item) { seen.insert(NumberOf(item)); });
    } while (cursor != 0);
    EXPECT_EQ(seen.size(), keys);
    EXPECT_EQ(std::set<uint64_t>(seen.begin(), seen.end()).size(), keys);
  }
}

TEST(TableModel, RandomDrawsEveryKeyAboutEquallyOften) {
  Modelled m(&GoodHash);
  constexpr uint64_t kKeys = 2000, kDraws = 200 * kKeys;
  for (uint64_t key = 0; key < kKeys; ++key) m.Put(key);
  std::map<uint64_t, int> drawn;
  std::mt19937_64 random(5);
  const EpochGuard guard;
  for (uint64_t i = 0; i < kDraws; ++i) ++drawn[NumberOf(m.table().Random(random()))];
  EXPECT_EQ(drawn.size(), kKeys);
  for (const auto& [key, times] : drawn) {
    EXPECT_GT(times, 200 / 4) << key;
    EXPECT_LT(times, 200 * 4) << key;
  }
}

TEST(TableModel, AnEmptyTableCostsNextToNothingAndASmallOneLittle) {
  PlainTable table;
  EXPECT_LT(table.memory_bytes(), 200u);
  EXPECT_FALSE(table.Find(PlainKey(1)));
  EXPECT_FALSE(table.Take(PlainKey(1)));
  EXPECT_EQ(table.Scan(0, [](const PlainItem&) {}), 0u);
  EXPECT_FALSE(table.Random(1));
  std::vector<PlainTable::Due> due;
  EXPECT_FALSE(table.CollectDue(kBase, kBase, 10, due));
  const EpochGuard guard;
  table.Put(PlainKey(1), new PlainEntry(1, 1));
  EXPECT_LT(table.memory_bytes(), 600u);
}

// Bytes of table per key at its worst and on average, with keys of one form only.
void FillAndMeasure(bool inlined, double* worst, double* mean) {
  Modelled m(&GoodHash);
  uint64_t keys = 0;
  double sum = 0;
  int samples = 0;
  *worst = 0;
  for (uint64_t number = 0; keys < 200'000; ++number) {
    if (PlainKey::CanBeInline(number) != inlined) continue;
    m.Put(number);
    if (++keys < 20'000 || keys % 1000 != 0) continue;
    const double per_key = static_cast<double>(m.table().memory_bytes()) / static_cast<double>(keys);
    *worst = std::max(*worst, per_key);
    sum += per_key;
    ++samples;
  }
  *mean = sum / samples;
  std::printf("%s: %.1f bytes of table per key on average, %.1f at worst\n", inlined ? "inline" : "out of line", *mean,
              *worst);
}

TEST(TableModel, ATableThatWasMadeLargeAtOnceHardlyGrowsAndShrinksAsEver) {
  for (const uint64_t keys : {1u, 700u, 5'000u, 60'000u}) {
    SCOPED_TRACE(keys);
    Modelled grown(&GoodHash), made(&GoodHash);
    made.table().Reserve(2 * keys);
    const size_t at_once = made.table().memory_bytes();
    for (uint64_t key = 0; key < keys; ++key) {
      made.Put(key);
      grown.Put(key);
    }
    made.CheckWhole();
    EXPECT_LE(made.table().memory_bytes(), at_once + at_once / 20);
    EXPECT_LE(made.table().memory_bytes(), 2 * grown.table().memory_bytes());
    for (uint64_t key = 0; key < keys; ++key) made.Take(key);
    made.CheckWhole();
    EXPECT_LT(made.table().memory_bytes(), 1000u);
  }
}

TEST(TableModel, AnInlineKeyTakesLessThanHalfALine) {
  double worst = 0, mean = 0;
  FillAndMeasure(true, &worst, &mean);
  EXPECT_LT(mean, 29);
  EXPECT_LT(worst, 32);
}

TEST(TableModel, AKeyOutOfLineTakesASlotAndItsPartOfALine) {
  double worst = 0, mean = 0;
  FillAndMeasure(false, &worst, &mean);
  EXPECT_LT(mean, 14.5);
  EXPECT_LT(worst, 16);
}

TEST(TableModel, KeysWithOneTagAreToldApartByTheirBytes) {
  Modelled m(&OneHash);
  for (uint64_t key = 0; key < 8; ++key) m.Put(key);
  m.Find(1);
  m.Find(9);
  m.Take(1);
  m.Find(0);
  m.Find(2);
  m.CheckWhole();
}

// An empty slot has the tag 0; UBSan sees it when one is taken for an entry.
TEST(TableModel, AnEmptySlotIsNotPrefetchedForAKeyWhoseTagIsZero) {
  Modelled m(&GoodHash);
  const EpochGuard guard;
  for (uint64_t number = 0; number < 16; ++number) m.Put(4 * number + 2);
  for (uint64_t number = 0; number < 256; ++number) m.table().PrefetchEntry(GoodHash(number) & ~uint64_t{0xffff});
}

TEST(TableModelT4, APairIsNotReusedForAnotherInlineKeyWhileAGuardIsOpen) {
  // One guard around everything: nothing that is emptied may be filled by another inline key, so the table makes room by
  // copying, and stays right.
  Modelled m(&GoodHash);
  const EpochGuard guard;
  for (uint64_t round = 0; round < 300; ++round) {
    for (uint64_t number = 0; number < 40; ++number) m.Put(round * 400 + number);
    for (uint64_t number = 0; number < 40; ++number) m.Take(round * 400 + number);
  }
  m.CheckWhole();
  EXPECT_EQ(m.size(), 0u);
}

TEST(TableModel, RelocationChangesNothingButThePlaceOfTheEntry) {
  Modelled m(&GoodHash);
  for (uint64_t key = 0; key < 20'000; ++key) m.Put(key, kBase + 1 + static_cast<int64_t>(key));
  const auto odd = [](uint64_t number) { return number % 8 == 7; };
  EXPECT_EQ(m.Relocate(3, odd), 20'000u / 8);
  m.CheckWhole();
  for (uint64_t key = 0; key < 20'000; ++key) m.Find(key);
}

}  // namespace
}  // namespace idemd::storage
