// What each operation costs in idemd's table, beside absl::flat_hash_map, tbb::concurrent_hash_map
// and libcuckoo.
//
// All hold the same random UUIDs (36 characters) with the value "1" and a deadline; see tables.h
// and keys.h. Every round runs every table in a fresh process, one after the other; what is shown
// is the median of the rounds, and its ratio to idemd's. One thread: CPU nanoseconds per operation,
// which other users of the machine disturb least. Two threads: what an operation takes on a
// thread's wall clock, since waiting for a lock is part of the price.
//
//   IDEMD_BENCH_KEYS    entries in the table (default 1000000)
//   IDEMD_BENCH_ROUNDS  default 3
//   IDEMD_SEED          of the keys and of the order in which they are touched
//   --benchmark_filter=REGEX, --out=FILE for the same as JSON
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <regex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/storage/keys.h"
#include "bench/storage/process.h"
#include "bench/storage/tables.h"

namespace idemd::bench {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kSoonMs = 1'000;
constexpr size_t kThreadsMax = 2;

// Made once, before any child: the children share it.
struct Input {
  Keys keys;     // in the table
  Keys touched;  // of those, in random order
  Keys missing;  // in no table
  Keys fresh;    // to be inserted
};

Input MakeInput(size_t n, uint64_t seed) {
  // Whole batches for each thread.
  constexpr size_t kUnit = kBatch * kThreadsMax;
  const size_t lookups = std::max(kUnit, std::min<size_t>(n, 1'000'000) / kUnit * kUnit);
  const size_t changes = std::max(kUnit, std::min<size_t>(n / 4, 1'000'000) / kUnit * kUnit);
  Input input;
  input.keys = UuidKeys(std::max(n, kUnit), seed);
  input.touched = input.keys.Sample(lookups, seed + 1);
  input.missing = UuidKeys(lookups, seed + 2);
  input.fresh = UuidKeys(changes, seed + 3);
  return input;
}

// One table in its process.
template <class Table>
class Subject {
 public:
  explicit Subject(const Input& input) : in(input) {}

  int64_t Far(size_t i) { return clock.NowMs() + kDayMs + static_cast<int64_t>(i * 7919 % kDayMs); }
  void Fill() {
    for (size_t i = 0; i < in.keys.size(); ++i) table.Set(in.keys[i], "1", Far(i));
  }
  // For benchmarks that want it full: one that was not asked for may have filled it already.
  void BeFull() {
    if (table.size() == 0) Fill();
  }

