// The hash of a key, out of its text or out of its tail.
#include "storage/key/hashed_key.h"

#define XXH_INLINE_ALL  // lengths are known here: 16 bytes are a dozen instructions
#include "storage/token/token.h"
#include "xxhash.h"

namespace idemd::storage {
namespace {

struct Seeds {
  uint64_t seed = RandomU64();
  uint64_t empty_prefix = XXH3_64bits_withSeed("", 0, seed);
};
const Seeds& TheSeeds() {
  static const Seeds seeds;
  return seeds;
}

constexpr uint64_t kKindFactor = 0x9E3779B97F4A7C15;  // odd, with bits all over

}  // namespace

uint64_t HashSeed() { return TheSeeds().seed; }

uint64_t TextHash(absl::string_view text) {
  return XXH3_64bits_withSeed(text.data(), text.size(), HashSeed());
}

uint64_t PrefixHash(absl::string_view prefix) {
  const Seeds& seeds = TheSeeds();
  if (prefix.empty()) return seeds.empty_prefix;
  return XXH3_64bits_withSeed(prefix.data(), prefix.size(), seeds.seed);
}

// The same bytes under another prefix or kind are another key, so both go into the seed.
uint64_t HashOfTail(TailKind kind, const uint64_t* word, uint64_t prefix_hash) {
  const uint64_t seed = prefix_hash ^ static_cast<uint64_t>(kind) * kKindFactor;
  if (kind == TailKind::kToken) return XXH3_64bits_withSeed(word, 24, seed);
  return XXH3_64bits_withSeed(word, 16, seed);
}

HashedKey::HashedKey(absl::string_view key) : bytes(key), tail(ReadTail(key)) {
  hash = tail.kind == TailKind::kNone ? TextHash(key)
                                      : HashOfTail(tail.kind, tail.word, PrefixHash(prefix()));
}

}  // namespace idemd::storage
