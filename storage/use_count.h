// How often a key is used, for the lfu policies: the counter that Redis' documentation describes (Morris' approximate counting, with decay).
//
// 8 bits that rise with every use, the more rarely the higher they are, and fall with the minutes without one. In an entry they stand
// below the minute in which they were looked at last (16 bits, which come round after 45 days), in the place where the time of the last
// use stands under the other policies: after a change of the policy they mean nothing for a while, as in Redis.
//
// Threads   pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace idemd::storage {

struct UseCounting {
  uint32_t log_factor = 10;    // 0: every use counts
  uint32_t decay_minutes = 1;  // 0: the counter does not fall
};

// What a new key begins with, so that it is not the first to go.
inline constexpr uint8_t kFirstUses = 5;

inline uint32_t PackUses(uint32_t now_s, uint8_t uses) { return (now_s / 60 & 0xffff) << 8 | uses; }

inline uint8_t UsesNow(uint32_t packed, uint32_t now_s, const UseCounting& counting) {
  const uint32_t uses = packed & 0xff, minutes = (now_s / 60 - (packed >> 8)) & 0xffff;
  const uint32_t periods = counting.decay_minutes == 0 ? 0 : minutes / counting.decay_minutes;
  return static_cast<uint8_t>(periods > uses ? 0 : uses - periods);
}

// `random`: any number; the same one always decides alike.
inline uint32_t UseOnce(uint32_t packed, uint32_t now_s, const UseCounting& counting, uint64_t random) {
  uint8_t uses = UsesNow(packed, now_s, counting);
  const uint64_t rarity = uint64_t{std::max(uses, kFirstUses)} - kFirstUses;
  if (uses != UINT8_MAX && random % (rarity * counting.log_factor + 1) == 0) ++uses;
  return PackUses(now_s, uses);
}

}  // namespace idemd::storage
