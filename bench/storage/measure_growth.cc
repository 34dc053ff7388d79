// The pauses of single inserts while a table grows, and the memory it takes on the way.
//
// A pause has two causes: the table's own work, and a thread that was not running (the scheduler,
// the hypervisor). The thread's CPU time, read every kWindow inserts, tells the first from the
// scheduler's part of the second; a loop that does nothing, run on the same core just before, shows
// what any thread here has to bear.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kLongNs = 2'000'000;  // the goal: no pause over 2 ms
constexpr size_t kWindow = 64;
constexpr size_t kStages = 8;
constexpr size_t kFirstStage = 2;  // before it the table is too small for a ratio to mean something
constexpr int64_t kEmptyLoopNs = 3'000'000'000;

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }

// The longest gap between two looks at the clock of a thread that does nothing else.
int64_t LongestGap(int64_t for_ns) {
  const int64_t begin = SteadyNs();
  int64_t longest = 0;
  for (int64_t last = begin, now = begin; now - begin < for_ns; last = now) {
    now = SteadyNs();
    longest = std::max(longest, now - last);
  }
  return longest;
}

struct Pauses {
  int64_t longest_ns = 0;      // of all inserts
  int64_t longest_own_ns = 0;  // without the time that the thread was not running
  uint64_t over_limit = 0;
  uint64_t over_limit_own = 0;

  // The longest pause of a window in which the thread did not run for `off_ns`.
  void Note(int64_t longest, int64_t off_ns) {
    const int64_t own = std::max<int64_t>(0, longest - off_ns);
    longest_ns = std::max(longest_ns, longest);
    longest_own_ns = std::max(longest_own_ns, own);
    if (longest > kLongNs) ++over_limit;
    if (own > kLongNs) ++over_limit_own;
  }
};

template <class Table>
void Measure(const Plan& plan, Report& report) {
  const Keys keys = UuidKeys(plan.keys, plan.seed);
  const size_t n = keys.size();
  std::vector<uint32_t> ns(n, 1);  // written once, so that its pages are there
  const std::unique_ptr<storage::TimeSource> time = storage::SystemTime();
  storage::EffectiveClock clock(*time, 0);
  PinTo(0);
  const int64_t gap = LongestGap(std::min(kEmptyLoopNs, static_cast<int64_t>(n) * 400));
  const uint64_t before = ResidentBytes();
  Table table(clock);
  Background<Table> background(table, clock, 1);
  const int64_t far = clock.NowMs() + kDayMs;
  double steady = 1, worst = 0;
  Pauses pauses;
  size_t i = 0;
  for (size_t stage = 1; stage <= kStages; ++stage) {
    const bool reset = ResetResidentPeak();
    while (i < n / kStages * stage || (stage == kStages && i < n)) {
      const size_t end = std::min(n, i + kWindow);
      const int64_t cpu = ThreadCpuNs(), begin = SteadyNs();
      int64_t last = begin, longest = 0;
      for (; i < end; ++i) {
        table.Set(keys[i], "1", far + static_cast<int64_t>(i * 7919 % kDayMs));
        const int64_t now = SteadyNs();
        ns[i] = static_cast<uint32_t>(std::min<int64_t>(now - last, UINT32_MAX));
        longest = std::max(longest, now - last);
        last = now;
      }
      pauses.Note(longest, std::max<int64_t>(0, last - begin - (ThreadCpuNs() - cpu)));
    }
    const double peak = static_cast<double>(ResidentPeakBytes()) - static_cast<double>(before);
    background.Rest();
    table.Settle();
    PurgeHeap();
    steady = static_cast<double>(ResidentBytes()) - static_cast<double>(before);
    if (reset && stage >= kFirstStage) worst = std::max(worst, peak / steady);
  }
  report.Expect(table.size() == n, "every key is in the table");

  const bool ours = std::string(Table::kName) == IdemdTable::kName;
  const auto add = [&](const char* metric, double value, const char* unit, double goal = -1) {
    report.Add({"growth", Table::kName, metric, value, unit, ours ? goal : -1});
  };
  add("insert, p50", Quantile(ns, 0.5), "ns");
  add("insert, p99.9", Quantile(ns, 0.999), "ns");
  add("longest insert", Ms(pauses.longest_ns), "ms");
  add("longest insert, without time off the CPU", Ms(pauses.longest_own_ns), "ms", Ms(kLongNs));
  add("inserts over 2 ms", static_cast<double>(pauses.over_limit), "");
  add("inserts over 2 ms, without time off the CPU", static_cast<double>(pauses.over_limit_own), "",
      0);
  add("longest gap of an empty loop on the same core", Ms(gap), "ms");
  add("memory when full", steady / static_cast<double>(n), "bytes per entry");
  if (worst != 0) add("most memory while growing", worst, "times the settled", 1.15);
}

}  // namespace

void MeasureGrowth(const Plan& plan, Report& report) {
  ForEachTable([&](auto* tag) {
    using Table = std::remove_pointer_t<decltype(tag)>;
    report.InProcess(std::string("growth: ") + Table::kName, [&] { Measure<Table>(plan, report); });
  });
}

}  // namespace idemd::bench
