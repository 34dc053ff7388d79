// Reading, showing and changing settings.
#include "server/admin/settings.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/admin/option.h"

namespace idemd::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

absl::Status SetOne(Settings& settings, absl::string_view name, absl::string_view value) {
  const std::pair<absl::string_view, absl::string_view> pair[] = {{name, value}};
  return settings.Set(pair, {});
}

TEST(Settings, HoldTheDefaultsOfTheTable) {
  const Settings settings;
  EXPECT_EQ(settings.port, 6379);
  EXPECT_EQ(settings.maxclients, 10'000);
  EXPECT_EQ(settings.databases, 16);
  EXPECT_EQ(settings.loglevel, kLogNotice);
  EXPECT_EQ(settings.maxmemory_policy, kNoEviction);
  EXPECT_TRUE(settings.protected_mode);
  EXPECT_FALSE(settings.has_password);
  EXPECT_GE(settings.io_threads, 1);
  EXPECT_EQ(settings.idem_token_ttl_ms, 300'000);
  EXPECT_EQ(settings.idem_retention_ms, 86'400'000);
  EXPECT_EQ(settings.idem_lease_ms, 30'000);
  EXPECT_EQ(settings.idem_max_result_bytes, 1 << 20);
  EXPECT_EQ(settings.output_limit_normal.hard_bytes, 0);
  EXPECT_EQ(settings.output_limit_pubsub.hard_bytes, 32 << 20);
  EXPECT_EQ(settings.output_limit_pubsub.soft_bytes, 8 << 20);
  EXPECT_EQ(settings.output_limit_pubsub.soft_seconds, 60);
  EXPECT_THAT(settings.bind(), ElementsAre("127.0.0.1", "-::1"));
  EXPECT_THAT(settings.percentiles(), ElementsAre(50, 99, 99.9));
  EXPECT_EQ(settings.Text("save"), "3600 1 300 100 60 10000");
  EXPECT_THAT(settings.save_points(),
              ElementsAre(std::pair(3600, 1), std::pair(300, 100), std::pair(60, 10000)));
  EXPECT_TRUE(settings.has_save_points);
  EXPECT_EQ(settings.Text("appendonly"), "yes");
  EXPECT_TRUE(settings.appendonly);
  EXPECT_EQ(settings.appendfsync, kFsyncEverysec);
  EXPECT_TRUE(settings.stop_writes_on_bgsave_error);
  EXPECT_EQ(settings.auto_aof_rewrite_percentage, 100);
  EXPECT_EQ(settings.auto_aof_rewrite_min_bytes, 64 << 20);
}

// Each default is legal, in its canonical form, and what a file would say of it reads back as the
// same.
TEST(OptionTable, EveryDefaultReadsBackFromTheLineThatRewriteWrites) {
  std::set<std::string> names;
  for (const OptionSpec* option : Options()) {
    SCOPED_TRACE(option->name);
    EXPECT_TRUE(names.insert(option->name).second);
    if (option->alias != nullptr) {
      EXPECT_TRUE(names.insert(option->alias).second);
    }
    if (option->effect == Effect::kFull) {
      EXPECT_STRNE(option->doc, "");
    }
    if (option->effect == Effect::kDefaultOnly) {
      EXPECT_STRNE(option->limit, "");
    }
    std::string text = "";
    for (const std::string& line : FileLines(*option, DefaultText(*option)))
      absl::StrAppend(&text, line, "\n");
    if (option->type == OptionType::kReplicaOf) continue;  // "" cannot be said in a file
    Settings settings;
    const absl::Status loaded = settings.LoadText(text);
    EXPECT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(settings.Text(option->name), DefaultText(*option));
  }
}

TEST(SettingsText, TakesCommentsQuotesUnitsAndAnyCase) {
  Settings settings;
  const absl::Status loaded = settings.LoadText(
      "# a comment\n\n  PORT 7000  \r\nmaxmemory 100mb\nproto-max-bulk-len 2m\nlogfile \"a "
      "\\\"b\\\".log\"\n"
      "requirepass 'it is'\nunixsocketperm 700\nbind 127.0.0.1 -::1 10.0.0.1\nLogLevel WARNING\n"
      "latency-tracking-info-percentiles 50 99.99\nnotify-keyspace-events KEA\n");
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ(settings.port, 7000);
  EXPECT_EQ(settings.maxmemory_bytes, 100 << 20);
  EXPECT_EQ(settings.Text("maxmemory"), "104857600");
  EXPECT_EQ(settings.proto_max_bulk_bytes, 2'000'000);
  EXPECT_EQ(settings.Text("logfile"), "a \"b\".log");
  EXPECT_EQ(settings.requirepass(), "it is");
  EXPECT_TRUE(settings.has_password);
  EXPECT_EQ(settings.unixsocketperm, 0700);
  EXPECT_EQ(settings.Text("unixsocketperm"), "700");
  EXPECT_THAT(settings.bind(), ElementsAre("127.0.0.1", "-::1", "10.0.0.1"));
  EXPECT_EQ(settings.loglevel, kLogWarning);
  EXPECT_THAT(settings.percentiles(), ElementsAre(50, 99.99));
  EXPECT_EQ(settings.Text("notify-keyspace-events"), "AKE");
}

TEST(SettingsText, LaterLinesWinAndOutputLimitsAddUp) {
  Settings settings;
  ASSERT_TRUE(settings
                  .LoadText("timeout 1\ntimeout 2\nclient-output-buffer-limit normal 1kb 2kb 3\n"
                            "client-output-buffer-limit replica 4kb 5kb 6\n"
                            "client-output-buffer-limit pubsub 7 8 9\n")
                  .ok());
  EXPECT_EQ(settings.timeout_s, 2);
  EXPECT_EQ(settings.Text("client-output-buffer-limit"),
            "normal 1024 2048 3 slave 4096 5120 6 pubsub 7 8 9");
  EXPECT_EQ(settings.output_limit_normal.soft_bytes, 2048);
  EXPECT_EQ(settings.output_limit_pubsub.hard_bytes, 7);
}

TEST(SettingsText, AnUnknownLineStopsTheStartWithItsNumber) {
  Settings settings;
  EXPECT_EQ(Message(settings.LoadText("port 1\n\nmaxmemmory 1\n")),
            "*** FATAL CONFIG FILE ERROR ***\nReading the configuration file, at line 3\n>>> "
            "'maxmemmory 1'\n"
            "Bad directive or wrong number of arguments");
}

TEST(SettingsText, SaysWhatIsWrongWithALine) {
  const std::pair<const char*, const char*> cases[] = {
      {"port x", "argument couldn't be parsed into an integer"},
      {"port 65536", "argument must be between 0 and 65535 inclusive"},
      {"port 1 2", "wrong number of arguments"},
      {"port", "wrong number of arguments"},
      {"maxmemory 1x", "argument must be a memory value"},
      {"protected-mode maybe", "argument must be 'yes' or 'no'"},
      {"loglevel loud",
       "argument(s) must be one of the following: debug, verbose, notice, warning"},
      {"unixsocketperm 888", "argument couldn't be parsed as an octal number"},
      {"unixsocketperm 1000", "argument must be between 0 and 777 inclusive"},
      {"maxmemory-clients 200%", "percentage argument must be less or equal to 100"},
      {"maxmemory-clients x%", "argument must be a memory or percent value"},
      {"save 1", "Invalid save parameters"},
      {"save 0 1", "Invalid save parameters"},
      {"client-output-buffer-limit normal 1 2",
       "Wrong number of arguments in buffer limit configuration."},
      {"client-output-buffer-limit master 1 2 3",
       "Invalid client class specified in buffer limit configuration."},
      {"client-output-buffer-limit normal 1 2 x",
       "Error in hard, soft or soft_seconds setting in buffer limit"},
      {"latency-tracking-info-percentiles 101", "should sit between [0.0,100.0]"},
      {"notify-keyspace-events Q", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."},
      {"dbfilename a/b", "dbfilename can't be a path, just a filename"},
      {"dir /no/such/folder", "No such file or directory"},
      {"logfile \"a", "Unbalanced quotes in configuration line"},
      {"rename-command FLUSHALL \"\"", "'rename-command' is not supported by this version"},
      {"shutdown-on-sigterm save nosave",
       "shutdown options SAVE and NOSAVE can't be used simultaneously"},
      {"idem-lease 0", "argument must be between 1 and "},
  };
  for (const auto& [line, problem] : cases) {
    Settings settings;
    EXPECT_THAT(Message(settings.LoadText(line)), HasSubstr(problem)) << line;
  }
}

TEST(SettingsText, NamesWhatItTookButDoesNotDo) {
  Settings settings;
  ASSERT_TRUE(settings
                  .LoadText("aof-use-rdb-preamble no\nrdbcompression no\nhz 20\nrepl-timeout 5\n"
                            "maxmemory-policy allkeys-lru\ndaemonize yes\nport 1\n")
                  .ok());
  EXPECT_THAT(
      settings.warnings(),
      ElementsAre(HasSubstr("'daemonize yes' has no effect"),
                  HasSubstr("'rdbcompression no' has no effect"),
                  HasSubstr("'aof-use-rdb-preamble no' has no effect"), HasSubstr("hz, repl-timeout")));
  // The effective values.
  EXPECT_EQ(settings.Text("aof-use-rdb-preamble"), "yes");
  EXPECT_EQ(settings.Text("rdbcompression"), "no");
  EXPECT_EQ(settings.Text("daemonize"), "no");
  EXPECT_EQ(settings.Text("maxmemory-policy"), "allkeys-lru");
  EXPECT_EQ(settings.Text("hz"), "20");
}

TEST(SettingsText, AnEmptySaveTakesBackWhatCameBefore) {
  Settings settings;
  ASSERT_TRUE(settings.LoadText("save 900 1\nsave \"\"\nappendonly no\n").ok());
  EXPECT_THAT(settings.warnings(), IsEmpty());
  EXPECT_EQ(settings.Text("save"), "");
  EXPECT_FALSE(settings.has_save_points);
  EXPECT_THAT(settings.save_points(), IsEmpty());
}

TEST(SettingsText, LinesWithSavePointsTakeThePlaceOfTheDefaultsAndAddUp) {
  Settings settings;
  ASSERT_TRUE(settings.LoadText("save 900 1\nsave 300 10 60 100\nappendfsync always\n").ok());
  EXPECT_EQ(settings.Text("save"), "900 1 300 10 60 100");
  EXPECT_THAT(settings.save_points(),
              ElementsAre(std::pair(900, 1), std::pair(300, 10), std::pair(60, 100)));
  EXPECT_EQ(settings.appendfsync, kFsyncAlways);
}

TEST(CommandLine, OptionsComeAfterDashes) {
  Settings settings;
  ASSERT_TRUE(settings
                  .Load({"--port", "7001", "--maxmemory 1gb", "--loglevel", "debug", "--save",
                         "--bind", "127.0.0.1", "::1", "--proc-title-template", "--my--title",
                         "--client-output-buffer-limit", "normal 1 2 3 pubsub 4 5 6"})
                  .ok());
  EXPECT_EQ(settings.port, 7001);
  EXPECT_EQ(settings.maxmemory_bytes, int64_t{1} << 30);
  EXPECT_EQ(settings.loglevel, kLogDebug);
  EXPECT_THAT(settings.bind(), ElementsAre("127.0.0.1", "::1"));
  EXPECT_EQ(settings.Text("proc-title-template"), "--my--title");
  EXPECT_EQ(settings.output_limit_pubsub.soft_seconds, 6);
  EXPECT_EQ(settings.file(), "");
}

TEST(CommandLine, SaysWhatIsWrong) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"--port"}, ">>> 'port'\nwrong number of arguments"},
      {{"--port", "6379", "6380"}, ">>> 'port \"6379\" \"6380\"'\nwrong number of arguments"},
      {{"--port", "--loglevel", "verbose"},
       ">>> 'port \"--loglevel\" \"verbose\"'\nwrong number of arguments"},
      {{"--port", "--bla", "--loglevel", "verbose"},
       "'port \"--bla\"'\nargument couldn't be parsed into an integer"},
      {{"--shutdown-on-sigint"}, "argument(s) must be one of the following"},
      {{"--no-such-thing", "1"}, "Bad directive"},
      {{"/no/such/file.conf"},
       "Can't open config file '/no/such/file.conf': No such file or directory"},
  };
  for (const auto& [arguments, problem] : cases) {
    Settings settings;
    EXPECT_THAT(Message(settings.Load(arguments)), HasSubstr(problem));
  }
}

