// Connects, then starts a thread for each loop and a pass.
#include "bench/load/generator.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::bench {
namespace {

void AllowDescriptors(size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
}

void PinTo(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu), &set);
  sched_setaffinity(0, sizeof(set), &set);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Generator>> Generator::Connect(const Target& target,
                                                              size_t connections, size_t threads,
                                                              std::vector<int> cpus) {
  AllowDescriptors(connections + 64);
  std::unique_ptr<Generator> made(new Generator(std::move(cpus)));
  std::vector<std::vector<int>> fds(threads);
  for (size_t i = 0; i < connections; ++i) {
    absl::StatusOr<int> fd = ConnectTo(target);
    if (!fd.ok()) {
      for (const auto& of_thread : fds) {
        for (const int one : of_thread) close(one);
      }
      return fd.status();
    }
    fds[i % threads].push_back(*fd);
  }
  for (size_t i = 0; i < threads; ++i) {
    made->loops_.push_back(std::make_unique<LoadLoop>(
        std::move(fds[i]), i, threads, target.memcached ? Dialect::kMemcached : Dialect::kResp));
  }
  return made;
}

PassResult Generator::Run(Pass pass, double seconds) {
  std::vector<PassResult> results(loops_.size());
  std::barrier ready(static_cast<std::ptrdiff_t>(loops_.size()), [&]() noexcept {
    pass.begin_ns = SteadyNs();
    if (seconds > 0) pass.end_ns = pass.begin_ns + static_cast<int64_t>(seconds * 1e9);
  });
  std::vector<std::thread> threads;
  for (size_t i = 0; i < loops_.size(); ++i) {
    threads.emplace_back([&, i] {
      if (!cpus_.empty()) PinTo(cpus_[i % cpus_.size()]);
      ready.arrive_and_wait();
      results[i] = loops_[i]->Run(pass);
    });
  }
  for (std::thread& thread : threads) thread.join();
  PassResult all = std::move(results[0]);
  for (size_t i = 1; i < results.size(); ++i) all.Merge(results[i]);
  const int64_t end_ns = std::max(all.last_reply_ns, pass.begin_ns + 1);
  last_seconds_ = static_cast<double>(end_ns - pass.begin_ns) * 1e-9;
  return all;
}

}  // namespace idemd::bench
