// A conversation as a table: each line with the reply that Redis 7.0.15 gives to it.
#pragma once

#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/harness.h"

namespace idemd::testing {

using Script = std::vector<std::pair<const char*, const char*>>;

inline void Play(Harness& server, const Script& script) {
  for (const auto& [line, reply] : script) EXPECT_EQ(server.Do(line), reply) << line;
}

inline void PlayFresh(const Script& script) {
  Harness server;
  Play(server, script);
}

}  // namespace idemd::testing
