// What lifetimes_bench measures: things that a loop over one operation does not show. One function
// and one source file for each; every table is measured in a process of its own.
//
// Threads     Report: one.
// Units       as each row says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "bench/storage/process.h"
#include "bench/storage/tables.h"
#include "storage/clock.h"
#include "storage/store.h"

namespace idemd::bench {

struct Plan {
  size_t keys = 1'000'000;
  uint64_t seed = 1;
};

// One figure. `goal` is the most that it should be; below 0: none is set.
struct Row {
  std::string section, subject, metric;
  double value = 0;
  std::string unit;
  double goal = -1;
};

class Report {
 public:
  // Inside `work` rows are added in the child's name.
  void InProcess(absl::string_view what, absl::FunctionRef<void()> work);
  void Add(const Row& row);
  const std::vector<Row>& rows() const { return rows_; }
  bool good() const { return good_; }
  // A measurement that proves wrong what it measured.
  void Expect(bool holds, absl::string_view what);

 private:
  std::vector<Row> rows_;
  std::FILE* to_parent_ = nullptr;
  bool good_ = true;
};

// Bytes of RSS per entry, by kind of key and value: every table, filled and settled.
void MeasureMemory(const Plan& plan, Report& report);
// The pauses of single inserts while a table grows from nothing, and its memory on the way.
void MeasureGrowth(const Plan& plan, Report& report);
// A reader alone, and beside a writer on the other core.
void MeasureReaders(const Plan& plan, Report& report);
// What the expirer costs while nothing expires, and how late it is for single keys.
void MeasureIdle(const Plan& plan, Report& report);
// As many keys, all expiring within five seconds.
void MeasureStorm(const Plan& plan, Report& report);
void MeasureFragmentation(const Plan& plan, Report& report);

// --- what several of them use

double Median(std::vector<double> values);
// The value below which `share` (0 to 1) of them lie; reorders them.
uint32_t Quantile(std::vector<uint32_t>& values, double share);

// Ticks as the server does: on a thread of its own, when the last tick said. `core` below 0:
// anywhere.
class TickThread {
 public:
  TickThread(storage::Store& store, storage::Clock& clock, int core)
      : store_(store), clock_(clock), core_(core) {}
  ~TickThread() { Stop(); }
  void Stop();
  int64_t cpu_ns() const { return cpu_ns_.load(std::memory_order_relaxed); }

 private:
  void Run();
  storage::Store& store_;
  storage::Clock& clock_;
  const int core_;
  std::atomic<int64_t> cpu_ns_{0};  // after the last tick
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_{[this] { Run(); }};
};

// The ticks that a table needs beside it: none, but for idemd.
template <class Table>
struct Background {
  Background(Table&, storage::Clock&, int) {}
  // Time in which nothing is asked of the table, so that it can give back what it keeps for the
  // next moment.
  void Rest() {}
};
template <>
struct Background<IdemdTable> {
  static constexpr std::chrono::milliseconds kRest{2'500};
  Background(IdemdTable& table, storage::Clock& clock, int core)
      : ticks(table.store(), clock, core) {}
  void Rest() { std::this_thread::sleep_for(kRest); }
  TickThread ticks;
};

// Stands still until it is let go, then runs as fast as real time: so that filling a table takes
// none of its keys' life.
class HeldClock final : public storage::Clock {
 public:
  int64_t NowNs() override {
    const int64_t since = since_.load(std::memory_order_relaxed);
    return kStartMs * 1'000'000 + (since == 0 ? 0 : SteadyNs() - since);
  }
  void LetGo() { since_.store(SteadyNs(), std::memory_order_relaxed); }

 private:
  static constexpr int64_t kStartMs = 1'700'000'000'000;
  std::atomic<int64_t> since_{0};
};

}  // namespace idemd::bench
