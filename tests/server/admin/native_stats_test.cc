// Counters per namespace: merged over threads, bounded in number.
#include "server/admin/native_stats.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace idemd::server {
namespace {

using C = NativeCounter;

TEST(NativeStats, TheNamespaceEndsWithTheLastColon) {
  EXPECT_EQ(NamespaceOf("login:42"), "login:");
  EXPECT_EQ(NamespaceOf("a:b:c"), "a:b:");
  EXPECT_EQ(NamespaceOf("a:b:"), "a:b:");
  EXPECT_EQ(NamespaceOf("plain"), "");
  EXPECT_EQ(NamespaceOf(""), "");
}

TEST(NativeStats, SumsByPrefixOfTheNamespace) {
  NativeStats stats;
  stats.Count("a:x:1", C::kReserved, 2);
  stats.Count("a:y:1", C::kReserved);
  stats.Count("b:1", C::kReserved, 10);
  stats.Count("none", C::kHeld);
  EXPECT_EQ(stats.Sum("a:").of(C::kReserved), 3u);
  EXPECT_EQ(stats.Sum("a:x:").of(C::kReserved), 2u);
  EXPECT_EQ(stats.Sum("a:x:1").of(C::kReserved), 0u);
  EXPECT_EQ(stats.Totals().of(C::kReserved), 13u);
  EXPECT_EQ(stats.Totals().of(C::kHeld), 1u);
}

TEST(NativeStats, ThreadsAreMerged) {
  NativeStats stats;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1'000; ++i) stats.Count("n" + std::to_string(i % 7) + ":k", C::kReplays);
    });
  }
  // Reading while they count.
  for (int i = 0; i < 50; ++i) EXPECT_LE(stats.Totals().of(C::kReplays), 4'000u);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(stats.Totals().of(C::kReplays), 4'000u);
  EXPECT_EQ(stats.Namespaces().size(), 7u);
  EXPECT_EQ(stats.Namespaces().front().first, "n0:");
}

TEST(NativeStats, PastTheLimitTheRestIsOne) {
  NativeStats stats(3);
  for (int i = 0; i < 10; ++i) stats.Count("n" + std::to_string(i) + ":k", C::kReserved);
  // Another thread keeps the same three apart.
  std::thread([&] {
    for (int i = 0; i < 10; ++i) stats.Count("n" + std::to_string(i) + ":k", C::kReserved);
    stats.Count("n1:k", C::kReserved);
  }).join();
  const auto all = stats.Namespaces();
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].first, "n0:");
  EXPECT_EQ(all[1].second.of(C::kReserved), 3u);
  EXPECT_EQ(all[3].first, "*");
  EXPECT_EQ(all[3].second.of(C::kReserved), 14u);
  EXPECT_EQ(stats.Totals().of(C::kReserved), 21u);
  stats.set_max_namespaces(4);
  for (int i = 0; i < 10; ++i) stats.Count("n" + std::to_string(i) + ":k", C::kHeld);
  EXPECT_EQ(stats.Namespaces().size(), 5u);
  EXPECT_EQ(stats.Sum("n3:").of(C::kHeld), 1u);
}

TEST(NativeStats, AVeryLongNamespaceCountsUnderTheRest) {
  NativeStats stats;
  stats.Count(std::string(10'000, 'x') + ":k", C::kHeld);
  ASSERT_EQ(stats.Namespaces().size(), 1u);
  EXPECT_EQ(stats.Namespaces()[0].first, "*");
}

TEST(NativeStats, DuplicatesBlockedIsASum) {
  NativeStats stats;
  stats.Count("k", C::kTokensDuplicate, 1);
  stats.Count("k", C::kPendingHits, 10);
  stats.Count("k", C::kReplays, 100);
  stats.Count("k", C::kTransitionsAlready, 1'000);
  stats.Count("k", C::kHeld, 5);
  EXPECT_EQ(stats.Totals().duplicates_blocked(), 1'111u);
}

TEST(NativeStats, EveryCounterHasItsName) {
  EXPECT_EQ(NativeCounterName(C::kTokensIssued), "tokens-issued");
  EXPECT_EQ(NativeCounterName(C::kReserved), "reserved");
  EXPECT_EQ(NativeCounterName(C::kStaleRefused), "stale-refused");
  EXPECT_EQ(NativeCounterName(C::kThrottleLimited), "throttle-limited");
}

}  // namespace
}  // namespace idemd::server
