// The process's hash seed.
#include "storage/hashed_key.h"

#include "storage/token/token.h"

namespace idemd::storage {

uint64_t HashSeed() {
  static const uint64_t seed = RandomU64();
  return seed;
}

}  // namespace idemd::storage
