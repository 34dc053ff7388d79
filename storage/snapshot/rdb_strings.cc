// The encodings are those that Redis would choose.
#include "storage/snapshot/rdb_strings.h"

#include <lzf.h>

#include <cstring>

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
    AppendByte(kRdbInt8, out);
    AppendLittle(static_cast<int8_t>(value), out);
  } else if (value >= INT16_MIN && value <= INT16_MAX) {
    AppendByte(kRdbInt16, out);
    AppendLittle(static_cast<int16_t>(value), out);
  } else if (value >= INT32_MIN && value <= INT32_MAX) {
    AppendByte(kRdbInt32, out);
    AppendLittle(static_cast<int32_t>(value), out);
  } else {
    return false;
  }
  return true;
}

// The mark, the compressed length, the length, the compressed bytes. As for Redis it must gain four
// bytes at least. False: nothing was appended.
bool AppendCompressed(absl::string_view text, std::string& out) {
  constexpr size_t kHeaderMax = 1 + 5 + 5;
  const size_t at = out.size(), packed_at = at + kHeaderMax;
  const size_t packed_max = text.size() - 4;
  out.resize(packed_at + packed_max);
  const unsigned packed = lzf_compress(text.data(), static_cast<unsigned>(text.size()),
                                       &out[packed_at], static_cast<unsigned>(packed_max));
  out.resize(packed_at + packed);
  if (packed == 0) {
    out.resize(at);
    return false;
  }
  std::string header(1, static_cast<char>(kRdbLzf));  // short: no allocation
  AppendRdbLength(packed, header);
  AppendRdbLength(text.size(), header);
  out.replace(at, kHeaderMax, header);
  return true;
}

}  // namespace

// Longer lengths are big-endian.
void AppendRdbLength(uint64_t n, std::string& out) {
  if (n < kRdbLength14) return AppendByte(static_cast<unsigned>(n), out);
  if (n < 1u << 14) {
    AppendByte(kRdbLength14 | static_cast<unsigned>(n >> 8), out);
    return AppendByte(static_cast<unsigned>(n & 0xff), out);
  }
  const bool wide = n > UINT32_MAX;
  AppendByte(wide ? kRdbLength64 : kRdbLength32, out);
  for (int shift = wide ? 56 : 24; shift >= 0; shift -= 8) AppendByte(n >> shift & 0xff, out);
}

void AppendRdbString(absl::string_view text, RdbStrings strings, std::string& out) {
  if (AppendAsInteger(text, out)) return;
  if (strings == RdbStrings::kCompressed && text.size() >= kRdbCompressMin &&
      text.size() <= kRdbCompressMax && AppendCompressed(text, out))
    return;
  AppendRdbLength(text.size(), out);
  out.append(text.data(), text.size());
}

void AppendRdbDouble(double value, std::string& out) { AppendLittle(value, out); }

}  // namespace idemd::storage
