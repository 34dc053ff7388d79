// COMMAND, INFO, ACL, HELP and the commands about the process.
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "introspection_fixture.h"
#include "server/commands/acl_categories.h"
#include "server/commands/help.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

using CommandCommandTest = IntrospectionTest;
using InfoCommandTest = IntrospectionTest;
using ServerCommandsTest = IntrospectionTest;

// The value of a field in INFO's text, "" when it is not there.
std::string Field(const std::string& info, absl::string_view name) {
  for (absl::string_view line : absl::StrSplit(info, "\r\n")) {
    if (line.substr(0, name.size()) == name && line.substr(name.size(), 1) == ":") {
      return std::string(line.substr(name.size() + 1));
    }
  }
  return "";
}

TEST_F(CommandCommandTest, CountIsTheLengthOfTheList) {
  const std::string count = Run("COMMAND COUNT");
  EXPECT_THAT(Run("COMMAND LIST"),
              StartsWith("*" + std::to_string(commands_.all().size())));  // with subcommands
  EXPECT_THAT(Run("COMMAND"), StartsWith("*" + count.substr(1)));
  EXPECT_THAT(Run("COMMAND INFO"), StartsWith("*" + count.substr(1)));
}

TEST_F(CommandCommandTest, InfoShowsWhatRedisShowsOfGet) {
  EXPECT_EQ(Run("COMMAND INFO GET nosuch"),
            "*2\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*3\r\n+@"
            "read\r\n+@string\r\n"
            "+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n$12\r\nbegin_"
            "search\r\n*4\r\n$4\r\ntype"
            "\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n$9\r\nfind_keys\r\n*4\r\n$"
            "4\r\ntype\r\n$5\r\n"
            "range\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n$"
            "5\r\nlimit\r\n:0\r\n*0\r\n"
            "$-1\r\n");
}

TEST_F(CommandCommandTest, SubcommandsAreNamedWithTheirContainer) {
  EXPECT_THAT(Run("COMMAND INFO 'client|list'"), HasSubstr("$11\r\nclient|list\r\n:-2\r\n"));
  EXPECT_THAT(Run("COMMAND DOCS client"), HasSubstr("$11\r\nclient|list\r\n"));
  EXPECT_THAT(Run("COMMAND LIST FILTERBY PATTERN 'client|*'"), HasSubstr("client|list"));
  EXPECT_THAT(Run("COMMAND LIST"), HasSubstr("client|list"));
}

TEST_F(CommandCommandTest, ListFiltersByCategoryAndModule) {
  const std::string dangerous = Run("COMMAND LIST FILTERBY ACLCAT dangerous");
  EXPECT_THAT(dangerous, HasSubstr("flushall"));
  EXPECT_THAT(dangerous, Not(HasSubstr("\r\nping\r\n")));
  EXPECT_EQ(Run("COMMAND LIST FILTERBY MODULE x"), "*0\r\n");
  EXPECT_EQ(Run("COMMAND LIST FILTERBY ACLCAT nosuch"), "*0\r\n");
  EXPECT_EQ(Run("COMMAND LIST FILTERBY FOO x"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("COMMAND LIST FOO"), "-ERR syntax error\r\n");
}

TEST_F(CommandCommandTest, GetKeysFindsThem) {
  EXPECT_EQ(Run("COMMAND GETKEYS mset a 1 b 2"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS memory usage k"), "*1\r\n$1\r\nk\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYSANDFLAGS set k v"),
            "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+OW\r\n+update\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYSANDFLAGS set k v Get"),
            "*1\r\n*2\r\n$1\r\nk\r\n*3\r\n+RW\r\n+access\r\n+update\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYSANDFLAGS bitfield k get u8 0"),
            "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+RO\r\n+access\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYSANDFLAGS get k"),
            "*1\r\n*2\r\n$1\r\nk\r\n*2\r\n+RO\r\n+access\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS nosuch a"), "-ERR Invalid command specified\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS ping a"), "-ERR The command has no key arguments\r\n");
  EXPECT_EQ(Run("COMMAND GETKEYS set a"),
            "-ERR Invalid number of arguments specified for command\r\n");
}

TEST_F(CommandCommandTest, EveryCommandHasDocsThatAreWholeSentences) {
  for (const CommandEntry* entry : commands_.all()) {
    const absl::string_view summary = entry->spec->summary;
    ASSERT_FALSE(summary.empty()) << entry->full_name;
    EXPECT_EQ(summary.back(), '.') << entry->full_name;
    EXPECT_NE(CategoriesOf(*entry->spec), 0u) << entry->full_name;
    const std::string docs = Run("COMMAND DOCS '" + entry->full_name + "'");
    EXPECT_THAT(docs, StartsWith("*2\r\n" + Bulk(entry->full_name))) << entry->full_name;
  }
}

