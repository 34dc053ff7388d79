// Keys and other identifiers made from a number: the same number gives the same key in every
// process, so nothing is remembered.
//
// A number's bits go through a mixer first, so that neighbours are nothing alike and order in time
// tells nothing about order in a table. Distinct numbers give distinct keys, or do so as surely as
// distinct random UUIDs do.
//
// Threads   pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::bench {

enum class KeySpace : uint8_t {
  kRedis,  // key:000000000042, as redis-benchmark's
  kUuid,   // 36 characters, version 4
  kToken,  // 32 characters of base64url that begin with an expiry, as IDEM.TOKEN's
  kName,   // 36 characters that are no number in any notation
};

inline constexpr size_t kUuidChars = 36, kTokenChars = 32, kNameChars = 36, kDigits = 12;
inline constexpr size_t kFingerprintChars = 16;

[[nodiscard]] bool ReadKeySpace(absl::string_view name, KeySpace* space);
size_t KeyChars(KeySpace space);
// Writes KeyChars(space) characters.
void WriteKey(KeySpace space, uint64_t number, char* out);

// Writes kUuidChars characters.
void WriteUuid(uint64_t number, char* out);
// Writes kFingerprintChars hexadecimal digits.
void WriteFingerprint(uint64_t number, char* out);
// Writes kDigits decimal digits: the number modulo 10^12.
void WriteDigits(uint64_t number, char* out);

// The finalizer of SplitMix64 (Steele, Lea and Flood): a bijection whose output bits look random.
inline uint64_t Mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// SplitMix64 itself: enough for the choice of keys, and a few cycles a number.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() { return Mix(state_ += 0x9e3779b97f4a7c15); }
  // In [0, n), n > 0. The bias is below n / 2^64.
  uint64_t Below(uint64_t n) {
    return static_cast<uint64_t>(static_cast<unsigned __int128>(Next()) * n >> 64);
  }
  // True with this probability.
  bool Chance(double probability) {
    return static_cast<double>(Next() >> 11) * 0x1p-53 < probability;
  }

 private:
  uint64_t state_;
};

}  // namespace idemd::bench
