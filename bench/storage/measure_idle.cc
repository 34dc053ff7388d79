// What the expirer costs while nothing expires, and how late it is for single keys.
#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {
namespace {

constexpr int64_t kHourMs = 3'600'000;
constexpr int64_t kDayMs = 24 * kHourMs;
constexpr std::chrono::seconds kQuietFor{6};
constexpr size_t kSingles = 60;
constexpr int64_t kSinglesWithinMs = 3'000;

void SleepMs(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// A few keys fall due one by one; the table's size tells when each is gone.
void MeasureLateness(IdemdTable& table, storage::Clock& clock, uint64_t seed, Report& report) {
  const Keys keys = UuidKeys(kSingles, seed + 7);
  std::mt19937_64 random(seed);
  const size_t before = table.size();
  std::vector<int64_t> deadlines;
  for (size_t i = 0; i < kSingles; ++i) {
    deadlines.push_back(clock.NowMs() + 200 + static_cast<int64_t>(random() % kSinglesWithinMs));
    table.Set(keys[i], "1", deadlines.back());
  }
  std::sort(deadlines.begin(), deadlines.end());
  int64_t latest = 0;
  bool early = false;
  for (size_t gone = 0; gone < kSingles;) {
    const int64_t now = clock.NowMs();
    const size_t left = table.size() - before;
    for (; gone < kSingles - left; ++gone) {
      latest = std::max(latest, now - deadlines[gone]);
      // Read after the time: it may have been removed in between, by a millisecond.
      early |= now + 1 < deadlines[gone];
    }
    if (now > deadlines.back() + 10'000) break;
    SleepMs(1);
  }
  report.Expect(!early, "no key goes before its deadline");
  report.Expect(table.size() == before, "single keys go within ten seconds");
  report.Add({"idle", IdemdTable::kName, "latest removal of a single key",
              static_cast<double>(latest), "ms after its deadline", 100});
}

void Measure(const Plan& plan, Report& report) {
  const Keys keys = UuidKeys(plan.keys, plan.seed);
  const std::unique_ptr<storage::TimeSource> time = storage::SystemTime();
  storage::EffectiveClock clock(*time, 0);
  IdemdTable table(clock);
  for (size_t i = 0; i < keys.size(); ++i)
    table.Set(keys[i], "1", clock.NowMs() + kHourMs + static_cast<int64_t>(i * 7919 % kDayMs));
  table.Settle();
  TickThread ticks(table.store(), clock, 1);
  SleepMs(1'000);  // what the filling left to do
  const int64_t process = ProcessCpuNs(), begin = SteadyNs(), ticking = ticks.cpu_ns();
  std::this_thread::sleep_for(kQuietFor);
  const double wall = static_cast<double>(SteadyNs() - begin);
  report.Add({"idle", IdemdTable::kName, "expirer",
              static_cast<double>(ticks.cpu_ns() - ticking) / wall * 100, "% of a core", 3});
  report.Add({"idle", IdemdTable::kName, "whole process",
              static_cast<double>(ProcessCpuNs() - process) / wall * 100, "% of a core", 3});
  MeasureLateness(table, clock, plan.seed, report);
}

}  // namespace

void MeasureIdle(const Plan& plan, Report& report) {
  report.InProcess("idle: idemd", [&] { Measure(plan, report); });
}

}  // namespace idemd::bench
