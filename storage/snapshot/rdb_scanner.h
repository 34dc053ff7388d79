// Lengths and strings of the RDB format in every encoding, and errors that say where and why.
//
//   RdbScanner scan(source);
//   scan.Reading("the key");
//   if (!scan.String(hold, &key)) return scan.failure();
//
// Threads   one.
// Lifetime  as in rdb_input.h; a string that was no plain bytes lies in its Hold.
// Errors    false, for good. failure(): DataLoss for damaged or cut bytes, else the source's.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "storage/snapshot/rdb_format.h"
#include "storage/snapshot/rdb_input.h"

namespace idemd::storage {

// Where a string lies that cannot be read in place.
struct RdbHold {
  std::string bytes;   // put together, or expanded
  std::string packed;  // what was expanded, when it crossed a border itself
  char digits[12];     // an int32 as text
};

class RdbScanner {
 public:
  explicit RdbScanner(RdbReader::Source source) : input_(std::move(source)) {}

  RdbInput& input() { return input_; }

  // What comes next, for errors: "the key". Of which key, once that is known.
  void Reading(const char* what) { reading_ = what; }
  void OfKey(const absl::string_view* key) { key_ = key; }

  [[nodiscard]] bool Byte(uint8_t* byte) { return input_.Byte(byte) || Cut(); }
  template <class Int>
  [[nodiscard]] bool Little(Int* value) {
    return input_.Little(value) || Cut();
  }
  [[nodiscard]] bool Bytes(uint64_t size, absl::string_view* view, std::string& hold) {
    return input_.Bytes(size, view, hold) || Cut();
  }
  [[nodiscard]] bool Length(uint64_t* length) {
    uint8_t first = 0;
    return Byte(&first) && LengthFrom(first, length);
  }
  [[nodiscard]] bool String(RdbHold& hold, absl::string_view* text) {
    uint8_t first = 0;
    if (!Byte(&first)) return false;
    if (first >= kRdbEncoded) return Encoded(first, hold, text);
    uint64_t size = first;  // most are short
    if (first >= kRdbLength14 && !LengthFrom(first, &size)) return false;
    return Bytes(size, text, hold.bytes);
  }

  // All of these return false and keep the first failure.
  bool Damaged(uint64_t offset, absl::string_view why);
  bool Refused(uint64_t offset, absl::string_view what);
  bool Cut();
  const absl::Status& failure() const { return failure_; }

 private:
  bool LengthFrom(uint8_t first, uint64_t* length);
  bool Encoded(uint8_t first, RdbHold& hold, absl::string_view* text);
  bool Expand(RdbHold& hold, absl::string_view* text);
  std::string What() const;
  bool Fail(absl::Status status);

  RdbInput input_;
  const char* reading_ = "";
  const absl::string_view* key_ = nullptr;
  absl::Status failure_;
};

// 'x', with what is no plain text escaped and what is too long cut: a key as errors show it.
std::string QuotedRdbKey(absl::string_view key);

}  // namespace idemd::storage
