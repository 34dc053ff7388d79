// SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, WAITAOF, SHUTDOWN; LOADING, MISCONF and INFO persistence:
// over a fake of what is on disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/persistence_control.h"
#include "server/commands/shutdown.h"
#include "tests/support/harness.h"

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

// Does what it is told to, when it is told to.
class FakeDisk final : public PersistenceControl {
 public:
  LoadProgress progress() const override { return load; }
  PersistenceStatus status() const override { return now; }
  void SaveNow(std::function<void(absl::Status)> done) override {
    saves.push_back(std::move(done));
  }
  absl::Status SaveInBackground(bool schedule) override {
    asked_schedule = schedule;
    if (!answer.ok()) return answer;
    (now.rewriting ? now.save_scheduled : now.saving) = true;
    return answer;
  }
  absl::Status RewriteInBackground() override {
    if (!answer.ok()) return answer;
    (now.saving ? now.rewrite_scheduled : now.rewriting) = true;
    return answer;
  }
  void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) override {
    waited_lsn = lsn;
    waited_ms = timeout_ms;
    waits.push_back(std::move(done));
  }
  bool WaitSyncedNow(storage::Lsn lsn) const override { return lsn <= now.durable_lsn; }
  absl::Status SetSync(SyncPolicy) override { return absl::OkStatus(); }
  absl::Status SetLog(bool) override { return absl::OkStatus(); }
  void SetSavePoints(std::vector<SavePoint>) override {}
  void SetRewriteLimits(int64_t, uint64_t) override {}
  void SetDumpName(std::string) override {}

  using PersistenceControl::SetLastSaveFailed;
  using PersistenceControl::SetLoading;
  // Ends the dump that was asked for first.
  void EndSave(absl::Status result) {
    ASSERT_FALSE(saves.empty());
    const auto done = std::move(saves.front());
    saves.pop_front();
    done(std::move(result));
  }
  void EndWait(bool synced) {
    ASSERT_FALSE(waits.empty());
    const auto done = std::move(waits.front());
    waits.pop_front();
    done(synced);
  }

  PersistenceStatus now;
  LoadProgress load;
  absl::Status answer;
  bool asked_schedule = false;
  storage::Lsn waited_lsn = 0;
  int64_t waited_ms = -1;
  std::deque<std::function<void(absl::Status)>> saves;
  std::deque<std::function<void(bool)>> waits;
};

class PersistenceCommands : public ::testing::Test, protected testing::Harness {
 protected:
  PersistenceCommands() {
    disk.now.log_enabled = true;
    services.persistence = &disk;
    services.shutdown = &shutdown;
  }
  void Config(const std::string& name, const std::string& value) {
    ASSERT_EQ(DoWords({"CONFIG", "SET", name, value}), "OK");
  }
  std::string Info() { return Do("INFO persistence"); }

  FakeDisk disk;
  int stops = 0;
  Shutdown shutdown{settings, &disk, [this] { ++stops; }};
};

// --- SAVE and its kin

TEST_F(PersistenceCommands, SaveAnswersWhenTheDumpIsThere) {
  EXPECT_EQ(Do("SAVE"), "");
  EXPECT_TRUE(me->waits());
  EXPECT_EQ(Posted(*me), "");
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(Posted(*me), "OK");
  EXPECT_FALSE(me->waits());
}

TEST_F(PersistenceCommands, SaveSaysWhyItFailed) {
  Do("SAVE");
  disk.EndSave(absl::ResourceExhaustedError("no room"));
  EXPECT_EQ(Posted(*me), "-ERR no room");
}

TEST_F(PersistenceCommands, SaveIsRefusedBesideAnother) {
  disk.now.saving = true;
  EXPECT_EQ(Do("SAVE"), "-ERR Background save already in progress");
  EXPECT_TRUE(disk.saves.empty());
}

