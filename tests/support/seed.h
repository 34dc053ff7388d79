// Where random tests take their seed: IDEMD_SEED, or a fresh one; printed with every failure
// through SCOPED_TRACE.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace idemd {

inline uint64_t TestSeed() {
  const char* given = std::getenv("IDEMD_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
}

inline std::string SeedNote(uint64_t seed) { return "IDEMD_SEED=" + std::to_string(seed); }

}  // namespace idemd