TEST_F(CommandCommandTest, EveryContainerHasHelpForEachOfItsSubcommands) {
  int containers = 0;
  for (const CommandEntry* entry : commands_.commands()) {
    if (entry->subcommands.empty()) continue;
    if (entry->full_name == "cluster") {  // a Redis that stands alone answers the same to every subcommand
      EXPECT_EQ(Run("CLUSTER HELP"), "-ERR This instance has cluster support disabled\r\n");
      continue;
    }
    ++containers;
    const std::string help = Run(entry->full_name + " HELP");
    ASSERT_THAT(help, StartsWith("*")) << entry->full_name;
    for (const CommandEntry* sub : entry->subcommands)
      EXPECT_THAT(help, HasSubstr(sub->spec->name));
  }
  EXPECT_GE(containers, 8);
}

TEST(ArgumentSyntax, WritesTokensChoicesAndRepetition) {
  static constexpr ArgSpec kChoice[] = {{.name = "nx", .type = ArgType::kToken, .token = "NX"},
                                        {.name = "xx", .type = ArgType::kToken, .token = "XX"}};
  static constexpr ArgSpec kArgs[] = {
      {.name = "key", .type = ArgType::kKey},
      {.name = "seconds", .type = ArgType::kInteger, .token = "EX", .optional = true},
      {.name = "condition", .type = ArgType::kOneOf, .optional = true, .args = kChoice},
      {.name = "mode", .type = ArgType::kOneOf, .args = kChoice},
      {.name = "id", .optional = true, .multiple = true}};
  EXPECT_EQ(ArgumentSyntax(kArgs), "key [EX seconds] [NX | XX] <NX | XX> [id [id ...]]");
}

TEST_F(InfoCommandTest, DefaultAllAndNamedSections) {
  const std::string plain = Run("INFO");
  EXPECT_THAT(plain, HasSubstr("# Server\r\nredis_version:7.0.15\r\n"));
  EXPECT_THAT(plain, HasSubstr("\r\n\r\n# Clients\r\n"));
  EXPECT_THAT(plain, HasSubstr("# Idem"));
  EXPECT_THAT(plain, Not(HasSubstr("# Commandstats")));
  EXPECT_EQ(Field(plain, "role"), "master");
  EXPECT_EQ(Field(plain, "connected_clients"), "1");
  const std::string all = Run("INFO all");
  EXPECT_THAT(all, HasSubstr("# Commandstats\r\n"));
  EXPECT_THAT(all, HasSubstr("cmdstat_info:calls=1,"));
  EXPECT_THAT(all, HasSubstr("latency_percentiles_usec_info:p50="));
  const std::string two = Run("INFO CPU keyspace");
  EXPECT_THAT(two, HasSubstr("# CPU"));
  EXPECT_THAT(two, HasSubstr("# Keyspace"));
  EXPECT_THAT(two, Not(HasSubstr("# Server")));
  EXPECT_EQ(Run("INFO nosuch"), "$0\r\n\r\n");
}

TEST_F(InfoCommandTest, MemoryTellsOfHugePagesAndCompactionAndCountsTheStoresPages) {
  for (int i = 0; i < 2000; ++i) Run(absl::StrCat("SET key:", i, " ", std::string(100, 'v')));
  const std::string info = Run("INFO memory");
  EXPECT_NE(Field(info, "huge_pages"), "") << "yes, or why not";
  EXPECT_EQ(Field(info, "active_defrag_running"), "0");
  const auto number = [&](absl::string_view field) { return std::stoull(Field(info, field)); };
  EXPECT_GT(number("used_memory"), 2000u * 100);
  EXPECT_GE(number("allocator_allocated"), number("used_memory"));
  EXPECT_GE(number("allocator_active"), number("allocator_allocated"));
}

TEST_F(InfoCommandTest, CountsCommandsErrorsAndKeys) {
  Run("SET a 1");
  Run("SET b 1 PX 60000");
  Run("SELECT 3");
  Run("SET c 1");
  Run("GET a b");     // refused: arity
  Run("SELECT foo");  // failed
  Run("NOSUCH");
  const std::string info = Run("INFO everything");
  EXPECT_THAT(Field(info, "db0"), MatchesRegex("keys=2,expires=1,avg_ttl=[0-9]+"));
  EXPECT_EQ(Field(info, "db3"), "keys=1,expires=0,avg_ttl=0");
  EXPECT_THAT(Field(info, "cmdstat_get"), HasSubstr("rejected_calls=1,failed_calls=0"));
  EXPECT_THAT(Field(info, "cmdstat_select"), HasSubstr("calls=2,"));
  EXPECT_THAT(Field(info, "cmdstat_select"), HasSubstr("rejected_calls=0,failed_calls=1"));
  EXPECT_EQ(Field(info, "errorstat_ERR"), "count=3");
  EXPECT_EQ(Field(info, "total_error_replies"), "3");
  EXPECT_EQ(Field(info, "total_commands_processed"), "5");
}

