// MULTI, EXEC, DISCARD, WATCH: Redis' rules, and native commands inside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "server/commands/pause.h"
#include "tests/support/harness.h"

namespace idemd::server {
namespace {

using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TransactionTest : public ::testing::Test, protected idemd::testing::Harness {};

TEST_F(TransactionTest, QueuedCommandsRunAtExecAsOneUnitOfTheLog) {
  EXPECT_EQ(Do("MULTI"), "OK");
  EXPECT_EQ(Do("SET a 1"), "QUEUED");
  EXPECT_EQ(Do("INCR a"), "QUEUED");
  EXPECT_EQ(Do("GET a"), "QUEUED");
  EXPECT_EQ(Do(*Connect(), "GET a"), "nil");
  NewEffects();
  const size_t units = log.Units().size();
  EXPECT_EQ(Do("EXEC"), "[OK 2 \"2\"]");
  EXPECT_EQ(log.Units().size(), units + 1);
  EXPECT_EQ(NewEffects().back(), "SET 0 a 2");
}

// Effects on whole databases come first in a unit, and tell nothing of what was done before them.
TEST_F(TransactionTest, WhatWasDoneToAPartBeforeAFlushIsNotInTheLogBehindIt) {
  for (const char* flush : {"FLUSHDB", "FLUSHALL"}) {
    Do("HSET h n 1");
    NewEffects();
    for (const char* command : {"MULTI", "HINCRBY h n 3", "RPUSH l a", "SADD s b", flush, "HDEL h n", "RPUSH l c", "EXEC"}) Do(command);
    const std::vector<std::string> effects = NewEffects();
    EXPECT_THAT(effects, Contains(HasSubstr(flush)));
    EXPECT_THAT(effects, Contains("DEL 0 h"));
    EXPECT_THAT(effects, Contains("DEL 0 s"));
    EXPECT_THAT(effects, Contains(HasSubstr("RESTORE 0 l")));
    EXPECT_THAT(effects, Not(Contains(AnyOf(HasSubstr("HINCRBY"), HasSubstr("SADD"), HasSubstr("RPUSH")))));
    EXPECT_EQ(Do("LRANGE l 0 -1"), "[\"c\"]");
  }
}

TEST_F(TransactionTest, WhatWasDoneToAPartBeforeASwapGoesAlong) {
  Do("HSET h n 1");
  NewEffects();
  for (const char* command : {"MULTI", "HINCRBY h n 3", "SWAPDB 0 1", "FLUSHDB", "HSET h m 1", "EXEC"}) Do(command);
  const std::vector<std::string> effects = NewEffects();
  EXPECT_EQ(effects[0], "SWAPDB 0 1");
  EXPECT_EQ(effects[1], "FLUSHDB 0");
  EXPECT_EQ(effects.size(), 4u);
  Do("SELECT 1");
  EXPECT_EQ(Do("HGET h n"), "\"4\"");
}

TEST_F(TransactionTest, ARefusedCommandAbortsAndNothingRuns) {
  Do("MULTI");
  Do("SET a 1");
  EXPECT_THAT(Do("SET a"), HasSubstr("-ERR wrong number of arguments for 'set' command"));
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Do("GET a"), "nil");
  EXPECT_EQ(Do("EXEC"), "-ERR EXEC without MULTI");
}

TEST_F(TransactionTest, ATransactionOfTooManyBytesIsGivenUp) {
  settings.client_query_buffer_bytes = 10'000;
  const std::string words = absl::StrCat("SET a ", std::string(3'000, 'x'));
  Do("MULTI");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Do(words), "QUEUED");
  EXPECT_EQ(Do(words), "-ERR the transaction is longer than client-query-buffer-limit and has been given up");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Do(words), "QUEUED");  // and kept no more
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  EXPECT_EQ(Do("GET a"), "nil");
  Do("MULTI");
  EXPECT_EQ(Do("SET a 1"), "QUEUED");
  EXPECT_EQ(Do("EXEC"), "[OK]");
  // What counts is not only what words hold: so many short ones take as much.
  Do("MULTI");
  std::string reply = "QUEUED";
  int queued = 0;
  for (; reply == "QUEUED" && queued < 1'000; ++queued) reply = Do("PING");
  EXPECT_LT(queued, 200);
  EXPECT_THAT(Do("EXEC"), HasSubstr("EXECABORT"));
}

TEST_F(TransactionTest, AReplyThatIsTooLongIsAnErrorAndEndsTheConnectionIfSomethingMayHaveBeenWritten) {
  settings.proto_max_reply_bytes = 2'000;
  Do(absl::StrCat("SET a ", std::string(900, 'x')));
  EXPECT_EQ(Do("MGET a a a"), "-ERR the reply is longer than proto-max-reply-len");
  EXPECT_THAT(Do("MGET a a"), HasSubstr("xxx"));
  Do("SADD s b");
  EXPECT_EQ(Do("SRANDMEMBER s -2000"), "-ERR the reply is longer than proto-max-reply-len");
  EXPECT_THAT(Do("EVAL \"return redis.call('MGET', 'a', 'a', 'a')\" 0"), HasSubstr("the reply is longer than proto-max-reply-len"));
  for (const char* command : {"MULTI", "GET a", "SET b 1", "GET a", "GET a"}) Do(command);
  EXPECT_EQ(Do("EXEC"), "-ERR the reply is longer than proto-max-reply-len");
  EXPECT_TRUE(me->session.close_after_reply);
  EXPECT_EQ(Do(*Connect(), "GET b"), "\"1\"");
}

TEST_F(TransactionTest, ARefusedExecEndsTheTransaction) {
  Do("MULTI");
  Do("SET a 1");
  EXPECT_EQ(Do("EXEC now"),
            "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command");
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_EQ(Do("GET a"), "nil");
}

TEST_F(TransactionTest, MonitorCannotBeginInside) {
  Do("MULTI");
  Do("MONITOR");
  EXPECT_EQ(Do("EXEC"), "[-ERR MONITOR isn't allowed for DENY BLOCKING client]");
  EXPECT_FALSE(me->session.monitor);
}

TEST_F(TransactionTest, AnErrorAtExecLeavesTheOthersDone) {
  Do("SET text abc");
  Do("MULTI");
  Do("INCR text");
  Do("SET b 1");
  EXPECT_EQ(Do("EXEC"), "[-ERR value is not an integer or out of range OK]");
  EXPECT_EQ(Do("GET b"), "\"1\"");
}

TEST_F(TransactionTest, DiscardAndResetDropWhatIsQueued) {
  Do("MULTI");
  Do("SET a 1");
  EXPECT_EQ(Do("DISCARD"), "OK");
  EXPECT_EQ(Do("GET a"), "nil");
  EXPECT_EQ(Do("DISCARD"), "-ERR DISCARD without MULTI");
  Do("MULTI");
  Do("SET a 1");
  EXPECT_EQ(Do("RESET"), "RESET");
  EXPECT_EQ(Do("EXEC"), "-ERR EXEC without MULTI");
}

TEST_F(TransactionTest, NestingAndWatchInsideAreRefusedWithoutAborting) {
  Do("MULTI");
  EXPECT_EQ(Do("MULTI"), "-ERR MULTI calls can not be nested");
  EXPECT_EQ(Do("WATCH a"), "-ERR WATCH inside MULTI is not allowed");
  EXPECT_EQ(Do("PING"), "QUEUED");
  EXPECT_EQ(Do("EXEC"), "[PONG]");
}

TEST_F(TransactionTest, AWatchTripsOnEveryKindOfChange) {
  auto other = Connect();
  const auto trips = [&](const char* change) {
    Do("FLUSHALL");
    Do("SET w 1");
    Do("WATCH w");
    Do(*other, change);
    Do("MULTI");
    Do("SET done 1");
    return Do("EXEC") == "nil" && Do("GET done") == "nil";
  };
  for (const char* change : {"SET w 2", "DEL w", "EXPIRE w 100", "APPEND w x", "RENAME w v", "FLUSHDB", "FLUSHALL",
                             "SWAPDB 0 1", "IDEM.CONSUME w", "SETRANGE w 5 x", "MOVE w 4"})
    EXPECT_TRUE(trips(change)) << change;
  for (const char* change : {"GET w", "SET other 1", "PERSIST w", "DEL nothing", "IDEM.STATUS w"})
    EXPECT_FALSE(trips(change)) << change;
  // A write that sets what is there already is one all the same.
  Do("SET w 1 PXAT 99999999999999");
  Do("WATCH w");
  EXPECT_EQ(Do(*other, "PEXPIREAT w 99999999999999"), "1");
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "nil");
}

TEST_F(TransactionTest, OnesOwnChangeTripsToo) {
  Do("WATCH w");
  Do("SET w 1");
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "nil");
}

