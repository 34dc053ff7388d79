// What both dictionaries of storage/key/ must hold when several threads use one: every thread gets the same id for the same
// thing, no id stands for two, and in the end all ids are given.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/seed.h"

namespace idemd::storage {

// Things are numbers below kThings, more than there are ids. find(i) and id(i) ask the dictionary, is(id, i) whether the id
// stands for that thing, see_often(i) makes it common; `free` ids are left at the beginning.
template <class Find, class Id, class Is, class SeeOften>
void ExpectThreadsAgreeOnEveryId(size_t free, Find find, Id id_of, Is is, SeeOften see_often) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  constexpr size_t kThreads = 4;
  constexpr size_t kThings = 300;
  constexpr int kSightings = 40'000;
  std::vector<std::vector<uint8_t>> answers(kThreads, std::vector<uint8_t>(kThings));
  std::vector<int> wrong(kThreads);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(seed + t);
      for (int i = 0; i < kSightings; ++i) {
        const size_t number = random() % kThings;
        const uint8_t id = random() % 4 == 0 ? find(number) : id_of(number);
        uint8_t& before = answers[t][number];
        if (before != 0 && id != before) ++wrong[t];
        if (id == 0) continue;
        before = id;
        if (!is(id, number)) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThings; ++i) {
    // Twice: the first may go into taking over a counter that another one has left almost full.
    for (int round = 0; round < 2; ++round) see_often(i);
  }
  std::set<uint8_t> ids;
  for (size_t i = 0; i < kThings; ++i) {
    const uint8_t id = find(i);
    if (id != 0) {
      EXPECT_TRUE(ids.insert(id).second) << "two things have the id " << int{id};
    }
    for (const std::vector<uint8_t>& of_thread : answers) {
      EXPECT_TRUE(of_thread[i] == 0 || of_thread[i] == id) << i;
    }
  }
  EXPECT_EQ(ids.size(), free);
  for (int count : wrong) EXPECT_EQ(count, 0);
}

}  // namespace idemd::storage
