// Commands by name in any case: two words compared, for every request.
//
// A name of up to 16 bytes is two overlapping words of its lower-case bytes, which with its length are the name. Longer ones
// are not kept here.
//
// Threads   built by one, then read by all.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/check.h"

namespace idemd::server {

struct CommandEntry;

class NameIndex {
 public:
  static constexpr size_t kNameBytesMax = 16;

  // `name` is in lower case, and not longer than kNameBytesMax.
  void Add(absl::string_view name, const CommandEntry* entry) {
    IDEMD_CHECK(++used_ <= kSlots / 2, "the index of names has room");
    const Packed packed = Pack(name);
    size_t i = HomeOf(packed, name.size());
    while (slots_[i].entry != nullptr) i = (i + 1) % kSlots;
    slots_[i] = {packed, name.size(), entry};
  }
  const CommandEntry* Find(absl::string_view name) const {
    const Packed packed = Pack(name);
    for (size_t i = HomeOf(packed, name.size());; i = (i + 1) % kSlots) {
      const Slot& slot = slots_[i];
      if (slot.entry == nullptr) return nullptr;
      if (slot.name.low == packed.low && slot.name.high == packed.high && slot.size == name.size()) return slot.entry;
    }
  }

 private:
  static constexpr size_t kSlots = 2048;
  struct Packed {
    uint64_t low = 0, high = 0;
  };
  struct Slot {
    Packed name;
    size_t size = 0;
    const CommandEntry* entry = nullptr;
  };

  // The letters among eight bytes to lower case (a well-known way to compare bytes within a word).
  static uint64_t Lower(uint64_t x) {
    constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
    const uint64_t low_bits = x & ~kHigh;
    const uint64_t from_a = low_bits + (0x80 - 'A') * kOnes, above_z = low_bits + (0x7f - 'Z') * kOnes;
    return x | (~x & kHigh & (from_a ^ above_z)) >> 2;
  }
  template <class Int>
  static Int Load(const char* at) {
    Int value;
    std::memcpy(&value, at, sizeof(Int));
    return value;
  }
  static Packed Pack(absl::string_view name) {
    const char* const at = name.data();
    const size_t size = name.size();
    if (size >= 8) return {Lower(Load<uint64_t>(at)), Lower(Load<uint64_t>(at + size - 8))};
    if (size >= 4) return {Lower(Load<uint32_t>(at) | uint64_t{Load<uint32_t>(at + size - 4)} << 32), 0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < size; ++i) bytes = bytes << 8 | static_cast<uint8_t>(at[i]);
    return {Lower(bytes), 0};
  }
  static size_t HomeOf(const Packed& name, size_t size) {
    constexpr uint64_t kMix = 0x9e3779b97f4a7c15;  // Knuth's multiplicative hash
    return ((name.low ^ (name.high + size) * kMix) * kMix) >> 53;
  }
  static_assert(kSlots == 1 << (64 - 53));

  std::array<Slot, kSlots> slots_;
  size_t used_ = 0;
};

}  // namespace idemd::server
