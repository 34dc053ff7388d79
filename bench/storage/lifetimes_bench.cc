// What becomes of a table over time: memory, growth, readers beside a writer, the idle expirer, an
// expiry storm.
//
//   IDEMD_BENCH_KEYS   entries (default 1000000; 10000000 for the figures of the record)
//   IDEMD_SEED         of the keys
//   --benchmark_filter=REGEX   sections: memory, growth, readers, idle, storm
//   --out=FILE                 the same as JSON
#include <algorithm>
#include <chrono>
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : (values[n / 2] + values[(n - 1) / 2]) / 2;
}

uint32_t Quantile(std::vector<uint32_t>& values, double share) {
  if (values.empty()) return 0;
  const size_t at =
      std::min(values.size() - 1, static_cast<size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(at), values.end());
  return values[at];
}

void TickThread::Run() {
  if (core_ >= 0) PinTo(core_);
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const int64_t next_ms = store_.Tick();
    cpu_ns_.store(ThreadCpuNs(), std::memory_order_relaxed);
    const int64_t wait_ms = std::max<int64_t>(0, next_ms - clock_.NowMs());
    lock.lock();
    ended_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return ending_; });
  }
}

void TickThread::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  ended_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Report::InProcess(absl::string_view what, absl::FunctionRef<void()> work) {
  std::fprintf(stderr, "%s\n", std::string(what).c_str());
  const bool ended_well = InChild(
      [&](std::FILE* out) {
        to_parent_ = out;
        work();
        return good_;
      },
      [&](absl::string_view line) {
        const std::vector<std::string> word = absl::StrSplit(line, '\t');
        Add({word.at(0), word.at(1), word.at(2), std::stod(word.at(3)), word.at(4),
             std::stod(word.at(5))});
      });
  if (!ended_well) std::fprintf(stderr, "lifetimes_bench: failed: %s\n", std::string(what).c_str());
  good_ &= ended_well;
}

void Report::Add(const Row& row) {
  if (to_parent_ != nullptr) {
    std::fprintf(to_parent_, "%s\t%s\t%s\t%.6g\t%s\t%.6g\n", row.section.c_str(),
                 row.subject.c_str(), row.metric.c_str(), row.value, row.unit.c_str(), row.goal);
  } else {
    rows_.push_back(row);
  }
}

void Report::Expect(bool holds, absl::string_view what) {
  if (holds) return;
  std::fprintf(stderr, "lifetimes_bench: not so: %s\n", std::string(what).c_str());
  good_ = false;
}

namespace {

void Print(const Report& report) {
  std::vector<std::string> sections;  // in order of appearance
  for (const Row& row : report.rows())
    if (std::find(sections.begin(), sections.end(), row.section) == sections.end())
      sections.push_back(row.section);
  for (const std::string& section : sections) {
    std::printf("\n%s\n", section.c_str());
    for (const Row& row : report.rows()) {
      if (row.section != section) continue;
      std::printf("  %-26s %-46s %10.4g %s", row.subject.c_str(), row.metric.c_str(), row.value,
                  row.unit.c_str());
      if (row.goal >= 0)
        std::printf("  (goal: at most %g%s)", row.goal, row.value <= row.goal ? "" : ", MISSED");
      std::printf("\n");
    }
  }
}

bool WriteJson(const std::string& path, const Report& report, const Plan& plan) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) return false;
  std::fprintf(out, "{\"keys\": %zu, \"seed\": %lu, \"rows\": [", plan.keys, plan.seed);
  const char* comma = "\n  ";
  for (const Row& row : report.rows()) {
    std::fprintf(
        out,
        "%s{\"section\": \"%s\", \"subject\": \"%s\", \"metric\": \"%s\", \"value\": %.6g, "
        "\"unit\": \"%s\", \"goal\": %.6g}",
        comma, row.section.c_str(), row.subject.c_str(), row.metric.c_str(), row.value,
        row.unit.c_str(), row.goal);
    comma = ",\n  ";
  }
  std::fprintf(out, "]}\n");
  return std::fclose(out) == 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!ReadArguments(argc, argv, &arguments)) return 2;
  const auto& [filter, out_path] = arguments;
  Plan plan;
  plan.keys = std::max<size_t>(1'000, FromEnvironment("IDEMD_BENCH_KEYS", plan.keys));
  plan.seed = FromEnvironment("IDEMD_SEED", plan.seed);
  struct Section {
    const char* name;
    void (*measure)(const Plan&, Report&);
  };
  const Section sections[] = {{"memory", MeasureMemory},
                              {"growth", MeasureGrowth},
                              {"readers", MeasureReaders},
                              {"idle", MeasureIdle},
                              {"storm", MeasureStorm},
                              {"fragmentation", MeasureFragmentation}};
  Report report;
  const std::regex chosen(filter);
  for (const Section& section : sections)
    if (std::regex_search(section.name, chosen)) section.measure(plan, report);
  if (!report.rows().empty()) {
    std::printf("%zu entries, IDEMD_SEED=%lu\n", plan.keys, plan.seed);
    Print(report);
  }
  if (!out_path.empty() && !WriteJson(out_path, report, plan)) {
    std::fprintf(stderr, "lifetimes_bench: cannot write %s\n", out_path.c_str());
    return 1;
  }
  return report.good() ? 0 : 1;
}

}  // namespace
}  // namespace idemd::bench

int main(int argc, char** argv) { return idemd::bench::Main(argc, argv); }
