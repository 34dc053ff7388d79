// A key with its hash, computed once per request.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "xxhash.h"

namespace idemd::storage {

// The seed is drawn at random per process: clients choose the keys, and must not be able to choose the buckets.
uint64_t HashSeed();

struct HashedKey {
  absl::string_view bytes;
  uint64_t hash = 0;

  HashedKey() = default;
  HashedKey(absl::string_view key, uint64_t h) : bytes(key), hash(h) {}
  explicit HashedKey(absl::string_view key)
      : bytes(key), hash(XXH3_64bits_withSeed(key.data(), key.size(), HashSeed())) {}
};

}  // namespace idemd::storage
