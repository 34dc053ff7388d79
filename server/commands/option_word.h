// Option words as numbers, so that telling them apart is a switch: up to eight characters, in any
// case.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::server {

// Setting bit 5 makes capitals small and makes no other character a letter. 0 for a word that is
// empty or too long.
constexpr uint64_t OptionWord(absl::string_view word) {
  if (word.size() > sizeof(uint64_t)) return 0;
  uint64_t packed = 0;
  for (const char c : word) packed = packed << 8 | (static_cast<unsigned char>(c) | 0x20u);
  return packed;
}

}  // namespace idemd::server