TEST_F(TransactionTest, AKeyThatExpiresTripsButOneThatHadExpiredBeforeDoesNot) {
  Do("SET w 1 PX 10");
  Do("WATCH w");
  Pass(10);
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "nil");

  Do("SET w 1 PX 10");
  clock.AdvanceMs(10);  // expired, and nobody has looked yet
  Do("WATCH w");
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "[]");
}

TEST_F(TransactionTest, UnwatchAndExecForgetTheWatch) {
  Do("WATCH w");
  EXPECT_EQ(Do("UNWATCH"), "OK");
  Do("SET w 1");
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "[]");
  Do("WATCH w");
  Do("MULTI");
  Do("EXEC");
  Do("SET w 2");
  Do("MULTI");
  EXPECT_EQ(Do("EXEC"), "[]");
}

TEST_F(TransactionTest, NativeCommandsRunInsideAndWaitIsIgnored) {
  Do("IDEM.RESERVE busy CLAIM somebody");
  Do("MULTI");
  Do("IDEM.TOKEN form: COUNT 3");
  Do("IDEM.RESERVE job CLAIM me");
  Do("IDEM.RESERVE busy CLAIM me WAIT 100000");
  Do("IDEM.MRESERVE 2 m1 m2");
  EXPECT_EQ(Do("IDEM.RESERVE job LEASE 0"), "QUEUED") << "option errors come at EXEC";
  EXPECT_EQ(Do("IDEM.RESERVE"), "-ERR wrong number of arguments for 'idem.reserve' command")
      << "arity errors come at queueing";
  EXPECT_THAT(Do("EXEC"), HasSubstr("-EXECABORT"));
  Do("MULTI");
  Do("IDEM.RESERVE job CLAIM me");
  Do("IDEM.RESERVE busy CLAIM me WAIT 100000");
  Do("IDEM.MRESERVE 2 m1 m2");
  Do("IDEM.TOKEN form: COUNT 3");
  const std::string reply = Do("EXEC");
  EXPECT_THAT(reply, HasSubstr("[\"RESERVED\" "));
  EXPECT_THAT(reply, HasSubstr("[\"PENDING\" 0 1 30000 0 nil]"));
  EXPECT_FALSE(me->waits());
}

