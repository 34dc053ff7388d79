// A fuzz target's bytes as choices, numbers and texts, taken from the front one after the other.
// Behind the end all are zero or empty, so that every input means something.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "absl/strings/string_view.h"

namespace idemd::fuzz {

inline void Require(bool holds) {
  if (!holds) std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return rest_.empty(); }
  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }
  bool Flag() { return (Byte() & 1) != 0; }
  // Of up to 65536 choices; a byte says which where they are few.
  size_t Below(size_t limit) {
    const size_t drawn = limit <= 256 ? Byte() : Byte() * size_t{256} + Byte();
    return drawn % limit;
  }
  // A byte says how many bytes follow: numbers of all magnitudes.
  uint64_t Number() {
    uint64_t number = 0;
    for (size_t bytes = Below(9); bytes != 0; --bytes) number = number << 8 | Byte();
    return number;
  }
  // A byte says how long it is.
  absl::string_view Text(size_t most = 255) { return Take(Below(most + 1)); }
  absl::string_view Rest() { return Take(rest_.size()); }

 private:
  absl::string_view Take(size_t bytes) {
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  absl::string_view rest_;
};

}  // namespace idemd::fuzz
