// HyperLogLogs through their commands.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kWrongType[] = "-WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr char kNoHyperLogLog[] = "-WRONGTYPE Key is not a valid HyperLogLog string value.";
constexpr char kDamaged[] = "-INVALIDOBJ Corrupted HLL object detected";

TEST(HyperLogLogCommands, ElementsAreCountedOnce) {
  PlayFresh({{"PFCOUNT p", "0"},
             {"PFADD p", "1"},
             {"PFADD p", "0"},
             {"PFCOUNT p", "0"},
             {"PFADD p a b c", "1"},
             {"PFADD p a b c", "0"},
             {"PFCOUNT p", "3"},
             {"PFADD q c d", "1"},
             {"PFCOUNT p q none", "4"},
             {"PFMERGE m p q", "OK"},
             {"PFCOUNT m", "4"},
             {"PFMERGE fresh", "OK"},
             {"PFCOUNT fresh", "0"},
             {"PFDEBUG ENCODING m", "sparse"},
             {"PFDEBUG TODENSE m", "1"},
             {"PFDEBUG TODENSE m", "0"},
             {"PFDEBUG encoding m", "dense"},
             {"PFCOUNT m", "4"},
             {"PFMERGE p m", "OK"},
             {"PFDEBUG ENCODING p", "dense"},
             {"STRLEN p", "12304"},
             {"TYPE p", "string"},
             {"PFDEBUG DECODE p", "-ERR HLL encoding is not sparse"},
             {"PFDEBUG DECODE fresh", "\"Z:16384\""},
             {"PFDEBUG NOSUCH p", "-ERR Unknown PFDEBUG subcommand 'NOSUCH'"},
             {"PFDEBUG ENCODING none", "-ERR The specified key does not exist"}});
}

TEST(HyperLogLogCommands, ACountIsKeptInTheValueUntilAnElementIsNew) {
  Harness server;
  server.Do("PFADD p a");
  server.NewEffects();
  EXPECT_EQ(server.Do("PFCOUNT p"), "1");
  EXPECT_THAT(server.NewEffects(), ElementsAre(HasSubstr("HYLL")));
  EXPECT_EQ(server.Do("PFCOUNT p"), "1");
  EXPECT_EQ(server.Do("PFADD p a"), "0");
  EXPECT_EQ(server.Do("PFCOUNT p"), "1");
  EXPECT_THAT(server.NewEffects(), IsEmpty());
  EXPECT_EQ(server.Do("PFADD p b"), "1");
  EXPECT_EQ(server.Do("PFCOUNT p"), "2");
}

TEST(HyperLogLogCommands, ALifetimeStays) {
  Harness server;
  Play(server, {{"PFADD p a", "1"}, {"EXPIRE p 100", "1"}, {"PFADD p b", "1"}, {"PFCOUNT p", "2"}, {"TTL p", "100"}});
}

TEST(HyperLogLogCommands, WhatIsNoHyperLogLogIsRefused) {
  Harness server;
  server.Do("SET text text");
  server.Do("SADD set a");
  server.Do("IDEM.RESERVE reservation CLAIM c");
  server.DoWords({"SET", "cut", std::string("HYLL\x01", 5) + std::string(11, '\0') + "\x10"});
  server.NewEffects();
  for (const char* key : {"text", "reservation"}) {
    for (const std::string command : {"PFADD ", "PFCOUNT ", "PFMERGE d ", "PFCOUNT none ", "PFDEBUG ENCODING "})
      EXPECT_EQ(server.Do(command + key), kNoHyperLogLog) << command << key;
  }
  Play(server, {{"PFADD set a", kWrongType},
                {"PFCOUNT set", kWrongType},
                {"PFMERGE d set", kWrongType},
                {"PFADD cut a b", kDamaged},
                {"PFCOUNT cut none", kDamaged},
                {"PFMERGE d cut", kDamaged},
                {"PFDEBUG TODENSE cut", kDamaged},
                {"PFDEBUG GETREG cut", kDamaged}});
  EXPECT_THAT(server.NewEffects(), IsEmpty());
}

TEST(HyperLogLogCommands, TheSelfTestPasses) {
  Harness server;
  EXPECT_EQ(server.Do("PFSELFTEST"), "OK");
}

}  // namespace
}  // namespace idemd::testing
