// The command line: redis-benchmark's letters, refusals that say what would be right, and a help
// page with every option.
#include "bench/load/options.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "bench/load/workloads.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace idemd::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<Options> Parsed(const char* line) {
  std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  return ParseOptions(words);
}

std::string Refusal(const char* line) {
  const auto parsed = Parsed(line);
  EXPECT_FALSE(parsed.ok()) << line;
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(BenchOptions, DefaultsAreThoseOfRedisBenchmark) {
  const Options options = *Parsed("");
  EXPECT_EQ(options.target.host, "127.0.0.1");
  EXPECT_EQ(options.target.port, 6379);
  EXPECT_EQ(options.connections, 50u);
  EXPECT_EQ(options.requests, 100'000u);
  EXPECT_EQ(options.pipeline, 1u);
  EXPECT_EQ(options.data_bytes, 3u);
  EXPECT_EQ(options.keys, 1u);
  EXPECT_THAT(options.tests, ElementsAre("ping", "set", "get"));
}

TEST(BenchOptions, ReadsEveryLetter) {
  const Options o = *Parsed(
      "-h ::1 -p 7 -s /s -a secret --user me --dbnum 3 -3 -c 9 --threads 3 --cpu 1,2 -P 16 -n 5 "
      "--seconds 1.5 --rate 100 "
      "-r 7 -d 0 --key-space uuid --prefix a: --ttl 60 --duplicates 25 --sets 10 --first 5 --seed "
      "9 --keep -t get,del "
      "--server-pid 1 -q --csv --json - --svg x");
  EXPECT_EQ(o.target.host, "::1");
  EXPECT_EQ(o.target.port, 7);
  EXPECT_EQ(o.target.socket, "/s");
  EXPECT_EQ(o.target.password, "secret");
  EXPECT_EQ(o.target.user, "me");
  EXPECT_EQ(o.target.db, 3);
  EXPECT_TRUE(o.target.resp3);
  EXPECT_EQ(o.connections, 9u);
  EXPECT_EQ(o.threads, 3u);
  EXPECT_THAT(o.cpus, ElementsAre(1, 2));
  EXPECT_EQ(o.pipeline, 16u);
  EXPECT_EQ(o.requests, 5u);
  EXPECT_EQ(o.seconds, 1.5);
  EXPECT_EQ(o.rate, 100);
  EXPECT_EQ(o.keys, 7u);
  EXPECT_EQ(o.data_bytes, 0u);
  EXPECT_EQ(o.key_space, KeySpace::kUuid);
  EXPECT_EQ(o.prefix, "a:");
  EXPECT_EQ(o.ttl_s, 60u);
  EXPECT_EQ(o.duplicates, 0.25);
  EXPECT_EQ(o.sets, 0.1);
  EXPECT_EQ(o.first, 5u);
  EXPECT_EQ(o.seed, 9u);
  EXPECT_TRUE(o.keep);
  EXPECT_THAT(o.tests, ElementsAre("get", "del"));
  EXPECT_EQ(o.server_pid, 1);
  EXPECT_TRUE(o.quiet);
  EXPECT_TRUE(o.csv);
  EXPECT_EQ(o.json_path, "-");
  EXPECT_EQ(o.svg_path, "x");
}

TEST(BenchOptions, LongOnesTakeAnEqualsSign) {
  EXPECT_EQ(Parsed("--rate=20000")->rate, 20'000);
  EXPECT_EQ(Parsed("--prefix=a=b")->prefix, "a=b");
  EXPECT_THAT(Refusal("--keep=1"), HasSubstr("--keep takes no argument"));
}

TEST(BenchOptions, WhatFollowsIsACommand) {
  const Options options = *Parsed("-n 10 SET __key__ -1 -t");
  EXPECT_EQ(options.requests, 10u);
  EXPECT_THAT(options.command, ElementsAre("SET", "__key__", "-1", "-t"));
  EXPECT_THAT(options.tests, IsEmpty());
  EXPECT_THAT(Refusal("-t get SET a 1"), HasSubstr("either"));
}

TEST(BenchOptions, SecondsAloneMeanNoLimitOnRequests) {
  EXPECT_EQ(Parsed("--seconds 2")->requests, 0u);
  EXPECT_EQ(Parsed("--seconds 2 -n 7")->requests, 7u);
}

TEST(BenchOptions, RefusesWhatItCannotDo) {
  EXPECT_THAT(Refusal("--frobnicate"), HasSubstr("--frobnicate"));
  EXPECT_THAT(Refusal("-n"), HasSubstr("-n needs N"));
  EXPECT_THAT(Refusal("-p 0"), HasSubstr("no PORT"));
  for (const char* line :
       {"-p 65536", "-p x", "-c 0", "-n 0", "-n 1k", "-P 0", "-d -1", "-r 0", "--rate 0",
        "--rate -1", "--rate nan", "--seconds 0", "--seconds inf", "--duplicates 101", "--sets -1",
        "--key-space guid", "--cpu 1,", "--cpu a", "--threads 0"}) {
    EXPECT_THAT(Refusal(line), HasSubstr(std::string(line).substr(0, 2))) << line;
  }
  EXPECT_THAT(Refusal("-t get,nothing"), HasSubstr("no TESTS"));
  EXPECT_THAT(Refusal("-c 2 --threads 3"), HasSubstr("--threads"));
  EXPECT_THAT(Refusal("--user me"), HasSubstr("-a"));
  EXPECT_THAT(Refusal("--rate 100 -t token_cycle"), HasSubstr("token_cycle"));
  EXPECT_TRUE(Parsed("--rate 100 -t mixed").ok());
  EXPECT_THAT(Refusal("--memcached -t get,reserve"), HasSubstr("reserve"));
  EXPECT_THAT(Refusal("--memcached GET a"), HasSubstr("tests only"));
  EXPECT_THAT(Parsed("--memcached")->tests, ElementsAre("set_ex", "get"));
}

TEST(BenchOptions, HelpAndListNeedNothingElse) {
  EXPECT_TRUE(Parsed("--help")->help);
  EXPECT_TRUE(Parsed("--list")->list);
  EXPECT_TRUE(Parsed("--version")->version);
  const std::string help = HelpText();
  for (const char* option :
       {"-h HOST", "-c N", "-P N", "--rate N", "--server-pid PID", "--svg FILE", "--help"}) {
    EXPECT_THAT(help, HasSubstr(option));
  }
}

TEST(Workloads, HaveNamesOfTheirOwn) {
  for (const Workload& workload : Workloads()) {
    EXPECT_EQ(FindWorkload(workload.name), &workload);
    EXPECT_FALSE(workload.summary.empty());
    ASSERT_FALSE(workload.steps.empty());
  }
  EXPECT_EQ(FindWorkload("none"), nullptr);
}

}  // namespace
}  // namespace idemd::bench
