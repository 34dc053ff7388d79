// GET, SET and their kin: replies, lifetimes, conditions, and what they do to records.
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

constexpr char kNotInteger[] = "-ERR value is not an integer or out of range";

TEST(StringCommands, SetAndGetKeepBytes) {
  PlayFresh({{"GET k", "nil"},
             {"SET k v", "OK"},
             {"GET k", "\"v\""},
             {"SET k \"\"", "OK"},
             {"GET k", "\"\""},
             {"SET \"\" empty", "OK"},
             {"GET \"\"", "\"empty\""}});
  Harness server;
  const std::string bytes("\0\r\n\xff", 4);
  EXPECT_EQ(server.DoWords({"SET", "k", bytes}), "OK");
  EXPECT_EQ(server.DoWords({"GET", "k"}), "\"" + bytes + "\"");
}

TEST(StringCommands, SetConditions) {
  PlayFresh({{"SET k 1 XX", "nil"},
             {"SET k 1 NX", "OK"},
             {"SET k 2 nx", "nil"},
             {"SET k 2 XX GET", "\"1\""},
             {"SET k 3 NX GET", "\"2\""},
             {"GET k", "\"2\""},
             {"SET new 1 NX GET", "nil"},
             {"GET new", "\"1\""},
             {"SET absent 1 XX GET", "nil"},
             {"EXISTS absent", "0"},
             {"SET k 1 NX XX", "-ERR syntax error"},
             {"SET k 1 NX NX", "nil"}});
}

TEST(StringCommands, SetSyntax) {
  for (const char* line :
       {"SET k v FOO", "SET k v EX", "SET k v EX 1 PX 1", "SET k v KEEPTTL EX 1",
        "SET k v EX 1 KEEPTTL", "SET k v PERSIST", "SET k v EXAT 1 PXAT 1", "SET k v IFEQ",
        "SET k v IFEQ a NX", "SET k v XX IFNE a", "SET k v IFEQ a IFEQ b", "SET k v IFEQ a IFNE b",
        "SET k v \"\"", "SET k v KEEPTTLX"}) {
    PlayFresh({{line, "-ERR syntax error"}, {"EXISTS k", "0"}});
  }
  PlayFresh({{"SET k", "-ERR wrong number of arguments for 'set' command"},
             {"SET k v ex 10 EX 20 GET get", "nil"},
             {"TTL k", "20"}});
}

TEST(StringCommands, LifetimesAreCheckedBeforeAnythingChanges) {
  const std::string bad = "-ERR invalid expire time in 'set' command";
  Harness server;
  server.Do("SET k old");
  for (const char* option :
       {"EX 0", "EX -1", "PX 0", "EXAT 0", "PXAT -5", "EX 9223372036854775807",
        "EX 9223372036854776", "EXAT 9223372036854776", "PX 9223372036854775807"}) {
    EXPECT_EQ(server.Do("SET k new " + std::string(option)), bad) << option;
    EXPECT_EQ(server.Do("SET k new GET " + std::string(option)), bad) << option;
  }
  for (const char* option :
       {"EX a", "EX 1.5", "EX \"\"", "PX 9223372036854775808", "EX +1", "EX 01"}) {
    EXPECT_EQ(server.Do("SET k new " + std::string(option)), kNotInteger) << option;
  }
  EXPECT_EQ(server.Do("GET k"), "\"old\"");
  EXPECT_EQ(server.Do("SETEX k 0 v"), "-ERR invalid expire time in 'setex' command");
  EXPECT_EQ(server.Do("PSETEX k -1 v"), "-ERR invalid expire time in 'psetex' command");
  EXPECT_EQ(server.Do("SETEX k x v"), kNotInteger);
  EXPECT_EQ(server.Do("GETEX k EX 0"), "-ERR invalid expire time in 'getex' command");
}

TEST(StringCommands, LifetimesEndWhenTheySay) {
  Harness server;
  Play(server, {{"SET a 1 EX 10", "OK"},
                {"SET b 1 PX 1500", "OK"},
                {"SETEX c 10 1", "OK"},
                {"PSETEX d 1500 1", "OK"},
                {"SET e 1 EXAT 1700000010", "OK"},
                {"SET f 1 PXAT 1700000001500", "OK"},
                {"PTTL a", "10000"},
                {"PTTL f", "1500"}});
  server.Pass(1499);
  EXPECT_EQ(server.Do("EXISTS a b c d e f"), "6");
  server.Pass(1);
  EXPECT_EQ(server.Do("EXISTS b d f"), "0");
  server.Pass(8499);
  EXPECT_EQ(server.Do("EXISTS a c e"), "3");
  server.Pass(1);
  EXPECT_EQ(server.Do("EXISTS a c e"), "0");
  Play(server, {{"SET g 1 PXAT 9223372036854775807", "OK"}, {"GET g", "\"1\""}});
}

TEST(StringCommands, ADeadlineInThePastLeavesNoKey) {
  PlayFresh({{"SET k old", "OK"},
             {"SET k new EXAT 1 GET", "\"old\""},
             {"EXISTS k", "0"},
             {"SET k new PXAT 1700000000000", "OK"},
             {"EXISTS k", "0"}});
}

