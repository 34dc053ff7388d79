// The bytes of an RDB file. The encodings are those that Redis would choose.
#include "storage/snapshot/rdb_writer.h"

#include <array>
#include <cstring>

#include "absl/strings/str_format.h"
#include "storage/snapshot/crc64.h"

namespace idemd::storage {
namespace {

enum Opcode : uint8_t {
  kOpAux = 250,
  kOpResizeDb = 251,
  kOpExpireMs = 252,
  kOpSelectDb = 254,
  kOpEnd = 255,
};
constexpr char kTypeString = 0;

void AppendByte(unsigned value, std::string& out) { out.push_back(static_cast<char>(value)); }

template <class Int>
void AppendLittle(Int value, std::string& out) {
  char bytes[sizeof(Int)];
  std::memcpy(bytes, &value, sizeof(Int));  // the machines that idemd runs on are little-endian
  out.append(bytes, sizeof(Int));
}

// 6 bits, 14 bits, or a mark and 32 or 64 bits, the last three big-endian.
void AppendLength(uint64_t n, std::string& out) {
  if (n < 1u << 6) return AppendByte(static_cast<unsigned>(n), out);
  if (n < 1u << 14) {
    AppendByte(0x40 | static_cast<unsigned>(n >> 8), out);
    return AppendByte(static_cast<unsigned>(n & 0xff), out);
  }
  const bool wide = n > UINT32_MAX;
  AppendByte(wide ? 0x81 : 0x80, out);
  for (int shift = wide ? 56 : 24; shift >= 0; shift -= 8) AppendByte(n >> shift & 0xff, out);
}

// Decimal numbers of 32 bits, written as anybody would write them, take one, two or four bytes.
bool AppendAsInteger(absl::string_view text, std::string& out) {
  if (text.empty() || text.size() > 11) return false;
  const bool negative = text[0] == '-';
  const absl::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || (digits[0] == '0' && text.size() > 1)) return false;
  int64_t value = 0;
  for (const char c : digits) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  if (negative) value = -value;
  if (value >= INT8_MIN && value <= INT8_MAX) {
    AppendByte(0xc0, out);
    AppendLittle(static_cast<int8_t>(value), out);
  } else if (value >= INT16_MIN && value <= INT16_MAX) {
    AppendByte(0xc1, out);
    AppendLittle(static_cast<int16_t>(value), out);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    AppendByte(0xc2, out);
    AppendLittle(static_cast<int32_t>(value), out);
  } else {
    return false;
  }
  return true;
}

void AppendString(absl::string_view text, std::string& out) {
  if (AppendAsInteger(text, out)) return;
  AppendLength(text.size(), out);
  out.append(text.data(), text.size());
}

}  // namespace

void AppendRdbHeader(std::string& out) { out += absl::StrFormat("REDIS%04d", kRdbVersion); }

void AppendRdbAux(absl::string_view name, absl::string_view value, std::string& out) {
  AppendByte(kOpAux, out);
  AppendString(name, out);
  AppendString(value, out);
}

void AppendRdbSelect(DbIndex db, std::string& out) {
  AppendByte(kOpSelectDb, out);
  AppendLength(db, out);
}

void AppendRdbDatabase(DbIndex db, uint64_t keys, uint64_t with_deadline, std::string& out) {
  AppendRdbSelect(db, out);
  AppendByte(kOpResizeDb, out);
  AppendLength(keys, out);
  AppendLength(with_deadline, out);
}

void AppendRdbEntry(absl::string_view key, absl::string_view value, int64_t deadline_ms,
                    std::string& out) {
  if (deadline_ms != kNoDeadline) {
    AppendByte(kOpExpireMs, out);
    AppendLittle(deadline_ms, out);
  }
  out.push_back(kTypeString);
  AppendString(key, out);
  AppendString(value, out);
}

void AppendRdbEnd(std::string& out) { AppendByte(kOpEnd, out); }

std::string DumpPayload(absl::string_view value) {
  std::string out(1, kTypeString);
  AppendString(value, out);
  AppendLittle(kRdbVersion, out);
  AppendLittle(Crc64(0, out), out);
  return out;
}

}  // namespace idemd::storage
