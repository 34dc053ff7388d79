// Tables that are saved as of one moment while writers go on, in many orders of lock holds; and the planted faults of that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "storage/snapshot/shard_cut.h"
#include "tests/storage/table/step_draw.h"

namespace idemd::storage {
namespace {

constexpr uint64_t kSeeds = 4000;
constexpr uint64_t kRuns = kSeeds / kRunsDivisor;

// --- one table: a writer or two, beside cuts one after another. Counts the cuts whose state was changed before they ended.
template <class Sync, class Shape>
uint64_t SaveBesideWriters(Schedule& schedule, uint64_t (*hash)(uint32_t), uint32_t writers) {
  Draw draw(schedule.seed());
  uint64_t changed = 0;
  const int living = StepEntry::living;
  {
    StepTable<Sync, Shape> step(schedule, hash);
    step.busy = false;
    const uint32_t keys = draw(3, step.kKeys);
    for (uint32_t i = draw(0, 2 * keys); i > 0; --i) step.Write(draw.AnyChange(0, keys, 7));
    step.LetEpochsPass();
    const uint32_t puts_of_8 = draw(0, 9);  // tables fill, empty, or stay about as they are
    std::vector<std::vector<Change>> changes(writers);
    for (auto& of_one : changes)
      for (int i = 0; i < 8; ++i) of_one.push_back(draw.AnyChange(0, keys, puts_of_8));
    for (const auto& of_one : changes) {
      schedule.Thread([&] {
        for (const Change& change : of_one) step.Write(change);
      });
    }
    const uint32_t lines = draw(1, 4);
    schedule.Thread([&] {
      typename StepTable<Sync, Shape>::Saver saver(step);
      if (lines == 2) saver.GiveUp(2);
      saver.Save(lines);
      saver.Save(1);
      changed += saver.changed_meanwhile;
    });
    Finish(step, schedule);
  }
  schedule.Expect(StepEntry::living == living, "every entry is destroyed once [T4]");
  return changed;
}

template <class Sync, class Shape>
void AnyHome(Schedule& schedule) {
  SaveBesideWriters<Sync, Shape>(schedule, &TestHash, 1);
}
template <class Sync, class Shape>
void OneHome(Schedule& schedule) {
  SaveBesideWriters<Sync, Shape>(schedule, &OneHomeHash, 1);
}

#define EXPECT_HOLDS(verdict_expression)                                         \
  do {                                                                           \
    const Verdict verdict = verdict_expression;                                  \
    EXPECT_EQ(verdict.failure, "") << "IDEMD_SEED=" << verdict.seed << " again"; \
    EXPECT_GT(verdict.runs, 0u);                                                 \
  } while (false)

template <class Shape>
void ExpectSavesHold() {
  for (uint64_t (*hash)(uint32_t) : {&TestHash, &OneHomeHash}) {
    for (const uint32_t writers : {1u, 2u}) {
      uint64_t changed = 0;
      EXPECT_HOLDS(RunSeeds(kRuns, false, [&](Schedule& schedule) {
        changed += SaveBesideWriters<StepSync<>, Shape>(schedule, hash, writers);
      }));
      EXPECT_GT(changed, kRuns / 4) << "writers changed what was being saved";
    }
  }
}

TEST(TableT8, WhatWasThereAtTheCutIsSavedOnceWhileATableSplitsAndMerges) { ExpectSavesHold<TinyShape>(); }
TEST(TableT8, WhatWasThereAtTheCutIsSavedOnceWhileAFirstSegmentGrows) { ExpectSavesHold<SmallShape>(); }
TEST(TableT8, WhatWasThereAtTheCutIsSavedOnceInLinesOfTwoPairs) { ExpectSavesHold<PairShape>(); }

// --- planted faults
template <Fault planted, class Shape = TinyShape>
std::string Caught() {
  return RunSeeds(20 * kSeeds, false, AnyHome<StepSync<planted>, Shape>).failure;
}
auto IsNotTheCut() { return testing::HasSubstr("is saved as it was [T8]"); }

TEST(TableFaults, AReplacementInALineThatIsNotSavedIsCaught) { EXPECT_THAT(Caught<Fault::kReplacedUnsaved>(), IsNotTheCut()); }
TEST(TableFaults, AnInsertionIntoALineThatIsNotSavedIsCaught) { EXPECT_THAT(Caught<Fault::kFilledUnsaved>(), IsNotTheCut()); }
TEST(TableFaults, ARemovalFromALineThatIsNotSavedIsCaught) { EXPECT_THAT(Caught<Fault::kErasedUnsaved>(), IsNotTheCut()); }
TEST(TableFaults, AnEntryThatIsChangedBeforeItIsSavedIsCaught) { EXPECT_THAT(Caught<Fault::kEditedUnsaved>(), IsNotTheCut()); }
TEST(TableFaults, ASegmentThatIsCopiedWithoutBeingSavedIsCaught) { EXPECT_THAT(Caught<Fault::kCopiedUnsaved>(), IsNotTheCut()); }

// --- a shard: tables come, go and change their databases
enum class DoAll : uint8_t { kPut, kTake, kDrop, kSwap };
struct ShardChange {
  DoAll what;
  DbIndex db;
  uint32_t key;
};

template <class Sync>
class StepShard {
 public:
  static constexpr DbIndex kDbs = 2;
  using Table = BasicTable<StepEntry, Sync, TinyShape>;

