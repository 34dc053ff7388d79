// The words of Lua texts, and what LuaJIT would read differently.
#include "server/script/lua_lexer.h"

#include <string>

#include "gtest/gtest.h"

namespace idemd::server {
namespace {

std::string Words(absl::string_view text) {
  LuaTokens tokens;
  if (!Tokenize(text, &tokens)) return "no Lua";
  std::string words;
  for (const LuaToken& token : tokens.tokens) {
    if (token.kind == LuaToken::Kind::kEnd) break;
    if (!words.empty()) words += '|';
    words += std::string(token.text);
  }
  return words;
}

std::string As51(absl::string_view text) {
  LuaTokens tokens;
  std::string out;
  std::string error;
  if (!Tokenize(text, &tokens)) return "no Lua";
  return AsLua51(text, tokens, true, &out, &error) ? out : "error " + error;
}

TEST(LuaLexer, SplitsNamesNumbersOperatorsAndStrings) {
  EXPECT_EQ(Words("local a,b=1.5e-3,'x' .. \"y\""), "local|a|,|b|=|1.5e-3|,|x|..|y");
  EXPECT_EQ(Words("a.b:c[1]{}(...)"), "a|.|b|:|c|[|1|]|{|}|(|...|)");
  EXPECT_EQ(Words("a==b~=c<=d>=e<f>g"), "a|==|b|~=|c|<=|d|>=|e|<|f|>|g");
  EXPECT_EQ(Words("1..2"), "1..2");  // one word, and no number
}

TEST(LuaLexer, LeavesOutCommentsOfEveryKind) {
  EXPECT_EQ(Words("a -- b\nc --[[ d\n e ]] f --[==[ ]] ]==] g"), "a|c|f|g");
  EXPECT_EQ(Words("-- only a comment"), "");
  EXPECT_EQ(Words("--[ not long\na"), "a");
}

TEST(LuaLexer, SaysWhatStringsSay) {
  EXPECT_EQ(Words(R"('a\n\t\\\'\65\0661')"), "a\n\t\\'AB1");
  EXPECT_EQ(Words("[[\nline]] [=[ ]] ]=]"), "line| ]] ");
  EXPECT_EQ(Words("'a\\\nb'"), "a\nb");
}

TEST(LuaLexer, RefusesWhatIsNoLua) {
  for (const char* text : {"'open", "\"a\nb\"", "[[open", "--[[open", "@", "a ! b", "'\\999'"})
    EXPECT_EQ(Words(text), "no Lua") << text;
}

TEST(LuaLexer, CountsLines) {
  LuaTokens tokens;
  ASSERT_TRUE(Tokenize("a\n--[[\n\n]] b [[\n]]\nc", &tokens));
  EXPECT_EQ(tokens.tokens[0].line, 1);
  EXPECT_EQ(tokens.tokens[1].line, 4);
  EXPECT_EQ(tokens.tokens[3].line, 6);
}

TEST(LuaLexer, EscapesOfLaterVersionsBecomePlainLetters) {
  EXPECT_EQ(As51(R"(return '\x41\z\u{41}\n\\x')"), R"(return 'x41zu{41}\n\\x')");
  EXPECT_EQ(As51(R"(return [[\x41]] -- '\x')"), R"(return [[\x41]] -- '\x')");
}

TEST(LuaLexer, WhatIsCalledLastIsNoTailCall) {
  EXPECT_EQ(As51("if x then return f(1) end return g(2); "), "if x then return f(1),nil end return g(2),nil; ");
  EXPECT_EQ(As51("return 1"), "return 1");
  EXPECT_EQ(As51("return f{1}"), "return f{1},nil");
  EXPECT_EQ(As51("return f'x'"), "return f'x',nil");
  EXPECT_EQ(As51("local function f() return redis.call('x', g(1)) end return (1)"),
            "local function f() return (redis.call('x', g(1))) end return (1),nil");
  EXPECT_EQ(As51("local function f() return g(1) end"), "local function f() return g(1) end");
  EXPECT_EQ(As51("return pcall(function() if a then return b() end while c do end return d() end)"),
            "return pcall(function() if a then return b() end while c do end return d() end),nil");
}

TEST(LuaLexer, NumbersThatOnlyLuaJitHasAreErrorsAtTheirLine) {
  EXPECT_EQ(As51("\nreturn 1LL"), "error 2: malformed number near '1LL'");
  EXPECT_EQ(As51("return 2i"), "error 1: malformed number near '2i'");
  EXPECT_EQ(As51("return 0b1"), "error 1: malformed number near '0b1'");
  EXPECT_EQ(As51("return 0x1F"), "return 0x1F");
}

}  // namespace
}  // namespace idemd::server