TEST_F(TransactionTest, WaitersAreLookedAtWhenTheWholeUnitIsOver) {
  Do("IDEM.RESERVE job CLAIM me");
  auto waiter = Connect();
  Do(*waiter, "IDEM.RESERVE job CLAIM other WAIT 100000");
  ASSERT_TRUE(waiter->waits());
  Do("MULTI");
  Do(absl::StrCat("IDEM.RELEASE job ", kFirstFence));
  Do("IDEM.RESERVE job CLAIM again");
  EXPECT_THAT(Do("EXEC"), HasSubstr("\"RESERVED\""));
  EXPECT_EQ(Posted(*waiter), "") << "at the end of the unit the key is taken again";
  Do("DEL job");
  EXPECT_THAT(Posted(*waiter), HasSubstr("\"RESERVED\""));
}

TEST_F(TransactionTest, NoNewCallerOvertakesAWaiterAtALapse) {
  for (const char* caller : {"IDEM.RESERVE job", "IDEM.RESERVE job WAIT 5", "IDEM.MRESERVE 2 job other", "EXEC"}) {
    Do("FLUSHALL");
    Do("IDEM.RESERVE job LEASE 60");
    auto waiter = Connect();
    Do(*waiter, "IDEM.RESERVE job CLAIM waiter WAIT 100000 LEASE 1000");
    clock.AdvanceMs(60);  // nobody has noticed yet
    auto client = Connect();
    if (caller == std::string("EXEC")) {
      Do(*client, "MULTI");
      Do(*client, "IDEM.RESERVE job");
    }
    const std::string reply = Do(*client, caller);
    EXPECT_THAT(reply, HasSubstr(client->waits() ? "" : "\"PENDING\"")) << caller;
    EXPECT_THAT(Posted(*waiter), HasSubstr("\"RESERVED\"")) << caller;
    dispatcher.Closed(client->session);
  }
}

TEST_F(TransactionTest, FlushAndScanRunInside) {
  Do("SET a 1");
  Do("MULTI");
  Do("SCAN 0");
  Do("KEYS *");
  Do("RANDOMKEY");
  Do("FLUSHALL");
  Do("SWAPDB 0 1");
  Do("DBSIZE");
  EXPECT_EQ(Do("EXEC"), "[[\"0\" [\"a\"]] [\"a\"] \"a\" OK OK 0]");
}