TEST_F(PersistenceCommands, SaveIsNotForTransactions) {
  Do("MULTI");
  EXPECT_EQ(Do("SAVE"), "-ERR Command not allowed inside a transaction");
}

TEST_F(PersistenceCommands, AClientThatSavesCannotBeUnblocked) {
  Do("SAVE");
  const auto other = Connect();
  EXPECT_EQ(Do(*other, absl::StrCat("CLIENT UNBLOCK ", me->peer->info().id)), "0");
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(Posted(*me), "OK");
}

TEST_F(PersistenceCommands, AClientThatHasGoneGetsNoAnswer) {
  const auto other = Connect();
  Do(*other, "SAVE");
  dispatcher.Closed(other->session);
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(Posted(*other), "");
}

TEST_F(PersistenceCommands, BgsaveStartsOrIsScheduled) {
  EXPECT_EQ(Do("BGSAVE"), "Background saving started");
  EXPECT_FALSE(disk.asked_schedule);
  EXPECT_EQ(Do("BGSAVE"), "-ERR Background save already in progress");
  disk.now.saving = false;
  disk.now.rewriting = true;
  EXPECT_EQ(Do("BGSAVE"),
            "-ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE "
            "SCHEDULE in order to schedule "
            "a BGSAVE whenever possible.");
  EXPECT_EQ(Do("BGSAVE schedule"), "Background saving scheduled");
  EXPECT_TRUE(disk.asked_schedule);
  EXPECT_EQ(Do("BGSAVE now"), "-ERR syntax error");
  EXPECT_EQ(Do("BGSAVE SCHEDULE SCHEDULE"), "-ERR syntax error");
}

TEST_F(PersistenceCommands, BgsaveTellsWhyItCannotStart) {
  disk.answer = absl::UnavailableError("the disk is gone");
  EXPECT_EQ(Do("BGSAVE"), "-ERR the disk is gone");
}

TEST_F(PersistenceCommands, BgrewriteaofStartsOrIsScheduled) {
  EXPECT_EQ(Do("BGREWRITEAOF"), "Background append only file rewriting started");
  EXPECT_EQ(Do("BGREWRITEAOF"), "-ERR Background append only file rewriting already in progress");
  disk.now.rewriting = false;
  disk.now.saving = true;
  EXPECT_EQ(Do("BGREWRITEAOF"), "Background append only file rewriting scheduled");
}

TEST_F(PersistenceCommands, InsideExecSnapshotsAreScheduled) {
  Do("MULTI");
  Do("BGSAVE");
  Do("BGREWRITEAOF");
  EXPECT_EQ(Do("EXEC"),
            "[Background saving scheduled Background append only file rewriting scheduled]");
  EXPECT_TRUE(disk.asked_schedule);
}

TEST_F(PersistenceCommands, TheLogIsNotSwitchedInsideExec) {
  Do("MULTI");
  Do("CONFIG SET appendonly no");
  Do("CONFIG SET maxmemory 0 APPENDFSYNC always");
  Do("CONFIG SET maxmemory 1gb");
  EXPECT_EQ(Do("EXEC"),
            "[-ERR CONFIG SET appendonly is not possible inside a transaction "
            "-ERR CONFIG SET APPENDFSYNC is not possible inside a transaction OK]");
  EXPECT_EQ(settings.Text("appendfsync"), "everysec");
}

TEST_F(PersistenceCommands, LastsaveIsTheLastGoodDump) {
  disk.now.last_save_s = 1'234'567;
  EXPECT_EQ(Do("LASTSAVE"), "1234567");
}

// --- WAITAOF

