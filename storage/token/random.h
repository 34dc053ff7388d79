// Bytes from the CSPRNG, drawn in blocks: a call for eight bytes costs a copy, not a system call.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idemd::storage {

// False when the system has no randomness to give.
[[nodiscard]] bool FillRandom(uint8_t* out, size_t bytes);
// For start-up, where going on without randomness would be worse than not starting.
void FillRandomOrDie(uint8_t* out, size_t bytes);

}  // namespace idemd::storage
