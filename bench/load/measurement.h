// One workload from begin to end: prepares the keys, measures, checks, cleans up.
//
// Errors    InvalidArgument for a command that makes no sense, Unavailable for a server that is
// gone. Errors among the replies are part
//           of a Measurement.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/generator.h"
#include "bench/load/options.h"
#include "bench/load/pass.h"
#include "bench/load/server_cpu.h"

namespace idemd::bench {

struct Measurement {
  std::string name;
  uint32_t connections = 0, threads = 0, pipeline = 0;
  double rate = 0;
  double seconds = 0;  // from the first request to the last reply
  PassResult result;
  PassResult around;  // preparation and cleaning: only what went wrong matters
  bool has_server_cpu = false;
  CpuTime server_cpu;
  double own_cpu_s = 0;

  bool clean() const;
  double requests_per_second() const;
  // Microseconds per reply.
  double server_us() const { return Each(server_cpu.total_s); }
  double own_us() const { return Each(own_cpu_s); }
  double Each(double seconds_of_all) const;
  // How much of the time this program's threads worked: near 1, it and not the server is the limit.
  double own_share() const { return own_cpu_s / (seconds * threads); }
};

// Measures workloads against one server, one after another.
class Bench {
 public:
  static absl::StatusOr<Bench> Connect(const Options& options);
  absl::StatusOr<Measurement> Run(const Workload& workload);

 private:
  Bench(const Options& options, std::unique_ptr<Generator> generator)
      : options_(options), generator_(std::move(generator)) {}
  // The numbers of one workload, and what replies about them said.
  struct Numbers {
    uint64_t first = 0, count = 0;  // 0: as many as there is time for
    std::vector<char> captured;
  };
  absl::Status LoadScripts(const Workload& workload);
  absl::StatusOr<Pass> MakePass(absl::Span<const Step> steps) const;
  uint64_t FirstNumber(const Workload& workload) const;
  // Each step as a pass over the first `count` numbers.
  absl::Status RunAround(absl::Span<const Step> steps, Numbers& numbers, uint64_t count, bool check,
                         PassResult* result);
  // Returns how many numbers may have been used.
  absl::StatusOr<uint64_t> Measure(const Workload& workload, Numbers& numbers, Measurement* made);

  Options options_;
  std::unique_ptr<Generator> generator_;
  std::map<std::string, std::string, std::less<>> constants_;
  uint64_t next_new_ = 0;  // with --first: where the next workload's new numbers begin
};

// The workload that a command on the command line is. The words and the name must outlive it.
Workload WorkloadOf(const std::vector<std::string>& command, absl::string_view name);

}  // namespace idemd::bench
