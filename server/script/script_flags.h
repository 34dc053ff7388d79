// What a script says of itself: in its first line (#!lua flags=no-writes), or where a function is registered.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::server {

enum ScriptFlag : uint32_t {
  kScriptNoWrites = 1u << 0,
  kScriptAllowOom = 1u << 1,
  kScriptAllowStale = 1u << 2,
  kScriptNoCluster = 1u << 3,
  kScriptAllowCrossSlotKeys = 1u << 4,
};

struct ScriptFlagName {
  ScriptFlag flag;
  absl::string_view name;
};
inline constexpr ScriptFlagName kScriptFlagNames[] = {{kScriptNoWrites, "no-writes"},
                                                      {kScriptAllowOom, "allow-oom"},
                                                      {kScriptAllowStale, "allow-stale"},
                                                      {kScriptNoCluster, "no-cluster"},
                                                      {kScriptAllowCrossSlotKeys, "allow-cross-slot-keys"}};

// 0: there is no such flag.
inline uint32_t ScriptFlagOf(absl::string_view name) {
  for (const ScriptFlagName& known : kScriptFlagNames)
    if (known.name == name) return known.flag;
  return 0;
}

}  // namespace idemd::server
