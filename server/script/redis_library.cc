// The table `redis` of scripts: commands, replies, and what is left of replication and debugging.
#include <cmath>
#include <cstdio>
#include <string>

#include "server/script/interpreter.h"
#include "server/script/lua.h"
#include "server/script/reply.h"
#include "server/script/sandbox.h"
#include "server/script/sha1.h"
#include "server/version.h"

namespace idemd::server {
namespace {

constexpr size_t kNumberBytes = 32;  // of "%.17g"
constexpr int kReplicateAof = 1;
constexpr int kReplicateReplica = 2;

// Raises the text as scripts see errors of this library.
int Raise(lua_State* lua, absl::string_view text) {
  PushErrorTable(lua, text, false);
  return lua_error(lua);
}

// As "%.17g" prints it.
absl::string_view NumberText(double number, char* at) {
  constexpr double kIntegersBelow = 1e15;
  if (number == std::floor(number) && std::fabs(number) < kIntegersBelow && number != 0) {
    auto left = static_cast<uint64_t>(std::fabs(number));
    char* const end = at + kNumberBytes;
    char* p = end;
    for (; left != 0; left /= 10) *--p = static_cast<char>('0' + left % 10);
    if (number < 0) *--p = '-';
    return {p, static_cast<size_t>(end - p)};
  }
  return {at, static_cast<size_t>(std::snprintf(at, kNumberBytes, "%.17g", number))};
}

// Why the arguments are no command, or null; otherwise they are in `words`.
const char* ReadWords(lua_State* lua, Interpreter& in) {
  const int count = lua_gettop(lua);
  if (count == 0) return "ERR Please specify at least one argument for this redis lib call";
  in.call_words.clear();
  in.number_texts.clear();
  size_t numbers = 0;
  for (int i = 1; i <= count; ++i) numbers += lua_type(lua, i) == LUA_TNUMBER ? 1 : 0;
  in.number_texts.resize(numbers * kNumberBytes);
  char* text = in.number_texts.data();
  for (int i = 1; i <= count; ++i) {
    switch (lua_type(lua, i)) {
      case LUA_TSTRING:
        in.call_words.push_back(TextAt(lua, i));
        break;
      case LUA_TNUMBER:
        in.call_words.push_back(NumberText(lua_tonumber(lua, i), text));
        text += kNumberBytes;
        break;
      default:
        return "ERR Lua redis lib command arguments must be strings or integers";
    }
  }
  return nullptr;
}

int CallCommand(lua_State* lua, bool raises) {
  Interpreter& in = Interpreter::Of(lua);
  if (in.run() == nullptr) return Raise(lua, "ERR redis.call/pcall can only be called inside a script invocation");
  if (const char* const why = ReadWords(lua, in); why != nullptr) {
    PushErrorTable(lua, why, false);
    return raises ? lua_error(lua) : 1;
  }
  in.call_reply.clear();
  in.run()->host.Call(in.call_words, in.run()->resp, in.call_reply);
  lua_settop(lua, 0);  // there may be as many arguments as there is room for
  PushReply(lua, in.call_reply.data());
  return raises && in.call_reply[0] == '-' ? lua_error(lua) : 1;
}
int Call(lua_State* lua) { return CallCommand(lua, true); }
int ProtectedCall(lua_State* lua) { return CallCommand(lua, false); }

int Sha1(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "ERR wrong number of arguments");
  size_t size = 0;
  const char* const text = lua_tolstring(lua, 1, &size);
  PushText(lua, Sha1Hex(absl::string_view(text == nullptr ? "" : text, text == nullptr ? 0 : size)));
  return 1;
}

bool OneString(lua_State* lua) { return lua_gettop(lua) == 1 && lua_type(lua, 1) == LUA_TSTRING; }

int StatusReply(lua_State* lua) {
  if (!OneString(lua)) {
    PushErrorTable(lua, "ERR wrong number or type of arguments", false);
    return 1;
  }
  lua_createtable(lua, 0, 1);
  lua_pushvalue(lua, 1);
  lua_setfield(lua, -2, "ok");
  return 1;
}

int ErrorReply(lua_State* lua) {
  if (!OneString(lua)) {
    PushErrorTable(lua, "ERR wrong number or type of arguments", false);
    return 1;
  }
  lua_createtable(lua, 0, 1);
  PushText(lua, ErrorReplyText(lua_tostring(lua, 1)));
  lua_setfield(lua, -2, "err");
  return 1;
}

int Log(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count < 2) return Raise(lua, "ERR redis.log() requires two arguments or more.");
  if (lua_isnumber(lua, 1) == 0) return Raise(lua, "ERR First argument must be a number (log level).");
  const auto level = static_cast<int>(lua_tonumber(lua, 1));
  if (level < 0 || level > 3) return Raise(lua, "ERR Invalid debug level.");
  luaL_Buffer line;
  luaL_buffinit(lua, &line);
  bool first = true;
  for (int i = 2; i <= count; ++i) {
    size_t size = 0;
    const char* const text = lua_tolstring(lua, i, &size);
    if (text == nullptr) continue;
    if (!first) luaL_addchar(&line, ' ');
    luaL_addlstring(&line, text, size);
    first = false;
  }
  luaL_pushresult(&line);
  if (ScriptHost* const host = Interpreter::Of(lua).host(); host != nullptr) host->Log(level, TextAt(lua, -1));
  return 0;
}

