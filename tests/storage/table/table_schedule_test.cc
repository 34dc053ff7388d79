// The table under every kind of interleaving: both forms of keys, their conversion, deadlines,
// expiry, scans, growth and shrinking, and the planted faults of all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/storage/table/step_draw.h"

namespace idemd::storage {
namespace {

// A writer fills and empties a table in which some keys stay throughout; one reader looks keys up,
// another scans.
template <class Sync, class Shape>
void FillAndEmpty(Schedule& schedule) {
  Draw draw(schedule.seed());
  const int living = StepEntry::living;
  {
    constexpr uint32_t kStable = 3;
    StepTable<Sync, Shape> step(schedule, &TestHash, kStable);
    using Reader = typename StepTable<Sync, Shape>::Reader;
    const uint32_t keys = draw(8, step.kKeys);
    const uint32_t filled = draw(kStable, keys);
    for (uint32_t key = 0; key < filled; ++key)
      step.Write({StepKey::CanBeInline(key) && draw(0, 4) != 0 ? Do::kPutInline : Do::kPut, key});
    // Operations are drawn before the run, so that they do not depend on the order of steps.
    const uint32_t puts_of_8 = draw(0, 9);
    std::vector<Change> changes;
    for (int i = 0; i < 10; ++i) changes.push_back(draw.AnyChange(kStable, keys, puts_of_8));
    std::vector<uint32_t> looks;
    for (int i = 0; i < 8; ++i) looks.push_back(draw(0, draw(0, 2) == 0 ? kStable : keys));

    schedule.Thread([&] {
      for (const Change& change : changes) step.Write(change);
    });
    schedule.Thread([&] {
      Reader reader(step);
      for (const uint32_t key : looks) reader.Find(key);
    });
    schedule.Thread([&] {
      Reader reader(step);
      reader.ScanSeesWhatStays();
      reader.Random();
    });
    Finish(step, schedule);
  }
  schedule.Expect(StepEntry::living == living, "every entry is destroyed once [T4]");
}

// A few changes to a few keys with one home, so that they meet in the same lines; the reader looks
// at what is changed.
template <class Sync, class Shape>
void OneHome(Schedule& schedule) {
  Draw draw(schedule.seed());
  StepTable<Sync, Shape> step(schedule, &OneHomeHash);
  using Reader = typename StepTable<Sync, Shape>::Reader;
  const uint32_t keys = draw(3, 9);
  for (uint32_t i = draw(1, 10); i > 0; --i) step.Write(draw.AnyChange(0, keys, 6));
  step.LetEpochsPass();
  std::vector<Change> changes;
  for (uint32_t i = draw(1, 5); i > 0; --i) changes.push_back(draw.AnyChange(0, keys, 5));
  std::vector<uint32_t> looks;
  for (int i = 0; i < 4; ++i)
    looks.push_back(draw(0, 2) == 0 ? draw(0, keys) : changes[draw(0, 2) % changes.size()].key);
  schedule.Thread([&] {
    for (const Change& change : changes) step.Write(change);
  });
  schedule.Thread([&] {
    Reader reader(step);
    for (const uint32_t key : looks) reader.Find(key);
  });
  Finish(step, schedule);
}

// One key stays, whatever happens around it and to its form; a reader looks only there, another
// walks from 0 to 0.
template <class Sync, class Shape>
void OneStays(Schedule& schedule) {
  Draw draw(schedule.seed());
  constexpr uint32_t kStable = 1;
  StepTable<Sync, Shape> step(schedule, draw(0, 2) == 0 ? &OneHomeHash : &TestHash, kStable);
  using Reader = typename StepTable<Sync, Shape>::Reader;
  const uint32_t keys = draw(4, 10);
  const uint32_t before = draw(0, 6);
  for (uint32_t i = 0; i < before; ++i) step.Write(draw.AnyChange(kStable, keys, 7));
  step.Write({Do::kPutInline, 0});
  for (uint32_t i = draw(0, 4); i > 0; --i) step.Write(draw.AnyChange(kStable, keys, 3));
  step.LetEpochsPass();
  std::vector<Change> changes;
  for (uint32_t i = draw(2, 7); i > 0; --i)
    changes.push_back(draw(0, 4) == 0 ? Change{Do::kPut, 0} : draw.AnyChange(kStable, keys, 5));
  schedule.Thread([&] {
    for (const Change& change : changes) step.Write(change);
  });
  schedule.Thread([&] {
    Reader reader(step);
    for (int i = 0; i < 5; ++i) reader.Find(0);
  });
  schedule.Thread([&] { Reader(step).ScanSeesWhatStays(); });
  Finish(step, schedule);
}

// Scans from 0 to 0 while waves of keys split segments and let them merge again. Counts the scans
// that saw the table's memory change.
template <class Sync, class Shape>
uint64_t SnapshotWalk(Schedule& schedule) {
  Draw draw(schedule.seed());
  constexpr uint32_t kStable = 5;
  StepTable<Sync, Shape> step(schedule, &TestHash, kStable);
  const auto wave = [&](uint32_t from, uint32_t to, bool put) {
    for (uint32_t key = from; key < to; ++key) step.Write({put ? Do::kPut : Do::kTake, key});
  };
  const uint32_t first = draw(kStable, step.kKeys), last = draw(first, step.kKeys) + 1;
  for (uint32_t key = 0; key < kStable; ++key)
    step.Write({StepKey::CanBeInline(key) ? Do::kPutInline : Do::kPut, key});
  const bool begins_full = draw(0, 2) == 0;
  if (begins_full) wave(kStable, last, true);
  schedule.Thread([&] {
    if (begins_full) wave(kStable, last, false);
    wave(kStable, first, true);
    wave(kStable, first, false);
  });
  uint64_t under_change = 0;
  for (int i = 0; i < 2; ++i)
    schedule.Thread([&] {
      typename StepTable<Sync, Shape>::Reader reader(step);
      const size_t bytes = step.table().memory_bytes();
      reader.ScanSeesWhatStays();
      under_change += step.table().memory_bytes() != bytes ? 1 : 0;
    });
  Finish(step, schedule);
  return under_change;
}

// Two writers at the same keys, a reader beside them.
template <class Sync, class Shape>
void TwoWriters(Schedule& schedule) {
  Draw draw(schedule.seed());
  StepTable<Sync, Shape> step(schedule, &TestHash);
  for (uint32_t key = 0; key < 5; ++key)
    step.Write({StepKey::CanBeInline(key) ? Do::kPutInline : Do::kPut, key});
  std::vector<Change> changes[2];
  for (auto& of_one : changes)
    for (int i = 0; i < 4; ++i) of_one.push_back(draw.AnyChange(0, 9, 5));
  for (const auto& of_one : changes)
    schedule.Thread([&] {
      for (const Change& change : of_one) step.Write(change);
    });
  schedule.Thread([&] {
    typename StepTable<Sync, Shape>::Reader reader(step);
    for (int i = 0; i < 5; ++i) reader.Find(changes[i % 2][static_cast<size_t>(i) / 2].key);
  });
  Finish(step, schedule);
}

// --- the smallest cases, for every order: one reader of one key, one or two changes beside it.
struct Small {
  const char* name;
  std::vector<Change> before;
  std::vector<Change> changes;
  uint32_t looked_up;
};

// Keys 0, 1, 4, 5, 8, 9 can be inline; 2, 3, 6, 7 cannot. All have one home.
const std::vector<Small>& SmallCases() {
  constexpr Do put = Do::kPut, put_inline = Do::kPutInline, expired = Do::kPutExpired,
               take = Do::kTake, deadline = Do::kSetDeadline, sweep = Do::kSweep,
               relocate = Do::kRelocate;
  static const std::vector<Small> cases = {
      {"put", {{put, 2}}, {{put, 3}}, 3},
      {"put beside it", {{put, 2}}, {{put, 3}}, 2},
      {"the first put of all", {}, {{put, 2}}, 2},
      {"replace", {{put, 2}, {put, 3}}, {{put, 3}}, 3},
      {"replace in a later line", {{put, 2}, {put, 3}, {put, 6}}, {{put, 6}}, 6},
      {"take", {{put, 2}, {put, 3}}, {{take, 2}}, 2},
      {"take beside it", {{put, 2}, {put, 3}, {put, 6}}, {{take, 2}}, 6},
      {"take and put elsewhere",
       {{put, 2}, {put, 3}, {put, 6}, {take, 2}},
       {{take, 6}, {put, 6}},
       6},
      {"inline put", {{put_inline, 0}}, {{put_inline, 4}}, 4},
      {"inline put beside it", {{put_inline, 0}}, {{put_inline, 4}}, 0},
      {"inline put of the same bytes", {{put_inline, 0}}, {{put_inline, 1}}, 1},
      {"inline replace", {{put_inline, 0}}, {{put_inline, 0}}, 0},
      {"inline replace in a later place", {{put_inline, 0}, {put_inline, 4}}, {{put_inline, 4}}, 4},
      {"inline replace, twice",
       {{put_inline, 0}, {put_inline, 4}},
       {{put_inline, 4}, {put_inline, 4}},
       4},
      {"inline take", {{put_inline, 0}, {put_inline, 4}}, {{take, 0}}, 0},
      {"inline take in a later place", {{put_inline, 0}, {put_inline, 4}}, {{take, 4}}, 4},
      {"inline take beside it", {{put_inline, 0}, {put_inline, 4}}, {{take, 0}}, 4},
      {"inline take and put", {{put_inline, 0}, {put_inline, 4}}, {{take, 4}, {put_inline, 4}}, 4},
      {"inline take and put of the same bytes",
       {{put_inline, 4}, {put_inline, 0}},
       {{take, 0}, {put_inline, 1}},
       0},
      {"deadline", {{put, 2}}, {{deadline, 2}}, 2},
      {"deadline inline", {{put_inline, 0}}, {{deadline, 0}}, 0},
      {"deadline in a later place", {{put_inline, 0}, {put_inline, 4}}, {{deadline, 4}}, 4},
      {"deadline beside it", {{put_inline, 0}, {put_inline, 4}}, {{deadline, 0}}, 4},
      {"conversion", {{put_inline, 0}}, {{put, 0}}, 0},
      {"conversion with room before", {{put, 2}, {put_inline, 0}, {put, 3}}, {{put, 0}}, 0},
      {"conversion with room at home",
       {{put, 2}, {put, 3}, {put, 6}, {put_inline, 0}, {take, 2}},
       {{put, 0}},
       0},
      {"conversion, no room", {{put_inline, 4}, {put_inline, 8}, {put_inline, 0}}, {{put, 0}}, 0},
      {"conversion and another key in its place",
       {{put, 2}, {put_inline, 0}},
       {{put, 0}, {put_inline, 4}},
       0},
      {"conversion and a slot in its place", {{put, 2}, {put_inline, 0}}, {{put, 0}, {put, 3}}, 0},
      {"conversion and a slot in its line", {{put_inline, 0}, {put, 2}}, {{put, 0}, {put, 3}}, 0},
      {"an empty slot pair becomes free and slots again",
       {{put, 2}, {put, 3}, {put, 6}, {take, 2}, {take, 3}},
       {{put_inline, 0}, {put, 7}},
       7},
      {"two empty slots and an inline key in their place",
       {{put, 2}, {put, 3}, {put, 6}, {take, 2}, {take, 3}},
       {{put_inline, 4}, {put_inline, 0}},
       0},
      {"expired and put", {{put_inline, 0}, {put_inline, 4}}, {{expired, 4}}, 4},
      {"expired and put beside it", {{put_inline, 0}, {put_inline, 4}}, {{expired, 0}}, 4},
      {"sweep", {{put_inline, 0}, {put, 2}, {put_inline, 4}, {put, 3}}, {{sweep}}, 0},
      {"sweep out of line", {{put, 2}, {put_inline, 0}, {put_inline, 4}, {put, 3}}, {{sweep}}, 2},
      {"sweep beside it", {{put, 2}, {put_inline, 0}, {put_inline, 4}, {put, 3}}, {{sweep}}, 4},
      {"relocate", {{put, 2}, {put, 3}, {put, 6}}, {{relocate}}, 6},
      {"growth", {{put_inline, 0}, {put_inline, 4}, {put, 2}, {put, 3}}, {{put_inline, 8}}, 4},
      {"growth, the key itself",
       {{put_inline, 0}, {put_inline, 4}, {put, 2}, {put, 3}},
       {{put_inline, 8}},
       8},
      {"split", {{put, 2}, {put, 3}, {put, 6}, {put, 7}, {put, 10}}, {{put, 11}, {put, 14}}, 10},
      {"merge",
       {{put, 2},
        {put, 3},
        {put, 6},
        {put, 7},
        {put, 10},
        {put, 11},
        {put, 14},
        {take, 3},
        {take, 6},
        {take, 7}},
       {{take, 10}, {take, 11}},
       2},
      {"merge and split again",
       {{put_inline, 0}, {put_inline, 4}, {put_inline, 8}, {put_inline, 5}, {take, 8}},
       {{take, 4}, {put_inline, 8}},
       0},
  };
  return cases;
}

template <class Sync, class Shape>
void OneSmall(Schedule& schedule, const Small& small, bool scans) {
  StepTable<Sync, Shape> step(schedule, &OneHomeHash);
  for (const Change& change : small.before) step.Write(change);
  step.LetEpochsPass();
  step.busy = false;
  schedule.Thread([&] {
    for (const Change& change : small.changes) step.Write(change);
  });
  schedule.Thread([&] {
    typename StepTable<Sync, Shape>::Reader reader(step);
    if (scans) {
      reader.Scan();
    } else {
      reader.Find(small.looked_up);
      reader.Find(small.looked_up);
    }
  });
  Finish(step, schedule);
}

#define EXPECT_HOLDS(verdict_expression)                                         \
  do {                                                                           \
    const Verdict verdict = verdict_expression;                                  \
    EXPECT_EQ(verdict.failure, "") << "IDEMD_SEED=" << verdict.seed << " again"; \
    EXPECT_GT(verdict.runs, 0u);                                                 \
  } while (false)

constexpr uint64_t kSmallRunsMax = 40'000;

enum class Tries : uint8_t { kEveryOrder, kSome };

template <class Shape>
void ExpectSmallCasesHold(bool scans, bool stale, Tries tries) {
  const uint64_t runs_max = (tries == Tries::kEveryOrder ? kSmallRunsMax : 1000) / kRunsDivisor;
  for (const Small& small : SmallCases()) {
    const Verdict verdict = RunEvery(stale ? 1 : 2, stale, runs_max, [&](Schedule& schedule) {
      OneSmall<StepSync<>, Shape>(schedule, small, scans);
    });
    EXPECT_EQ(verdict.failure, "") << small.name << (scans ? ", scan" : "");
    EXPECT_GT(verdict.runs, 10u) << small.name;
    if (kRunsDivisor == 1 && tries == Tries::kEveryOrder) {
      EXPECT_LT(verdict.runs, runs_max) << small.name << ": not every order was tried";
    }
  }
}

constexpr uint64_t kSeeds = 3000;
constexpr uint64_t kRuns = kSeeds / kRunsDivisor;

// --- no order of steps breaks a rule
TEST(TableT2, FindsAnswerCurrentStatesWhileATableFillsAndEmpties) {
  EXPECT_HOLDS(RunSeeds(kRuns, false, FillAndEmpty<StepSync<>, TinyShape>));
}

TEST(TableT2, FindsAnswerCurrentStatesWhileAFirstSegmentGrowsAndShrinks) {
  EXPECT_HOLDS(RunSeeds(kRuns, false, FillAndEmpty<StepSync<>, SmallShape>));
}

TEST(TableT2, FindsAnswerCurrentStatesInLinesOfTwoPairs) {
  EXPECT_HOLDS(RunSeeds(kRuns, false, FillAndEmpty<StepSync<>, PairShape>));
}

TEST(TableT2, HoldsForKeysOfOneHome) {
  EXPECT_HOLDS(RunSeeds(4 * kRuns, false, OneHome<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(4 * kRuns, false, OneHome<StepSync<>, PairShape>));
}

TEST(TableT2, HoldsWithTwoWritersUnderOneLock) {
  EXPECT_HOLDS(RunSeeds(kRuns, false, TwoWriters<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(kRuns, false, TwoWriters<StepSync<>, PairShape>));
}

TEST(TableT7, AKeyThatStaysIsFoundWhateverHappensToItsForm) {
  EXPECT_HOLDS(RunSeeds(2 * kRuns, false, OneStays<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(2 * kRuns, false, OneStays<StepSync<>, PairShape>));
}

TEST(TableT6, SnapshotWalksSeeWhatStaysWhileSegmentsSplitAndMerge) {
  for (const bool stale : {false, true}) {
    uint64_t under_change = 0;
    const auto tiny = [&](Schedule& schedule) {
      under_change += SnapshotWalk<StepSync<>, TinyShape>(schedule);
    };
    const auto pair = [&](Schedule& schedule) {
      under_change += SnapshotWalk<StepSync<>, PairShape>(schedule);
    };
    EXPECT_HOLDS(RunSeeds(kRuns / 2, stale, tiny));
    EXPECT_HOLDS(RunSeeds(kRuns / 2, stale, pair));
    EXPECT_GT(under_change, kRuns / 4) << "tables changed their size under the scans";
  }
}

TEST(TableT2, HoldsInEveryOrderOfASmallChangeAndTwoFinds) {
  ExpectSmallCasesHold<TinyShape>(false, false, Tries::kEveryOrder);
  ExpectSmallCasesHold<PairShape>(false, false, Tries::kEveryOrder);
}

TEST(TableT6, HoldsInManyOrdersOfASmallChangeAndAScan) {
  ExpectSmallCasesHold<TinyShape>(true, false, Tries::kSome);
  ExpectSmallCasesHold<PairShape>(true, false, Tries::kSome);
}

// --- nor does any value that the orderings allow
TEST(TableT3, FillingAndEmptyingHoldsWithStaleValues) {
  EXPECT_HOLDS(RunSeeds(kRuns, true, FillAndEmpty<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(kRuns, true, FillAndEmpty<StepSync<>, SmallShape>));
  EXPECT_HOLDS(RunSeeds(kRuns, true, FillAndEmpty<StepSync<>, PairShape>));
}

TEST(TableT3, KeysOfOneHomeHoldWithStaleValues) {
  EXPECT_HOLDS(RunSeeds(4 * kRuns, true, OneHome<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(4 * kRuns, true, OneHome<StepSync<>, PairShape>));
}

TEST(TableT3, AKeyThatStaysIsFoundWithStaleValues) {
  EXPECT_HOLDS(RunSeeds(2 * kRuns, true, OneStays<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(2 * kRuns, true, OneStays<StepSync<>, PairShape>));
}

TEST(TableT3, TwoWritersHoldWithStaleValues) {
  EXPECT_HOLDS(RunSeeds(kRuns, true, TwoWriters<StepSync<>, TinyShape>));
  EXPECT_HOLDS(RunSeeds(kRuns, true, TwoWriters<StepSync<>, PairShape>));
}

TEST(TableT3, SmallChangesHoldWithStaleValues) {
  ExpectSmallCasesHold<TinyShape>(false, true, Tries::kSome);
  ExpectSmallCasesHold<PairShape>(false, true, Tries::kSome);
}

// --- planted faults: each is caught, and as what it is.
template <template <class, class> class In, Fault planted, class Shape>
std::string Caught(bool stale) {
  return RunSeeds(20 * kSeeds, stale, In<StepSync<planted>, Shape>::Run).failure;
}
template <class Sync, class Shape>
struct InFillAndEmpty {
  static void Run(Schedule& schedule) { FillAndEmpty<Sync, Shape>(schedule); }
};
template <class Sync, class Shape>
struct InOneHome {
  static void Run(Schedule& schedule) { OneHome<Sync, Shape>(schedule); }
};
template <class Sync, class Shape>
struct InOneStays {
  static void Run(Schedule& schedule) { OneStays<Sync, Shape>(schedule); }
};

// The same in every order of one of the small cases.
template <Fault planted, class Shape>
std::string CaughtInSmall(absl::string_view name) {
  for (const Small& small : SmallCases()) {
    if (name != small.name) continue;
    return RunEvery(2, false, kSmallRunsMax,
                    [&](Schedule& schedule) {
                      OneSmall<StepSync<planted>, Shape>(schedule, small, false);
                    })
        .failure;
  }
  return "no such case";
}

auto IsAnAbsence() {
  return testing::AnyOf(testing::HasSubstr("absent is a promise"), testing::HasSubstr("[T6]"));
}
auto IsATornItem() {
  return testing::AnyOf(testing::HasSubstr("a cell is"),
                        testing::HasSubstr("a deadline and a shape"));
}

TEST(TableFaults, ASlotPublishedRelaxedIsCaught) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kSlotPublishedRelaxed, TinyShape>(false)),
              testing::HasSubstr("sees it whole"));
}

TEST(TableFaults, APairPublishedRelaxedIsCaught) {
  EXPECT_THAT((Caught<InOneHome, Fault::kPairPublishedRelaxed, PairShape>(true)), IsATornItem());
}

TEST(TableFaults, AnInlineKeyThatIsNotRecheckedIsCaught) {
  EXPECT_THAT((Caught<InOneHome, Fault::kInlineNotRechecked, PairShape>(false)), IsATornItem());
}

TEST(TableFaults, AConversionBehindTheReaderIsCaught) {
  EXPECT_THAT((Caught<InOneStays, Fault::kOutOfLineAnywhere, TinyShape>(false)), IsAnAbsence());
}

TEST(TableFaults, APairReusedAtOnceIsCaught) {
  EXPECT_THAT((CaughtInSmall<Fault::kPairReusedAtOnce, TinyShape>(
                  "conversion and another key in its place")),
              IsAnAbsence());
  EXPECT_THAT((CaughtInSmall<Fault::kPairReusedAtOnce, TinyShape>(
                  "two empty slots and an inline key in their place")),
              testing::HasSubstr("followed as an address [T4]"));
}

TEST(TableFaults, AnEpochStoredBeforeTheHeaderIsCaught) {
  EXPECT_THAT((Caught<InOneHome, Fault::kEpochBeforeHeader, PairShape>(false)),
              testing::HasSubstr("a cell is"));
}

TEST(TableFaults, ASegmentPublishedRelaxedIsCaught) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kSegmentPublishedRelaxed, TinyShape>(false)),
              testing::HasSubstr("sees it whole"));
}

TEST(TableFaults, AnOverflowCountThatIsNotRaisedIsCaught) {
  const std::string failure = Caught<InFillAndEmpty, Fault::kOverflowNotRaised, TinyShape>(false);
  EXPECT_THAT(failure, testing::AnyOf(testing::HasSubstr("[T2]"), testing::HasSubstr("[T6]")));
}

TEST(TableFaults, AReplacementByHalvesIsCaught) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kReplacedByHalves, TinyShape>(false)), IsAnAbsence());
}

TEST(TableFaults, ASplitPublishedBeforeItIsFilledIsCaught) {
  EXPECT_THAT((CaughtInSmall<Fault::kSplitPublishedEarly, TinyShape>("split")), IsAnAbsence());
}

TEST(TableFaults, ASegmentFreedAtOnceIsCaught) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kSegmentFreedAtOnce, TinyShape>(false)),
              testing::HasSubstr("freed"));
}

// The hint belongs to lock holders, so no order of steps is needed: a sweep misses a key.
TEST(TableFaults, AHintThatIsNotLoweredIsCaught) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kHintNotLowered, TinyShape>(false)),
              testing::HasSubstr("a sweep takes what is due"));
}

TEST(TableFaults, EpochsThatFreeEarlyAreCaughtThroughTheTable) {
  EXPECT_THAT((Caught<InFillAndEmpty, Fault::kFreedOneEpochEarly, TinyShape>(false)),
              testing::HasSubstr("freed"));
}

}  // namespace
}  // namespace idemd::storage
