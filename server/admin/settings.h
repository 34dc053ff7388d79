// What can be set: one table of options, and the values of this process.
//
// From the table come the parser of redis.conf files, `--name value` on the command line, CONFIG
// GET / SET / REWRITE,
// `--help` and docs/settings.md. Every option keeps its canonical text (what CONFIG GET shows);
// those that a request or a loop looks at are also public atomics, read without a lock.
//
// Threads   Load() before the server runs. Everything else from any thread: texts under a mutex;
// Set() and Rewrite()
//           one at a time. Hooks run on the thread that calls Set(), and may read settings but not
//           change them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// The values of the options that are words, in the order of their names in the table.
enum LogLevel : int64_t { kLogDebug, kLogVerbose, kLogNotice, kLogWarning, kLogNothing };
enum MaxmemoryPolicy : int64_t {
  kVolatileLru,
  kVolatileLfu,
  kVolatileRandom,
  kVolatileTtl,
  kAllkeysLru,
  kAllkeysLfu,
  kAllkeysRandom,
  kNoEviction,
};
enum IoBackend : int64_t { kIoAuto, kIoEpoll, kIoUring };
enum AclPubsubDefault : int64_t { kAllChannels, kResetChannels };
enum Appendfsync : int64_t { kFsyncAlways, kFsyncEverysec, kFsyncNo };

inline constexpr bool IsLfu(int64_t policy) {
  return policy == kVolatileLfu || policy == kAllkeysLfu;
}

// Bits of notify-keyspace-events, one per letter, in this order: K E g $ l s h z x e t m d n.
enum NotifyClass : int64_t {
  kNotifyKeyspace = 1 << 0,
  kNotifyKeyevent = 1 << 1,
  kNotifyGeneric = 1 << 2,
  kNotifyString = 1 << 3,
  kNotifyList = 1 << 4,
  kNotifySet = 1 << 5,
  kNotifyHash = 1 << 6,
  kNotifyZset = 1 << 7,
  kNotifyExpired = 1 << 8,
  kNotifyEvicted = 1 << 9,
  kNotifyStream = 1 << 10,
  kNotifyKeyMiss = 1 << 11,
  kNotifyModule = 1 << 12,
  kNotifyNew = 1 << 13,
};

// One class of client-output-buffer-limit; 0: no limit.
struct OutputLimit {
  std::atomic<int64_t> hard_bytes{0};
  std::atomic<int64_t> soft_bytes{0};
  std::atomic<int64_t> soft_seconds{0};
};

struct OptionSpec;  // server/admin/option.h

class Settings {
 public:
  Settings();  // every option at its default
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  // --- read without a lock; written by Load() and Set() alone, relaxed: each stands for itself.
  // The defaults are those of the table, set by the constructor. Units are part of the name where
  // they are not plain counts.

