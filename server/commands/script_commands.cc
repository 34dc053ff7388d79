// Scripts: EVAL, EVALSHA, their read-only forms, and SCRIPT.
//
// A script is one unit of storage, like EXEC: its locks are taken first, then it runs, then the unit commits as a whole.
// If all its keys are declared (script_keys.h), these are the locks of its keys; if not, they are all there are.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/clients.h"
#include "server/commands/client_tracking.h"
#include "server/commands/dispatch.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/observe.h"
#include "server/commands/script_calls.h"
#include "server/commands/script_run.h"
#include "server/commands/scripts.h"
#include "server/script/sha1.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;

constexpr absl::string_view kNoScriptError = "NOSCRIPT No matching script. Please use EVAL.";

void RunLocal(Context& c, ScriptThread& thread, ScriptThread::Local& local, const ScriptArguments& arguments,
              bool read_only) {
  const Script& script = *local.script;
  if (script.has_flags) {
    if (const std::string why = FlagsRefusal(c.services, script.flags, read_only); !why.empty()) return c.reply.Error(why);
  }
  const bool all = !script.keys_are_declared.load(std::memory_order_relaxed);
  LockForScript(c, arguments.keys, all);
  const DeclaredKeys declared(c.session, arguments.keys);
  const ScriptCalls::Rules rules{
      .name = script.sha,
      .read_only = read_only || (script.flags & kScriptNoWrites) != 0,
      .allow_oom = script.has_flags && (script.flags & (kScriptAllowOom | kScriptNoWrites)) != 0,
      .all_locked = all || c.unit.HoldsAll(),
      .keys_are_declared = &script.keys_are_declared};
  ScriptCalls calls(c, thread, /*function=*/false, rules);
  if (script.plan != nullptr) {
    if (thread.plan_run.Run(*script.plan, calls, arguments.keys, arguments.args, script.sha, c.reply,
                            &c.error_counted) == PlanRun::Outcome::kDone)
      return;
    calls.Repeat(thread.plan_run.replies());
  }
  std::string error;
  if (!thread.Compile(local, &error)) return c.reply.Error(error);
  RunScript(c, calls, thread.interpreter(), local.handle, arguments, script.sha);
}

void EvalText(Context& c, bool read_only) {
  ShowBeforeItsCommands(c);
  ScriptArguments arguments;
  if (!ReadScriptArguments(c, &arguments)) return;
  ScriptThread& thread = c.services.scripts->ForThisThread();
  std::string error;
  ScriptThread::Local* const local = thread.ForText(c.words[1], &error);
  if (local == nullptr) return c.reply.Error(error);
  RunLocal(c, thread, *local, arguments, read_only);
}

void EvalSha(Context& c, bool read_only) {
  ShowBeforeItsCommands(c);
  if (c.words[1].size() != kSha1HexBytes) return c.reply.Error(kNoScriptError);
  ScriptArguments arguments;
  if (!ReadScriptArguments(c, &arguments)) return;
  ScriptThread& thread = c.services.scripts->ForThisThread();
  ScriptThread::Local* const local = thread.ForSha(c.words[1]);
  if (local == nullptr) return c.reply.Error(kNoScriptError);
  RunLocal(c, thread, *local, arguments, read_only);
}

void Eval(Context& c) { EvalText(c, false); }
void EvalReadOnly(Context& c) { EvalText(c, true); }
void EvalBySha(Context& c) { EvalSha(c, false); }
void EvalByShaReadOnly(Context& c) { EvalSha(c, true); }

// A script that says so in its first line does not write.
bool Writes(const ScriptThread::Local* local) {
  return local == nullptr || !local->script->has_flags || (local->script->flags & kScriptNoWrites) == 0;
}
bool EvalWrites(Services& services, absl::Span<const absl::string_view> words) {
  std::string ignored;
  return Writes(services.scripts->ForThisThread().ForText(words[1], &ignored));
}
bool EvalShaWrites(Services& services, absl::Span<const absl::string_view> words) {
  return words[1].size() != kSha1HexBytes || Writes(services.scripts->ForThisThread().ForSha(words[1]));
}

// --- SCRIPT

void ScriptLoad(Context& c) {
  std::string error;
  const ScriptThread::Local* const local = c.services.scripts->ForThisThread().ForText(c.words[2], &error);
  local == nullptr ? c.reply.Error(error) : c.reply.Bulk(local->script->sha);
}

void ScriptExists(Context& c) {
  c.reply.Array(c.words.size() - 2);
  for (size_t i = 2; i < c.words.size(); ++i)
    c.reply.Integer(c.services.scripts->Find(absl::AsciiStrToLower(c.words[i])) != nullptr ? 1 : 0);
}

void ScriptFlush(Context& c) {
  const bool known = c.words.size() == 2 || (c.words.size() == 3 && (absl::EqualsIgnoreCase(c.words[2], "SYNC") ||
                                                                     absl::EqualsIgnoreCase(c.words[2], "ASYNC")));
  if (!known) return c.reply.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  c.services.scripts->Flush();
  c.reply.Ok();
}

void ScriptKill(Context& c) { ReplyKill(c, /*function=*/false); }

void ScriptDebug(Context& c) {
  for (absl::string_view mode : {"YES", "SYNC", "NO"})
    if (absl::EqualsIgnoreCase(c.words[2], mode)) return c.reply.Ok();
  c.reply.Error("ERR Use SCRIPT DEBUG YES/SYNC/NO");
}

