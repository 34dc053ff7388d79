// idemd-bench: reads its command line, measures what it names, prints. All else is in the library
// beside it.
#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "bench/load/measurement.h"
#include "bench/load/options.h"
#include "bench/load/report.h"
#include "server/version.h"

namespace idemd::bench {
namespace {

constexpr int kUsage = 2, kFaults = 1;

int Fail(const absl::Status& status) {
  absl::FPrintF(stderr, "idemd-bench: %s\n", std::string(status.message()));
  return status.code() == absl::StatusCode::kInvalidArgument ? kUsage : kFaults;
}

void List() {
  for (const Workload& workload : Workloads()) {
    absl::PrintF("%-20s %s\n", workload.name, workload.summary);
  }
}

bool WriteFile(const std::string& path, const std::string& text) {
  std::FILE* out = path == "-" ? stdout : std::fopen(path.c_str(), "w");
  if (out == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return (out == stdout || std::fclose(out) == 0) && written;
}

void Print(const Options& options, const Measurement& measured) {
  std::string text;
  if (options.csv) {
    text = CsvLine(measured);
    absl::FPrintF(stderr, "%s", Faults(measured));
  } else if (options.quiet) {
    text = QuietReport(measured);
  } else {
    text = TextReport(measured);
  }
  // Standard output is the JSON's when that was asked for.
  std::FILE* out = options.json_path == "-" ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), out);
  std::fflush(out);
}

int Run(const Options& options) {
  std::vector<Workload> workloads;
  const std::string command_name = absl::StrJoin(options.command, " ");
  for (const std::string& name : options.tests) workloads.push_back(*FindWorkload(name));
  if (!options.command.empty()) workloads.push_back(WorkloadOf(options.command, command_name));
  auto bench = Bench::Connect(options);
  if (!bench.ok()) return Fail(bench.status());
  if (options.csv && options.json_path != "-") absl::PrintF("%s", CsvHeader());
  std::vector<Measurement> all;
  bool clean = true;
  for (const Workload& workload : workloads) {
    auto measured = bench->Run(workload);
    if (!measured.ok()) return Fail(measured.status());
    Print(options, *measured);
    clean = clean && measured->clean();
    all.push_back(*std::move(measured));
  }
  if (!options.json_path.empty() && !WriteFile(options.json_path, JsonReport(all))) {
    return Fail(absl::UnavailableError(options.json_path + ": cannot be written"));
  }
  if (!options.svg_path.empty() &&
      !WriteFile(options.svg_path, SvgReport(all, "Latency by percentile"))) {
    return Fail(absl::UnavailableError(options.svg_path + ": cannot be written"));
  }
  return clean ? 0 : kFaults;
}

}  // namespace
}  // namespace idemd::bench

int main(int argc, char** argv) {
  using namespace idemd::bench;
  const std::vector<absl::string_view> words(argv + 1, argv + argc);
  auto options = ParseOptions(words);
  if (!options.ok()) return Fail(options.status());
  if (options->help) {
    std::fputs(HelpText().c_str(), stdout);
    return 0;
  }
  if (options->version) {
    absl::PrintF("idemd-bench %s\n", idemd::server::kIdemdVersion);
    return 0;
  }
  if (options->list) {
    List();
    return 0;
  }
  return Run(*options);
}
