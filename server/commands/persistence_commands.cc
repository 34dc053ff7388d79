// Commands about what is on disk: SAVE, BGSAVE, BGREWRITEAOF, LASTSAVE, WAITAOF, SHUTDOWN.
//
// None of them holds up its loop: who has to wait for a disk is blocked as IDEM.RESERVE ... WAIT
// is.
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/persistence_control.h"
#include "server/commands/scripts.h"
#include "server/commands/session_waiter.h"
#include "server/commands/shutdown.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kNoDisk = "ERR this server keeps nothing on disk";
constexpr absl::string_view kSaving = "ERR Background save already in progress";
constexpr absl::string_view kOtherUnderWay =
    "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in "
    "order to "
    "schedule a BGSAVE whenever possible.";

void ReplyStatus(const absl::Status& status, protocol::Writer& reply) {
  status.ok() ? reply.Ok() : reply.Error(absl::StrCat("ERR ", status.message()));
}

// What it answers where there is no disk: nothing can be saved, so nothing ever was.
PersistenceControl* Disk(Context& c) {
  if (c.services.persistence == nullptr) c.reply.Error(kNoDisk);
  return c.services.persistence;
}

void Save(Context& c) {
  PersistenceControl* const disk = Disk(c);
  if (disk == nullptr) return;
  if (disk->status().saving) return c.reply.Error(kSaving);
  const std::shared_ptr<CallWaiter> waiter = CallWaiter::Begin(c, nullptr);
  disk->SaveNow([waiter](const absl::Status& saved) {
    waiter->Answer([saved](protocol::Writer& reply) { ReplyStatus(saved, reply); });
  });
}

void BgSave(Context& c) {
  const bool asked = c.words.size() == 2 && absl::EqualsIgnoreCase(c.words[1], "SCHEDULE");
  if (c.words.size() > 1 && !asked) return c.Syntax();
  PersistenceControl* const disk = Disk(c);
  if (disk == nullptr) return;
  const bool schedule = asked || c.unit.sealed();  // inside EXEC it never begins at once
  const PersistenceStatus before = disk->status();
  if (before.saving) return c.reply.Error(kSaving);
  if (before.rewriting && !schedule) return c.reply.Error(kOtherUnderWay);
  if (const absl::Status begun = disk->SaveInBackground(schedule); !begun.ok())
    return ReplyStatus(begun, c.reply);
  const bool scheduled = c.unit.sealed() || disk->status().save_scheduled;
  c.reply.Simple(scheduled ? "Background saving scheduled" : "Background saving started");
}

void BgRewriteAof(Context& c) {
  PersistenceControl* const disk = Disk(c);
  if (disk == nullptr) return;
  if (disk->status().rewriting)
    return c.reply.Error("ERR Background append only file rewriting already in progress");
  if (const absl::Status begun = disk->RewriteInBackground(); !begun.ok())
    return ReplyStatus(begun, c.reply);
  const bool scheduled = c.unit.sealed() || disk->status().rewrite_scheduled;
  c.reply.Simple(scheduled ? "Background append only file rewriting scheduled"
                           : "Background append only file rewriting started");
}

void LastSave(Context& c) {
  const PersistenceControl* const disk = c.services.persistence;
  c.reply.Integer(disk == nullptr ? c.services.started_ms / 1000 : disk->status().last_save_s);
}

// Both numbers of WAITAOF: whether this server's disk has it, and how many replicas' (there are
// none).
void ReplyCopies(protocol::Writer& reply, bool local) {
  reply.Array(2);
  reply.Integer(local ? 1 : 0);
  reply.Integer(0);
}

void WaitAof(Context& c) {
  int64_t local = 0;
  int64_t replicas = 0;
  int64_t timeout_ms = 0;
  if (!c.Int(1, &local)) return;
  if (local < 0 || local > 1)
    return c.reply.Error("ERR value is out of range, value must between 0 and 1");
  if (!c.Int(2, &replicas)) return;
  if (replicas < 0) return c.reply.Error("ERR value is out of range, must be positive");
  if (!c.Int(3, &timeout_ms, "ERR timeout is not an integer or out of range")) return;
  if (timeout_ms < 0) return c.reply.Error("ERR timeout is negative");
  PersistenceControl* const disk = c.services.persistence;
  const bool logs = disk != nullptr && disk->status().log_enabled;
  if (local > 0 && !logs)
    return c.reply.Error(
        "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.");
  // Everything that this connection has written or seen.
  const storage::Lsn need = c.session.need;
  const bool there = logs && disk->WaitSyncedNow(need);
  // Nobody waits for replicas: there are none whose acknowledgement could come.
  if (local == 0 || there || c.unit.sealed()) return ReplyCopies(c.reply, there);
  const std::shared_ptr<CallWaiter> waiter = CallWaiter::Begin(
      c, [disk, need](protocol::Writer& reply) { ReplyCopies(reply, disk->WaitSyncedNow(need)); });
  disk->WaitSynced(need, timeout_ms, [waiter](bool synced) {
    waiter->Answer([synced](protocol::Writer& reply) { ReplyCopies(reply, synced); });
  });
}

