// Replies of commands as Lua values, and values that scripts return as replies.
#include "server/script/reply.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "protocol/number.h"
#include "server/script/lua.h"

namespace idemd::server {
namespace {

// A reply is ours, so it is whole and well formed; only numbers are read.
int64_t Number(const char* at, const char* end) {
  int64_t value = 0;
  const bool negative = at != end && *at == '-';
  for (at += negative ? 1 : 0; at != end; ++at) value = value * 10 + (*at - '0');
  return negative ? -value : value;
}

const char* LineEnd(const char* at) {
  while (*at != '\r') ++at;
  return at;
}

void PushField(lua_State* lua, const char* name, absl::string_view text) {
  lua_createtable(lua, 0, 1);
  PushText(lua, text);
  lua_setfield(lua, -2, name);
}

const char* PushArray(lua_State* lua, const char* at, int64_t count) {
  lua_createtable(lua, static_cast<int>(std::min<int64_t>(count, std::numeric_limits<int>::max())), 0);
  for (int64_t i = 1; i <= count; ++i) {
    at = PushReply(lua, at);
    lua_rawseti(lua, -2, static_cast<int>(i));
  }
  return at;
}

const char* PushMap(lua_State* lua, const char* at, int64_t pairs) {
  lua_createtable(lua, 0, 1);
  lua_createtable(lua, 0, static_cast<int>(pairs));
  for (int64_t i = 0; i < pairs; ++i) {
    at = PushReply(lua, at);
    at = PushReply(lua, at);
    lua_rawset(lua, -3);
  }
  lua_setfield(lua, -2, "map");
  return at;
}

const char* PushSet(lua_State* lua, const char* at, int64_t count) {
  lua_createtable(lua, 0, 1);
  lua_createtable(lua, 0, static_cast<int>(count));
  for (int64_t i = 0; i < count; ++i) {
    at = PushReply(lua, at);
    lua_pushboolean(lua, 1);
    lua_rawset(lua, -3);
  }
  lua_setfield(lua, -2, "set");
  return at;
}

// "txt:" and the text.
void PushVerbatim(lua_State* lua, absl::string_view bytes) {
  lua_createtable(lua, 0, 1);
  lua_createtable(lua, 0, 2);
  PushText(lua, bytes.substr(4));
  lua_setfield(lua, -2, "string");
  PushText(lua, bytes.substr(0, 3));
  lua_setfield(lua, -2, "format");
  lua_setfield(lua, -2, "verbatim_string");
}

void PushDouble(lua_State* lua, absl::string_view text) {
  double value = std::numeric_limits<double>::quiet_NaN();
  if (!protocol::ParseDouble(text, &value)) value = std::numeric_limits<double>::quiet_NaN();
  lua_createtable(lua, 0, 1);
  lua_pushnumber(lua, value);
  lua_setfield(lua, -2, "double");
}

}  // namespace

void PushErrorTable(lua_State* lua, absl::string_view text, bool counted) {
  lua_createtable(lua, 0, counted ? 2 : 1);
  PushText(lua, text);
  lua_setfield(lua, -2, "err");
  if (!counted) return;
  lua_pushboolean(lua, 1);
  lua_setfield(lua, -2, "ignore_error_stats_update");
}

std::string ErrorReplyText(absl::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  return text.find(' ') == absl::string_view::npos ? absl::StrCat("ERR ", text) : std::string(text);
}

const char* PushReply(lua_State* lua, const char* at) {
  luaL_checkstack(lua, 6, "a reply is nested too deep");
  const char kind = *at++;
  const char* const end = LineEnd(at);
  const char* const next = end + 2;
  const absl::string_view line(at, static_cast<size_t>(end - at));
  switch (kind) {
    case ':':
      lua_pushnumber(lua, static_cast<lua_Number>(Number(at, end)));
      return next;
    case '$':
    case '=': {
      const int64_t size = Number(at, end);
      if (size < 0) {
        lua_pushboolean(lua, 0);
        return next;
      }
      const absl::string_view bytes(next, static_cast<size_t>(size));
      kind == '$' ? PushText(lua, bytes) : PushVerbatim(lua, bytes);
      return next + size + 2;
    }
    case '+':
      PushField(lua, "ok", line);
      return next;
    case '-':
      PushErrorTable(lua, line, true);
      return next;
    case '*':
    case '>': {
      const int64_t count = Number(at, end);
      if (count >= 0) return PushArray(lua, next, count);
      lua_pushboolean(lua, 0);
      return next;
    }
    case '%':
      return PushMap(lua, next, Number(at, end));
    case '~':
      return PushSet(lua, next, Number(at, end));
    case '_':
      lua_pushnil(lua);
      return next;
    case '#':
      lua_pushboolean(lua, *at == 't');
      return next;
    case ',':
      PushDouble(lua, line);
      return next;
    case '(':
      PushField(lua, "big_number", line);
      return next;
    case '|': {  // attributes are not shown to scripts
      const char* rest = next;
      for (int64_t left = 2 * Number(at, end); left > 0; --left) {
        rest = PushReply(lua, rest);
        lua_pop(lua, 1);
      }
      return PushReply(lua, rest);
    }
    default:
      lua_pushnil(lua);
      return next;
  }
}

namespace {

// Pushes the field, without metamethods; its type.
int RawField(lua_State* lua, int table, const char* name) {
  lua_pushstring(lua, name);
  lua_rawget(lua, table);
  return lua_type(lua, -1);
}

// As C reads it: up to the first zero byte.
absl::string_view CText(lua_State* lua, int index) { return lua_tostring(lua, index); }

// Writer::Error() makes blanks of line ends; those at the end are dropped.
absl::string_view WithoutLineEnds(absl::string_view text) {
  while (!text.empty() && (text.back() == '\r' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// As C's cast does on this machine: what does not fit is the smallest number.
int64_t Truncated(double value) {
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

class ReplyOf {
 public:
  ReplyOf(lua_State* lua, int script_resp, protocol::Writer& reply, bool* counted)
      : lua_(lua), script_resp_(script_resp), reply_(reply), counted_(counted) {}

  // Writes the value on top, and pops it.
  void Write() {
    if (lua_checkstack(lua_, 12) == 0) {
      reply_.Error("ERR reached lua stack limit");
      lua_pop(lua_, 1);
      return;
    }
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        reply_.Bulk(TextAt(lua_, -1));
        break;
      case LUA_TBOOLEAN:
        WriteBoolean(lua_toboolean(lua_, -1) != 0);
        break;
      case LUA_TNUMBER:
        reply_.Integer(Truncated(lua_tonumber(lua_, -1)));
        break;
      case LUA_TTABLE:
        WriteTable(lua_gettop(lua_));
        break;
      default:
        reply_.Null();
    }
    lua_pop(lua_, 1);
  }

 private:
  void WriteBoolean(bool value) {
    if (script_resp_ >= 3) return reply_.Boolean(value);
    value ? reply_.Integer(1) : reply_.Null();
  }

  // The table stays on top.
  void WriteTable(int table) {
    if (RawField(lua_, table, "err") == LUA_TSTRING) {
      *counted_ = RawField(lua_, table, "ignore_error_stats_update") == LUA_TBOOLEAN && lua_toboolean(lua_, -1) != 0;
      reply_.Error(WithoutLineEnds(CText(lua_, -2)));
    } else if (RawField(lua_, table, "ok") == LUA_TSTRING) {
      WriteStatus(CText(lua_, -1));
    } else if (RawField(lua_, table, "double") == LUA_TNUMBER) {
      WriteDouble(lua_tonumber(lua_, -1));
    } else if (RawField(lua_, table, "map") == LUA_TTABLE) {
      WriteMap(lua_gettop(lua_));
    } else if (RawField(lua_, table, "set") == LUA_TTABLE) {
      WriteSet(lua_gettop(lua_));
    } else if (RawField(lua_, table, "big_number") == LUA_TSTRING) {
      WriteBigNumber(TextAt(lua_, -1));
    } else if (!WroteVerbatim(table)) {
      WriteArray(table);
    }
    lua_settop(lua_, table);
  }

  // As %.17g.
  void WriteDouble(double value) {
    char text[32];
    const auto size = static_cast<size_t>(std::snprintf(text, sizeof text, "%.17g", value));
    if (reply_.resp() < 3) return reply_.Bulk({text, size});
    reply_.buffer() += ',';
    reply_.buffer().append(text, size).append("\r\n");
  }
  void WriteStatus(absl::string_view text) {
    std::string& out = reply_.buffer();
    const size_t at = out.size();
    reply_.Simple(text);
    Flatten(out, at, out.size() - 2);
  }
  void WriteBigNumber(absl::string_view digits) {
    std::string& out = reply_.buffer();
    reply_.BigNumber(digits);
    const size_t end = out.size() - 2;
    Flatten(out, end - digits.size(), end);
  }
  static void Flatten(std::string& out, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i)
      if (out[i] == '\r' || out[i] == '\n') out[i] = ' ';
  }

  bool WroteVerbatim(int table) {
    if (RawField(lua_, table, "verbatim_string") != LUA_TTABLE) return false;
    const int verbatim = lua_gettop(lua_);
    if (RawField(lua_, verbatim, "format") != LUA_TSTRING) return false;
    if (RawField(lua_, verbatim, "string") != LUA_TSTRING) return false;
    char format[4] = "   ";
    const absl::string_view given = CText(lua_, -2);
    std::memcpy(format, given.data(), std::min<size_t>(given.size(), 3));
    reply_.Verbatim(TextAt(lua_, -1), absl::string_view(format, 3));
    return true;
  }

  // Counted first, so that no reply is moved for its head.
  void WriteArray(int table) {
    lua_settop(lua_, table);
    int count = 0;
    for (;;) {
      lua_rawgeti(lua_, table, count + 1);
      const bool end = lua_isnil(lua_, -1);
      lua_pop(lua_, 1);
      if (end) break;
      ++count;
    }
    reply_.Array(static_cast<size_t>(count));
    for (int i = 1; i <= count; ++i) {
      lua_rawgeti(lua_, table, i);
      Write();
    }
  }

  size_t CountFields(int table) {
    size_t count = 0;
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0; lua_pop(lua_, 1)) ++count;
    return count;
  }
  void WriteMap(int table) {
    reply_.Map(CountFields(table));
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0;) {
      lua_pushvalue(lua_, -2);
      Write();
      Write();
    }
  }
  void WriteSet(int table) {
    reply_.Set(CountFields(table));
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0;) {
      lua_pop(lua_, 1);
      lua_pushvalue(lua_, -1);
      Write();
    }
  }

  lua_State* const lua_;
  const int script_resp_;
  protocol::Writer& reply_;
  bool* const counted_;
};

}  // namespace

void WriteReply(lua_State* lua, int script_resp, protocol::Writer& reply, bool* counted) {
  bool ignored = false;  // only the outermost value is the script's reply
  if (lua_type(lua, -1) != LUA_TTABLE) counted = &ignored;
  ReplyOf(lua, script_resp, reply, counted).Write();
}

}  // namespace idemd::server
