// The words and letters of a record's line, shared by its writer (text.cc) and its reader
// (text_parse.cc).
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// By RecordState.
inline constexpr absl::string_view kStateWords[] = {"pending", "failed", "done", "consumed"};

inline constexpr char kUpperHex[] = "0123456789ABCDEF";  // percent-encoding
inline constexpr char kLowerHex[] = "0123456789abcdef";  // digest

// RFC 3986's unreserved characters; all others are written %XX.
constexpr bool Unreserved(unsigned char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace idemd::storage
