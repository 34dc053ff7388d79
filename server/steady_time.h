// The steady clock, for measuring durations inside the process; deadlines of keys are storage/clock.h's.
//
// Threads   any.
#pragma once

#include <chrono>
#include <cstdint>

namespace idemd::server {

inline int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline int64_t SteadyUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace idemd::server