TEST(StringCommands, OverwritingDropsTheLifetimeUnlessAsked) {
  PlayFresh({{"SET k 1 EX 100", "OK"},
             {"SET k 2 KEEPTTL", "OK"},
             {"TTL k", "100"},
             {"SET k 3", "OK"},
             {"TTL k", "-1"},
             {"SET k 4 EX 100", "OK"},
             {"GETSET k 5", "\"4\""},
             {"TTL k", "-1"},
             {"SET n 1 KEEPTTL", "OK"},
             {"TTL n", "-1"}});
}

TEST(StringCommands, TheSmallSetters) {
  PlayFresh({{"SETNX k 1", "1"},
             {"SETNX k 2", "0"},
             {"GET k", "\"1\""},
             {"GETSET k 3", "\"1\""},
             {"GETSET n 1", "nil"},
             {"GETDEL k", "\"3\""},
             {"GETDEL k", "nil"},
             {"EXISTS k", "0"}});
}

TEST(StringCommands, GetExChangesOnlyTheLifetime) {
  PlayFresh({{"GETEX k EX abc", "nil"},
             {"SET k v", "OK"},
             {"GETEX k", "\"v\""},
             {"TTL k", "-1"},
             {"GETEX k EX 100", "\"v\""},
             {"TTL k", "100"},
             {"GETEX k PXAT 1700000005000", "\"v\""},
             {"PTTL k", "5000"},
             {"GETEX k PERSIST", "\"v\""},
             {"TTL k", "-1"},
             {"GETEX k PERSIST EX 1", "-ERR syntax error"},
             {"GETEX k EX 1 PERSIST", "-ERR syntax error"},
             {"GETEX k NX", "-ERR syntax error"},
             {"GETEX k EX", "-ERR syntax error"},
             {"GETEX k EX abc", kNotInteger},
             {"GETEX k EXAT 1", "\"v\""},
             {"EXISTS k", "0"}});
}

TEST(StringCommands, ComparisonsDecideOnThePresentValue) {
  PlayFresh({{"SET k v2 IFEQ v1", "nil"},
             {"EXISTS k", "0"},
             {"SET k v1 IFNE x", "OK"},
             {"SET k v2 IFEQ v1", "OK"},
             {"SET k v3 ifeq v1", "nil"},
             {"SET k v3 IFEQ v1 GET", "\"v2\""},
             {"GET k", "\"v2\""},
             {"SET k v3 GET IFEQ v2 EX 100", "\"v2\""},
             {"GET k", "\"v3\""},
             {"TTL k", "100"},
             {"SET k v4 IFNE v3", "nil"},
             {"SET k v4 IFNE v2 KEEPTTL", "OK"},
             {"TTL k", "100"}});
}

TEST(StringCommands, DigestsStandForLongValues) {
  // XXH3-64 of "Hello world", as `xxhsum -H3` prints it.
  PlayFresh(
      {{"DIGEST k", "nil"},
       {"SET k \"Hello world\"", "OK"},
       {"DIGEST k", "\"b6acb9d84a38ff74\""},
       {"SET k 2 IFDEQ 0000000000000000", "nil"},
       {"SET k 2 IFDNE b6acb9d84a38ff74", "nil"},
       {"SET k 2 IFDEQ abc", "-ERR digest must be exactly 16 hexadecimal characters"},
       {"SET k 2 IFDEQ xxxxxxxxxxxxxxxx", "-ERR digest must be exactly 16 hexadecimal characters"},
       {"SET k 2 IFDEQ B6ACB9D84A38FF74", "OK"},
       {"GET k", "\"2\""},
       {"SET new 1 IFDNE 0000000000000000", "OK"}});
}

TEST(StringCommands, ConditionalDeletes) {
  PlayFresh({{"DELIFEQ k v", "0"},
             {"SET k v", "OK"},
             {"DELIFEQ k x", "0"},
             {"DELIFEQ k v", "1"},
             {"EXISTS k", "0"},
             {"DELEX k IFNE x", "0"},
             {"SET k v", "OK"},
             {"DELEX k IFEQ x", "0"},
             {"DELEX k IFNE v", "0"},
             {"DELEX k IFDEQ 0000000000000000", "0"},
             {"DELEX k IFDNE 0000000000000000", "1"},
             {"SET k v", "OK"},
             {"DELEX k ifeq v", "1"},
             {"SET k v", "OK"},
             {"DELEX k", "1"},
             {"DELEX k IFEQ", "-ERR wrong number of arguments for 'delex' command"},
             {"DELEX k IFEQ v v", "-ERR wrong number of arguments for 'delex' command"},
             {"DELEX k NX v", "-ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE"},
             {"DELEX k IFDEQ v", "-ERR digest must be exactly 16 hexadecimal characters"}});
}

