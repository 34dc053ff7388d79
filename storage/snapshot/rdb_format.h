// The numbers of the RDB format: opcodes, string encodings, and the types of values by name.
//
// Source    redis/src/rdb.h of versions 2.6 to 8.0. Threads   any.
#pragma once

#include <cstdint>
#include <string>

namespace idemd::storage {

enum RdbOpcode : uint8_t {
  kRdbSlotInfo = 244,
  kRdbFunction = 245,
  kRdbFunctionOfCandidate = 246,  // as release candidates of Redis 7.0 wrote them
  kRdbModuleAux = 247,
  kRdbIdle = 248,
  kRdbFreq = 249,
  kRdbAux = 250,
  kRdbSizes = 251,
  kRdbDeadlineMs = 252,
  kRdbDeadlineS = 253,
  kRdbSelect = 254,
  kRdbEnd = 255,
};

inline constexpr uint8_t kRdbString = 0;  // the one type of value that is read and written
inline constexpr int kRdbVersionMax = 12;
// From this version on a sum follows the end.
inline constexpr int kRdbVersionSummed = 5;

// The first byte of a length. Its two top bits say what it is: 6 bits of a length, 14 bits, a mark
// for longer ones, or no length but a string in another form.
inline constexpr uint8_t kRdbLength14 = 0x40;
inline constexpr uint8_t kRdbLength32 = 0x80;
inline constexpr uint8_t kRdbLength64 = 0x81;
inline constexpr uint8_t kRdbEncoded = 0xc0;
inline constexpr uint8_t kRdbInt8 = kRdbEncoded | 0;
inline constexpr uint8_t kRdbInt16 = kRdbEncoded | 1;
inline constexpr uint8_t kRdbInt32 = kRdbEncoded | 2;
inline constexpr uint8_t kRdbLzf = kRdbEncoded | 3;

// "a hash (listpack)"; null for a number that no version up to 12 uses.
const char* RdbTypeName(uint8_t type);

// "ReJSON-RL 3": modules sign what they write with nine characters and a version in one number.
std::string RdbModuleName(uint64_t id);

}  // namespace idemd::storage