int SetResp(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "ERR redis.setresp() requires one argument.");
  const auto version = static_cast<int>(lua_tonumber(lua, 1));
  if (version != 2 && version != 3) return Raise(lua, "ERR RESP version must be 2 or 3.");
  if (ScriptRun* const run = Interpreter::Of(lua).run(); run != nullptr) run->resp = version;
  return 0;
}

int SetRepl(lua_State* lua) {
  if (lua_gettop(lua) != 1) return Raise(lua, "ERR redis.set_repl() requires two arguments.");
  const auto flags = static_cast<int>(lua_tonumber(lua, 1));
  if ((flags & ~(kReplicateAof | kReplicateReplica)) != 0)
    return Raise(lua, "ERR Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.");
  return 0;
}

int ReplicateCommands(lua_State* lua) {
  lua_pushboolean(lua, 1);
  return 1;
}

int Breakpoint(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

int Debug(lua_State*) { return 0; }

int AclCheckCommand(lua_State* lua) {
  Interpreter& in = Interpreter::Of(lua);
  if (in.run() == nullptr) return Raise(lua, "ERR redis.acl_check_cmd can only be called inside a script invocation");
  if (const char* const why = ReadWords(lua, in); why != nullptr) return Raise(lua, why);
  const ScriptHost::Verdict verdict = in.run()->host.MayCall(in.call_words);
  if (verdict == ScriptHost::Verdict::kUnknown)
    return Raise(lua, "ERR Invalid command passed to redis.acl_check_cmd()");
  lua_pushboolean(lua, verdict == ScriptHost::Verdict::kAllowed);
  return 1;
}

void SetNumber(lua_State* lua, const char* name, int value) {
  lua_pushnumber(lua, value);
  lua_setfield(lua, -2, name);
}

void AddCommonFields(lua_State* lua) {
  SetFunction(lua, "log", &Log);
  SetNumber(lua, "LOG_DEBUG", 0);
  SetNumber(lua, "LOG_VERBOSE", 1);
  SetNumber(lua, "LOG_NOTICE", 2);
  SetNumber(lua, "LOG_WARNING", 3);
  PushText(lua, kRedisVersion);
  lua_setfield(lua, -2, "REDIS_VERSION");
  int parts[3] = {0, 0, 0};
  std::sscanf(std::string(kRedisVersion).c_str(), "%d.%d.%d", &parts[0], &parts[1], &parts[2]);
  SetNumber(lua, "REDIS_VERSION_NUM", parts[0] << 16 | parts[1] << 8 | parts[2]);
}

}  // namespace

int RegisterFunction(lua_State* lua);  // function_registration.cc

int OpenRedis(lua_State* lua, bool for_functions) {
  lua_createtable(lua, 0, 24);
  AddCommonFields(lua);
  SetFunction(lua, "call", &Call);
  SetFunction(lua, "pcall", &ProtectedCall);
  SetFunction(lua, "sha1hex", &Sha1);
  SetFunction(lua, "error_reply", &ErrorReply);
  SetFunction(lua, "status_reply", &StatusReply);
  SetFunction(lua, "setresp", &SetResp);
  SetFunction(lua, "set_repl", &SetRepl);
  SetFunction(lua, "acl_check_cmd", &AclCheckCommand);
  if (!for_functions) {
    SetFunction(lua, "replicate_commands", &ReplicateCommands);
    SetFunction(lua, "breakpoint", &Breakpoint);
    SetFunction(lua, "debug", &Debug);
  }
  SetNumber(lua, "REPL_NONE", 0);
  SetNumber(lua, "REPL_AOF", kReplicateAof);
  SetNumber(lua, "REPL_SLAVE", kReplicateReplica);
  SetNumber(lua, "REPL_REPLICA", kReplicateReplica);
  SetNumber(lua, "REPL_ALL", kReplicateAof | kReplicateReplica);
  return 1;
}

int OpenRedisForLoad(lua_State* lua) {
  lua_createtable(lua, 0, 8);
  AddCommonFields(lua);
  SetFunction(lua, "register_function", &RegisterFunction);
  return 1;
}

}  // namespace idemd::server
