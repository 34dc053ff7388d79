// What idemd-bench is told on its command line: redis-benchmark's letters where it has them.
//
// Units     as the names say.
// Errors    InvalidArgument with what is wrong and what would be right.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/load/key_space.h"
#include "bench/load/wire.h"

namespace idemd::bench {

struct Options {
  Target target;
  uint32_t connections = 50, threads = 1, pipeline = 1;
  uint64_t requests = 0;  // 0: until `seconds` are over
  double seconds = 0;     // 0: until `requests` are sent
  double rate = 0;        // 0: as fast as replies come
  uint64_t keys = 1;      // -r
  uint32_t data_bytes = 3;
  KeySpace key_space = KeySpace::kRedis;
  std::string prefix;
  uint64_t ttl_s = 86'400;
  uint64_t first = 0;  // of new numbers; 0: by the clock
  uint64_t seed = 1;
  double duplicates = 0.8, sets = 0.5;  // shares
  bool keep = false;
  std::vector<std::string> tests;
  std::vector<std::string> command;  // instead of tests
  pid_t server_pid = 0;
  std::vector<int> cpus;
  bool csv = false, quiet = false;
  std::string json_path, svg_path;
  bool help = false, list = false, version = false;

  static constexpr uint64_t kRequestsByDefault = 100'000;
};

// The words behind the program's name.
absl::StatusOr<Options> ParseOptions(const std::vector<absl::string_view>& words);
// What --help prints.
std::string HelpText();

}  // namespace idemd::bench
