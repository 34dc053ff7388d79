// IDEM.RESERVE and the fenced commands through dispatch: replies, effects in the log, counters, the
// memory limit.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using server::NativeCounter;

std::string Fence(int64_t nth) { return std::to_string(Harness::kFirstFence + nth - 1); }

TEST(IdemReserve, ALifeFromClaimToAnswer) {
  Harness h;
  EXPECT_EQ(h.Do("IDEM.RESERVE k CLAIM c"), "[\"RESERVED\" " + Fence(1) + " 1 30000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE k CLAIM c"), "[\"HELD\" " + Fence(1) + " 1 30000 0 nil]");
  h.Pass(10'000);
  EXPECT_EQ(h.Do("IDEM.RESERVE k"), "[\"PENDING\" 0 1 20000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.CHECKPOINT k " + Fence(1) + " half"), "OK");
  EXPECT_EQ(h.Do("IDEM.EXTEND k " + Fence(1) + " 5000"), "5000");
  EXPECT_EQ(h.Do("IDEM.COMPLETE k " + Fence(1) + " answer CODE 201"), "OK");
  EXPECT_EQ(h.Do("IDEM.COMPLETE k " + Fence(1) + " answer CODE 201"), "OK");
  EXPECT_EQ(h.Do("IDEM.RESERVE k"), "[\"DONE\" 0 1 86400000 201 \"answer\"]");
}

TEST(IdemReserve, RepliesHaveOneShapeInBothProtocols) {
  Harness h;
  h.Do("HELLO 3");
  EXPECT_EQ(h.Do("IDEM.RESERVE k"), "[\"RESERVED\" " + Fence(1) + " 1 30000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.STATUS absent"), "nil");
  EXPECT_EQ(h.Do("IDEM.STATUS k").substr(0, 19), "{\"state\": \"pending\"");
}

TEST(IdemReserve, EveryWriteIsOneSetOrDelete) {
  Harness h;
  h.NewEffects();
  h.Do("IDEM.RESERVE k LEASE 1000 PX 60000");
  EXPECT_EQ(h.NewEffects(), std::vector<std::string>{
                                "SET 0 k idem/1 state=pending fence=" + Fence(1) +
                                " attempt=1 since=1700000000000 lease=1700000001000 lease-ms=1000 "
                                "keep-ms=60000 payload=none\n PXAT 1700000060000"});
  h.Do("IDEM.COMPLETE k " + Fence(1) + " r FOREVER");
  EXPECT_EQ(h.NewEffects(), std::vector<std::string>{
                                "SET 0 k idem/1 state=done fence=" + Fence(1) +
                                " attempt=1 since=1700000000000 lease=1700000000000 lease-ms=1000 "
                                "keep-ms=0 payload=raw\nr"});
  h.Do("IDEM.RESERVE gone");
  h.NewEffects();
  h.Do("IDEM.RELEASE gone " + Fence(2));
  EXPECT_EQ(h.NewEffects(), std::vector<std::string>{"DEL 0 gone"});
}

TEST(IdemReserve, RefusalsWriteNothing) {
  Harness h;
  h.Do("IDEM.RESERVE k CLAIM c FINGERPRINT f");
  h.Do("SET plain x");
  h.NewEffects();
  const std::vector<std::string> refused = {
      "IDEM.RESERVE k",
      "IDEM.RESERVE k CLAIM c",
      "IDEM.RESERVE k FINGERPRINT other",
      "IDEM.RESERVE plain",
      "IDEM.RESERVE absent ISSUED",
      "IDEM.COMPLETE k 1 r",
      "IDEM.FAIL k 1",
      "IDEM.RELEASE k 1",
      "IDEM.EXTEND k 1 50",
      "IDEM.CHECKPOINT k 1 data",
      "IDEM.COMPLETE plain 1 r",
      "IDEM.RELEASE plain 1",
      "IDEM.CONSUME k",
      "IDEM.CONSUME plain IFEQ other",
      "IDEM.MRESERVE 2 k absent",
      "IDEM.TRANSITION plain b FROM 1 a",
      "IDEM.TRANSITION plain x FROM 1 a",
      "IDEM.THROTTLE t 1 1 1000 PEEK",
      "IDEM.THROTTLE t 1 1 1000 COST 5",
      "IDEM.STATUS k",
      "IDEM.STATS",
  };
  for (const std::string& line : refused) {
    h.Do(line);
    EXPECT_EQ(h.NewEffects(), std::vector<std::string>()) << line;
  }
}

