// Lengths, strings and numbers as RDB has them: what every value in a file is made of.
//
// Source    the RDB format as Redis 7.0 writes it (redis/src/rdb.c).
// Threads   functions on the caller's string; nothing is shared.
// Stack     compressing takes 256 KiB of the caller's.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// Whether strings may be compressed, when that makes them shorter: the setting rdbcompression.
enum class RdbStrings : uint8_t { kPlain, kCompressed };
// Redis tries it from 21 bytes on. Whoever encodes an entry holds a shard's lock, and short texts
// hardly gain: a consumed record's line of 107 bytes loses 7 of them, for 0.15 us.
inline constexpr size_t kRdbCompressMin = 128;
// Longer strings go out as they are, for the same reason: at this size it takes 0.1 ms.
inline constexpr size_t kRdbCompressMax = size_t{64} << 10;

void AppendRdbLength(uint64_t n, std::string& out);
// Small decimal numbers go out as numbers.
void AppendRdbString(absl::string_view text, RdbStrings strings, std::string& out);
// Eight bytes, little-endian.
void AppendRdbDouble(double value, std::string& out);

}  // namespace idemd::storage
