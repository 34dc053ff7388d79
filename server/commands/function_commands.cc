// Functions: FCALL, FCALL_RO, and FUNCTION with what keeps libraries.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/glob.h"
#include "server/commands/client_tracking.h"
#include "server/commands/functions.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/script_run.h"
#include "server/commands/scripts.h"
#include "server/script/script_flags.h"
#include "storage/snapshot/rdb_functions.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;

// --- calls

void CallFunction(Context& c, bool read_only) {
  ShowBeforeItsCommands(c);
  ScriptThread& thread = c.services.scripts->ForThisThread();
  const FunctionThread::Function* const function = thread.functions.Find(c.words[1]);
  if (function == nullptr) return c.reply.Error("ERR Function not found");
  int64_t ignored = 0;
  if (!c.Int(2, &ignored, "ERR Bad number of keys provided")) return;
  ScriptArguments arguments;
  if (!ReadScriptArguments(c, &arguments)) return;
  if (const std::string why = FlagsRefusal(c.services, function->flags, read_only); !why.empty())
    return c.reply.Error(why);
  LockForScript(c, arguments.keys, /*all=*/true);
  const DeclaredKeys declared(c.session, arguments.keys);
  const ScriptCalls::Rules rules{
      .name = function->name,
      .read_only = read_only || (function->flags & kScriptNoWrites) != 0,
      .allow_oom = (function->flags & (kScriptAllowOom | kScriptNoWrites)) != 0,
      .all_locked = true};
  ScriptCalls calls(c, thread, /*function=*/true, rules);
  RunScript(c, calls, thread.functions.interpreter(), function->handle, arguments, function->name);
}

bool CallWrites(Services& services, absl::Span<const absl::string_view> words) {
  const FunctionThread::Function* const function = services.scripts->ForThisThread().functions.Find(words[1]);
  return function == nullptr || (function->flags & kScriptNoWrites) == 0;
}

void Call(Context& c) { CallFunction(c, false); }
void CallReadOnly(Context& c) { CallFunction(c, true); }

// --- FUNCTION

// Libraries change under all locks: a snapshot has them as of its cut, and the log in their place.
void LogChange(Context& c, std::initializer_list<absl::string_view> words) {
  c.services.store.stats().Add(storage::StorageStats::kChanges);
  storage::EffectLog& log = c.services.store.log();
  if (!log.wants_effects()) return;
  std::string text;
  protocol::Writer command(text, 2);
  command.Array(words.size());
  for (absl::string_view word : words) command.Bulk(word);
  storage::Effect effect;
  effect.kind = storage::EffectKind::kCommand;
  effect.db = c.db();
  effect.value = text;
  c.session.need = std::max(c.session.need, log.Append({effect}));
}

void Load(Context& c) {
  bool replace = false;
  for (size_t i = 2; i + 1 < c.words.size(); ++i) {
    if (!absl::EqualsIgnoreCase(c.words[i], "REPLACE"))
      return c.reply.Error(absl::StrCat("ERR Unknown option given: ", c.words[i]));
    replace = true;
  }
  Scripts& scripts = *c.services.scripts;
  std::string name;
  c.unit.LockAll();
  const std::string why =
      scripts.functions().Load(scripts.ForThisThread().functions, c.words.back(), replace, &name);
  if (!why.empty()) return c.reply.Error(absl::StrCat("ERR ", why));
  c.unit.Mark();
  LogChange(c, {"FUNCTION", "LOAD", "REPLACE", c.words.back()});
  c.reply.Bulk(name);
}

void Delete(Context& c) {
  c.unit.LockAll();
  if (!c.services.scripts->functions().Delete(c.words[2])) return c.reply.Error("ERR Library not found");
  c.unit.Mark();
  LogChange(c, {"FUNCTION", "DELETE", c.words[2]});
  c.reply.Ok();
}

void Flush(Context& c) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  if (c.words.size() == 3 && !absl::EqualsIgnoreCase(c.words[2], "SYNC") && !absl::EqualsIgnoreCase(c.words[2], "ASYNC"))
    return c.reply.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  c.unit.LockAll();
  c.services.scripts->functions().Flush();
  c.unit.Mark();
  LogChange(c, {"FUNCTION", "FLUSH"});
  c.reply.Ok();
}

void ReplyFunction(Context& c, const LibraryFunction& function) {
  c.reply.Map(3);
  c.reply.Bulk("name");
  c.reply.Bulk(function.name);
  c.reply.Bulk("description");
  function.has_description ? c.reply.Bulk(function.description) : c.reply.Null();
  c.reply.Bulk("flags");
  size_t flags = 0;
  for (const ScriptFlagName& known : kScriptFlagNames) flags += (function.flags & known.flag) != 0 ? 1 : 0;
  c.reply.Set(flags);
  for (const ScriptFlagName& known : kScriptFlagNames)
    if ((function.flags & known.flag) != 0) c.reply.Simple(known.name);
}