  const Input& in;
  storage::FakeClock clock;
  Table table{clock};
};

// The part of `keys` that this thread works on.
struct Share {
  Share(const benchmark::State& state, const Keys& keys)
      : begin(keys.size() / static_cast<size_t>(state.threads()) *
              static_cast<size_t>(state.thread_index())),
        size(keys.size() / static_cast<size_t>(state.threads())) {}
  size_t begin, size;
};

void Expect(benchmark::State& state, size_t is, size_t expected) {
  if (is != expected) state.SkipWithError(absl::StrCat("counted ", is, ", not ", expected).c_str());
}

// Before the loop of a benchmark in which all threads write. Its begin is a barrier for them.
template <class Table>
void BeginWriting(benchmark::State& state, Subject<Table>& subject) {
  if (state.thread_index() == 0) subject.table.WritersShare(state.threads() > 1);
}

template <class Table>
void BM_Fill(benchmark::State& state, Subject<Table>& subject) {
  while (state.KeepRunningBatch(static_cast<int64_t>(subject.in.keys.size()))) subject.Fill();
  subject.table.Settle();
  Expect(state, subject.table.size(), subject.in.keys.size());
}

template <class Table>
void Look(benchmark::State& state, Subject<Table>& subject, const Keys& keys, size_t expected) {
  const Share share(state, keys);
  if (state.thread_index() == 0) subject.table.WritersShare(false);
  size_t i = share.begin, found = 0;
  for (auto _ : state) found += subject.table.Get(keys[i++]) ? 1 : 0;
  Expect(state, found, expected == 0 ? 0 : share.size);
}
template <class Table>
void BM_Hit(benchmark::State& state, Subject<Table>& subject) {
  Look(state, subject, subject.in.touched, 1);
}
template <class Table>
void BM_Miss(benchmark::State& state, Subject<Table>& subject) {
  Look(state, subject, subject.in.missing, 0);
}

template <class Table>
void BM_Batch(benchmark::State& state, Subject<Table>& subject) {
  const Share share(state, subject.in.touched);
  if (state.thread_index() == 0) subject.table.WritersShare(false);
  size_t i = share.begin, found = 0;
  while (state.KeepRunningBatch(kBatch)) {
    found += subject.table.GetBatch(subject.in.touched, i);
    i += kBatch;
  }
  Expect(state, found, share.size);
}

template <class Table>
void BM_Insert(benchmark::State& state, Subject<Table>& subject) {
  const Keys& keys = subject.in.fresh;
  const Share share(state, keys);
  // They have been there before, so that every table has room for them: growth is what `fill`
  // measures.
  if (state.thread_index() == 0) {
    for (size_t j = 0; j < keys.size(); ++j) subject.table.Set(keys[j], "1", subject.Far(j));
    for (size_t j = 0; j < keys.size(); ++j) subject.table.Remove(keys[j]);
    subject.table.Settle();
  }
  BeginWriting(state, subject);
  size_t i = share.begin;
  for (auto _ : state) {
    subject.table.Set(keys[i], "1", subject.Far(i));
    ++i;
  }
  size_t removed = 0;
  for (i = share.begin; i < share.begin + share.size; ++i)
    removed += subject.table.Remove(keys[i]) ? 1 : 0;
  Expect(state, removed, share.size);
}

template <class Table>
void BM_Replace(benchmark::State& state, Subject<Table>& subject) {
  const Keys& keys = subject.in.touched;
  const Share share(state, keys);
  BeginWriting(state, subject);
  size_t i = share.begin;
  for (auto _ : state) {
    subject.table.Set(keys[i], "1", subject.Far(i));
    ++i;
  }
}

template <class Table>
void BM_Remove(benchmark::State& state, Subject<Table>& subject) {
  const Keys& keys = subject.in.touched;
  const size_t share = subject.in.fresh.size() / static_cast<size_t>(state.threads());
  const size_t begin = share * static_cast<size_t>(state.thread_index());
  BeginWriting(state, subject);
  size_t i = begin, removed = 0;
  for (auto _ : state) removed += subject.table.Remove(keys[i++]) ? 1 : 0;
  for (i = begin; i < begin + share; ++i) subject.table.Set(keys[i], "1", subject.Far(i));
  Expect(state, removed, share);
}

// Every tenth operation replaces.
template <class Table>
void BM_Mixed(benchmark::State& state, Subject<Table>& subject) {
  const Keys& keys = subject.in.touched;
  const Share share(state, keys);
  BeginWriting(state, subject);
  size_t i = share.begin, found = 0, sets = 0;
  for (auto _ : state) {
    if (i % 10 == 9) {
      subject.table.Set(keys[i], "1", subject.Far(i));
      ++sets;
    } else {
      found += subject.table.Get(keys[i]) ? 1 : 0;
    }
    ++i;
  }
  Expect(state, found + sets, share.size);
}

// The fresh keys are due, those of the table are not. Per expired key; for the maps that is a pass
// over everything, the only way they have.
template <class Table>
void BM_Expire(benchmark::State& state, Subject<Table>& subject) {
  const Keys& keys = subject.in.fresh;
  for (size_t i = 0; i < keys.size(); ++i)
    subject.table.Set(keys[i], "1", subject.clock.NowMs() + 1 + static_cast<int64_t>(i) % kSoonMs);
  subject.clock.AdvanceMs(2 * kSoonMs);
  size_t removed = 0;
  while (state.KeepRunningBatch(static_cast<int64_t>(keys.size()))) {
    // A store may bound what one tick does.
    for (int tick = 0; tick < 10'000 && removed < keys.size(); ++tick) {
      removed += subject.table.RemoveDue();
      subject.clock.AdvanceMs(1);
    }
  }
  Expect(state, removed, keys.size());
}

struct Sample {
  std::string operation, table;
  int64_t threads = 1;
  double ns = 0, cpu_ns = 0, wall_ns = 0;  // ns: the one that is shown
};

// Why a run counts for nothing, or "". The library renamed both members in version 1.8.4.
template <class Run>
auto Complaint(const Run& run) -> decltype(run.error_message) {
  return run.error_occurred ? run.error_message : "";
}
template <class Run>
auto Complaint(const Run& run) -> decltype(run.skip_message) {
  return static_cast<bool>(run.skipped) ? run.skip_message : "";
}

// Sends every result to the parent.
class PipeReporter final : public benchmark::BenchmarkReporter {
 public:
  PipeReporter(std::FILE* out, std::string table) : out_(out), table_(std::move(table)) {}
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (const std::string complaint = Complaint(run); !complaint.empty()) {
        std::fprintf(stderr, "%s: %s\n", run.benchmark_name().c_str(), complaint.c_str());
        failed = true;
        continue;
      }
      const std::string name = run.run_name.function_name;
      const double n = static_cast<double>(run.iterations);
      const double cpu = run.cpu_accumulated_time * 1e9 / n;
      const double wall = run.real_accumulated_time * 1e9 / n * static_cast<double>(run.threads);
      std::fprintf(out_, "%s\t%s\t%ld\t%.2f\t%.2f\n", name.substr(0, name.find('/')).c_str(),
                   table_.c_str(), static_cast<long>(run.threads), cpu, wall);
      std::fflush(out_);
    }
  }
  bool failed = false;

 private:
  std::FILE* out_;
  const std::string table_;
};