  // network
  std::atomic<int64_t> port{0};
  std::atomic<int64_t> unixsocketperm{0};
  std::atomic<int64_t> tcp_backlog{0};
  std::atomic<int64_t> tcp_keepalive_s{0};
  std::atomic<int64_t> timeout_s{0};
  std::atomic<int64_t> maxclients{0};
  std::atomic<int64_t> io_threads{0};
  std::atomic<int64_t> io_backend{kIoEpoll};
  std::atomic<bool> io_uring_in_use{false};  // what came of io-backend; written when the server starts
  std::atomic<bool> protected_mode{true};
  // Connections have to log in: requirepass is not empty. Who keeps users says more: the default user needs a password,
  // or is off.
  std::atomic<bool> has_password{false};
  std::atomic<int64_t> acl_pubsub_default{kResetChannels};
  std::atomic<int64_t> acllog_max_len{0};
  std::atomic<int64_t> proto_max_bulk_bytes{0};
  std::atomic<int64_t> proto_max_words{0};
  std::atomic<int64_t> proto_max_reply_bytes{0};
  std::atomic<int64_t> client_query_buffer_bytes{0};
  std::atomic<int64_t> unauthenticated_max_clients{0};
  std::atomic<int64_t> unauthenticated_max_seconds{0};
  std::atomic<int64_t> unauthenticated_query_buffer_bytes{0};
  std::atomic<uint64_t> maxmemory_clients_bytes{0};  // of maxmemory-clients, and of maxmemory if that is a share of it
  OutputLimit output_limit_normal;
  OutputLimit output_limit_replica;
  OutputLimit output_limit_pubsub;
  // general
  std::atomic<int64_t> databases{0};
  std::atomic<int64_t> loglevel{kLogNotice};
  std::atomic<int64_t> hz{0};
  // memory
  std::atomic<int64_t> maxmemory_bytes{0};
  std::atomic<int64_t> maxmemory_policy{kNoEviction};
  std::atomic<int64_t> maxmemory_samples{0};
  std::atomic<int64_t> lfu_log_factor{0};
  std::atomic<int64_t> lfu_decay_minutes{0};
  std::atomic<int64_t> stream_node_max_bytes{0};
  std::atomic<int64_t> stream_node_max_entries{0};
  std::atomic<bool> lazyfree_lazy_user_flush{false};
  std::atomic<bool> lazyfree_lazy_user_del{false};
  // collections
  std::atomic<int64_t> hash_max_listpack_entries{0};
  std::atomic<int64_t> hash_max_listpack_value{0};
  std::atomic<int64_t> set_max_intset_entries{0};
  std::atomic<int64_t> hll_sparse_max_bytes{0};
  std::atomic<int64_t> list_max_listpack_size{0};  // elements; negative: a class of bytes
  std::atomic<int64_t> min_replicas_to_write{0};
  std::atomic<int64_t> min_replicas_max_lag_s{0};
  std::atomic<int64_t> zset_max_listpack_entries{0};
  std::atomic<int64_t> zset_max_listpack_value_bytes{0};
  // watching
  std::atomic<int64_t> slowlog_log_slower_than_us{0};  // negative: off
  std::atomic<int64_t> slowlog_max_len{0};
  std::atomic<int64_t> latency_monitor_threshold_ms{0};  // 0: off
  std::atomic<bool> latency_tracking{true};
  std::atomic<int64_t> busy_reply_threshold_ms{0};  // 0: a script may run for ever
  std::atomic<int64_t> script_memory_bytes_max{0};
  std::atomic<int64_t> script_steps_max{0};
  std::atomic<int64_t> notify_keyspace_events{0};  // NotifyClass bits
  std::atomic<int64_t> tracking_table_max_keys{0};  // 0: no limit
  // durability
  std::atomic<bool> appendonly{true};
  std::atomic<int64_t> appendfsync{kFsyncEverysec};
  std::atomic<bool> has_save_points{true};  // save is not empty
  std::atomic<bool> stop_writes_on_bgsave_error{true};
  std::atomic<int64_t> auto_aof_rewrite_percentage{0};
  std::atomic<int64_t> auto_aof_rewrite_min_bytes{0};
  std::atomic<int64_t> key_load_delay_us{0};
  // idemd's own
  std::atomic<int64_t> idem_token_ttl_ms{0};  // set in seconds
  std::atomic<int64_t> idem_retention_ms{0};  // set in seconds
  std::atomic<int64_t> idem_lease_ms{0};
  std::atomic<int64_t> idem_max_result_bytes{0};
  std::atomic<int64_t> idem_restart_grace_ms{0};
  std::atomic<int64_t> idem_max_namespaces{0};
  std::atomic<int64_t> idem_max_waiters{0};
  std::atomic<int64_t> idem_max_waiters_per_key{0};
  std::atomic<int64_t> idem_max_tokens{0};

  // --- texts
  // The canonical text of an option, as CONFIG GET shows it; "" when there is no such option.
  std::string Text(absl::string_view name) const;
  std::string requirepass() const { return Text("requirepass"); }
  // latency-tracking-info-percentiles, in the order given.
  std::vector<double> percentiles() const;
  // save: pairs of seconds and changes.
  std::vector<std::pair<int64_t, int64_t>> save_points() const;
  // bind: the words, a leading '-' included.
  std::vector<std::string> bind() const;
  // The absolute path of the file that was loaded; "" when there was none.
  std::string file() const;

