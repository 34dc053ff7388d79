// IDEM.TOKEN, CONSUME, STATUS, TRANSITION, THROTTLE, STATS and CLOCK through dispatch.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/harness.h"

namespace idemd::testing {
namespace {

using server::NativeCounter;

std::string Fence(int64_t nth) { return std::to_string(Harness::kFirstFence + nth - 1); }

std::string NewToken(Harness& h, const std::string& words) {
  const std::string reply = h.Do("IDEM.TOKEN " + words);
  EXPECT_EQ(reply.size(), 34u) << reply;
  return reply.substr(1, 32);
}

TEST(IdemToken, IsAStringWithALifetime) {
  Harness h;
  const std::string key = "login:" + NewToken(h, "login:");
  EXPECT_EQ(h.Do("GET " + key), "\"1\"");
  EXPECT_EQ(h.Do("PTTL " + key), "300000");
  const std::string bound = "login:" + NewToken(h, "login: VALUE user EXAT 1700000060");
  EXPECT_EQ(h.Do("GET " + bound), "\"user\"");
  EXPECT_EQ(h.Do("PTTL " + bound), "60000");
  EXPECT_EQ(h.native.Sum("login:").of(NativeCounter::kTokensIssued), 2u);
}

TEST(IdemToken, CountGivesAnArrayOfDifferentOnes) {
  Harness h;
  EXPECT_EQ(h.Do("IDEM.TOKEN p: COUNT 1").front(), '[');
  const std::string reply = h.Do("IDEM.TOKEN p: COUNT 1000");
  std::set<std::string> seen;
  for (size_t at = 1; at < reply.size(); at += 35) seen.insert(reply.substr(at, 34));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_EQ(h.Do("DBSIZE"), "1001");
}

TEST(IdemToken, BadOptionsMakeNothing) {
  Harness h;
  for (const char* options :
       {"COUNT 0", "COUNT 1001", "COUNT x", "VALUE idem/1", "VALUE", "FOREVER", "EX 0", "PX -5",
        "EX 5 PX 5", "PXAT 1700000000000", "PXAT 281474976710656", "EX 281474976710", "CLAIM x",
        "VALUE a VALUE b"}) {
    EXPECT_EQ(h.Do(std::string("IDEM.TOKEN p: ") + options).substr(0, 5), "-ERR ") << options;
  }
  EXPECT_EQ(h.Do("DBSIZE"), "0");
  EXPECT_EQ(h.Do("IDEM.TOKEN p: PXAT 281474976710655").size(), 34u);
}

TEST(IdemToken, AnAnswerLeavesInATransactionToo) {
  Harness h;
  h.Do("MULTI");
  h.Do("IDEM.TOKEN p: COUNT 3");
  EXPECT_EQ(h.Do("EXEC").size(), 2u + 3 * 35 + 1);
}

TEST(IdemConsume, OneCallerGetsIt) {
  Harness h;
  const std::string key = "p:" + NewToken(h, "p: VALUE u");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " IFEQ x"), "0");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " IFEQ x REASON"), "REFUSED");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " IFEQ u"), "1");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key), "0");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " REASON"), "DUPLICATE");
  h.Pass(300'000);
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " REASON"), "EXPIRED");
  EXPECT_EQ(h.Do("IDEM.CONSUME p:forged REASON"), "UNISSUED");
  h.Do("SELECT 3");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " REASON"), "UNISSUED");
}

TEST(IdemConsume, BySurvivesALostReply) {
  Harness h;
  const std::string key = "p:" + NewToken(h, "p: VALUE u PX 1000");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " BY me"), "1");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " BY me"), "1");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " BY you"), "0");
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " BY me IFEQ other REASON"), "REFUSED");
  EXPECT_EQ(h.Do("IDEM.RESERVE " + key), "[\"DUPLICATE\" 0 0 0 0 nil]");
  EXPECT_EQ(h.Do("IDEM.COMPLETE " + key + " 5 r").substr(0, 9), "-CONFLICT");
  EXPECT_EQ(h.Do("PTTL " + key), "60000");
  h.Pass(59'999);
  EXPECT_EQ(h.Do("IDEM.CONSUME " + key + " BY me"), "1");
  const server::NativeTotals totals = h.native.Sum("p:");
  EXPECT_EQ(totals.of(NativeCounter::kTokensConsumed), 1u);
  EXPECT_EQ(totals.of(NativeCounter::kTokensRepeated), 2u);
  EXPECT_EQ(totals.of(NativeCounter::kTokensDuplicate), 2u);
  EXPECT_EQ(totals.of(NativeCounter::kTokensRefused), 1u);
}

