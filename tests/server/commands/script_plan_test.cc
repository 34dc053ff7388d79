// Plans: which scripts are recognised, and that what they do is what Lua does.
#include "server/commands/script_plan.h"

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "server/commands/script_text.h"
#include "tests/support/harness.h"
#include "tests/support/seed.h"

namespace idemd::server {
namespace {

using testing::Harness;

bool HasPlan(absl::string_view text) {
  static const CommandTable commands;
  std::string error;
  const auto script = ReadScript(commands, text, &error);
  return script != nullptr && script->plan != nullptr;
}

constexpr const char* kUsual[] = {
    "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
    "-- unlock\nif ARGV[1]==redis.call(\"GET\",KEYS[1]) then return redis.call(\"DEL\",KEYS[1]); end; return 0;",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end",
    "local v = redis.call('GET', KEYS[1]) if v then redis.call('DEL', KEYS[1]) end return v",
    "if redis.call('exists', KEYS[1]) == 1 then redis.call('del', KEYS[1]) return 1 else return 0 end",
    "for i, key in ipairs(KEYS) do if redis.call('exists', key) == 1 then return 0 end end "
    "for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS",
    "for i, key in ipairs(KEYS) do if redis.call('get', key) ~= ARGV[1] then return 0 end end "
    "for i, key in ipairs(KEYS) do redis.call('set', key, ARGV[1], 'PX', ARGV[2]) end return #KEYS",
    "local count = 0 for i, key in ipairs(KEYS) do if redis.call('get', key) == ARGV[1] then redis.pcall('del', key) "
    "count = count + 1 end end return count",
    "local token = redis.call('get', KEYS[1]) if not token or token ~= ARGV[1] then return 0 end "
    "local expiration = redis.call('pttl', KEYS[1]) if not expiration then expiration = 0 end "
    "if expiration < 0 then return 0 end local newttl = ARGV[2] if ARGV[3] == '0' then newttl = ARGV[2] + expiration end "
    "redis.call('pexpire', KEYS[1], newttl) return 1",
    "local lockClientId = redis.call('GET', KEYS[1]) if lockClientId == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) "
    "return true elseif not lockClientId then redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end return false",
    "local c = redis.call('INCR', KEYS[1]) if c == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end return c",
    "redis.call('set', KEYS[1], 0, 'EX', ARGV[2], 'NX') local n = redis.call('incrby', KEYS[1], ARGV[1]) "
    "local ttl = redis.call('pttl', KEYS[1]) if ttl == -1 then redis.call('expire', KEYS[1], ARGV[2]) ttl = 1000 * ARGV[2] end "
    "return {n, ttl}",
    "local n = tonumber(redis.call('get', KEYS[1]) or '0') if n + 1 > tonumber(ARGV[1]) then return 0 end "
    "redis.call('INCRBY', KEYS[1], 1) return n + 1",
    "for i = 1, #KEYS do redis.call('set', KEYS[i], ARGV[i] or 'none') end return #ARGV",
};

TEST(ScriptPlan, TheUsualScriptsAreRecognised) {
  for (const char* text : kUsual) EXPECT_TRUE(HasPlan(text)) << text;
}

TEST(ScriptPlan, WhatItDoesNotKnowIsLeftToLua) {
  for (const char* text : {"local function f() end", "return {a = 1}", "return cjson.encode(1)", "while true do end",
                           "return ({1})[1]", "x = 1", "return redis.call(ARGV[1])", "return redis.call('nosuch')",
                           "return 0x10", "return 1e3", "return 'a'.x", "(redis.call('get', KEYS[1]))", "return 1 2",
                           "local x = 1 x = x, 2", "return KEYS", "return #'x'", "return 2 ^ 3", "break",
                           "return redis.call 'ping'", "return redis.call('ping').ok", "goto x", "if 1 then", "return return",
                           "local redis = 1 return redis.call('ping')", "return redis.call('ping')('x')"})
    EXPECT_FALSE(HasPlan(text)) << text;
}

// What tostring() makes of a table is another text each time.
std::string WithoutAddress(std::string reply) {
  const std::string table = "table: 0x";
  for (size_t at = reply.find(table); at != std::string::npos; at = reply.find(table, at + 1)) {
    const size_t digits = at + table.size(), end = reply.find_first_not_of("0123456789abcdef", digits);
    reply.erase(digits, (end == std::string::npos ? reply.size() : end) - digits);
  }
  return reply;
}

// The same script in both ways, each in a server of its own, over the same keys.
class Pair {
 public:
  void Both(const std::vector<std::string>& words) { EXPECT_EQ(native_.DoWords(words), lua_.DoWords(words)); }
  void Same(const std::string& text, const std::vector<std::string>& rest) {
    std::vector<std::string> words = {"EVAL", text};
    words.insert(words.end(), rest.begin(), rest.end());
    const std::string native = native_.DoWords(words);
    // Nothing that a plan could be: so it is run by Lua. Lines stay as they are, names do not.
    words[1] = "local function not_a_plan() end " + text;
    std::string lua = lua_.DoWords(words);
    const size_t sha = lua.find("script: ");
    if (sha != std::string::npos) lua.replace(sha + 8, 40, Sha(text));
    EXPECT_EQ(WithoutAddress(native), WithoutAddress(lua)) << text << "\n" << absl::StrJoin(rest, " ");
    for (const char* key : {"k1", "k2", "k3"}) {
      Both({"GET", key});
      Both({"PTTL", key});
      Both({"EXISTS", key});
    }
    EXPECT_EQ(native_.NewEffects(), lua_.NewEffects()) << text;
  }

