// SORT of sets: orders, patterns, limits; lists and sorted sets are in the differential test.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

constexpr char kScores[] = "-ERR One or more scores can't be converted into double";
constexpr char kSyntax[] = "-ERR syntax error";

TEST(SortCommands, NumbersAndTexts) {
  PlayFresh({{"SORT none", "[]"},
             {"SADD s 10 9 -1 2.5", "4"},
             {"SORT s", "[\"-1\" \"2.5\" \"9\" \"10\"]"},
             {"SORT s DESC", "[\"10\" \"9\" \"2.5\" \"-1\"]"},
             {"SORT s ALPHA", "[\"-1\" \"10\" \"2.5\" \"9\"]"},
             {"SORT s ALPHA DESC", "[\"9\" \"2.5\" \"10\" \"-1\"]"},
             {"SORT_RO s DESC ASC", "[\"-1\" \"2.5\" \"9\" \"10\"]"},
             {"SADD s x", "1"},
             {"SORT s", kScores},
             {"SORT s ALPHA LIMIT 3 9", "[\"9\" \"x\"]"}});
}

TEST(SortCommands, Limits) {
  PlayFresh({{"SADD s 1 2 3 4 5", "5"},
             {"SORT s LIMIT 1 2", "[\"2\" \"3\"]"},
             {"SORT s LIMIT -5 2", "[\"1\" \"2\"]"},
             {"SORT s LIMIT 3 -1", "[\"4\" \"5\"]"},
             {"SORT s LIMIT 3 0", "[]"},
             {"SORT s LIMIT 9 9", "[]"},
             {"SORT s LIMIT 4 9223372036854775807", "[\"5\"]"},
             {"SORT s LIMIT x 1", "-ERR value is not an integer or out of range"}});
}

TEST(SortCommands, ByWhatOtherKeysHold) {
  PlayFresh({{"SADD s 1 2 3", "3"},
             {"MSET w1 30 w2 20 w3 10 n1 one n3 three", "OK"},
             {"HSET h1 f b g x", "2"},
             {"HSET h2 f a", "1"},
             {"SORT s BY w*", "[\"3\" \"2\" \"1\"]"},
             {"SORT s BY w* DESC GET n* GET #", "[\"one\" \"1\" nil \"2\" \"three\" \"3\"]"},
             {"SORT s BY h*->f ALPHA", "[\"3\" \"2\" \"1\"]"},
             {"SORT s GET h*->g", "[\"x\" nil nil]"},
             {"SORT s GET h*", "[nil nil nil]"},
             {"SORT s GET nostar", "[nil nil nil]"},
             {"SORT s BY none*", "[\"1\" \"2\" \"3\"]"},
             {"SORT s BY n*", kScores},
             {"SORT_RO s BY w* GET n*", "[\"three\" nil \"one\"]"}});
}

TEST(SortCommands, WordsThatAreWrong) {
  Harness server;
  server.Do("SADD s 1");
  server.Do("HSET h f v");
  server.Do("SET text t");
  for (const char* line : {"SORT s NOSUCH", "SORT s LIMIT 1", "SORT s BY", "SORT s GET", "SORT s STORE", "SORT_RO s STORE d"})
    EXPECT_EQ(server.Do(line), kSyntax) << line;
  for (const char* line : {"SORT h", "SORT text", "SORT_RO h"})
    EXPECT_EQ(server.Do(line), "-WRONGTYPE Operation against a key holding the wrong kind of value") << line;
}

TEST(SortCommands, AnEmptyResultRemovesTheDestination) {
  PlayFresh({{"SET d old", "OK"}, {"SORT none STORE d", "0"}, {"EXISTS d", "0"}});
}

TEST(SortCommands, KeysAreTheSourceAndTheDestination) {
  PlayFresh({{"COMMAND GETKEYS SORT a BY w* GET store STORE b ALPHA", "[\"a\" \"b\"]"},
             {"COMMAND GETKEYS SORT a STORE b STORE c", "[\"a\" \"c\"]"},
             {"COMMAND GETKEYS SORT_RO a BY w*", "[\"a\"]"},
             {"COMMAND GETKEYS SINTERCARD 2 a b LIMIT 1", "[\"a\" \"b\"]"}});
}

TEST(SortCommands, InATransactionOtherKeysAreFollowedToo) {
  PlayFresh({{"SADD s 1 2", "2"},
             {"MSET w1 2 w2 1", "OK"},
             {"MULTI", "OK"},
             {"SORT s BY w* GET w*", "QUEUED"},
             {"EXEC", "[[\"1\" \"2\"]]"}});
}

}  // namespace
}  // namespace idemd::testing
