// What a process has used of the processors, from outside.
//
// The system's clock of another process counts nanoseconds, all threads and those that have ended;
// how much of it was in the kernel is in /proc/PID/stat, in ticks of some 10 ms. Softirq work that
// a process causes on its core counts where the system says so: on loopback the sender pays for
// what the receiver's side of TCP does.
//
// Units     seconds.
// Errors    NotFound where there is no such process.
#pragma once

#include <sys/types.h>
#include <time.h>

#include "absl/status/statusor.h"

namespace idemd::bench {

struct CpuTime {
  double total_s = 0;
  double user_s = 0, system_s = 0;  // ticks

  CpuTime operator-(const CpuTime& since) const {
    return {total_s - since.total_s, user_s - since.user_s, system_s - since.system_s};
  }
};

class ServerCpu {
 public:
  static absl::StatusOr<ServerCpu> Of(pid_t pid);
  // NotFound when the process is gone.
  absl::StatusOr<CpuTime> Read() const;

 private:
  ServerCpu(pid_t pid, clockid_t clock) : pid_(pid), clock_(clock) {}

  pid_t pid_;
  clockid_t clock_;
};

}  // namespace idemd::bench
