// What malloc takes for a large object.
#include "storage/memory/size_classes.h"

// There when the process runs on jemalloc, as the server does.
extern "C" size_t nallocx(size_t bytes, int flags) __attribute__((weak));

namespace idemd::storage {

size_t LargeClassBytes(size_t bytes) {
  const size_t with_prefix = bytes + kLargePrefixBytes;
  if (nallocx != nullptr) return nallocx(with_prefix, 0);
  // glibc: a word in front, multiples of 16. Above its mapping threshold whole pages, which is at
  // most 3 % more and not counted: the threshold moves.
  return (with_prefix + 8 + 15) & ~size_t{15};
}

}  // namespace idemd::storage
