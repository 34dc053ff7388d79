// Keys and values as RDB, version 10: what SAVE, BGSAVE, the base of a rewritten log and DUMP
// consist of.
//
// Source    the RDB format as Redis 7.0 writes it (redis/src/rdb.h, rdb.c): opcodes, lengths,
//           string encodings.
// Threads   functions on the caller's string; nothing is shared.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/clock.h"
#include "storage/collection/collection.h"
#include "storage/effect.h"
#include "storage/snapshot/rdb_strings.h"

namespace idemd::storage {

inline constexpr uint16_t kRdbVersion = 10;
void AppendRdbHeader(std::string& out);
void AppendRdbAux(absl::string_view name, absl::string_view value, std::string& out);
// SELECTDB, and how many keys and deadlines come: a hint for whoever loads.
void AppendRdbDatabase(DbIndex db, uint64_t keys, uint64_t with_deadline, std::string& out);
void AppendRdbSelect(DbIndex db, std::string& out);
// One key that holds a string, with its deadline.
void AppendRdbEntry(absl::string_view key, absl::string_view value, int64_t deadline_ms,
                    std::string& out, RdbStrings strings = RdbStrings::kCompressed);
// One key that holds a collection.
void AppendRdbEntry(absl::string_view key, const Collection& collection, int64_t deadline_ms,
                    std::string& out, RdbStrings strings = RdbStrings::kCompressed);
// EOF; the eight bytes of the sum over everything before follow it.
void AppendRdbEnd(std::string& out);

// The payload of DUMP: type, value, version, sum.
std::string DumpPayload(absl::string_view value, RdbStrings strings = RdbStrings::kCompressed);
std::string DumpPayload(const Collection& value, RdbStrings strings = RdbStrings::kCompressed);

}  // namespace idemd::storage
