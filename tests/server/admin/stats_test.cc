// Counters per thread, their sums, and what a reset leaves of them.
#include "server/admin/stats.h"

#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace idemd::server {
namespace {

TEST(LatencyClasses, EachDurationFallsIntoAClassWhoseBoundsHoldIt) {
  uint64_t longest_before = 0;
  for (uint32_t i = 0; i < LatencyClasses::kClasses; ++i) {
    EXPECT_GT(LatencyClasses::UpperNs(i), longest_before) << i;
    longest_before = LatencyClasses::UpperNs(i);
  }
  for (int64_t usec : {0, 1, 2, 3, 4, 5, 7, 8, 100, 999, 1000, 65'536, 1'000'000, 1'900'000}) {
    const uint32_t index = LatencyClasses::ClassOf(usec);
    const uint64_t ns = static_cast<uint64_t>(usec) * 1000;
    EXPECT_LE(ns, LatencyClasses::UpperNs(index)) << usec;
    const uint64_t below = index == 0 ? 0 : LatencyClasses::UpperNs(index - 1);
    EXPECT_TRUE(ns > below || usec == 0) << usec;
  }
}

TEST(LatencyClasses, AClassIsAtMostAQuarterWide) {
  for (int64_t usec = 2; usec < 2'000'000; usec = usec * 5 / 4 + 1) {
    const double shown =
        static_cast<double>(LatencyClasses::UpperNs(LatencyClasses::ClassOf(usec))) / 1000.0;
    EXPECT_LE(shown, static_cast<double>(usec) * 1.26) << usec;
  }
}

TEST(LatencyClasses, VeryLongAndNegativeDurationsHaveAClassToo) {
  EXPECT_EQ(LatencyClasses::ClassOf(int64_t{3600} * 1'000'000), LatencyClasses::kClasses - 1);
  EXPECT_EQ(LatencyClasses::ClassOf(-5), 0u);
}

TEST(ServerStats, SumsWhatThreadsCounted) {
  ServerStats stats;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&stats] {
      ThreadStats& mine = stats.Register();
      mine.OnConnection();
      for (int i = 0; i < 1000; ++i) {
        mine.OnCommand(7, 3, i % 10 == 0);
        mine.OnRead(20);
        mine.OnWrite(5);
      }
      mine.OnRejected(7);
      mine.OnError("ERR");
      mine.OnError("WRONGTYPE");
    });
  }
  for (std::thread& thread : threads) thread.join();

  const StatsTotals totals = stats.Totals();
  EXPECT_EQ(totals.connections, 4u);
  EXPECT_EQ(totals.commands, 4000u);
  EXPECT_EQ(totals.reads, 4000u);
  EXPECT_EQ(totals.read_bytes, 80'000u);
  EXPECT_EQ(totals.written_bytes, 20'000u);
  EXPECT_EQ(totals.error_replies, 8u);
  const CommandTotals command = stats.Command(7);
  EXPECT_EQ(command.calls, 4000u);
  EXPECT_EQ(command.usec, 12'000u);
  EXPECT_EQ(command.failed, 400u);
  EXPECT_EQ(command.rejected, 4u);
  EXPECT_EQ(stats.Command(8).calls, 0u);
}

TEST(ServerStats, CanBeReadAndResetWhileThreadsCount) {
  ServerStats stats;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&stats, &stop, t] {
      ThreadStats& mine = stats.Register();
      for (uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        mine.OnCommand(i % 40 + t, 2, false);
        if (i % 64 == 0) mine.OnError("CODE" + std::to_string(i % 640));
      }
    });
  }
  uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    if (i == 100) {
      stats.Reset();
      last = 0;
    }
    const uint64_t calls = stats.Totals().commands;
    EXPECT_GE(calls, last);
    last = calls;
    for (const ErrorTotals& error : stats.Errors()) EXPECT_EQ(error.code.substr(0, 4), "CODE");
    EXPECT_GE(stats.Command(3).usec, 0u);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST(ServerStats, AResetHidesWhatWasBeforeAndKeepsCounting) {
  ServerStats stats;
  ThreadStats& mine = stats.Register();
  mine.OnCommand(1, 10, true);
  mine.OnError("ERR");
  stats.OnRejectedConnection();
  stats.Reset();
  EXPECT_EQ(stats.Totals().commands, 0u);
  EXPECT_EQ(stats.Totals().rejected_connections, 0u);
  EXPECT_EQ(stats.Command(1).failed, 0u);
  EXPECT_EQ(stats.Command(1).Percentile(99), 0.0);
  EXPECT_TRUE(stats.Errors().empty());

  mine.OnCommand(1, 100, false);
  mine.OnCommand(2, 1, false);
  mine.OnError("ERR");
  mine.OnError("OOM");
  EXPECT_EQ(stats.Totals().commands, 2u);
  EXPECT_EQ(stats.Command(1).calls, 1u);
  EXPECT_EQ(stats.Command(1).usec, 100u);
  EXPECT_NEAR(stats.Command(1).Percentile(50), 100, 25);
  ASSERT_EQ(stats.Errors().size(), 2u);
  EXPECT_EQ(stats.Errors()[0].code, "ERR");
  EXPECT_EQ(stats.Errors()[0].count, 1u);
}

