// MEMORY: what one key takes, and where the process's memory goes.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admin/process.h"
#include "server/admin/stats.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/info_sections.h"

namespace idemd::server {
namespace {

double Ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}
int64_t Difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

void MemoryUsage(Context& c) {
  for (size_t i = 3; i < c.words.size();
       i += 2) {  // SAMPLES is for nested values; a string is known exactly
    int64_t samples = 0;
    if (!absl::EqualsIgnoreCase(c.words[i], "SAMPLES") || i + 1 == c.words.size())
      return c.Syntax();
    if (!c.Int(i + 1, &samples)) return;
    if (samples < 0) return c.Syntax();
  }
  const storage::HashedKey key = c.Key(2);
  c.unit.ReportMisses(false);
  const storage::KeyView view = c.Data().Find(c.db(), key, /*touch=*/false);
  if (!view) return c.reply.Null();
  c.reply.Integer(static_cast<int64_t>(storage::MemoryUsage(key.bytes, view)));
}

uint64_t KeyCount(Context& c) {
  uint64_t keys = 0;
  for (storage::DbIndex db = 0; db < storage::kDatabases; ++db) keys += c.Data().Size(db);
  return keys;
}

// One map entry each, named as Redis names it.
class StatsMap {
 public:
  explicit StatsMap(protocol::Writer& reply) : reply_(reply), mark_(reply.Mark()) {}
  ~StatsMap() { reply_.InsertMap(mark_, pairs_); }
  void Int(absl::string_view name, int64_t value) {
    Name(name);
    reply_.Integer(value);
  }
  void Int(absl::string_view name, uint64_t value) { Int(name, static_cast<int64_t>(value)); }
  void Double(absl::string_view name, double value) {
    Name(name);
    reply_.Double(value);
  }

 private:
  void Name(absl::string_view name) {
    reply_.Bulk(name);
    ++pairs_;
  }
  protocol::Writer& reply_;
  size_t mark_;
  size_t pairs_ = 0;
};

void MemoryStats(Context& c) {
  const storage::MemoryStatus store = c.services.store.memory_status();
  const ProcessMemory memory = MemoryWith(store);
  const uint64_t used = store.used_bytes;
  const uint64_t peak = std::max(used, c.services.stats.peak_memory_bytes());
  const uint64_t keys = KeyCount(c);
  StatsMap map(c.reply);
  map.Int("peak.allocated", peak);
  map.Int("total.allocated", used);
  for (const char* none :
       {"startup.allocated", "replication.backlog", "clients.slaves", "clients.normal",
        "cluster.links", "aof.buffer", "lua.caches", "functions.caches", "overhead.total"}) {
    map.Int(none, int64_t{0});
  }
  map.Int("keys.count", keys);
  map.Int("keys.bytes-per-key", keys == 0 ? 0 : used / keys);
  map.Int("dataset.bytes", used);
  map.Double("dataset.percentage", used == 0 ? 0.0 : 100.0);
  map.Double("peak.percentage", Ratio(used, peak) * 100);
  map.Int("allocator.allocated", memory.allocated_bytes);
  map.Int("allocator.active", memory.active_bytes);
  map.Int("allocator.resident", memory.resident_bytes);
  map.Double("allocator-fragmentation.ratio", Ratio(memory.active_bytes, memory.allocated_bytes));
  map.Int("allocator-fragmentation.bytes", Difference(memory.active_bytes, memory.allocated_bytes));
  map.Double("allocator-rss.ratio", Ratio(memory.resident_bytes, memory.active_bytes));
  map.Int("allocator-rss.bytes", Difference(memory.resident_bytes, memory.active_bytes));
  map.Double("rss-overhead.ratio", Ratio(memory.rss_bytes, memory.resident_bytes));
  map.Int("rss-overhead.bytes", Difference(memory.rss_bytes, memory.resident_bytes));
  map.Double("fragmentation", Ratio(memory.rss_bytes, used));
  map.Int("fragmentation.bytes", Difference(memory.rss_bytes, used));
}

void MemoryDoctor(Context& c) {
  constexpr uint64_t kTooLittle = 5u << 20;  // below it the process itself outweighs the data
  const storage::MemoryStatus store = c.services.store.memory_status();
  const ProcessMemory memory = MemoryWith(store);
  const uint64_t used = store.used_bytes;
  if (used < kTooLittle) {
    return c.reply.Verbatim(
        "The server holds less than 5 MB of data, too little to tell anything from.\n");
  }
  std::string report;
  if (Ratio(c.services.stats.peak_memory_bytes(), used) > 1.5) {
    report +=
        "- Peak: more than 1.5 times the present memory was in use before; MEMORY PURGE may give "
        "pages back.\n";
  }
  if (Ratio(memory.active_bytes, memory.allocated_bytes) > 1.4) {
    report +=
        "- Fragmentation: the allocator keeps pages that are mostly free, as after many "
        "deletions.\n";
  }
  if (Ratio(memory.rss_bytes, memory.allocated_bytes) > 1.6) {
    report +=
        "- Resident: the process takes far more memory than was asked for; MEMORY PURGE may "
        "help.\n";
  }
  c.reply.Verbatim(report.empty() ? "Memory looks healthy.\n" : report);
}

void MemoryMallocStats(Context& c) {
  const std::string report = AllocatorReport();
  if (report.empty()) return c.reply.Bulk("Stats not supported for the current allocator");
  c.reply.Verbatim(report);
}

void MemoryPurge(Context& c) {
  PurgeAllocator();
  c.reply.Ok();
}

constexpr ArgSpec kUsageArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "count", .type = ArgType::kInteger, .token = "SAMPLES", .optional = true}};

constexpr CommandSpec kSubcommands[] = {{.name = "DOCTOR",
                                         .handler = &MemoryDoctor,
                                         .arity = 2,
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .summary = "A report for people on how memory is used."},
                                        {.name = "HELP",
                                         .handler = &ReplyHelp,
                                         .arity = 2,
                                         .flags = kLoading | kStale,
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .summary = "Prints this help."},
                                        {.name = "MALLOC-STATS",
                                         .handler = &MemoryMallocStats,
                                         .arity = 2,
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .complexity = "Depends on how much memory is allocated",
                                         .summary = "The allocator's own report."},
                                        {.name = "PURGE",
                                         .handler = &MemoryPurge,
                                         .arity = 2,
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .complexity = "Depends on how much memory is allocated",
                                         .summary = "Gives freed pages back to the system."},
                                        {.name = "STATS",
                                         .handler = &MemoryStats,
                                         .arity = 2,
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .summary = "Where the memory goes, in numbers."},
                                        {.name = "USAGE",
                                         .handler = &MemoryUsage,
                                         .arity = -3,
                                         .flags = kReadonly,
                                         .keys = Keys::At(2),
                                         .key_flags = "RO",
                                         .group = Group::kServer,
                                         .since = "4.0.0",
                                         .summary = "The bytes that a key and its value take.",
                                         .args = kUsageArgs}};

constexpr CommandSpec kMemoryCommands[] = {{.name = "MEMORY",
                                            .arity = -2,
                                            .group = Group::kServer,
                                            .since = "4.0.0",
                                            .complexity = "Depends on subcommand.",
                                            .summary = "Commands about memory.",
                                            .subcommands = kSubcommands}};

}  // namespace

absl::Span<const CommandSpec> MemoryCommands() { return kMemoryCommands; }

}  // namespace idemd::server
