// LuaJIT's C interface, and the few words that every file around it uses.
//
// A function that Lua calls leaves by lua_error() like by an exception: it keeps nothing on its own stack that needs
// a destructor.
#pragma once

#include <cstddef>

#include "absl/strings/string_view.h"

// The header of LuaJIT has its own guard against C++ only in lua.hpp, which wants the folder on the path.
extern "C" {
#include <luajit-2.1/lua.h>
#include <luajit-2.1/lauxlib.h>
#include <luajit-2.1/luajit.h>
#include <luajit-2.1/lualib.h>
}

namespace idemd::server {

inline void PushText(lua_State* lua, absl::string_view text) { lua_pushlstring(lua, text.data(), text.size()); }

// The string at `index`; it must be one (not a number), and lives as long as it stays on the stack.
inline absl::string_view TextAt(lua_State* lua, int index) {
  size_t size = 0;
  const char* const text = lua_tolstring(lua, index, &size);
  return {text, size};
}

// Sets t[name] of the table on top, without metamethods.
inline void SetFunction(lua_State* lua, const char* name, lua_CFunction function) {
  lua_pushstring(lua, name);
  lua_pushcfunction(lua, function);
  lua_rawset(lua, -3);
}

}  // namespace idemd::server
