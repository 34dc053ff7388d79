// IDEM.STATS: counters of the native commands; IDEM.CLOCK: the time that they decide by.
#include "server/admin/native_stats.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/idem_common.h"
#include "storage/clock.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kBlockedName = "duplicates-blocked";

// The pairs of a map whose head was written.
void WriteTotals(protocol::Writer& reply, const NativeTotals& totals) {
  for (size_t i = 0; i < kNativeCounters; ++i) {
    const auto counter = static_cast<NativeCounter>(i);
    reply.Bulk(NativeCounterName(counter));
    reply.Integer(static_cast<int64_t>(totals.of(counter)));
  }
  reply.Bulk(kBlockedName);
  reply.Integer(static_cast<int64_t>(totals.duplicates_blocked()));
}

void Stats(Context& c) {
  if (c.words.size() > 2) return ReplyWrongArity(c);
  constexpr size_t kPairs = kNativeCounters + 1;
  const NativeStats& native = c.services.native;
  if (c.words.size() == 2) {
    c.reply.Map(kPairs);
    return WriteTotals(c.reply, native.Sum(c.words[1]));
  }
  const auto namespaces = native.Namespaces();
  NativeTotals totals;
  for (const auto& [name, sum] : namespaces) totals.Add(sum);
  c.reply.Map(kPairs + 1);
  WriteTotals(c.reply, totals);
  c.reply.Bulk("namespaces");
  c.reply.Map(namespaces.size());
  for (const auto& [name, sum] : namespaces) {
    c.reply.Bulk(name);
    c.reply.Map(kPairs);
    WriteTotals(c.reply, sum);
  }
}

void ReplyClock(Context& c, const storage::ClockState& state) {
  c.reply.Map(4);
  c.reply.Bulk("effective-ms");
  c.reply.Integer(state.effective_ms);
  c.reply.Bulk("wall-ms");
  c.reply.Integer(state.wall_ms);
  c.reply.Bulk("difference-ms");
  c.reply.Integer(state.difference_ms);
  c.reply.Bulk("suspect");
  c.reply.Integer(state.suspect ? 1 : 0);
}

// A store that is driven by another clock follows that one alone.
storage::ClockState StoreClock(Context& c) {
  storage::ClockState state;
  state.effective_ms = c.unit.now_ms();
  state.wall_ms = state.effective_ms;
  return state;
}

void Clock(Context& c) {
  ReplyClock(c, c.services.clock != nullptr ? c.services.clock->State() : StoreClock(c));
}

void ClockAccept(Context& c) {
  ReplyClock(c, c.services.clock != nullptr ? c.services.clock->Accept() : StoreClock(c));
}

constexpr ArgSpec kStatsArgs[] = {{.name = "prefix", .type = ArgType::kString, .optional = true}};

constexpr CommandSpec kClockCommands[] = {{.name = "ACCEPT",
                                           .handler = &ClockAccept,
                                           .arity = 2,
                                           .flags = kDangerous | kFast,
                                           .group = Group::kIdem,
                                           .since = "0.1.0",
                                           .summary = "Follows a wall clock that jumped."},
                                          {.name = "HELP",
                                           .handler = &ReplyHelp,
                                           .arity = 2,
                                           .flags = kLoading | kStale,
                                           .group = Group::kIdem,
                                           .since = "0.1.0",
                                           .summary = "Lists the subcommands."}};

constexpr CommandSpec kIdemStatsCommands[] = {
    {.name = "IDEM.STATS",
     .handler = &Stats,
     .arity = -1,
     .flags = kReadonly,
     .group = Group::kIdem,
     .since = "0.1.0",
     .complexity = "O(N) where N is the number of namespaces",
     .summary = "Counts what the native commands answered.",
     .args = kStatsArgs},
    {.name = "IDEM.CLOCK",
     .handler = &Clock,
     .arity = -1,
     .flags = kReadonly | kFast,
     .group = Group::kIdem,
     .since = "0.1.0",
     .summary = "Shows the clock that decides what has lapsed.",
     .subcommands = kClockCommands}};

}  // namespace

absl::Span<const CommandSpec> IdemStatsCommands() { return kIdemStatsCommands; }

}  // namespace idemd::server
