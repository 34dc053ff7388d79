// CRC-64 as RDB files and DUMP payloads carry it: the Jones polynomial, reflected, no inversion.
//
// Source    "jones" of Redis' crc64.c: polynomial 0xad93d23594c935a9, start 0; the sum of
// "123456789" is 0xe9c6d914c4b8d9ca. Threads   any.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// The sum over what had the sum `before` (0: nothing) and `bytes`.
uint64_t Crc64(uint64_t before, absl::string_view bytes);

}  // namespace idemd::storage