TEST(ConfigGet, MatchesNamesPatternsAndAliasesOnce) {
  const Settings settings;
  const auto names = [&](std::vector<absl::string_view> patterns) {
    std::vector<std::string> out;
    for (const Settings::Value& value : settings.Get(patterns)) out.push_back(value.name);
    return out;
  };
  EXPECT_THAT(names({"PORT", "port", "nothing"}), ElementsAre("PORT"));
  EXPECT_THAT(names({"hash-max-*-value"}),
              ElementsAre("hash-max-listpack-value", "hash-max-ziplist-value"));
  EXPECT_THAT(names({"idem-max-[nrw]*", "idem-max-r?sult"}),
              ElementsAre("idem-max-result", "idem-max-namespaces", "idem-max-waiters", "idem-max-waiters-per-key"));
  EXPECT_THAT(names({"key-load-*"}), IsEmpty());
  EXPECT_THAT(names({"key-load-delay"}), ElementsAre("key-load-delay"));
  EXPECT_GT(settings.Get({"*"}).size(), 150u);
}

TEST(ConfigSet, ChangesTheAtomicsAndTheTexts) {
  Settings settings;
  const std::pair<absl::string_view, absl::string_view> pairs[] = {
      {"maxmemory", "10mb"},
      {"IDEM-TOKEN-TTL", "60"},
      {"bind", "* -::*"},
      {"hash-max-ziplist-value", "1k"}};
  ASSERT_TRUE(settings.Set(pairs, {}).ok());
  EXPECT_EQ(settings.maxmemory_bytes, 10 << 20);
  EXPECT_EQ(settings.idem_token_ttl_ms, 60'000);
  EXPECT_THAT(settings.bind(), ElementsAre("*", "-::*"));
  EXPECT_EQ(settings.Text("hash-max-listpack-value"), "1000");
}

TEST(ConfigSet, AnswersAsRedisDoes) {
  const std::tuple<const char*, const char*, const char*> cases[] = {
      {"nothing", "1", "Unknown option or number of arguments for CONFIG SET - 'nothing'"},
      {"daemonize", "yes",
       "CONFIG SET failed (possibly related to argument 'daemonize') - can't set immutable config"},
      {"dir", "/",
       "CONFIG SET failed (possibly related to argument 'dir') - can't set protected config"},
      {"maxmemory-clients", "200%",
       "CONFIG SET failed (possibly related to argument 'maxmemory-clients') - percentage argument "
       "must be less or "
       "equal to 100"},
      {"list-max-ziplist-size", "x",
       "CONFIG SET failed (possibly related to argument 'list-max-ziplist-size') - argument "
       "couldn't be parsed into an "
       "integer"},
      {"appendfilename", "x",
       "CONFIG SET failed (possibly related to argument 'appendfilename') - can't set immutable "
       "config"},
      {"dbfilename", "x",
       "CONFIG SET failed (possibly related to argument 'dbfilename') - can't set protected "
       "config"},
      {"appendfsync", "sometimes",
       "CONFIG SET failed (possibly related to argument 'appendfsync') - argument(s) must be one "
       "of the following: always, everysec, no"},
      {"save", "60",
       "CONFIG SET failed (possibly related to argument 'save') - Invalid save parameters"},
      {"aof-use-rdb-preamble", "no",
       "CONFIG SET failed (possibly related to argument 'aof-use-rdb-preamble') - not supported: "
       "the base of a log is always a snapshot"},
  };
  for (const auto& [name, value, answer] : cases) {
    Settings settings;
    EXPECT_EQ(Message(SetOne(settings, name, value)), answer);
  }
  Settings settings;
  const std::pair<absl::string_view, absl::string_view> twice[] = {{"hz", "1"}, {"HZ", "2"}};
  EXPECT_EQ(Message(settings.Set(twice, {})),
            "CONFIG SET failed (possibly related to argument 'HZ') - duplicate parameter");
}

TEST(ConfigSet, TakesEveryValueThatConfigGetShows) {
  Settings settings;
  for (const Settings::Value& value : settings.Get({"*"})) {
    const OptionSpec& option = *Options()[FindOption(value.name)];
    if (option.has(kImmutable) || option.has(kProtected)) continue;
    const absl::Status set = SetOne(settings, value.name, value.text);
    EXPECT_TRUE(set.ok()) << set;
    EXPECT_EQ(settings.Text(value.name), value.text);
  }
}

TEST(ConfigSet, TakesAllPairsOrNone) {
  Settings settings;
  const std::pair<absl::string_view, absl::string_view> pairs[] = {
      {"maxmemory", "1"}, {"client-query-buffer-limit", "invalid"}, {"timeout", "9"}};
  EXPECT_FALSE(settings.Set(pairs, {}).ok());
  EXPECT_EQ(settings.maxmemory_bytes, 0);
  EXPECT_EQ(settings.Text("maxmemory"), "0");
  EXPECT_EQ(settings.timeout_s, 0);
}

TEST(ConfigSet, AHookThatFailsTakesEverythingBack) {
  Settings settings;
  std::vector<int64_t> seen;
  settings.OnChange({"maxmemory", "timeout"}, [&] {
    seen.push_back(settings.maxmemory_bytes);
    return absl::OkStatus();
  });
  settings.OnChange({"port"}, [&] {
    return settings.port == 1 ? absl::UnavailableError("Unable to listen on this port.")
                              : absl::OkStatus();
  });
  const std::pair<absl::string_view, absl::string_view> pairs[] = {
      {"maxmemory", "5"}, {"timeout", "7"}, {"port", "1"}};
  EXPECT_EQ(
      Message(settings.Set(pairs, {})),
      "CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port.");
  EXPECT_THAT(seen, ElementsAre(5, 0));  // once with the new values, once with the old
  EXPECT_EQ(settings.Text("timeout"), "0");
  EXPECT_EQ(settings.port, 6379);
  // A value that stays the same runs no hook.
  EXPECT_TRUE(SetOne(settings, "timeout", "0").ok());
  EXPECT_EQ(seen.size(), 2u);
}

TEST(ConfigSet, SaysWhatHasNoEffect) {
  Settings settings;
  std::vector<std::string> warnings;
  const std::pair<absl::string_view, absl::string_view> pairs[] = {
      {"rdbcompression", "no"},
      {"maxmemory-policy", "allkeys-lfu"},
      {"no-appendfsync-on-rewrite", "yes"},
      {"timeout", "3"},
      {"save", ""}};
  ASSERT_TRUE(settings.Set(pairs, {}, &warnings).ok());
  EXPECT_THAT(warnings,
              ElementsAre(HasSubstr("'rdbcompression'"), HasSubstr("'no-appendfsync-on-rewrite'")));
}

TEST(ConfigSet, ProtectedSettingsNeedLeave) {
  Settings settings;
  const std::pair<absl::string_view, absl::string_view> pairs[] = {{"dbfilename", "other.rdb"}};
  EXPECT_FALSE(settings.Set(pairs, {}).ok());
  EXPECT_TRUE(settings.Set(pairs, {.allow_protected = true}).ok());
  EXPECT_EQ(settings.Text("dbfilename"), "other.rdb");
}

TEST(Settings, KnowSecrets) {
  EXPECT_TRUE(Settings::IsSecret("RequirePass"));
  EXPECT_TRUE(Settings::IsSecret("masterauth"));
  EXPECT_FALSE(Settings::IsSecret("port"));
  EXPECT_FALSE(Settings::IsSecret("nothing"));
}

}  // namespace
}  // namespace idemd::server