// A unit remembers the collection that it saw last: not any more once the key holds another.
TEST_F(TransactionTest, ACollectionThatTakesAnothersPlaceIsTheOneThatIsChanged) {
  for (const char* command : {"MULTI", "RPUSH a 1", "RENAME a b", "RPUSH a 2", "RPUSH b 3", "DEL a", "RPUSH a 4", "SWAPDB 0 1", "RPUSH a 5",
                              "SWAPDB 0 1", "RPUSH a 6", "COPY a b REPLACE", "RPUSH b 7", "SET a x", "DEL a", "SADD a m", "LPOP b", "FLUSHALL", "RPUSH b 8"})
    Do(command);
  EXPECT_EQ(Do("EXEC"), "[1 OK 1 2 1 1 OK 1 OK 2 1 3 OK 1 1 \"4\" OK 1]");
  EXPECT_EQ(Do("LRANGE b 0 -1"), "[\"8\"]");
  EXPECT_EQ(Do("EXISTS a"), "0");
}

TEST_F(TransactionTest, SelectInsideMovesTheCommandsBehindIt) {
  Do("MULTI");
  Do("SELECT 3");
  Do("SET a 3");
  EXPECT_EQ(Do("EXEC"), "[OK OK]");
  Do("SELECT 0");
  EXPECT_EQ(Do("GET a"), "nil");
  Do("SELECT 3");
  EXPECT_EQ(Do("GET a"), "\"3\"");
}

// Every command, inside a transaction, with its shortest possible words: none may look at a key whose lock EXEC has not
// taken (the store stops the process then).
TEST_F(TransactionTest, NoCommandLooksBeyondTheLocksThatExecTook) {
  for (const CommandEntry* entry : commands.all()) {
    const CommandSpec& spec = *entry->spec;
    if (spec.handler == nullptr || (spec.flags & kNotQueued) != 0 || (spec.flags & kNoMulti) != 0) continue;
    if (entry->full_name == "shutdown" || entry->full_name.substr(0, 5) == "debug") continue;
    for (int extra = 0; extra < 6; ++extra) {
      std::vector<std::string> words;
      if (entry->parent != nullptr) words.push_back(entry->parent->spec->name);
      words.push_back(spec.name);
      const int least = spec.arity > 0 ? spec.arity : -spec.arity;
      if (spec.arity > 0 && extra > 0) break;
      while (static_cast<int>(words.size()) < least + extra) words.push_back(absl::StrCat(words.size()));
      SCOPED_TRACE(entry->full_name);
      Do("SET 1 x");
      Do("SET 2 x");
      Do("MULTI");
      const std::string queued = DoWords(words);
      const std::string reply = Do("EXEC");
      EXPECT_TRUE(queued == "QUEUED" ? reply[0] == '[' : reply.substr(0, 10) == "-EXECABORT") << queued << " " << reply;
      services.pause->End();  // CLIENT PAUSE was one of them
      Do("RESET");
    }
  }
}

TEST_F(TransactionTest, TransfersBetweenThreadsKeepTheSum) {
  storage::NullLog null_log;
  constexpr int kAccounts = 10;
  for (int i = 0; i < kAccounts; ++i) Do(absl::StrCat("SET account:", i, " 100"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([this, t] {
      Dispatcher own(services);
      auto client = Connect();
      for (int i = 0; i < 300; ++i) {
        protocol::Batch batch;
        const std::string from = absl::StrCat("account:", (i * 7 + t) % kAccounts);
        const std::string to = absl::StrCat("account:", (i * 3 + 1) % kAccounts);
        batch.words = {"MULTI", "DECR", from, "INCR", to, "EXEC"};
        batch.requests.resize(4);
        batch.requests[0].first = 0, batch.requests[0].count = 1;
        batch.requests[1].first = 1, batch.requests[1].count = 2;
        batch.requests[2].first = 3, batch.requests[2].count = 2;
        batch.requests[3].first = 5, batch.requests[3].count = 1;
        std::string out;
        own.Run(client->session, batch, 0, 1 << 20, out);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (int i = 0; i < kAccounts; ++i) {
    const std::string value = Do(absl::StrCat("GET account:", i));
    sum += std::stoi(value.substr(1));
  }
  EXPECT_EQ(sum, kAccounts * 100);
}

TEST_F(TransactionTest, WhatNeedsMemoryDoesNotRunWhereThereIsNone) {
  for (const char* line : {"MULTI", "SET a 1"}) Do(line);
  store.settings().maxmemory_bytes.store(1);
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.");
  for (const char* line : {"MULTI", "GET a", "DEL a"}) Do(line);
  EXPECT_EQ(Do("EXEC"), "[nil 0]");
  store.settings().maxmemory_bytes.store(0);
  EXPECT_EQ(Do("GET a"), "nil");
}

}  // namespace
}  // namespace idemd::server
