// Functions of Lua 5.1 that LuaJIT has in another way: what they print, take and refuse. math.random is Redis' own.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "server/script/interpreter.h"
#include "server/script/lua.h"
#include "server/script/lua_lexer.h"
#include "server/script/sandbox.h"

namespace idemd::server {
namespace {

// Numbers and pointers as the C library prints them.
int ToString(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (luaL_callmeta(lua, 1, "__tostring") != 0) return 1;
  char text[64];
  switch (lua_type(lua, 1)) {
    case LUA_TNUMBER:
      std::snprintf(text, sizeof text, "%.14g", lua_tonumber(lua, 1));
      lua_pushstring(lua, text);
      return 1;
    case LUA_TSTRING:
      lua_pushvalue(lua, 1);
      return 1;
    case LUA_TBOOLEAN:
      lua_pushstring(lua, lua_toboolean(lua, 1) != 0 ? "true" : "false");
      return 1;
    case LUA_TNIL:
      lua_pushliteral(lua, "nil");
      return 1;
    default:
      std::snprintf(text, sizeof text, "%s: %p", luaL_typename(lua, 1), lua_topointer(lua, 1));
      lua_pushstring(lua, text);
      return 1;
  }
}

// Upvalue: LuaJIT's, which also takes 0b1.
int ToNumber(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_type(lua, 1) == LUA_TSTRING && lua_isnoneornil(lua, 2)) {
    const absl::string_view text = TextAt(lua, 1);
    const size_t zero = text.find('0');
    if (zero != absl::string_view::npos && zero + 1 < text.size() && (text[zero + 1] | 0x20) == 'b') {
      lua_pushnil(lua);
      return 1;
    }
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  return 1;
}

// As Redis': of an error that is a table, its text is given.
int ProtectedCall(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_pcall(lua, lua_gettop(lua) - 1, LUA_MULTRET, 0) == 0) {
    lua_pushboolean(lua, 1);
    lua_insert(lua, 1);
    return lua_gettop(lua);
  }
  if (lua_istable(lua, -1)) {
    lua_pushliteral(lua, "err");
    lua_rawget(lua, -2);
    lua_isstring(lua, -1) != 0 ? lua_replace(lua, -2) : lua_pop(lua, 1);
  }
  lua_pushboolean(lua, 0);
  lua_insert(lua, -2);
  return 2;
}

// Compiles the text at `index` under `name`, and pushes the function, or nil and the error.
int LoadText(lua_State* lua, int index, const char* name) {
  const absl::string_view text = TextAt(lua, index);
  std::string source;
  std::string error;
  bool fits = true;
  {
    LuaTokens tokens;
    if (Tokenize(text, &tokens)) {
      fits = AsLua51(text, tokens, /*one_value=*/false, &source, &error);
    } else {
      source.assign(text.data(), text.size());
    }
  }
  lua_pushnil(lua);
  if (!fits) {
    lua_pushstring(lua, error.c_str());
    return 2;
  }
  if (luaL_loadbufferx(lua, source.data(), source.size(), name, "t") != 0) return 2;
  return 1;
}

int LoadString(lua_State* lua) {
  const char* const text = luaL_checkstring(lua, 1);
  return LoadText(lua, 1, luaL_optstring(lua, 2, text));
}

// load(function): its pieces are put together first, which Lua does piece by piece.
int Load(lua_State* lua) {
  const char* const name = luaL_optstring(lua, 2, "=(load)");
  luaL_checktype(lua, 1, LUA_TFUNCTION);
  lua_settop(lua, 2);
  lua_pushliteral(lua, "");
  for (;;) {
    lua_pushvalue(lua, 1);
    lua_call(lua, 0, 1);
    if (lua_isnil(lua, -1)) break;
    if (lua_isstring(lua, -1) == 0) return luaL_error(lua, "reader function must return a string");
    if (lua_objlen(lua, -1) == 0) break;
    lua_concat(lua, 2);
  }
  return LoadText(lua, 3, name);
}

// As Lua's own, but that no script can switch the collector off for those that come after it.
int CollectGarbage(lua_State* lua) {
  static const char* const kOptions[] = {"stop", "restart", "collect", "count", "step", "setpause", "setstepmul", nullptr};
  static constexpr int kWhat[] = {LUA_GCCOUNT, LUA_GCRESTART, LUA_GCCOLLECT, LUA_GCCOUNT, LUA_GCSTEP, LUA_GCCOUNT, LUA_GCCOUNT};
  const int option = luaL_checkoption(lua, 1, "collect", kOptions);
  const int amount = static_cast<int>(luaL_optinteger(lua, 2, 0));
  const int result = lua_gc(lua, kWhat[option], amount);
  switch (option) {
    case 3:
      lua_pushnumber(lua, result + lua_gc(lua, LUA_GCCOUNTB, 0) / 1024.0);
      return 1;
    case 4:
      lua_pushboolean(lua, result);
      return 1;
    case 5:
    case 6:
      lua_pushnumber(lua, 200);  // what it is, and stays
      return 1;
    default:
      lua_pushnumber(lua, 0);
      return 1;
  }
}

int Assert(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_toboolean(lua, 1) == 0) return luaL_error(lua, "%s", luaL_optstring(lua, 2, "assertion failed!"));
  return lua_gettop(lua);
}

