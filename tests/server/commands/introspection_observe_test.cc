// MONITOR, SLOWLOG, LATENCY, MEMORY and what they must not show.
#include "introspection_fixture.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using ObserveCommandsTest = IntrospectionTest;

std::vector<absl::string_view> Redacted(std::vector<absl::string_view> words) {
  return RedactedWords(words);
}

TEST(Redaction, HidesPasswordsAndNothingElse) {
  EXPECT_THAT(Redacted({"auth", "p"}), ElementsAre("auth", "(redacted)"));
  EXPECT_THAT(Redacted({"AUTH", "u", "p"}), ElementsAre("AUTH", "(redacted)", "(redacted)"));
  EXPECT_THAT(Redacted({"hello", "3", "auth", "u", "p", "setname", "n"}),
              ElementsAre("hello", "3", "auth", "(redacted)", "(redacted)", "setname", "n"));
  EXPECT_THAT(Redacted({"config", "set", "port", "1", "requirepass", "p"}),
              ElementsAre("config", "set", "port", "1", "requirepass", "(redacted)"));
  EXPECT_THAT(Redacted({"acl", "setuser", "u", "on", ">p"}),
              ElementsAre("acl", "setuser", "(redacted)", "(redacted)", "(redacted)"));
  EXPECT_THAT(Redacted({"set", "auth", "value"}), ElementsAre("set", "auth", "value"));
  EXPECT_THAT(Redacted({"auth"}), ElementsAre("auth"));
}

TEST_F(ObserveCommandsTest, MonitorShowsCommandsOfOthersInRedisForm) {
  auto monitor = Connect("127.0.0.1:7000");
  EXPECT_EQ(Run(*monitor, "MONITOR"), "+OK\r\n");
  Run("ECHO \"a\\x00\\n\\\"b\"");
  EXPECT_THAT(
      monitor->peer->sent,
      MatchesRegex(
          "\\+[0-9]+\\.[0-9]{6} \\[0 127.0.0.1:5000\\] \"ECHO\" \"a\\\\x00\\\\n\\\\\"b\"\r\n"));
  monitor->peer->sent.clear();
  Run("AUTH default secret");
  EXPECT_THAT(monitor->peer->sent, HasSubstr("\"AUTH\" \"(redacted)\" \"(redacted)\""));
  monitor->peer->sent.clear();
  Run("CLIENT LIST");  // an admin command
  EXPECT_EQ(monitor->peer->sent, "");
}

TEST_F(ObserveCommandsTest, SlowlogKeepsWordsAddressAndName) {
  Set("slowlog-log-slower-than", "0");
  Run("CLIENT SETNAME me");
  Run("SLOWLOG RESET");
  Run("ECHO hello");
  Run("AUTH default secret");
  Set("slowlog-log-slower-than", "-1");
  const std::string got = Run("SLOWLOG GET");
  EXPECT_THAT(
      got, HasSubstr("*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n$14\r\n127.0.0.1:5000\r\n$2\r\nme\r\n"));
  EXPECT_THAT(got, Not(HasSubstr("secret")));
  EXPECT_EQ(Run("SLOWLOG LEN"), ":3\r\n");  // RESET itself is there, too
  EXPECT_THAT(Run("SLOWLOG GET 1"), StartsWith("*1\r\n*6\r\n"));
  EXPECT_THAT(Run("SLOWLOG GET -1"), StartsWith("*3\r\n"));
  EXPECT_EQ(Run("SLOWLOG GET -2"), "-ERR count should be greater than or equal to -1\r\n");
  EXPECT_EQ(Run("SLOWLOG RESET"), "+OK\r\n");
  EXPECT_EQ(Run("SLOWLOG LEN"), ":0\r\n");
}

TEST_F(ObserveCommandsTest, LatencyTellsItsSamples) {
  EXPECT_THAT(Run("LATENCY DOCTOR"), HasSubstr("disabled"));
  Set("latency-monitor-threshold", "100");
  latency_.AddAt("command", 300, 1'000'000);
  latency_.AddAt("command", 500, 1'000'001);
  EXPECT_EQ(Run("LATENCY HISTORY command"),
            "*2\r\n*2\r\n:1000000\r\n:300\r\n*2\r\n:1000001\r\n:500\r\n");
  EXPECT_EQ(Run("LATENCY LATEST"), "*1\r\n*4\r\n$7\r\ncommand\r\n:1000001\r\n:500\r\n:500\r\n");
  EXPECT_THAT(Run("LATENCY GRAPH command"),
              HasSubstr("command - high 500 ms, low 300 ms (all time high 500 ms)\n"));
  EXPECT_THAT(Run("LATENCY DOCTOR"), HasSubstr("Worst all time event 500 ms"));
  EXPECT_EQ(Run("LATENCY HISTORY other"), "*0\r\n");
  EXPECT_EQ(Run("LATENCY GRAPH other"), "-ERR No samples available for event 'other'\r\n");
  EXPECT_EQ(Run("LATENCY RESET other command"), ":1\r\n");
  EXPECT_EQ(Run("LATENCY LATEST"), "*0\r\n");
}

TEST_F(ObserveCommandsTest, HistogramCountsCallsPerCommand) {
  ThreadStats& stats = stats_.Register();
  const uint32_t echo = commands_.Find("echo")->ordinal;
  stats.OnCommand(echo, 1, false);
  stats.OnCommand(echo, 1, false);
  stats.OnCommand(echo, 30, false);
  EXPECT_EQ(Run("LATENCY HISTOGRAM echo nosuch"),
            "*2\r\n$4\r\necho\r\n*4\r\n$5\r\ncalls\r\n:3\r\n$14\r\nhistogram_usec\r\n*4\r\n:1\r\n:"
            "2\r\n:33\r\n:3\r\n");
  Run("CLIENT ID");
  EXPECT_THAT(Run("LATENCY HISTOGRAM client"), HasSubstr("client|id"));
  EXPECT_THAT(Run("LATENCY HISTOGRAM"), HasSubstr("histogram_usec"));
}

TEST_F(ObserveCommandsTest, MemoryUsageOfAKeyInsideTheTableIsItsPartOfALine) {
  const std::string uuid = "0190f3a2-7c1e-7b3a-9c55-0242ac120002";
  Run("SET " + uuid + " 1 EX 100");
  EXPECT_EQ(Run("MEMORY USAGE " + uuid), ":26\r\n");
  EXPECT_EQ(Run("OBJECT IDLETIME " + uuid), ":0\r\n");
  Run("SET " + uuid + " 'a value that is too long for that' EX 100");
  EXPECT_EQ(Run("MEMORY USAGE " + uuid), ":76\r\n");
}

TEST_F(ObserveCommandsTest, MemoryUsageGrowsWithTheValue) {
  EXPECT_EQ(Run("MEMORY USAGE nosuch"), "$-1\r\n");
  Run("SET k v");
  Run("SET long " + std::string(1000, 'x'));
  const std::string small = Run("MEMORY USAGE k");
  const std::string large = Run("MEMORY USAGE long SAMPLES 5");
  EXPECT_GT(std::stoi(small.substr(1)), 2);
  EXPECT_GE(std::stoi(large.substr(1)), std::stoi(small.substr(1)) + 950);
  EXPECT_EQ(Run("MEMORY USAGE k SAMPLES -1"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("MEMORY USAGE k FOO 1"), "-ERR syntax error\r\n");
  EXPECT_THAT(Run("MEMORY STATS"), HasSubstr("keys.count\r\n:2\r\n"));
  EXPECT_EQ(Run("MEMORY PURGE"), "+OK\r\n");
}

}  // namespace
}  // namespace idemd::server
