// What EVAL and FCALL have in common: their words, their locks, and one run in the caller's unit.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/context.h"
#include "server/commands/script_calls.h"
#include "server/commands/scripts.h"

namespace idemd::server {

struct ScriptArguments {
  absl::Span<const absl::string_view> keys;
  absl::Span<const absl::string_view> args;
};

// From the number of keys at words[2] on; false with an error reply.
bool ReadScriptArguments(Context& c, ScriptArguments* arguments);
// The same for the command table.
bool ScriptKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions);
// Monitors see the command before those that it runs.
void ShowBeforeItsCommands(Context& c);
// Why a script with these flags cannot run now, or "".
std::string FlagsRefusal(const Services& services, uint32_t flags, bool read_only);
// Takes the locks and seals the unit, unless EXEC has done that already.
void LockForScript(Context& c, absl::Span<const absl::string_view> keys, bool all);
// Runs what `handle` is to the interpreter, and writes its reply.
void RunScript(Context& c, ScriptCalls& calls, Interpreter& interpreter, int handle, const ScriptArguments& arguments,
               absl::string_view name);
// SCRIPT KILL, FUNCTION KILL.
void ReplyKill(Context& c, bool function);

}  // namespace idemd::server