constexpr ArgSpec kEvalArgs[] = {{.name = "script"},
                                 {.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .optional = true, .multiple = true},
                                 {.name = "arg", .optional = true, .multiple = true}};
constexpr ArgSpec kEvalShaArgs[] = {{.name = "sha1"},
                                    {.name = "numkeys", .type = ArgType::kInteger},
                                    {.name = "key", .type = ArgType::kKey, .optional = true, .multiple = true},
                                    {.name = "arg", .optional = true, .multiple = true}};
constexpr ArgSpec kLoadArgs[] = {{.name = "script"}};
constexpr ArgSpec kExistsArgs[] = {{.name = "sha1", .multiple = true}};
constexpr ArgSpec kModes[] = {{.name = "async", .type = ArgType::kToken, .token = "ASYNC", .since = "6.2.0"},
                              {.name = "sync", .type = ArgType::kToken, .token = "SYNC", .since = "6.2.0"}};
constexpr ArgSpec kFlushArgs[] = {{.name = "async", .type = ArgType::kOneOf, .optional = true, .args = kModes}};
constexpr ArgSpec kDebugModes[] = {{.name = "yes", .type = ArgType::kToken, .token = "YES"},
                                   {.name = "sync", .type = ArgType::kToken, .token = "SYNC"},
                                   {.name = "no", .type = ArgType::kToken, .token = "NO"}};
constexpr ArgSpec kDebugArgs[] = {{.name = "mode", .type = ArgType::kOneOf, .args = kDebugModes}};

constexpr CommandSpec kScriptSubcommands[] = {
    {.name = "LOAD", .handler = &ScriptLoad, .arity = 3, .flags = kNoScript | kStale, .group = Group::kScripting,
     .since = "2.6.0", .complexity = "O(N) with N being the length in bytes of the script body.",
     .summary = "Keeps a script for EVALSHA, and tells its SHA1.", .args = kLoadArgs},
    {.name = "EXISTS", .handler = &ScriptExists, .arity = -3, .flags = kNoScript, .group = Group::kScripting,
     .since = "2.6.0",
     .complexity = "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
     .summary = "Tells which scripts are known.", .args = kExistsArgs},
    {.name = "FLUSH", .handler = &ScriptFlush, .arity = -2, .flags = kNoScript, .group = Group::kScripting,
     .since = "2.6.0", .complexity = "O(N) with N being the number of scripts in cache",
     .summary = "Forgets all scripts.", .args = kFlushArgs},
    {.name = "KILL", .handler = &ScriptKill, .arity = 2, .flags = kNoScript | kAllowBusy, .group = Group::kScripting,
     .since = "2.6.0", .summary = "Ends a script that runs too long and has written nothing."},
    {.name = "DEBUG", .handler = &ScriptDebug, .arity = 3, .flags = kNoScript, .group = Group::kScripting,
     .since = "3.2.0", .summary = "Taken, and without effect: scripts run to their end.", .args = kDebugArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kScripting,
     .since = "5.0.0", .summary = "Lists the subcommands."}};

constexpr uint32_t kFlags = kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kAnyKeys;
constexpr const char kComplexity[] = "Depends on the script that is executed.";
constexpr KeySpec kChangedKeys[] = {{.flags = "RW ACCESS UPDATE", .index = 2, .counted = true}};
constexpr KeySpec kReadKeys[] = {{.flags = "RO ACCESS", .index = 2, .counted = true}};
constexpr CommandSpec kScriptCommands[] = {
    {.name = "EVAL", .handler = &Eval, .arity = -3, .flags = kFlags | kMayReplicate, .find_keys = &ScriptKeys,
     .key_specs = kChangedKeys, .may_write = &EvalWrites, .group = Group::kScripting, .since = "2.6.0", .complexity = kComplexity,
     .summary = "Runs a Lua script as one atomic step.", .args = kEvalArgs},
    {.name = "EVALSHA", .handler = &EvalBySha, .arity = -3, .flags = kFlags | kMayReplicate, .find_keys = &ScriptKeys,
     .key_specs = kChangedKeys, .may_write = &EvalShaWrites, .group = Group::kScripting, .since = "2.6.0", .complexity = kComplexity,
     .summary = "Runs a script that the server knows by its SHA1.", .args = kEvalShaArgs},
    {.name = "EVAL_RO", .handler = &EvalReadOnly, .arity = -3, .flags = kFlags | kReadonly, .find_keys = &ScriptKeys,
     .key_specs = kReadKeys, .group = Group::kScripting, .since = "7.0.0", .complexity = kComplexity,
     .summary = "Runs a Lua script that may not write.", .args = kEvalArgs},
    {.name = "EVALSHA_RO", .handler = &EvalByShaReadOnly, .arity = -3, .flags = kFlags | kReadonly,
     .find_keys = &ScriptKeys, .key_specs = kReadKeys, .group = Group::kScripting, .since = "7.0.0",
     .complexity = kComplexity, .summary = "Runs a script that the server knows by its SHA1, which may not write.",
     .args = kEvalShaArgs},
    {.name = "SCRIPT", .arity = -2, .group = Group::kScripting, .since = "2.6.0", .complexity = "Depends on subcommand.",
     .summary = "Looks after the scripts that EVALSHA knows.", .subcommands = kScriptSubcommands}};

}  // namespace

absl::Span<const CommandSpec> ScriptCommands() { return kScriptCommands; }

}  // namespace idemd::server
