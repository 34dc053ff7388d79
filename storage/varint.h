// Varints: numbers in groups of seven bits, the lowest first; the high bit of a byte says that another follows (LEB128).
//
// Threads   Pure functions; from any thread. Readers trust their input: it is what WriteVarint() wrote.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idemd::storage {

inline size_t VarintBytes(uint64_t v) {
  return v == 0 ? 1 : (static_cast<size_t>(64 - __builtin_clzll(v)) + 6) / 7;
}

// Returns the place behind it.
inline char* WriteVarint(char* at, uint64_t v) {
  for (; v >= 0x80; v >>= 7) *at++ = static_cast<char>(v | 0x80);
  *at++ = static_cast<char>(v);
  return at;
}

// Moves *at behind it.
inline uint64_t ReadVarint(const char** at) {
  uint64_t v = 0;
  for (uint32_t shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(*(*at)++);
    v |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return v;
  }
}

}  // namespace idemd::storage
