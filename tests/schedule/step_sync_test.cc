// StepSync itself: it gives the values that C++ allows, no others, and tells races.
#include "tests/schedule/step_sync.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace idemd::storage {
namespace {

using Word = StepAtomic<uint64_t>;
constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr auto kSeqCst = std::memory_order_seq_cst;

// Two threads store to one word each and read the other's: what can both read?
std::set<std::pair<uint64_t, uint64_t>> StoreBuffering(std::memory_order store,
                                                       std::memory_order load, bool stale) {
  std::set<std::pair<uint64_t, uint64_t>> seen;
  const Verdict verdict = RunEvery(4, stale, 100'000, [&](Schedule& schedule) {
    Word x(0), y(0);
    uint64_t a = 0, b = 0;
    schedule.Thread([&] {
      x.store(1, store);
      a = y.load(load);
    });
    schedule.Thread([&] {
      y.store(1, store);
      b = x.load(load);
    });
    schedule.Run();
    seen.insert({a, b});
  });
  EXPECT_EQ(verdict.failure, "");
  return seen;
}

TEST(StepSync, StoreBufferingIsForbiddenBySeqCstAndAllowedByReleaseAcquire) {
  EXPECT_EQ(StoreBuffering(kSeqCst, kSeqCst, true).count({0, 0}), 0u);
  EXPECT_EQ(StoreBuffering(kSeqCst, kSeqCst, true).size(), 3u);
  EXPECT_EQ(StoreBuffering(kRelease, kAcquire, true).size(), 4u);
  EXPECT_EQ(StoreBuffering(kSeqCst, kAcquire, true).size(), 4u);
  EXPECT_EQ(StoreBuffering(kRelaxed, kRelaxed, false).size(), 3u)
      << "without stale values it is a plain interleaving";
}

// One thread fills a word and raises a flag: what can one that sees the flag read?
std::set<uint64_t> MessagePassing(std::memory_order store, std::memory_order load) {
  std::set<uint64_t> seen;
  RunEvery(4, true, 100'000, [&](Schedule& schedule) {
    Word data(0), flag(0);
    schedule.Thread([&] {
      data.store(1, kRelaxed);
      flag.store(1, store);
    });
    schedule.Thread([&] {
      if (flag.load(load) == 1) seen.insert(data.load(kRelaxed));
    });
    schedule.Run();
  });
  return seen;
}

TEST(StepSync, WhoAcquiresWhatWasReleasedSeesWhatCameBefore) {
  EXPECT_EQ(MessagePassing(kRelease, kAcquire), (std::set<uint64_t>{1}));
  EXPECT_EQ(MessagePassing(kRelaxed, kAcquire), (std::set<uint64_t>{0, 1}));
  EXPECT_EQ(MessagePassing(kRelease, kRelaxed), (std::set<uint64_t>{0, 1}));
}

TEST(StepSync, AThreadNeverGoesBackAtOneLocation) {
  const Verdict verdict = RunEvery(3, true, 100'000, [&](Schedule& schedule) {
    Word x(0);
    schedule.Thread([&] {
      x.store(1, kRelaxed);
      x.store(2, kRelaxed);
    });
    schedule.Thread([&] {
      const uint64_t first = x.load(kRelaxed);
      schedule.Expect(x.load(kRelaxed) >= first, "a location's values come in one order");
    });
    schedule.Run();
  });
  EXPECT_EQ(verdict.failure, "");
  EXPECT_GT(verdict.runs, 10u);
}

TEST(StepSync, AReadModifyWriteContinuesARelease) {
  const Verdict verdict = RunEvery(4, true, 200'000, [&](Schedule& schedule) {
    Word data(0), flag(0);
    schedule.Thread([&] {
      data.store(1, kRelaxed);
      flag.store(1, kRelease);
    });
    schedule.Thread([&] {
      uint64_t one = 1;
      flag.compare_exchange(one, 2, kRelaxed);
    });
    schedule.Thread([&] {
      if (flag.load(kAcquire) == 2)
        schedule.Expect(data.load(kRelaxed) == 1, "a release sequence goes on");
    });
    schedule.Run();
  });
  EXPECT_EQ(verdict.failure, "");
}

TEST(StepSync, TellsAThingThatIsFoundBeforeItIsWhole) {
  for (const auto order : {kRelaxed, kRelease}) {
    const Verdict verdict = RunSeeds(100, false, [&](Schedule& schedule) {
      StepAtomic<StepLife*> place(nullptr);
      std::unique_ptr<StepLife> thing;
      schedule.Thread([&] {
        thing = std::make_unique<StepLife>();
        place.store(thing.get(), order);
      });
      schedule.Thread([&] {
        if (const StepLife* found = place.load(kAcquire)) found->Use();
      });
      schedule.Run();
    });
    EXPECT_EQ(verdict.failure.empty(), order == kRelease) << verdict.failure;
  }
}

TEST(StepSync, TellsAThingThatIsFreedBesideItsLastUse) {
  const Verdict verdict = RunSeeds(100, false, [&](Schedule& schedule) {
    StepLife thing;
    Word done(0);
    schedule.Thread([&] {
      thing.Use();
      done.store(1, kRelaxed);
    });
    schedule.Thread([&] {
      if (done.load(kAcquire) == 1) thing.End();
    });
    schedule.Run();
  });
  EXPECT_NE(verdict.failure, "");
}

TEST(StepSync, TheSameSeedIsTheSameRun) {
  const auto trace = [](uint64_t seed) {
    std::string order;
    SeededChooser chooser(seed);
    Schedule schedule(chooser, true, seed);
    Word x(0);
    for (const char name : {'a', 'b', 'c'}) {
      schedule.Thread([&x, &order, name] {
        for (uint64_t i = 0; i < 10; ++i) {
          x.store(i, kRelaxed);
          order += name;
          order += static_cast<char>('0' + x.load(kRelaxed));
        }
      });
    }
    schedule.Run();
    return order;
  };
  EXPECT_EQ(trace(7), trace(7));
  EXPECT_NE(trace(7), trace(8));
}

TEST(StepSync, AMutexHoldsOthersOffAndPassesOnWhatWasDone) {
  const Verdict verdict = RunSeeds(300, true, [&](Schedule& schedule) {
    StepMutex mutex;
    Word x(0);
    for (int t = 0; t < 3; ++t) {
      schedule.Thread([&] {
        mutex.Lock();
        x.store(x.load(kRelaxed) + 1, kRelaxed);
        mutex.Unlock();
      });
    }
    schedule.Run();
    schedule.Expect(x.load(kRelaxed) == 3, "no increment is lost");
  });
  EXPECT_EQ(verdict.failure, "") << "seed " << verdict.seed;
}

}  // namespace
}  // namespace idemd::storage
