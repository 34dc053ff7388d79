// What each section of INFO says; field names as Redis has them, because tools look for them.
#include "server/commands/info_sections.h"
#include "server/commands/scripts.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/admin/process.h"
#include "server/admin/settings.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/info_lines.h"
#include "server/commands/persistence_control.h"
#include "server/commands/replicas.h"
#include "server/commands/table.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/tracking.h"
#include "server/steady_time.h"
#include "server/version.h"

namespace idemd::server {
namespace {

template <typename T>
T Get(const std::atomic<T>& value) {
  return value.load(std::memory_order_relaxed);
}

double Ratio(uint64_t a, uint64_t b) {
  return b == 0 ? 0.0 : static_cast<double>(a) / static_cast<double>(b);
}
int64_t Difference(uint64_t a, uint64_t b) {
  return static_cast<int64_t>(a) - static_cast<int64_t>(b);
}

int64_t WallUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void InfoServer(Context& c, std::string& out) {
  const Settings& settings = c.services.settings;
  const int64_t now_us = WallUs();
  const int64_t uptime_s = std::max<int64_t>(0, now_us / 1000 - c.services.started_ms) / 1000;
  InfoLines(out)
      .Add("redis_version", kRedisVersion)
      .Add("redis_git_sha1", "00000000")
      .Add("redis_git_dirty", 0)
      .Add("redis_build_id", "0")
      .Add("redis_mode", "standalone")
      .Add("idemd_version", kIdemdVersion)
      .Add("os", OsName())
      .Add("arch_bits", sizeof(void*) * 8)
      .Add("monotonic_clock", "POSIX clock_gettime")
      .Add("multiplexing_api", Get(settings.io_uring_in_use) ? "io_uring" : "epoll")
      .Add("gcc_version", absl::StrCat(__GNUC__, ".", __GNUC_MINOR__, ".0"))
      .Add("process_id", getpid())
      .Add("process_supervised", "no")
      .Add("run_id", c.services.run_id)
      .Add("tcp_port", settings.Text(Get(settings.port) != 0 ? "port" : "tls-port"))
      .Add("server_time_usec", now_us)
      .Add("uptime_in_seconds", uptime_s)
      .Add("uptime_in_days", uptime_s / 86'400)
      .Add("hz", Get(settings.hz))
      .Add("configured_hz", Get(settings.hz))
      .Add("lru_clock", now_us / 1'000'000 & 0xffffff)
      .Add("executable", ExecutablePath())
      .Add("config_file", settings.file())
      .Add("io_threads_active", Get(settings.io_threads) > 1 ? 1 : 0);
}

void InfoClients(Context& c, std::string& out) {
  uint64_t input_max = 0;
  uint64_t output_max = 0;
  for (const auto& peer : c.services.clients.All()) {
    input_max = std::max(input_max, Get(peer->info().query_bytes));
    output_max = std::max(output_max, Get(peer->info().output_bytes));
  }
  InfoLines(out)
      .Add("connected_clients", c.services.clients.count())
      .Add("cluster_connections", 0)
      .Add("maxclients", Get(c.services.settings.maxclients))
      .Add("client_recent_max_input_buffer", input_max)
      .Add("client_recent_max_output_buffer", output_max)
      .Add("blocked_clients", c.services.clients.blocked())
      .Add("monitor_clients", c.services.clients.monitors())
      .Add("tracking_clients", c.services.tracking->clients())
      .Add("clients_in_timeout_table", 0);
}

ProcessMemory MemoryWith(const storage::MemoryStatus& store) {
  ProcessMemory memory = ReadProcessMemory();
  memory.allocated_bytes += store.used_bytes;
  memory.active_bytes += store.held_bytes;
  memory.resident_bytes += store.resident_bytes;
  return memory;
}

void InfoMemory(Context& c, std::string& out) {
  const storage::MemoryStatus store = c.services.store.memory_status();
  const ProcessMemory memory = MemoryWith(store);
  const uint64_t used = store.used_bytes;
  const uint64_t peak = std::max(used, c.services.stats.peak_memory_bytes());
  const ScriptTotals scripts = c.services.scripts == nullptr ? ScriptTotals() : c.services.scripts->Totals();
  const Clients::Memory clients = c.services.clients.memory();
  const PersistenceControl* const disk = c.services.persistence;
  const uint64_t log_buffer_bytes = disk == nullptr ? 0 : disk->status().log_buffer_bytes;
  InfoLines(out)
      .Bytes("used_memory", used)
      .Bytes("used_memory_rss", memory.rss_bytes)
      .Bytes("used_memory_peak", peak)
      .Add("used_memory_peak_perc", absl::StrFormat("%.2f%%", Ratio(used, peak) * 100))
      .Zeros({"used_memory_overhead", "used_memory_startup"})
      .Add("used_memory_dataset", used)
      .Add("used_memory_dataset_perc", used == 0 ? "0.00%" : "100.00%")
      .Add("allocator_allocated", memory.allocated_bytes)
      .Add("allocator_active", memory.active_bytes)
      .Add("allocator_resident", memory.resident_bytes)
      .Bytes("total_system_memory", memory.system_bytes)
      .Add("used_memory_lua", scripts.interpreter_bytes)
      .Add("used_memory_vm_eval", scripts.interpreter_bytes)
      .Add("used_memory_lua_human", HumanBytes(scripts.interpreter_bytes))
      .Add("used_memory_scripts_eval", scripts.text_bytes)
      .Add("number_of_cached_scripts", scripts.scripts)
      .Add("number_of_functions", scripts.functions)
      .Add("number_of_libraries", scripts.libraries)
      .Add("used_memory_vm_functions", scripts.function_interpreter_bytes)
      .Bytes("used_memory_vm_total", scripts.interpreter_bytes + scripts.function_interpreter_bytes)
      .Add("used_memory_functions", scripts.library_bytes)
      .Bytes("used_memory_scripts", scripts.text_bytes + scripts.library_bytes)
      .Bytes("maxmemory", static_cast<uint64_t>(Get(c.services.settings.maxmemory_bytes)))
      .Add("maxmemory_policy", c.services.settings.Text("maxmemory-policy"))
      .Fixed("allocator_frag_ratio", Ratio(memory.active_bytes, memory.allocated_bytes))
      .Add("allocator_frag_bytes", Difference(memory.active_bytes, memory.allocated_bytes))
      .Fixed("allocator_rss_ratio", Ratio(memory.resident_bytes, memory.active_bytes))
      .Add("allocator_rss_bytes", Difference(memory.resident_bytes, memory.active_bytes))
      .Fixed("rss_overhead_ratio", Ratio(memory.rss_bytes, memory.resident_bytes))
      .Add("rss_overhead_bytes", Difference(memory.rss_bytes, memory.resident_bytes))
      .Fixed("mem_fragmentation_ratio", Ratio(memory.rss_bytes, used))
      .Add("mem_fragmentation_bytes", Difference(memory.rss_bytes, used))
      .Zeros({"mem_not_counted_for_evict", "mem_replication_backlog"})
      .Add("mem_clients_slaves", clients.replica_bytes)
      .Add("mem_clients_normal", clients.normal_bytes)
      .Zeros({"mem_cluster_links"})
      .Add("mem_aof_buffer", log_buffer_bytes)
      .Add("mem_allocator", AllocatorName())
      .Add("huge_pages", store.huge_pages ? "yes" : store.why_not)
      .Add("active_defrag_running", store.compacting ? 1 : 0)
      .Zeros({"lazyfree_pending_objects"})
      .Add("lazyfreed_objects", c.services.store.stats().Get(storage::StorageStats::kLazyFreed));
}

void InfoStats(Context& c, std::string& out) {
  const StatsTotals totals = c.services.stats.Totals();
  const ServerStats::Rates rates = c.services.stats.Instantaneous();
  const storage::StorageStats& storage = c.services.store.stats();
  InfoLines(out)
      .Add("total_connections_received", totals.connections)
      .Add("total_commands_processed", totals.commands)
      .Add("instantaneous_ops_per_sec", rates.commands_per_s)
      .Add("total_net_input_bytes", totals.read_bytes)
      .Add("total_net_output_bytes", totals.written_bytes)
      .Zeros({"total_net_repl_input_bytes", "total_net_repl_output_bytes"})
      .Fixed("instantaneous_input_kbps", rates.read_kbps)
      .Fixed("instantaneous_output_kbps", rates.written_kbps)
      .Fixed("instantaneous_input_repl_kbps", 0)
      .Fixed("instantaneous_output_repl_kbps", 0)
      .Add("rejected_connections", totals.rejected_connections)
      .Zeros({"sync_full", "sync_partial_ok", "sync_partial_err"})
      .Add("expired_keys", storage.Get(storage::StorageStats::kExpired))
      .Fixed("expired_stale_perc", 0)
      .Zeros({"expired_time_cap_reached_count"})
      .Add("evicted_keys", storage.Get(storage::StorageStats::kEvicted))
      .Add("evicted_clients", totals.evicted_clients)
      .Add("keyspace_hits", storage.Get(storage::StorageStats::kHits))
      .Add("keyspace_misses", storage.Get(storage::StorageStats::kMisses))
      .Add("pubsub_channels", c.services.pubsub->channels(ChannelSpace::kPlain))
      .Add("pubsub_patterns", c.services.pubsub->patterns())
      .Add("pubsubshard_channels", c.services.pubsub->channels(ChannelSpace::kShard))
      .Zeros({"latest_fork_usec", "total_forks", "migrate_cached_sockets", "slave_expires_tracked_keys",
              "active_defrag_hits", "active_defrag_misses", "active_defrag_key_hits",
              "active_defrag_key_misses"})
      .Add("tracking_total_keys", c.services.tracking->keys())
      .Add("tracking_total_items", c.services.tracking->items())
      .Add("tracking_total_prefixes", c.services.tracking->prefixes())
      .Add("unexpected_error_replies", 0)
      .Add("total_error_replies", totals.error_replies)
      .Add("dump_payload_sanitizations", 0)
      .Add("total_reads_processed", totals.reads)
      .Add("total_writes_processed", totals.writes)
      .Zeros({"io_threaded_reads_processed", "io_threaded_writes_processed"})
      .Add("client_query_buffer_limit_disconnections", totals.query_limit_disconnections)
      .Add("client_output_buffer_limit_disconnections", totals.output_limit_disconnections);
}

void InfoReplication(Context& c, std::string& out) {
  const std::vector<std::shared_ptr<Peer>> replicas = ReplicasOf(c.services.clients);
  InfoLines lines(out);
  lines.Add("role", "master").Add("connected_slaves", replicas.size());
  for (size_t i = 0; i < replicas.size(); ++i) {
    const ClientInfo& info = replicas[i]->info();
    const uint64_t offset = info.replica_offset.load(std::memory_order_relaxed);
    lines.Add(absl::StrCat("slave", i),
              absl::StrCat("ip=", AddressOfReplica(info), ",port=", info.replica_port.load(std::memory_order_relaxed),
                           ",state=online,offset=", offset,
                           ",lag=", (SteadyMs() - info.replica_heard_ms.load(std::memory_order_relaxed)) / 1000));
  }
  lines.Add("master_failover_state", "no-failover")
      .Add("master_replid", c.services.run_id)
      .Add("master_replid2", std::string(40, '0'))
      .Add("master_repl_offset", c.services.persistence == nullptr ? 0 : c.services.persistence->replication_offset())
      .Add("second_repl_offset", -1)
      .Zeros({"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset",
              "repl_backlog_histlen"});
}

void InfoCpu(Context&, std::string& out) {
  const ProcessCpu cpu = ReadProcessCpu();
  InfoLines(out)
      .Fixed("used_cpu_sys", cpu.system_s, 6)
      .Fixed("used_cpu_user", cpu.user_s, 6)
      .Fixed("used_cpu_sys_children", cpu.children_system_s, 6)
      .Fixed("used_cpu_user_children", cpu.children_user_s, 6);
}

void InfoModules(Context&, std::string&) {}

void InfoCommandStats(Context& c, std::string& out) {
  for (const CommandEntry* entry : c.services.commands.all()) {
    const CommandTotals t = c.services.stats.Command(entry->ordinal);
    if (t.calls == 0 && t.failed == 0 && t.rejected == 0) continue;
    absl::StrAppendFormat(
        &out,
        "cmdstat_%s:calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d\r\n",
        entry->full_name, t.calls, t.usec, Ratio(t.usec, t.calls), t.rejected, t.failed);
  }
}

void InfoErrorStats(Context& c, std::string& out) {
  for (const ErrorTotals& error : c.services.stats.Errors()) {
    absl::StrAppend(&out, "errorstat_", error.code, ":count=", error.count, "\r\n");
  }
}

void InfoLatencyStats(Context& c, std::string& out) {
  const std::vector<double> percentiles = c.services.settings.percentiles();
  if (!Get(c.services.settings.latency_tracking)) return;
  for (const CommandEntry* entry : c.services.commands.all()) {
    const CommandTotals totals = c.services.stats.Command(entry->ordinal);
    if (totals.calls == 0) continue;
    absl::StrAppend(&out, "latency_percentiles_usec_", entry->full_name, ":");
    absl::string_view comma = "";
    for (double p : percentiles) {
      absl::StrAppendFormat(&out, "%sp%g=%.3f", comma, p, totals.Percentile(p));
      comma = ",";
    }
    out += "\r\n";
  }
}

void InfoCluster(Context&, std::string& out) { InfoLines(out).Add("cluster_enabled", 0); }

void InfoKeyspace(Context& c, std::string& out) {
  constexpr uint64_t kSampled = 32;  // keys whose lifetime stands for all of a database
  storage::Unit& data = c.Data();
  for (storage::DbIndex db = 0; db < storage::kDatabases; ++db) {
    const uint64_t keys = data.Size(db);
    if (keys == 0) continue;
    int64_t sum_ms = 0;
    int64_t counted = 0;
    const int64_t now_ms = data.now_ms();
    data.Scan(db, 0, kSampled, [&](absl::string_view, const storage::KeyView& value) {
      if (value.deadline_ms == storage::kNoDeadline) return;
      sum_ms += (value.deadline_ms - now_ms) /
                static_cast<int64_t>(kSampled);  // divided first: sums cannot overflow
      ++counted;
    });
    const int64_t average_ms =
        counted == 0 ? 0 : std::max<int64_t>(0, sum_ms / counted * static_cast<int64_t>(kSampled));
    absl::StrAppend(&out, "db", db, ":keys=", keys, ",expires=", data.SizeWithDeadline(db),
                    ",avg_ttl=", average_ms, "\r\n");
  }
}

}  // namespace idemd::server
