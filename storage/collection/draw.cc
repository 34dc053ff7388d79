// The generator and what is made of it.
#include "storage/collection/draw.h"

#include <bit>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "storage/token/random.h"

namespace idemd::storage {
namespace {

struct Generator {
  Generator() { FillRandomOrDie(reinterpret_cast<uint8_t*>(state), sizeof(state)); }

  uint64_t Next() {
    const uint64_t result = std::rotl(state[1] * 5, 7) * 9;
    const uint64_t shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = std::rotl(state[3], 45);
    return result;
  }

  uint64_t state[4];
};

}  // namespace

uint64_t DrawBelow(uint64_t limit) {
  thread_local Generator generator;
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(generator.Next()) * limit;
  if (static_cast<uint64_t>(product) < limit) {
    // Of 2^64 numbers these few would make some results more likely than others.
    const uint64_t surplus = (uint64_t{0} - limit) % limit;
    while (static_cast<uint64_t>(product) < surplus) product = static_cast<Wide>(generator.Next()) * limit;
  }
  return static_cast<uint64_t>(product >> 64);
}

std::vector<uint32_t> DrawDistinct(uint32_t limit, uint32_t count) {
  std::vector<uint32_t> drawn;
  if (count > limit / 4) {
    drawn.resize(limit);
    std::iota(drawn.begin(), drawn.end(), 0u);
    for (uint32_t i = 0; i < count; ++i) std::swap(drawn[i], drawn[i + DrawBelow(limit - i)]);
    drawn.resize(count);
    return drawn;
  }
  drawn.reserve(count);
  absl::flat_hash_set<uint32_t> seen;
  seen.reserve(count);
  for (uint32_t i = limit - count; i < limit; ++i) {
    auto number = static_cast<uint32_t>(DrawBelow(uint64_t{i} + 1));
    if (!seen.insert(number).second) seen.insert(number = i);
    drawn.push_back(number);
  }
  return drawn;
}

}  // namespace idemd::storage
