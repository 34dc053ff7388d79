// What the system says of this process, and a fresh process for each table: memory and caches as a
// first user finds them.
//
// Threads     any, but for InChild(): the process has one.
// Units       bytes, nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace idemd::bench {

inline int64_t Now(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}
inline int64_t SteadyNs() { return Now(CLOCK_MONOTONIC); }
inline int64_t ThreadCpuNs() { return Now(CLOCK_THREAD_CPUTIME_ID); }
inline int64_t ProcessCpuNs() { return Now(CLOCK_PROCESS_CPUTIME_ID); }

uint64_t ResidentBytes();
// The most that was resident since the last reset; false, when the system cannot reset it.
uint64_t ResidentPeakBytes();
bool ResetResidentPeak();
// Freed pages go back to the system now, not when the allocator's decay says.
void PurgeHeap();
// This thread stays on one core; where that is not allowed, it goes where it is put.
void PinTo(int core);

// Runs `work` in a child of its own, which then ends with no more ado (a table is not taken down
// key by key), and hands every line that it prints to `lines`. `work` returns whether all went
// well; so does the call.
bool InChild(absl::FunctionRef<bool(std::FILE* out)> work,
             absl::FunctionRef<void(absl::string_view line)> lines);

// What both programs take. ReadArguments() complains of any other word, and then returns false.
struct Arguments {
  std::string filter = ".", out_path;
};
bool ReadArguments(int argc, char** argv, Arguments* arguments);

// A whole number from the environment, or `otherwise`.
uint64_t FromEnvironment(const char* name, uint64_t otherwise);

}  // namespace idemd::bench