struct Chosen {
  const std::regex filter;
  // operation/table/threads:2
  bool Has(const std::string& operation, const char* table, size_t threads) const {
    return std::regex_search(absl::StrCat(operation, "/", table, "/threads:", threads), filter);
  }
};

template <class Table>
using Operation = void (*)(benchmark::State&, Subject<Table>&);

constexpr const char* kOperations[] = {"fill",    "hit",    "miss",  "batch", "insert",
                                       "replace", "remove", "mixed", "expire"};

// Registers what was chosen for one table; returns how many that is.
template <class Table>
size_t Register(Subject<Table>* subject, const Input& in, const Chosen& chosen) {
  struct Line {
    Operation<Table> run;
    size_t operations;
    size_t threads_max;
  };
  const size_t looks = in.touched.size(), changes = in.fresh.size();
  const Line lines[] = {{BM_Fill<Table>, in.keys.size(), 1}, {BM_Hit<Table>, looks, 2},
                        {BM_Miss<Table>, looks, 2},          {BM_Batch<Table>, looks, 2},
                        {BM_Insert<Table>, changes, 2},      {BM_Replace<Table>, looks, 2},
                        {BM_Remove<Table>, changes, 2},      {BM_Mixed<Table>, looks, 2},
                        {BM_Expire<Table>, changes, 1}};
  size_t registered = 0;
  for (size_t i = 0; i < std::size(lines); ++i) {
    const Line& line = lines[i];
    for (size_t threads = 1; threads <= line.threads_max; ++threads) {
      if (!chosen.Has(kOperations[i], Table::kName, threads)) continue;
      ++registered;
      if (subject == nullptr) continue;
      const bool fills = i == 0;
      benchmark::RegisterBenchmark(absl::StrCat(kOperations[i], "/", Table::kName).c_str(),
                                   [subject, line, fills](benchmark::State& state) {
                                     if (!fills && state.thread_index() == 0) subject->BeFull();
                                     // What earlier benchmarks left to be freed is not this one's.
                                     if (state.thread_index() == 0) subject->table.Settle();
                                     line.run(state, *subject);
                                   })
          ->Iterations(static_cast<int64_t>(line.operations / threads))
          ->Threads(static_cast<int>(threads))
          ->UseRealTime();
    }
  }
  return registered;
}

// One table, one round, in this process.
template <class Table>
bool RunTable(const Input& in, const Chosen& chosen, std::FILE* out) {
  auto* subject = new Subject<Table>(in);  // it ends with the process
  Register(subject, in, chosen);
  PipeReporter reporter(out, Table::kName);
  benchmark::RunSpecifiedBenchmarks(&reporter, ".");
  return !reporter.failed;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : (values[n / 2] + values[(n - 1) / 2]) / 2;
}

std::vector<double> Of(const std::vector<Sample>& samples, const std::string& operation,
                       const std::string& table, int64_t threads, double Sample::*figure) {
  std::vector<double> values;
  for (const Sample& s : samples)
    if (s.operation == operation && s.table == table && s.threads == threads)
      values.push_back(s.*figure);
  return values;
}

std::vector<std::string> Tables() {
  std::vector<std::string> names;
  ForEachTable(
      [&](auto* table) { names.emplace_back(std::remove_pointer_t<decltype(table)>::kName); });
  return names;
}

void Print(const std::vector<Sample>& samples, size_t keys, uint64_t rounds) {
  std::printf("\nns per operation, %zu entries, median of %lu (times idemd's)\n%-18s", keys, rounds,
              "");
  for (const std::string& table : Tables()) std::printf(" %26s", table.c_str());
  std::printf("\n");
  for (int64_t threads = 1; threads <= int64_t{kThreadsMax}; ++threads) {
    for (const char* operation : kOperations) {
      std::string line;
      double base = 0;
      for (const std::string& table : Tables()) {
        const double ns = Median(Of(samples, operation, table, threads, &Sample::ns));
        if (line.empty()) base = ns;
        char cell[64];
        std::snprintf(cell, sizeof cell, " %18.1f", ns);
        if (ns == 0) std::snprintf(cell, sizeof cell, " %18s", "-");
        line += cell;
        std::snprintf(cell, sizeof cell, " %7s", "");
        if (ns != 0 && base != 0) std::snprintf(cell, sizeof cell, " (%5.2f)", ns / base);
        line += cell;
      }
      if (line.find('.') != std::string::npos)
        std::printf("%-7s %ld thread%s %s\n", operation, static_cast<long>(threads),
                    threads == 1 ? " " : "s", line.c_str());
    }
  }
}

