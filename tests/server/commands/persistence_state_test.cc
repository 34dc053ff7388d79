// LOADING, MISCONF and INFO persistence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/commands/persistence_fixture.h"

namespace idemd::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMisconfSave[] =
    "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to "
    "disk. Commands that may "
    "modify the data set are disabled, because this instance is configured to report errors during "
    "writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for "
    "details about the RDB error.";
constexpr char kLoadingError[] = "-LOADING Redis is loading the dataset in memory";

class PersistenceState : public PersistenceTest {};

// --- LOADING

// As Redis' own table has it: COMMAND INFO of 7.0.15.
TEST_F(PersistenceState, WhileLoadingOnlySomeCommandsAnswer) {
  disk.SetLoading(true);
  for (const char* line :
       {"GET a", "SET a 1", "PING", "DBSIZE", "SAVE", "BGSAVE", "BGREWRITEAOF", "WAIT 0 0",
        "WAITAOF 0 0 0", "KEYS *", "MEMORY USAGE a", "FLUSHALL", "IDEM.RESERVE a", "IDEM.TOKEN a",
        "IDEM.STATUS a", "FUNCTION LIST", "LOLWUT"})
    EXPECT_EQ(Do(line), kLoadingError) << line;
  for (const char* line :
       {"AUTH x", "HELLO", "INFO", "CONFIG GET port", "CLIENT ID", "COMMAND COUNT", "LASTSAVE",
        "SELECT 1", "ECHO a", "TIME", "ROLE", "SLOWLOG LEN", "LATENCY LATEST", "ACL WHOAMI",
        "MULTI", "DISCARD", "WATCH a", "UNWATCH", "RESET"})
    EXPECT_THAT(Do(line), Not(StartsWith("-LOADING"))) << line;
  disk.SetLoading(false);
  EXPECT_EQ(Do("SET a 1"), "OK");
}

TEST_F(PersistenceState, WhatIsQueuedWhileLoadingIsRefusedAsAWhole) {
  disk.SetLoading(true);
  Do("MULTI");
  EXPECT_EQ(Do("SET a 1"), kLoadingError);
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  Do("MULTI");
  EXPECT_EQ(Do("TIME"), "QUEUED");
  EXPECT_THAT(Do("EXEC"), StartsWith("[["));
}

// Subcommands have flags of their own, and an unknown word is an unknown word.
TEST_F(PersistenceState, LoadingComesAfterWhatIsWrongWithTheWords) {
  disk.SetLoading(true);
  EXPECT_EQ(Do("GET"), "-ERR wrong number of arguments for 'get' command");
  EXPECT_THAT(Do("NOSUCH"), StartsWith("-ERR unknown command"));
  EXPECT_EQ(Do("OBJECT ENCODING a"), kLoadingError);
  EXPECT_THAT(Do("OBJECT HELP"), StartsWith("["));
}

TEST_F(PersistenceState, LoadingIsCountedAsAnError) {
  disk.SetLoading(true);
  Do("GET a");
  EXPECT_THAT(Do("INFO errorstats"), HasSubstr("errorstat_LOADING:count=1"));
}

// --- MISCONF

TEST_F(PersistenceState, ALogThatCannotBeWrittenRefusesWritesAndNothingElse) {
  Do("SET a 1");
  NewEffects();
  log.Refuse(absl::ResourceExhaustedError(
      "MISCONF Errors writing to the AOF file: No space left on device"));
  for (const char* line :
       {"SET a 2", "DEL a", "IDEM.RESERVE k", "IDEM.CONSUME t", "FLUSHALL", "EXPIRE a 10"})
    EXPECT_EQ(Do(line), "-MISCONF Errors writing to the AOF file: No space left on device") << line;
  EXPECT_EQ(Do("GET a"), "\"1\"");
  EXPECT_EQ(Do("PING"), "PONG");
  EXPECT_EQ(Do("EXISTS k"), "0");
  EXPECT_TRUE(NewEffects().empty());
  log.Refuse(absl::OkStatus());
  EXPECT_EQ(Do("SET a 2"), "OK");
}