TEST_F(InfoCommandTest, HitsAndMissesAreCounted) {
  Run("SET a 1");
  Run("GET a");
  Run("GET nosuch");
  Run("GET nosuch2");
  const std::string info = Run("INFO stats");
  EXPECT_EQ(Field(info, "keyspace_hits"), "1");
  EXPECT_EQ(Field(info, "keyspace_misses"), "2");
}

TEST_F(ServerCommandsTest, TimeIsTheClockThatDecidesAboutDeadlines) {
  EXPECT_EQ(Run("TIME"), "*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n");
  clock_.AdvanceMs(1500);
  EXPECT_EQ(Run("TIME"), "*2\r\n$10\r\n1700000001\r\n$6\r\n500000\r\n");
}

TEST_F(ServerCommandsTest, FlushAndSwapWorkOnWholeDatabases) {
  Run("SET a 1");
  EXPECT_EQ(Run("SWAPDB 0 1"), "+OK\r\n");
  EXPECT_EQ(Run("DBSIZE"), ":0\r\n");
  EXPECT_EQ(Run("FLUSHDB ASYNC"), "+OK\r\n");
  Run("SELECT 1");
  EXPECT_EQ(Run("DBSIZE"), ":1\r\n");
  EXPECT_EQ(Run("FLUSHALL FOO"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("FLUSHALL SYNC"), "+OK\r\n");
  EXPECT_EQ(Run("DBSIZE"), ":0\r\n");
  EXPECT_EQ(Run("SWAPDB a 1"), "-ERR invalid first DB index\r\n");
  EXPECT_EQ(Run("SWAPDB 1 a"), "-ERR invalid second DB index\r\n");
  EXPECT_EQ(Run("SWAPDB 1 16"), "-ERR DB index is out of range\r\n");
}

TEST_F(ServerCommandsTest, ShutdownStopsWithoutAReply) {
  EXPECT_EQ(Run("SHUTDOWN ABORT"), "-ERR No shutdown in progress.\r\n");
  EXPECT_EQ(Run("SHUTDOWN SAVE NOSAVE"), "-ERR syntax error\r\n");
  EXPECT_THAT(Run("SHUTDOWN SAVE"), StartsWith("-ERR this server keeps nothing on disk"));
  EXPECT_EQ(shutdowns_, 0);
  EXPECT_EQ(Run("SHUTDOWN NOSAVE NOW FORCE"), "");
  EXPECT_EQ(shutdowns_, 1);
  EXPECT_NE(me_->session.waiter, nullptr);  // until the connection is finished with the others
}

TEST_F(ServerCommandsTest, WhatThereIsNotSaysSo) {
  EXPECT_EQ(Run("SAVE"), "-ERR this server keeps nothing on disk\r\n");
  EXPECT_EQ(Run("BGSAVE SCHEDULE"), "-ERR this server keeps nothing on disk\r\n");
  EXPECT_EQ(Run("BGREWRITEAOF"), "-ERR this server keeps nothing on disk\r\n");
  EXPECT_EQ(Run("REPLICAOF NO ONE"), "+OK\r\n");
  EXPECT_EQ(Run("REPLICAOF localhost 6379"), "-ERR following another server is not part of this version\r\n");
  EXPECT_EQ(Run("ROLE"), "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n");
  EXPECT_EQ(Run("WAIT 0 0"), ":0\r\n");
  EXPECT_EQ(Run("WAIT 1 -1"), "-ERR timeout is negative\r\n");
  EXPECT_EQ(Run("FUNCTION LIST"), "*0\r\n");
  EXPECT_THAT(Run("DEBUG SLEEP 0"), StartsWith("-ERR DEBUG command not allowed."));
}

TEST_F(ServerCommandsTest, AclKnowsTheDefaultUserAndCategories) {
  EXPECT_EQ(Run("ACL WHOAMI"), "$7\r\ndefault\r\n");
  EXPECT_EQ(Run("ACL LIST"), "*1\r\n" + Bulk("user default on nopass ~* &* +@all"));
  Set("requirepass", "abc");
  EXPECT_EQ(
      Run("ACL LIST"),
      "*1\r\n" + Bulk("user default on "
                      "#ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad ~* &* "
                      "+@all"));
  EXPECT_EQ(Run("ACL GETUSER nobody"), "$-1\r\n");
  EXPECT_EQ(Run("ACL CAT nosuch"), "-ERR Unknown category 'nosuch'\r\n");
  EXPECT_THAT(Run("ACL CAT"), HasSubstr("dangerous"));
  EXPECT_THAT(Run("ACL GENPASS"), MatchesRegex("\\$64\r\n[0-9a-f]{64}\r\n"));
  EXPECT_THAT(Run("ACL GENPASS 5"), MatchesRegex("\\$2\r\n[0-9a-f]{2}\r\n"));
  EXPECT_THAT(Run("ACL GENPASS 4097"), StartsWith("-ERR ACL GENPASS argument"));
}

}  // namespace
}  // namespace idemd::server