TEST(ServerStats, PercentilesComeWithinAQuarter) {
  ServerStats stats;
  ThreadStats& mine = stats.Register();
  for (int i = 0; i < 990; ++i) mine.OnCommand(3, 10, false);
  for (int i = 0; i < 10; ++i) mine.OnCommand(3, 5000, false);
  const CommandTotals totals = stats.Command(3);
  EXPECT_NEAR(totals.Percentile(50), 10, 2.6);
  EXPECT_NEAR(totals.Percentile(99), 10, 2.6);
  EXPECT_NEAR(totals.Percentile(99.9), 5000, 1250);
}

TEST(ServerStats, APipelineCountedAtOnceEqualsItsCommands) {
  ServerStats stats;
  ThreadStats& mine = stats.Register();
  mine.OnCommands(5, 16, 32);
  EXPECT_EQ(stats.Command(5).calls, 16u);
  EXPECT_EQ(stats.Command(5).usec, 32u);
  EXPECT_NEAR(stats.Command(5).Percentile(50), 2, 0.6);
}

TEST(ServerStats, UnknownCodeWordsBeyondTheLimitAreCountedTogether) {
  ServerStats stats;
  ThreadStats& mine = stats.Register();
  for (int i = 0; i < 200; ++i) mine.OnError("CODE" + std::to_string(i));
  uint64_t sum = 0;
  for (const ErrorTotals& error : stats.Errors()) sum += error.count;
  EXPECT_EQ(sum, 200u);
  EXPECT_LT(stats.Errors().size(), 200u);
  mine.OnError(std::string(500, 'X'));  // cut, not overrun
  EXPECT_EQ(stats.Totals().error_replies, 201u);
}

TEST(ServerStats, RatesAreAveragesOverTheLastSamples) {
  ServerStats stats;
  ThreadStats& mine = stats.Register();
  stats.Sample(1000, 50);
  for (int i = 1; i <= 16; ++i) {
    for (int n = 0; n < 10; ++n) mine.OnCommand(0, 1, false);
    mine.OnRead(1024);
    stats.Sample(1000 + i * 100, i == 3 ? 500u : 50u);
  }
  EXPECT_EQ(stats.Instantaneous().commands_per_s, 100u);
  EXPECT_NEAR(stats.Instantaneous().read_kbps, 10, 0.01);
  EXPECT_EQ(stats.peak_memory_bytes(), 500u);
  stats.Sample(1000 + 16 * 100, 50);  // no time has passed: nothing to divide by
  EXPECT_EQ(stats.Instantaneous().commands_per_s, 100u);
}

}  // namespace
}  // namespace idemd::server
