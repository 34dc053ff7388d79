// Runs one script in the caller's unit of storage.
#include "server/commands/script_run.h"

#include <memory>

#include "absl/container/inlined_vector.h"
#include "server/clients.h"
#include "server/commands/dispatch.h"
#include "server/commands/observe.h"

namespace idemd::server {

bool ReadScriptArguments(Context& c, ScriptArguments* arguments) {
  int64_t keys = 0;
  if (!c.Int(2, &keys)) return false;
  const absl::Span<const absl::string_view> rest = c.words.subspan(3);
  if (keys > static_cast<int64_t>(rest.size())) {
    c.reply.Error("ERR Number of keys can't be greater than number of args");
    return false;
  }
  if (keys < 0) {
    c.reply.Error("ERR Number of keys can't be negative");
    return false;
  }
  arguments->keys = rest.subspan(0, static_cast<size_t>(keys));
  arguments->args = rest.subspan(static_cast<size_t>(keys));
  return true;
}

bool ScriptKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  positions.clear();
  int64_t keys = 0;
  if (words.size() < 3 || !protocol::ParseInt64(words[2], &keys)) return false;
  if (keys < 0 || keys > static_cast<int64_t>(words.size()) - 3) return false;
  for (int i = 0; i < static_cast<int>(keys); ++i) positions.push_back(3 + i);
  return true;
}

void ShowBeforeItsCommands(Context& c) {
  if (c.services.clients.monitors() == 0) return;
  c.session.shown.push_back(std::make_shared<const std::string>(MonitorLine(c.session, c.words)));
}

std::string FlagsRefusal(const Services& services, uint32_t flags, bool read_only) {
  const bool writes = (flags & kScriptNoWrites) == 0;
  if (read_only && writes) return "ERR Can not execute a script with write flag using *_ro command.";
  if (!writes) return {};
  if (std::string refusal = WriteRefusal(services); !refusal.empty()) return refusal;
  if ((flags & kScriptAllowOom) == 0 && services.store.OverMemoryLimit())
    return "OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'";
  return {};
}

void LockForScript(Context& c, absl::Span<const absl::string_view> keys, bool all) {
  if (c.unit.sealed()) return;
  if (all) {
    c.unit.LockAll();
  } else if (keys.size() == 1) {
    c.unit.Lock(c.Key(3));
  } else {
    absl::InlinedVector<storage::HashedKey, 4> hashed;
    for (absl::string_view key : keys) hashed.emplace_back(key);
    c.unit.LockKeys(hashed);
  }
  c.unit.Seal();
}

void RunScript(Context& c, ScriptCalls& calls, Interpreter& interpreter, int handle, const ScriptArguments& arguments,
               absl::string_view name) {
  ScriptRun run{.host = calls, .keys = arguments.keys, .args = arguments.args, .name = name};
  interpreter.Run(handle, run, c.reply);
  c.error_counted = run.error_counted;
}

void ReplyKill(Context& c, bool function) {
  switch (c.services.scripts->Kill(function)) {
    case Scripts::KillVerdict::kKilled:
      return c.reply.Ok();
    case Scripts::KillVerdict::kNothingRuns:
      return c.reply.Error("NOTBUSY No scripts in execution right now.");
    case Scripts::KillVerdict::kHasWritten:
      return c.reply.Error(
          "UNKILLABLE Sorry the script already executed write commands against the dataset. You can either wait the "
          "script termination or kill the server in a hard way using the SHUTDOWN NOSAVE command.");
    case Scripts::KillVerdict::kIsFunction:
    case Scripts::KillVerdict::kIsScript:
      return c.reply.Error(c.services.scripts->BusyError());
  }
}

}  // namespace idemd::server