TEST_F(PersistenceState, AQueuedWriteIsRefusedAtOnce) {
  log.Refuse(absl::ResourceExhaustedError("MISCONF full"));
  Do("MULTI");
  EXPECT_EQ(Do("SET a 1"), "-MISCONF full");
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
}

TEST_F(PersistenceState, ATransactionWithWritesIsRefusedWhenTheDiskFillsBeforeExec) {
  Do("MULTI");
  Do("GET a");
  Do("SET a 1");
  log.Refuse(absl::ResourceExhaustedError("MISCONF full"));
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of: MISCONF full");
  EXPECT_EQ(Do("GET a"), "nil");
  Do("MULTI");
  Do("GET a");
  EXPECT_EQ(Do("EXEC"), "[nil]");
}

TEST_F(PersistenceState, AFailedDumpStopsWritesWhereSavePointsAskForDumps) {
  disk.SetLastSaveFailed(true);
  EXPECT_EQ(Do("SET a 1"), kMisconfSave);
  EXPECT_EQ(Do("GET a"), "nil");
  Config("stop-writes-on-bgsave-error", "no");
  EXPECT_EQ(Do("SET a 1"), "OK");
  Config("stop-writes-on-bgsave-error", "yes");
  Config("save", "");
  EXPECT_EQ(Do("SET a 1"), "OK");
  Config("save", "60 1");
  EXPECT_EQ(Do("SET a 1"), kMisconfSave);
  disk.SetLastSaveFailed(false);
  EXPECT_EQ(Do("SET a 1"), "OK");
}

// --- INFO persistence

TEST_F(PersistenceState, InfoHasEveryFieldOfRedisInItsOrder) {
  const std::string info = Info();
  size_t at = 0;
  for (const char* field : {"loading",
                            "async_loading",
                            "current_cow_peak",
                            "current_cow_size",
                            "current_cow_size_age",
                            "current_fork_perc",
                            "current_save_keys_processed",
                            "current_save_keys_total",
                            "rdb_changes_since_last_save",
                            "rdb_bgsave_in_progress",
                            "rdb_last_save_time",
                            "rdb_last_bgsave_status",
                            "rdb_last_bgsave_time_sec",
                            "rdb_current_bgsave_time_sec",
                            "rdb_saves",
                            "rdb_last_cow_size",
                            "rdb_last_load_keys_expired",
                            "rdb_last_load_keys_loaded",
                            "aof_enabled",
                            "aof_rewrite_in_progress",
                            "aof_rewrite_scheduled",
                            "aof_last_rewrite_time_sec",
                            "aof_current_rewrite_time_sec",
                            "aof_last_bgrewrite_status",
                            "aof_rewrites",
                            "aof_rewrites_consecutive_failures",
                            "aof_last_write_status",
                            "aof_last_cow_size",
                            "module_fork_in_progress",
                            "module_fork_last_cow_size",
                            "aof_current_size",
                            "aof_base_size",
                            "aof_pending_rewrite",
                            "aof_buffer_length",
                            "aof_pending_bio_fsync",
                            "aof_delayed_fsync"}) {
    const size_t found = info.find(absl::StrCat("\n", field, ":"), at);
    ASSERT_NE(found, std::string::npos) << field << " is missing, or not in its place";
    at = found;
  }
}

