// Sets through their commands: replies in both protocols, draws, algebra, and what the log is told.
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr char kWrongType[] = "-WRONGTYPE Operation against a key holding the wrong kind of value";
constexpr char kNotInteger[] = "-ERR value is not an integer or out of range";
constexpr char kNotPositive[] = "-ERR value is out of range, must be positive";

// The elements of an array as Readable() shows it.
std::vector<std::string> Elements(const std::string& reply) {
  return absl::StrSplit(reply.substr(1, reply.size() - 2), ' ', absl::SkipEmpty());
}
std::set<std::string> Different(const std::string& reply) {
  const auto elements = Elements(reply);
  return {elements.begin(), elements.end()};
}

TEST(SetCommands, MembersComeAndGo) {
  PlayFresh({{"SADD s 3 1 2 3", "3"},
             {"SADD s 1", "0"},
             {"SMEMBERS s", "[\"1\" \"2\" \"3\"]"},
             {"SMEMBERS none", "[]"},
             {"OBJECT ENCODING s", "\"intset\""},
             {"SISMEMBER s 2", "1"},
             {"SISMEMBER s 02", "0"},
             {"SMISMEMBER s 1 9 3", "[1 0 1]"},
             {"SMISMEMBER none 1 2", "[0 0]"},
             {"SCARD s", "3"},
             {"SREM s 1 9", "1"},
             {"SADD s x", "1"},
             {"OBJECT ENCODING s", "\"hashtable\""},
             {"SREM s 2 3 x 4", "3"},
             {"EXISTS s", "0"},
             {"SREM s 2", "0"},
             {"SCARD s", "0"}});
}

TEST(SetCommands, AMemberIsMoved) {
  PlayFresh({{"SADD a 1 x", "2"},
             {"SADD b 2", "1"},
             {"SMOVE a b x", "1"},
             {"SMOVE a b x", "0"},
             {"SISMEMBER b x", "1"},
             {"SMOVE a a 1", "1"},
             {"SMOVE a a 9", "0"},
             {"SMOVE a fresh 1", "1"},
             {"EXISTS a", "0"},
             {"SMEMBERS fresh", "[\"1\"]"},
             {"SMOVE none b 1", "0"},
             {"SET text t", "OK"},
             {"SMOVE none text 1", "0"},
             {"SMOVE b text 2", kWrongType},
             {"SMOVE text b 2", kWrongType}});
}

TEST(SetCommands, Algebra) {
  PlayFresh({{"SADD a 1 2 3 4", "4"},
             {"SADD b 3 4 5", "3"},
             {"SADD c 4 6", "2"},
             {"SINTER a b", "[\"3\" \"4\"]"},
             {"SINTER a b c", "[\"4\"]"},
             {"SINTER a none", "[]"},
             {"SUNION a b c", "[\"1\" \"2\" \"3\" \"4\" \"5\" \"6\"]"},
             {"SUNION none", "[]"},
             {"SDIFF a b c", "[\"1\" \"2\"]"},
             {"SDIFF a none", "[\"1\" \"2\" \"3\" \"4\"]"},
             {"SDIFF a b a", "[]"},
             {"SDIFF none a", "[]"},
             {"SINTERSTORE d a b", "2"},
             {"SMEMBERS d", "[\"3\" \"4\"]"},
             {"SUNIONSTORE d d c", "3"},
             {"SDIFFSTORE d d c", "1"},
             {"SMEMBERS d", "[\"3\"]"},
             {"SDIFFSTORE d d d", "0"},
             {"EXISTS d", "0"},
             {"SINTERCARD 2 a b", "2"},
             {"SINTERCARD 2 a b LIMIT 1", "1"},
             {"SINTERCARD 2 a b LIMIT 0", "2"},
             {"SINTERCARD 2 a none", "0"},
             {"SINTERCARD 0 a", "-ERR numkeys should be greater than 0"},
             {"SINTERCARD x a", "-ERR numkeys should be greater than 0"},
             {"SINTERCARD 2 a", "-ERR Number of keys can't be greater than number of args"},
             {"SINTERCARD 1 a LIMIT -1", "-ERR LIMIT can't be negative"},
             {"SINTERCARD 1 a LIMIT", "-ERR syntax error"},
             {"SINTERCARD 1 a b", "-ERR syntax error"}});
}

// A difference is made in one of two ways, as in Redis: by looking each member up in the others, or by taking theirs away from all of
// the first's, which leaves a table where one of those was a text.
TEST(SetCommands, ADifferenceHasTheEncodingOfTheWayThatItWasMadeIn) {
  PlayFresh({{"SADD f 1 2 3 4 5 6 7 8 9 10 x", "11"},
             {"SADD o x", "1"},
             {"SDIFFSTORE d f o", "10"},
             {"OBJECT ENCODING d", "\"intset\""},
             {"SDIFFSTORE d f o o", "10"},
             {"OBJECT ENCODING d", "\"hashtable\""}});
}