TEST(IdemStatus, EveryState) {
  Harness h;
  h.Do("HELLO 3");
  EXPECT_EQ(h.Do("IDEM.STATUS k"), "nil");
  h.Do("SET k v PX 500");
  EXPECT_EQ(h.Do("IDEM.STATUS k"), "{\"state\": \"issued\", \"ttl-ms\": 500}");
  h.Do("IDEM.RESERVE k ISSUED CLAIM c FINGERPRINT f LEASE 100 PX 5000 ONLAPSE STOP");
  h.Pass(40);
  EXPECT_EQ(h.Do("IDEM.STATUS k"),
            "{\"state\": \"pending\", \"ttl-ms\": 4960, \"fence\": " + Fence(1) +
                ", \"attempt\": 1, \"claim\": \"c\", \"lease-left-ms\": 60, \"age-ms\": 40, "
                "\"onlapse\": \"stop\", \"fingerprint\": \"f\", \"token-left-ms\": 460}");
  h.Pass(60);
  EXPECT_EQ(h.Do("IDEM.STATUS k").substr(0, 21), "{\"state\": \"unknown\", ");
  h.Do("IDEM.CHECKPOINT k " + Fence(1) + " half");
  h.Do("IDEM.FAIL k " + Fence(1) + " AFTER 200");
  EXPECT_EQ(h.Do("IDEM.STATUS k"),
            "{\"state\": \"failed\", \"ttl-ms\": 4900, \"fence\": " + Fence(1) +
                ", \"attempt\": 1, \"claim\": \"c\", \"retry-after-ms\": 200, \"age-ms\": 100, "
                "\"onlapse\": \"stop\", \"fingerprint\": \"f\", \"token-left-ms\": 400, "
                "\"checkpoint\": \"half\"}");
  h.Pass(500);
  h.Do("IDEM.COMPLETE k " + Fence(1) + " answer CODE 7 FOREVER");
  h.Do("IDEM.RESERVE k");
  EXPECT_EQ(
      h.Do("IDEM.STATUS k"),
      "{\"state\": \"done\", \"ttl-ms\": -1, \"fence\": " + Fence(1) +
          ", \"attempt\": 1, \"claim\": \"c\", \"age-ms\": 600, \"onlapse\": \"stop\", "
          "\"fingerprint\": \"f\", \"token-left-ms\": 0, \"code\": 7, \"result\": \"answer\", "
          "\"replays\": 1}");
  h.Do("SET t v");
  h.Do("IDEM.CONSUME t BY me");
  EXPECT_EQ(h.Do("IDEM.STATUS t"),
            "{\"state\": \"consumed\", \"ttl-ms\": 86400000, \"claim\": \"me\", \"age-ms\": 0, "
            "\"token-left-ms\": -1}");
}

TEST(IdemStatus, ReleasedIsLapsedWithoutAClaim) {
  Harness h;
  h.Do("HELLO 3");
  h.Do("IDEM.RESERVE k CLAIM c");
  h.Do("IDEM.CHECKPOINT k " + Fence(1) + " half");
  h.Do("IDEM.RELEASE k " + Fence(1));
  EXPECT_EQ(h.Do("IDEM.STATUS k"),
            "{\"state\": \"lapsed\", \"ttl-ms\": 86400000, \"fence\": " + Fence(1) +
                ", \"attempt\": 1, \"lease-left-ms\": 0, \"age-ms\": 0, "
                "\"onlapse\": \"take\", \"checkpoint\": \"half\"}");
}

TEST(IdemTransition, MovesOnListedEdgesOnly) {
  Harness h;
  EXPECT_EQ(h.Do("IDEM.TRANSITION o new FROM 0"),
            "-ERR the number after FROM must be that of the states "
            "that follow; 0 is allowed with INIT");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o paid FROM 1 new"), "[\"REFUSED\" nil]");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o new FROM 0 INIT EX 100"), "[\"MOVED\" nil]");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o paid EX 50 FROM 2 new open"), "[\"MOVED\" \"new\"]");
  EXPECT_EQ(h.Do("TTL o"), "50");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o paid FROM 2 new open FOREVER"), "[\"ALREADY\" \"paid\"]");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o sent INIT FROM 1 new"), "[\"REFUSED\" \"paid\"]");
  EXPECT_EQ(h.Do("IDEM.TRANSITION o sent FROM 1 paid"), "[\"MOVED\" \"paid\"]");
  EXPECT_EQ(h.Do("TTL o"), "50");
  for (const char* words :
       {"idem/1 FROM 1 sent", "x FROM 1 idem/1", "x FROM 2 sent", "x FROM -1 sent", "x FROM y sent",
        "x INIT INIT FROM 0", "x FROM 1 sent sent", "x INIT EX 5"}) {
    EXPECT_EQ(h.Do(std::string("IDEM.TRANSITION o ") + words).substr(0, 4), "-ERR") << words;
  }
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kTransitionsMoved), 3u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kTransitionsAlready), 1u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kTransitionsRefused), 2u);
}

