// cmsgpack: Lua values as MessagePack, in the shapes of the library that Redis has.
//
// Numbers without a fraction are integers, in as few bytes as will do; a table is an array when its keys are 1..n; what
// is nested deeper than sixteen levels, or has no MessagePack, is nil.
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "server/script/interpreter.h"
#include "server/script/lua.h"
#include "server/script/sandbox.h"
#include "server/script/table_order.h"

namespace idemd::server {
namespace {

constexpr int kLevelsMax = 16;
// Larger tables are packed as they are walked.
constexpr size_t kNamesOrdered = 64;
// What refers to itself many times over grows with every level.
constexpr size_t kPackedBytesMax = size_t{512} << 20;

// Packs into the interpreter's own buffer, which stays when an error ends the work.
class Packer {
 public:
  Packer(lua_State* lua, std::string& out) : lua_(lua), out_(out) { out_.clear(); }

  // The value on top, which is popped.
  void Add(int level) {
    if (out_.size() > kPackedBytesMax) luaL_error(lua_, "not enough memory");
    switch (lua_type(lua_, -1)) {
      case LUA_TSTRING:
        Text(TextAt(lua_, -1));
        break;
      case LUA_TBOOLEAN:
        Byte(lua_toboolean(lua_, -1) != 0 ? 0xc3 : 0xc2);
        break;
      case LUA_TNUMBER:
        Number(lua_tonumber(lua_, -1));
        break;
      case LUA_TTABLE:
        level == kLevelsMax ? Byte(0xc0) : Table(lua_gettop(lua_), level);
        break;
      default:
        Byte(0xc0);
    }
    lua_pop(lua_, 1);
  }

 private:
  void Byte(int byte) { out_ += static_cast<char>(byte); }
  void Head(int kind, uint64_t value, int bytes) {
    Byte(kind);
    for (int i = bytes - 1; i >= 0; --i) Byte(static_cast<int>(value >> (8 * i) & 0xff));
  }

  void Text(absl::string_view text) {
    const size_t n = text.size();
    if (n < 32) {
      Byte(static_cast<int>(0xa0 | n));
    } else if (n <= 0xff) {
      Head(0xd9, n, 1);
    } else {
      n <= 0xffff ? Head(0xda, n, 2) : Head(0xdb, n, 4);
    }
    out_.append(text.data(), n);
  }

  void Number(double number) {
    if (number >= -9223372036854775808.0 && number < 9223372036854775808.0 && number == std::floor(number))
      return Integer(static_cast<int64_t>(number));
    const auto single = static_cast<float>(number);
    if (static_cast<double>(single) == number) return Head(0xca, std::bit_cast<uint32_t>(single), 4);
    Head(0xcb, std::bit_cast<uint64_t>(number), 8);
  }

  void Integer(int64_t n) {
    const auto bits = static_cast<uint64_t>(n);
    if (n >= -32 && n <= 127) return Byte(static_cast<int>(bits & 0xff));
    if (n >= 0) {
      if (n <= 0xff) return Head(0xcc, bits, 1);
      if (n <= 0xffff) return Head(0xcd, bits, 2);
      return n <= 0xffffffffLL ? Head(0xce, bits, 4) : Head(0xcf, bits, 8);
    }
    if (n >= -128) return Head(0xd0, bits, 1);
    if (n >= -32768) return Head(0xd1, bits, 2);
    n >= -2147483648LL ? Head(0xd2, bits, 4) : Head(0xd3, bits, 8);
  }

  // Whether its keys are 1..n, and how many there are.
  bool IsArray(int table, size_t* count) {
    *count = 0;
    double greatest = 0;
    bool array = true;
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0; lua_pop(lua_, 1)) {
      ++*count;
      const double key = lua_type(lua_, -2) == LUA_TNUMBER ? lua_tonumber(lua_, -2) : 0;
      if (key <= 0 || key != std::floor(key)) array = false;
      if (key > greatest) greatest = key;
    }
    return array && greatest == static_cast<double>(*count);
  }

  void Container(size_t n, int small, int two) {
    if (n <= 15) return Byte(small | static_cast<int>(n));
    n <= 0xffff ? Head(two, n, 2) : Head(two + 1, n, 4);
  }

