// Values in parts and values as numbers: STRLEN, APPEND, ranges, INCR and kin, LCS.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

using ::testing::ElementsAre;

constexpr char kNotInteger[] = "-ERR value is not an integer or out of range";
constexpr char kNotFloat[] = "-ERR value is not a valid float";
constexpr char kTooLong[] = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)";

TEST(StringEdit, LengthsAndAppends) {
  PlayFresh({{"STRLEN k", "0"},
             {"APPEND k ab", "2"},
             {"APPEND k \"\"", "2"},
             {"APPEND k cde", "5"},
             {"GET k", "\"abcde\""},
             {"STRLEN k", "5"},
             {"SET k 12 EX 100", "OK"},
             {"APPEND k 3", "3"},
             {"TTL k", "100"},
             {"INCR k", "124"},
             {"APPEND empty \"\"", "0"},
             {"EXISTS empty", "1"}});
}

TEST(StringEdit, RangesAreReadFromBothEnds) {
  PlayFresh({{"GETRANGE k 0 -1", "\"\""},
             {"SET k \"Hello World\"", "OK"},
             {"GETRANGE k 0 3", "\"Hell\""},
             {"GETRANGE k 0 -1", "\"Hello World\""},
             {"GETRANGE k -4 -1", "\"orld\""},
             {"GETRANGE k 5 3", "\"\""},
             {"GETRANGE k 5 5000", "\" World\""},
             {"GETRANGE k -5000 10000", "\"Hello World\""},
             {"GETRANGE k -1 -5", "\"\""},
             {"GETRANGE k -100 -50", "\"H\""},
             {"GETRANGE k 11 20", "\"\""},
             {"GETRANGE k -9223372036854775808 9223372036854775807", "\"Hello World\""},
             {"SUBSTR k 0 4", "\"Hello\""},
             {"GETRANGE k a 1", kNotInteger},
             {"GETRANGE k 1 a", kNotInteger}});
}

TEST(StringEdit, SetRangePadsWithZeros) {
  Harness server;
  Play(server, {{"SETRANGE k 0 \"\"", "0"},
                {"EXISTS k", "0"},
                {"SETRANGE k 2 ab", "4"},
                {"SETRANGE k 0 X", "4"},
                {"SETRANGE k 3 yz", "5"},
                {"SETRANGE k 9 \"\"", "5"},
                {"SETRANGE k -1 a", "-ERR offset is out of range"},
                {"SETRANGE k a b", kNotInteger},
                {"SETRANGE k 536870912 a", kTooLong},
                {"SETRANGE k 9223372036854775807 a", kTooLong},
                {"SETRANGE absent 536870912 a", kTooLong}});
  EXPECT_EQ(server.Do("GET k"), std::string("\"X\0ayz\"", 7));
  EXPECT_EQ(server.Do("EXISTS absent"), "0");
}

TEST(StringEdit, AppendStopsAtTheSettingsLimit) {
  Harness server;
  ASSERT_EQ(server.Do("CONFIG SET proto-max-bulk-len 1048576"), "OK");
  server.DoWords({"SET", "k", std::string(1048575, 'a')});
  EXPECT_EQ(server.Do("APPEND k ab"), kTooLong);
  EXPECT_EQ(server.Do("APPEND k b"), "1048576");
  EXPECT_EQ(server.Do("SETBIT k 8388608 1"), "-ERR bit offset is not an integer or out of range");
}

TEST(StringEdit, CountersKeepTheirLifetime) {
  PlayFresh({{"INCR k", "1"},
             {"INCRBY k 41", "42"},
             {"DECR k", "41"},
             {"DECRBY k 42", "-1"},
             {"DECRBY k -5", "4"},
             {"EXPIRE k 100", "1"},
             {"INCR k", "5"},
             {"TTL k", "100"},
             {"GET k", "\"5\""},
             {"SET k \" 5\"", "OK"},
             {"INCR k", kNotInteger},
             {"SET k 05", "OK"},
             {"INCR k", kNotInteger},
             {"SET k \"\"", "OK"},
             {"INCR k", kNotInteger},
             {"INCRBY k a", kNotInteger},
             {"DECRBY k 1.0", kNotInteger}});
}

