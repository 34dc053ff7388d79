// All connections to one server, spread over threads: runs a pass on all of them at once.
//
// Threads   one at a time; the threads it starts end with each pass.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/load/load_loop.h"
#include "bench/load/pass.h"
#include "bench/load/wire.h"

namespace idemd::bench {

class Generator {
 public:
  // `cpus`: thread i stays on cpus[i % size]; empty: where the system puts it. Unavailable when a
  // connection fails.
  static absl::StatusOr<std::unique_ptr<Generator>> Connect(const Target& target,
                                                            size_t connections, size_t threads,
                                                            std::vector<int> cpus);

  // Begins when all threads are ready; ends with the last reply. Sets pass.begin_ns, and end_ns
  // where `seconds` is not 0.
  PassResult Run(Pass pass, double seconds);
  // When the last pass began, and how long it was until its last reply.
  double last_seconds() const { return last_seconds_; }

 private:
  explicit Generator(std::vector<int> cpus) : cpus_(std::move(cpus)) {}

  std::vector<int> cpus_;
  std::vector<std::unique_ptr<LoadLoop>> loops_;
  double last_seconds_ = 0;
};

}  // namespace idemd::bench
