// Scripts in the sandbox with a host that answers what the test says: values both ways, limits, what cannot be reached.
#include "server/script/interpreter.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "tests/support/seed.h"

namespace idemd::server {
namespace {

class FakeHost final : public ScriptHost {
 public:
  void Call(absl::Span<const absl::string_view> words, int resp, std::string& reply) override {
    calls.push_back(absl::StrJoin(words, " "));
    last_resp = resp;
    reply += answer;
  }
  absl::string_view Step() override { return ++steps >= steps_max ? absl::string_view("ERR ended") : absl::string_view(); }
  Verdict MayCall(absl::Span<const absl::string_view>) override { return Verdict::kAllowed; }
  void Log(int level, absl::string_view text) override { logged.push_back(absl::StrCat(level, " ", text)); }

  std::string answer = "+OK\r\n";
  std::vector<std::string> calls;
  std::vector<std::string> logged;
  int last_resp = 0;
  int steps = 0;
  int steps_max = 1'000'000;
};

class InterpreterTest : public ::testing::Test {
 protected:
  static constexpr size_t kMemoryMax = size_t{32} << 20;

  std::string Run(absl::string_view text, int client_resp = 2) {
    std::string error;
    const int handle = interpreter_.Compile(text, &error);
    if (handle == Interpreter::kNone) return "compile: " + error;
    std::string out;
    protocol::Writer reply(out, client_resp);
    ScriptRun run{.host = host_, .keys = keys_, .args = args_, .name = "name"};
    interpreter_.Run(handle, run, reply);
    counted_ = run.error_counted;
    interpreter_.Forget(handle);
    return out;
  }

