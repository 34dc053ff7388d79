// An expiry storm: every key of a table falls due within five seconds, while a reader beside it
// measures its own latency.
//
// The clock stands still until the table is full. The reader (core 0) looks up keys that stay,
// every tenth time replaces one, and is timed for each; the ticks run on core 1. CPU of the storm
// is that of the process without the reader and this thread.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kFirstDueMs = 1'000;
constexpr int64_t kDueWithinMs = 5'000;
constexpr int64_t kQuietMs = 2'000;
constexpr int64_t kReadOnMs = 1'000;  // after the last deadline
constexpr int64_t kMemoryAfterMs = 5'000;
constexpr int64_t kHalfSecondNs = 500'000'000;
constexpr size_t kStayingMax = 100'000;
constexpr size_t kReadsPerHalf = 4'000'000;  // room; more are not recorded

void SleepMs(int64_t ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

// Half seconds of latencies.
class Reader {
 public:
  // `ns` holds the latencies of one half second: room made before, so that it is no part of what
  // the table takes.
  Reader(IdemdTable& table, const Keys& keys, int64_t far_ms, std::vector<uint32_t>& ns)
      : ns_(ns), thread_([this, &table, &keys, far_ms] { Run(table, keys, far_ms); }) {}
  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }
  struct Half {
    int64_t begin_ns = 0;
    double p99 = 0, p999 = 0, longest = 0;
  };
  const std::vector<Half>& halves() const { return halves_; }  // after Stop()
  // Until now, or until it was stopped.
  int64_t cpu_ns() {
    clockid_t clock{};
    if (!thread_.joinable() || pthread_getcpuclockid(thread_.native_handle(), &clock) != 0)
      return cpu_ns_;
    return Now(clock);
  }
  size_t missed() const { return missed_; }

 private:
  void Run(IdemdTable& table, const Keys& keys, int64_t far_ms) {
    PinTo(0);
    std::vector<uint32_t>& ns = ns_;
    ns.clear();
    Half half;
    half.begin_ns = SteadyNs();
    int64_t last = half.begin_ns;
    for (size_t i = 0; !stop_.load(std::memory_order_relaxed);
         i = i + 1 == keys.size() ? 0 : i + 1) {
      if (i % 10 == 9)
        table.Set(keys[i], "1", far_ms);
      else
        missed_ += table.Get(keys[i]) ? 0 : 1;
      const int64_t now = SteadyNs();
      if (ns.size() < kReadsPerHalf)
        ns.push_back(static_cast<uint32_t>(std::min<int64_t>(now - last, UINT32_MAX)));
      last = now;
      if (now - half.begin_ns < kHalfSecondNs) continue;
      half.p99 = Quantile(ns, 0.99);
      half.p999 = Quantile(ns, 0.999);
      half.longest = Quantile(ns, 1);
      halves_.push_back(half);
      ns.clear();
      last = half.begin_ns = SteadyNs();
    }
    cpu_ns_ = ThreadCpuNs();
  }
  std::atomic<bool> stop_{false};
  int64_t cpu_ns_ = 0;  // at its end; read after the join
  std::vector<Half> halves_;
  size_t missed_ = 0;
  std::vector<uint32_t>& ns_;
  std::thread thread_;
};

void Measure(const Plan& plan, Report& report) {
  HeldClock clock;
  const int64_t start_ms = clock.NowMs(), last_due_ms = start_ms + kFirstDueMs + kDueWithinMs;
  const Keys staying = UuidKeys(std::min(kStayingMax, plan.keys / 50), plan.seed + 1);
  std::vector<uint32_t> latencies(kReadsPerHalf, 1);
  const uint64_t before = ResidentBytes();
  IdemdTable table(clock);
  {
    const Keys keys = UuidKeys(plan.keys, plan.seed);
    for (size_t i = 0; i < keys.size(); ++i)
      table.Set(keys[i], "1",
                start_ms + kFirstDueMs + static_cast<int64_t>(i * 7919 % kDueWithinMs));
    for (size_t i = 0; i < staying.size(); ++i) table.Set(staying[i], "1", start_ms + kDayMs);
    table.Settle();
    report.Expect(table.size() == keys.size() + staying.size(), "every key is in the table");
  }
  PurgeHeap();
  const double peak = static_cast<double>(ResidentBytes()) - static_cast<double>(before);

  TickThread ticks(table.store(), clock, 1);
  Reader reader(table, staying, start_ms + kDayMs, latencies);
  const int64_t quiet_begin = SteadyNs();
  SleepMs(kQuietMs);
  const int64_t storm_begin = SteadyNs();
  const int64_t cpu_begin = ProcessCpuNs() - ThreadCpuNs() - reader.cpu_ns();
  clock.LetGo();
  const size_t nearly_none = staying.size() + plan.keys / 100;
  int64_t nearly_gone_ms = -1;
  while (clock.NowMs() < last_due_ms + kReadOnMs || nearly_gone_ms < 0) {
    if (nearly_gone_ms < 0 && table.size() <= nearly_none) nearly_gone_ms = clock.NowMs();
    if (clock.NowMs() > last_due_ms + 60'000) break;
    SleepMs(5);
  }
  const int64_t storm_end = SteadyNs();
  reader.Stop();
  const double cpu =
      static_cast<double>(ProcessCpuNs() - ThreadCpuNs() - reader.cpu_ns() - cpu_begin);
  while (clock.NowMs() < last_due_ms + kMemoryAfterMs) SleepMs(50);
  const double after = static_cast<double>(ResidentBytes()) - static_cast<double>(before);
  report.Expect(nearly_gone_ms >= 0, "99 % are gone within a minute");
  report.Expect(table.size() == staying.size(),
                "what had a day to live is there, and nothing else");
  report.Expect(reader.missed() == 0, "the reader finds its keys throughout");

  double quiet_p99 = 0, worst_p99 = 0, quiet_longest = 0, worst_longest = 0;
  std::vector<double> quiet;
  for (const Reader::Half& half : reader.halves()) {
    const bool in_quiet =
        half.begin_ns >= quiet_begin && half.begin_ns + kHalfSecondNs < storm_begin;
    if (in_quiet) {
      quiet.push_back(half.p99);
      quiet_longest = std::max(quiet_longest, half.longest);
    } else if (half.begin_ns > storm_begin && half.begin_ns < storm_end) {
      worst_p99 = std::max(worst_p99, half.p99);
      worst_longest = std::max(worst_longest, half.longest);
    }
  }
  quiet_p99 = Median(quiet);
  const auto add = [&](const char* metric, double value, const char* unit, double goal = -1) {
    report.Add({"storm", IdemdTable::kName, metric, value, unit, goal});
  };
  add("CPU per expired key", cpu / static_cast<double>(plan.keys), "ns", 100);
  add("99 % gone after the last deadline",
      std::max(0.0, static_cast<double>(nearly_gone_ms - last_due_ms) / 1e3), "s", 1);
  add("memory five seconds after it", after / peak * 100, "% of the peak", 15);
  add("a reader's quiet p99", quiet_p99, "ns");
  add("a reader's worst half second's p99", worst_p99, "ns");
  add("worst p99 to quiet p99", quiet_p99 == 0 ? 0 : worst_p99 / quiet_p99, "times", 2);
  add("a reader's longest operation, quiet", quiet_longest / 1e6, "ms");
  add("a reader's longest operation in the storm", worst_longest / 1e6, "ms");
}

}  // namespace

void MeasureStorm(const Plan& plan, Report& report) {
  report.InProcess("storm: idemd", [&] { Measure(plan, report); });
}

}  // namespace idemd::bench