// LuaJIT's %s takes any value, and it has conversions that Lua 5.1 has not. Upvalue: LuaJIT's.
int Format(lua_State* lua) {
  const int top = lua_gettop(lua);
  const absl::string_view format(luaL_checkstring(lua, 1));
  int argument = 1;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') continue;
    if (++i < format.size() && format[i] == '%') continue;
    if (++argument > top) return luaL_argerror(lua, argument, "no value");
    i = format.find_first_not_of("-+ #0123456789.", i);
    const char conversion = i == absl::string_view::npos ? '\0' : format[i];
    if (conversion == '\0' || absl::string_view("cdiouxXeEfgGqs").find(conversion) == absl::string_view::npos)
      return luaL_error(lua, "invalid option '%%%c' to 'format'", conversion);
    conversion == 's' || conversion == 'q' ? static_cast<void>(luaL_checkstring(lua, argument))
                                           : static_cast<void>(luaL_checknumber(lua, argument));
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, top, 1);
  return 1;
}

// LuaJIT's takes a separator. Upvalue: LuaJIT's.
int Repeat(lua_State* lua) {
  luaL_checkstring(lua, 1);
  luaL_checkinteger(lua, 2);
  lua_settop(lua, 2);
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, 2, 1);
  return 1;
}

int SetN(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  return luaL_error(lua, "'setn' is obsolete");
}

// lrand48() of POSIX, as Redis has it so that one seed gives one row of numbers on every machine.
constexpr uint64_t kRandomMultiplier = 0x5DEECE66D;
constexpr uint64_t kRandomStep = 0xB;
constexpr uint64_t kRandomMask = (uint64_t{1} << 48) - 1;
constexpr uint64_t kRandomSeedTail = 0x330E;
constexpr int32_t kRandomMax = 0x7fffffff;

int32_t NextRandom(uint64_t* state) {
  *state = (*state * kRandomMultiplier + kRandomStep) & kRandomMask;
  return static_cast<int32_t>(*state >> 17);
}

int Random(lua_State* lua) {
  const double r = static_cast<double>(NextRandom(&Interpreter::Of(lua).random_state) % kRandomMax) / kRandomMax;
  switch (lua_gettop(lua)) {
    case 0:
      lua_pushnumber(lua, r);
      return 1;
    case 1: {
      const auto high = static_cast<int>(luaL_checkinteger(lua, 1));
      luaL_argcheck(lua, 1 <= high, 1, "interval is empty");
      lua_pushnumber(lua, std::floor(r * high) + 1);
      return 1;
    }
    case 2: {
      const auto low = static_cast<int>(luaL_checkinteger(lua, 1));
      const auto high = static_cast<int>(luaL_checkinteger(lua, 2));
      luaL_argcheck(lua, low <= high, 2, "interval is empty");
      lua_pushnumber(lua, std::floor(r * (static_cast<double>(high) - low + 1)) + low);
      return 1;
    }
    default:
      return luaL_error(lua, "wrong number of arguments");
  }
}

int RandomSeed(lua_State* lua) {
  const auto seed = static_cast<uint32_t>(luaL_checkinteger(lua, 1));
  Interpreter::Of(lua).random_state = (uint64_t{seed} << 16) | kRandomSeedTail;
  return 0;
}

// table[name] = `function` with the old table[name] as its upvalue; the table is on top.
void Wrap(lua_State* lua, const char* name, lua_CFunction function) {
  lua_getfield(lua, -1, name);
  lua_pushcclosure(lua, function, 1);
  lua_setfield(lua, -2, name);
}

// Upvalue: LuaJIT's, which makes no digits of the one count whose opposite is no number of 32 bits.
int ToHex(lua_State* lua) {
  constexpr lua_Integer kDigits = 8;
  if (lua_type(lua, 2) == LUA_TNUMBER && lua_tonumber(lua, 2) == static_cast<lua_Number>(INT32_MIN)) {
    lua_pushinteger(lua, -kDigits);
    lua_replace(lua, 2);
  }
  lua_pushvalue(lua, lua_upvalueindex(1));
  lua_insert(lua, 1);
  lua_call(lua, lua_gettop(lua) - 1, 1);
  return 1;
}

}  // namespace

void MendBaseLibrary(lua_State* lua) {
  SetFunction(lua, "tostring", &ToString);
  Wrap(lua, "tonumber", &ToNumber);
  SetFunction(lua, "pcall", &ProtectedCall);
  SetFunction(lua, "loadstring", &LoadString);
  SetFunction(lua, "load", &Load);
  SetFunction(lua, "collectgarbage", &CollectGarbage);
  SetFunction(lua, "assert", &Assert);
  lua_getfield(lua, -1, "string");
  Wrap(lua, "format", &Format);
  Wrap(lua, "rep", &Repeat);
  lua_getfield(lua, -1, "gmatch");
  lua_setfield(lua, -2, "gfind");
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "table");
  SetFunction(lua, "setn", &SetN);
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "bit");
  Wrap(lua, "tohex", &ToHex);
  lua_pop(lua, 1);
  lua_getfield(lua, -1, "math");
  SetFunction(lua, "random", &Random);
  SetFunction(lua, "randomseed", &RandomSeed);
  lua_getfield(lua, -1, "fmod");
  lua_setfield(lua, -2, "mod");
  lua_pop(lua, 1);
}

}  // namespace idemd::server