TEST(IdemThrottle, CountsDownAndRecovers) {
  Harness h;
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000"), "[0 2 1 -1 1000]");
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000 PEEK"), "[0 2 1 -1 1000]");
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000"), "[0 2 0 -1 2000]");
  EXPECT_EQ(h.Do("PTTL t"), "2000");
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000"), "[1 2 0 1000 2000]");
  h.clock.AdvanceNs(1);
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000"), "[1 2 0 1000 2000]");  // rounded up
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000 COST 3"), "[1 2 0 -1 2000]");
  EXPECT_EQ(h.Do("IDEM.THROTTLE t 1 1 1000 COST 0"), "[0 2 0 -1 2000]");
  h.Pass(2'000);
  EXPECT_EQ(h.Do("EXISTS t"), "0");
  for (const char* words :
       {"-1 1 1", "1 0 1", "1 1 0", "1 1 9223372036854775807", "x 1 1", "9223372036854775807 1 1",
        "1 1 1 COST -1", "1 1 1 COST", "1 1 1 FOO", "1 1 1 PEEK PEEK"}) {
    EXPECT_EQ(h.Do(std::string("IDEM.THROTTLE t ") + words).substr(0, 4), "-ERR") << words;
  }
  h.Do("SET s text");
  EXPECT_EQ(h.Do("IDEM.THROTTLE s 1 1 1").substr(0, 4), "-ERR");
  h.Do("IDEM.RESERVE r");
  EXPECT_EQ(h.Do("IDEM.THROTTLE r 1 1 1").substr(0, 10), "-WRONGTYPE");
}

TEST(IdemThrottle, SpeaksRedisCell) {
  Harness h;
  EXPECT_EQ(h.Do("CL.THROTTLE u 15 30 60"), "[0 16 15 -1 2]");
  EXPECT_EQ(h.Do("CL.THROTTLE u 15 30 60 15"), "[0 16 0 -1 32]");
  h.clock.AdvanceMs(500);
  EXPECT_EQ(h.Do("CL.THROTTLE u 15 30 60"), "[1 16 0 2 32]");
  EXPECT_EQ(h.Do("CL.THROTTLE u 15 30 60 17"), "[1 16 0 -1 32]");
  EXPECT_EQ(h.Do("CL.THROTTLE u 15 30 60 1 1"),
            "-ERR wrong number of arguments for 'cl.throttle' command");
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kThrottleAllowed), 2u);
  EXPECT_EQ(h.native.Totals().of(NativeCounter::kThrottleLimited), 2u);
}

TEST(IdemStats, TotalsNamespacesAndPrefixes) {
  Harness h;
  h.Do("HELLO 3");
  h.Do("IDEM.RESERVE a:x:1");
  h.Do("IDEM.RESERVE a:y:1");
  h.Do("IDEM.RESERVE b:1");
  const std::string all = h.Do("IDEM.STATS");
  EXPECT_NE(all.find("\"reserved\": 3, "), std::string::npos) << all;
  EXPECT_NE(all.find("\"namespaces\": {\"a:x:\": {\"tokens-issued\": 0, "), std::string::npos)
      << all;
  const std::string some = h.Do("IDEM.STATS a:");
  EXPECT_NE(some.find("\"reserved\": 2, "), std::string::npos) << some;
  EXPECT_NE(some.find("\"duplicates-blocked\": 0}"), std::string::npos) << some;
  EXPECT_EQ(some.find("namespaces"), std::string::npos);
}

TEST(IdemClock, ShowsTheClockThatDecides) {
  Harness h;
  h.Do("HELLO 3");
  EXPECT_EQ(h.Do("IDEM.CLOCK"),
            "{\"effective-ms\": 1700000000000, \"wall-ms\": 1700000000000, "
            "\"difference-ms\": 0, \"suspect\": 0}");
  EXPECT_EQ(h.Do("IDEM.CLOCK ACCEPT"), h.Do("IDEM.CLOCK"));
  EXPECT_EQ(h.Do("IDEM.CLOCK FOO").substr(0, 5), "-ERR ");
}

TEST(IdemCommands, AreDocumented) {
  Harness h;
  for (const server::CommandEntry* entry : h.commands.commands()) {
    if (entry->spec->group != server::Group::kIdem) continue;
    EXPECT_STRNE(entry->spec->summary, "") << entry->full_name;
    EXPECT_STREQ(entry->spec->since, "0.1.0") << entry->full_name;
    const bool bare = entry->full_name == "idem.clock";
    EXPECT_EQ(entry->spec->args.empty(), bare) << entry->full_name;
  }
  EXPECT_EQ(h.Do("COMMAND GETKEYS IDEM.RESERVE k CLAIM c"), "[\"k\"]");
  EXPECT_EQ(h.Do("COMMAND GETKEYS IDEM.TOKEN p: COUNT 5"), "[\"p:\"]");
}

}  // namespace
}  // namespace idemd::testing
