// Libraries of functions: loading them, calling them, carrying them away and back.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

constexpr const char kLibrary[] =
    "#!lua name=lib\n"
    "local function twice(x) return 2 * x end\n"
    "redis.register_function('double', function(keys, args) return twice(args[1]) end)\n"
    "redis.register_function{function_name='read', callback=function(keys) return redis.call('get', keys[1]) end,\n"
    "  flags={'no-writes'}, description='reads a key'}\n"
    "redis.register_function('write', function(keys, args) return redis.call('set', keys[1], args[1]) end)\n";

class FunctionCommands : public ::testing::Test {
 protected:
  std::string Load(const std::string& text) { return h.DoWords({"FUNCTION", "LOAD", text}); }
  Harness h;
};

TEST_F(FunctionCommands, FunctionsOfALibraryAreCalledByNameInAnyCase) {
  EXPECT_EQ(Load(kLibrary), "\"lib\"");
  EXPECT_EQ(h.Do("FCALL double 0 21"), "42");
  EXPECT_EQ(h.Do("FCALL DOUBLE 0 4"), "8");
  EXPECT_EQ(h.Do("FCALL write 1 k v"), "OK");
  EXPECT_EQ(h.Do("FCALL read 1 k"), "\"v\"");
  EXPECT_EQ(h.Do("FCALL_RO read 1 k"), "\"v\"");
  EXPECT_EQ(h.Do("FCALL_RO write 1 k v"), "-ERR Can not execute a script with write flag using *_ro command.");
  EXPECT_EQ(h.Do("FCALL nope 0"), "-ERR Function not found");
  EXPECT_EQ(h.Do("FCALL double x"), "-ERR Bad number of keys provided");
  EXPECT_EQ(h.Do("FCALL double -1"), "-ERR Number of keys can't be negative");
  EXPECT_EQ(h.Do("FCALL double 3 a"), "-ERR Number of keys can't be greater than number of args");
}

TEST_F(FunctionCommands, WhatIsNoLibraryIsRefusedAndChangesNothing) {
  EXPECT_EQ(Load(kLibrary), "\"lib\"");
  EXPECT_EQ(Load(kLibrary), "-ERR Library 'lib' already exists");
  EXPECT_EQ(Load("return 1"), "-ERR Missing library metadata");
  EXPECT_EQ(Load("#!lua name=x"), "-ERR Invalid library metadata");
  EXPECT_EQ(Load("#!lua\nreturn 1"), "-ERR Library name was not given");
  EXPECT_EQ(Load("#!lua name=a name=b\nreturn 1"), "-ERR Invalid metadata value, name argument was given multiple times");
  EXPECT_EQ(Load("#!lua name=a-b\nreturn 1"),
            "-ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one character long");
  EXPECT_EQ(Load("#!perl name=x\nreturn 1"), "-ERR Engine 'perl' not found");
  EXPECT_EQ(Load("#!lua name=x y=z\nreturn 1"), "-ERR Invalid metadata value given: y=z");
  EXPECT_EQ(Load("#!lua name=x\nreturn 1"), "-ERR No functions registered");
  EXPECT_EQ(Load("#!lua name=x\nbad bad"), "-ERR Error compiling function: user_function:2: '=' expected near 'bad'");
  EXPECT_EQ(Load("#!lua name=x\nreturn math.random()"),
            "-ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable "
            "'math'");
  EXPECT_EQ(Load("#!lua name=x\nreturn redis.call('ping')"),
            "-ERR Error registering functions: ERR user_function:2: Script attempted to access nonexistent global variable "
            "'call'");
  EXPECT_EQ(Load("#!lua name=x\na = 1"),
            "-ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly table");
  EXPECT_EQ(Load("#!lua name=x\nredis.register_function('double', function() end)"), "-ERR Function double already exists");
  EXPECT_EQ(Load("#!lua name=x\nredis.register_function('a', function() end) redis.register_function('a', function() end)"),
            "-ERR Error registering functions: ERR Function already exists in the library");
  EXPECT_EQ(Load("#!lua name=x\nredis.register_function{function_name='a', callback=function() end, flags={'no'}}"),
            "-ERR Error registering functions: ERR unknown flag given");
  EXPECT_EQ(Load("#!lua name=x\nredis.register_function('a')"),
            "-ERR Error registering functions: ERR calling redis.register_function with a single argument is only applicable "
            "to Lua table (representing named arguments).");
  EXPECT_EQ(h.Do("FUNCTION STATS"),
            "[\"running_script\" nil \"engines\" [\"LUA\" [\"libraries_count\" 1 \"functions_count\" 3]]]");
  EXPECT_EQ(h.Do("FCALL double 0 21"), "42");
}