TEST(StringEdit, CountersStopAtTheirEdges) {
  PlayFresh({{"SET k 9223372036854775807", "OK"},
             {"INCR k", "-ERR increment or decrement would overflow"},
             {"INCRBY k 1", "-ERR increment or decrement would overflow"},
             {"DECRBY k -1", "-ERR increment or decrement would overflow"},
             {"DECR k", "9223372036854775806"},
             {"SET k -9223372036854775808", "OK"},
             {"DECR k", "-ERR increment or decrement would overflow"},
             {"INCR k", "-9223372036854775807"},
             {"DECRBY k -9223372036854775808", "-ERR decrement would overflow"},
             {"INCRBY n -9223372036854775808", "-9223372036854775808"}});
}

TEST(StringEdit, FloatsAreShownWithoutExponent) {
  PlayFresh({{"INCRBYFLOAT k 10.50", "\"10.5\""},
             {"INCRBYFLOAT k 0.1", "\"10.6\""},
             {"INCRBYFLOAT k -5", "\"5.6\""},
             {"SET k 5.0e3", "OK"},
             {"INCRBYFLOAT k 2.0e2", "\"5200\""},
             {"EXPIRE k 100", "1"},
             {"INCRBYFLOAT k 1", "\"5201\""},
             {"TTL k", "100"},
             {"INCRBYFLOAT k inf", "-ERR increment would produce NaN or Infinity"},
             {"INCRBYFLOAT k nan", kNotFloat},
             {"INCRBYFLOAT k \" 1\"", kNotFloat},
             {"SET k \"1 \"", "OK"},
             {"INCRBYFLOAT k 1", kNotFloat},
             {"GET k", "\"1 \""}});
}

TEST(StringEdit, EditsReachTheLogWhole) {
  Harness server;
  server.Do("SET k ab EX 10");
  server.NewEffects();
  server.Do("APPEND k c");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 k abc PXAT 1700000010000"));
  server.Do("SETRANGE k 1 X");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 k aXc PXAT 1700000010000"));
  server.Do("INCR n");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 n 1"));
}

TEST(StringEdit, LongestCommonSubsequence) {
  PlayFresh(
      {{"LCS a b", "\"\""},
       {"LCS a b LEN", "0"},
       {"MSET a ohmytext b mynewtext", "OK"},
       {"LCS a b", "\"mytext\""},
       {"LCS a b len", "6"},
       {"LCS a b IDX", "[\"matches\" [[[4 7] [5 8]] [[2 3] [0 1]]] \"len\" 6]"},
       {"LCS a b IDX MINMATCHLEN 4", "[\"matches\" [[[4 7] [5 8]]] \"len\" 6]"},
       {"LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN", "[\"matches\" [[[4 7] [5 8] 4]] \"len\" 6]"},
       {"LCS a b IDX MINMATCHLEN -3 WITHMATCHLEN",
        "[\"matches\" [[[4 7] [5 8] 4] [[2 3] [0 1] 2]] \"len\" 6]"},
       {"LCS a b IDX LEN", "-ERR If you want both the length and indexes, please just use IDX."},
       {"LCS a b MINMATCHLEN a", kNotInteger},
       {"LCS a b MINMATCHLEN", "-ERR syntax error"},
       {"LCS a b FOO", "-ERR syntax error"}});
}

TEST(StringEdit, LcsMatchesAreAMapInResp3) {
  Harness server;
  server.Do("MSET a ab b cab");
  server.me->session.resp = 3;
  EXPECT_EQ(server.Do("LCS a b IDX"), "{\"matches\": [[[0 1] [1 2]]], \"len\": 2}");
  EXPECT_EQ(server.Do("GET absent"), "nil");
}

TEST(StringEdit, LcsRefusesATableAboveTheLimit) {
  Harness server;
  server.DoWords({"MSET", "a", std::string(20000, 'a'), "b", std::string(20000, 'b')});
  EXPECT_EQ(server.Do("LCS a b LEN"),
            "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len");
}

}  // namespace
}  // namespace idemd::testing