TEST(IdemReserve, ErrorsSayWhatToDo) {
  Harness h;
  h.Do("IDEM.RESERVE k");
  EXPECT_EQ(h.Do("IDEM.COMPLETE k 5 r"),
            "-STALE fence 5 is not the current claim; the claim lapsed and was taken over, or was "
            "given up: "
            "stop and do not apply the effect");
  EXPECT_EQ(h.Do("IDEM.COMPLETE absent 5 r").substr(0, 9), "-NOTFOUND");
  EXPECT_EQ(h.Do("IDEM.RELEASE absent 5"), "0");
  h.Do("IDEM.COMPLETE k " + Fence(1) + " r");
  EXPECT_EQ(h.Do("IDEM.COMPLETE k " + Fence(1) + " other").substr(0, 9), "-CONFLICT");
  for (const char* fence : {"0", "-1", "x", "1.0", "9223372036854775808", "+1", "01"})
    EXPECT_EQ(h.Do(std::string("IDEM.FAIL k ") + fence).substr(0, 10), "-ERR fence") << fence;
  h.Do("SET damaged idem/2");
  EXPECT_EQ(h.Do("IDEM.RESERVE damaged").substr(0, 5), "-ERR ");
  EXPECT_EQ(h.Do("IDEM.STATUS damaged").substr(0, 5), "-ERR ");
}

TEST(IdemReserve, BadOptionsChangeNothing) {
  Harness h;
  const std::vector<std::string> bad = {
      "CLAIM",
      "CLAIM ''",
      "CLAIM " + std::string(65, 'x'),
      "CLAIM a CLAIM b",
      "FINGERPRINT ''",
      "LEASE",
      "LEASE 0",
      "LEASE -1",
      "LEASE x",
      "LEASE 9223372036854775807",
      "LEASE 5 LEASE 5",
      "EX 0",
      "EX -1",
      "EX 9223372036854775807",
      "EX 9223372036854775",
      "PX 9223372036854775807",
      "EXAT 1",
      "PXAT 1700000000000",
      "PXAT 9223372036854775807",
      "EX 5 PX 5",
      "EX 5 FOREVER",
      "FOREVER FOREVER",
      "EX 1.5",
      "EX ''",
      "WAIT -1",
      "WAIT x",
      "WAIT 9223372036854775807",
      "ONLAPSE",
      "ONLAPSE KEEP",
      "IFEQ v",
      "ISSUED ISSUED",
      "ISSUED IFEQ",
      "FOO",
      "COUNT 5",
      "BY me",
  };
  h.NewEffects();
  for (const std::string& options : bad) {
    EXPECT_EQ(h.Do("IDEM.RESERVE k " + options).substr(0, 5), "-ERR ") << options;
    EXPECT_EQ(h.Do("EXISTS k"), "0") << options;
  }
  EXPECT_EQ(h.NewEffects(), std::vector<std::string>());
  EXPECT_EQ(h.Do("IDEM.RESERVE k wait 0 forever onlapse stop claim c lease 5 fingerprint f"),
            "[\"RESERVED\" " + Fence(1) + " 1 5 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE k2 PXAT 1700000000001"),
            "[\"RESERVED\" " + Fence(2) + " 1 30000 0 nil]");
}

