// Reads a clock and a line of /proc.
#include "bench/load/server_cpu.h"

#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace idemd::bench {

absl::StatusOr<ServerCpu> ServerCpu::Of(pid_t pid) {
  clockid_t clock{};
  if (clock_getcpuclockid(pid, &clock) != 0) {
    return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  }
  const ServerCpu cpu(pid, clock);
  if (auto now = cpu.Read(); !now.ok()) return now.status();
  return cpu;
}

absl::StatusOr<CpuTime> ServerCpu::Read() const {
  timespec t{};
  if (clock_gettime(clock_, &t) != 0) {
    return absl::NotFoundError(absl::StrCat("process ", pid_, " is gone"));
  }
  CpuTime cpu;
  cpu.total_s = static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
  std::FILE* stat = std::fopen(absl::StrCat("/proc/", pid_, "/stat").c_str(), "r");
  if (stat == nullptr) return cpu;  // without the split
  char line[1024];
  const size_t n = std::fread(line, 1, sizeof(line) - 1, stat);
  std::fclose(stat);
  line[n] = '\0';
  // The second field is the program's name in parentheses, and may hold anything.
  const char* after = std::strrchr(line, ')');
  unsigned long user = 0, system = 0;
  if (after != nullptr &&
      std::sscanf(after, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) ==
          2) {
    const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    cpu.user_s = static_cast<double>(user) / ticks;
    cpu.system_s = static_cast<double>(system) / ticks;
  }
  return cpu;
}

}  // namespace idemd::bench
