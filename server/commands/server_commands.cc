// Commands about the process and whole databases: TIME, DBSIZE, FLUSHALL, SWAPDB and kin.
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/admin/settings.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/version.h"
#include "storage/store.h"

namespace idemd::server {
namespace {

// What clients send as TIME is compared with deadlines, so it is read on the clock that decides
// about them.
void Time(Context& c) {
  const int64_t us = c.services.store.clock().NowNs() / 1000;
  c.reply.Array(2);
  c.reply.BulkInteger(us / 1'000'000);
  c.reply.BulkInteger(us % 1'000'000);
}

// Under all locks: a transaction or a multi-key command of another thread counts whole or not at all.
void DbSize(Context& c) {
  c.unit.LockAll();
  c.reply.Integer(static_cast<int64_t>(c.unit.Size(c.db())));
}

// Both modes flush at once: what readers still look at is freed by the epochs, never on the
// caller's time.
bool FlushMode(Context& c) {
  if (c.words.size() == 1) return true;
  if (c.words.size() == 2 &&
      (absl::EqualsIgnoreCase(c.words[1], "SYNC") || absl::EqualsIgnoreCase(c.words[1], "ASYNC"))) {
    return true;
  }
  c.Syntax();
  return false;
}

void FlushAll(Context& c) {
  if (!FlushMode(c)) return;
  c.Data().LockAll();
  c.Data().FlushAll();
  c.reply.Ok();
}

void FlushDb(Context& c) {
  if (!FlushMode(c)) return;
  c.Data().LockAll();
  c.Data().FlushDb(c.db());
  c.reply.Ok();
}

void SwapDb(Context& c) {
  int64_t a = 0;
  int64_t b = 0;
  if (!c.Int(1, &a, "ERR invalid first DB index") || !c.Int(2, &b, "ERR invalid second DB index"))
    return;
  const int64_t databases = c.services.settings.databases.load(std::memory_order_relaxed);
  if (a < 0 || b < 0 || a >= databases || b >= databases)
    return c.reply.Error(protocol::errors::kDbIndex);
  if (a != b) {
    c.Data().LockAll();
    c.Data().SwapDb(static_cast<storage::DbIndex>(a), static_cast<storage::DbIndex>(b));
  }
  c.reply.Ok();
}

void Lolwut(Context& c) {
  int64_t version = 0;
  if (c.words.size() >= 3 && absl::EqualsIgnoreCase(c.words[1], "VERSION") && !c.Int(2, &version))
    return;
  std::string art;
  // Two callers knock with the same key; one door opens.
  absl::StrAppend(&art, "  o-m  o-m       _______\n", "   \\    /   ->  |  1 | 0 |\n",
                  "    claim        -------\n\n", "idemd ver. ", kIdemdVersion,
                  ", speaks Redis ver. ", kRedisVersion, "\n");
  c.reply.Verbatim(art);
}

// Redis' setting enable-debug-command: no, yes, or local.
bool DebugAllowed(Context& c) {
  const std::string allowed = c.services.settings.Text("enable-debug-command");
  if (allowed == "yes") return true;
  const ClientInfo& info = c.session.info();
  return allowed == "local" && (info.unix_socket || absl::StartsWith(info.address, "127.") ||
                                absl::StartsWith(info.address, "[::1]"));
}

void DebugSleep(Context& c) {
  double seconds = 0;
  if (!protocol::ParseDouble(c.words[2], &seconds) || !(seconds >= 0 && seconds <= 3600)) {
    return c.reply.Error(protocol::errors::kNotFloat);
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  c.reply.Ok();
}

void Debug(Context& c) {
  if (!DebugAllowed(c)) {
    return c.reply.Error(
        "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", "
        "you can run it from a "
        "local connection, otherwise you need to set this option in the configuration file, and "
        "then restart the "
        "server.");
  }
  if (absl::EqualsIgnoreCase(c.words[1], "SLEEP") && c.words.size() == 3) return DebugSleep(c);
  c.reply.Error(absl::StrCat("ERR DEBUG ", c.words[1], " is not supported by this version"));
}

constexpr ArgSpec kFlushModes[] = {
    {.name = "async", .type = ArgType::kToken, .token = "ASYNC", .since = "4.0.0"},
    {.name = "sync", .type = ArgType::kToken, .token = "SYNC", .since = "6.2.0"}};
constexpr ArgSpec kFlushArgs[] = {
    {.name = "mode", .type = ArgType::kOneOf, .optional = true, .args = kFlushModes}};
constexpr ArgSpec kSwapArgs[] = {{.name = "index1", .type = ArgType::kInteger},
                                 {.name = "index2", .type = ArgType::kInteger}};
constexpr ArgSpec kLolwutArgs[] = {
    {.name = "version", .type = ArgType::kInteger, .token = "VERSION", .optional = true}};
constexpr ArgSpec kDebugArgs[] = {{.name = "seconds", .type = ArgType::kDouble, .token = "SLEEP"}};
constexpr CommandSpec kServerCommands[] = {
    {.name = "TIME",
     .handler = &Time,
     .arity = 1,
     .flags = kLoading | kStale | kFast,
     .group = Group::kServer,
     .since = "2.6.0",
     .summary = "The server's clock: seconds since 1970, and microseconds."},
    {.name = "DBSIZE",
     .handler = &DbSize,
     .arity = 1,
     .flags = kReadonly | kFast | kAnyKeys,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "The number of keys in the selected database.",
     .categories = "keyspace"},
    {.name = "FLUSHALL",
     .handler = &FlushAll,
     .arity = -1,
     .flags = kWrite | kDangerous | kAnyKeys,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "O(N) where N is the number of keys in all databases",
     .summary = "Removes all keys of all databases.",
     .args = kFlushArgs,
     .categories = "keyspace"},
    {.name = "FLUSHDB",
     .handler = &FlushDb,
     .arity = -1,
     .flags = kWrite | kDangerous | kAnyKeys,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "O(N) where N is the number of keys in the selected database",
     .summary = "Removes all keys of the selected database.",
     .args = kFlushArgs,
     .categories = "keyspace"},
    {.name = "SWAPDB",
     .handler = &SwapDb,
     .arity = 3,
     .flags = kWrite | kFast | kDangerous | kAnyKeys,
     .group = Group::kServer,
     .since = "4.0.0",
     .summary = "Exchanges two databases, for all connections at once.",
     .args = kSwapArgs,
     .categories = "keyspace"},
    {.name = "LOLWUT",
     .handler = &Lolwut,
     .arity = -1,
     .flags = kReadonly | kFast,
     .group = Group::kServer,
     .since = "5.0.0",
     .summary = "Draws something, and tells the version.",
     .args = kLolwutArgs},
    {.name = "DEBUG",
     .handler = &Debug,
     .arity = -2,
     .flags = kAdmin | kNoScript | kLoading | kStale | kProtected,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "Depends on subcommand.",
     .summary = "For tests: SLEEP stops the connection's thread for a while.",
     .args = kDebugArgs}};

}  // namespace

absl::Span<const CommandSpec> ServerCommands() { return kServerCommands; }

}  // namespace idemd::server