 private:
  std::string Sha(const std::string& text) {
    std::string sha = native_.DoWords({"SCRIPT", "LOAD", text});
    return sha.substr(1, 40);
  }
  Harness native_;
  Harness lua_;
};

TEST(ScriptPlan, TheUsualScriptsDoWhatLuaDoes) {
  const std::vector<std::vector<std::string>> states = {
      {}, {"SET", "k1", "a1"}, {"SET", "k1", "a1", "PX", "50000"}, {"SET", "k1", "other"}, {"SET", "k1", "7"},
      {"SET", "k2", "a1"}, {"SET", "k1", ""}, {"HSET", "k1", "f", "v"}, {"RPUSH", "k1", "a1"}};
  const std::vector<std::vector<std::string>> arguments = {
      {"0"},
      {"1", "k1"},
      {"1", "k1", "a1"},
      {"1", "k1", "a1", "60000"},
      {"1", "k1", "a1", "60000", "0"},
      {"1", "k1", "a1", "60000", "1"},
      {"1", "k1", "a1", "x"},
      {"1", "k1", "a1", "-1"},
      {"1", "k1", "a1", "1.5", "0"},
      {"1", "k1", "a1", "0x10", "0"},
      {"1", "k1", "a1", " 12 ", "0"},
      {"1", "k1", "3", "100"},
      {"1", "k1", ""},
      {"2", "k1", "k2", "a1", "60000"},
      {"3", "k1", "k1", "k3", "a1", "60000"},
  };
  for (const char* text : kUsual) {
    for (const auto& state : states) {
      for (const auto& rest : arguments) {
        Pair pair;
        if (!state.empty()) pair.Both(state);
        pair.Same(text, rest);
      }
    }
  }
}

// Random scripts in the language of plans.
class Author {
 public:
  explicit Author(uint64_t seed) : random_(seed) {}

  std::string Script() {
    names_ = 0;
    std::string text = Block(3);
    if (Pick(2) == 0) text += " return " + Value(2);
    else if (Pick(2) == 0) text += " return {" + Value(2) + ", " + Value(2) + "}";
    return text;
  }
  size_t Pick(size_t n) { return random_() % n; }

