// Any bytes give the same requests, rest and error, whole and cut into pieces.
#include <cstdlib>

#include "tests/protocol/resp/feed.h"

using idemd::protocol::Feeder;
using idemd::protocol::ParserLimits;
using idemd::protocol::ParseWhole;

// The first byte says how to cut and which limits hold; the others are what a client sends.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  ParserLimits limits;
  limits.inline_bytes_max = 64;  // within reach of the fuzzer
  limits.unauthenticated = (data[0] & 0x80) != 0;
  const size_t step = (data[0] & 0x7f) % 17 + 1;
  const absl::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  Feeder pieces(limits, 1 + step % 3);
  for (size_t at = 0; at < bytes.size(); at += step) {
    if (!pieces.Add(bytes.substr(at, step))) break;
  }
  if (!(pieces.outcome() == ParseWhole(bytes, limits)) || !pieces.spans_fit()) std::abort();
  return 0;
}
