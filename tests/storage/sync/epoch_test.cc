// The server's epochs: guards nest, garbage waits for them, and nothing piles up or is forgotten.
#include "storage/sync/epoch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace idemd::storage {
namespace {

std::atomic<int> destroyed{0};
void Count(void*) { destroyed.fetch_add(1); }

void PushEpochs(int times) {
  for (int i = 0; i < times; ++i) CollectGarbage(SIZE_MAX);
}

TEST(EpochR2, GarbageWaitsForTheGuardsOfOthers) {
  DrainForTest();
  destroyed = 0;
  std::atomic<int> stage{0};
  std::thread reader([&] {
    const EpochGuard guard;
    stage = 1;
    stage.notify_all();
    stage.wait(1);
  });
  stage.wait(0);
  Retire(nullptr, &Count);
  PushEpochs(10);
  EXPECT_EQ(destroyed, 0);
  stage = 2;
  stage.notify_all();
  reader.join();
  PushEpochs(10);
  EXPECT_EQ(destroyed, 1);
}

TEST(EpochR2, GarbageWaitsForTheOutermostGuardOfItsOwnThread) {
  DrainForTest();
  destroyed = 0;
  {
    const EpochGuard outer;
    {
      const EpochGuard inner;
      Retire(nullptr, &Count);
    }
    PushEpochs(10);
    EXPECT_EQ(destroyed, 0);
  }
  PushEpochs(10);
  EXPECT_EQ(destroyed, 1);
}

TEST(EpochR1, TheEpochIsAtMostOneAheadOfAnOpenGuard) {
  const EpochGuard guard;
  const uint64_t begun = ProcessEpochs().epoch();
  PushEpochs(5);
  EXPECT_LE(ProcessEpochs().epoch(), begun + 1);
}

TEST(Epoch, AThreadThatEndsHandsItsBacklogOver) {
  DrainForTest();
  destroyed = 0;
  std::thread([] {
    const EpochGuard guard;
    for (int i = 0; i < 50; ++i) Retire(nullptr, &Count);
  }).join();
  PushEpochs(10);
  EXPECT_EQ(destroyed, 50);
}

TEST(Epoch, ThreadsThatComeAndGoShareAFewParticipants) {
  const auto join = [] {
    const EpochGuard guard;
    return &ThisThread<RealSync>::Participant();
  };
  std::vector<EpochDomain::Participant*> used;
  for (int i = 0; i < 20; ++i) std::thread([&] { used.push_back(join()); }).join();
  for (auto* participant : used) EXPECT_EQ(participant, used[0]);
}

TEST(Epoch, TheBacklogOfABusyThreadIsBounded) {
  DrainForTest();
  auto& mine = ThisThread<RealSync>::Participant();
  size_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    Retire(nullptr, &Count);
    most = std::max(most, mine.backlog());
  }
  EXPECT_LE(most, 8 * EpochDomain::kCollectEvery);
}

TEST(Epoch, AThreadThatOnlyReadsAfterwardsStillFreesWhatItRetired) {
  DrainForTest();
  destroyed = 0;
  for (int i = 0; i < 1000; ++i) Retire(nullptr, &Count);
  for (uint32_t i = 0; i < 32 * EpochDomain::kCollectEvery; ++i) const EpochGuard guard;
  EXPECT_EQ(destroyed, 1000);
}

TEST(Epoch, WhatOneThreadDroppedInBulkAnotherOneFrees) {
  DrainForTest();
  destroyed = 0;
  constexpr int kMany = 100'000;
  std::atomic<int> stage{0};
  std::thread dropper([&] {
    {
      const EpochGuard guard;  // as under one command: nothing can be freed meanwhile
      for (int i = 0; i < kMany; ++i) Retire(nullptr, &Count);
    }
    stage = 1;
    stage.notify_all();
    stage.wait(1);  // idle from now on
  });
  stage.wait(0);
  PushEpochs(10);
  EXPECT_GE(destroyed, kMany - static_cast<int>(EpochDomain::kHandOver));
  stage = 2;
  stage.notify_all();
  dropper.join();
  DrainForTest();
  EXPECT_EQ(destroyed, kMany);
}

TEST(Epoch, DestroyingMayRetireMore) {
  DrainForTest();
  destroyed = 0;
  Retire(nullptr, [](void*) { Retire(nullptr, &Count); });
  DrainForTest();
  EXPECT_EQ(destroyed, 1);
}

TEST(EpochStress, ReadersNeverSeeWhatWasFreed) {
  struct Value {
    std::atomic<uint64_t> alive{0x600du};
  };
  std::atomic<Value*> place{new Value()};
  std::atomic<bool> over{false};
  std::atomic<int> dead{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
        const EpochGuard guard;
        if (place.load(std::memory_order_acquire)->alive.load(std::memory_order_relaxed) != 0x600du)
          dead.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < 50'000; ++i) {
    const EpochGuard guard;
    Value* old = place.exchange(new Value(), std::memory_order_acq_rel);
    Retire(old, [](void* at) {
      auto* value = static_cast<Value*>(at);
      value->alive.store(0, std::memory_order_relaxed);
      delete value;
    });
  }
  over = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(dead, 0);
  delete place.load();
  DrainForTest();
}

}  // namespace
}  // namespace idemd::storage