 private:
  std::string Local() { return names_ == 0 ? "nil" : absl::StrCat("v", Pick(names_)); }
  std::string Literal() {
    constexpr const char* kLiterals[] = {"nil", "true", "false", "0", "1", "7", "1.5", "'a1'", "'7'", "''", "'x'", "'-3'"};
    return kLiterals[Pick(std::size(kLiterals))];
  }
  std::string Key() { return absl::StrCat("KEYS[", Pick(3) + 1, "]"); }
  std::string Call() {
    const std::string call = Pick(5) == 0 ? "redis.pcall(" : "redis.call(";
    switch (Pick(9)) {
      case 0:
        return absl::StrCat(call, "'get', ", Key(), ")");
      case 1:
        return absl::StrCat(call, "'set', ", Key(), ", ", Value(0), ")");
      case 2:
        return absl::StrCat(call, "'del', ", Key(), ")");
      case 3:
        return absl::StrCat(call, "'incr', ", Key(), ")");
      case 4:
        return absl::StrCat(call, "'exists', ", Key(), ", ", Key(), ")");
      case 5:
        return absl::StrCat(call, "'pexpire', ", Key(), ", ", Value(0), ")");
      case 6:
        return absl::StrCat(call, "'mget', ", Key(), ", ", Key(), ")");
      case 7:
        return absl::StrCat(call, "'append', ", Key(), ", ", Value(0), ")");
      default:
        return absl::StrCat(call, "'type', ", Key(), ")");
    }
  }
  std::string Plain() {
    return Pick(2) == 0 ? Literal() : absl::StrCat("ARGV[", Pick(4) + 1, "]", Pick(2) == 0 ? " or 5" : "");
  }
  std::string Value(int depth) {
    if (depth == 0 || Pick(4) == 0) {
      switch (Pick(5)) {
        case 0:
          return Local();
        case 1:
          return absl::StrCat("ARGV[", Pick(4) + 1, "]");
        case 2:
          return Pick(2) == 0 ? "#KEYS" : "#ARGV";
        default:
          return Literal();
      }
    }
    constexpr const char* kOperators[] = {"==", "~=", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "..", "and", "or"};
    switch (Pick(7)) {
      case 0:
      case 1:
        return Call();
      case 2:
        return absl::StrCat("not ", Value(depth - 1));
      case 3:
        // Of a table it would be an address.
        return Pick(2) == 0 ? absl::StrCat("tonumber(", Value(depth - 1), ")") : absl::StrCat("tostring(", Plain(), ")");
      case 4:
        return absl::StrCat("(", Value(depth - 1), ")");
      default:
        return absl::StrCat(Value(depth - 1), " ", kOperators[Pick(std::size(kOperators))], " ", Value(depth - 1));
    }
  }
  std::string Block(int depth) {
    std::string text;
    const size_t names = names_;
    for (size_t i = 0, n = Pick(4); i < n; ++i) {
      switch (Pick(depth > 0 ? 6 : 3)) {
        case 0: {
          const std::string value = Value(2);
          absl::StrAppend(&text, "local v", names_++, " = ", value, "\n");
          break;
        }
        case 1:
          if (names_ > 0) absl::StrAppend(&text, Local(), " = ", Value(2), "\n");
          break;
        case 2:
          absl::StrAppend(&text, Call(), "\n");
          break;
        case 3:
          absl::StrAppend(&text, "if ", Value(2), " then ", Block(depth - 1), " elseif ", Value(1), " then ",
                          Block(depth - 1), " else ", Block(depth - 1), " end\n");
          break;
        case 4: {
          const size_t at = names_;
          names_ += 2;
          absl::StrAppend(&text, "for v", at, ", v", at + 1, " in ipairs(", Pick(2) == 0 ? "KEYS" : "ARGV", ") do ",
                          Block(depth - 1), Pick(4) == 0 ? " break" : "", " end\n");
          names_ = at;
          break;
        }
        default:
          absl::StrAppend(&text, "do ", Block(depth - 1), " end\n");
      }
    }
    names_ = names;
    return text;
  }

  std::mt19937_64 random_;
  size_t names_ = 0;
};

TEST(ScriptPlan, RandomScriptsDoWhatLuaDoes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  Author author(seed);
  Pair pair;
  const std::vector<std::vector<std::string>> arguments = {
      {"3", "k1", "k2", "k3", "a1", "7", "x"}, {"2", "k1", "k2", "7"}, {"1", "k1"}, {"3", "k1", "k1", "k2", "", "1.5", "-3"}};
  int plans = 0;
  for (int i = 0; i < 3000 && !::testing::Test::HasFailure(); ++i) {
    const std::string text = author.Script();
    plans += HasPlan(text) ? 1 : 0;
    if (i % 10 == 0) pair.Both({"FLUSHALL"});
    if (i % 7 == 0) pair.Both({"SET", "k1", "a1"});
    if (i % 7 == 3) pair.Both({"SET", "k2", "7"});
    pair.Same(text, arguments[author.Pick(arguments.size())]);
  }
  EXPECT_GT(plans, 2000);
}

}  // namespace
}  // namespace idemd::server
