// Globs of any bytes end in time, and hold what their definition says of stars, escapes and case.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "protocol/glob.h"

using idemd::protocol::GlobMatch;

namespace {
void Require(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

// The first byte cuts the rest into pattern and text.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const absl::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  const absl::string_view pattern = rest.substr(0, data[0]);
  const absl::string_view text = rest.substr(pattern.size());
  const bool exact = GlobMatch(pattern, text);
  // A class that excludes or escapes may match in one case only; letters alone never lose a match.
  const bool loose = GlobMatch(pattern, text, true);
  if (pattern.find('[') == absl::string_view::npos) Require(!exact || loose);
  Require(GlobMatch("*", text));
  if (!text.empty() && exact) Require(GlobMatch("*" + std::string(pattern), text));
  std::string escaped;
  for (const char c : text) escaped.append({'\\', c});
  Require(GlobMatch(escaped, text));
  return 0;
}