TEST(StringCommands, SeveralKeysAtOnce) {
  PlayFresh({{"MSET a 1 b 2 a 3", "OK"},
             {"MGET a b c a", "[\"3\" \"2\" nil \"3\"]"},
             {"MGET a", "[\"3\"]"},
             {"MSETNX c 1 a 2", "0"},
             {"EXISTS c", "0"},
             {"MSETNX c 1 d 2 c 3", "1"},
             {"MGET c d", "[\"3\" \"2\"]"},
             {"MSET a", "-ERR wrong number of arguments for 'mset' command"},
             {"MSET a 1 b", "-ERR wrong number of arguments for 'mset' command"},
             {"MSETNX a 1 b", "-ERR wrong number of arguments for 'msetnx' command"}});
}

TEST(StringCommands, WritesReachTheLogAsPlainEffects) {
  Harness server;
  server.NewEffects();
  server.Do("SET k 1 EX 10 NX");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 k 1 PXAT 1700000010000"));
  server.Do("SET k 1 NX");
  server.Do("SET k 1 IFEQ 2");
  server.Do("GETEX k");
  server.Do("GETDEL absent");
  EXPECT_THAT(server.NewEffects(), IsEmpty());
  server.Do("GETEX k PERSIST");
  EXPECT_THAT(server.NewEffects(), ElementsAre("PERSIST 0 k"));
  server.Do("GETDEL k");
  EXPECT_THAT(server.NewEffects(), ElementsAre("DEL 0 k"));
  server.Do("MSET a 1 b 2");
  EXPECT_THAT(server.NewEffects(), ::testing::UnorderedElementsAre("SET 0 a 1", "SET 0 b 2"));
}

class StringCommandsOnRecords : public ::testing::Test {
 protected:
  StringCommandsOnRecords() {
    server_.Do("SET k \"" + line_ + "\\n\"");
    EXPECT_EQ(server_.Do("OBJECT ENCODING k"), "\"idem\"");
  }
  std::string text() const { return line_ + "\n"; }

  Harness server_;
  const std::string line_ =
      "idem/1 state=pending fence=7 attempt=1 since=1700000000000 lease=1700000030000 "
      "lease-ms=30000 "
      "keep-ms=86400000 payload=none";
};

TEST_F(StringCommandsOnRecords, ReadersSeeTheText) {
  EXPECT_EQ(server_.Do("GET k"), "\"" + text() + "\"");
  EXPECT_EQ(server_.Do("MGET k k"), "[\"" + text() + "\" \"" + text() + "\"]");
  EXPECT_EQ(server_.Do("STRLEN k"), std::to_string(text().size()));
  EXPECT_EQ(server_.Do("GETRANGE k 0 5"), "\"idem/1\"");
  EXPECT_EQ(server_.Do("GETBIT k 1"), "1");
  EXPECT_EQ(server_.Do("BITPOS k 1"), "1");
  EXPECT_EQ(server_.Do("BITFIELD k GET u8 0"), "[105]");
  EXPECT_EQ(server_.Do("GETEX k EX 100"), "\"" + text() + "\"");
  EXPECT_EQ(server_.Do("OBJECT ENCODING k"), "\"idem\"");
  EXPECT_THAT(server_.Do("DIGEST k"), StartsWith("\""));
  EXPECT_EQ(server_.Do("LCS k k LEN"), std::to_string(text().size()));
  EXPECT_EQ(server_.Do("BITOP OR copy k"), std::to_string(text().size()));
  EXPECT_EQ(server_.Do("OBJECT ENCODING copy"), "\"idem\"");
}

TEST_F(StringCommandsOnRecords, PartsCannotBeChanged) {
  for (const char* line :
       {"APPEND k x", "SETRANGE k 0 x", "SETRANGE k 0 \"\"", "INCR k", "DECRBY k 2",
        "INCRBYFLOAT k 1", "SETBIT k 0 1", "BITFIELD k SET u8 0 1"}) {
    EXPECT_THAT(server_.Do(line), StartsWith("-WRONGTYPE ")) << line;
  }
  EXPECT_EQ(server_.Do("GET k"), "\"" + text() + "\"");
}

TEST_F(StringCommandsOnRecords, WholeValuesCanBeReplaced) {
  EXPECT_EQ(server_.Do("GETSET k 1"), "\"" + text() + "\"");
  EXPECT_EQ(server_.Do("GET k"), "\"1\"");
  EXPECT_EQ(server_.Do("SET k \"" + line_ + "\\n\" GET"), "\"1\"");
  EXPECT_EQ(server_.Do("SETNX k 1"), "0");
  EXPECT_EQ(server_.Do("GETDEL k"), "\"" + text() + "\"");
  EXPECT_EQ(server_.Do("EXISTS k"), "0");
}

TEST_F(StringCommandsOnRecords, AStringThatIsEditedIntoARecordsLineIsOne) {
  EXPECT_EQ(server_.Do("SET piece \"" + line_ + "\" EX 100"), "OK");
  EXPECT_THAT(server_.Do("OBJECT ENCODING piece"), ::testing::Not(HasSubstr("idem")));
  server_.Do("APPEND piece \"\\n\"");
  EXPECT_EQ(server_.Do("OBJECT ENCODING piece"), "\"idem\"");
  EXPECT_EQ(server_.Do("TTL piece"), "100");
  EXPECT_EQ(server_.Do("GET piece"), "\"" + text() + "\"");
}

}  // namespace
}  // namespace idemd::testing
