// The functions of the allocator, replaced: by the linker (--wrap), and by the language.
#include "tests/server/allocation/allocations.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace idemd::testing::allocations {
namespace {

std::atomic<int64_t> fail_at{0};  // 0: neither counted nor failed
std::atomic<int64_t> seen{0};
std::atomic<bool> all_behind{false};

[[maybe_unused]] bool Fails() {
  const int64_t at = fail_at.load(std::memory_order_relaxed);
  if (at == 0) return false;
  const int64_t n = seen.fetch_add(1, std::memory_order_relaxed) + 1;
  return n == at || (n > at && all_behind.load(std::memory_order_relaxed));
}

}  // namespace

void FailAt(int64_t n, bool all) {
  seen = 0;
  all_behind = all;
  fail_at = n;
}

void Count() { FailAt(std::numeric_limits<int64_t>::max(), false); }
void Stop() { fail_at = 0; }
int64_t Seen() { return seen; }

#ifdef IDEMD_SANITIZED
bool CanCount() { return false; }
#else
bool CanCount() { return true; }
#endif

}  // namespace idemd::testing::allocations

#ifndef IDEMD_SANITIZED
using idemd::testing::allocations::Fails;

extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t n, size_t bytes);
void* __real_realloc(void* at, size_t bytes);
void* __wrap_malloc(size_t bytes) { return Fails() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(size_t n, size_t bytes) { return Fails() ? nullptr : __real_calloc(n, bytes); }
void* __wrap_realloc(void* at, size_t bytes) { return Fails() ? nullptr : __real_realloc(at, bytes); }
}

void* operator new(size_t bytes) {
  void* const at = Fails() ? nullptr : __real_malloc(bytes);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Fails() ? nullptr : __real_malloc(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Fails() ? nullptr : __real_malloc(bytes); }
void operator delete(void* at) noexcept { std::free(at); }
void operator delete[](void* at) noexcept { std::free(at); }
void operator delete(void* at, size_t) noexcept { std::free(at); }
void operator delete[](void* at, size_t) noexcept { std::free(at); }
#endif
