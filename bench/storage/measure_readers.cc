// What a writer on the other core costs a reader.
//
// Three cases in turn, many times over: the reader alone; beside a writer of another table (they
// share only the memory and the third cache); beside a writer of its own table. The difference of
// the last two is what the table itself costs. CPU nanoseconds of the reader's thread.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int kRounds = 9;
constexpr size_t kReadsMax = 400'000;     // per case and round
constexpr size_t kOtherMax = 10'000'000;  // as much memory as it takes to be in nobody's cache
constexpr size_t kWindowMax = 100'000;    // keys that the writer has in the table at a time

// Puts keys and removes those it put a while ago, until it is stopped.
template <class Table>
class Writer {
 public:
  Writer(Table& table, const Keys& keys, int64_t far_ms)
      : thread_([this, &table, &keys, far_ms] { Run(table, keys, far_ms); }) {
    while (!running_.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  // The nanoseconds that one put or removal took.
  double Stop() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
    return ns_;
  }

 private:
  void Run(Table& table, const Keys& keys, int64_t far_ms) {
    PinTo(1);
    const size_t n = keys.size(), window = std::min(kWindowMax, n / 2);
    for (size_t i = 0; i < window; ++i) table.Set(keys[i], "1", far_ms);
    running_.store(true, std::memory_order_release);
    const int64_t begin = ThreadCpuNs();
    size_t i = window;
    for (; !stop_.load(std::memory_order_relaxed); ++i) {
      table.Set(keys[i % n], "1", far_ms);
      table.Remove(keys[(i - window) % n]);
    }
    ns_ = static_cast<double>(ThreadCpuNs() - begin) / static_cast<double>(2 * (i - window));
    for (size_t j = i - window; j < i; ++j) table.Remove(keys[j % n]);
  }
  std::atomic<bool> running_{false}, stop_{false};
  double ns_ = 0;
  std::thread thread_;
};

template <class Table>
class Readers {
 public:
  Readers(const Plan& plan, Report& report) : report_(report) {
    const Keys keys = UuidKeys(plan.keys, plan.seed);
    sample_ = keys.Sample(kReadsMax, plan.seed + 1);
    changing_ = UuidKeys(std::min<size_t>(plan.keys, 4 * kWindowMax), plan.seed + 2);
    for (Table* table : {&own_, &other_}) {
      const size_t n = table == &own_ ? keys.size() : std::min(keys.size(), kOtherMax);
      for (size_t i = 0; i < n; ++i) table->Set(keys[i], "1", far_ms_);
      table->Settle();
      table->WritersShare(true);
    }
  }

  void Run() {
    PinTo(0);
    const char* const what[2] = {"hit", "batch of 32, each"};
    for (int batched = 0; batched < 2; ++batched) {
      std::vector<double> alone, beside_other, beside_own, wall, again, writer_ns;
      for (int round = 0; round < kRounds; ++round) {
        alone.push_back(Read(batched != 0));
        beside_other.push_back(Beside(other_, batched != 0, nullptr));
        beside_own.push_back(Beside(own_, batched != 0, &writer_ns));
        wall.push_back(wall_ns_);
        again.push_back(Read(batched != 0) / alone.back());
      }
      std::vector<double> to_alone, to_other;
      for (size_t i = 0; i < alone.size(); ++i) {
        to_alone.push_back(beside_own[i] / alone[i]);
        to_other.push_back(beside_own[i] / beside_other[i]);
      }
      const bool ours = std::string(Table::kName) == IdemdTable::kName;
      const auto add = [&](const char* metric, double value, const char* unit, double goal = -1) {
        report_.Add({std::string("readers, ") + what[batched], Table::kName, metric, value, unit,
                     ours ? goal : -1});
      };
      add("alone", Median(alone), "ns");
      add("beside a writer of another table", Median(beside_other), "ns");
      add("beside a writer of this table", Median(beside_own), "ns");
      add("the same on the wall clock", Median(wall), "ns");
      add("slowdown beside a writer of this table", Median(to_alone), "times", 1.10);
      add("the same, against a writer of another table", Median(to_other), "times");
      add("alone against alone (noise)", Median(again), "times");
      add("the writer: a put or a removal", Median(writer_ns), "ns");
    }
  }

 private:
  double Read(bool batched) {
    size_t found = 0;
    const size_t n = sample_.size() / kBatch * kBatch;
    const int64_t begin = ThreadCpuNs(), wall_begin = SteadyNs();
    if (batched)
      for (size_t i = 0; i < n; i += kBatch) found += own_.GetBatch(sample_, i);
    else
      for (size_t i = 0; i < n; ++i) found += own_.Get(sample_[i]) ? 1 : 0;
    const int64_t took = ThreadCpuNs() - begin;
    wall_ns_ = static_cast<double>(SteadyNs() - wall_begin) / static_cast<double>(n);
    report_.Expect(found == n, "a key that is there throughout is found throughout");
    return static_cast<double>(took) / static_cast<double>(n);
  }
  double Beside(Table& written, bool batched, std::vector<double>* writer_ns) {
    Writer<Table> writer(written, changing_, far_ms_);
    const double ns = Read(batched);
    const double took = writer.Stop();
    if (writer_ns != nullptr) writer_ns->push_back(took);
    return ns;
  }

  Report& report_;
  double wall_ns_ = 0;  // of the last Read()
  storage::FakeClock clock_;
  const int64_t far_ms_ = clock_.NowMs() + kDayMs;
  Table own_{clock_}, other_{clock_};
  Keys sample_, changing_;
};

}  // namespace

void MeasureReaders(const Plan& plan, Report& report) {
  ForEachTable([&](auto* tag) {
    using Table = std::remove_pointer_t<decltype(tag)>;
    report.InProcess(std::string("readers: ") + Table::kName, [&] {
      auto readers = std::make_unique<Readers<Table>>(plan, report);
      readers->Run();
    });
  });
}

}  // namespace idemd::bench
