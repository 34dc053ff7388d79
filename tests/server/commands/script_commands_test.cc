// Scripts as clients see them: EVAL and its kin, the cache, atomicity, rules for what they may do.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using Strings = std::vector<std::string>;

class ScriptCommands : public ::testing::Test {
 protected:
  std::string Eval(const std::string& text, const Strings& rest = {"0"}) {
    Strings words = {"EVAL", text};
    words.insert(words.end(), rest.begin(), rest.end());
    return h.DoWords(words);
  }
  Harness h;
};

TEST_F(ScriptCommands, RunsAScriptWithItsKeysAndArguments) {
  EXPECT_EQ(Eval("return {KEYS[1], KEYS[2], ARGV[1]}", {"2", "a", "b", "c"}), "[\"a\" \"b\" \"c\"]");
  EXPECT_EQ(Eval("return redis.call('set', KEYS[1], ARGV[1])", {"1", "k", "v"}), "OK");
  EXPECT_EQ(h.Do("GET k"), "\"v\"");
  EXPECT_EQ(Eval("return 1", {"x"}), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Eval("return 1", {"-1"}), "-ERR Number of keys can't be negative");
  EXPECT_EQ(Eval("return 1", {"2", "a"}), "-ERR Number of keys can't be greater than number of args");
}

TEST_F(ScriptCommands, AScriptIsKnownByItsSha1UntilTheCacheIsFlushed) {
  EXPECT_EQ(h.Do("SCRIPT LOAD 'return 1'"), "\"e0e1f9fabfc9d4800c877a703b823ac0578ff8db\"");
  EXPECT_EQ(h.Do("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"), "1");
  EXPECT_EQ(h.Do("EVALSHA E0E1F9FABFC9D4800C877A703B823AC0578FF8DB 0"), "1");
  EXPECT_EQ(h.Do("SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db ffff"), "[1 0]");
  EXPECT_NE(h.Do("INFO memory").find("number_of_cached_scripts:1"), std::string::npos);
  EXPECT_EQ(h.Do("SCRIPT FLUSH"), "OK");
  EXPECT_EQ(h.Do("EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0"),
            "-NOSCRIPT No matching script. Please use EVAL.");
  EXPECT_NE(h.Do("INFO memory").find("number_of_cached_scripts:0"), std::string::npos);
  EXPECT_EQ(h.Do("SCRIPT FLUSH now"), "-ERR SCRIPT FLUSH only support SYNC|ASYNC option");
  EXPECT_EQ(Eval("bad bad"), "-ERR Error compiling script (new function): user_script:1: '=' expected near 'bad'");
  EXPECT_EQ(h.Do("SCRIPT LOAD 'bad bad'"),
            "-ERR Error compiling script (new function): user_script:1: '=' expected near 'bad'");
}

TEST_F(ScriptCommands, WhatItChangesIsOneUnitOfTheLog) {
  h.NewEffects();
  const size_t before = h.log.Units().size();
  Eval("redis.call('set', KEYS[1], 1) redis.call('incr', KEYS[1]) redis.call('set', 'elsewhere', 'x') redis.call('del', KEYS[1])"
       " redis.call('set', KEYS[2], 2)",
       {"2", "a", "b"});
  EXPECT_EQ(h.log.Units().size(), before + 1);
  EXPECT_EQ(h.Do("GET elsewhere"), "\"x\"");
}

TEST_F(ScriptCommands, AnErrorLeavesWhatWasDoneBefore) {
  EXPECT_EQ(Eval("redis.call('set', KEYS[1], 'x') redis.call('nosuch')", {"1", "k"}).substr(0, 50),
            "-ERR Unknown Redis command called from script scri");
  EXPECT_EQ(h.Do("GET k"), "\"x\"");
}

TEST_F(ScriptCommands, KeysThatWereNotDeclaredWork) {
  EXPECT_EQ(Eval("for i = 1, 100 do redis.call('set', 'key:' .. i, i) end return redis.call('dbsize')"), "100");
  EXPECT_EQ(Eval("return redis.call('mget', 'key:1', 'key:50', 'key:100')"), "[\"1\" \"50\" \"100\"]");
}

TEST_F(ScriptCommands, TimeStandsStill) {
  EXPECT_EQ(Eval("redis.call('set', KEYS[1], 'x', 'PX', 1) return redis.call('pttl', KEYS[1])", {"1", "k"}), "1");
}

TEST_F(ScriptCommands, TheDatabaseIsTheCallersAndStaysIt) {
  h.Do("SELECT 3");
  EXPECT_EQ(Eval("redis.call('set', KEYS[1], 'three') redis.call('select', 4) redis.call('set', KEYS[1], 'four')", {"1", "k"}),
            "nil");
  EXPECT_EQ(h.Do("GET k"), "\"three\"");
  h.Do("SELECT 4");
  EXPECT_EQ(h.Do("GET k"), "\"four\"");
}

TEST_F(ScriptCommands, InsideATransactionItIsOneOfTheCommands) {
  h.Do("MULTI");
  h.Do("SET k 5");
  EXPECT_EQ(Eval("return redis.call('incr', 'k')"), "QUEUED");
  h.Do("GET k");
  EXPECT_EQ(h.Do("EXEC"), "[OK 6 \"6\"]");
}

