// Builds the globals of scripts.
#include "server/script/sandbox.h"

#include "server/script/lua.h"

extern "C" int luaopen_cjson(lua_State* lua);

namespace idemd::server {
namespace {

constexpr char kReadonly[] = "Attempt to modify a readonly table";

constexpr const char* kBaseNames[] = {"_VERSION", "assert", "collectgarbage", "coroutine", "error", "gcinfo", "getmetatable",
                                      "ipairs", "load", "loadstring", "next", "pairs", "pcall", "rawequal", "rawget",
                                      "rawset", "select", "setmetatable", "tonumber", "tostring", "type", "unpack",
                                      "xpcall"};
constexpr const char* kStringNames[] = {"byte", "char", "dump", "find", "format", "gfind", "gmatch", "gsub", "len",
                                        "lower", "match", "rep", "reverse", "sub", "upper"};
constexpr const char* kTableNames[] = {"concat", "foreach", "foreachi", "getn", "insert", "maxn", "remove", "setn", "sort"};
constexpr const char* kMathNames[] = {"abs", "acos", "asin", "atan", "atan2", "ceil", "cos", "cosh", "deg", "exp", "floor",
                                      "fmod", "frexp", "huge", "ldexp", "log", "log10", "max", "min", "mod", "modf", "pi",
                                      "pow", "rad", "random", "randomseed", "sin", "sinh", "sqrt", "tan", "tanh"};
constexpr const char* kCoroutineNames[] = {"create", "resume", "running", "status", "wrap", "yield"};
constexpr const char* kBitNames[] = {"arshift", "band", "bnot", "bor", "bswap", "bxor", "lshift", "rol", "ror", "rshift",
                                     "tobit", "tohex"};
constexpr const char* kJsonNames[] = {"_NAME", "_VERSION", "decode", "decode_invalid_numbers", "decode_max_depth", "encode",
                                      "encode_invalid_numbers", "encode_keep_buffer", "encode_max_depth",
                                      "encode_number_precision", "encode_sparse_array", "new", "null"};

// Keys of the registry, and the mark in the metatable of a protected table.
char globals_key, load_globals_key, shown_globals_key, shown_string_key, mark_key;

void PushKey(lua_State* lua, char* key) { lua_pushlightuserdata(lua, key); }
void GetRegistered(lua_State* lua, char* key) {
  PushKey(lua, key);
  lua_rawget(lua, LUA_REGISTRYINDEX);
}
// Keeps what is on top, and pops it.
void Register(lua_State* lua, char* key) {
  PushKey(lua, key);
  lua_insert(lua, -2);
  lua_rawset(lua, LUA_REGISTRYINDEX);
}

int RefuseWrite(lua_State* lua) { return luaL_error(lua, kReadonly); }
// For functions that are called to write: Redis says it without the place.
int RefuseQuietly(lua_State* lua) {
  lua_pushstring(lua, kReadonly);
  return lua_error(lua);
}

int MissingGlobal(lua_State* lua) {
  return luaL_error(lua, "Script attempted to access nonexistent global variable '%s'", luaL_optstring(lua, 2, "?"));
}

// Pushes the table behind the protected one at `index`; false (and pushes nothing) when it is not protected.
bool PushReal(lua_State* lua, int index) {
  if (lua_type(lua, index) != LUA_TTABLE || lua_getmetatable(lua, index) == 0) return false;
  lua_rawgeti(lua, -1, 1);
  const bool is_protected = lua_touserdata(lua, -1) == &mark_key;
  lua_pop(lua, 1);
  if (!is_protected) {
    lua_pop(lua, 1);
    return false;
  }
  lua_pushliteral(lua, "__index");
  lua_rawget(lua, -2);
  lua_remove(lua, -2);
  return true;
}

bool IsProtected(lua_State* lua, int index) {
  if (!PushReal(lua, index)) return false;
  lua_pop(lua, 1);
  return true;
}

int GetMetatable(lua_State* lua) {
  luaL_checkany(lua, 1);
  if (lua_type(lua, 1) == LUA_TSTRING) {
    GetRegistered(lua, &shown_string_key);
    return 1;
  }
  if (IsProtected(lua, 1)) {
    GetRegistered(lua, &shown_globals_key);
    lua_pushvalue(lua, LUA_GLOBALSINDEX);
    if (lua_rawequal(lua, 1, -1) == 0) lua_pushnil(lua);
    else lua_pop(lua, 1);
    return 1;
  }
  if (lua_getmetatable(lua, 1) == 0) {
    lua_pushnil(lua);
    return 1;
  }
  luaL_getmetafield(lua, 1, "__metatable");
  return 1;
}

int SetMetatable(lua_State* lua) {
  const int type = lua_type(lua, 2);
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_argcheck(lua, type == LUA_TNIL || type == LUA_TTABLE, 2, "nil or table expected");
  if (IsProtected(lua, 1)) return RefuseQuietly(lua);
  if (luaL_getmetafield(lua, 1, "__metatable") != 0) return luaL_error(lua, "cannot change a protected metatable");
  lua_settop(lua, 2);
  // What would make a table look protected.
  if (type == LUA_TTABLE) {
    lua_rawgeti(lua, 2, 1);
    if (lua_touserdata(lua, -1) == &mark_key) return RefuseQuietly(lua);
    lua_pop(lua, 1);
  }
  lua_setmetatable(lua, 1);
  return 1;
}

int RawGet(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  lua_settop(lua, 2);
  if (PushReal(lua, 1)) lua_replace(lua, 1);
  lua_rawget(lua, 1);
  return 1;
}

int RawSet(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  luaL_checkany(lua, 2);
  luaL_checkany(lua, 3);
  lua_settop(lua, 3);
  if (IsProtected(lua, 1)) return RefuseQuietly(lua);
  lua_rawset(lua, 1);
  return 1;
}

int Next(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  lua_settop(lua, 2);
  if (PushReal(lua, 1)) lua_replace(lua, 1);
  if (lua_next(lua, 1) != 0) return 2;
  lua_pushnil(lua);
  return 1;
}

// Upvalue: LuaJIT's own next(), which loops over plain tables are quick with.
int Pairs(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (IsProtected(lua, 1)) {
    lua_pushcfunction(lua, &Next);
  } else {
    lua_pushvalue(lua, lua_upvalueindex(1));
  }
  lua_pushvalue(lua, 1);
  lua_pushnil(lua);
  return 3;
}

int Insert(lua_State* lua) {
  luaL_checktype(lua, 1, LUA_TTABLE);
  if (IsProtected(lua, 1)) return RefuseQuietly(lua);
  int last = static_cast<int>(lua_objlen(lua, 1)) + 1;
  int at = last;
  switch (lua_gettop(lua)) {
    case 2:
      break;
    case 3:
      at = static_cast<int>(luaL_checkinteger(lua, 2));
      if (at > last) last = at;
      for (; last > at; --last) {
        lua_rawgeti(lua, 1, last - 1);
        lua_rawseti(lua, 1, last);
      }
      break;
    default:
      return luaL_error(lua, "wrong number of arguments to 'insert'");
  }
  lua_rawseti(lua, 1, at);
  return 0;
}

// Copies the named fields of the table below the top into the one on top.
template <size_t n>
void CopyNames(lua_State* lua, const char* const (&names)[n]) {
  for (const char* name : names) {
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
  }
}

// globals[name] = the named fields of the table on top, which is popped. `globals` is below it.
template <size_t n>
void AddLibrary(lua_State* lua, const char* name, const char* const (&names)[n]) {
  lua_createtable(lua, 0, n);
  CopyNames(lua, names);
  lua_setfield(lua, -3, name);
  lua_pop(lua, 1);
}

void Open(lua_State* lua, lua_CFunction opener, const char* name) {
  lua_pushcfunction(lua, opener);
  lua_pushstring(lua, name);
  lua_call(lua, 1, 0);
}

// With the globals on top.
void AddGuards(lua_State* lua) {
  lua_getfield(lua, -1, "next");
  lua_pushcclosure(lua, &Pairs, 1);
  lua_setfield(lua, -2, "pairs");
  SetFunction(lua, "next", &Next);
  SetFunction(lua, "getmetatable", &GetMetatable);
  SetFunction(lua, "setmetatable", &SetMetatable);
  SetFunction(lua, "rawget", &RawGet);
  SetFunction(lua, "rawset", &RawSet);
  // Others that write leave an empty table as it is.
  lua_getfield(lua, -1, "table");
  SetFunction(lua, "insert", &Insert);
  lua_pop(lua, 1);
}

// With the globals on top.
void ProtectField(lua_State* lua, const char* name) {
  lua_getfield(lua, -1, name);
  Protect(lua);
  lua_setfield(lua, -2, name);
}

// Gives the table on top a metatable whose __index is `function`.
void OnMissing(lua_State* lua, lua_CFunction function) {
  lua_createtable(lua, 0, 1);
  SetFunction(lua, "__index", function);
  lua_setmetatable(lua, -2);
}

// Strings find their methods in `string`, and show a metatable that cannot be changed. With the globals on top.
void MendStrings(lua_State* lua) {
  lua_pushliteral(lua, "");
  lua_getmetatable(lua, -1);
  lua_getfield(lua, -3, "string");
  PushReal(lua, -1);
  lua_setfield(lua, -3, "__index");  // the table itself, so that methods are found at once
  lua_createtable(lua, 0, 1);
  lua_insert(lua, -2);
  lua_setfield(lua, -2, "__index");  // what is shown: the protected one
  Protect(lua);
  Register(lua, &shown_string_key);
  lua_pop(lua, 2);
}

}  // namespace

void Protect(lua_State* lua) {
  lua_createtable(lua, 0, 0);
  lua_createtable(lua, 1, 2);
  lua_pushlightuserdata(lua, &mark_key);
  lua_rawseti(lua, -2, 1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  SetFunction(lua, "__newindex", &RefuseWrite);
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

void SetGlobal(lua_State* lua, const char* name) {
  GetRegistered(lua, &globals_key);
  lua_insert(lua, -2);
  lua_pushstring(lua, name);
  lua_insert(lua, -2);
  lua_rawset(lua, -3);
  lua_pop(lua, 1);
}

namespace {

void ReadGlobalsFrom(lua_State* lua, char* key) {
  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_getmetatable(lua, -1);
  GetRegistered(lua, key);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
}

}  // namespace

void EnterLoadGlobals(lua_State* lua) { ReadGlobalsFrom(lua, &load_globals_key); }
void LeaveLoadGlobals(lua_State* lua) { ReadGlobalsFrom(lua, &globals_key); }

void OpenSandbox(lua_State* lua, bool for_functions) {
  Open(lua, &luaopen_base, "");
  Open(lua, &luaopen_table, LUA_TABLIBNAME);
  Open(lua, &luaopen_string, LUA_STRLIBNAME);
  Open(lua, &luaopen_math, LUA_MATHLIBNAME);
  Open(lua, &luaopen_bit, LUA_BITLIBNAME);
  luaJIT_setmode(lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);

  lua_pushvalue(lua, LUA_GLOBALSINDEX);
  lua_createtable(lua, 0, 40);
  CopyNames(lua, kBaseNames);
  lua_remove(lua, -2);
  lua_getglobal(lua, "string");
  AddLibrary(lua, "string", kStringNames);
  lua_getglobal(lua, "table");
  AddLibrary(lua, "table", kTableNames);
  lua_getglobal(lua, "math");
  AddLibrary(lua, "math", kMathNames);
  lua_getglobal(lua, "coroutine");
  AddLibrary(lua, "coroutine", kCoroutineNames);
  lua_getglobal(lua, "bit");
  AddLibrary(lua, "bit", kBitNames);
  lua_pushcfunction(lua, &luaopen_cjson);
  lua_call(lua, 0, 1);
  AddLibrary(lua, "cjson", kJsonNames);
  OpenStruct(lua);
  lua_setfield(lua, -2, "struct");
  OpenMessagePack(lua);
  lua_setfield(lua, -2, "cmsgpack");
  OpenRedis(lua, for_functions);
  lua_setfield(lua, -2, "redis");
  MendBaseLibrary(lua);
  AddGuards(lua);
  for (const char* name : {"string", "table", "math", "coroutine", "bit", "cjson", "struct", "cmsgpack", "redis"})
    ProtectField(lua, name);
  MendStrings(lua);
  OnMissing(lua, &MissingGlobal);
  lua_pushvalue(lua, -1);
  Register(lua, &globals_key);

  lua_createtable(lua, 0, 1);  // what getmetatable(_G) shows
  SetFunction(lua, "__index", &MissingGlobal);
  Protect(lua);
  Register(lua, &shown_globals_key);

  lua_pushvalue(lua, -1);
  Protect(lua);
  lua_pushvalue(lua, -1);
  lua_setfield(lua, -3, "_G");
  lua_replace(lua, LUA_GLOBALSINDEX);
  lua_pop(lua, 1);

  if (!for_functions) return;
  lua_createtable(lua, 0, 4);
  OpenRedisForLoad(lua);
  OnMissing(lua, &MissingGlobal);
  Protect(lua);
  lua_setfield(lua, -2, "redis");
  OnMissing(lua, &MissingGlobal);
  Register(lua, &load_globals_key);
}

}  // namespace idemd::server
