// The table under every kind of interleaving: find, put, replace, take, scan, split, merge, and
// their planted faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/storage/table/step_table.h"

namespace idemd::storage {
namespace {

// A writer fills and empties a table in which some keys stay throughout; one reader looks keys up,
// another scans.
template <class Sync, class Shape>
void FillAndEmpty(Schedule& schedule) {
  std::mt19937_64 random(schedule.seed());
  const int living = StepEntry::living;
  {
    StepTable<Sync, Shape> step(schedule);
    constexpr uint32_t kStable = 3;
    const auto draw = [&](uint32_t from, uint32_t to) {
      return from + static_cast<uint32_t>(random() % (to - from));
    };
    const uint32_t keys = draw(8, step.kKeys);
    for (uint32_t key = 0; key < kStable; ++key) step.Put(key);
    const uint32_t filled = draw(kStable, keys);
    for (uint32_t key = kStable; key < filled; ++key) step.Put(key);
    // Operations are drawn before the run, so that they do not depend on the order of steps.
    const uint32_t puts_of_8 = draw(0, 9);
    std::vector<std::pair<bool, uint32_t>> writes;
    for (int i = 0; i < 10; ++i) {
      const bool put = draw(0, 8) < puts_of_8;
      writes.emplace_back(put, draw(put ? 0 : kStable, keys));
    }
    std::vector<uint32_t> looks;
    for (int i = 0; i < 8; ++i) looks.push_back(draw(0, draw(0, 2) == 0 ? kStable : keys));

    schedule.Thread([&] {
      for (const auto& [put, key] : writes) put ? step.Put(key) : step.Take(key);
    });
    schedule.Thread([&] {
      typename StepTable<Sync, Shape>::Reader reader(step);
      for (const uint32_t key : looks) reader.Find(key);
    });
    schedule.Thread([&] {
      const std::set<uint32_t> seen = typename StepTable<Sync, Shape>::Reader(step).Scan();
      for (uint32_t key = 0; key < kStable; ++key)
        schedule.Expect(seen.count(key) == 1, "a scan visits what is there throughout [T6]");
      const BasicEpochGuard<Sync> guard;
      schedule.Expect(step.table().Random(schedule.seed()) != nullptr, "there is some key");
    });
    schedule.Run();
    if (schedule.failure().empty()) step.table().CheckInvariants();
  }
  schedule.Expect(StepEntry::living == living, "every entry is destroyed once [T4]");
}

// Two writers at one key, a reader beside them.
template <class Sync>
void TwoWriters(Schedule& schedule) {
  StepTable<Sync, TinyShape> step(schedule);
  for (uint32_t key = 0; key < 5; ++key) step.Put(key);
  schedule.Thread([&] {
    step.Put(7);
    step.Take(7);
    step.Put(8);
  });
  schedule.Thread([&] {
    step.Put(7);
    step.Put(9);
    step.Take(2);
  });
  schedule.Thread([&] {
    typename StepTable<Sync, TinyShape>::Reader reader(step);
    for (const uint32_t key : {7u, 2u, 7u, 0u, 7u}) reader.Find(key);
  });
  schedule.Run();
  if (schedule.failure().empty()) step.table().CheckInvariants();
}

// The smallest cases, for every order: one reader of one key, one change beside it.
template <class Sync>
void OneChange(Schedule& schedule, uint32_t filled, bool put, uint32_t changed,
               uint32_t looked_up) {
  StepTable<Sync, TinyShape> step(schedule);
  for (uint32_t key = 0; key < filled; ++key) step.Put(key);
  schedule.Thread([&] { put ? step.Put(changed) : step.Take(changed); });
  schedule.Thread([&] {
    typename StepTable<Sync, TinyShape>::Reader reader(step);
    reader.Find(looked_up);
    reader.Find(looked_up);
  });
  schedule.Run();
}

constexpr uint64_t kSeeds = 4000;

#define EXPECT_HOLDS(verdict_expression)                                         \
  do {                                                                           \
    const Verdict verdict = verdict_expression;                                  \
    EXPECT_EQ(verdict.failure, "") << "IDEMD_SEED=" << verdict.seed << " again"; \
    EXPECT_GT(verdict.runs, 0u);                                                 \
  } while (false)

TEST(TableT2, FindsAnswerCurrentStatesWhileATableFillsAndEmpties) {
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, false, FillAndEmpty<StepSync<>, TinyShape>));
}

TEST(TableT2, FindsAnswerCurrentStatesWhileAFirstSegmentGrowsAndShrinks) {
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, false, FillAndEmpty<StepSync<>, SmallShape>));
}

