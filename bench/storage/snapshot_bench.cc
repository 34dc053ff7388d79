// A snapshot of a full store: how long the cut and the walk take, how long one hold of a lock, and what a writer notices.
//
//   IDEMD_KEYS=10000000 snapshot_bench
//
// The consumer of the bytes only counts them. Steps are measured in CPU time of the walker, so that other processes do not
// count; a step of 32 KiB is one hold of one shard's lock and the copy of its bytes. The writer replaces the value of any key
// at full speed, each time the first change of some line.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/storage/keys.h"
#include "bench/storage/process.h"
#include "bench/storage/tables.h"
#include "storage/snapshot/snapshot.h"

namespace idemd::bench {
namespace {

constexpr int64_t kHourMs = 3'600'000;

double Us(uint32_t ns) { return ns / 1e3; }

uint32_t Share(std::vector<uint32_t>& ns, double share) {
  if (ns.empty()) return 0;
  const auto at = ns.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(ns.size() - 1));
  std::nth_element(ns.begin(), at, ns.end());
  return *at;
}

// One snapshot, its bytes thrown away.
void TakeOne(IdemdTable& table, const char* when) {
  storage::Snapshot::Limits limits;
  limits.walk_bytes = 32 << 10;
  std::vector<uint32_t> steps;
  std::string piece;
  uint64_t bytes = 0;
  int64_t locked = 0;
  const int64_t begin = SteadyNs();
  storage::Snapshot snapshot(table.store(), [&] { locked = SteadyNs(); }, limits);
  const int64_t cut = SteadyNs();
  const int64_t cpu = ThreadCpuNs();
  int64_t before = cpu;
  bool more = true;
  while (more) {
    piece.clear();
    more = snapshot.Walk(piece);
    bytes += piece.size();
    const int64_t now = ThreadCpuNs();
    steps.push_back(static_cast<uint32_t>(now - before));
    before = now;
  }
  const int64_t end = SteadyNs();
  const double keys = static_cast<double>(snapshot.keys());
  std::printf("  %-14s cut %.0f us (%.0f until all is locked and marked); walk %.0f ms, %.0f ns of CPU a key, %.1f bytes a key\n"
              "                 steps: median %.0f us, p99 %.0f, longest %.0f%s\n",
              when, static_cast<double>(cut - begin) / 1e3, static_cast<double>(locked - begin) / 1e3,
              static_cast<double>(end - cut) / 1e6, static_cast<double>(before - cpu) / keys, static_cast<double>(bytes) / keys,
              Us(Share(steps, 0.5)), Us(Share(steps, 0.99)), Us(Share(steps, 1)),
              snapshot.keys_walked() == snapshot.keys() ? "" : "  KEYS ARE MISSING");
}

// Replaces values until it is told to stop, and times each unit.
class WriterThread {
 public:
  WriterThread(IdemdTable& table, const Keys& keys, int64_t deadline_ms)
      : thread_([this, &table, &keys, deadline_ms] {
          std::mt19937_64 random(3);
          while (!stop_.load(std::memory_order_relaxed)) {
            const absl::string_view key = keys[random() % keys.size()];
            const int64_t begin = SteadyNs();
            table.Set(key, "0", deadline_ms);
            ns_.push_back(static_cast<uint32_t>(SteadyNs() - begin));
          }
        }) {}
  void Report(const char* when) {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
    std::printf("  %-14s %zu units of a writer: median %.1f us, p99 %.1f, p99.9 %.0f, p99.99 %.0f, longest %.0f\n", when,
                ns_.size(), Us(Share(ns_, 0.5)), Us(Share(ns_, 0.99)), Us(Share(ns_, 0.999)), Us(Share(ns_, 0.9999)),
                Us(Share(ns_, 1)));
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<uint32_t> ns_;
  std::thread thread_;
};

void Measure(const char* what, const Keys& keys) {
  storage::FakeClock clock;  // nothing expires
  IdemdTable table(clock);
  const int64_t deadline_ms = clock.NowMs() + 24 * kHourMs;
  for (size_t i = 0; i < keys.size(); ++i) table.Set(keys[i], "1", deadline_ms + static_cast<int64_t>(i & 0xfffff));
  table.Settle();
  std::printf("%s, %zu keys\n", what, keys.size());
  TakeOne(table, "alone");
  {
    WriterThread writer(table, keys, deadline_ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    writer.Report("no snapshot");
  }
  WriterThread writer(table, keys, deadline_ms);
  TakeOne(table, "with a writer");
  writer.Report("beside it");
}

}  // namespace
}  // namespace idemd::bench

int main() {
  using namespace idemd::bench;
  const size_t keys = FromEnvironment("IDEMD_KEYS", 1'000'000);
  Measure("UUIDs, in the lines", UuidKeys(keys, 1));
  Measure("own tokens, out of line", TokenKeys(keys, 2'000'000'000'000));
  Measure("names of 36 characters", NameKeys(keys, 1));
}