  void Table(int table, int level) {
    luaL_checkstack(lua_, 8, "in function mp_encode_lua_type");
    size_t count = 0;
    if (IsArray(table, &count)) {
      Container(count, 0x90, 0xdc);
      for (size_t i = 1; i <= count; ++i) {
        lua_rawgeti(lua_, table, static_cast<int>(i));
        Add(level + 1);
      }
      return;
    }
    Container(count, 0x80, 0xde);
    if (count <= kNamesOrdered && AddInOrder(table, level)) return;
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0;) {
      lua_pushvalue(lua_, -2);
      Add(level + 1);
      Add(level + 1);
    }
  }

  // A table of names in Lua 5.1's order. False: there are other keys.
  bool AddInOrder(int table, int level) {
    std::vector<absl::string_view> names;  // the keys stay in the table meanwhile
    for (lua_pushnil(lua_); lua_next(lua_, table) != 0; lua_pop(lua_, 1)) {
      if (lua_type(lua_, -2) != LUA_TSTRING) {
        lua_pop(lua_, 2);
        return false;
      }
      names.push_back(TextAt(lua_, -2));
    }
    for (uint32_t i : WalkOrder(names)) {
      PushText(lua_, names[i]);
      lua_pushvalue(lua_, -1);
      Add(level + 1);
      lua_rawget(lua_, table);
      Add(level + 1);
    }
    return true;
  }

  lua_State* const lua_;
  std::string& out_;
};

int Pack(lua_State* lua) {
  const int count = lua_gettop(lua);
  if (count == 0) return luaL_argerror(lua, 0, "MessagePack pack needs input.");
  luaL_checkstack(lua, count, "Too many arguments for MessagePack pack.");
  std::string& out = Interpreter::Of(lua).packed;
  Packer packer(lua, out);
  for (int i = 1; i <= count; ++i) {
    lua_pushvalue(lua, i);
    packer.Add(0);
  }
  PushText(lua, out);
  return 1;
}

// Reads values from bytes that anybody may have sent.
class Unpacker {
 public:
  Unpacker(lua_State* lua, absl::string_view bytes) : lua_(lua), rest_(bytes) {}

  size_t left() const { return rest_.size(); }