  std::atomic<size_t> used_{0};
  Interpreter interpreter_{Interpreter::Kind::kScripts, used_, kMemoryMax};
  FakeHost host_;
  std::vector<absl::string_view> keys_ = {"k1", "k2"};
  std::vector<absl::string_view> args_ = {"a1", absl::string_view("z\0z", 3)};
  bool counted_ = false;
};

TEST_F(InterpreterTest, ValuesBecomeRepliesByRedisRules) {
  EXPECT_EQ(Run("return 'x'"), "$1\r\nx\r\n");
  EXPECT_EQ(Run("return 3.99"), ":3\r\n");
  EXPECT_EQ(Run("return -3.99"), ":-3\r\n");
  EXPECT_EQ(Run("return 2^63"), ":-9223372036854775808\r\n");
  EXPECT_EQ(Run("return 0/0"), ":-9223372036854775808\r\n");
  EXPECT_EQ(Run("return true"), ":1\r\n");
  EXPECT_EQ(Run("return false"), "$-1\r\n");
  EXPECT_EQ(Run("return false", 3), "_\r\n");
  EXPECT_EQ(Run("return nil", 3), "_\r\n");
  EXPECT_EQ(Run("return {1,'a',{2},nil,5}"), "*3\r\n:1\r\n$1\r\na\r\n*1\r\n:2\r\n");
  EXPECT_EQ(Run("return {ok='fine'}"), "+fine\r\n");
  EXPECT_EQ(Run("return {err='BAD thing'}"), "-BAD thing\r\n");
  EXPECT_EQ(Run("return {ok='a\\r\\nb'}"), "+a  b\r\n");
  EXPECT_EQ(Run("return ARGV[2]"), absl::StrCat("$3\r\n", absl::string_view("z\0z", 3), "\r\n"));
  EXPECT_EQ(Run("return {KEYS[1],KEYS[2],#ARGV}"), "*3\r\n$2\r\nk1\r\n$2\r\nk2\r\n:2\r\n");
}

TEST_F(InterpreterTest, TypesOfTheNewerProtocolHaveTablesOfTheirOwn) {
  EXPECT_EQ(Run("return {double=0.1}"), "$19\r\n0.10000000000000001\r\n");
  EXPECT_EQ(Run("return {double=0.1}", 3), ",0.10000000000000001\r\n");
  EXPECT_EQ(Run("return {map={a=1}}"), "*2\r\n$1\r\na\r\n:1\r\n");
  EXPECT_EQ(Run("return {map={a=1}}", 3), "%1\r\n$1\r\na\r\n:1\r\n");
  EXPECT_EQ(Run("return {set={a=true}}", 3), "~1\r\n$1\r\na\r\n");
  EXPECT_EQ(Run("return {big_number='1\\r2'}", 3), "(1 2\r\n");
  EXPECT_EQ(Run("return {verbatim_string={format='mkd',string='x'}}", 3), "=5\r\nmkd:x\r\n");
  EXPECT_EQ(Run("redis.setresp(3) return true", 3), "#t\r\n");
  EXPECT_EQ(Run("redis.setresp(3) return false", 2), ":0\r\n");
  EXPECT_EQ(Run("return true", 3), ":1\r\n");  // setresp is forgotten after a run
}

TEST_F(InterpreterTest, RepliesBecomeValues) {
  const auto type_of = [&](absl::string_view answer, absl::string_view shown) {
    host_.answer = std::string(answer);
    return Run(absl::StrCat("redis.setresp(3) local r = redis.pcall('x') redis.setresp(2) return ", shown));
  };
  EXPECT_EQ(type_of(":-42\r\n", "{type(r), r}"), "*2\r\n$6\r\nnumber\r\n:-42\r\n");
  EXPECT_EQ(type_of("$3\r\na\r\n\r\n", "#r"), ":3\r\n");
  EXPECT_EQ(type_of("$-1\r\n", "r == false"), ":1\r\n");
  EXPECT_EQ(type_of("*-1\r\n", "r == false"), ":1\r\n");
  EXPECT_EQ(type_of("_\r\n", "r == nil"), ":1\r\n");
  EXPECT_EQ(type_of("+FINE\r\n", "r.ok"), "$4\r\nFINE\r\n");
  EXPECT_EQ(type_of("-BAD x\r\n", "r.err"), "$5\r\nBAD x\r\n");
  EXPECT_EQ(type_of("*2\r\n:1\r\n*1\r\n$1\r\na\r\n", "{r[1], r[2][1], #r}"), "*3\r\n:1\r\n$1\r\na\r\n:2\r\n");
  EXPECT_EQ(type_of("%1\r\n$1\r\nk\r\n:7\r\n", "r.map.k"), ":7\r\n");
  EXPECT_EQ(type_of("~2\r\n$1\r\na\r\n$1\r\nb\r\n", "{r.set.a, r.set.b, r.set.c}"), "*2\r\n:1\r\n:1\r\n");
  EXPECT_EQ(type_of(",1.5\r\n", "r.double * 2"), ":3\r\n");
  EXPECT_EQ(type_of("#t\r\n", "r == true"), ":1\r\n");
  EXPECT_EQ(type_of("(123\r\n", "r.big_number"), "$3\r\n123\r\n");
  EXPECT_EQ(type_of("=5\r\ntxt:x\r\n", "{r.verbatim_string.format, r.verbatim_string.string}"),
            "*2\r\n$3\r\ntxt\r\n$1\r\nx\r\n");
  EXPECT_EQ(type_of("|1\r\n$1\r\na\r\n:1\r\n:5\r\n", "r"), ":5\r\n");
  EXPECT_EQ(host_.last_resp, 3);
}

TEST_F(InterpreterTest, ErrorsNameTheScriptAndTheLine) {
  EXPECT_EQ(Run("\nerror('boom')"), "-ERR user_script:2: boom script: name, on @user_script:2.\r\n");
  EXPECT_FALSE(counted_);
  host_.answer = "-WRONGTYPE no\r\n";
  EXPECT_EQ(Run("redis.call('x')"), "-WRONGTYPE no script: name, on @user_script:1.\r\n");
  EXPECT_TRUE(counted_);
  EXPECT_EQ(Run("return redis.pcall('x')"), "-WRONGTYPE no\r\n");
  EXPECT_TRUE(counted_);
  EXPECT_EQ(Run("local ok, e = pcall(redis.call, 'x') return e"), "$12\r\nWRONGTYPE no\r\n");
  EXPECT_EQ(Run("return redis.call()"),
            "-ERR Please specify at least one argument for this redis lib call script: name, on @user_script:1.\r\n");
  EXPECT_EQ(Run("return redis.call({})"),
            "-ERR Lua redis lib command arguments must be strings or integers script: name, on @user_script:1.\r\n");
  EXPECT_EQ(Run("bad bad"), "compile: user_script:1: '=' expected near 'bad'");
}

TEST_F(InterpreterTest, NumbersGoToCommandsWithAllTheirDigitsAndToTextsWithFourteen) {
  Run("redis.call('x', 0.1, 1e15, 123456789012345678, -7, 1e100, 1/0, 3.0)");
  EXPECT_EQ(host_.calls.back(),
            "x 0.10000000000000001 1000000000000000 1.2345678901234568e+17 -7 1e+100 inf 3");
  EXPECT_EQ(Run("return {tostring(0.1), tostring(1e15), tostring(-0/1*0), tostring(0/0), tostring(100)}"),
            "*5\r\n$3\r\n0.1\r\n$5\r\n1e+15\r\n$2\r\n-0\r\n$4\r\n-nan\r\n$3\r\n100\r\n");
}

TEST_F(InterpreterTest, RandomNumbersPrintAsTheCLibraryPrintsThem) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t bits = random();
    double number;
    std::memcpy(&number, &bits, sizeof number);
    if (i % 2 == 0) number = static_cast<double>(static_cast<int64_t>(bits >> (bits % 60))) / 8;
    if (std::isnan(number) || std::isinf(number)) continue;
    char exact[64];
    char printed[64];
    std::snprintf(exact, sizeof exact, "%.17g", number);
    std::snprintf(printed, sizeof printed, "%.14g", number);
    // What lies just between two texts LuaJIT's own printing rounds up. Digits: one, the point, thirteen, and those that go.
    char digits[64];
    std::snprintf(digits, sizeof digits, "%.40e", std::fabs(number));
    const absl::string_view lost = absl::string_view(digits).substr(15, 27);
    const bool between = lost[0] == '5' && lost.find_first_not_of('0', 1) == absl::string_view::npos;
    const std::string text = absl::StrCat("local n = tonumber('", exact, "') redis.call('x', n) return {tostring(n), ",
                                          between ? "tostring(n)" : "n .. ''", "}");
    const std::string bulk = absl::StrCat("$", std::strlen(printed), "\r\n", printed, "\r\n");
    ASSERT_EQ(Run(text), absl::StrCat("*2\r\n", bulk, bulk)) << exact;
    ASSERT_EQ(host_.calls.back(), absl::StrCat("x ", exact));
  }
}

