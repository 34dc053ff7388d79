// A text that is read as a number prints as the same text (integers) or the same number (doubles).
#include <cstdint>
#include <cstdlib>
#include <string>

#include "protocol/number.h"

using namespace idemd::protocol;  // NOLINT: one short program

namespace {
void Require(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  int64_t integer = 0;
  if (ParseInt64(text, &integer)) Require(std::to_string(integer) == std::string(text));
  uint64_t natural = 0;
  if (ParseUint64(text, &natural)) Require(std::to_string(natural) == std::string(text));
  double number = 0;
  double again = 0;
  if (ParseDouble(text, &number)) {
    // Denormals read back with ERANGE only when they become zero.
    Require(ParseDouble(FormatDouble(number), &again) && again == number);
  }
  long double wide = 0;
  if (ParseLongDouble(text, &wide)) {
    long double back = 0;
    Require(ParseLongDouble(FormatLongDouble(wide), &back));
  }
  int64_t bytes = 0;
  if (ParseMemory(text, &bytes)) Require(bytes >= 0);
  return 0;
}
