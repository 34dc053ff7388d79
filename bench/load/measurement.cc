// Turns a workload and the options into passes, and reads the clocks around the one that counts.
#include "bench/load/measurement.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace idemd::bench {
namespace {

// Keys are prepared and cleaned up in batches of at least this many, whatever is measured.
constexpr uint32_t kPipelineAround = 64;
// Where -n does not say how many keys to prepare.
constexpr uint64_t kPreparedByDefault = 1'000'000;
// Of whom a reply is kept: 32 bytes each.
constexpr uint64_t kCapturedMost = 100'000'000;

double OwnCpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

bool InSteps(const Workload& workload) { return workload.steps.size() > 1 && !workload.mixed; }

// How many numbers there are to prepare or to draw from; 0: as many as there is time for.
uint64_t NumbersOf(const Workload& workload, const Options& options) {
  const uint64_t wanted =
      options.requests == 0 || !InSteps(workload)
          ? options.requests
          : (options.requests + workload.steps.size() - 1) / workload.steps.size();
  switch (workload.order) {
    case Order::kRandom:
    case Order::kInOrder:
      return options.keys;
    case Order::kRepeated:
      return options.keys > 1
                 ? options.keys
                 : std::min(wanted == 0 ? kPreparedByDefault : wanted, kPreparedByDefault);
    case Order::kPrepared:
      return wanted == 0 ? kPreparedByDefault : wanted;
    case Order::kNew:
    case Order::kStorm:
      // What replies said is kept for each number, unless it is used up within a batch.
      if (wanted == 0 && UsesCaptures(workload) && !InSteps(workload)) return kPreparedByDefault;
      return wanted;
  }
  return wanted;
}

}  // namespace

bool Measurement::clean() const {
  return result.clean() && around.errors == 0 && around.unanswered() == 0 &&
         around.unexpected() == 0 && around.lost_connections == 0;
}

double Measurement::requests_per_second() const {
  return static_cast<double>(result.replies) / seconds;
}

double Measurement::Each(double seconds_of_all) const {
  return result.replies == 0 ? 0 : seconds_of_all * 1e6 / static_cast<double>(result.replies);
}

absl::StatusOr<Bench> Bench::Connect(const Options& options) {
  auto generator =
      Generator::Connect(options.target, options.connections, options.threads, options.cpus);
  if (!generator.ok()) return generator.status();
  Bench bench(options, *std::move(generator));
  bench.constants_ = {{"data", std::string(options.data_bytes, 'x')},
                      {"data_bytes", absl::StrCat(options.data_bytes)},
                      {"prefix", options.prefix},
                      {"ttl", absl::StrCat(options.ttl_s)}};
  bench.next_new_ = options.first;
  return bench;
}

absl::Status Bench::LoadScripts(const Workload& workload) {
  std::vector<Script> wanted;
  for (const auto* steps : {&workload.steps, &workload.prepare}) {
    for (const Step& step : *steps) {
      for (const Script& script : Scripts()) {
        const std::string placeholder = absl::StrCat("__", script.name, "__");
        if (std::find(step.words.begin(), step.words.end(), placeholder) != step.words.end() &&
            constants_.count(std::string(script.name)) == 0) {
          wanted.push_back(script);
        }
      }
    }
  }
  if (wanted.empty()) return absl::OkStatus();
  absl::StatusOr<int> fd = ConnectTo(options_.target);
  if (!fd.ok()) return fd.status();
  absl::Status status;
  for (const Script& script : wanted) {
    auto digest = Ask(*fd, {"SCRIPT", "LOAD", script.text});
    if (!digest.ok()) {
      status = digest.status();
      break;
    }
    constants_[std::string(script.name)] = *digest;
  }
  close(*fd);
  return status;
}

absl::StatusOr<Pass> Bench::MakePass(absl::Span<const Step> steps) const {
  Pass pass;
  for (const Step& step : steps) {
    const absl::string_view line = options_.target.memcached ? step.memcached : step.line;
    const std::vector<std::string> words(step.words.begin(), step.words.end());
    auto compiled = line.empty()
                        ? RequestTemplate::Compile(words, options_.key_space, constants_)
                        : RequestTemplate::CompileRaw(line, options_.key_space, constants_);
    if (!compiled.ok()) return compiled.status();
    pass.templates.push_back(*std::move(compiled));
    pass.captures.push_back(step.capture);
    pass.expected.push_back(step.expected);
  }
  pass.seed = options_.seed;
  return pass;
}

