// The rarer encodings, and the texts of errors.
#include "storage/snapshot/rdb_scanner.h"

#include <lzf.h>

#include <charconv>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace idemd::storage {
namespace {

constexpr size_t kShownKeyBytes = 64;
// Three bytes of LZF stand for 264 bytes at most, a byte by itself for less than one.
constexpr uint64_t kLzfGainMax = 88;

template <class Int>
bool ReadNumber(RdbScanner& scan, RdbHold& hold, absl::string_view* text) {
  Int value = 0;
  if (!scan.Little(&value)) return false;
  const auto end = std::to_chars(hold.digits, hold.digits + sizeof(hold.digits), value);
  *text = absl::string_view(hold.digits, static_cast<size_t>(end.ptr - hold.digits));
  return true;
}

}  // namespace

bool RdbScanner::LengthFrom(uint8_t first, uint64_t* length) {
  if (first < kRdbLength14) {
    *length = first;
    return true;
  }
  if (first < kRdbLength32) {
    uint8_t second = 0;
    if (!Byte(&second)) return false;
    *length = static_cast<uint64_t>(first & 0x3f) << 8 | second;
    return true;
  }
  if (first == kRdbLength32) {
    uint32_t bits = 0;
    if (!input_.Big(&bits)) return Cut();
    *length = bits;
    return true;
  }
  if (first == kRdbLength64) return input_.Big(length) || Cut();
  return Damaged(input_.offset() - 1,
                 absl::StrCat("a length was expected, not the byte ", int{first}));
}

bool RdbScanner::Encoded(uint8_t first, RdbHold& hold, absl::string_view* text) {
  switch (first) {
    case kRdbInt8:
      return ReadNumber<int8_t>(*this, hold, text);
    case kRdbInt16:
      return ReadNumber<int16_t>(*this, hold, text);
    case kRdbInt32:
      return ReadNumber<int32_t>(*this, hold, text);
    case kRdbLzf:
      return Expand(hold, text);
    default:
      return Damaged(input_.offset() - 1,
                     absl::StrCat("a string was expected, not the byte ", int{first}));
  }
}

bool RdbScanner::Expand(RdbHold& hold, absl::string_view* text) {
  const uint64_t at = input_.offset() - 1;
  uint64_t packed_size = 0, size = 0;
  absl::string_view packed;
  if (!Length(&packed_size) || !Length(&size)) return false;
  if (!Bytes(packed_size, &packed, hold.packed)) return false;
  // The bytes behind the claim are there now, so it cannot be off by more than their gain.
  if (packed_size == 0 || packed_size > UINT32_MAX || size == 0 || size > UINT32_MAX ||
      size / kLzfGainMax > packed_size)
    return Damaged(at, absl::StrCat("no ", packed_size, " bytes of LZF stand for ", size));
  if (hold.bytes.capacity() > RdbInput::kHoldBytes) hold.bytes = std::string();
  hold.bytes.resize(static_cast<size_t>(size));
  const unsigned expanded = lzf_decompress(packed.data(), static_cast<unsigned>(packed_size),
                                           hold.bytes.data(), static_cast<unsigned>(size));
  if (expanded != size) return Damaged(at, absl::StrCat("LZF of ", size, " bytes was expected"));
  *text = hold.bytes;
  return true;
}

std::string RdbScanner::What() const {
  return key_ == nullptr ? reading_ : absl::StrCat(reading_, " of key ", QuotedRdbKey(*key_));
}

bool RdbScanner::Damaged(uint64_t offset, absl::string_view why) {
  return Fail(absl::DataLossError(
      absl::StrCat("RDB damaged at offset ", offset, ", in ", What(), ": ", why)));
}

bool RdbScanner::Refused(uint64_t offset, absl::string_view what) {
  return Fail(
      absl::UnimplementedError(absl::StrCat("RDB not understood at offset ", offset, ": ", what)));
}

bool RdbScanner::Cut() {
  if (!input_.status().ok()) return Fail(input_.status());
  return Fail(absl::DataLossError(absl::StrCat("RDB cut short: it ends at offset ", input_.offset(),
                                               ", where more of ", What(), " was expected")));
}

bool RdbScanner::Fail(absl::Status status) {
  if (failure_.ok()) failure_ = std::move(status);
  return false;
}

std::string QuotedRdbKey(absl::string_view key) {
  return absl::StrCat("'", absl::CHexEscape(key.substr(0, kShownKeyBytes)), "'",
                      key.size() > kShownKeyBytes ? "..." : "");
}

}  // namespace idemd::storage