  explicit StepShard(Schedule& schedule) : schedule_(schedule) { StepEntry::hash_function = &TestHash; }
  ~StepShard() {
    for (auto& table : tables_) delete table.load(std::memory_order_relaxed);
  }

  void Write(const ShardChange& change) {
    const BasicEpochGuard<Sync> guard;
    mutex_.Lock();
    auto& slot = tables_[change.db];
    Table* table = slot.load(std::memory_order_relaxed);
    switch (change.what) {
      case DoAll::kPut: {
        if (table == nullptr) {
          table = new Table();
          slot.store(table, std::memory_order_release);
        }
        const int version = ++version_;
        Retire(table->Put(StepKey(change.key), new StepEntry(change.key, version, kNoDeadline)).entry);
        now_[{change.db, change.key}] = version;
        break;
      }
      case DoAll::kTake:
        if (table == nullptr) break;
        Retire(table->Take(StepKey(change.key)).entry);
        now_.erase({change.db, change.key});
        break;
      case DoAll::kDrop:
        if (table == nullptr) break;
        slot.store(nullptr, std::memory_order_release);
        if (cut_ == nullptr || !cut_->Drop(*table)) RetireTable(table);
        std::erase_if(now_, [&](const auto& of) { return of.first.first == change.db; });
        break;
      case DoAll::kSwap: {
        slot.store(tables_[1 - change.db].load(std::memory_order_relaxed), std::memory_order_release);
        tables_[1 - change.db].store(table, std::memory_order_release);
        std::map<std::pair<DbIndex, uint32_t>, int> swapped;
        for (const auto& [name, version] : now_) swapped[{1 - name.first, name.second}] = version;
        now_ = swapped;
        break;
      }
    }
    mutex_.Unlock();
  }
  void Find(DbIndex db, uint32_t key) {
    const BasicEpochGuard<Sync> guard;
    const Table* table = tables_[db].load(std::memory_order_acquire);
    if (table == nullptr) return;
    const auto item = table->Find(StepKey(key));
    if (item) schedule_.Expect(item.entry->number() == key, "what is found is the key's [T1]");
  }
  // `steps`: after so many the cut is given up.
  void Save(uint32_t steps) {
    OneCut cut(*this);
    Locked([&] {
      ++epoch_;
      for (DbIndex db = 0; db < kDbs; ++db)
        if (Table* table = tables_[db].load(std::memory_order_relaxed)) cut.Begin(epoch_, db, *table);
      cut.expected = now_;
      cut_ = &cut;
    });
    bool all = false;
    for (; !all && steps != 0; --steps) {
      uint32_t lines = 0;
      Locked([&] { all = cut.SaveNext([&] { return ++lines == 2; }); });
    }
    Locked([&] {
      cut.End();
      cut_ = nullptr;
    });
    if (all) schedule_.Expect(cut.saved == cut.expected, "what was there at the cut is saved as it was [N1] [N2]");
  }

