// What the operating system and the allocator say about this process.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::server {

struct ProcessMemory {
  uint64_t rss_bytes = 0;
  uint64_t system_bytes = 0;  // of the machine
  // The allocator's own figures; without jemalloc all three are rss_bytes.
  uint64_t allocated_bytes = 0;
  uint64_t active_bytes = 0;
  uint64_t resident_bytes = 0;
};
ProcessMemory ReadProcessMemory();

std::string AllocatorName();  // "jemalloc-5.3.0", "libc"
// The allocator's own report, "" when it has none.
std::string AllocatorReport();
// At the start, before there are other threads: makes all arenas that threads will be given. jemalloc makes one when a thread first asks
// for memory, and its 5.3 goes on with a null pointer when it has none for that, so a thread that began late could end the process.
void PrepareAllocator();
// Gives freed pages back to the system.
void PurgeAllocator();

struct ProcessCpu {
  double system_s = 0;
  double user_s = 0;
  double children_system_s = 0;
  double children_user_s = 0;
};
ProcessCpu ReadProcessCpu();

std::string ExecutablePath();
std::string OsName();  // "Linux 6.1.0 x86_64"

// Bytes as INFO shows them: 512B, 1.50K, 2.00M.
std::string HumanBytes(uint64_t bytes);

}  // namespace idemd::server
