// INFO persistence: what is on disk and how far what is under way has come; fields as Redis 7.0 has
// them, then idemd's own.
#include <chrono>
#include <string>

#include "server/admin/settings.h"
#include "server/commands/info_lines.h"
#include "server/commands/info_sections.h"
#include "server/commands/persistence_control.h"
#include "server/steady_time.h"

namespace idemd::server {
namespace {

const char* OkOrError(bool ok) { return ok ? "ok" : "err"; }

int64_t SecondsSince(int64_t steady_ms) { return (SteadyMs() - steady_ms) / 1000; }

// As of a server that keeps nothing on disk.
PersistenceStatus NothingOnDisk(Context& c) {
  PersistenceStatus status;
  status.last_save_s = c.services.started_ms / 1000;
  status.changes_since_save = c.services.store.stats().Get(storage::StorageStats::kChanges);
  return status;
}

void AppendLog(const PersistenceStatus& s, InfoLines& lines) {
  lines.Add("aof_current_size", s.log_bytes)
      .Add("aof_base_size", s.log_base_bytes)
      .Add("aof_pending_rewrite", s.rewrite_scheduled ? 1 : 0)
      .Add("aof_buffer_length", s.log_buffer_bytes)
      .Zeros({"aof_pending_bio_fsync", "aof_delayed_fsync"});
}

void AppendLoading(Context& c, const LoadProgress& p, InfoLines& lines) {
  lines.Add("loading_start_time", p.started_s)
      .Add("loading_total_bytes", p.bytes_total)
      .Add("loading_rdb_used_mem", c.services.store.memory_bytes())
      .Add("loading_loaded_bytes", p.bytes_done)
      .Fixed("loading_loaded_perc", p.percent())
      .Add("loading_eta_seconds", p.eta_s)
      .Add("idem_loading_keys", p.keys_loaded);
}

// C9 of the durability rules: what a reply promises depends on the policy, so it is told.
void AppendOwn(Context& c, const PersistenceStatus& s, InfoLines& lines) {
  lines.Add("idem_appendfsync", s.log_enabled ? c.services.settings.Text("appendfsync") : "off")
      .Add("idem_log_lsn", s.last_lsn)
      .Add("idem_log_written_lsn", s.written_lsn)
      .Add("idem_log_durable_lsn", s.durable_lsn)
      .Add("idem_log_syncs", s.syncs)
      .Add("idem_last_recovery_torn_bytes", s.torn_bytes_cut)
      .Add("idem_save_scheduled", s.save_scheduled ? 1 : 0)
      .Add("idem_last_snapshot_error", s.last_error);
}

}  // namespace

void InfoPersistence(Context& c, std::string& out) {
  const PersistenceControl* const disk = c.services.persistence;
  const PersistenceStatus s = disk == nullptr ? NothingOnDisk(c) : disk->status();
  const bool loading = disk != nullptr && disk->loading();
  const bool snapshot = s.saving || s.rewriting;
  const int64_t snapshot_s = snapshot ? SecondsSince(s.snapshot_started_ms) : -1;
  InfoLines lines(out);
  lines.Add("loading", loading ? 1 : 0)
      .Zeros({"async_loading", "current_cow_peak", "current_cow_size", "current_cow_size_age"})
      .Fixed("current_fork_perc", 0)
      .Add("current_save_keys_processed", s.snapshot_keys_done)
      .Add("current_save_keys_total", s.snapshot_keys_total)
      .Add("rdb_changes_since_last_save", s.changes_since_save)
      .Add("rdb_bgsave_in_progress", s.saving ? 1 : 0)
      .Add("rdb_last_save_time", s.last_save_s)
      .Add("rdb_last_bgsave_status", OkOrError(s.last_save_ok))
      .Add("rdb_last_bgsave_time_sec", s.last_save_took_s)
      .Add("rdb_current_bgsave_time_sec", s.saving ? snapshot_s : -1)
      .Add("rdb_saves", s.saves)
      .Add("rdb_last_cow_size", 0)
      .Add("rdb_last_load_keys_expired", s.loaded_expired)
      .Add("rdb_last_load_keys_loaded", s.loaded_keys)
      .Add("aof_enabled", s.log_enabled ? 1 : 0)
      .Add("aof_rewrite_in_progress", s.rewriting ? 1 : 0)
      .Add("aof_rewrite_scheduled", s.rewrite_scheduled ? 1 : 0)
      .Add("aof_last_rewrite_time_sec", s.last_rewrite_took_s)
      .Add("aof_current_rewrite_time_sec", s.rewriting ? snapshot_s : -1)
      .Add("aof_last_bgrewrite_status", OkOrError(s.last_rewrite_ok))
      .Add("aof_rewrites", s.rewrites)
      .Add("aof_rewrites_consecutive_failures", s.rewrite_failures_in_a_row)
      .Add("aof_last_write_status", OkOrError(s.last_write_ok))
      .Zeros({"aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size"});
  if (s.log_enabled) AppendLog(s, lines);
  if (loading) AppendLoading(c, disk->progress(), lines);
  AppendOwn(c, s, lines);
}

}  // namespace idemd::server
