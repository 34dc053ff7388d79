// Reads /proc, rusage and jemalloc's counters.
#include "server/admin/process.h"

#include <malloc.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdio>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

// jemalloc's, where the process is linked with it; null elsewhere (sanitizers, tests).
extern "C" {
__attribute__((weak)) int mallctl(const char* name, void* old_value, size_t* old_size,
                                  void* new_value, size_t new_size);
__attribute__((weak)) void malloc_stats_print(void (*write)(void*, const char*), void* opaque,
                                              const char* options);
}

namespace idemd::server {
namespace {

// jemalloc's name for "every arena".
constexpr unsigned kAllArenas = 4096;

uint64_t Counter(const char* name) {
  size_t value = 0;
  size_t size = sizeof(value);
  return mallctl(name, &value, &size, nullptr, 0) == 0 ? value : 0;
}

uint64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  uint64_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

ProcessMemory ReadProcessMemory() {
  ProcessMemory memory;
  memory.rss_bytes = ResidentBytes();
  struct sysinfo system {};
  if (sysinfo(&system) == 0) memory.system_bytes = uint64_t{system.totalram} * system.mem_unit;
  memory.allocated_bytes = memory.active_bytes = memory.resident_bytes = memory.rss_bytes;
  if (mallctl != nullptr) {
    uint64_t epoch = 1;  // writing it makes jemalloc gather its counters anew
    size_t size = sizeof(epoch);
    mallctl("epoch", &epoch, &size, &epoch, size);
    memory.allocated_bytes = Counter("stats.allocated");
    memory.active_bytes = Counter("stats.active");
    memory.resident_bytes = Counter("stats.resident");
  }
  return memory;
}

std::string AllocatorName() {
  if (mallctl == nullptr) return "libc";
  const char* version = "";
  size_t size = sizeof(version);
  if (mallctl("version", &version, &size, nullptr, 0) != 0) return "jemalloc";
  const absl::string_view text = version;
  return absl::StrCat("jemalloc-", text.substr(0, text.find('-')));
}

std::string AllocatorReport() {
  std::string report;
  if (malloc_stats_print != nullptr) {
    malloc_stats_print(
        [](void* out, const char* text) { static_cast<std::string*>(out)->append(text); }, &report,
        nullptr);
  }
  return report;
}

void PrepareAllocator() {
  if (mallctl == nullptr) return;
  unsigned own = 0;
  unsigned arenas = 0;
  size_t size = sizeof(unsigned);
  if (mallctl("thread.arena", &own, &size, nullptr, 0) != 0 || mallctl("opt.narenas", &arenas, &size, nullptr, 0) != 0) return;
  // An arena is made when it is first given to a thread.
  for (unsigned i = 0; i < arenas; ++i) mallctl("thread.arena", nullptr, nullptr, &i, sizeof(i));
  mallctl("thread.arena", nullptr, nullptr, &own, sizeof(own));
}

void PurgeAllocator() {
  if (mallctl == nullptr) {
    malloc_trim(0);
    return;
  }
  const std::string name = absl::StrCat("arena.", kAllArenas, ".purge");
  mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
}

ProcessCpu ReadProcessCpu() {
  rusage self{};
  rusage children{};
  getrusage(RUSAGE_SELF, &self);
  getrusage(RUSAGE_CHILDREN, &children);
  return {Seconds(self.ru_stime), Seconds(self.ru_utime), Seconds(children.ru_stime),
          Seconds(children.ru_utime)};
}

std::string ExecutablePath() {
  std::array<char, PATH_MAX> path{};
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<size_t>(size)) : std::string();
}

std::string OsName() {
  utsname name{};
  if (uname(&name) != 0) return "unknown";
  return absl::StrCat(name.sysname, " ", name.release, " ", name.machine);
}

std::string HumanBytes(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, "B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* next : {"K", "M", "G", "T", "P"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.2f%s", value, unit);
}

}  // namespace idemd::server
