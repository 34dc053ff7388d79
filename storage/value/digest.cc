// The digest of a value, by xxHash.
#include "storage/value/digest.h"

#include "xxhash.h"

namespace idemd::storage {

uint64_t ValueDigest(absl::string_view value) { return XXH3_64bits(value.data(), value.size()); }

}  // namespace idemd::storage
