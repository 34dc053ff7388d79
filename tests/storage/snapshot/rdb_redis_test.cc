// Files and payloads that go between this code and a stock redis-server, both ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/storage/snapshot/rdb_files.h"
#include "tests/support/redis_process.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using idemd::testing::RedisProcess;
using idemd::testing::TempFolder;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

class RdbRedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!idemd::testing::HasRedisServer()) GTEST_SKIP() << "there is no redis-server on the PATH";
  }

  // Keys in many databases, with strings of every encoding and lifetimes far away, no key twice.
  std::vector<RdbEntry> RandomEntries(size_t count) {
    std::vector<RdbEntry> entries;
    for (size_t i = 0; i < count; ++i) {
      const DbIndex db = static_cast<DbIndex>(random_() % 5 * 3);
      const std::string key =
          random_() % 3 == 0 ? absl::StrCat(i) : absl::StrCat(Text(random_() % 300), "#", i);
      const int64_t deadline = random_() % 2 == 0
                                   ? kNoDeadline
                                   : (int64_t{std::time(nullptr)} + 100'000) * 1000 +
                                         static_cast<int64_t>(random_() % 10'000'000);
      entries.push_back({db, key, Text(0), deadline});
    }
    std::stable_sort(entries.begin(), entries.end(),
                     [](const RdbEntry& a, const RdbEntry& b) { return a.db < b.db; });
    return entries;
  }

  // About `size` bytes; 0: of any size and kind.
  std::string Text(size_t size) {
    std::string text;
    if (size == 0) {
      switch (random_() % 5) {
        case 0:
          return absl::StrCat(static_cast<int64_t>(random_()) >> random_() % 64);
        case 1:
          return std::string(random_() % 70'000, 'z');
        case 2:
          for (size_t left = random_() % 300; left > 0; --left)
            text += static_cast<char>(random_());
          return text;
        default:
          size = random_() % 3000;
      }
    }
    while (text.size() < size)
      absl::StrAppend(&text, "\"id\":", random_() % 1000, ",\"currency\":\"EUR\",");
    return text.substr(0, size);
  }

  static void Put(RedisProcess& redis, const RdbEntry& entry) {
    redis.Do(absl::StrCat("SELECT ", entry.db));
    std::vector<std::string> words = {"SET", entry.key, entry.value};
    if (entry.deadline_ms != kNoDeadline) {
      words.push_back("PXAT");
      words.push_back(absl::StrCat(entry.deadline_ms));
    }
    EXPECT_EQ(redis.Do(words), "OK");
  }

  // A body of everything in `entries`, which are in the order of their databases.
  static std::string Body(const std::vector<RdbEntry>& entries, RdbStrings strings) {
    std::string body;
    AppendRdbAux("idemd-lsn", "123456789012", body);
    for (size_t i = 0; i < entries.size(); ++i) {
      const DbIndex db = entries[i].db;
      if (i == 0 || entries[i - 1].db != db) {
        const auto in_db = [db](const RdbEntry& e) { return e.db == db; };
        const auto with_deadline = [db](const RdbEntry& e) {
          return e.db == db && e.deadline_ms != kNoDeadline;
        };
        AppendRdbDatabase(
            db, static_cast<uint64_t>(std::count_if(entries.begin(), entries.end(), in_db)),
            static_cast<uint64_t>(std::count_if(entries.begin(), entries.end(), with_deadline)),
            body);
      }
      AppendRdbEntry(entries[i].key, entries[i].value, entries[i].deadline_ms, body, strings);
    }
    return body;
  }

  static void ExpectHolds(RedisProcess& redis, const std::vector<RdbEntry>& entries) {
    ASSERT_TRUE(redis.serves()) << redis.log();
    for (DbIndex db = 0; db < 16; ++db) {
      redis.Do(absl::StrCat("SELECT ", db));
      size_t keys = 0;
      for (const RdbEntry& entry : entries) {
        if (entry.db != db) continue;
        ++keys;
        EXPECT_EQ(redis.Do({"GET", entry.key}), "\"" + entry.value + "\"");
        EXPECT_EQ(redis.Do({"PEXPIRETIME", entry.key}),
                  absl::StrCat(entry.deadline_ms == kNoDeadline ? -1 : entry.deadline_ms));
      }
      EXPECT_EQ(redis.Do("DBSIZE"), absl::StrCat(keys)) << db;
    }
  }

  const uint64_t seed_ = TestSeed();
  std::mt19937_64 random_{seed_};
  TempFolder folder_;
};

TEST_F(RdbRedisTest, AFileThatRedisWroteHoldsWhatRedisHeld) {
  SCOPED_TRACE(SeedNote(seed_));
  for (const char* compression : {"yes", "no"}) {
    for (const char* sum : {"yes", "no"}) {
      RedisProcess redis(folder_, {"--rdbcompression", compression, "--rdbchecksum", sum});
      ASSERT_TRUE(redis.serves()) << redis.log();
      redis.Do("FLUSHALL");
      const std::vector<RdbEntry> entries = RandomEntries(400);
      for (const RdbEntry& entry : entries) Put(redis, entry);
      ASSERT_EQ(redis.Do("SAVE"), "OK");
      const std::string file = folder_.Read("dump.rdb");
      const RdbContents contents = ReadRdb(file);
      EXPECT_EQ(contents.status, absl::OkStatus());
      EXPECT_EQ(std::to_string(contents.version), std::to_string(std::stoi(file.substr(5, 4)))) << "Redis 8 writes a newer one";
      EXPECT_EQ(contents.has_sum, sum == std::string("yes"));
      EXPECT_EQ(contents.offset, file.size());
      EXPECT_EQ(contents.aux.count("redis-ver"), 1u);
      EXPECT_EQ(contents.sizes.size(), 5u);
      EXPECT_THAT(contents.entries, UnorderedElementsAreArray(entries));
      EXPECT_EQ(ReadRdb(file, 100), contents);
    }
  }
}

TEST_F(RdbRedisTest, UseCountsAndIdleTimesOfRedisAreReadOver) {
  for (const char* policy : {"allkeys-lru", "allkeys-lfu"}) {
    RedisProcess redis(folder_, {"--maxmemory-policy", policy});
    ASSERT_TRUE(redis.serves()) << redis.log();
    redis.Do("FLUSHALL");
    redis.Do("SET a 1 PXAT 99999999999999");
    redis.Do("SET b 2");
    ASSERT_EQ(redis.Do("SAVE"), "OK");
    const RdbContents contents = ReadRdb(folder_.Read("dump.rdb"), 1);
    EXPECT_EQ(contents.status, absl::OkStatus());
    EXPECT_THAT(contents.entries,
                UnorderedElementsAreArray(
                    {RdbEntry{0, "a", "1", 99'999'999'999'999}, RdbEntry{0, "b", "2"}}));
  }
}

TEST_F(RdbRedisTest, TheHeadOfAnAppendOnlyFileOfRedisIsReadUpToItsEnd) {
  RedisProcess redis(folder_, {"--appendonly", "yes"});
  ASSERT_TRUE(redis.serves()) << redis.log();
  const std::string base = folder_.Read("appendonlydir/appendonly.aof.1.base.rdb");
  const RdbContents contents = ReadRdb(base + "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
  EXPECT_EQ(contents.status, absl::OkStatus());
  EXPECT_EQ(contents.offset, base.size());
  EXPECT_EQ(contents.aux.at("aof-base"), "1");
}

TEST_F(RdbRedisTest, EveryTypeOfRedisIsRead) {
  RedisProcess redis(folder_);
  ASSERT_TRUE(redis.serves()) << redis.log();
  const std::string large(100, 'x');
  const std::pair<std::string, ValueType> cases[] = {{"RPUSH key a", ValueType::kList},
                                                     {"SADD key 1", ValueType::kSet},
                                                     {"SADD key a", ValueType::kSet},
                                                     {"ZADD key 1 a", ValueType::kSortedSet},
                                                     {"ZADD key 1.5 " + large, ValueType::kSortedSet},
                                                     {"HSET key f v", ValueType::kHash},
                                                     {"HSET key f " + large, ValueType::kHash},
                                                     {"XADD key 1-1 f v", ValueType::kStream}};
  for (const auto& [command, type] : cases) {
    SCOPED_TRACE(command);
    redis.Do("FLUSHALL");
    redis.Do(command);
    ASSERT_EQ(redis.Do("SAVE"), "OK");
    EXPECT_EQ(ReadRdb(folder_.Read("dump.rdb"), 3).status, absl::OkStatus());
    std::unique_ptr<Collection> collection;
    ASSERT_TRUE(ReadDumpPayload(redis.Bulk({"DUMP", "key"}), &collection).ok());
    ASSERT_NE(collection, nullptr);
    EXPECT_EQ(collection->type(), type);
    EXPECT_EQ(collection->size(), 1u);
    EXPECT_EQ(redis.Do({"RESTORE", "back", "0", DumpPayload(*collection), "REPLACE"}), "OK");
  }
}

TEST_F(RdbRedisTest, AFunctionLibraryIsRefusedByName) {
  RedisProcess redis(folder_);
  ASSERT_TRUE(redis.serves()) << redis.log();
  redis.Do("FLUSHALL");
  redis.Do({"FUNCTION", "LOAD",
            "#!lua name=lib\nredis.register_function('f', function() return 1 end)"});
  ASSERT_EQ(redis.Do("SAVE"), "OK");
  const RdbContents functions = ReadRdb(folder_.Read("dump.rdb"));
  EXPECT_TRUE(functions.status.ok()) << functions.status;
  EXPECT_EQ(functions.libraries,
            std::vector<std::string>({"#!lua name=lib\nredis.register_function('f', function() return 1 end)"}));
}

TEST_F(RdbRedisTest, RedisLoadsWhatWasWritten) {
  SCOPED_TRACE(SeedNote(seed_));
  for (const RdbStrings strings : {RdbStrings::kPlain, RdbStrings::kCompressed}) {
    const std::vector<RdbEntry> entries = RandomEntries(400);
    folder_.Write("dump.rdb", RdbFile(Body(entries, strings), kRdbVersion));
    RedisProcess redis(folder_);
    ExpectHolds(redis, entries);
  }
}

// The headers of versions that Redis 7.0 reads but does not write.
TEST_F(RdbRedisTest, RedisAndThisReaderAgreeAboutOlderVersions) {
  SCOPED_TRACE(SeedNote(seed_));
  for (int version = 1; version <= 10; ++version) {
    const std::vector<RdbEntry> entries = RandomEntries(20);
    std::string file = RdbFile(Body(entries, RdbStrings::kCompressed), version);
    if (version < 5) file.resize(file.size() - 8);
    folder_.Write("dump.rdb", file);
    RedisProcess redis(folder_);
    ExpectHolds(redis, entries);
    const RdbContents contents = ReadRdb(file);
    EXPECT_EQ(contents.status, absl::OkStatus()) << version;
    EXPECT_EQ(contents.entries, entries) << version;
  }
}

TEST_F(RdbRedisTest, RedisRefusesADamagedFileToo) {
  std::string file = RdbFile(Body({{0, "k", "v"}}, RdbStrings::kPlain));
  file[file.size() - 1] = static_cast<char>(file[file.size() - 1] ^ 1);
  folder_.Write("dump.rdb", file);
  EXPECT_FALSE(RedisProcess(folder_).serves()) << "else this test would notice nothing";
}

// A newer Redis puts another version there, and so has another sum.
std::string WithoutFooter(const std::string& payload) { return payload.substr(0, payload.size() - 10); }

TEST_F(RdbRedisTest, PayloadsGoBothWays) {
  SCOPED_TRACE(SeedNote(seed_));
  RedisProcess redis(folder_);
  ASSERT_TRUE(redis.serves()) << redis.log();
  for (const char* compression : {"yes", "no"}) {
    redis.Do({"CONFIG", "SET", "rdbcompression", compression});
    for (int i = 0; i < 300; ++i) {
      const std::string value = Text(0);
      redis.Do({"SET", "k", value});
      const std::string payload = redis.Bulk({"DUMP", "k"});
      EXPECT_EQ(*ReadDumpPayload(payload), value);
      if (compression == std::string("no")) {
        EXPECT_EQ(WithoutFooter(DumpPayload(value, RdbStrings::kPlain)), WithoutFooter(payload));
      }
      EXPECT_EQ(redis.Do({"RESTORE", "k", "0", DumpPayload(value), "REPLACE"}), "OK");
      EXPECT_EQ(redis.Bulk({"GET", "k"}), value);
    }
  }
}

}  // namespace
}  // namespace idemd::storage