void List(Context& c) {
  bool with_code = false;
  const absl::string_view* pattern = nullptr;
  for (size_t i = 2; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    if (absl::EqualsIgnoreCase(word, "WITHCODE") && !with_code) {
      with_code = true;
    } else if (absl::EqualsIgnoreCase(word, "LIBRARYNAME") && pattern == nullptr) {
      if (++i == c.words.size()) return c.reply.Error("ERR library name argument was not given");
      pattern = &c.words[i];
    } else {
      return c.reply.Error(absl::StrCat("ERR Unknown argument ", word));
    }
  }
  Libraries shown = c.services.scripts->functions().All();
  for (auto it = shown.begin(); it != shown.end();) {
    if (pattern == nullptr || protocol::GlobMatch(*pattern, it->first, /*ignore_case=*/true)) ++it;
    else it = shown.erase(it);
  }
  c.reply.Array(shown.size());
  for (const auto& [name, library] : shown) {
    c.reply.Map(with_code ? 4 : 3);
    c.reply.Bulk("library_name");
    c.reply.Bulk(name);
    c.reply.Bulk("engine");
    c.reply.Bulk("LUA");
    c.reply.Bulk("functions");
    c.reply.Array(library->functions.size());
    for (const LibraryFunction& function : library->functions) ReplyFunction(c, function);
    if (!with_code) continue;
    c.reply.Bulk("library_code");
    c.reply.Bulk(library->text);
  }
}

void Stats(Context& c) {
  const Scripts& scripts = *c.services.scripts;
  Scripts::Shown running;
  const bool runs = scripts.ShowFunction(&running);
  if (!runs && scripts.busy()) return c.reply.Error(scripts.BusyError());
  c.reply.Map(2);
  c.reply.Bulk("running_script");
  if (runs) {
    c.reply.Map(3);
    c.reply.Bulk("name");
    c.reply.Bulk(running.name);
    c.reply.Bulk("command");
    c.reply.Array(running.words.size());
    for (const std::string& word : running.words) c.reply.Bulk(word);
    c.reply.Bulk("duration_ms");
    c.reply.Integer(running.running_ms);
  } else {
    c.reply.Null();
  }
  const Libraries libraries = c.services.scripts->functions().All();
  size_t functions = 0;
  for (const auto& [name, library] : libraries) functions += library->functions.size();
  c.reply.Bulk("engines");
  c.reply.Map(1);
  c.reply.Bulk("LUA");
  c.reply.Map(2);
  c.reply.Bulk("libraries_count");
  c.reply.Integer(static_cast<int64_t>(libraries.size()));
  c.reply.Bulk("functions_count");
  c.reply.Integer(static_cast<int64_t>(functions));
}

void Dump(Context& c) {
  std::vector<absl::string_view> texts;
  const Libraries libraries = c.services.scripts->functions().All();
  for (const auto& [name, library] : libraries) texts.push_back(library->text);
  c.reply.Bulk(storage::DumpFunctions(texts));
}

