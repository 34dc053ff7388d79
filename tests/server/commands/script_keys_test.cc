// Which scripts are seen to touch only the keys that their callers declare.
#include "server/commands/script_keys.h"

#include "gtest/gtest.h"

namespace idemd::server {
namespace {

bool Declared(absl::string_view text) {
  static const CommandTable commands;
  LuaTokens tokens;
  return Tokenize(text, &tokens) && KeysAreDeclared(commands, tokens);
}

TEST(ScriptKeys, KeysOfTheListAreDeclared) {
  for (const char* text : {
           "return 1",
           "return redis.call('get', KEYS[1])",
           "return redis.call('GET', KEYS[#KEYS])",
           "if redis.call('get',KEYS[1]) == ARGV[1] then return redis.call('del',KEYS[1]) else return 0 end",
           "redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2])",
           "redis.call('set', KEYS[1], tonumber(ARGV[1]))",
           "redis.call('mset', KEYS[1], 1, KEYS[2], 2)",
           "return redis.call('mget', unpack(KEYS))",
           "return redis.call('mget', KEYS[1], unpack(KEYS))",
           "return redis.call('del', KEYS[1], KEYS[2])",
           "local key = KEYS[1] return redis.call('incr', key)",
           "local a, b = KEYS[1], KEYS[2] return redis.call('rename', a, b)",
           "for i, key in ipairs(KEYS) do redis.call('del', key) end",
           "for i = 1, #KEYS do redis.call('del', KEYS[i]) end",
           "return redis.call('time')",
           "return redis.call('publish', ARGV[1], 'x')",
           "return redis.call('set', KEYS[1], unpack(ARGV))",
           "redis.log(redis.LOG_NOTICE, 'x') return redis.sha1hex('y')",
           "return cjson.encode({KEYS[1]})",
           "return redis.call('object', 'encoding', KEYS[1])",
           "local t = {} t.redis = 1 return t.redis",
       })
    EXPECT_TRUE(Declared(text)) << text;
}

TEST(ScriptKeys, WhatCouldBeAnyKeyIsNot) {
  for (const char* text : {
           "return redis.call('get', 'fixed')",
           "return redis.call('get', ARGV[1])",
           "return redis.call('get', KEYS[1] .. ':x')",
           "return redis.call('get', 'p:' .. KEYS[1])",
           "local key = KEYS[1] .. ':x' return redis.call('get', key)",
           "local key = KEYS[1] key = 'other' return redis.call('get', key)",
           "local key if ARGV[1] then key = KEYS[1] end return redis.call('get', key)",
           "local key = ARGV[1] or KEYS[1] return redis.call('get', key)",
           "for _, key in ipairs(ARGV) do redis.call('del', key) end",
           "for i, key in ipairs(KEYS) do redis.call('del', i) end",
           "local function f(key) return redis.call('get', key) end return f(KEYS[1])",
           "return redis.call(ARGV[1], KEYS[1])",
           "return redis.call('mget', unpack(ARGV))",
           "return redis.call('del', KEYS[1], unpack(ARGV))",
           "return redis.call('keys', '*')",
           "return redis.call('scan', 0)",
           "return redis.call('flushall')",
           "return redis.call('nosuch', KEYS[1])",
           "local r = redis return r.call('get', 'x')",
           "local call = redis.call return call('get', 'x')",
           "return redis['call']('get', 'x')",
           "return _G.redis.call('get', 'x')",
           "return loadstring('return redis.call(\"get\", \"x\")')()",
           "KEYS[1] = 'x' return redis.call('get', KEYS[1])",
           "local a a, KEYS[1] = 1, 'x' return redis.call('get', KEYS[1])",
           "KEYS[1], b = 'x', 2 return redis.call('get', KEYS[1])",
           "table.insert(KEYS, 'x') return redis.call('get', KEYS[3])",
           "local KEYS = ARGV return redis.call('get', KEYS[1])",
           "local function f(KEYS) return redis.call('get', KEYS[1]) end return f(ARGV)",
           "for k, KEYS in pairs({ARGV}) do redis.call('get', KEYS[1]) end",
           "local t = KEYS t[1] = 'x' return redis.call('get', KEYS[1])",
           "return redis.call('get', (function() return 'x' end)())",
           "redis.call('set', KEYS[1], '1', unpack({})) redis.call('get', unpack({'x'}))",
           "return pcall(redis.call, 'get', 'x')",
           "local key = KEYS[1] function key() end return redis.call('get', key)",
           "return redis.call('rename', KEYS[1], ARGV[1])",
       })
    EXPECT_FALSE(Declared(text)) << text;
}

}  // namespace
}  // namespace idemd::server
