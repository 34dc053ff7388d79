// A text that owns its bytes: up to 15 of them lie in the object itself, more in an allocation of their own.
//
// Lifetime  plain bytes, to be moved about by copying: who holds one calls Free() once.
// Threads   one, or several that only read.
#pragma once

#include <malloc.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/string_view.h"

namespace idemd::storage {

class ShortText {
 public:
  static constexpr size_t kInlineMax = 15;

  static ShortText Make(absl::string_view text) {
    ShortText made;
    if (text.size() <= kInlineMax) {
      if (!text.empty()) std::memcpy(made.bytes_, text.data(), text.size());
      made.bytes_[kInlineMax] = static_cast<char>(text.size());
      return made;
    }
    auto* const bytes = static_cast<char*>(std::malloc(text.size()));
    if (bytes == nullptr) throw std::bad_alloc();
    std::memcpy(bytes, text.data(), text.size());
    const Far far{bytes, text.size() | kFarMark};
    std::memcpy(made.bytes_, &far, sizeof(far));
    return made;
  }
  void Free() {
    if (is_far()) std::free(far().bytes);
  }

  absl::string_view view() const {
    if (!is_far()) return {bytes_, static_cast<size_t>(bytes_[kInlineMax])};
    const Far text = far();
    return {text.bytes, static_cast<size_t>(text.size & ~kFarMark)};
  }
  // Beside the object, as allocated.
  size_t memory_bytes() const { return is_far() ? malloc_usable_size(far().bytes) : 0; }

 private:
  static constexpr uint64_t kFarMark = uint64_t{0xff} << 56;  // in the last byte, where an inline text has its size
  struct Far {
    char* bytes;
    uint64_t size;
  };
  bool is_far() const { return static_cast<uint8_t>(bytes_[kInlineMax]) == 0xff; }
  Far far() const {
    Far text;
    std::memcpy(&text, bytes_, sizeof(text));
    return text;
  }

  alignas(8) char bytes_[16];
};

}  // namespace idemd::storage