TEST_F(PersistenceCommands, WaitaofChecksItsWords) {
  EXPECT_EQ(Do("WAITAOF 2 0 0"), "-ERR value is out of range, value must between 0 and 1");
  EXPECT_EQ(Do("WAITAOF -1 0 0"), "-ERR value is out of range, value must between 0 and 1");
  EXPECT_EQ(Do("WAITAOF x 0 0"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("WAITAOF 1 -1 0"), "-ERR value is out of range, must be positive");
  EXPECT_EQ(Do("WAITAOF 1 0 -1"), "-ERR timeout is negative");
  EXPECT_EQ(Do("WAITAOF 1 0 x"), "-ERR timeout is not an integer or out of range");
  EXPECT_EQ(Do("WAITAOF 1 0"), "-ERR wrong number of arguments for 'waitaof' command");
  disk.now.log_enabled = false;
  EXPECT_EQ(Do("WAITAOF 1 0 0"),
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  EXPECT_EQ(Do("WAITAOF 0 0 0"), "[0 0]");
  services.persistence = nullptr;
  EXPECT_EQ(Do("WAITAOF 1 0 0"),
            "-ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
}

TEST_F(PersistenceCommands, WaitaofAnswersAtOnceWhatIsOnDisk) {
  Do("SET a 1");
  disk.now.durable_lsn = me->session.need;
  EXPECT_EQ(Do("WAITAOF 1 0 0"), "[1 0]");
  EXPECT_TRUE(disk.waits.empty());
}

TEST_F(PersistenceCommands, WaitaofWaitsForWhatTheConnectionWroteOrSaw) {
  Do("SET a 1");
  const auto reader = Connect();
  Do(*reader, "GET a");
  ASSERT_NE(reader->session.need, 0u);
  EXPECT_EQ(Do(*reader, "WAITAOF 1 0 1500"), "");
  EXPECT_TRUE(reader->waits());
  EXPECT_TRUE(reader->peer->info().blocked);
  EXPECT_EQ(disk.waited_lsn, reader->session.need);
  EXPECT_EQ(disk.waited_ms, 1500);
  disk.EndWait(true);
  EXPECT_EQ(Posted(*reader), "[1 0]");
  EXPECT_FALSE(reader->peer->info().blocked);
}

TEST_F(PersistenceCommands, WaitaofThatTakesTooLongSaysZero) {
  Do("SET a 1");
  Do("WAITAOF 1 0 10");
  disk.EndWait(false);
  EXPECT_EQ(Posted(*me), "[0 0]");
}

TEST_F(PersistenceCommands, WaitaofDoesNotWaitForReplicasThatThereAreNot) {
  Do("SET a 1");
  EXPECT_EQ(Do("WAITAOF 0 3 0"), "[0 0]");
  EXPECT_EQ(Do("WAITAOF 1 3 0"), "");
  disk.EndWait(true);
  EXPECT_EQ(Posted(*me), "[1 0]");
}

TEST_F(PersistenceCommands, WaitaofDoesNotBlockInsideExec) {
  Do("SET a 1");
  Do("MULTI");
  Do("WAITAOF 1 0 0");
  EXPECT_EQ(Do("EXEC"), "[[0 0]]");
}

TEST_F(PersistenceCommands, WaitaofCanBeUnblocked) {
  Do("SET a 1");
  Do("WAITAOF 1 0 0");
  const auto other = Connect();
  const std::string id = absl::StrCat(me->peer->info().id);
  EXPECT_EQ(Do(*other, "CLIENT UNBLOCK " + id), "1");
  EXPECT_EQ(Do(*other, "CLIENT UNBLOCK " + id), "0");
  EXPECT_EQ(Posted(*me), "[0 0]");
  disk.EndWait(true);  // too late
  EXPECT_EQ(Posted(*me), "");
  Do("WAITAOF 1 0 0");
  EXPECT_EQ(Do(*other, "CLIENT UNBLOCK " + id + " ERROR"), "1");
  EXPECT_EQ(Posted(*me), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
}

// --- SHUTDOWN

TEST_F(PersistenceCommands, ShutdownWritesADumpWhereThereAreSavePoints) {
  EXPECT_EQ(Do("SHUTDOWN"), "");
  EXPECT_TRUE(me->waits());
  EXPECT_EQ(stops, 0);
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(shutdown.saves_at_end());
  EXPECT_EQ(Posted(*me), "");  // the connection just ends
}

TEST_F(PersistenceCommands, ShutdownWithoutSavePointsStopsAtOnce) {
  Config("save", "");
  EXPECT_EQ(Do("SHUTDOWN"), "");
  EXPECT_EQ(stops, 1);
  EXPECT_FALSE(shutdown.saves_at_end());
  EXPECT_TRUE(disk.saves.empty());
}

TEST_F(PersistenceCommands, ShutdownSaveAndNosaveDecideForThemselves) {
  Do("SHUTDOWN NOSAVE");
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(disk.saves.empty());
}

TEST_F(PersistenceCommands, ShutdownSaveNeedsNoSavePoints) {
  Config("save", "");
  Do("SHUTDOWN SAVE NOW");
  EXPECT_EQ(stops, 0);
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(stops, 1);
}

TEST_F(PersistenceCommands, AShutdownWhoseDumpFailsLeavesTheServerUp) {
  Do("SHUTDOWN");
  disk.EndSave(absl::ResourceExhaustedError("no room"));
  EXPECT_EQ(stops, 0);
  EXPECT_EQ(Posted(*me), "-ERR Errors trying to SHUTDOWN. Check logs.");
  EXPECT_EQ(Do("SET a 1"), "OK");
  Do("SHUTDOWN");  // and may be tried again
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(stops, 1);
}

TEST_F(PersistenceCommands, ShutdownForceStopsWhetherOrNotTheDumpFails) {
  Do("SHUTDOWN SAVE FORCE");
  disk.EndSave(absl::ResourceExhaustedError("no room"));
  EXPECT_EQ(stops, 1);
  EXPECT_FALSE(shutdown.saves_at_end());
}

TEST_F(PersistenceCommands, ShutdownCanBeAbortedWhileItSaves) {
  const auto other = Connect();
  EXPECT_EQ(Do(*other, "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
  Do("SHUTDOWN");
  EXPECT_EQ(Do(*other, "SHUTDOWN ABORT"), "OK");
  EXPECT_EQ(Do(*other, "SHUTDOWN ABORT"), "-ERR No shutdown in progress.");
  disk.EndSave(absl::OkStatus());
  EXPECT_EQ(stops, 0);
  EXPECT_EQ(Posted(*me), "-ERR Errors trying to SHUTDOWN. Check logs.");
}

TEST_F(PersistenceCommands, TwoWhoShutDownGetOneDumpAndOneAnswer) {
  const auto other = Connect();
  Do("SHUTDOWN");
  Do(*other, "SHUTDOWN NOSAVE");
  EXPECT_EQ(disk.saves.size(), 1u);
  disk.EndSave(absl::UnavailableError("no"));
  EXPECT_EQ(Posted(*me), "-ERR Errors trying to SHUTDOWN. Check logs.");
  EXPECT_EQ(Posted(*other), "-ERR Errors trying to SHUTDOWN. Check logs.");
}

TEST_F(PersistenceCommands, ShutdownRefusesNonsense) {
  EXPECT_EQ(Do("SHUTDOWN SAVE NOSAVE"), "-ERR syntax error");
  EXPECT_EQ(Do("SHUTDOWN ABORT NOW"), "-ERR syntax error");
  EXPECT_EQ(Do("SHUTDOWN soon"), "-ERR syntax error");
  EXPECT_EQ(stops, 0);
}

// Half of the data must not replace the dump that it comes from.
TEST_F(PersistenceCommands, NoDumpIsWrittenWhileLoading) {
  disk.SetLoading(true);
  Do("SHUTDOWN SAVE");
  EXPECT_EQ(stops, 1);
  EXPECT_TRUE(disk.saves.empty());
}

TEST_F(PersistenceCommands, SignalsDoWhatTheirSettingsSay) {
  shutdown.OnSignal(/*interrupt=*/false);
  EXPECT_EQ(disk.saves.size(), 1u);
  disk.EndSave(absl::UnavailableError("no"));
  EXPECT_EQ(stops, 0);
  Config("shutdown-on-sigterm", "nosave");
  shutdown.OnSignal(/*interrupt=*/false);
  EXPECT_EQ(stops, 1);
}

TEST_F(PersistenceCommands, SigintHasItsOwnSetting) {
  Config("save", "");
  Config("shutdown-on-sigint", "save force");
  shutdown.OnSignal(/*interrupt=*/true);
  EXPECT_EQ(stops, 0);
  disk.EndSave(absl::UnavailableError("no"));
  EXPECT_EQ(stops, 1);
}

// --- LOADING

// As Redis' own table has it: COMMAND INFO of 7.0.15.
TEST_F(PersistenceCommands, WhileLoadingOnlySomeCommandsAnswer) {
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

TEST_F(PersistenceCommands, WhatIsQueuedWhileLoadingIsRefusedAsAWhole) {
  disk.SetLoading(true);
  Do("MULTI");
  EXPECT_EQ(Do("SET a 1"), kLoadingError);
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
  Do("MULTI");
  EXPECT_EQ(Do("TIME"), "QUEUED");
  EXPECT_THAT(Do("EXEC"), StartsWith("[["));
}

// Subcommands have flags of their own, and an unknown word is an unknown word.
TEST_F(PersistenceCommands, LoadingComesAfterWhatIsWrongWithTheWords) {
  disk.SetLoading(true);
  EXPECT_EQ(Do("GET"), "-ERR wrong number of arguments for 'get' command");
  EXPECT_THAT(Do("NOSUCH"), StartsWith("-ERR unknown command"));
  EXPECT_EQ(Do("OBJECT ENCODING a"), kLoadingError);
  EXPECT_THAT(Do("OBJECT HELP"), StartsWith("["));
}

TEST_F(PersistenceCommands, LoadingIsCountedAsAnError) {
  disk.SetLoading(true);
  Do("GET a");
  EXPECT_THAT(Do("INFO errorstats"), HasSubstr("errorstat_LOADING:count=1"));
}

// --- MISCONF

TEST_F(PersistenceCommands, ALogThatCannotBeWrittenRefusesWritesAndNothingElse) {
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

TEST_F(PersistenceCommands, AQueuedWriteIsRefusedAtOnce) {
  log.Refuse(absl::ResourceExhaustedError("MISCONF full"));
  Do("MULTI");
  EXPECT_EQ(Do("SET a 1"), "-MISCONF full");
  EXPECT_EQ(Do("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
}

TEST_F(PersistenceCommands, ATransactionWithWritesIsRefusedWhenTheDiskFillsBeforeExec) {
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

TEST_F(PersistenceCommands, AFailedDumpStopsWritesWhereSavePointsAskForDumps) {
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

TEST_F(PersistenceCommands, InfoHasEveryFieldOfRedisInItsOrder) {
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

TEST_F(PersistenceCommands, InfoTellsWhatTheDiskSays) {
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

TEST_F(PersistenceCommands, InfoSaysWhatAReplyPromises) {
  EXPECT_THAT(Info(), HasSubstr("idem_appendfsync:everysec\r\n"));
  Config("appendfsync", "always");
  EXPECT_THAT(Info(), HasSubstr("idem_appendfsync:always\r\n"));
  disk.now.log_enabled = false;
  EXPECT_THAT(Info(), AllOf(HasSubstr("idem_appendfsync:off\r\n"), HasSubstr("aof_enabled:0\r\n"),
                            Not(HasSubstr("aof_current_size"))));
}

TEST_F(PersistenceCommands, InfoShowsProgressOnlyWhileLoading) {
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

TEST_F(PersistenceCommands, AServerWithoutADiskSaysSo) {
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