TEST(TableT3, HoldsWithEveryStaleValueThatTheOrderingsAllow) {
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, true, FillAndEmpty<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, true, FillAndEmpty<StepSync<>, SmallShape>));
}

TEST(TableT2, HoldsWithTwoWritersUnderOneLock) {
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, false, TwoWriters<StepSync<>>));
  EXPECT_HOLDS(RunSeeds(kSeeds / kRunsDivisor, true, TwoWriters<StepSync<>>));
}

TEST(TableT2, HoldsInEveryOrderOfASmallChangeAndTwoFinds) {
  uint64_t runs = 0;
  for (uint32_t filled = 1; filled <= 8; ++filled) {
    for (uint32_t looked_up = 0; looked_up <= filled; looked_up += 1 + filled / 3) {
      for (const bool put : {false, true}) {
        const uint32_t changed = put && filled % 2 == 0 ? filled : filled - 1;
        const Verdict verdict = RunEvery(2, false, 20'000 / kRunsDivisor, [&](Schedule& schedule) {
          OneChange<StepSync<>>(schedule, filled, put, changed, looked_up);
        });
        EXPECT_EQ(verdict.failure, "")
            << filled << " keys, " << (put ? "put " : "take ") << changed << ", find " << looked_up;
        runs += verdict.runs;
      }
    }
  }
  EXPECT_GT(runs, 10'000 / kRunsDivisor);
}

// --- planted faults: each is caught, and as what it is.
template <Fault planted>
std::string Caught(bool stale) {
  const Verdict tiny = RunSeeds(kSeeds, stale, FillAndEmpty<StepSync<planted>, TinyShape>);
  return tiny.failure;
}

TEST(TableFaults, ASlotPublishedRelaxedIsCaught) {
  EXPECT_THAT(Caught<Fault::kSlotPublishedRelaxed>(false), testing::HasSubstr("sees it whole"));
}

TEST(TableFaults, ASegmentPublishedRelaxedIsCaught) {
  EXPECT_THAT(Caught<Fault::kSegmentPublishedRelaxed>(false), testing::HasSubstr("sees it whole"));
}

TEST(TableFaults, AnOverflowCountThatIsNotRaisedIsCaught) {
  const std::string failure = Caught<Fault::kOverflowNotRaised>(false);
  EXPECT_THAT(failure, testing::AnyOf(testing::HasSubstr("[T2]"), testing::HasSubstr("[T6]")));
}

TEST(TableFaults, AReplacementByHalvesIsCaught) {
  EXPECT_THAT(
      Caught<Fault::kReplacedByHalves>(false),
      testing::AnyOf(testing::HasSubstr("absent is a promise"), testing::HasSubstr("[T6]")));
}

TEST(TableFaults, AMoveInsideAPublishedSegmentIsCaught) {
  EXPECT_THAT(
      Caught<Fault::kMovedInPlace>(false),
      testing::AnyOf(testing::HasSubstr("absent is a promise"), testing::HasSubstr("[T6]")));
}

TEST(TableFaults, ASplitPublishedBeforeItIsFilledIsCaught) {
  EXPECT_THAT(
      Caught<Fault::kSplitPublishedEarly>(false),
      testing::AnyOf(testing::HasSubstr("absent is a promise"), testing::HasSubstr("[T6]")));
}

TEST(TableFaults, ASegmentFreedAtOnceIsCaught) {
  EXPECT_THAT(Caught<Fault::kSegmentFreedAtOnce>(false), testing::HasSubstr("freed"));
}

// The hint belongs to lock holders, so no order of steps is needed: a sweep misses a key.
template <Fault planted>
size_t DueAfterPut() {
  size_t due_count = 0;
  RunSeeds(1, false, [&](Schedule& schedule) {
    StepEpochs<StepSync<planted>> epochs;
    BasicTable<StepEntry, StepSync<planted>, TinyShape> table;
    table.Put(TestHash(1), new StepEntry(1, 1, 1000));
    std::vector<StepEntry*> due;
    uint64_t position = 0;
    table.Due(1000, &position, 10, due);
    due_count = due.size();
    schedule.Run();
  });
  return due_count;
}

TEST(TableFaults, AHintThatIsNotLoweredIsCaught) {
  EXPECT_EQ(DueAfterPut<Fault::kNone>(), 1u);
  EXPECT_EQ(DueAfterPut<Fault::kHintNotLowered>(), 0u);
}

TEST(TableFaults, EpochsThatFreeEarlyAreCaughtThroughTheTable) {
  EXPECT_THAT(Caught<Fault::kFreedOneEpochEarly>(false), testing::HasSubstr("freed"));
}

}  // namespace
}  // namespace idemd::storage
