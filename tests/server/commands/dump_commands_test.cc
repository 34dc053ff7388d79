// DUMP and RESTORE: values that travel, and every answer that Redis 7.0.15 gives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/storage/snapshot/rdb_files.h"
#include "tests/support/harness.h"
#include "tests/support/redis_process.h"

namespace idemd::server {
namespace {

using storage::Bytes;
using storage::Payload;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DumpCommandsTest : public ::testing::Test, protected idemd::testing::Harness {
 protected:
  // What DUMP gives, without the quotes.
  std::string Dump(const std::string& key) {
    const std::string reply = DoWords({"DUMP", key});
    return reply.size() >= 2 && reply[0] == '"' ? reply.substr(1, reply.size() - 2) : reply;
  }
};

TEST_F(DumpCommandsTest, WhatWasDumpedIsRestored) {
  for (const std::string& value : {std::string(), std::string("text"), std::string("-123"),
                                   std::string(5000, 'x'), Bytes({0, 1, '\r', '\n', 255})}) {
    DoWords({"SET", "a", value});
    EXPECT_EQ(DoWords({"RESTORE", "b", "0", Dump("a"), "REPLACE"}), "OK");
    EXPECT_EQ(DoWords({"GET", "b"}), "\"" + value + "\"");
    EXPECT_EQ(Do("PTTL b"), "-1");
  }
  EXPECT_EQ(Do("DUMP nothing"), "nil");
}

TEST_F(DumpCommandsTest, APayloadIsCompressedUnlessTheSettingSaysNo) {
  DoWords({"SET", "a", std::string(5000, 'x')});
  EXPECT_LT(Dump("a").size(), 200u);
  Do("CONFIG SET rdbcompression no");
  EXPECT_EQ(Dump("a").size(), 5013u);
}

TEST_F(DumpCommandsTest, ARecordTravelsAsItsTextAndIsARecordAgain) {
  Do("IDEM.RESERVE job CLAIM me");
  const std::string payload = Dump("job");
  EXPECT_EQ("\"" + *storage::ReadDumpPayload(payload) + "\"", Do("GET job"));
  Do("DEL job");
  NewEffects();
  EXPECT_EQ(DoWords({"RESTORE", "job", "90000", payload}), "OK");
  EXPECT_THAT(NewEffects(), ElementsAre(HasSubstr(absl::StrCat("PXAT ", kStart + 90'000))));
  EXPECT_EQ(Do("OBJECT ENCODING job"), "\"idem\"");
  EXPECT_EQ(Do(absl::StrCat("IDEM.COMPLETE job ", kFirstFence, " answer")), "OK");
}

TEST_F(DumpCommandsTest, LifetimesAreRelativeOrAbsoluteAndZeroIsForEver) {
  const std::string payload = storage::DumpPayload("v");
  DoWords({"RESTORE", "a", "500", payload});
  EXPECT_EQ(Do("PTTL a"), "500");
  DoWords({"RESTORE", "b", absl::StrCat(kStart + 700), payload, "ABSTTL"});
  EXPECT_EQ(Do("PTTL b"), "700");
  DoWords({"RESTORE", "c", "0", payload, "absttl"});
  EXPECT_EQ(Do("PTTL c"), "-1");
  DoWords({"RESTORE", "a", "0", payload, "replace"});
  EXPECT_EQ(Do("PTTL a"), "-1") << "the old lifetime goes with the old value";
  Do("DEL a");
  EXPECT_EQ(DoWords({"RESTORE", "a", "9223372036854775807", payload}),
            "-ERR invalid expire time in 'restore' command");
  EXPECT_EQ(Do("EXISTS a"), "0");
  EXPECT_EQ(DoWords({"RESTORE", "a", "9223372036854775807", payload, "ABSTTL"}), "OK");
  EXPECT_EQ(Do("EXISTS a"), "1");
  EXPECT_NE(Do("PTTL a"), "-1");
}

TEST_F(DumpCommandsTest, TheTimeOfTheLastUseIsTakenOver) {
  const std::string payload = storage::DumpPayload("v");
  DoWords({"RESTORE", "a", "0", payload, "IDLETIME", "1000"});
  EXPECT_EQ(Do("OBJECT IDLETIME a"), "1000");
  store.SetEviction(storage::EvictionPolicy::kAllLfu, 5);
  EXPECT_EQ(DoWords({"RESTORE", "b", "0", payload, "FREQ", "100"}), "OK");
  EXPECT_EQ(Do("OBJECT FREQ b"), "100");
  EXPECT_THAT(Do("OBJECT IDLETIME b"), HasSubstr("-ERR An LFU maxmemory policy is selected, idle time not tracked. Please note"));
  EXPECT_EQ(DoWords({"RESTORE", "b", "0", payload, "REPLACE", "IDLETIME", "100"}), "OK");
  EXPECT_EQ(Do("OBJECT FREQ b"), "5") << "as of a new key: told is the idle time";
  store.SetEviction(storage::EvictionPolicy::kNone, 5);
  EXPECT_EQ(DoWords({"RESTORE", "a", "0", payload, "REPLACE", "IDLETIME", "9223372036854775807"}), "OK");
  EXPECT_EQ(Do("GET a"), "\"v\"");
  EXPECT_EQ(Do("OBJECT IDLETIME a"), "0");
}

TEST_F(DumpCommandsTest, AnAbsoluteLifetimeInThePastDeletes) {
  const std::string payload = storage::DumpPayload("v");
  NewEffects();
  EXPECT_EQ(DoWords({"RESTORE", "a", absl::StrCat(kStart - 1), payload, "ABSTTL"}), "OK");
  EXPECT_EQ(Do("EXISTS a"), "0");
  EXPECT_THAT(NewEffects(), IsEmpty());
  Do("SET a old");
  EXPECT_THAT(DoWords({"RESTORE", "a", absl::StrCat(kStart - 1), payload, "ABSTTL"}),
              HasSubstr("BUSYKEY"));
  EXPECT_EQ(DoWords({"RESTORE", "a", absl::StrCat(kStart), payload, "ABSTTL", "REPLACE"}), "OK");
  EXPECT_EQ(Do("EXISTS a"), "0");
  EXPECT_THAT(NewEffects(), ElementsAre("SET 0 a old", "DEL 0 a"));
}

TEST_F(DumpCommandsTest, OtherTypesAreRefusedByName) {
  EXPECT_EQ(
      DoWords({"RESTORE", "a", "0", Payload(Bytes({7, 1, 'x'}))}),
      "-ERR Bad data format: the value is a module's value, which this version does not have");
  EXPECT_EQ(Do("EXISTS a"), "0");
}

TEST_F(DumpCommandsTest, ARefusedRestoreChangesNothing) {
  Do("SET a old");
  NewEffects();
  std::string payload = storage::DumpPayload("new");
  payload.back() = static_cast<char>(payload.back() ^ 1);
  EXPECT_EQ(DoWords({"RESTORE", "a", "0", payload, "REPLACE"}),
            "-ERR DUMP payload version or checksum are wrong");
  EXPECT_EQ(DoWords({"RESTORE", "a", "0", Payload(Bytes({0, 9, 'x'})), "REPLACE"}),
            "-ERR Bad data format");
  EXPECT_EQ(DoWords({"RESTORE", "a", "-1", storage::DumpPayload("new"), "REPLACE"}),
            "-ERR Invalid TTL value, must be >= 0");
  EXPECT_EQ(Do("GET a"), "\"old\"");
  EXPECT_THAT(NewEffects(), IsEmpty());
}

TEST_F(DumpCommandsTest, EveryAnswerIsThatOfRedis) {
  if (!idemd::testing::HasRedisServer()) GTEST_SKIP() << "there is no redis-server on the PATH";
  const idemd::testing::TempFolder folder;
  idemd::testing::RedisProcess redis(folder);
  ASSERT_TRUE(redis.serves()) << redis.log();
  const std::string good = storage::DumpPayload("v");
  std::string bad = good;
  bad[1] = static_cast<char>(bad[1] ^ 1);
  const std::vector<std::vector<std::string>> requests = {
      {"DUMP"},
      {"DUMP", "a", "b"},
      {"DUMP", "a"},
      {"RESTORE", "a", "0"},
      {"RESTORE", "a", "0", good},
      {"RESTORE", "a", "0", good},
      {"RESTORE", "a", "x", bad},
      {"DUMP", "a"},
      {"DEL", "a"},
      {"RESTORE", "a", "x", bad},
      {"RESTORE", "a", "-1", bad},
      {"RESTORE", "a", "1.5", good},
      {"RESTORE", "a", "0", bad},
      {"RESTORE", "a", "0", ""},
      {"RESTORE", "a", "0", "short"},
      {"RESTORE", "a", "0", Payload("")},
      {"RESTORE", "a", "0", Payload(Bytes({0}))},
      // Redis would take the version and the sum for a part of a value that is only a little too
      // long.
      {"RESTORE", "a", "0", Payload(Bytes({0, 50, 'x'}))},
      {"RESTORE", "a", "0", Payload(Bytes({99, 1, 'x'}))},
      {"RESTORE", "a", "0", Payload(Bytes({0, 1, 'x'}), 13)},
      {"RESTORE", "a", "0", Payload(Bytes({0, 1, 'x'}), 6)},
      {"GET", "a"},
      {"RESTORE", "a", "0", bad, "NONSENSE"},
      {"RESTORE", "a", "0", bad, "REPLACE", "NONSENSE"},
      {"RESTORE", "a", "0", bad, "IDLETIME"},
      {"RESTORE", "a", "0", bad, "IDLETIME", "x"},
      {"RESTORE", "a", "0", bad, "IDLETIME", "-1"},
      {"RESTORE", "a", "0", bad, "FREQ"},
      {"RESTORE", "a", "0", bad, "FREQ", "-1"},
      {"RESTORE", "a", "0", bad, "FREQ", "256"},
      {"RESTORE", "a", "0", bad, "FREQ", "1.5"},
      {"RESTORE", "a", "0", bad, "IDLETIME", "1", "FREQ", "1"},
      {"RESTORE", "a", "0", bad, "FREQ", "1", "IDLETIME", "1"},
      {"RESTORE", "a", "0", bad, "idletime", "1", "IDLETIME", "1000", "REPLACE"},
      {"RESTORE", "a", "0", good, "IDLETIME", "1000", "ABSTTL", "REPLACE"},
      {"RESTORE", "a", "0", good, "FREQ", "255", "replace", "REPLACE"},
      {"RESTORE", "a", "1", good, "ABSTTL"},
      {"RESTORE", "a", "1", good, "ABSTTL", "REPLACE"},
      {"EXISTS", "a"},
      {"RESTORE", "a", "1", good, "ABSTTL"},
      {"EXISTS", "a"},
      {"RESTORE", "a", "4102444800000", good, "ABSTTL"},
      {"PEXPIRETIME", "a"},
      {"COMMAND", "GETKEYS", "RESTORE", "a", "0", "p"},
      {"COMMAND", "GETKEYSANDFLAGS", "RESTORE", "a", "0", "p"},
      {"COMMAND", "GETKEYSANDFLAGS", "DUMP", "a"},
  };
  for (const std::vector<std::string>& request : requests) {
    std::string shown;
    for (const std::string& word : request) absl::StrAppend(&shown, word, " ");
    std::string ours = DoWords(request), theirs = redis.Do(request);
    if (request[0] == "DUMP" && ours[0] == '"' && theirs[0] == '"') {
      // A newer Redis puts another version behind the value, and so has another sum.
      constexpr size_t kFooterAndQuote = 11;
      ASSERT_GT(std::min(ours.size(), theirs.size()), kFooterAndQuote);
      ours.resize(ours.size() - kFooterAndQuote);
      theirs.resize(theirs.size() - kFooterAndQuote);
    }
    EXPECT_EQ(ours, theirs) << shown;
  }
}

}  // namespace
}  // namespace idemd::server