uint64_t Bench::FirstNumber(const Workload& workload) const {
  if (workload.order == Order::kRandom || workload.order == Order::kInOrder) return 0;
  if (next_new_ != 0) return next_new_;
  // Ten thousand numbers for each millisecond: a later run has later ones. Names of 12 digits have
  // room for half a day of them, in the upper half of what they can say; -r draws from the lower.
  timespec t{};
  clock_gettime(CLOCK_REALTIME, &t);
  const uint64_t by_clock =
      (static_cast<uint64_t>(t.tv_sec) * 1000 + static_cast<uint64_t>(t.tv_nsec) / 1'000'000) *
      10'000;
  constexpr uint64_t kHalf = 500'000'000'000;
  return options_.key_space == KeySpace::kRedis ? kHalf + by_clock % kHalf : by_clock;
}

absl::StatusOr<Measurement> Bench::Run(const Workload& workload) {
  if (absl::Status status = LoadScripts(workload); !status.ok()) return status;
  Measurement made;
  made.name = std::string(workload.name);
  made.connections = options_.connections;
  made.threads = options_.threads;
  made.pipeline = options_.pipeline;
  made.rate = options_.rate;

  Numbers numbers;
  numbers.first = FirstNumber(workload);
  numbers.count = NumbersOf(workload, options_);
  if (UsesCaptures(workload) && !InSteps(workload)) {
    if (numbers.count > kCapturedMost) {
      return absl::InvalidArgumentError(absl::StrCat(
          workload.name, ": a reply is remembered for each request, of at most ", kCapturedMost));
    }
    numbers.captured.assign(numbers.count * kCaptureChars, '0');
  }
  absl::Status status = RunAround(workload.prepare, numbers, numbers.count, true, &made.around);
  if (!status.ok()) return status;
  auto used = Measure(workload, numbers, &made);
  if (!used.ok()) return used.status();
  // An open loop keeps no replies, so what only they name stays until it expires.
  const bool named = options_.rate == 0 || !UsesCaptures(workload) || !workload.prepare.empty();
  if (!options_.keep && named && *used != 0) {
    status = RunAround(workload.clean, numbers, *used, false, &made.around);
    if (!status.ok()) return status;
  }
  if (options_.first != 0 && numbers.first != 0) next_new_ = numbers.first + *used;
  return made;
}

absl::Status Bench::RunAround(absl::Span<const Step> steps, Numbers& numbers, uint64_t count,
                              bool check, PassResult* result) {
  for (const Step& step : steps) {
    auto pass = MakePass({&step, 1});
    if (!pass.ok()) return pass.status();
    if (!check) pass->expected.assign(1, {});
    NumberSource source(Order::kInOrder, numbers.first, count, count, 0);
    pass->numbers = &source;
    pass->pipeline = std::max(options_.pipeline, kPipelineAround);
    pass->captured = numbers.captured.empty() ? nullptr : numbers.captured.data();
    result->Merge(generator_->Run(*std::move(pass), 0));
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Bench::Measure(const Workload& workload, Numbers& numbers,
                                        Measurement* made) {
  auto pass = MakePass(workload.steps);
  if (!pass.ok()) return pass.status();
  const bool again_and_again = workload.order == Order::kRandom ||
                               workload.order == Order::kRepeated ||
                               workload.order == Order::kStorm;
  const uint64_t most = again_and_again ? options_.requests : numbers.count;
  NumberSource source(workload.order, numbers.first, std::max<uint64_t>(numbers.count, 1),
                      most == 0 ? UINT64_MAX : most, options_.duplicates);
  pass->numbers = &source;
  pass->pipeline = options_.pipeline;
  pass->rate = options_.rate;
  pass->mixed = workload.mixed;
  pass->second_share = options_.sets;
  pass->captured = numbers.captured.empty() ? nullptr : numbers.captured.data();

  std::optional<ServerCpu> server;
  CpuTime server_before;
  if (options_.server_pid != 0) {
    auto found = ServerCpu::Of(options_.server_pid);
    if (!found.ok()) return found.status();
    server = *found;
    auto now = server->Read();
    if (!now.ok()) return now.status();
    server_before = *now;
  }
  const double own_before = OwnCpuSeconds();
  made->result = generator_->Run(*std::move(pass), options_.seconds);
  made->own_cpu_s = OwnCpuSeconds() - own_before;
  made->seconds = generator_->last_seconds();
  if (server.has_value()) {
    auto now = server->Read();
    if (!now.ok()) return now.status();
    made->server_cpu = *now - server_before;
    made->has_server_cpu = true;
  }
  return source.used();
}

Workload WorkloadOf(const std::vector<std::string>& command, absl::string_view name) {
  Workload workload;
  workload.name = name;
  workload.summary = "a command of the user's";
  Step step;
  for (const std::string& word : command) step.words.emplace_back(word);
  workload.steps = {std::move(step)};
  return workload;
}

}  // namespace idemd::bench
