// Epochs under every order of steps that fits into a second, and what breaks when a rule of theirs
// is dropped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/schedule/step_sync.h"

namespace idemd::storage {
namespace {

struct Thing {
  StepLife life;
  static void Destroy(void* at) {
    auto* thing = static_cast<Thing*>(at);
    thing->life.End();
    Schedule::current()->Quarantine([thing] { delete thing; });
  }
};

// A reader looks at the thing in a place, a writer puts others there and retires what was in it;
// both push the epoch on.
template <class Sync>
void ReadWhileRetiring(Schedule& schedule, int looks, int replacements, bool third) {
  StepEpochs<Sync> epochs;
  auto* first = new Thing();
  typename Sync::template Atomic<Thing*> place(first);
  const auto push = [&] {
    epochs.domain().TryAdvance();
    epochs.domain().Collect(StepEpochs<Sync>::Mine(), 10);
  };
  schedule.Thread([&] {
    for (int i = 0; i < looks; ++i) {
      epochs.domain().TryAdvance();
      const BasicEpochGuard<Sync> guard;
      const Thing* thing = place.load(std::memory_order_acquire);
      thing->life.Use();
      schedule.Step();
      thing->life.Use();
    }
  });
  schedule.Thread([&] {
    Thing* held = first;
    for (int i = 0; i < replacements; ++i) {
      const BasicEpochGuard<Sync> guard;
      auto* fresh = new Thing();
      place.store(fresh, std::memory_order_release);
      BasicRetire<Sync>(held, &Thing::Destroy);
      held = fresh;
    }
    for (int i = 0; i < 4; ++i) push();
  });
  if (third) {
    schedule.Thread([&] {
      for (int i = 0; i < 4; ++i) push();
    });
  }
  schedule.Run();
  Thing::Destroy(place.load(std::memory_order_relaxed));
}

template <Fault planted>
Verdict Seeds(uint64_t seeds, bool stale) {
  return RunSeeds(seeds, stale, [](Schedule& schedule) {
    ReadWhileRetiring<StepSync<planted>>(schedule, 3, 3, true);
  });
}

TEST(EpochR2, NothingIsFreedUnderAGuardThatMaySeeIt) {
  const Verdict verdict = Seeds<Fault::kNone>(20'000 / kRunsDivisor, false);
  EXPECT_EQ(verdict.failure, "") << "seed " << verdict.seed;
}

TEST(EpochR2, NothingIsFreedUnderAGuardThatMaySeeItWithStaleValues) {
  const Verdict verdict = Seeds<Fault::kNone>(20'000 / kRunsDivisor, true);
  EXPECT_EQ(verdict.failure, "") << "seed " << verdict.seed;
}

TEST(EpochR2, HoldsInEveryOrderOfOneReadAndOneRetirement) {
  const Verdict verdict = RunEvery(4, false, 100'000 / kRunsDivisor, [](Schedule& schedule) {
    ReadWhileRetiring<StepSync<>>(schedule, 1, 1, false);
  });
  EXPECT_EQ(verdict.failure, "");
  EXPECT_GT(verdict.runs, 1000 / kRunsDivisor);
}

TEST(EpochR2, HoldsForEveryValueThatLoadsMayReturn) {
  const Verdict verdict = RunEvery(2, true, 100'000 / kRunsDivisor, [](Schedule& schedule) {
    ReadWhileRetiring<StepSync<>>(schedule, 1, 1, false);
  });
  EXPECT_EQ(verdict.failure, "");
  EXPECT_GT(verdict.runs, 1000 / kRunsDivisor);
}

// A failure, found in less than the seeds that the rule is tested with.
template <Fault planted>
void ExpectCaught(bool stale, const char* as) {
  const Verdict verdict = Seeds<planted>(20'000, stale);
  EXPECT_THAT(verdict.failure, testing::HasSubstr(as));
}
constexpr char kFreed[] = "freed";  // used after it, or freed beside the last use

TEST(EpochFaults, FreeingOneEpochEarlyIsCaught) {
  ExpectCaught<Fault::kFreedOneEpochEarly>(false, kFreed);
}

TEST(EpochFaults, EnteringWithoutReadingTheEpochAgainIsCaught) {
  ExpectCaught<Fault::kEnteredWithoutRecheck>(true, kFreed);
}

TEST(EpochFaults, EnteringWithARelaxedStoreIsCaught) {
  ExpectCaught<Fault::kEnteredRelaxed>(true, kFreed);
}

TEST(EpochFaults, LeavingWithARelaxedStoreIsCaught) {
  ExpectCaught<Fault::kLeftRelaxed>(false, kFreed);
}

}  // namespace
}  // namespace idemd::storage
