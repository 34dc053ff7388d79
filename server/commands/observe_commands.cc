// SLOWLOG and MONITOR: watching what others send.
#include "server/admin/slowlog.h"
#include "server/clients.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"

namespace idemd::server {
namespace {

constexpr int64_t kEntriesShown = 10;  // by SLOWLOG GET without a count

void SlowlogGet(Context& c) {
  if (c.words.size() > 3) return ReplySubcommandSyntaxError(c);
  int64_t count = kEntriesShown;
  constexpr absl::string_view kError = "ERR count should be greater than or equal to -1";
  if (c.words.size() == 3 && !c.Int(2, &count, kError)) return;
  if (count < -1) return c.reply.Error(kError);
  const std::vector<SlowLogEntry> entries =
      c.services.slowlog.Latest(count < 0 ? SIZE_MAX : static_cast<size_t>(count));
  c.reply.Array(entries.size());
  for (const SlowLogEntry& entry : entries) {
    c.reply.Array(6);
    c.reply.Integer(entry.id);
    c.reply.Integer(entry.unix_s);
    c.reply.Integer(entry.usec);
    c.reply.Array(entry.words.size());
    for (const std::string& word : entry.words) c.reply.Bulk(word);
    c.reply.Bulk(entry.address);
    c.reply.Bulk(entry.client_name);
  }
}

void SlowlogLen(Context& c) { c.reply.Integer(static_cast<int64_t>(c.services.slowlog.size())); }

void SlowlogReset(Context& c) {
  c.services.slowlog.Reset();
  c.reply.Ok();
}

void Monitor(Context& c) {
  if (c.unit.sealed()) return c.reply.Error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  if (!c.session.monitor) {
    c.session.monitor = true;
    c.session.info().monitor.store(true, std::memory_order_relaxed);
    c.services.clients.AddMonitor(c.session.info().id);
  }
  c.reply.Ok();
}

constexpr ArgSpec kGetArgs[] = {{.name = "count", .type = ArgType::kInteger, .optional = true}};

constexpr CommandSpec kSlowlogSubcommands[] = {
    {.name = "GET",
     .handler = &SlowlogGet,
     .arity = -2,
     .flags = kAdmin | kLoading | kStale,
     .group = Group::kServer,
     .since = "2.2.12",
     .complexity = "O(N) where N is the number of entries returned",
     .summary = "The latest slow commands: number, time, microseconds, words, address and name of "
                "the client.",
     .args = kGetArgs},
    {.name = "HELP",
     .handler = &ReplyHelp,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "6.2.0",
     .summary = "Prints this help."},
    {.name = "LEN",
     .handler = &SlowlogLen,
     .arity = 2,
     .flags = kAdmin | kLoading | kStale,
     .group = Group::kServer,
     .since = "2.2.12",
     .summary = "How many slow commands are kept."},
    {.name = "RESET",
     .handler = &SlowlogReset,
     .arity = 2,
     .flags = kAdmin | kLoading | kStale,
     .group = Group::kServer,
     .since = "2.2.12",
     .complexity = "O(N) where N is the number of entries",
     .summary = "Forgets all slow commands."}};

constexpr CommandSpec kObserveCommands[] = {
    {.name = "SLOWLOG",
     .arity = -2,
     .group = Group::kServer,
     .since = "2.2.12",
     .complexity = "Depends on subcommand.",
     .summary = "Commands about the slow log.",
     .subcommands = kSlowlogSubcommands},
    {.name = "MONITOR",
     .handler = &Monitor,
     .arity = 1,
     .flags = kAdmin | kNoScript | kLoading | kStale,
     .group = Group::kServer,
     .since = "1.0.0",
     .complexity = "O(1); each command costs all connections a little more",
     .summary = "Shows every command as the server runs it."}};

}  // namespace

absl::Span<const CommandSpec> ObserveCommands() { return kObserveCommands; }

}  // namespace idemd::server
