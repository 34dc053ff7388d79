// A Lua state's life: memory, compiling, running, and what errors look like to the client.
#include "server/script/interpreter.h"

#include <cstdlib>
#include <new>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/check.h"
#include "server/script/lua.h"
#include "server/script/lua_lexer.h"
#include "server/script/reply.h"
#include "server/script/sandbox.h"

namespace idemd::server {
namespace {

// The message handler: makes a table of every error, with the place where it was raised.
int Describe(lua_State* lua) {
  lua_Debug place;
  bool known = lua_getstack(lua, 1, &place) != 0 && lua_getinfo(lua, "Sl", &place) != 0;
  if (known && *place.what == 'C') known = lua_getstack(lua, 2, &place) != 0 && lua_getinfo(lua, "Sl", &place) != 0;
  if (!lua_istable(lua, 1)) {
    const char* text = lua_tostring(lua, 1);
    if (text == nullptr) text = lua_isnil(lua, 1) ? "nil" : luaL_typename(lua, 1);
    lua_createtable(lua, 0, 3);
    lua_pushfstring(lua, "ERR %s", text);
    lua_setfield(lua, -2, "err");
    lua_replace(lua, 1);
  }
  lua_settop(lua, 1);
  if (known) {
    lua_pushliteral(lua, "source");
    lua_pushstring(lua, place.source);
    lua_rawset(lua, 1);
    lua_pushliteral(lua, "line");
    lua_pushnumber(lua, place.currentline);
    lua_rawset(lua, 1);
  }
  return 1;
}

void PushWords(lua_State* lua, absl::Span<const absl::string_view> words) {
  lua_createtable(lua, static_cast<int>(words.size()), 0);
  int i = 0;
  for (absl::string_view word : words) {
    PushText(lua, word);
    lua_rawseti(lua, -2, ++i);
  }
}

// What goes from C++ through lua_pcall() to a function that Lua calls.
struct MainArguments {
  Interpreter* self;
  int handle;
  ScriptRun* run;
  protocol::Writer* reply;
};

struct CompileArguments {
  absl::string_view source;
  const char* chunk;
  int handle;
};

int CompileMain(lua_State* lua) {
  auto* const arguments = static_cast<CompileArguments*>(lua_touserdata(lua, 1));
  lua_settop(lua, 0);
  const absl::string_view source = arguments->source;
  if (luaL_loadbufferx(lua, source.data(), source.size(), arguments->chunk, "t") != 0) return lua_error(lua);
  arguments->handle = luaL_ref(lua, LUA_REGISTRYINDEX);
  return 0;
}

// Calls `main` with a pointer, protected; false leaves the error on the stack.
bool Protected(lua_State* lua, lua_CFunction main, void* argument) { return lua_cpcall(lua, main, argument) == 0; }

}  // namespace

void* Interpreter::Allocate(void* self, void* block, size_t old_bytes, size_t new_bytes) {
  auto* const in = static_cast<Interpreter*>(self);
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const size_t used = in->used_bytes_.load(kRelaxed);
  if (block == nullptr) old_bytes = 0;
  if (new_bytes == 0) {
    std::free(block);
    in->used_bytes_.store(used - old_bytes, kRelaxed);
    return nullptr;
  }
  if (new_bytes > old_bytes && used - old_bytes + new_bytes > in->bytes_max_) return nullptr;
  void* const fresh = std::realloc(block, new_bytes);
  if (fresh != nullptr) in->used_bytes_.store(used - old_bytes + new_bytes, kRelaxed);
  // In lua_newstate(), which does not survive it.
  IDEMD_CHECK(fresh != nullptr || in->lua_ != nullptr, "there is memory for a thread's first script");
  return fresh;
}

Interpreter& Interpreter::Of(lua_State* lua) {
  void* self = nullptr;
  lua_getallocf(lua, &self);
  return *static_cast<Interpreter*>(self);
}

Interpreter::Interpreter(Kind kind, std::atomic<size_t>& used_bytes, size_t memory_bytes_max)
    : kind_(kind), used_bytes_(used_bytes) {
  std::random_device entropy;
  random_state = (uint64_t{entropy()} << 16) | 0x330E;
  lua_ = lua_newstate(&Allocate, this);
  if (lua_ == nullptr) throw std::bad_alloc();
  lua_atpanic(lua_, [](lua_State*) -> int {
    IDEMD_CHECK(false, "Lua has memory for what surrounds a script");
    return 0;
  });
  const auto open = [](lua_State* lua) {
    const bool for_functions = *static_cast<const bool*>(lua_touserdata(lua, 1));
    lua_settop(lua, 0);
    OpenSandbox(lua, for_functions);
    return 0;
  };
  bool for_functions = kind == Kind::kFunctions;
  if (!Protected(lua_, open, &for_functions)) {
    lua_close(lua_);
    throw std::bad_alloc();
  }
  lua_sethook(lua_, &OnCount, LUA_MASKCOUNT, kStepsPerLook);
  bytes_max_ = memory_bytes_max;
}

Interpreter::~Interpreter() { lua_close(lua_); }

int Interpreter::Compile(absl::string_view text, std::string* error) {
  const bool scripts = kind_ == Kind::kScripts;
  const char* const chunk = scripts ? "@user_script" : "@user_function";
  std::string source;
  LuaTokens tokens;
  if (!Tokenize(text, &tokens)) {
    source.assign(text.data(), text.size());
  } else if (!AsLua51(text, tokens, /*one_value=*/true, &source, error)) {
    *error = absl::StrCat(chunk + 1, ":", *error);
    return kNone;
  }
  CompileArguments arguments{source, chunk, kNone};
  if (Protected(lua_, &CompileMain, &arguments)) return arguments.handle;
  const char* const said = lua_tostring(lua_, -1);
  *error = said == nullptr ? "?" : said;
  lua_pop(lua_, 1);
  return kNone;
}

void Interpreter::Forget(int handle) {
  if (handle != kNone) luaL_unref(lua_, LUA_REGISTRYINDEX, handle);
}

// Making room may need some for a moment, and there is nobody to tell that there is none.
void Interpreter::Collect() {
  const size_t bytes_max = std::exchange(bytes_max_, SIZE_MAX);
  lua_gc(lua_, LUA_GCCOLLECT, 0);
  bytes_max_ = bytes_max;
}

int Interpreter::Main(lua_State* lua) {
  const MainArguments& arguments = *static_cast<MainArguments*>(lua_touserdata(lua, 1));
  ScriptRun& run = *arguments.run;
  lua_settop(lua, 0);
  lua_pushcfunction(lua, &Describe);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, arguments.handle);
  int count = 0;
  PushWords(lua, run.keys);
  if (arguments.self->kind_ == Kind::kScripts) {
    SetGlobal(lua, "KEYS");
    PushWords(lua, run.args);
    SetGlobal(lua, "ARGV");
  } else {
    PushWords(lua, run.args);
    count = 2;
  }
  if (lua_pcall(lua, count, 1, 1) == 0) {
    WriteReply(lua, run.resp, *arguments.reply, &run.error_counted);
  } else {
    arguments.self->ReplyError(run, *arguments.reply);
  }
  return 0;
}

