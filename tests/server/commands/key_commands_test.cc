// Whole keys: DEL and kin, RENAME, COPY, MOVE, lifetimes, SCAN, OBJECT.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/support/harness.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class KeyCommandsTest : public ::testing::Test, protected idemd::testing::Harness {};

TEST_F(KeyCommandsTest, DelExistsAndTouchCountWhatIsThere) {
  Do("MSET a 1 b 2 c 3");
  EXPECT_EQ(Do("EXISTS a b nothing a"), "3");
  EXPECT_EQ(Do("TOUCH a nothing"), "1");
  EXPECT_EQ(Do("DEL a nothing a"), "1");
  EXPECT_EQ(Do("UNLINK b c"), "2");
  EXPECT_EQ(Do("DBSIZE"), "0");
}

TEST_F(KeyCommandsTest, RenameMovesValueAndLifetimeAndRefusesWhatIsAbsent) {
  Do("SET a 1 PX 500");
  Do("SET b old");
  EXPECT_EQ(Do("RENAME a b"), "OK");
  EXPECT_EQ(Do("GET b"), "\"1\"");
  EXPECT_EQ(Do("PTTL b"), "500");
  EXPECT_EQ(Do("EXISTS a"), "0");
  EXPECT_EQ(Do("RENAME a b"), "-ERR no such key");
  EXPECT_EQ(Do("RENAME b b"), "OK");
  EXPECT_EQ(Do("RENAMENX b b"), "0");
  EXPECT_EQ(Do("RENAMENX a b"), "-ERR no such key");
  Do("SET c 3");
  EXPECT_EQ(Do("RENAMENX b c"), "0");
  EXPECT_EQ(Do("RENAMENX b d"), "1");
}