void Restore(Context& c) {
  if (c.words.size() > 4) return ReplySubcommandSyntaxError(c);
  RestorePolicy policy = RestorePolicy::kAppend;
  if (c.words.size() == 4) {
    if (absl::EqualsIgnoreCase(c.words[3], "FLUSH")) policy = RestorePolicy::kFlush;
    else if (absl::EqualsIgnoreCase(c.words[3], "REPLACE")) policy = RestorePolicy::kReplace;
    else if (!absl::EqualsIgnoreCase(c.words[3], "APPEND"))
      return c.reply.Error("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  }
  std::vector<std::string> texts;
  if (!storage::ReadFunctionDump(c.words[2], &texts)) return c.reply.Error(errors::kDumpVersionOrSum);
  Scripts& scripts = *c.services.scripts;
  c.unit.LockAll();
  const std::string why = scripts.functions().Restore(scripts.ForThisThread().functions, texts, policy);
  if (!why.empty()) return c.reply.Error(absl::StrCat("ERR ", why));
  c.unit.Mark();
  LogChange(c, {"FUNCTION", "RESTORE", c.words[2], c.words.size() == 4 ? c.words[3] : "APPEND"});
  c.reply.Ok();
}

void Kill(Context& c) { ReplyKill(c, /*function=*/true); }

constexpr ArgSpec kCallArgs[] = {{.name = "function"},
                                 {.name = "numkeys", .type = ArgType::kInteger},
                                 {.name = "key", .type = ArgType::kKey, .optional = true, .multiple = true},
                                 {.name = "arg", .optional = true, .multiple = true}};
constexpr ArgSpec kLoadArgs[] = {{.name = "replace", .type = ArgType::kToken, .token = "REPLACE", .optional = true},
                                 {.name = "function-code"}};
constexpr ArgSpec kDeleteArgs[] = {{.name = "library-name"}};
constexpr ArgSpec kModes[] = {{.name = "async", .type = ArgType::kToken, .token = "ASYNC"},
                              {.name = "sync", .type = ArgType::kToken, .token = "SYNC"}};
constexpr ArgSpec kFlushArgs[] = {{.name = "async", .type = ArgType::kOneOf, .optional = true, .args = kModes}};
constexpr ArgSpec kListArgs[] = {{.name = "library-name-pattern", .token = "LIBRARYNAME", .optional = true},
                                 {.name = "withcode", .type = ArgType::kToken, .token = "WITHCODE", .optional = true}};
constexpr ArgSpec kPolicies[] = {{.name = "flush", .type = ArgType::kToken, .token = "FLUSH"},
                                 {.name = "append", .type = ArgType::kToken, .token = "APPEND"},
                                 {.name = "replace", .type = ArgType::kToken, .token = "REPLACE"}};
constexpr ArgSpec kRestoreArgs[] = {
    {.name = "serialized-value"},
    {.name = "policy", .type = ArgType::kOneOf, .optional = true, .args = kPolicies}};

constexpr CommandSpec kFunctionSubcommands[] = {
    {.name = "LOAD", .handler = &Load, .arity = -3, .flags = kWrite | kDenyOom | kNoScript | kAnyKeys, .group = Group::kScripting,
     .since = "7.0.0", .complexity = "O(1) (considering compilation time is redundant)",
     .summary = "Takes in a library of functions.", .args = kLoadArgs},
    {.name = "DELETE", .handler = &Delete, .arity = 3, .flags = kWrite | kNoScript | kAnyKeys, .group = Group::kScripting,
     .since = "7.0.0", .summary = "Removes a library with its functions.", .args = kDeleteArgs},
    {.name = "LIST", .handler = &List, .arity = -2, .flags = kNoScript, .group = Group::kScripting, .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions", .summary = "Shows the libraries and their functions.",
     .args = kListArgs},
    {.name = "STATS", .handler = &Stats, .arity = 2, .flags = kNoScript | kAllowBusy, .group = Group::kScripting,
     .since = "7.0.0", .summary = "Tells what runs now, and how many there are."},
    {.name = "DUMP", .handler = &Dump, .arity = 2, .flags = kNoScript, .group = Group::kScripting, .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions",
     .summary = "Gives all libraries as bytes that FUNCTION RESTORE takes."},
    {.name = "RESTORE", .handler = &Restore, .arity = -3, .flags = kWrite | kDenyOom | kNoScript | kAnyKeys,
     .group = Group::kScripting, .since = "7.0.0",
     .complexity = "O(N) where N is the number of functions on the payload",
     .summary = "Takes in what FUNCTION DUMP gave.", .args = kRestoreArgs},
    {.name = "FLUSH", .handler = &Flush, .arity = -2, .flags = kWrite | kNoScript | kAnyKeys, .group = Group::kScripting,
     .since = "7.0.0", .complexity = "O(N) where N is the number of functions deleted",
     .summary = "Removes all libraries.", .args = kFlushArgs},
    {.name = "KILL", .handler = &Kill, .arity = 2, .flags = kNoScript | kAllowBusy, .group = Group::kScripting,
     .since = "7.0.0", .summary = "Ends a function that runs too long and has written nothing."},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kScripting,
     .since = "7.0.0", .summary = "Lists the subcommands."}};

constexpr uint32_t kFlags = kNoScript | kStale | kSkipMonitor | kNoMandatoryKeys | kAnyKeys;
constexpr const char kComplexity[] = "Depends on the function that is executed.";
constexpr KeySpec kChangedKeys[] = {{.flags = "RW ACCESS UPDATE", .index = 2, .counted = true}};
constexpr KeySpec kReadKeys[] = {{.flags = "RO ACCESS", .index = 2, .counted = true}};
constexpr CommandSpec kFunctionCommands[] = {
    {.name = "FCALL", .handler = &Call, .arity = -3, .flags = kFlags | kMayReplicate, .find_keys = &ScriptKeys,
     .key_specs = kChangedKeys, .may_write = &CallWrites, .group = Group::kScripting, .since = "7.0.0",
     .complexity = kComplexity, .summary = "Runs a function.", .args = kCallArgs},
    {.name = "FCALL_RO", .handler = &CallReadOnly, .arity = -3, .flags = kFlags | kReadonly, .find_keys = &ScriptKeys,
     .key_specs = kReadKeys, .group = Group::kScripting, .since = "7.0.0", .complexity = kComplexity,
     .summary = "Runs a function that may not write.", .args = kCallArgs},
    {.name = "FUNCTION", .arity = -2, .group = Group::kScripting, .since = "7.0.0",
     .complexity = "Depends on subcommand.", .summary = "Looks after libraries of functions.",
     .subcommands = kFunctionSubcommands}};

}  // namespace

absl::Span<const CommandSpec> FunctionCommands() { return kFunctionCommands; }

}  // namespace idemd::server