TEST(SetCommands, AWrongTypeAnywhereIsSaid) {
  Harness server;
  server.Do("SET text t");
  server.Do("SADD s 1");
  server.NewEffects();
  for (const char* line :
       {"SADD text 1", "SREM text 1", "SISMEMBER text 1", "SMISMEMBER text 1", "SCARD text", "SMEMBERS text", "SPOP text", "SPOP text 1",
        "SRANDMEMBER text", "SRANDMEMBER text 1", "SSCAN text 0", "SINTER s text", "SINTER none text", "SUNION s text", "SDIFF s text",
        "SDIFF none text", "SINTERSTORE d s text", "SUNIONSTORE d text", "SINTERCARD 2 s text"})
    EXPECT_EQ(server.Do(line), kWrongType) << line;
  EXPECT_EQ(server.Do("GET s"), kWrongType);
  EXPECT_THAT(server.NewEffects(), IsEmpty());
  // A result replaces whatever is there.
  Play(server, {{"SUNIONSTORE text s", "1"}, {"SMEMBERS text", "[\"1\"]"}});
}

TEST(SetCommands, WhatIsDrawnIsInTheSet) {
  Harness server;
  for (const char* fill : {"SADD s 1 2 3 4 5", "SADD s x y"}) {
    server.Do(fill);
    const std::set<std::string> members = Different(server.Do("SMEMBERS s"));
    for (const int count : {1, 3, 6, 100}) {
      const std::string reply = server.Do("SRANDMEMBER s " + std::to_string(count));
      EXPECT_EQ(Elements(reply).size(), std::min<size_t>(static_cast<size_t>(count), members.size()));
      EXPECT_EQ(Different(reply).size(), Elements(reply).size());
      const std::string repeated = server.Do("SRANDMEMBER s -" + std::to_string(count));
      EXPECT_EQ(Elements(repeated).size(), static_cast<size_t>(count));
      for (const std::string& member : Elements(repeated)) EXPECT_EQ(members.count(member), 1u);
    }
  }
  Play(server, {{"SRANDMEMBER s -1048577", "-ERR value is out of range"},
                {"SRANDMEMBER none", "nil"},
                {"SRANDMEMBER none 3", "[]"},
                {"SRANDMEMBER s 0", "[]"},
                {"SRANDMEMBER s x", kNotInteger},
                {"SRANDMEMBER s 1 1", "-ERR syntax error"},
                {"SPOP s x", kNotPositive},
                {"SPOP s -1", kNotPositive},
                {"SPOP s 1 1", "-ERR syntax error"},
                {"SPOP none", "nil"},
                {"SPOP none 3", "[]"},
                {"SPOP s 0", "[]"},
                {"SCARD s", "7"}});
}

TEST(SetCommands, WhatIsPoppedIsGoneAndInTheLog) {
  Harness server;
  server.Do("SADD s a b c d e f g h");
  server.NewEffects();
  const std::string one = server.Do("SPOP s");
  EXPECT_EQ(server.Do("SISMEMBER s " + one), "0");
  EXPECT_EQ(server.Do("SCARD s"), "7");
  EXPECT_THAT(server.NewEffects(), ElementsAre("*3\r\n$4\r\nSREM\r\n$1\r\ns\r\n$1\r\n" + one.substr(1, 1) + "\r\n"));
  const std::set<std::string> three = Different(server.Do("SPOP s 3"));
  EXPECT_EQ(three.size(), 3u);
  for (const std::string& member : three) EXPECT_EQ(server.Do("SISMEMBER s " + member), "0");
  EXPECT_EQ(server.Do("SCARD s"), "4");
  EXPECT_THAT(server.NewEffects(), ElementsAre(StartsWith("*5\r\n$4\r\nSREM\r\n$1\r\ns\r\n")));
  EXPECT_EQ(Elements(server.Do("SPOP s 9")).size(), 4u);
  EXPECT_EQ(server.Do("EXISTS s"), "0");
  EXPECT_THAT(server.NewEffects(), ElementsAre("DEL 0 s"));
  server.Do("SADD s a");
  server.NewEffects();
  EXPECT_EQ(server.Do("SPOP s"), "\"a\"");
  EXPECT_THAT(server.NewEffects(), ElementsAre("*3\r\n$4\r\nSREM\r\n$1\r\ns\r\n$1\r\na\r\n"));
}

// As in Redis: what stays is few, so it is a new set.
TEST(SetCommands, NumbersThatStayWhenMostArePoppedAreAnIntsetAgain) {
  Harness server;
  std::string add = "SADD s";
  for (int i = 0; i < 600; ++i) add += " " + std::to_string(i);
  server.Do(add);
  EXPECT_EQ(server.Do("OBJECT ENCODING s"), "\"hashtable\"");
  server.Do("SPOP s 300");
  EXPECT_EQ(server.Do("OBJECT ENCODING s"), "\"hashtable\"");
  server.Do("SPOP s 290");
  EXPECT_EQ(server.Do("OBJECT ENCODING s"), "\"intset\"");
  EXPECT_EQ(server.Do("SCARD s"), "10");
}

TEST(SetCommands, TheLogIsToldWhatChanged) {
  Harness server;
  server.Do("SADD a 1 2");
  server.Do("SADD a 1");
  server.Do("SREM a 9");
  server.Do("SMOVE a b 1");
  server.Do("SMOVE a b 1");
  server.Do("SUNIONSTORE c a b");
  server.Do("SINTERSTORE none a b");
  EXPECT_THAT(server.NewEffects(),
              ElementsAre("*4\r\n$4\r\nSADD\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n2\r\n", "*3\r\n$4\r\nSREM\r\n$1\r\na\r\n$1\r\n1\r\n",
                          "*3\r\n$4\r\nSADD\r\n$1\r\nb\r\n$1\r\n1\r\n", "RESTORE 0 c 0"));
}

}  // namespace
}  // namespace idemd::testing