TEST_F(FunctionCommands, ALibraryIsReplacedAsAWhole) {
  Load(kLibrary);
  EXPECT_EQ(h.DoWords({"FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('other', function() return 1 end)"}),
            "\"lib\"");
  EXPECT_EQ(h.Do("FCALL other 0"), "1");
  EXPECT_EQ(h.Do("FCALL double 0 1"), "-ERR Function not found");
  EXPECT_EQ(h.DoWords({"FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nfoo()"}).substr(0, 33),
            "-ERR Error registering functions:");
  EXPECT_EQ(h.Do("FCALL other 0"), "1");
  EXPECT_EQ(h.Do("FUNCTION DELETE nope"), "-ERR Library not found");
  EXPECT_EQ(h.Do("FUNCTION DELETE lib"), "OK");
  EXPECT_EQ(h.Do("FCALL other 0"), "-ERR Function not found");
}

TEST_F(FunctionCommands, TheListTellsWhatThereIs) {
  Load("#!lua name=one\nredis.register_function{function_name='f', callback=function() end, description='d', "
       "flags={'no-writes','allow-oom'}}");
  Load("#!lua name=two\nredis.register_function('g', function() end)");
  EXPECT_EQ(h.Do("FUNCTION LIST"),
            "[[\"library_name\" \"one\" \"engine\" \"LUA\" \"functions\" [[\"name\" \"f\" \"description\" \"d\" \"flags\" "
            "[no-writes allow-oom]]]] [\"library_name\" \"two\" \"engine\" \"LUA\" \"functions\" [[\"name\" \"g\" "
            "\"description\" nil \"flags\" []]]]]");
  EXPECT_EQ(h.Do("FUNCTION LIST LIBRARYNAME TW*"),
            "[[\"library_name\" \"two\" \"engine\" \"LUA\" \"functions\" [[\"name\" \"g\" \"description\" nil \"flags\" []]]]]");
  EXPECT_NE(h.Do("FUNCTION LIST WITHCODE LIBRARYNAME two").find("\"library_code\" \"#!lua name=two"), std::string::npos);
  EXPECT_EQ(h.Do("FUNCTION LIST LIBRARYNAME"), "-ERR library name argument was not given");
  EXPECT_EQ(h.Do("FUNCTION LIST x"), "-ERR Unknown argument x");
  EXPECT_NE(h.Do("INFO memory").find("number_of_functions:2\r\nnumber_of_libraries:2"), std::string::npos);
}

TEST_F(FunctionCommands, ADumpIsRestoredByTheGivenPolicy) {
  Load(kLibrary);
  std::string dump = h.DoWords({"FUNCTION", "DUMP"});
  dump = dump.substr(1, dump.size() - 2);
  EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump}), "-ERR Library lib already exists");
  EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump, "REPLACE"}), "OK");
  EXPECT_EQ(h.Do("FUNCTION FLUSH"), "OK");
  Load("#!lua name=mine\nredis.register_function('double', function() return 0 end)");
  EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump}), "-ERR Function double already exists");
  EXPECT_EQ(h.Do("FCALL double 0 1"), "0");
  EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump, "FLUSH"}), "OK");
  EXPECT_EQ(h.Do("FCALL double 0 1"), "2");
  EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump, "x"}),
            "-ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  for (size_t cut = 0; cut < dump.size(); cut += 7)
    EXPECT_EQ(h.DoWords({"FUNCTION", "RESTORE", dump.substr(0, cut), "FLUSH"}),
              "-ERR DUMP payload version or checksum are wrong");
  EXPECT_EQ(h.Do("FCALL double 0 1"), "2");
}

TEST_F(FunctionCommands, FlagsAreKept) {
  Load("#!lua name=lib\nredis.register_function{function_name='w', callback=function() return redis.pcall('set', 'k', 1) end, "
       "flags={'no-writes'}}\nredis.register_function('e', function()\n error('x') end)");
  EXPECT_EQ(h.Do("FCALL w 0"), "-ERR Write commands are not allowed from read-only scripts.");
  EXPECT_EQ(h.Do("FCALL e 0"), "-ERR user_function:4: x script: e, on @user_function:4.");
}

TEST_F(FunctionCommands, FunctionsCannotBeRegisteredByFunctions) {
  Load("#!lua name=lib\nlocal lib = redis\n"
       "redis.register_function('f', function() lib.register_function('g', function() end) end)\n"
       "redis.register_function('h', function() redis.register_function('g', function() end) end)\n"
       "redis.register_function('i', function() lib.x = 1 end)");
  EXPECT_EQ(h.Do("FCALL f 0").substr(0, 80),
            "-ERR redis.register_function can only be called on FUNCTION LOAD command script:");
  EXPECT_NE(h.Do("FCALL h 0").find("attempt to call field 'register_function' (a nil value)"), std::string::npos);
  EXPECT_NE(h.Do("FCALL i 0").find("Attempt to modify a readonly table"), std::string::npos);
}

}  // namespace
}  // namespace idemd::testing
