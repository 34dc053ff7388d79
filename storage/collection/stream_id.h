// The ID of a stream's entry: milliseconds and a sequence number, ordered by both.
//
// Source    the stream IDs of Redis 5.0 and later; in files they are sixteen bytes, big-endian, so that bytes sort as IDs do.
// Threads   values.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace idemd::storage {

struct StreamId {
  uint64_t ms = 0;
  uint64_t seq = 0;

  static constexpr size_t kBytes = 16;
  static constexpr StreamId Min() { return {}; }
  static constexpr StreamId Max() { return {UINT64_MAX, UINT64_MAX}; }
  static constexpr size_t kPartCharsMax = 20;
  // Room for an ID as text.
  struct Digits {
    char bytes[2 * kPartCharsMax + 1];
  };

  constexpr auto operator<=>(const StreamId&) const = default;

  // To the ID behind or before this one. False: there is none, and it goes around.
  bool Increment() {
    if (++seq != 0) return true;
    return ++ms != 0;
  }
  bool Decrement() {
    if (seq-- != 0) return true;
    return ms-- != 0;
  }

  // "1700000000000-0".
  absl::string_view Text(Digits& room) const {
    char* at = std::to_chars(room.bytes, room.bytes + kPartCharsMax, ms).ptr;
    *at++ = '-';
    at = std::to_chars(at, at + kPartCharsMax, seq).ptr;
    return {room.bytes, static_cast<size_t>(at - room.bytes)};
  }

  void ToBytes(char (&bytes)[kBytes]) const {
    const uint64_t words[] = {__builtin_bswap64(ms), __builtin_bswap64(seq)};  // the machines are little-endian
    std::memcpy(bytes, words, kBytes);
  }
  // Of kBytes bytes.
  static StreamId FromBytes(const char* bytes) {
    uint64_t words[2];
    std::memcpy(words, bytes, kBytes);
    return {__builtin_bswap64(words[0]), __builtin_bswap64(words[1])};
  }
};

}  // namespace idemd::storage
