// Alike commands of a pipeline are timed together: nobody is counted twice, or not at all.
#include "introspection_fixture.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;

class CommandTimerTest : public IntrospectionTest {
 protected:
  std::string RunAll(const std::vector<std::string>& lines) { return Run(absl::StrJoin(lines, "\r\n")); }
  // "calls=3", of what INFO says of a command.
  void ExpectCalls(absl::string_view command, int calls, int failed) {
    const std::string info = Run("INFO commandstats");
    const size_t at = info.find(absl::StrCat("cmdstat_", command, ":"));
    ASSERT_NE(at, std::string::npos) << info;
    const std::string line = info.substr(at, info.find('\r', at) - at);
    EXPECT_THAT(line, HasSubstr(absl::StrCat("calls=", calls, ","))) << command;
    EXPECT_THAT(line, HasSubstr(absl::StrCat("failed_calls=", failed))) << command;
  }
};

TEST_F(CommandTimerTest, EveryCommandOfAPipelineIsCountedOnce) {
  Run("RPUSH list a");
  std::vector<std::string> lines(10, "GET s");  // more than are timed together
  lines.insert(lines.end(), {"GET list", "GET s", "SET s 1", "SET s 2", "GET s"});
  EXPECT_THAT(RunAll(lines), HasSubstr("-WRONGTYPE"));
  ExpectCalls("get", 13, 1);
  ExpectCalls("set", 2, 0);
}

TEST_F(CommandTimerTest, ACommandThatIsRefusedEndsTheRow) {
  RunAll({"GET s", "GET s", "GET", "GET s", "GET s", "NOSUCH", "GET s"});
  ExpectCalls("get", 5, 0);
  EXPECT_THAT(Run("INFO commandstats"), HasSubstr("rejected_calls=1"));
}

TEST_F(CommandTimerTest, ARowThatTheOutputLimitCutsShortIsCounted) {
  protocol::Parser parser;
  protocol::Batch batch;
  const std::string text = "GET s\r\nGET s\r\nGET s\r\nGET s\r\n";
  parser.Parse(text, protocol::ParserLimits{}, 16, batch);
  std::string out;
  EXPECT_EQ(dispatcher_.Run(me_->session, batch, 0, 6, out), 2u);  // two nulls
  ExpectCalls("get", 2, 0);
  EXPECT_EQ(dispatcher_.Run(me_->session, batch, 2, SIZE_MAX, out), 2u);
  ExpectCalls("get", 4, 0);
}

TEST_F(CommandTimerTest, TheSlowLogOfEverythingHasEveryCommand) {
  Set("slowlog-log-slower-than", "0");
  Run("SLOWLOG RESET");
  RunAll(std::vector<std::string>(10, "GET s"));
  Set("slowlog-log-slower-than", "-1");
  EXPECT_EQ(Run("SLOWLOG LEN"), ":11\r\n");  // RESET itself is there, too
}

TEST_F(CommandTimerTest, HistogramsHaveEveryCommand) {
  RunAll(std::vector<std::string>(11, "GET s"));
  const std::string got = Run("LATENCY HISTOGRAM get");
  EXPECT_THAT(got, HasSubstr("$5\r\ncalls\r\n:11\r\n"));
}

TEST_F(CommandTimerTest, TransactionsCountTheirCommands) {
  RunAll({"MULTI", "GET s", "GET s", "SET s 1", "GET s", "EXEC"});
  ExpectCalls("get", 3, 0);
  ExpectCalls("set", 1, 0);
}

// Who takes part in the reading of the time that another one made sees what has lapsed by then, and later ones see later.
TEST_F(CommandTimerTest, ARowDoesNotOutliveItsBatch) {
  Run("SET s 1 PX 100");
  EXPECT_EQ(RunAll({"GET s", "GET s"}), "$1\r\n1\r\n$1\r\n1\r\n");
  clock_.AdvanceMs(100);
  EXPECT_EQ(RunAll({"GET s", "GET s"}), "$-1\r\n$-1\r\n");
}

}  // namespace
}  // namespace idemd::server
