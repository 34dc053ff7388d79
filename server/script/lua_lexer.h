// The words of a Lua 5.1 text: what the proof of keys and the native plans read, and what LuaJIT reads differently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace idemd::server {

struct LuaToken {
  enum class Kind : uint8_t { kEnd, kName, kKeyword, kString, kNumber, kOperator };
  Kind kind = Kind::kEnd;
  absl::string_view text;  // as written; of a string: what it says
  int line = 1;
  size_t begin = 0;  // where it is written
  size_t end = 0;

  bool Is(absl::string_view word) const {
    return (kind == Kind::kOperator || kind == Kind::kKeyword) && text == word;
  }
  bool IsName(absl::string_view name) const { return kind == Kind::kName && text == name; }
};

// Views into the text and into `decoded`.
struct LuaTokens {
  std::vector<LuaToken> tokens;  // the last one is kEnd
  std::deque<std::string> decoded;
};

// False: it is no Lua 5.1, which the compiler will say in better words.
bool Tokenize(absl::string_view text, LuaTokens* out);

// LuaJIT reads a few words in other ways than Lua 5.1 does. Gives a text, with the same lines, of which LuaJIT makes what
// Lua 5.1 makes of `text`: escapes of later versions (\x, \z, \u) are plain letters; a C function that is called last is
// no tail call, so that errors tell the line (only where that is safe: in a chunk of which the caller takes but `one_value`,
// and for calls of redis.*); functions with "..." have the local `arg`. False, with the words of Lua's error behind "chunk:", when a number is none in Lua 5.1
// (1LL, 2i, 0b1).
bool AsLua51(absl::string_view text, const LuaTokens& tokens, bool one_value, std::string* out, std::string* error);

}  // namespace idemd::server
