// SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, WAITAOF, SHUTDOWN.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/commands/persistence_fixture.h"

namespace idemd::server {
namespace {

class PersistenceCommands : public PersistenceTest {};

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

}  // namespace
}  // namespace idemd::server