  // Pushes the next value.
  void Next() {
    luaL_checkstack(lua_, 5, "too many return values at once; use unpack_one or unpack_limit instead.");
    const auto kind = static_cast<unsigned char>(Take(1)[0]);
    if (kind <= 0x7f) return lua_pushnumber(lua_, kind);
    if (kind >= 0xe0) return lua_pushnumber(lua_, static_cast<signed char>(kind));
    if ((kind & 0xe0) == 0xa0) return PushText(lua_, Take(kind & 0x1f));
    if ((kind & 0xf0) == 0x90) return Array(kind & 0x0f);
    if ((kind & 0xf0) == 0x80) return Map(kind & 0x0f);
    switch (kind) {
      case 0xc0:
        return lua_pushnil(lua_);
      case 0xc2:
      case 0xc3:
        return lua_pushboolean(lua_, kind & 1);
      case 0xc4:
      case 0xd9:
        return PushText(lua_, Take(BigEndian(1)));
      case 0xc5:
      case 0xda:
        return PushText(lua_, Take(BigEndian(2)));
      case 0xc6:
      case 0xdb:
        return PushText(lua_, Take(BigEndian(4)));
      case 0xca:
        return lua_pushnumber(lua_, static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(BigEndian(4)))));
      case 0xcb:
        return lua_pushnumber(lua_, std::bit_cast<double>(BigEndian(8)));
      case 0xcc:
        return Unsigned(1);
      case 0xcd:
        return Unsigned(2);
      case 0xce:
        return Unsigned(4);
      case 0xcf:
        return Unsigned(8);
      case 0xd0:
        return lua_pushnumber(lua_, static_cast<int8_t>(BigEndian(1)));
      case 0xd1:
        return lua_pushnumber(lua_, static_cast<int16_t>(BigEndian(2)));
      case 0xd2:
        return lua_pushnumber(lua_, static_cast<int32_t>(BigEndian(4)));
      case 0xd3:
        return lua_pushnumber(lua_, static_cast<double>(static_cast<int64_t>(BigEndian(8))));
      case 0xdc:
        return Array(BigEndian(2));
      case 0xdd:
        return Array(BigEndian(4));
      case 0xde:
        return Map(BigEndian(2));
      case 0xdf:
        return Map(BigEndian(4));
      default:
        luaL_error(lua_, "Bad data format in input.");
    }
  }

 private:
  absl::string_view Take(uint64_t bytes) {
    if (bytes > rest_.size()) luaL_error(lua_, "Missing bytes in input.");
    const absl::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  uint64_t BigEndian(size_t bytes) {
    uint64_t value = 0;
    for (char c : Take(bytes)) value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  void Unsigned(size_t bytes) { lua_pushnumber(lua_, static_cast<double>(BigEndian(bytes))); }

  // Not made for `count` elements ahead: the bytes may not hold them.
  void Array(uint64_t count) {
    lua_newtable(lua_);
    for (uint64_t i = 1; i <= count; ++i) {
      Next();
      lua_rawseti(lua_, -2, static_cast<int>(i));
    }
  }
  void Map(uint64_t count) {
    lua_newtable(lua_);
    for (; count > 0; --count) {
      Next();
      Next();
      lua_settable(lua_, -3);
    }
  }

  lua_State* const lua_;
  absl::string_view rest_;
};

// All values (limit and offset 0), or up to `limit` from `offset` with the place of the next one (-1: none) before them.
int UnpackSome(lua_State* lua, lua_Integer limit, lua_Integer offset) {
  size_t size = 0;
  const char* const bytes = luaL_checklstring(lua, 1, &size);
  lua_settop(lua, 1);
  if (offset < 0 || limit < 0)
    return luaL_error(lua, "Invalid request to unpack with offset of %d and limit of %d.", static_cast<int>(offset),
                      static_cast<int>(size));
  if (static_cast<size_t>(offset) > size)
    return luaL_error(lua, "Start offset %d greater than input length %d.", static_cast<int>(offset),
                      static_cast<int>(size));
  const bool all = limit == 0 && offset == 0;
  if (all) limit = INT_MAX;
  Unpacker unpacker(lua, absl::string_view(bytes, size).substr(static_cast<size_t>(offset)));
  int count = 0;
  for (; unpacker.left() > 0 && count < limit; ++count) unpacker.Next();
  if (all) return count;
  luaL_checkstack(lua, 1, "in function mp_unpack_full");
  lua_pushinteger(lua, unpacker.left() == 0 ? -1 : static_cast<lua_Integer>(size - unpacker.left()));
  lua_insert(lua, 2);
  return count + 1;
}

int Unpack(lua_State* lua) { return UnpackSome(lua, 0, 0); }
int UnpackOne(lua_State* lua) { return UnpackSome(lua, 1, luaL_optinteger(lua, 2, 0)); }
int UnpackLimit(lua_State* lua) {
  return UnpackSome(lua, luaL_checkinteger(lua, 2), luaL_optinteger(lua, 3, 0));
}

}  // namespace

int OpenMessagePack(lua_State* lua) {
  lua_createtable(lua, 0, 8);
  SetFunction(lua, "pack", &Pack);
  SetFunction(lua, "unpack", &Unpack);
  SetFunction(lua, "unpack_one", &UnpackOne);
  SetFunction(lua, "unpack_limit", &UnpackLimit);
  lua_pushliteral(lua, "cmsgpack");
  lua_setfield(lua, -2, "_NAME");
  lua_pushliteral(lua, "lua-cmsgpack 0.4.0");
  lua_setfield(lua, -2, "_VERSION");
  lua_pushliteral(lua, "Copyright (C) 2012, Salvatore Sanfilippo");
  lua_setfield(lua, -2, "_COPYRIGHT");
  lua_pushliteral(lua, "MessagePack C implementation for Lua");
  lua_setfield(lua, -2, "_DESCRIPTION");
  return 1;
}

}  // namespace idemd::server
