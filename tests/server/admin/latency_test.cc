// The latency monitor's samples.
#include "server/admin/latency.h"

#include "gtest/gtest.h"

namespace idemd::server {
namespace {

TEST(LatencyMonitor, IsOffUntilAThresholdIsSet) {
  LatencyMonitor monitor;
  monitor.Add("command", 1'000'000);
  EXPECT_TRUE(monitor.Events().empty());
  monitor.threshold_ms = 100;
  monitor.Add("command", 99);
  EXPECT_TRUE(monitor.Events().empty());
  monitor.Add("command", 100);
  ASSERT_EQ(monitor.Events().size(), 1u);
  EXPECT_EQ(monitor.Events()[0].samples[0].ms, 100);
}

TEST(LatencyMonitor, KeepsTheWorstOfASecond) {
  LatencyMonitor monitor;
  monitor.AddAt("command", 300, 1000);
  monitor.AddAt("command", 500, 1000);
  monitor.AddAt("command", 400, 1000);
  LatencyMonitor::Event event;
  ASSERT_TRUE(monitor.Find("command", &event));
  ASSERT_EQ(event.samples.size(), 1u);
  EXPECT_EQ(event.samples[0].ms, 500);
  EXPECT_EQ(event.max_ms, 500);
}

TEST(LatencyMonitor, KeepsTheLast160SecondsInOrderAndTheWorstOfAllTime) {
  LatencyMonitor monitor;
  monitor.AddAt("command", 9000, 1);
  for (int64_t second = 2; second <= 200; ++second) monitor.AddAt("command", second, second);
  LatencyMonitor::Event event;
  ASSERT_TRUE(monitor.Find("command", &event));
  ASSERT_EQ(event.samples.size(), LatencyMonitor::kSamples);
  EXPECT_EQ(event.samples.front().unix_s, 41);
  EXPECT_EQ(event.samples.back().unix_s, 200);
  EXPECT_EQ(event.max_ms, 9000);
}

TEST(LatencyMonitor, ResetsOneEventOrAll) {
  LatencyMonitor monitor;
  monitor.AddAt("command", 1, 1);
  monitor.AddAt("fast-command", 1, 1);
  monitor.AddAt("expire-cycle", 1, 1);
  EXPECT_TRUE(monitor.Reset("command"));
  EXPECT_FALSE(monitor.Reset("command"));
  EXPECT_FALSE(monitor.Find("command", nullptr));
  EXPECT_EQ(monitor.Reset(), 2u);
  EXPECT_TRUE(monitor.Events().empty());
}

}  // namespace
}  // namespace idemd::server
