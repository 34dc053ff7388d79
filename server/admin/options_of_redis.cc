// The options of Redis 7.0 that this version takes and shows but does nothing about, so that a file
// made for Redis starts idemd; each is named in the log when it is set.
#include <climits>

#include "server/admin/option.h"

namespace idemd::server {
namespace {

using S = Settings;
using T = OptionType;

constexpr int64_t kIntMin = INT_MIN;
constexpr int64_t kIntMax = INT_MAX;

constexpr OptionSpec Bool(const char* name, const char* initial, uint8_t flags = 0,
                          const char* alias = nullptr) {
  return {.name = name,
          .type = T::kBool,
          .initial = initial,
          .alias = alias,
          .flags = flags,
          .effect = Effect::kNone};
}
constexpr OptionSpec Flag(const char* name, const char* initial, std::atomic<bool> S::*flag) {
  return {
      .name = name, .type = T::kBool, .initial = initial, .effect = Effect::kNone, .flag = flag};
}
constexpr OptionSpec Text(const char* name, const char* initial = "", uint8_t flags = 0,
                          const char* alias = nullptr) {
  return {.name = name,
          .type = T::kText,
          .initial = initial,
          .alias = alias,
          .flags = flags,
          .effect = Effect::kNone};
}
constexpr OptionSpec Integer(const char* name, const char* initial, int64_t min = 0,
                             int64_t max = kIntMax, const char* alias = nullptr, uint8_t flags = 0,
                             std::atomic<int64_t> S::*number = nullptr) {
  return {.name = name,
          .type = T::kInteger,
          .initial = initial,
          .min = min,
          .max = max,
          .alias = alias,
          .flags = flags,
          .effect = Effect::kNone,
          .number = number};
}
constexpr OptionSpec Memory(const char* name, const char* initial, int64_t min = 0,
                            const char* alias = nullptr) {
  return {.name = name,
          .type = T::kMemory,
          .initial = initial,
          .min = min,
          .alias = alias,
          .effect = Effect::kNone};
}
constexpr OptionSpec Enum(const char* name, const char* initial, const char* words,
                          uint8_t flags = 0) {
  return {.name = name,
          .type = T::kEnum,
          .initial = initial,
          .words = words,
          .flags = flags,
          .effect = Effect::kNone};
}
// Asking for more than the default would promise something that is not there.
constexpr OptionSpec Only(OptionSpec option, const char* limit) {
  option.effect = Effect::kDefaultOnly;
  option.limit = limit;
  return option;
}

constexpr int64_t kLong = INT64_MAX;
constexpr const char* kNoReplication = "this version does not replicate";

constexpr OptionSpec kOptions[] = {
    // memory and encodings
    Integer("maxmemory-eviction-tenacity", "10", 0, 100),
    Bool("lazyfree-lazy-eviction", "no"),
    Bool("lazyfree-lazy-expire", "no"),
    Bool("lazyfree-lazy-server-del", "no"),
    Flag("lazyfree-lazy-user-del", "no", &S::lazyfree_lazy_user_del),
    Flag("lazyfree-lazy-user-flush", "no", &S::lazyfree_lazy_user_flush),
    Integer("active-expire-effort", "1", 1, 10),
    Only(Bool("activedefrag", "no"), "this version does not move values to defragment memory"),
    Memory("active-defrag-ignore-bytes", "104857600", 1),
    Integer("active-defrag-cycle-min", "1", 1, 99),
    Integer("active-defrag-cycle-max", "25", 1, 99),
    Integer("active-defrag-threshold-lower", "10", 0, 1000),
    Integer("active-defrag-threshold-upper", "100", 0, 1000),
    Integer("active-defrag-max-scan-fields", "1000", 1, kLong),
    Bool("activerehashing", "yes"),
    Bool("jemalloc-bg-thread", "yes"),
    Integer("list-compress-depth", "0"),

    // events and scripts
    Enum("enable-module-command", "no", "no yes local", kImmutable),

    // the process
    Integer("hz", "10", 0, kIntMax, nullptr, 0, &S::hz),
    Bool("dynamic-hz", "yes"),
    Enum("supervised", "no", "upstart systemd auto no", kImmutable),
    Bool("always-show-logo", "no", kImmutable),
    Bool("set-proc-title", "yes", kImmutable),
    Text("proc-title-template", "{title} {listen-addr} {server-mode}"),
    Only(Bool("syslog-enabled", "no", kImmutable), "the log goes to standard output or a file"),
    Text("syslog-ident", "redis", kImmutable),
    Enum("syslog-facility", "local0",
         "user local0 local1 local2 local3 local4 local5 local6 local7", kImmutable),
    Enum("oom-score-adj", "no", "no yes relative absolute"),
    {.name = "oom-score-adj-values",
     .type = T::kOomScores,
     .initial = "0 200 800",
     .flags = kManyWords,
     .effect = Effect::kNone},
    Bool("disable-thp", "yes", kImmutable),
    Bool("crash-log-enabled", "yes"),
    Bool("crash-memcheck-enabled", "yes"),
    Bool("use-exit-on-panic", "no", kHidden),
    Integer("watchdog-period", "0", 0, kIntMax, nullptr, kHidden),
    Integer("shutdown-timeout", "10"),
    Text("ignore-warnings"),
    Text("server_cpulist", "", kImmutable),
    Text("bio_cpulist", "", kImmutable),
    Text("aof_rewrite_cpulist", "", kImmutable),
    Text("bgsave_cpulist", "", kImmutable),
    Bool("io-threads-do-reads", "no", kImmutable),
    Text("bind-source-addr"),
    Integer("socket-mark-id", "0", 0, UINT_MAX, nullptr, kImmutable),
    Bool("lua-enable-deprecated-api", "no", kHidden | kImmutable),

    // files
    Bool("rdb-del-sync-files", "no"),
    Bool("rdb-save-incremental-fsync", "yes"),
    Enum("sanitize-dump-payload", "no", "no yes clients"),
    Bool("aof-load-truncated", "yes"),
    Bool("aof-timestamp-enabled", "no"),
    Bool("aof-disable-auto-gc", "no"),
    Bool("aof-rewrite-incremental-fsync", "yes"),
    Integer("rdb-key-save-delay", "0", kIntMin, kIntMax, nullptr, kHidden),
    Integer("key-load-delay", "0", kIntMin, kIntMax, nullptr, kHidden, &S::key_load_delay_us),
    Integer("loading-process-events-interval-bytes", "2097152", 1024, kIntMax, nullptr, kHidden),

    // replication
    Only({.name = "replicaof",
          .type = T::kReplicaOf,
          .alias = "slaveof",
          .flags = kImmutable | kManyWords},
         kNoReplication),
    Text("masteruser", "", kSecret),
    Text("masterauth", "", kSecret),
    Bool("replica-serve-stale-data", "yes", 0, "slave-serve-stale-data"),
    Bool("replica-read-only", "yes", 0, "slave-read-only"),
    Bool("replica-lazy-flush", "no", 0, "slave-lazy-flush"),
    Bool("replica-ignore-maxmemory", "yes", 0, "slave-ignore-maxmemory"),
    Integer("replica-priority", "100", 0, kIntMax, "slave-priority"),
    Bool("replica-announced", "yes"),
    Text("replica-announce-ip", "", 0, "slave-announce-ip"),
    Integer("replica-announce-port", "0", 0, 65535, "slave-announce-port"),
    Bool("replica-ignore-disk-write-errors", "no"),
    Bool("repl-diskless-sync", "yes"),
    Integer("repl-diskless-sync-delay", "5"),
    Integer("repl-diskless-sync-max-replicas", "0"),
    Enum("repl-diskless-load", "disabled", "disabled on-empty-db swapdb"),
    Bool("repl-disable-tcp-nodelay", "no"),
    Integer("repl-timeout", "60", 1),
    Integer("repl-ping-replica-period", "10", 1, kIntMax, "repl-ping-slave-period"),
    Memory("repl-backlog-size", "1048576", 1),
    Integer("repl-backlog-ttl", "3600", 0, kLong),
    {.name = "min-replicas-to-write",
     .type = T::kInteger,
     .initial = "0",
     .min = 0,
     .max = kIntMax,
     .alias = "min-slaves-to-write",
     .group = "replication",
     .doc = "Writes are refused while fewer replicas than this follow.",
     .number = &S::min_replicas_to_write},
    {.name = "min-replicas-max-lag",
     .type = T::kInteger,
     .initial = "10",
     .min = 0,
     .max = kIntMax,
     .alias = "min-slaves-max-lag",
     .unit = "seconds",
     .group = "replication",
     .doc = "A replica that has not been heard of for longer than this does not follow.",
     .number = &S::min_replicas_max_lag_s},
    Enum("propagation-error-behavior", "ignore", "ignore panic panic-on-replicas"),

    // cluster
    Only(Bool("cluster-enabled", "no", kImmutable), "this version has no cluster mode"),
    Text("cluster-config-file", "nodes.conf", kImmutable),
    Integer("cluster-node-timeout", "15000", 0, kLong),
    Integer("cluster-port", "0", 0, 65535, nullptr, kImmutable),
    Text("cluster-announce-ip"),
    Integer("cluster-announce-port", "0", 0, 65535),
    Integer("cluster-announce-tls-port", "0", 0, 65535),
    Integer("cluster-announce-bus-port", "0", 0, 65535),
    Text("cluster-announce-hostname"),
    Enum("cluster-preferred-endpoint-type", "ip", "ip hostname unknown-endpoint"),
    Bool("cluster-require-full-coverage", "yes"),
    Bool("cluster-allow-reads-when-down", "no"),
    Bool("cluster-allow-pubsubshard-when-down", "yes"),
    Bool("cluster-allow-replica-migration", "yes"),
    Integer("cluster-migration-barrier", "1"),
    Integer("cluster-replica-validity-factor", "10", 0, kIntMax, "cluster-slave-validity-factor"),
    Bool("cluster-replica-no-failover", "no", 0, "cluster-slave-no-failover"),
    Memory("cluster-link-sendbuf-limit", "0"),

    // TLS: what would encrypt links that idemd does not make
    Only(Bool("tls-cluster", "no"), "there is no cluster to talk to"),
    Only(Bool("tls-replication", "no"), "idemd follows nobody; a replica that follows it may connect to tls-port"),
    Text("tls-client-cert-file"),
    Text("tls-client-key-file"),
    Text("tls-client-key-file-pass", "", kSecret),
};

}  // namespace

absl::Span<const OptionSpec> OptionsOfRedis() { return kOptions; }

}  // namespace idemd::server
