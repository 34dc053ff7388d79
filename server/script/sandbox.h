// What scripts can reach: Lua 5.1's own library without files, processes and bytecode, the libraries that Redis adds,
// and nothing that one script could change for the next.
//
// Redis' Lua has tables that cannot be written to; LuaJIT has not. Here a protected table is an empty one, whose
// metatable reads from the table behind it and refuses writes; getmetatable(), next(), pairs(), rawget() and those that
// write see through it.
#pragma once

struct lua_State;

namespace idemd::server {

// Opens the libraries, protects them, and makes the protected globals those of everything compiled afterwards. The
// tables behind KEYS and ARGV of scripts are set with SetGlobal().
void OpenSandbox(lua_State* lua, bool for_functions);

// Sets the global `name` to the value on top, and pops it.
void SetGlobal(lua_State* lua, const char* name);

// While a library is loaded, it sees but a part of the globals.
void EnterLoadGlobals(lua_State* lua);
void LeaveLoadGlobals(lua_State* lua);

// Replaces the table on top by a protected one that reads from it.
void Protect(lua_State* lua);

// --- the libraries; each leaves its table on the stack

int OpenRedis(lua_State* lua, bool for_functions);  // redis_library.cc
int OpenRedisForLoad(lua_State* lua);               // the same, for the time that a library is loaded
int OpenStruct(lua_State* lua);                     // struct_library.cc
int OpenMessagePack(lua_State* lua);                // msgpack_library.cc
// Lua 5.1's functions where LuaJIT's differ; changes the tables of base, string, table and math in place.
void MendBaseLibrary(lua_State* lua);  // base_library.cc

}  // namespace idemd::server
