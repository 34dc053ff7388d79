// Draws at random: a number below a limit, or several that differ.
//
// Threads   any; each has a generator of its own, seeded by the system.
// Source    xoshiro256** by Blackman and Vigna; Lemire's bounded draw; Floyd's sampling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace idemd::storage {

// From 0 to limit - 1, each as likely; limit is not 0.
uint64_t DrawBelow(uint64_t limit);
// `count` numbers below `limit` that differ, in no order that means anything; count <= limit.
std::vector<uint32_t> DrawDistinct(uint32_t limit, uint32_t count);

}  // namespace idemd::storage