bool ParseShutdown(Context& c, ShutdownRequest& request, bool& abort) {
  for (size_t i = 1; i < c.words.size(); ++i) {
    if (absl::EqualsIgnoreCase(c.words[i], "NOSAVE"))
      request.nosave = true;
    else if (absl::EqualsIgnoreCase(c.words[i], "SAVE"))
      request.save = true;
    else if (absl::EqualsIgnoreCase(c.words[i], "NOW"))
      request.now = true;
    else if (absl::EqualsIgnoreCase(c.words[i], "FORCE"))
      request.force = true;
    else if (absl::EqualsIgnoreCase(c.words[i], "ABORT"))
      abort = true;
    else
      return false;
  }
  const bool other = request.save || request.nosave || request.now || request.force;
  return !(request.save && request.nosave) && !(abort && other);
}

// No reply when it succeeds: the caller sees the connection end.
void StopServer(Context& c) {
  ShutdownRequest request;
  bool abort = false;
  if (!ParseShutdown(c, request, abort)) return c.Syntax();
  Shutdown* const shutdown = c.services.shutdown;
  if (abort) {
    if (shutdown == nullptr || !shutdown->Abort())
      return c.reply.Error("ERR No shutdown in progress.");
    return c.reply.Ok();
  }
  if (c.services.scripts != nullptr && c.services.scripts->busy() && !request.nosave)
    return c.reply.Error(c.services.scripts->BusyError());
  if (shutdown == nullptr) return c.reply.Error("ERR this server cannot be stopped by a client");
  if (request.save && c.services.persistence == nullptr) return c.reply.Error(kNoDisk);
  const std::shared_ptr<CallWaiter> waiter = CallWaiter::Begin(c, nullptr);
  shutdown->Begin(request, [waiter] {
    waiter->Answer(
        [](protocol::Writer& reply) { reply.Error("ERR Errors trying to SHUTDOWN. Check logs."); });
  });
}

constexpr ArgSpec kBgSaveArgs[] = {{.name = "schedule",
                                    .type = ArgType::kToken,
                                    .token = "SCHEDULE",
                                    .optional = true,
                                    .since = "3.2.2"}};
constexpr ArgSpec kWaitAofArgs[] = {{.name = "numlocal", .type = ArgType::kInteger},
                                    {.name = "numreplicas", .type = ArgType::kInteger},
                                    {.name = "timeout", .type = ArgType::kInteger}};
constexpr ArgSpec kSaveChoice[] = {{.name = "nosave", .type = ArgType::kToken, .token = "NOSAVE"},
                                   {.name = "save", .type = ArgType::kToken, .token = "SAVE"}};
constexpr ArgSpec kShutdownArgs[] = {
    {.name = "save-selector", .type = ArgType::kOneOf, .optional = true, .args = kSaveChoice},
    {.name = "now", .type = ArgType::kToken, .token = "NOW", .optional = true, .since = "7.0.0"},
    {.name = "force",
     .type = ArgType::kToken,
     .token = "FORCE",
     .optional = true,
     .since = "7.0.0"},
    {.name = "abort",
     .type = ArgType::kToken,
     .token = "ABORT",
     .optional = true,
     .since = "7.0.0"}};

constexpr CommandSpec kPersistenceCommands[] = {
    {.name = "SAVE",
     .handler = &Save,
     .arity = 1,
     .flags = kNoAsyncLoading | kAdmin | kNoScript | kNoMulti,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "O(N) where N is the number of keys",
     .summary = "Writes a dump of all databases; only this connection waits for it."},
    {.name = "BGSAVE",
     .handler = &BgSave,
     .arity = -1,
     .flags = kNoAsyncLoading | kAdmin | kNoScript,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "Begins a dump of all databases, or schedules it.",
     .args = kBgSaveArgs},
    {.name = "BGREWRITEAOF",
     .handler = &BgRewriteAof,
     .arity = 1,
     .flags = kNoAsyncLoading | kAdmin | kNoScript,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "Begins to replace the log by a snapshot and what comes after it."},
    {.name = "LASTSAVE",
     .handler = &LastSave,
     .arity = 1,
     .flags = kLoading | kStale | kFast | kDangerous,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "When the last dump was written, in seconds since 1970.",
     .categories = "admin"},
    {.name = "WAITAOF",
     .handler = &WaitAof,
     .arity = 4,
     .flags = kNoScript,
     .group = Group::kGeneric,
     .since = "7.2.0",
     .summary = "Waits until everything that this connection wrote or saw is on disk.",
     .args = kWaitAofArgs,
     .categories = "connection"},
    {.name = "SHUTDOWN",
     .handler = &StopServer,
     .arity = -1,
     .flags = kAdmin | kNoScript | kLoading | kStale | kNoMulti | kAllowBusy,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "O(N) when saving, where N is the number of keys; otherwise O(1)",
     .summary = "Stops the server, with a dump before it where save points or SAVE ask for one.",
     .args = kShutdownArgs}};

}  // namespace

absl::Span<const CommandSpec> PersistenceCommands() { return kPersistenceCommands; }

}  // namespace idemd::server
