// IDEMD_CHECK: our own mistake stops the process, saying what was expected.
//
// It speaks about us, never about bytes that a client sent.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace idemd::storage {

[[noreturn, gnu::cold, gnu::noinline]] inline void CheckFailed(const char* expected, const char* file, int line) {
  std::fprintf(stderr, "idemd: %s:%d: expected %s\n", file, line, expected);
  std::abort();
}

}  // namespace idemd::storage

#define IDEMD_CHECK(condition) \
  (__builtin_expect(static_cast<bool>(condition), 1) ? void() : ::idemd::storage::CheckFailed(#condition, __FILE__, __LINE__))