TEST_F(KeyCommandsTest, CopyKeepsTheSourceAndRespectsReplaceAndDb) {
  Do("SET a 1 PX 500");
  EXPECT_EQ(Do("COPY a b"), "1");
  EXPECT_EQ(Do("PTTL b"), "500");
  Do("SET a 2");
  EXPECT_EQ(Do("COPY a b"), "0");
  EXPECT_EQ(Do("COPY a b REPLACE"), "1");
  EXPECT_EQ(Do("GET b"), "\"2\"");
  EXPECT_EQ(Do("PTTL b"), "-1");
  EXPECT_EQ(Do("COPY a a DB 3"), "1");
  EXPECT_EQ(Do("COPY a a"), "-ERR source and destination objects are the same");
  EXPECT_EQ(Do("COPY a b DB 16"), "-ERR DB index is out of range");
  EXPECT_EQ(Do("COPY a b DB x"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("COPY a b NONSENSE"), "-ERR syntax error");
  EXPECT_EQ(Do("COPY nothing b REPLACE"), "0");
}

TEST_F(KeyCommandsTest, MoveNeverOverwrites) {
  Do("SET a 1");
  EXPECT_EQ(Do("MOVE a 5"), "1");
  EXPECT_EQ(Do("MOVE a 5"), "0");
  Do("SET a 2");
  EXPECT_EQ(Do("MOVE a 5"), "0");
  EXPECT_EQ(Do("MOVE a 0"), "-ERR source and destination objects are the same");
  EXPECT_EQ(Do("MOVE a 99"), "-ERR DB index is out of range");
  Do("SELECT 5");
  EXPECT_EQ(Do("GET a"), "\"1\"");
}

TEST_F(KeyCommandsTest, RecordsMoveWithTheirFence) {
  Do("IDEM.RESERVE job CLAIM me");
  Do("RENAME job other");
  EXPECT_EQ(Do(absl::StrCat("IDEM.COMPLETE other ", kFirstFence, " answer")), "OK");
  EXPECT_EQ(Do("COPY other third"), "1");
  EXPECT_THAT(Do("IDEM.RESERVE third"), HasSubstr("\"answer\""));
}

TEST_F(KeyCommandsTest, ExpireConditionsAreThoseOfRedis) {
  Do("SET a 1");
  EXPECT_EQ(Do("EXPIRE a 100 XX"), "0");
  EXPECT_EQ(Do("EXPIRE a 100 GT"), "0");
  EXPECT_EQ(Do("EXPIRE a 100 LT"), "1");
  EXPECT_EQ(Do("EXPIRE a 50 NX"), "0");
  EXPECT_EQ(Do("EXPIRE a 50 GT"), "0");
  EXPECT_EQ(Do("EXPIRE a 50 XX LT"), "1");
  EXPECT_EQ(Do("TTL a"), "50");
  EXPECT_EQ(Do("EXPIRE a 100 GT"), "1");
  EXPECT_EQ(Do("EXPIRE a 1 NX GT"), "-ERR NX and XX, GT or LT options at the same time are not compatible");
  EXPECT_EQ(Do("EXPIRE a 1 GT LT"), "-ERR GT and LT options at the same time are not compatible");
  EXPECT_EQ(Do("EXPIRE a 1 AB"), "-ERR Unsupported option AB");
  EXPECT_EQ(Do("EXPIRE nothing 1"), "0");
}

TEST_F(KeyCommandsTest, LifetimesAreCheckedBeforeAnythingChanges) {
  Do("SET a 1");
  NewEffects();
  EXPECT_EQ(Do("EXPIRE a 9223372036854775807"), "-ERR invalid expire time in 'expire' command");
  EXPECT_EQ(Do("PEXPIRE a 9223372036854775807"), "-ERR invalid expire time in 'pexpire' command");
  EXPECT_EQ(Do("EXPIREAT a 9223372036854775"), "1") << "the last second that fits";
  EXPECT_EQ(Do("EXPIRETIME a"), "9223372036854775");
  EXPECT_EQ(Do("PEXPIREAT a 9223372036854775807"), "1");
  EXPECT_EQ(Do("EXPIRETIME a"), "9223372036854776");
  EXPECT_EQ(Do("PERSIST a"), "1");
  EXPECT_EQ(Do("EXPIRE a 1.5"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("TTL a"), "-1");
}

TEST_F(KeyCommandsTest, ALifetimeInThePastDeletes) {
  Do("SET a 1");
  EXPECT_EQ(Do("EXPIRE a 0"), "1");
  EXPECT_EQ(Do("EXISTS a"), "0");
  Do("SET a 1");
  EXPECT_EQ(Do("PEXPIREAT a 1"), "1");
  EXPECT_EQ(Do("EXISTS a"), "0");
  EXPECT_EQ(NewEffects().back(), "DEL 0 a");
}

TEST_F(KeyCommandsTest, TtlRoundsAndTellsAbsentFromForever) {
  Do("SET a 1 PX 1499");
  EXPECT_EQ(Do("TTL a"), "1");
  Do("SET a 1 PX 1500");
  EXPECT_EQ(Do("TTL a"), "2");
  EXPECT_EQ(Do("PEXPIRETIME a"), absl::StrCat(kStart + 1500));
  EXPECT_EQ(Do("EXPIRETIME a"), absl::StrCat((kStart + 1500 + 500) / 1000));
  EXPECT_EQ(Do("TTL nothing"), "-2");
  EXPECT_EQ(Do("EXPIRETIME nothing"), "-2");
  EXPECT_EQ(Do("PERSIST a"), "1");
  EXPECT_EQ(Do("PERSIST a"), "0");
  EXPECT_EQ(Do("PTTL a"), "-1");
}

TEST_F(KeyCommandsTest, KeysVanishToTheMillisecond) {
  Do("SET a 1 PX 100");
  Pass(99);
  EXPECT_EQ(Do("GET a"), "\"1\"");
  Pass(1);
  EXPECT_EQ(Do("GET a"), "nil");
  EXPECT_EQ(Do("DBSIZE"), "0");
}

TEST_F(KeyCommandsTest, ScanWalksEverythingWithMatchAndType) {
  std::set<std::string> expected;
  for (int i = 0; i < 500; ++i) {
    Do(absl::StrCat("SET key:", i, " v"));
    if (i % 10 == 3) expected.insert(absl::StrCat("\"key:", i, "\""));
  }
  std::set<std::string> seen;
  std::string cursor = "0";
  do {
    const std::string reply = Do(absl::StrCat("SCAN ", cursor, " MATCH key:*3 COUNT 7 TYPE string"));
    // ["cursor" ["key" "key"]]
    const size_t quote = reply.find('"', 2);
    cursor = reply.substr(2, quote - 2);
    for (size_t at = reply.find("\"key:"); at != std::string::npos; at = reply.find("\"key:", at + 1))
      seen.insert(reply.substr(at, reply.find('"', at + 1) - at + 1));
  } while (cursor != "0");
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(Do("SCAN 0 TYPE hash COUNT 10000"), "[\"0\" []]");
  EXPECT_EQ(Do("SCAN x"), "-ERR invalid cursor");
  EXPECT_EQ(Do("SCAN 0 COUNT 0"), "-ERR syntax error");
  EXPECT_EQ(Do("SCAN 0 COUNT"), "-ERR syntax error");
  EXPECT_EQ(Do("SCAN 0 COUNT x"), "-ERR value is not an integer or out of range");
}

TEST_F(KeyCommandsTest, KeysMatchesAndRandomKeyFindsSomethingThatIsThere) {
  EXPECT_EQ(Do("RANDOMKEY"), "nil");
  Do("SET only 1");
  EXPECT_EQ(Do("RANDOMKEY"), "\"only\"");
  EXPECT_EQ(Do("KEYS o?ly"), "[\"only\"]");
  EXPECT_EQ(Do("KEYS x*"), "[]");
}

TEST_F(KeyCommandsTest, ObjectNamesEncodings) {
  Do("SET n 12345");
  Do("SET short abc");
  DoWords({"SET", "long", std::string(45, 'x')});
  Do("SET edited abc");
  Do("APPEND edited def");
  Do("IDEM.RESERVE job");
  EXPECT_EQ(Do("OBJECT ENCODING n"), "\"int\"");
  EXPECT_EQ(Do("OBJECT ENCODING short"), "\"embstr\"");
  EXPECT_EQ(Do("OBJECT ENCODING long"), "\"raw\"");
  EXPECT_EQ(Do("OBJECT ENCODING edited"), "\"raw\"");
  EXPECT_EQ(Do("OBJECT ENCODING job"), "\"idem\"");
  EXPECT_EQ(Do("OBJECT ENCODING nothing"), "nil");
  EXPECT_EQ(Do("OBJECT REFCOUNT n"), "1");
  Pass(7'000);
  EXPECT_EQ(Do("OBJECT IDLETIME n"), "7");
  EXPECT_THAT(Do("OBJECT FREQ n"), HasSubstr("-ERR An LFU maxmemory policy is not selected"));
  EXPECT_THAT(Do("OBJECT NONSENSE n"), HasSubstr("-ERR unknown subcommand 'NONSENSE'. Try OBJECT HELP."));
}

}  // namespace
}  // namespace idemd::server
