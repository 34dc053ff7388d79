// redis.register_function(): what a library says of each of its functions while it is loaded.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/script/interpreter.h"
#include "server/script/lua.h"
#include "server/script/reply.h"
#include "server/script/script_flags.h"

namespace idemd::server {

int RegisterFunction(lua_State* lua);

namespace {

int Raise(lua_State* lua, absl::string_view text) {
  PushErrorTable(lua, absl::StrCat("ERR ", text), false);
  return lua_error(lua);
}

struct Registration {
  const char* why = nullptr;  // it cannot be
  int name = 0;               // places on the stack; 0: not given
  int description = 0;
  int callback = 0;
  uint32_t flags = 0;
};

// The flags in the table at `index`.
bool ReadFlags(lua_State* lua, int index, uint32_t* flags) {
  for (int i = 1;; ++i) {
    lua_rawgeti(lua, index, i);
    const int type = lua_type(lua, -1);
    if (type == LUA_TNIL) break;
    const uint32_t flag = type == LUA_TSTRING ? ScriptFlagOf(TextAt(lua, -1)) : 0;
    if (flag == 0) return false;
    *flags |= flag;
    lua_pop(lua, 1);
  }
  lua_pop(lua, 1);
  return true;
}

// One field of register_function{...}: its name at -2, the value at -1; kept where it is when it is of use.
const char* ReadField(lua_State* lua, Registration* r) {
  if (lua_isstring(lua, -2) == 0) return "named argument key given to redis.register_function is not a string";
  // A number would become a text where it is, and lua_next() lose its way.
  const absl::string_view key = lua_type(lua, -2) == LUA_TSTRING ? TextAt(lua, -2) : "";
  const int value = lua_gettop(lua);
  if (key == "function_name") {
    if (lua_isstring(lua, value) == 0) return "function_name argument given to redis.register_function must be a string";
    lua_replace(lua, 2);
    r->name = 2;
  } else if (key == "description") {
    if (lua_isstring(lua, value) == 0) return "description argument given to redis.register_function must be a string";
    lua_replace(lua, 3);
    r->description = 3;
  } else if (key == "callback") {
    if (lua_type(lua, value) != LUA_TFUNCTION) return "callback argument given to redis.register_function must be a function";
    lua_replace(lua, 4);
    r->callback = 4;
  } else if (key == "flags") {
    if (lua_type(lua, value) != LUA_TTABLE)
      return "flags argument to redis.register_function must be a table representing function flags";
    if (!ReadFlags(lua, value, &r->flags)) return "unknown flag given";
    lua_pop(lua, 1);
  } else {
    return "unknown argument given to redis.register_function";
  }
  return nullptr;
}

Registration ReadNamed(lua_State* lua) {
  Registration r;
  if (lua_type(lua, 1) != LUA_TTABLE) {
    r.why = "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments).";
    return r;
  }
  lua_settop(lua, 4);
  for (lua_pushnil(lua); lua_next(lua, 1) != 0;) {
    r.why = ReadField(lua, &r);
    if (r.why != nullptr) return r;
  }
  if (r.name == 0) r.why = "redis.register_function must get a function name argument";
  else if (r.callback == 0) r.why = "redis.register_function must get a callback argument";
  return r;
}

Registration ReadPositional(lua_State* lua) {
  Registration r;
  r.name = 1;
  r.callback = 2;
  if (lua_isstring(lua, 1) == 0) r.why = "first argument to redis.register_function must be a string";
  else if (lua_type(lua, 2) != LUA_TFUNCTION) r.why = "second argument to redis.register_function must be a function";
  return r;
}

}  // namespace

int RegisterFunction(lua_State* lua) {
  Interpreter& in = Interpreter::Of(lua);
  if (!in.loading()) return Raise(lua, "redis.register_function can only be called on FUNCTION LOAD command");
  const int count = lua_gettop(lua);
  if (count < 1 || count > 2) return Raise(lua, "wrong number of arguments to redis.register_function");
  const Registration r = count == 1 ? ReadNamed(lua) : ReadPositional(lua);
  if (r.why != nullptr) return Raise(lua, r.why);
  lua_pushvalue(lua, r.callback);
  RegisteredFunction function{.name = TextAt(lua, r.name), .flags = r.flags, .handle = luaL_ref(lua, LUA_REGISTRYINDEX)};
  function.has_description = r.description != 0;
  if (function.has_description) function.description = TextAt(lua, r.description);
  {
    const std::string why = in.host()->Register(function);
    if (why.empty()) return 0;
    luaL_unref(lua, LUA_REGISTRYINDEX, function.handle);
    PushErrorTable(lua, absl::StrCat("ERR ", why), false);
  }
  return lua_error(lua);
}

}  // namespace idemd::server
