// HyperLogLogs: how many different elements were added, in a string that Redis takes too.
//
//   0      4    5        8               16
//   +------+----+--------+---------------+-----------
//   | HYLL | 0/1| unused | count or mark | registers    count: what Count() last gave; its top bit: not known
//   +------+----+--------+---------------+-----------
//
//   dense (0)    16384 registers of 6 bits, the lowest bits of a byte first
//   sparse (1)   runs: 00xxxxxx                  x+1 registers of 0
//                      01xxxxxx xxxxxxxx         the same
//                      1vvvvvxx                  x+1 registers of v+1
//
// An element's hash names a register (14 bits) and a number (the place of the first 1 in the others); a register keeps the largest.
//
// Source    Flajolet et al., "HyperLogLog"; Otmar Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (arXiv 1702.01284);
//           MurmurHash64A; the format as redis/src/hyperloglog.c describes it. The sparse form is changed as Redis changes it,
//           so that the same elements in the same order give the same bytes.
// Threads   functions of their arguments.
// Errors    Status kDamaged: the runs do not cover 16384 registers. Nothing is read outside the string whatever it holds.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::storage::hll {

inline constexpr uint32_t kRegisters = 1u << 14;
inline constexpr size_t kHeaderBytes = 16;
inline constexpr size_t kDenseBytes = kHeaderBytes + kRegisters * 6 / 8;
inline constexpr absl::string_view kDamagedError = "INVALIDOBJ Corrupted HLL object detected";

enum class Status : uint8_t { kSame, kChanged, kDamaged };
using Registers = std::array<uint8_t, kRegisters>;

// Whether it is one at all, by its head; a sparse one may be damaged nevertheless.
bool Looks(absl::string_view value);
// One without elements.
std::string Empty();
bool IsDense(absl::string_view value);

// Of a value that Looks(): the count that is kept in it, if there is one.
bool KnownCount(absl::string_view value, uint64_t* count);
void KeepCount(uint64_t count, std::string& value);
void ForgetCount(std::string& value);

// Puts an element in. A sparse one that would become longer than `sparse_max` bytes becomes dense. The count is not forgotten.
Status Add(absl::string_view element, size_t sparse_max, std::string& value);
// The same for one register and its number.
Status Raise(uint32_t index, uint8_t number, size_t sparse_max, std::string& value);
Status MakeDense(std::string& value);  // kSame: it was

// Raises `registers` to those of the value. False: it is damaged.
[[nodiscard]] bool Merge(absl::string_view value, Registers& registers);
uint64_t Count(const Registers& registers);
// False: it is damaged.
[[nodiscard]] bool Count(absl::string_view value, uint64_t* count);

// The runs of a sparse one as PFDEBUG DECODE shows them: "Z:100 v:3,1 z:2".
std::string Runs(absl::string_view value);

}  // namespace idemd::storage::hll
