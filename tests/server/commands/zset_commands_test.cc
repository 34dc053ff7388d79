// Sorted sets and geo beyond their replies: what goes to the log and to listeners, who waits is served, values travel.
//
// Replies are compared with a stock Redis in tests/e2e/differential/zset.py and geo.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/collection/sorted_set.h"
#include "storage/events.h"
#include "tests/support/harness.h"
#include "tests/support/redis_process.h"
#include "tests/support/seed.h"

namespace idemd::server {
namespace {

using storage::SortedSet;

class ZsetCommandsTest : public ::testing::Test, protected idemd::testing::Harness {
 protected:
  ~ZsetCommandsTest() override {
    SortedSet::small_members_max = 128;
    SortedSet::small_bytes_max = 64;
  }
  std::string Effect(absl::string_view line) {
    NewEffects();
    Do(line);
    return Written();
  }
  // What went to the log since the last look, a line for each command.
  std::string Written() {
    std::string lines;
    for (const std::string& effect : NewEffects()) {
      absl::StrAppend(&lines, lines.empty() ? "" : "; ");
      // Commands on collections are in RESP already: every second line is a word.
      const std::vector<std::string> parts = absl::StrSplit(effect, "\r\n");
      if (parts.size() < 3) absl::StrAppend(&lines, effect);
      for (size_t i = 2; i < parts.size(); i += 2) absl::StrAppend(&lines, i == 2 ? "" : " ", parts[i]);
    }
    return lines;
  }
  std::string Dump(const std::string& key) {
    const std::string reply = DoWords({"DUMP", key});
    return reply.size() >= 2 && reply[0] == '"' ? reply.substr(1, reply.size() - 2) : reply;
  }
};

TEST_F(ZsetCommandsTest, TheLogGetsAbsoluteWrites) {
  EXPECT_EQ(Effect("ZADD k 1.0 a 0x10 b"), "ZADD k 1 a 16 b");
  EXPECT_EQ(Effect("ZADD k NX 5 a 0.1 c"), "ZADD k 0.10000000000000001 c");
  EXPECT_EQ(Effect("ZADD k GT CH 0 a 20 b"), "ZADD k 20 b");
  EXPECT_EQ(Effect("ZADD k INCR 0.2 c"), "ZADD k 0.30000000000000004 c");
  EXPECT_EQ(Effect("ZINCRBY k +inf a"), "ZADD k inf a");
  EXPECT_EQ(Effect("ZADD k 20 b"), "") << "nothing changed";
  EXPECT_EQ(Effect("ZADD k XX 1 nobody"), "");
  EXPECT_EQ(Effect("ZINCRBY k -inf a"), "") << "an error";
  EXPECT_EQ(Effect("ZREM k nobody c"), "ZREM k c");
  Do("ZADD k 1 m1 2 m2 3 m3 4 m4 5 m5 6 m6");
  EXPECT_EQ(Effect("ZPOPMIN k"), "ZPOPMIN k 1");
  EXPECT_EQ(Effect("ZMPOP 2 none k MAX COUNT 2"), "ZPOPMAX k 2");
  EXPECT_EQ(Effect("ZREMRANGEBYSCORE k (2 3"), "ZREMRANGEBYRANK k 1 1");
  EXPECT_EQ(Effect("ZREMRANGEBYRANK k -1 -1"), "ZREMRANGEBYRANK k 3 3");
  EXPECT_EQ(Effect("ZREMRANGEBYSCORE k 100 200"), "");
  EXPECT_EQ(Effect("ZPOPMAX k 100"), "ZPOPMAX k 3");
  EXPECT_EQ(Do("EXISTS k"), "0");
  EXPECT_EQ(Effect("GEOADD g 13.361389 38.115556 Palermo"), "ZADD g 3479099956230698 Palermo");
}

TEST_F(ZsetCommandsTest, AStoredResultReplacesWhateverIsThere) {
  Do("ZADD a 1 x 2 y");
  Do("SET to text EX 100");
  EXPECT_EQ(Do("ZUNIONSTORE to 1 a"), "2");
  EXPECT_EQ(Do("TTL to"), "-1");
  EXPECT_EQ(Do("ZRANGESTORE to a 5 6"), "0");
  EXPECT_EQ(Do("EXISTS to"), "0");
  EXPECT_EQ(Do("ZINTERSTORE a 2 a a"), "2") << "a source may be the target";
  EXPECT_EQ(Do("ZRANGE a 0 -1 WITHSCORES"), "[\"x\" \"2\" \"y\" \"4\"]");
}

class Listener final : public storage::EventSink {
 public:
  void OnEvents(absl::Span<const storage::Event> events, storage::Lsn, storage::EventOrigin*) override {
    for (const storage::Event& e : events) absl::StrAppend(&told, told.empty() ? "" : " ", e.name, ":", e.key);
  }
  std::string told;
};

TEST_F(ZsetCommandsTest, EventsAreThoseOfRedis) {
  Listener listener;
  store.SetEventSink(&listener);
  store.WantEvents((storage::Bit(storage::EventClass::kNew) << 1) - 1);
  const auto told = [&](absl::string_view line) {
    listener.told.clear();
    Do(line);
    return listener.told;
  };
  EXPECT_EQ(told("ZADD k 1 a 2 b"), "new:k zadd:k");
  EXPECT_EQ(told("ZADD k 1 a"), "");
  EXPECT_EQ(told("ZADD k INCR 1 a"), "zincr:k");
  EXPECT_EQ(told("ZINCRBY k 1 b"), "zincr:k");
  EXPECT_EQ(told("ZADD k XX 1 nobody"), "");
  EXPECT_EQ(told("ZREM k nobody"), "");
  EXPECT_EQ(told("ZREM k a"), "zrem:k");
  EXPECT_EQ(told("ZPOPMIN k"), "zpopmin:k del:k");
  EXPECT_EQ(told("ZPOPMIN k"), "");
  Do("ZADD k 1 a 2 b 3 c 4 d");
  EXPECT_EQ(told("ZREMRANGEBYRANK k 0 0"), "zremrangebyrank:k");
  EXPECT_EQ(told("ZREMRANGEBYSCORE k 2 2"), "zremrangebyscore:k");
  EXPECT_EQ(told("ZREMRANGEBYLEX k [c [c"), "zremrangebylex:k");
  EXPECT_EQ(told("ZUNIONSTORE to 2 k absent"), "keymiss:absent new:to zunionstore:to");
  EXPECT_EQ(told("ZINTERSTORE to 1 k"), "zinterstore:to");
  EXPECT_EQ(told("ZDIFFSTORE to 1 k"), "zdiffstore:to");
  EXPECT_EQ(told("ZRANGESTORE to k 0 -1"), "zrangestore:to");
  EXPECT_EQ(told("ZRANGESTORE to k 5 6"), "del:to");
  EXPECT_EQ(told("ZRANGESTORE to absent 5 6"), "keymiss:absent");
  EXPECT_EQ(told("ZMPOP 1 k MAX"), "zpopmax:k del:k");
  EXPECT_EQ(told("ZCARD k"), "keymiss:k");
  EXPECT_EQ(told("GEOADD g 1 1 a"), "new:g zadd:g");
  EXPECT_EQ(told("GEOSEARCHSTORE to g FROMLONLAT 1 1 BYRADIUS 1 km"), "new:to geosearchstore:to");
  EXPECT_EQ(told("GEORADIUS g 1 1 1 km STORE to"), "georadiusstore:to");
  EXPECT_EQ(told("GEORADIUS g 50 50 1 km STORE to"), "del:to");
  store.WantEvents(0);
}

TEST_F(ZsetCommandsTest, WhoWaitsIsServedWhenMembersCome) {
  std::vector<std::unique_ptr<idemd::testing::TestClient>> waiting;
  for (const char* line : {"BZPOPMIN k other 0", "BZPOPMAX other k 0", "BZMPOP 0 2 other k MAX COUNT 2"}) {
    waiting.push_back(Connect());
    EXPECT_EQ(Do(*waiting.back(), line), "");
    EXPECT_TRUE(waiting.back()->waits());
  }
  Do("LPUSH other x");
  Do("DEL other");
  NewEffects();
  EXPECT_EQ(Do("ZADD k 1 a 2 b 3 c 4 d 5 e"), "5");
  EXPECT_EQ(Posted(*waiting[0]), "[\"k\" \"a\" \"1\"]");
  EXPECT_EQ(Posted(*waiting[1]), "[\"k\" \"e\" \"5\"]");
  EXPECT_EQ(Posted(*waiting[2]), "[\"k\" [[\"d\" \"4\"] [\"c\" \"3\"]]]");
  EXPECT_EQ(Written(), "ZADD k 1 a 2 b 3 c 4 d 5 e; ZPOPMIN k 1; ZPOPMAX k 1; ZPOPMAX k 2");
  EXPECT_EQ(Do("ZRANGE k 0 -1"), "[\"b\"]");
  EXPECT_EQ(Do("BZPOPMIN none k 0"), "[\"k\" \"b\" \"2\"]");
}

TEST_F(ZsetCommandsTest, ATransactionHoldsEveryKeyThatMayBeStored) {
  Do("GEOADD g 1 1 a");
  Do("MULTI");
  for (const char* line : {"GEORADIUS g 1 1 1 km STORE one STORE two", "GEORADIUSBYMEMBER g a 1 km STOREDIST one STORE three",
                           "GEOSEARCHSTORE four g FROMMEMBER a BYBOX 1 1 km", "ZUNIONSTORE five 2 g six", "ZUNIONSTORE five 99 g six",
                           "ZMPOP 2 seven g MIN", "BZPOPMIN seven eight 0", "BZMPOP 0 1 nine MIN", "ZRANGESTORE ten g 0 -1"})
    EXPECT_EQ(Do(line), "QUEUED");
  EXPECT_EQ(Do("EXEC"), "[1 1 1 1 -ERR syntax error [\"g\" [[\"a\" \"3377822707026402\"]]] nil nil 0]");
  EXPECT_EQ(Do("EXISTS one two three four five"), "4");
}

TEST_F(ZsetCommandsTest, AScanShowsAllThatStaysThroughout) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  std::set<std::string> stays;
  for (int i = 0; i < 500; ++i) stays.insert(absl::StrCat("stays", i));
  for (const std::string& member : stays) DoWords({"ZADD", "k", absl::StrCat(random() % 100), member});
  for (int i = 0; i < 500; ++i) Do(absl::StrCat("ZADD k 1 goes", i));
  std::string cursor = "0";
  std::set<std::string> seen;
  do {
    const std::string reply = Do(absl::StrCat("ZSCAN k ", cursor, " COUNT 7"));  // ["cursor" ["member" "score" ...]]
    const std::vector<std::string> words = absl::StrSplit(reply, '"');
    cursor = words[1];
    for (size_t i = 3; i < words.size(); i += 4) seen.insert(words[i]);
    for (int i = 0; i < 4; ++i) {
      Do(absl::StrCat("ZREM k goes", random() % 500));
      Do(absl::StrCat("ZADD k ", random() % 100, " comes", random() % 50));
      Do(absl::StrCat("ZINCRBY k 3 stays", random() % 500));
    }
  } while (cursor != "0");
  for (const std::string& member : stays) EXPECT_TRUE(seen.contains(member)) << member;
}

TEST_F(ZsetCommandsTest, DrawsAreMembersAndDiffer) {
  for (const uint64_t small : {128u, 4u}) {
    SortedSet::small_members_max = small;
    Do("DEL k");
    for (int i = 0; i < 20; ++i) Do(absl::StrCat("ZADD k ", i, " m", i));
    std::set<std::string> drawn;
    for (int i = 0; i < 500; ++i) {
      const std::vector<std::string> words = absl::StrSplit(Do("ZRANDMEMBER k 5"), '"');
      std::set<std::string> five;
      for (size_t w = 1; w < words.size(); w += 2) five.insert(words[w]);
      EXPECT_EQ(five.size(), 5u);
      drawn.merge(five);
    }
    EXPECT_EQ(drawn.size(), 20u) << "each is drawn sooner or later";
    EXPECT_EQ(Do("ZRANDMEMBER k -1048577"), "-ERR value is out of range");
    const std::string repeated = Do("ZRANDMEMBER k -30");
    EXPECT_EQ(std::count(repeated.begin(), repeated.end(), '"'), 60);
    EXPECT_TRUE(absl::StartsWith(Do("ZRANDMEMBER k"), "\"m"));
  }
}

TEST_F(ZsetCommandsTest, ValuesTravelToRedisAndBack) {
  if (!idemd::testing::HasRedisServer()) GTEST_SKIP() << "no redis-server on the PATH";
  const idemd::testing::TempFolder folder;
  idemd::testing::RedisProcess redis(folder);
  ASSERT_TRUE(redis.serves()) << redis.log();
  for (const int members : {1, 100, 128, 129, 1000}) {
    Do("DEL k");
    for (int i = 0; i < members; ++i)
      DoWords({"ZADD", "k", i % 3 == 0 ? absl::StrCat(i * 7919 % 1000) : absl::StrCat(i, ".5"), absl::StrCat("m", i)});  // exact: newer versions print others shorter
    DoWords({"ZADD", "k", "-inf", "low", "inf", "high", "1e15", "123"});
    if (members > 500) DoWords({"ZADD", "k", "1", std::string(300, 'x')});
    const std::string all = Do("ZRANGE k 0 -1 WITHSCORES");
    ASSERT_EQ(redis.Do({"RESTORE", "k", "0", Dump("k"), "REPLACE"}), "OK");
    EXPECT_EQ(redis.Do("ZRANGE k 0 -1 WITHSCORES"), all);
    EXPECT_EQ(redis.Do("OBJECT ENCODING k"), Do("OBJECT ENCODING k"));
    ASSERT_EQ(DoWords({"RESTORE", "k", "0", redis.Bulk({"DUMP", "k"}), "REPLACE"}), "OK");
    EXPECT_EQ(Do("ZRANGE k 0 -1 WITHSCORES"), all);
    EXPECT_EQ(redis.Do("OBJECT ENCODING k"), Do("OBJECT ENCODING k"));
  }
}

}  // namespace
}  // namespace idemd::server