 private:
  struct OneCut final : BasicShardCut<StepEntry, Sync, TinyShape> {
    explicit OneCut(StepShard& shard) : BasicShardCut<StepEntry, Sync, TinyShape>(kDbs), of(shard) {}
    void Save(DbIndex db, const Item<StepEntry>& item) override {
      of.schedule_.Expect(saved.emplace(std::make_pair(db, item.entry->number()), item.entry->version()).second,
                          "a key is saved once [N1]");
    }
    void Free(Table* table) override { of.RetireTable(table); }

    StepShard& of;
    std::map<std::pair<DbIndex, uint32_t>, int> expected, saved;
  };
  template <class Body>
  void Locked(Body body) {
    const BasicEpochGuard<Sync> guard;
    mutex_.Lock();
    body();
    mutex_.Unlock();
  }
  static void Retire(StepEntry* old) {
    if (old != nullptr) BasicRetire<Sync>(old, [](void* at) { StepEntry::Destroy(static_cast<StepEntry*>(at)); });
  }
  static void RetireTable(Table* table) {
    BasicRetire<Sync>(table, [](void* at) { delete static_cast<Table*>(at); });
  }

  Schedule& schedule_;
  StepEpochs<Sync> epochs_;
  StepMutex mutex_;
  std::array<typename Sync::template Atomic<Table*>, kDbs> tables_;
  std::map<std::pair<DbIndex, uint32_t>, int> now_;  // version of each key
  int version_ = 0;
  uint32_t epoch_ = 0;
  OneCut* cut_ = nullptr;
};

template <class Sync>
void TablesComeAndGo(Schedule& schedule) {
  Draw draw(schedule.seed());
  const int living = StepEntry::living;
  {
    StepShard<Sync> step(schedule);
    const auto any = [&](uint32_t puts_of_8) {
      constexpr DoAll kOther[] = {DoAll::kTake, DoAll::kTake, DoAll::kDrop, DoAll::kSwap};
      const DoAll what = draw(0, 8) < puts_of_8 ? DoAll::kPut : kOther[draw(0, 4)];
      return ShardChange{what, draw(0, 2), 2 + draw(0, 4) * 4};  // keys that are out of line
    };
    for (uint32_t i = draw(0, 12); i > 0; --i) step.Write(any(7));
    std::vector<ShardChange> changes;
    for (int i = 0; i < 8; ++i) changes.push_back(any(4));
    const uint32_t steps = draw(0, 3) == 0 ? draw(0, 4) : UINT32_MAX;
    schedule.Thread([&] {
      for (const ShardChange& change : changes) step.Write(change);
    });
    schedule.Thread([&] {
      step.Save(steps);
      step.Save(UINT32_MAX);
    });
    schedule.Thread([&] {
      for (const ShardChange& change : changes) step.Find(change.db, change.key);
    });
    schedule.Run();
  }
  schedule.Expect(StepEntry::living == living, "every entry is destroyed once, dropped tables' too [N2]");
}

TEST(ShardCutN1, WhatWasThereAtTheCutIsSavedWhileTablesComeAndGo) {
  EXPECT_HOLDS(RunSeeds(4 * kRuns, false, TablesComeAndGo<StepSync<>>));
  EXPECT_HOLDS(RunSeeds(kRuns, true, TablesComeAndGo<StepSync<>>));
}

TEST(ShardCutFaults, ADroppedTableThatIsNotWalkedIsCaught) {
  EXPECT_THAT(RunSeeds(20 * kSeeds, false, TablesComeAndGo<StepSync<Fault::kDroppedForgotten>>).failure,
              testing::HasSubstr("is saved as it was [N1] [N2]"));
}

}  // namespace
}  // namespace idemd::storage
