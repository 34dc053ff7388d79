// A short fingerprint of a value, for callers who compare long values without sending them.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// XXH3-64 without a seed: the same everywhere and for ever, and so no protection against crafted
// values.
uint64_t ValueDigest(absl::string_view value);

}  // namespace idemd::storage
