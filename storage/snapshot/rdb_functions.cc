// Writes and reads the payload of FUNCTION DUMP.
#include "storage/snapshot/rdb_functions.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "storage/snapshot/crc64.h"
#include "storage/snapshot/rdb_format.h"
#include "storage/snapshot/rdb_scanner.h"
#include "storage/snapshot/rdb_strings.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::storage {
namespace {

constexpr size_t kFooterBytes = sizeof(uint16_t) + sizeof(uint64_t);

template <typename Int>
void AppendLittle(Int value, std::string& out) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

template <typename Int>
Int LittleAt(const char* at) {
  Int value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

void AppendRdbFunctions(absl::Span<const absl::string_view> texts, std::string& out) {
  for (absl::string_view text : texts) {
    out += static_cast<char>(kRdbFunction);
    AppendRdbString(text, RdbStrings::kCompressed, out);
  }
}

std::string DumpFunctions(absl::Span<const absl::string_view> texts) {
  std::string out;
  AppendRdbFunctions(texts, out);
  AppendLittle(kRdbVersion, out);
  AppendLittle(Crc64(0, out), out);
  return out;
}

bool ReadFunctionDump(absl::string_view payload, std::vector<std::string>* texts) {
  if (payload.size() < kFooterBytes) return false;
  absl::string_view body = payload.substr(0, payload.size() - kFooterBytes);
  const char* const footer = body.data() + body.size();
  if (LittleAt<uint16_t>(footer) > kRdbVersionMax) return false;
  if (LittleAt<uint64_t>(footer + sizeof(uint16_t)) != Crc64(0, payload.substr(0, payload.size() - sizeof(uint64_t))))
    return false;
  RdbScanner scan([&body](size_t) { return std::exchange(body, absl::string_view()); });
  RdbHold hold;
  while (!scan.input().AtEnd()) {
    uint8_t kind = 0;
    absl::string_view text;
    if (!scan.Byte(&kind) || kind != kRdbFunction || !scan.String(hold, &text)) return false;
    texts->emplace_back(text);
  }
  return true;
}

}  // namespace idemd::storage
