// Check: our own mistake stops the process, saying what was expected.
//
// It speaks about us, never about bytes that a client sent. (A function: server/check.h has the
// macro of that name for code that logs.)
#pragma once

#include <cstdio>
#include <cstdlib>

namespace idemd::storage {

[[noreturn, gnu::cold, gnu::noinline]] inline void CheckFailed(const char* expected) {
  std::fprintf(stderr, "idemd: storage expected that %s\n", expected);
  std::abort();
}

inline void Check(bool holds, const char* expected) {
  if (!holds) [[unlikely]]
    CheckFailed(expected);
}

}  // namespace idemd::storage
