// The server's operator new. Where there is no memory for something large, whoever asked gets std::bad_alloc, and is told so; without memory
// for a little nothing goes on, and Abseil's tables do not survive an exception while they grow: there the process ends, and the next start
// finds all that was acknowledged.
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kLargeBytes = 64 * 1024;

void* Allocate(size_t bytes) noexcept {
  void* const at = std::malloc(bytes);
  if (at == nullptr && bytes < kLargeBytes) {
    std::fputs("idemd: out of memory\n", stderr);
    std::abort();
  }
  return at;
}

}  // namespace

void* operator new(size_t bytes) {
  void* const at = Allocate(bytes);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete[](void* at, size_t) noexcept { std::free(at); }
