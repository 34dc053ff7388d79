// struct.pack, struct.unpack, struct.size: binary records, in the format language of Roberto Ierusalimschy's library,
// which Redis has.
#include <bit>
#include <cctype>
#include <climits>
#include <cstdint>
#include <cstring>

#include "server/script/lua.h"
#include "server/script/sandbox.h"

namespace idemd::server {
namespace {

constexpr int kIntegerBytesMax = 32;
constexpr int kAlignmentDefault = 8;  // of "!" alone

// A format, option by option.
class Format {
 public:
  Format(lua_State* lua, const char* at) : lua_(lua), at_(at) {}

  struct Option {
    char code;
    size_t size;  // 0: none, or not known from the format
  };
  // False at the end.
  bool Next(Option* option) {
    if (*at_ == '\0') return false;
    option->code = *at_++;
    option->size = SizeOf(option->code);
    return true;
  }
  // What has no value: byte order, alignment, blanks. Raises an error at anything else.
  void Control(char code) {
    switch (code) {
      case ' ':
        return;
      case '>':
        little_ = false;
        return;
      case '<':
        little_ = true;
        return;
      case '!': {
        const int to = Number(kAlignmentDefault);
        if (to == 0 || (to & (to - 1)) != 0) luaL_error(lua_, "alignment %d is not a power of 2", to);
        alignment_ = static_cast<size_t>(to);
        return;
      }
      default:
        luaL_argerror(lua_, 1, lua_pushfstring(lua_, "invalid format option '%c'", code));
    }
  }
  size_t Padding(size_t at, const Option& option) const {
    if (option.size == 0 || option.code == 'c') return 0;
    const size_t size = option.size > alignment_ ? alignment_ : option.size;
    return size > 1 ? (size - (at & (size - 1))) & (size - 1) : 0;
  }
  bool little() const { return little_; }

 private:
  int Number(int if_none) {
    if (std::isdigit(static_cast<unsigned char>(*at_)) == 0) return if_none;
    int value = 0;
    for (; std::isdigit(static_cast<unsigned char>(*at_)) != 0; ++at_) {
      if (value > INT_MAX / 10 || value * 10 > INT_MAX - (*at_ - '0')) luaL_error(lua_, "integral size overflow");
      value = value * 10 + (*at_ - '0');
    }
    return value;
  }
  size_t SizeOf(char code) {
    switch (code) {
      case 'B':
      case 'b':
      case 'x':
        return 1;
      case 'H':
      case 'h':
        return sizeof(short);
      case 'L':
      case 'l':
        return sizeof(long);
      case 'T':
        return sizeof(size_t);
      case 'f':
        return sizeof(float);
      case 'd':
        return sizeof(double);
      case 'c':
        return static_cast<size_t>(Number(1));
      case 'I':
      case 'i': {
        const int size = Number(sizeof(int));
        if (size > kIntegerBytesMax)
          luaL_error(lua_, "integral size %d is larger than limit of %d", size, kIntegerBytesMax);
        return static_cast<size_t>(size);
      }
      default:
        return 0;
    }
  }

  lua_State* const lua_;
  const char* at_;
  bool little_ = std::endian::native == std::endian::little;
  size_t alignment_ = 1;
};

bool IsInteger(char code) { return absl::string_view("bBhHlLTiI").find(code) != absl::string_view::npos; }

void AddInteger(luaL_Buffer* out, double number, size_t size, bool little) {
  uint64_t value = number < 0 ? static_cast<uint64_t>(static_cast<int64_t>(number)) : static_cast<uint64_t>(number);
  char bytes[kIntegerBytesMax] = {};
  for (size_t i = 0; i < size; ++i) {
    bytes[little ? i : size - 1 - i] = static_cast<char>(value & 0xff);
    value >>= 8;
  }
  luaL_addlstring(out, bytes, size);
}

double IntegerAt(const char* at, size_t size, bool little, bool is_signed) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(at[little ? size - 1 - i : i]);
  if (!is_signed) return static_cast<double>(value);
  if (size > 0 && size < sizeof value) {
    const uint64_t sign = ~uint64_t{0} << (size * 8 - 1);
    if ((value & sign) != 0) value |= sign;
  }
  return static_cast<double>(static_cast<int64_t>(value));
}

template <typename T>
void AddFloat(luaL_Buffer* out, double number, bool little) {
  const T value = static_cast<T>(number);
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  if (little != (std::endian::native == std::endian::little))
    for (size_t i = 0; i < sizeof bytes / 2; ++i) std::swap(bytes[i], bytes[sizeof bytes - 1 - i]);
  luaL_addlstring(out, bytes, sizeof bytes);
}

template <typename T>
double FloatAt(const char* at, bool little) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof bytes);
  if (little != (std::endian::native == std::endian::little))
    for (size_t i = 0; i < sizeof bytes / 2; ++i) std::swap(bytes[i], bytes[sizeof bytes - 1 - i]);
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return static_cast<double>(value);
}

int Pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  luaL_Buffer out;
  int argument = 2;
  size_t total = 0;
  lua_pushnil(lua);  // arguments end here
  luaL_buffinit(lua, &out);
  for (Format::Option option; format.Next(&option);) {
    for (size_t padding = format.Padding(total, option); padding > 0; --padding, ++total) luaL_addchar(&out, '\0');
    size_t size = option.size;
    if (IsInteger(option.code)) {
      AddInteger(&out, luaL_checknumber(lua, argument++), size, format.little());
    } else if (option.code == 'x') {
      luaL_addchar(&out, '\0');
    } else if (option.code == 'f') {
      AddFloat<float>(&out, luaL_checknumber(lua, argument++), format.little());
    } else if (option.code == 'd') {
      AddFloat<double>(&out, luaL_checknumber(lua, argument++), format.little());
    } else if (option.code == 'c' || option.code == 's') {
      size_t length = 0;
      const char* const text = luaL_checklstring(lua, argument++, &length);
      if (size == 0) size = length;
      luaL_argcheck(lua, length >= size, argument, "string too short");
      luaL_addlstring(&out, text, size);
      if (option.code == 's') {
        luaL_addchar(&out, '\0');
        ++size;
      }
    } else {
      format.Control(option.code);
    }
    total += size;
  }
  luaL_pushresult(&out);
  return 1;
}

int Unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t length = 0;
  const char* const data = luaL_checklstring(lua, 2, &length);
  const lua_Integer from = luaL_optinteger(lua, 3, 1);
  luaL_argcheck(lua, from > 0, 3, "offset must be 1 or greater");
  size_t at = static_cast<size_t>(from) - 1;
  int results = 0;
  lua_settop(lua, 2);
  for (Format::Option option; format.Next(&option);) {
    size_t size = option.size;
    at += format.Padding(at, option);
    luaL_argcheck(lua, size <= length && at <= length - size, 2, "data string too short");
    luaL_checkstack(lua, 2, "too many results");
    if (IsInteger(option.code)) {
      const bool is_signed = std::islower(static_cast<unsigned char>(option.code)) != 0;
      lua_pushnumber(lua, IntegerAt(data + at, size, format.little(), is_signed));
      ++results;
    } else if (option.code == 'f') {
      lua_pushnumber(lua, FloatAt<float>(data + at, format.little()));
      ++results;
    } else if (option.code == 'd') {
      lua_pushnumber(lua, FloatAt<double>(data + at, format.little()));
      ++results;
    } else if (option.code == 'c') {
      if (size == 0) {
        if (results == 0 || lua_isnumber(lua, -1) == 0) luaL_error(lua, "format 'c0' needs a previous size");
        const double given = lua_tonumber(lua, -1);
        lua_pop(lua, 1);
        --results;
        luaL_argcheck(lua, given >= 0 && given <= static_cast<double>(length - at), 2, "data string too short");
        size = static_cast<size_t>(given);
      }
      lua_pushlstring(lua, data + at, size);
      ++results;
    } else if (option.code == 's') {
      const void* const end = std::memchr(data + at, '\0', length - at);
      if (end == nullptr) luaL_error(lua, "unfinished string in data");
      size = static_cast<size_t>(static_cast<const char*>(end) - (data + at)) + 1;
      lua_pushlstring(lua, data + at, size - 1);
      ++results;
    } else if (option.code != 'x') {
      format.Control(option.code);
    }
    at += size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at) + 1);
  return results + 1;
}

int Size(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  size_t at = 0;
  for (Format::Option option; format.Next(&option);) {
    at += format.Padding(at, option);
    if (option.code == 's') luaL_argerror(lua, 1, "option 's' has no fixed size");
    if (option.code == 'c' && option.size == 0) luaL_argerror(lua, 1, "option 'c0' has no fixed size");
    if (std::isalnum(static_cast<unsigned char>(option.code)) == 0) format.Control(option.code);
    at += option.size;
  }
  lua_pushinteger(lua, static_cast<lua_Integer>(at));
  return 1;
}

}  // namespace

int OpenStruct(lua_State* lua) {
  lua_createtable(lua, 0, 3);
  SetFunction(lua, "pack", &Pack);
  SetFunction(lua, "unpack", &Unpack);
  SetFunction(lua, "size", &Size);
  return 1;
}

}  // namespace idemd::server