bool WriteJson(const std::string& path, const std::vector<Sample>& samples, size_t keys,
               uint64_t rounds, uint64_t seed) {
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) return false;
  std::fprintf(out, "{\"keys\": %zu, \"rounds\": %lu, \"seed\": %lu, \"left_out\": [", keys, rounds,
               seed);
  const char* comma = "";
  for (const std::string& name : LeftOut()) {
    std::fprintf(out, "%s\"%s\"", comma, name.c_str());
    comma = ", ";
  }
  std::fprintf(out, "],\n \"results\": [");
  comma = "\n  ";
  const auto list = [out](const char* name, const std::vector<double>& values) {
    std::fprintf(out, ", \"%s\": [", name);
    for (size_t i = 0; i < values.size(); ++i)
      std::fprintf(out, "%s%.2f", i == 0 ? "" : ", ", values[i]);
    std::fprintf(out, "]");
  };
  for (int64_t threads = 1; threads <= int64_t{kThreadsMax}; ++threads) {
    for (const char* operation : kOperations) {
      for (const std::string& table : Tables()) {
        const auto figures = [&](double Sample::*figure) {
          return Of(samples, operation, table, threads, figure);
        };
        if (figures(&Sample::ns).empty()) continue;
        std::fprintf(out,
                     "%s{\"operation\": \"%s\", \"table\": \"%s\", \"threads\": %ld, \"ns\": %.2f",
                     comma, operation, table.c_str(), static_cast<long>(threads),
                     Median(figures(&Sample::ns)));
        list("cpu_ns", figures(&Sample::cpu_ns));
        list("wall_ns", figures(&Sample::wall_ns));
        std::fprintf(out, "}");
        comma = ",\n  ";
      }
    }
  }
  std::fprintf(out, "]}\n");
  return std::fclose(out) == 0;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!ReadArguments(argc, argv, &arguments)) return 2;
  const auto& [filter, out_path] = arguments;
  const Chosen chosen{std::regex(filter)};
  const size_t keys = FromEnvironment("IDEMD_BENCH_KEYS", 1'000'000);
  const uint64_t rounds = FromEnvironment("IDEMD_BENCH_ROUNDS", 3);
  const uint64_t seed = FromEnvironment("IDEMD_SEED", 1);

  size_t work = 0;
  ForEachTable([&](auto* table) {
    work += Register(static_cast<Subject<std::remove_pointer_t<decltype(table)>>*>(nullptr),
                     Input(), chosen);
  });
  if (work == 0) return 0;
  for (const std::string& name : LeftOut()) std::fprintf(stderr, "left out: %s\n", name.c_str());
  std::fprintf(stderr, "making %zu keys, IDEMD_SEED=%lu\n", keys, seed);
  const Input in = MakeInput(keys, seed);

  std::vector<Sample> samples;
  bool good = true;
  for (uint64_t round = 1; round <= rounds; ++round) {
    ForEachTable([&](auto* tag) {
      using Table = std::remove_pointer_t<decltype(tag)>;
      if (Register(static_cast<Subject<Table>*>(nullptr), in, chosen) == 0) return;
      std::fprintf(stderr, "round %lu of %lu: %s\n", round, rounds, Table::kName);
      good &= InChild([&](std::FILE* out) { return RunTable<Table>(in, chosen, out); },
                      [&](absl::string_view line) {
                        const std::vector<std::string> word = absl::StrSplit(line, '\t');
                        Sample s;
                        s.operation = word.at(0);
                        s.table = word.at(1);
                        s.threads = std::stol(word.at(2));
                        s.cpu_ns = std::stod(word.at(3));
                        s.wall_ns = std::stod(word.at(4));
                        s.ns = s.threads == 1 ? s.cpu_ns : s.wall_ns;
                        samples.push_back(s);
                      });
    });
  }
  Print(samples, in.keys.size(), rounds);
  if (!out_path.empty() && !WriteJson(out_path, samples, in.keys.size(), rounds, seed)) {
    std::fprintf(stderr, "rivals_bench: cannot write %s\n", out_path.c_str());
    good = false;
  }
  if (!good) std::fprintf(stderr, "rivals_bench: a table answered wrongly or its process died\n");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace idemd::bench

int main(int argc, char** argv) { return idemd::bench::Main(argc, argv); }