TEST_F(InterpreterTest, NothingOutsideTheSandboxCanBeReached) {
  for (const char* name : {"os", "io", "debug", "package", "require", "dofile", "loadfile", "jit", "ffi", "print", "module",
                           "setfenv", "getfenv", "newproxy"})
    EXPECT_EQ(Run(absl::StrCat("return ", name)),
              absl::StrCat("-ERR user_script:1: Script attempted to access nonexistent global variable '", name,
                           "' script: name, on @user_script:1.\r\n"));
  for (const char* name : {"string.gfind2", "table.move", "table.new", "math.tointeger", "bit.ffi", "coroutine.isyieldable"})
    EXPECT_EQ(Run(absl::StrCat("return ", name)), "$-1\r\n") << name;
  EXPECT_EQ(Run("return loadstring(string.dump(function() return 1 end)) == nil"), ":1\r\n");
  EXPECT_EQ(Run("return loadstring('return 1LL') == nil"), ":1\r\n");
  EXPECT_EQ(Run("return load(function() return nil end) ~= nil"), ":1\r\n");
}

TEST_F(InterpreterTest, NoScriptChangesAnythingForTheNext) {
  for (const char* text : {"x = 1", "_G.x = 1", "redis.call = nil", "string.upper = nil", "math.pi = 3", "KEYS = {}",
                           "getmetatable('').__index = nil", "getmetatable(_G).__index = nil", "redis = nil"})
    EXPECT_NE(Run(text).find("-ERR user_script:1: Attempt to modify a readonly table script"), std::string::npos) << text;
  for (const char* text : {"rawset(_G, 'x', 1)", "setmetatable(_G, {})", "table.insert(redis, 1)"})
    EXPECT_NE(Run(text).find("-ERR Attempt to modify a readonly table script"), std::string::npos) << text;
  EXPECT_EQ(Run("collectgarbage('stop') return ('x'):upper()"), "$1\r\nX\r\n");
  EXPECT_EQ(Run("local n = 0 for k in pairs(_G) do n = n + 1 end return n"), ":34\r\n");
  EXPECT_EQ(Run("return rawget(redis, 'call') == redis.call"), ":1\r\n");
  EXPECT_EQ(Run("return getmetatable('').__index == string"), ":1\r\n");
}

