// IDEMD_CHECK: stops the process when something of ours is not as it must be. Never about bytes a client sent.
#pragma once

#include <cstdio>
#include <cstdlib>

#define IDEMD_CHECK(condition, what)                                                                   \
  do {                                                                                                 \
    if (!(condition)) {                                                                                \
      std::fprintf(stderr, "%s:%d: expected %s: %s\n", __FILE__, __LINE__, #condition,                 \
                   std::string(what).c_str());                                                         \
      std::abort();                                                                                    \
    }                                                                                                  \
  } while (false)