TEST_F(ScriptCommands, WatchersSeeItsChanges) {
  auto other = h.Connect();
  h.Do("WATCH k");
  h.DoWords(*other, {"EVAL", "redis.call('set', KEYS[1], 1)", "1", "k"});
  h.Do("MULTI");
  h.Do("GET k");
  EXPECT_EQ(h.Do("EXEC"), "nil");
}

TEST_F(ScriptCommands, CommandsThatMakeNoSenseInAScriptAreRefused) {
  for (const char* command : {"multi", "exec", "watch", "eval", "script", "config", "auth", "subscribe", "shutdown", "fcall"}) {
    const std::string reply = Eval(std::string("return redis.pcall('") + command + "', 'get', 'x', '0')");
    EXPECT_EQ(reply.substr(0, 1), "-") << command << " " << reply;
  }
  EXPECT_EQ(Eval("return redis.pcall('config', 'get', 'x')"), "-ERR This Redis command is not allowed from script");
  EXPECT_EQ(Eval("return redis.pcall('get')"), "-ERR Wrong number of args calling Redis command from script");
}

TEST_F(ScriptCommands, ReadOnlyFormsDoNotWrite) {
  EXPECT_EQ(h.DoWords({"EVAL_RO", "return redis.pcall('set', 'k', 1)", "0"}),
            "-ERR Write commands are not allowed from read-only scripts.");
  EXPECT_EQ(h.DoWords({"EVAL_RO", "return redis.call('get', 'k')", "0"}), "nil");
  EXPECT_EQ(h.DoWords({"EVAL_RO", "#!lua\nreturn 1", "0"}),
            "-ERR Can not execute a script with write flag using *_ro command.");
  EXPECT_EQ(h.DoWords({"EVAL_RO", "#!lua flags=no-writes\nreturn 1", "0"}), "1");
}

TEST_F(ScriptCommands, TheFirstLineSaysWhatTheScriptIs) {
  EXPECT_EQ(Eval("#!lua flags=no-writes\nreturn redis.pcall('set', 'k', 1)"),
            "-ERR Write commands are not allowed from read-only scripts.");
  EXPECT_EQ(Eval("#!lua flags=bad\nreturn 1"), "-ERR Unexpected flag in script shebang: bad");
  EXPECT_EQ(Eval("#!lua x=y\nreturn 1"), "-ERR Unknown lua shebang option: x=y");
  EXPECT_EQ(Eval("#!other\nreturn 1"), "-ERR Unexpected engine in script shebang: #!other");
  EXPECT_EQ(Eval("#!lua"), "-ERR Invalid script shebang");
  EXPECT_EQ(Eval("#!lua\nerror('x')").substr(0, 25), "-ERR user_script:2: x scr");
}

TEST_F(ScriptCommands, OverTheMemoryLimitAScriptMayNotBeginToWrite) {
  h.Do("SET k 1");
  h.store.settings().maxmemory_bytes.store(1);
  EXPECT_EQ(Eval("return redis.pcall('set', 'k', 1)"), "-OOM command not allowed when used memory > 'maxmemory'.");
  EXPECT_EQ(Eval("return redis.call('get', 'k')"), "\"1\"");
  EXPECT_EQ(Eval("redis.call('del', 'k') return redis.call('set', 'k', 2)"), "OK");
  EXPECT_EQ(Eval("#!lua\nreturn 1"),
            "-OOM allow-oom flag is not set on the script, can not run it when used memory > 'maxmemory'");
  EXPECT_EQ(Eval("#!lua flags=allow-oom\nreturn redis.call('set', 'k', 3)"), "OK");
  EXPECT_EQ(Eval("#!lua flags=no-writes\nreturn redis.call('get', 'k')"), "\"3\"");
}

TEST_F(ScriptCommands, ErrorsAreCountedOnce) {
  Eval("return redis.call('nosuch')");
  EXPECT_NE(h.Do("INFO errorstats").find("errorstat_ERR:count=1"), std::string::npos);
  Eval("return redis.pcall('select', 99)");
  EXPECT_NE(h.Do("INFO errorstats").find("errorstat_ERR:count=2"), std::string::npos);
  Eval("return redis.error_reply('MINE x')");
  EXPECT_NE(h.Do("INFO errorstats").find("errorstat_MINE:count=1"), std::string::npos);
}

TEST_F(ScriptCommands, MonitorsSeeTheScriptBeforeItsCommands) {
  auto monitor = h.Connect();
  h.Do(*monitor, "MONITOR");
  Eval("redis.call('set', KEYS[1], 1)", {"1", "k"});
  const size_t script = monitor->peer->sent.find("\"EVAL\"");
  const size_t command = monitor->peer->sent.find("[0 lua] \"set\" \"k\" \"1\"");
  EXPECT_LT(script, command);
  EXPECT_NE(command, std::string::npos);
}

TEST_F(ScriptCommands, TooManyStepsAreTooMany) {
  h.settings.script_steps_max.store(1'000'000);
  EXPECT_EQ(Eval("while true do end").substr(0, 60), "-ERR the script takes more steps than script-max-steps allow");
  h.settings.script_steps_max.store(0);
}

TEST_F(ScriptCommands, NothingRunsThatCouldBeKilled) {
  EXPECT_EQ(h.Do("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.");
}

}  // namespace
}  // namespace idemd::testing
