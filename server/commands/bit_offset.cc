// Reading of bit offsets.
#include "server/commands/bit_offset.h"

#include "protocol/errors.h"
#include "server/admin/settings.h"

namespace idemd::server {

bool ReadBitOffset(Context& c, size_t i, uint64_t* offset, int64_t width) {
  absl::string_view text = c.words[i];
  int64_t factor = 1;
  if (width > 0 && !text.empty() && text[0] == '#') {
    factor = width;
    text.remove_prefix(1);
  }
  int64_t number = 0;
  const int64_t bytes_max =
      c.services.settings.proto_max_bulk_bytes.load(std::memory_order_relaxed);
  if (!protocol::ParseInt64(text, &number) || __builtin_mul_overflow(number, factor, &number) ||
      number < 0 || number >> 3 >= bytes_max) {
    c.reply.Error(protocol::errors::kBitOffset);
    return false;
  }
  *offset = static_cast<uint64_t>(number);
  return true;
}

}  // namespace idemd::server