TEST(IdemReserve, ATokenThatSurvivesAFailedAttempt) {
  Harness h;
  const std::string token = h.Do("IDEM.TOKEN t: PX 60000 VALUE user1");
  const std::string key = "t:" + token.substr(1, token.size() - 2);
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key + " ISSUED IFEQ other"), "[\"REFUSED\" 0 0 0 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key), "[\"PENDING\" 0 0 60000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key + " ISSUED IFEQ user1"),
            "[\"RESERVED\" " + Fence(1) + " 1 30000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " REASON"), "DUPLICATE");
  EXPECT_EQ(h.Do("IDEM.RELEASE " + key + " " + Fence(1)), "1");
  EXPECT_EQ(h.Do("GET " + key), "\"user1\"");
  EXPECT_EQ(h.Do("PTTL " + key), "60000");
  h.Do("IDEM.RESERVE " + key + " ISSUED PX 1 LEASE 1");
  h.Do("IDEM.COMPLETE " + key + " " + Fence(2) + " r PX 5000");
  h.Pass(5'000);
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key + " ISSUED"), "[\"DUPLICATE\" 0 0 0 0 nil]");
  h.Pass(60'000);
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key + " ISSUED"), "[\"EXPIRED\" 0 0 0 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE t:never ISSUED"), "[\"UNISSUED\" 0 0 0 0 nil]");
}

TEST(IdemReserve, AtTheMemoryLimitOnlyNewClaimsGetOom) {
  Harness h;
  h.Do("IDEM.RESERVE done");
  h.Do("IDEM.COMPLETE done " + Fence(1) + " answer");
  h.Do("IDEM.RESERVE lapsed LEASE 1");
  h.Do("IDEM.RESERVE mine CLAIM c LEASE 100000");
  h.Do("SET token v");
  h.Do("SET state a");
  h.Pass(1);
  h.store.settings().maxmemory_bytes = 1;
  for (const char* line : {"IDEM.RESERVE new", "IDEM.TOKEN p:", "IDEM.RESERVE token ISSUED",
                           "IDEM.MRESERVE 2 mine new CLAIM c", "IDEM.TRANSITION new a FROM 0 INIT",
                           "IDEM.THROTTLE new 1 1 1000"}) {
    EXPECT_EQ(h.Do(line).substr(0, 5), "-OOM ") << line;
  }
  EXPECT_EQ(h.Do("EXISTS new"), "0");
  EXPECT_EQ(h.Do("IDEM.RESERVE done"), "[\"DONE\" 0 1 86399999 0 \"answer\"]");
  EXPECT_EQ(h.Do("IDEM.RESERVE lapsed"), "[\"RESERVED\" " + Fence(4) + " 2 30000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.FAIL lapsed " + Fence(4)), "OK");
  EXPECT_EQ(h.Do("IDEM.EXTEND mine " + Fence(3) + " 50"), "50");
  EXPECT_EQ(h.Do("IDEM.CHECKPOINT mine " + Fence(3) + " data"), "OK");
  EXPECT_EQ(h.Do("IDEM.COMPLETE mine " + Fence(3) + " 'longer than data'"), "NORESULT");
  EXPECT_EQ(h.Do("IDEM.RESERVE mine"), "[\"DONE\" 0 1 86400000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.CONSUME token BY me"), "1");
  EXPECT_EQ(h.Do("IDEM.TRANSITION state 'longer than before' FROM 1 a"), "[\"MOVED\" \"a\"]");
}

TEST(IdemReserve, ADuplicateNeedsNoLock) {
  Harness h;
  h.Do("IDEM.RESERVE k FINGERPRINT f LEASE 50000");
  h.Do("IDEM.RESERVE done");
  h.Do("IDEM.COMPLETE done " + Fence(2) + " r");
  // Another unit keeps every lock meanwhile: a command that wanted one would never return.
  storage::Unit other(h.store);
  other.LockAll();
  EXPECT_EQ(h.Do("IDEM.RESERVE k"), "[\"PENDING\" 0 1 50000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE k FINGERPRINT g"), "[\"MISMATCH\" 0 1 86400000 0 nil]");
  EXPECT_EQ(h.Do("IDEM.RESERVE done"), "[\"DONE\" 0 1 86400000 0 \"r\"]");
  EXPECT_EQ(h.Do("IDEM.STATUS k").substr(0, 18), "[\"state\" \"pending\"");
}