// The error is on top: a table of Describe(), or a text where Lua could not call it.
void Interpreter::ReplyError(ScriptRun& run, protocol::Writer& reply) {
  if (!lua_istable(lua_, -1)) {
    const char* const text = lua_tostring(lua_, -1);
    return reply.Error(absl::StrCat("ERR ", text == nullptr ? "?" : text, " script: ", run.name));
  }
  const int table = lua_gettop(lua_);
  lua_getfield(lua_, table, "ignore_error_stats_update");
  run.error_counted = lua_toboolean(lua_, -1) != 0;
  lua_getfield(lua_, table, "err");
  lua_getfield(lua_, table, "source");
  lua_getfield(lua_, table, "line");
  const char* const text = lua_tostring(lua_, -3);
  const char* const source = lua_tostring(lua_, -2);
  const char* const line = lua_tostring(lua_, -1);
  std::string message = text == nullptr ? "ERR unknown error" : text;
  if (source != nullptr && line != nullptr) absl::StrAppend(&message, " script: ", run.name, ", on ", source, ":", line, ".");
  reply.Error(message);
}

void Interpreter::Run(int handle, ScriptRun& run, protocol::Writer& reply) {
  run_ = &run;
  host_ = &run.host;
  const size_t mark = reply.buffer().size();
  MainArguments arguments{this, handle, &run, &reply};
  if (!Protected(lua_, &Main, &arguments)) {
    const char* const text = lua_tostring(lua_, -1);
    reply.buffer().resize(mark);
    reply.Error(absl::StrCat("ERR ", text == nullptr ? "?" : text, " script: ", run.name));
  }
  lua_settop(lua_, 0);
  run_ = nullptr;
  host_ = nullptr;
  if (lua_gethookmask(lua_) != LUA_MASKCOUNT) lua_sethook(lua_, &OnCount, LUA_MASKCOUNT, kStepsPerLook);
  if (memory_bytes() > bytes_max_ / 2) Collect();
}

// Once ended, a script is ended at every line that it still runs: it may catch errors as it likes.
void Interpreter::OnCount(lua_State* lua, lua_Debug*) {
  ScriptHost* const host = Of(lua).host_;
  const absl::string_view end = host == nullptr ? absl::string_view() : host->Step();
  if (end.empty()) return;
  lua_sethook(lua, &OnCount, LUA_MASKLINE | LUA_MASKCOUNT, 1);
  PushErrorTable(lua, end, false);
  lua_error(lua);
}

namespace {

struct LoadArguments {
  int handle;
  std::string* error;
};

}  // namespace

int Interpreter::LoadMain(lua_State* lua) {
  const LoadArguments& arguments = *static_cast<LoadArguments*>(lua_touserdata(lua, 1));
  lua_settop(lua, 0);
  lua_pushcfunction(lua, &Describe);
  lua_rawgeti(lua, LUA_REGISTRYINDEX, arguments.handle);
  if (lua_pcall(lua, 0, 0, 1) == 0) return 0;
  if (lua_istable(lua, -1)) lua_getfield(lua, -1, "err");
  arguments.error->assign(lua_tostring(lua, -1) == nullptr ? "?" : lua_tostring(lua, -1));
  return 0;
}

std::string Interpreter::Load(int handle, ScriptHost& host) {
  std::string error;
  host_ = &host;
  loading_ = true;
  EnterLoadGlobals(lua_);
  LoadArguments arguments{handle, &error};
  if (!Protected(lua_, &LoadMain, &arguments)) error = lua_tostring(lua_, -1) == nullptr ? "?" : lua_tostring(lua_, -1);
  lua_settop(lua_, 0);
  LeaveLoadGlobals(lua_);
  loading_ = false;
  host_ = nullptr;
  if (lua_gethookmask(lua_) != LUA_MASKCOUNT) lua_sethook(lua_, &OnCount, LUA_MASKCOUNT, kStepsPerLook);
  return error;
}

}  // namespace idemd::server