TEST_F(PersistenceState, InfoTellsWhatTheDiskSays) {
  disk.now.saving = true;
  disk.now.snapshot_keys_total = 50;
  disk.now.snapshot_keys_done = 20;
  disk.now.last_save_ok = false;
  disk.now.last_save_s = 77;
  disk.now.saves = 3;
  disk.now.changes_since_save = 9;
  disk.now.last_write_ok = false;
  disk.now.log_bytes = 1000;
  disk.now.log_base_bytes = 600;
  disk.now.log_buffer_bytes = 5;
  disk.now.last_lsn = 12;
  disk.now.durable_lsn = 10;
  disk.now.syncs = 4;
  disk.now.torn_bytes_cut = 33;
  disk.now.last_error = "no room";
  EXPECT_THAT(Info(), AllOf(HasSubstr("rdb_bgsave_in_progress:1\r\n"),
                            HasSubstr("current_save_keys_processed:20\r\n"),
                            HasSubstr("current_save_keys_total:50\r\n"),
                            HasSubstr("rdb_last_bgsave_status:err\r\n"),
                            HasSubstr("rdb_last_save_time:77\r\n"), HasSubstr("rdb_saves:3\r\n"),
                            HasSubstr("rdb_changes_since_last_save:9\r\n"),
                            HasSubstr("aof_last_write_status:err\r\n")));
  EXPECT_THAT(Info(),
              AllOf(HasSubstr("aof_current_size:1000\r\n"), HasSubstr("aof_base_size:600\r\n"),
                    HasSubstr("aof_buffer_length:5\r\n"), HasSubstr("idem_log_lsn:12\r\n"),
                    HasSubstr("idem_log_durable_lsn:10\r\n"), HasSubstr("idem_log_syncs:4\r\n"),
                    HasSubstr("idem_last_recovery_torn_bytes:33\r\n"),
                    HasSubstr("idem_last_snapshot_error:no room\r\n")));
  EXPECT_THAT(Do("INFO memory"), HasSubstr("mem_aof_buffer:5\r\n"));
}

TEST_F(PersistenceState, InfoSaysWhatAReplyPromises) {
  EXPECT_THAT(Info(), HasSubstr("idem_appendfsync:everysec\r\n"));
  Config("appendfsync", "always");
  EXPECT_THAT(Info(), HasSubstr("idem_appendfsync:always\r\n"));
  disk.now.log_enabled = false;
  EXPECT_THAT(Info(), AllOf(HasSubstr("idem_appendfsync:off\r\n"), HasSubstr("aof_enabled:0\r\n"),
                            Not(HasSubstr("aof_current_size"))));
}

TEST_F(PersistenceState, InfoShowsProgressOnlyWhileLoading) {
  EXPECT_THAT(Info(), AllOf(HasSubstr("loading:0\r\n"), Not(HasSubstr("loading_"))));
  disk.load = {.loading = true,
               .started_s = 5,
               .bytes_total = 400,
               .bytes_done = 100,
               .keys_loaded = 7,
               .eta_s = 3};
  disk.SetLoading(true);
  EXPECT_THAT(
      Info(),
      AllOf(HasSubstr("loading:1\r\n"), HasSubstr("loading_start_time:5\r\n"),
            HasSubstr("loading_total_bytes:400\r\n"), HasSubstr("loading_loaded_bytes:100\r\n"),
            HasSubstr("loading_loaded_perc:25.00\r\n"), HasSubstr("loading_eta_seconds:3\r\n"),
            HasSubstr("loading_rdb_used_mem:"), HasSubstr("idem_loading_keys:7\r\n")));
}

TEST_F(PersistenceState, AServerWithoutADiskSaysSo) {
  services.persistence = nullptr;
  Do("SET a 1");
  EXPECT_THAT(Info(),
              AllOf(HasSubstr("aof_enabled:0\r\n"), HasSubstr("rdb_changes_since_last_save:1\r\n"),
                    HasSubstr("idem_appendfsync:off\r\n")));
  for (const char* line : {"SAVE", "BGSAVE", "BGREWRITEAOF", "SHUTDOWN SAVE"})
    EXPECT_EQ(Do(line), "-ERR this server keeps nothing on disk") << line;
  EXPECT_EQ(Do("LASTSAVE"), absl::StrCat(kStart / 1000));
}

}  // namespace
}  // namespace idemd::server
