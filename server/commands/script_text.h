// A script as it was sent: its first line's flags, its name, and what is known of it before it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/commands/table.h"
#include "server/script/script_flags.h"

namespace idemd::server {

class ScriptPlan;  // script_plan.h

struct Script {
  std::string text;
  std::string sha;  // of the text, 40 hexadecimal digits
  absl::string_view code;  // what Lua compiles: without the words of the first line
  bool has_flags = false;  // it begins with #!lua, and Redis' newer rules hold
  uint32_t flags = 0;
  // Every key that it can touch is one of KEYS: see script_keys.h. Cleared if that proves wrong.
  mutable std::atomic<bool> keys_are_declared{false};
  // How it runs without Lua; null: it does not.
  std::unique_ptr<const ScriptPlan> plan;

  Script();
  ~Script();
};

// Null, and the error reply, when the first line is none of ours. Does not compile it.
std::shared_ptr<Script> ReadScript(const CommandTable& commands, absl::string_view text, std::string* error);

}  // namespace idemd::server
