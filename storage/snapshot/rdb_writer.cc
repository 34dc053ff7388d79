// The bytes of an RDB file.
#include "storage/snapshot/rdb_writer.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_format.h"

namespace idemd::storage {
namespace {

void AppendByte(unsigned value, std::string& out) { out.push_back(static_cast<char>(value)); }

template <class Int>
void AppendLittle(Int value, std::string& out) {
  char bytes[sizeof(Int)];
  std::memcpy(bytes, &value, sizeof(Int));  // the machines that idemd runs on are little-endian
  out.append(bytes, sizeof(Int));
}

void AppendDeadline(int64_t deadline_ms, std::string& out) {
  if (deadline_ms == kNoDeadline) return;
  AppendByte(kRdbDeadlineMs, out);
  AppendLittle(deadline_ms, out);
}

std::string WithFooter(std::string out) {
  AppendLittle(kRdbVersion, out);
  AppendLittle(Crc64(0, out), out);
  return out;
}

}  // namespace

void AppendRdbHeader(std::string& out) { out += absl::StrFormat("REDIS%04d", kRdbVersion); }

void AppendRdbAux(absl::string_view name, absl::string_view value, std::string& out) {
  AppendByte(kRdbAux, out);
  AppendRdbString(name, RdbStrings::kPlain, out);
  AppendRdbString(value, RdbStrings::kPlain, out);
}

void AppendRdbSelect(DbIndex db, std::string& out) {
  AppendByte(kRdbSelect, out);
  AppendRdbLength(db, out);
}

void AppendRdbDatabase(DbIndex db, uint64_t keys, uint64_t with_deadline, std::string& out) {
  AppendRdbSelect(db, out);
  AppendByte(kRdbSizes, out);
  AppendRdbLength(keys, out);
  AppendRdbLength(with_deadline, out);
}

void AppendRdbEntry(absl::string_view key, absl::string_view value, int64_t deadline_ms,
                    std::string& out, RdbStrings strings) {
  AppendDeadline(deadline_ms, out);
  AppendByte(kRdbString, out);
  AppendRdbString(key, strings, out);
  AppendRdbString(value, strings, out);
}

void AppendRdbEntry(absl::string_view key, const Collection& collection, int64_t deadline_ms,
                    std::string& out, RdbStrings strings) {
  AppendDeadline(deadline_ms, out);
  AppendByte(collection.rdb_type(), out);
  AppendRdbString(key, strings, out);
  collection.AppendRdb(strings, out);
}

void AppendRdbEnd(std::string& out) { AppendByte(kRdbEnd, out); }

std::string DumpPayload(absl::string_view value, RdbStrings strings) {
  std::string out;
  AppendByte(kRdbString, out);
  AppendRdbString(value, strings, out);
  return WithFooter(std::move(out));
}

std::string DumpPayload(const Collection& value, RdbStrings strings) {
  std::string out;
  AppendByte(value.rdb_type(), out);
  value.AppendRdb(strings, out);
  return WithFooter(std::move(out));
}

}  // namespace idemd::storage
