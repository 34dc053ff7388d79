// Bits of a value by number: bit 0 is the highest one of the first byte, as in Redis.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/commands/context.h"

namespace idemd::server {

// Behind the end all bits are 0.
inline bool BitAt(absl::string_view bytes, uint64_t offset) {
  const uint64_t byte = offset >> 3;
  return byte < bytes.size() &&
         (static_cast<unsigned char>(bytes[byte]) >> (7 - (offset & 7)) & 1) != 0;
}

// The offset in words[i]; with `width`, "#n" means n times that many bits. False, with the error
// written, when it is no number or lies above proto-max-bulk-len.
[[nodiscard]] bool ReadBitOffset(Context& c, size_t i, uint64_t* offset, int64_t width = 0);

}  // namespace idemd::server
