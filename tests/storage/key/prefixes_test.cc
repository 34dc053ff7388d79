// Prefixes: registered when common, never forgotten, the same for every thread.
#include "storage/key/prefixes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/key/hashed_key.h"
#include "tests/storage/key/sample_keys.h"
#include "tests/storage/key/threads_agree.h"

namespace idemd::storage {
namespace {

constexpr int kEnough = Sightings::kEnough;
constexpr int kFree = kPrefixIdMax - kEmptyPrefixId;  // ids that are left to register

std::string Numbered(int number) { return "tenant-" + std::to_string(number) + ":"; }

uint8_t SeeOften(Prefixes& prefixes, absl::string_view prefix) {
  uint8_t id = 0;
  for (int i = 0; i < kEnough; ++i) id = prefixes.Id(prefix);
  return id;
}

TEST(Prefixes, TheEmptyOneHasAnIdFromTheStart) {
  Prefixes prefixes;
  EXPECT_EQ(prefixes.Id(""), kEmptyPrefixId);
  EXPECT_EQ(prefixes.Find({}), kEmptyPrefixId);
  EXPECT_EQ(prefixes.At(kEmptyPrefixId), "");
  EXPECT_EQ(prefixes.HashAt(kEmptyPrefixId), PrefixHash(""));
}

TEST(Prefixes, TheSixtyFourthSightingRegisters) {
  Prefixes prefixes;
  for (int i = 1; i < 64; ++i) {
    EXPECT_EQ(prefixes.Id("login:"), 0) << i;
    EXPECT_EQ(prefixes.Find("login:"), 0) << i;
  }
  const uint8_t id = prefixes.Id("login:");
  EXPECT_EQ(id, 2);
  EXPECT_EQ(prefixes.Id("login:"), id);
  EXPECT_EQ(prefixes.Find("login:"), id);
  EXPECT_EQ(prefixes.At(id), "login:");
  EXPECT_EQ(prefixes.HashAt(id), PrefixHash("login:"));
}

TEST(Prefixes, LookingIsNoSighting) {
  Prefixes prefixes;
  for (int i = 0; i < 10 * kEnough; ++i) EXPECT_EQ(prefixes.Find("login:"), 0);
  EXPECT_EQ(prefixes.Id("login:"), 0);
}

TEST(Prefixes, UpTo64BytesOfAnyKindAreKept) {
  Prefixes prefixes;
  const std::string longest(64, 'x');
  const std::string zeros("\0\0:\xff", 4);
  const uint8_t a = SeeOften(prefixes, longest);
  const uint8_t b = SeeOften(prefixes, zeros);
  EXPECT_EQ(prefixes.At(a), longest);
  EXPECT_EQ(prefixes.At(b), zeros);
  EXPECT_EQ(SeeOften(prefixes, longest + "x"), 0);
  EXPECT_EQ(prefixes.Id(longest + "x"), 0);
}

TEST(Prefixes, WhatIsCommonGetsThroughAmongManyThatAreRare) {
  Prefixes prefixes;
  int rare = 0;
  for (int i = 0; i < 4 * kEnough; ++i) {
    prefixes.Id("common:");
    for (int j = 0; j < 50; ++j) prefixes.Id(Numbered(rare++));
  }
  EXPECT_NE(prefixes.Find("common:"), 0);
  int registered = 0;
  for (int i = 0; i < rare; ++i) registered += prefixes.Find(Numbered(i)) != 0 ? 1 : 0;
  EXPECT_EQ(registered, 0);
}

TEST(Prefixes, WhenTheIdsAreUsedUpThoseGivenStayAndOthersGetNone) {
  Prefixes prefixes;
  std::map<uint8_t, std::string> given;
  for (int i = 0; i < kFree; ++i) {
    const uint8_t id = SeeOften(prefixes, Numbered(i));
    ASSERT_NE(id, 0);
    given[id] = Numbered(i);
  }
  EXPECT_EQ(given.size(), static_cast<size_t>(kFree));
  EXPECT_EQ(given.begin()->first, 2);
  EXPECT_EQ(given.rbegin()->first, 254);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(SeeOften(prefixes, "late-" + Numbered(i)), 0);
  for (const auto& [id, prefix] : given) {
    EXPECT_EQ(prefixes.Id(prefix), id);
    EXPECT_EQ(prefixes.At(id), prefix);
  }
}

TEST(Prefixes, AnswerAsAMapDoesThatCounts) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Prefixes prefixes;
  std::map<std::string, int> sightings;
  std::map<std::string, uint8_t> ids;
  for (int i = 0; i < 60'000; ++i) {
    // Some are much more common than others.
    const std::string prefix = Numbered(static_cast<int>(std::min(random() % 400, random() % 400)));
    if (random() % 4 == 0) {
      EXPECT_EQ(prefixes.Find(prefix), ids.count(prefix) != 0 ? ids[prefix] : 0);
      continue;
    }
    const uint8_t id = prefixes.Id(prefix);
    const int seen = ++sightings[prefix];
    if (ids.count(prefix) != 0) {
      EXPECT_EQ(id, ids[prefix]);
    } else if (id != 0) {
      EXPECT_GE(seen, kEnough);
      EXPECT_EQ(prefixes.At(id), prefix);
      EXPECT_EQ(prefixes.HashAt(id), PrefixHash(prefix));
      ids[prefix] = id;
    }
  }
  std::set<uint8_t> distinct;
  for (const auto& [prefix, id] : ids) distinct.insert(id);
  EXPECT_EQ(distinct.size(), ids.size());
  EXPECT_GT(ids.size(), 150u);
}

TEST(Prefixes, ThreadsAgreeOnEveryId) {
  Prefixes prefixes;
  const auto name = [](size_t i) { return Numbered(static_cast<int>(i)); };
  ExpectThreadsAgreeOnEveryId(
      static_cast<size_t>(kFree), [&](size_t i) { return prefixes.Find(name(i)); },
      [&](size_t i) { return prefixes.Id(name(i)); },
      [&](uint8_t id, size_t i) {
        return prefixes.At(id) == name(i) && prefixes.HashAt(id) == PrefixHash(name(i));
      },
      [&](size_t i) { SeeOften(prefixes, name(i)); });
}

TEST(Prefixes, ThreadsThatMakeTheLastSightingTogetherGetOneId) {
  constexpr size_t kThreads = 2;
  constexpr size_t kAtATime = 200;
  for (int round = 0; round < 10; ++round) {
    Prefixes prefixes;
    std::vector<std::vector<uint8_t>> answers(kThreads, std::vector<uint8_t>(kAtATime));
    for (size_t i = 0; i < kAtATime; ++i) {
      for (int j = 1; j < kEnough; ++j) prefixes.Id(Numbered(static_cast<int>(i)));
    }
    std::atomic<size_t> arrived{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < kAtATime; ++i) {
          arrived.fetch_add(1);  // side by side, as closely as it goes
          while (arrived.load() < (i + 1) * kThreads) std::this_thread::yield();
          answers[t][i] = prefixes.Id(Numbered(static_cast<int>(i)));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kAtATime; ++i) {
      for (const std::vector<uint8_t>& of_thread : answers) {
        EXPECT_TRUE(of_thread[i] == 0 ||
                    of_thread[i] == prefixes.Find(Numbered(static_cast<int>(i))))
            << i;
      }
    }
  }
}

TEST(Prefixes, TheProcessHasOneInstance) {
  EXPECT_EQ(&Prefixes::Instance(), &Prefixes::Instance());
  EXPECT_EQ(Prefixes::Instance().Id(""), kEmptyPrefixId);
}

}  // namespace
}  // namespace idemd::storage