TEST(IdemReserve, CountsOncePerReply) {
  Harness h;
  h.Do("IDEM.RESERVE a:k CLAIM c FINGERPRINT f");
  h.Do("IDEM.RESERVE a:k CLAIM c");
  h.Do("IDEM.RESERVE a:k");
  h.Do("IDEM.RESERVE a:k FINGERPRINT g");
  h.Do("IDEM.COMPLETE a:k 5 r");
  h.Do("IDEM.COMPLETE a:k " + Fence(1) + " r");
  h.Do("IDEM.COMPLETE a:k " + Fence(1) + " r");
  h.Do("IDEM.RESERVE a:k");
  h.Do("IDEM.RESERVE a:l LEASE 1");
  h.Pass(1);
  h.Do("IDEM.RESERVE a:l LEASE 1 ONLAPSE STOP");
  h.Pass(1);
  h.Do("IDEM.RESERVE a:l");
  h.Do("IDEM.FAIL a:l " + Fence(3));
  h.Do("IDEM.FAIL a:l " + Fence(3));
  h.Do("IDEM.COMPLETE a:l " + Fence(3) + " r");
  h.Do("IDEM.RESERVE a:m");
  h.Do("IDEM.RELEASE a:m " + Fence(4));
  h.Do("IDEM.RELEASE a:m " + Fence(4));
  const server::NativeTotals totals = h.native.Sum("a:");
  const std::vector<std::pair<NativeCounter, uint64_t>> expected = {
      {NativeCounter::kReserved, 4},      {NativeCounter::kTakenOver, 1},
      {NativeCounter::kHeld, 1},          {NativeCounter::kPendingHits, 1},
      {NativeCounter::kReplays, 1},       {NativeCounter::kMismatches, 1},
      {NativeCounter::kUnknownHits, 1},   {NativeCounter::kCompleted, 2},
      {NativeCounter::kCompletedLate, 1}, {NativeCounter::kNoResult, 0},
      {NativeCounter::kFailed, 1},        {NativeCounter::kReleased, 1},
      {NativeCounter::kStaleRefused, 1}};
  for (const auto& [counter, n] : expected)
    EXPECT_EQ(totals.of(counter), n) << server::NativeCounterName(counter);
  EXPECT_EQ(totals.duplicates_blocked(), 2u);
}

TEST(IdemMreserve, ClaimsAllOrNone) {
  Harness h;
  EXPECT_EQ(h.Do("IDEM.MRESERVE 2 a b CLAIM c"), "[\"RESERVED\" [\"RESERVED\" " + Fence(1) +
                                                     " 1 30000 0 nil] [\"RESERVED\" " + Fence(2) +
                                                     " 1 30000 0 nil]]");
  EXPECT_EQ(h.Do("IDEM.MRESERVE 2 b a CLAIM c").substr(0, 20), "[\"RESERVED\" [\"HELD\" ");
  h.NewEffects();
  EXPECT_EQ(
      h.Do("IDEM.MRESERVE 3 x a y FINGERPRINT f"),
      "[\"REFUSED\" [\"FREE\" 0 1 0 0 nil] [\"PENDING\" 0 1 30000 0 nil] [\"FREE\" 0 1 0 0 nil]]");
  EXPECT_EQ(h.NewEffects(), std::vector<std::string>());
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kReserved), 2u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kPendingHits), 1u);
  // A refused batch uses no fence up.
  EXPECT_EQ(h.Do("IDEM.RESERVE x"), "[\"RESERVED\" " + Fence(3) + " 1 30000 0 nil]");
}

TEST(IdemMreserve, IsOneUnitOfTheLog) {
  Harness h;
  h.Do("IDEM.MRESERVE 3 a b c");
  EXPECT_EQ(h.log.Units().back().size(), 3u);
}

TEST(IdemMreserve, BadWordsChangeNothing) {
  Harness h;
  for (const char* words : {"0 a", "2 a", "-1 a", "x a", "1001 a", "2 a a", "1 a b", "1 a WAIT 5",
                            "1 a ISSUED", "1 a IFEQ v", "1 a LEASE 0", "1 a FOO"}) {
    EXPECT_EQ(h.Do(std::string("IDEM.MRESERVE ") + words).substr(0, 5), "-ERR ") << words;
  }
  EXPECT_EQ(h.Do("DBSIZE"), "0");
  EXPECT_EQ(h.Do("COMMAND GETKEYS IDEM.MRESERVE 2 a b CLAIM c"), "[\"a\" \"b\"]");
}

}  // namespace
}  // namespace idemd::testing
