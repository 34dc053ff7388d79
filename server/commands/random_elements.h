// What SRANDMEMBER, SPOP, HRANDFIELD and ZRANDMEMBER share: how many are wanted, and which they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/commands/context.h"

namespace idemd::server {

// The count at words[i], from -2^63 + 1 on; below 0 the same element may come several times. False: the error was written.
[[nodiscard]] bool ReadDrawCount(Context& c, size_t i, int64_t* count);
// More repetitions than this are refused: others wait meanwhile, and the reply is put together in memory before it leaves.
inline constexpr uint64_t kRepetitionsMax = uint64_t{1} << 20;
// Places below `size`, which is not 0: `count` different ones or, below 0, any. False: an error was written.
[[nodiscard]] bool DrawPlaces(Context& c, size_t size, int64_t count, std::vector<uint32_t>* places);

}  // namespace idemd::server
