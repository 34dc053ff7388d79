// Asks the system and the allocator; forks.
#include "bench/storage/process.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#ifdef IDEMD_BENCH_JEMALLOC
#include <jemalloc/jemalloc.h>

// As the server sets it.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0";
}
#endif

namespace idemd::bench {
namespace {

// jemalloc's own threads do not come along into a child, and are not started there by themselves.
void RestartAllocatorThreads() {
#ifdef IDEMD_BENCH_JEMALLOC
  bool on = true;
  if (mallctl("background_thread", nullptr, nullptr, &on, sizeof on) != 0)
    std::fprintf(stderr, "bench: without the allocator's background threads\n");
#endif
}

}  // namespace

uint64_t ResidentBytes() {
  unsigned long pages = 0, resident = 0;
  if (std::FILE* statm = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(statm, "%lu %lu", &pages, &resident) != 2) resident = 0;
    std::fclose(statm);
  }
  return uint64_t{resident} * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t ResidentPeakBytes() {
  unsigned long kib = 0;
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    while (std::fgets(line, sizeof line, status) != nullptr)
      if (std::sscanf(line, "VmHWM: %lu kB", &kib) == 1) break;
    std::fclose(status);
  }
  return uint64_t{kib} * 1024;
}

bool ResetResidentPeak() {
  std::FILE* refs = std::fopen("/proc/self/clear_refs", "w");
  if (refs == nullptr) return false;
  const bool written = std::fputs("5", refs) >= 0;  // proc(5): only the peak is reset
  return std::fclose(refs) == 0 && written;
}

void PurgeHeap() {
#ifdef IDEMD_BENCH_JEMALLOC
  const std::string every_arena = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  mallctl(every_arena.c_str(), nullptr, nullptr, nullptr, 0);
#endif
}

void PinTo(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

bool InChild(absl::FunctionRef<bool(std::FILE* out)> work,
             absl::FunctionRef<void(absl::string_view line)> lines) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {
    close(ends[0]);
    RestartAllocatorThreads();
    std::FILE* out = fdopen(ends[1], "w");
    const bool good = work(out);
    std::fflush(nullptr);
    _exit(good ? 0 : 1);
  }
  close(ends[1]);
  std::FILE* in = fdopen(ends[0], "r");
  char* line = nullptr;
  size_t room = 0;
  for (ssize_t n = 0; (n = getline(&line, &room, in)) > 0;)
    lines(absl::string_view(line, static_cast<size_t>(n) - (line[n - 1] == '\n' ? 1 : 0)));
  std::free(line);
  std::fclose(in);
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

bool ReadArguments(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--benchmark_filter=", 0) == 0) {
      arguments->filter = word.substr(std::strlen("--benchmark_filter="));
    } else if (word.rfind("--out=", 0) == 0) {
      arguments->out_path = word.substr(std::strlen("--out="));
    } else {
      std::fprintf(stderr, "%s: knows --benchmark_filter=REGEX and --out=FILE, not %s\n", argv[0], argv[i]);
      return false;
    }
  }
  return true;
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace idemd::bench