  // --- start
  // The words after the program's name: `[file.conf] [--name value ...]`, "-" for standard input.
  // On error the message is what Redis prints under its "*** FATAL CONFIG FILE ERROR" head, that
  // head included.
  [[nodiscard]] absl::Status Load(absl::Span<const std::string> arguments);
  // As Load(), from text instead of a file; for tests and tools.
  [[nodiscard]] absl::Status LoadText(absl::string_view text);
  // The words behind each "user" of what was loaded, in order; rules are not looked at here.
  const std::vector<std::vector<std::string>>& users() const { return users_; }
  // Lines that CONFIG REWRITE puts in place of those with "user": words between blanks, quoted where a file needs it. Call it
  // before the server runs.
  void RewriteUsersFrom(std::function<std::vector<std::string>()> lines) { user_lines_ = std::move(lines); }
  // What Load() took but this version does not do, one sentence each, to be logged.
  std::vector<std::string> warnings() const;

  // --- while running
  struct Value {
    std::string name;  // as the caller spelled it, if it was named in full
    std::string text;
  };
  // CONFIG GET: the options that are named or match one of the patterns, each once. An option that
  // has another name counts as two.
  std::vector<Value> Get(absl::Span<const absl::string_view> patterns) const;
  // CONFIG SET: all of the pairs or none. The error's message is the reply without its code word
  // "ERR". A value that is taken but has no effect yet adds a sentence to `warnings`.
  struct SetOptions {
    bool allow_protected =
        false;  // enable-protected-configs lets this client change dir and dbfilename
  };
  [[nodiscard]] absl::Status Set(
      absl::Span<const std::pair<absl::string_view, absl::string_view>> pairs, SetOptions options,
      std::vector<std::string>* warnings = nullptr);
  // CONFIG REWRITE: writes what differs from the defaults into the file, whose comments and order
  // stay.
  [[nodiscard]] absl::Status Rewrite();

  // `hook` runs after one of `names` got another value through Set(): once per Set(), however many
  // of them changed. Its error undoes the whole Set(), and the hooks that ran are run again.
  // Register before the server runs.
  void OnChange(std::vector<std::string> names, std::function<absl::Status()> hook);
  // Runs every hook once, after Load(): brings those who keep copies of settings up to date.
  [[nodiscard]] absl::Status RunHooks();

  // --- descriptions, from the table
  static std::string HelpText();      // idemd --help
  static std::string SettingsPage();  // docs/settings.md
  // A password: not to be shown in the slow log or to monitors.
  static bool IsSecret(absl::string_view name);

 private:
  friend class SettingsLoader;  // settings_file.cc
  struct Hook {
    std::vector<std::string> names;
    std::function<absl::Status()> run;
  };
  // One option's new text, checked, before anything changes.
  struct Change {
    size_t option;
    std::string text;
  };
  // The second half of Set(). `old` and `ran` are what undo() undoes.
  absl::Status Apply(std::vector<Change>& changes, std::vector<Change>& old, std::vector<const Hook*>& ran,
                     absl::FunctionRef<void()> undo, std::vector<std::string>* warnings);
  absl::Status ReadPairs(absl::Span<const std::pair<absl::string_view, absl::string_view>> pairs,
                         SetOptions options, std::vector<Change>* changes) const;
  // Keeps the text, and brings the atomics made from it up to date.
  void Keep(size_t option, std::string text);
  std::string TextOf(size_t option) const;

  mutable storage::Mutex mutex_;  // texts_, file_, warnings_
  storage::Mutex change_mutex_;   // one Set() or Rewrite() at a time; taken before mutex_
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);  // by place in the table
  std::string file_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
  std::vector<Hook> hooks_;
  std::vector<std::vector<std::string>> users_;  // written by Load()
  std::function<std::vector<std::string>()> user_lines_;
};

}  // namespace idemd::server