TEST_F(InterpreterTest, AScriptThatWantsTooMuchMemoryEndsAndTheNextOneRuns) {
  for (const char* text : {"local t = {} while true do t[#t + 1] = {} end", "local s = 'x' while true do s = s .. s end",
                           "return string.rep('x', 100000000)", "local function f() return f() + 1 end return f()",
                           "local t = {} for i = 1, 1e9 do t[i] = i .. 'x' end",
                           "pcall(function() local t = {} while true do t[#t + 1] = {} end end) return string.rep('x', 1e8)"}) {
    SCOPED_TRACE(text);
    const std::string out = Run(text);
    EXPECT_EQ(out.substr(0, 5), "-ERR ") << text;
    EXPECT_LT(used_.load(), kMemoryMax / 2) << text;
    EXPECT_EQ(Run("return 'well'"), "$4\r\nwell\r\n") << text;
  }
}

TEST_F(InterpreterTest, AnEndlessScriptIsEndedWhateverItCatches) {
  host_.steps_max = 5;
  for (const char* text : {"while true do end", "while true do pcall(function() while true do end end) end",
                           "local co = coroutine.wrap(function() while true do end end) while true do pcall(co) end",
                           "local function f() return f() end f()"}) {
    host_.steps = 0;
    EXPECT_EQ(Run(text), "-ERR ended script: name, on @user_script:1.\r\n") << text;
    host_.steps = -1000;
    EXPECT_EQ(Run("local s = 0 for i = 1, 10 do s = s + i end return s"), ":55\r\n");
  }
}

TEST_F(InterpreterTest, ATableInsideItselfEndsWithAnError) {
  const std::string out = Run("local a = {} local b = {a} a[1] = b return a");
  EXPECT_EQ(out.substr(0, 8), "*1\r\n*1\r\n");
  const std::string end = "*1\r\n-ERR reached lua stack limit\r\n";
  EXPECT_EQ(out.substr(out.size() - end.size()), end);
}

TEST_F(InterpreterTest, WhatScriptsLogIsHandedOn) {
  EXPECT_EQ(Run("redis.log(redis.LOG_WARNING, 'a', 1, 'b')"), "$-1\r\n");
  EXPECT_EQ(host_.logged, std::vector<std::string>({"3 a 1 b"}));
}

TEST_F(InterpreterTest, RandomNumbersFollowFromTheirSeed) {
  EXPECT_EQ(Run("math.randomseed(10) return {tostring(math.random()), math.random(100), math.random(5,10)}"),
            "*3\r\n$16\r\n0.87885112309775\r\n:80\r\n:7\r\n");
}

}  // namespace
}  // namespace idemd::server
