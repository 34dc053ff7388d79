// The process: builds the parts, connects them, serves until it is told to stop.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/acl/users.h"
#include "server/admin/latency.h"
#include "server/admin/log.h"
#include "server/admin/native_stats.h"
#include "server/admin/process.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/blocking.h"
#include "server/commands/commands_page.h"
#include "server/commands/pause.h"
#include "server/commands/replicas.h"
#include "server/commands/replay.h"
#include "server/commands/scripts.h"
#include "server/commands/services.h"
#include "server/commands/shutdown.h"
#include "server/commands/table.h"
#include "server/journal/persistence.h"
#include "server/net/outbound_threads.h"
#include "server/net/server.h"
#include "server/pubsub/event_router.h"
#include "server/pubsub/pubsub.h"
#include "server/pubsub/tracking.h"
#include "server/steady_time.h"
#include "server/ticker.h"
#include "server/version.h"
#include "storage/clock.h"
#include "storage/collection/hash.h"
#include "storage/collection/set.h"
#include "storage/collection/sorted_set.h"
#include "storage/fs.h"
#include "storage/store.h"
#include "storage/token/token.h"

// Read by jemalloc, where it is linked: an idle server gives freed memory back without being asked.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "background_thread:true,dirty_decay_ms:5000,muzzy_decay_ms:0";
}

namespace idemd::server {
namespace {

constexpr size_t kRunIdChars = 40;
constexpr std::chrono::milliseconds kSamplePeriod{
    100};  // INFO's rates are made of samples this far apart
constexpr int kSamplesPerSecond = 10;
// A load that is over this soon is never seen: nobody is let in before.
constexpr std::chrono::milliseconds kLoadUnseen{200};
constexpr int kExitUsage = 64;

std::string VersionText() {
  return absl::StrCat("idemd v=", kIdemdVersion, " redis=", kRedisVersion, " bits=64");
}

// Prints what a word on the command line asks for, instead of serving.
bool Printed(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return false;
  const std::string& word = arguments[0];
  std::string text;
  if (word == "--version" || word == "-v") text = VersionText() + "\n";
  if (word == "--help" || word == "-h") text = Settings::HelpText();
  if (word == "--settings-page") text = Settings::SettingsPage();
  if (word == "--commands-page") text = CommandsPage(CommandTable());
  std::fwrite(text.data(), 1, text.size(), stdout);
  return !text.empty();
}

// `--check DIR` and `--repair DIR`.
std::optional<int> Examined(const std::vector<std::string>& arguments) {
  if (arguments.empty() || (arguments[0] != "--check" && arguments[0] != "--repair"))
    return std::nullopt;
  if (arguments.size() != 2) {
    std::fprintf(stderr, "Usage: idemd %s DIR\n", arguments[0].c_str());
    return kExitUsage;
  }
  const std::unique_ptr<storage::FileSystem> files = storage::SystemFiles();
  std::string verdict;
  const int code = arguments[0] == "--check" ? CheckDirectory(*files, arguments[1], &verdict)
                                             : RepairDirectory(*files, arguments[1], &verdict);
  std::printf("%s\n", verdict.c_str());
  return code;
}

storage::EvictionPolicy EvictionOf(int64_t policy) {
  switch (policy) {
    case kVolatileLru:
      return storage::EvictionPolicy::kVolatileLru;
    case kVolatileLfu:
      return storage::EvictionPolicy::kVolatileLfu;
    case kVolatileRandom:
      return storage::EvictionPolicy::kVolatileRandom;
    case kVolatileTtl:
      return storage::EvictionPolicy::kVolatileTtl;
    case kAllkeysLru:
      return storage::EvictionPolicy::kAllLru;
    case kAllkeysLfu:
      return storage::EvictionPolicy::kAllLfu;
    case kAllkeysRandom:
      return storage::EvictionPolicy::kAllRandom;
    default:
      return storage::EvictionPolicy::kNone;
  }
}

// Those who keep copies of settings, because they may not know of Settings or read them more often
// than that is cheap.
void ConnectSettings(Settings& settings, storage::Store& store, SlowLog& slowlog,
                     LatencyMonitor& latency, NativeStats& native) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  settings.OnChange({"loglevel"}, [&settings] {
    SetLogLevel(settings.loglevel.load(kRelaxed));
    return absl::OkStatus();
  });
  settings.OnChange(
      {"slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold"}, [&] {
        slowlog.slower_than_us.store(settings.slowlog_log_slower_than_us.load(kRelaxed), kRelaxed);
        slowlog.max_len.store(settings.slowlog_max_len.load(kRelaxed), kRelaxed);
        latency.threshold_ms.store(settings.latency_monitor_threshold_ms.load(kRelaxed), kRelaxed);
        return absl::OkStatus();
      });
  settings.OnChange({"maxmemory-policy", "maxmemory-samples", "lfu-log-factor", "lfu-decay-time"}, [&] {
    constexpr int64_t kSamplesMax = 64;  // more make no better choice, and each costs a cache miss
    store.SetEviction(EvictionOf(settings.maxmemory_policy.load(kRelaxed)),
                      static_cast<uint32_t>(std::min(settings.maxmemory_samples.load(kRelaxed), kSamplesMax)),
                      {static_cast<uint32_t>(settings.lfu_log_factor.load(kRelaxed)),
                       static_cast<uint32_t>(settings.lfu_decay_minutes.load(kRelaxed))});
    return absl::OkStatus();
  });
  settings.OnChange(
      {"idem-token-ttl", "idem-retention", "idem-lease", "idem-max-result", "idem-max-waiters",
       "idem-max-waiters-per-key", "idem-max-namespaces", "maxmemory"},
      [&] {
        storage::Store::Settings& to = store.settings();
        to.token_ttl_ms.store(settings.idem_token_ttl_ms.load(kRelaxed), kRelaxed);
        to.retention_ms.store(settings.idem_retention_ms.load(kRelaxed), kRelaxed);
        to.lease_ms.store(settings.idem_lease_ms.load(kRelaxed), kRelaxed);
        to.max_result_bytes.store(settings.idem_max_result_bytes.load(kRelaxed), kRelaxed);
        to.max_waiters.store(settings.idem_max_waiters.load(kRelaxed), kRelaxed);
        to.max_waiters_per_key.store(settings.idem_max_waiters_per_key.load(kRelaxed), kRelaxed);
        to.maxmemory_bytes.store(static_cast<uint64_t>(settings.maxmemory_bytes.load(kRelaxed)),
                                 kRelaxed);
        native.set_max_namespaces(static_cast<size_t>(settings.idem_max_namespaces.load(kRelaxed)));
        return absl::OkStatus();
      });
}

// Settings and storage have the same bits for the letters of notify-keyspace-events.
constexpr storage::EventClasses ClassesOf(int64_t bits) {
  static_assert(kNotifyKeyspace == storage::Bit(storage::EventClass::kKeyspace) &&
                kNotifyGeneric == storage::Bit(storage::EventClass::kGeneric) &&
                kNotifyStream == storage::Bit(storage::EventClass::kStream) &&
                kNotifyKeyMiss == storage::Bit(storage::EventClass::kKeyMiss) &&
                kNotifyModule == storage::Bit(storage::EventClass::kModule) &&
                kNotifyNew == storage::Bit(storage::EventClass::kNew));
  return static_cast<storage::EventClasses>(bits);
}

// From which size on collections take another form.
void ConnectCollections(Settings& settings) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  settings.OnChange(
      {"hash-max-listpack-entries", "hash-max-listpack-value", "set-max-intset-entries", "zset-max-listpack-entries",
       "zset-max-listpack-value"},
      [&settings] {
        const auto pass = [](const std::atomic<int64_t>& from, std::atomic<uint64_t>& to) {
          to.store(static_cast<uint64_t>(from.load(kRelaxed)), kRelaxed);
        };
        pass(settings.hash_max_listpack_entries, storage::Hash::small_fields_max);
        pass(settings.hash_max_listpack_value, storage::Hash::small_bytes_max);
        pass(settings.set_max_intset_entries, storage::Set::intset_members_max);
        pass(settings.zset_max_listpack_entries, storage::SortedSet::small_members_max);
        pass(settings.zset_max_listpack_value_bytes, storage::SortedSet::small_bytes_max);
        return absl::OkStatus();
      });
}

SyncPolicy SyncPolicyOf(const Settings& settings) {
  switch (settings.appendfsync.load(std::memory_order_relaxed)) {
    case kFsyncAlways:
      return SyncPolicy::kAlways;
    case kFsyncNo:
      return SyncPolicy::kNever;
    default:
      return SyncPolicy::kEverySecond;
  }
}

std::vector<SavePoint> SavePointsOf(const Settings& settings) {
  std::vector<SavePoint> points;
  for (const auto& [seconds, changes] : settings.save_points())
    points.push_back({seconds, static_cast<uint64_t>(changes)});
  return points;
}

PersistenceOptions OptionsFrom(const Settings& settings) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  PersistenceOptions options;
  options.directory = settings.Text("dir");
  options.log_directory = settings.Text("appenddirname");
  options.log_name = settings.Text("appendfilename");
  options.dump_name = settings.Text("dbfilename");
  options.log = settings.appendonly.load(kRelaxed);
  options.sync = SyncPolicyOf(settings);
  options.save_points = SavePointsOf(settings);
  options.rewrite_percentage = settings.auto_aof_rewrite_percentage.load(kRelaxed);
  options.rewrite_bytes_min =
      static_cast<uint64_t>(settings.auto_aof_rewrite_min_bytes.load(kRelaxed));
  options.restart_grace_ms = settings.idem_restart_grace_ms.load(kRelaxed);
  options.load_delay_us = settings.key_load_delay_us.load(kRelaxed);
  return options;
}

// What may change while running; at start, persistence gets all of it as options.
void ConnectPersistence(Settings& settings, Persistence& persistence) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const auto on_change = [&](std::vector<std::string> names, std::function<absl::Status()> apply) {
    settings.OnChange(std::move(names), [&persistence, apply = std::move(apply)] {
      if (persistence.loading()) return absl::UnavailableError("the data is still being loaded");
      return apply();
    });
  };
  on_change({"appendonly"}, [&] { return persistence.SetLog(settings.appendonly.load(kRelaxed)); });
  on_change({"appendfsync"}, [&] { return persistence.SetSync(SyncPolicyOf(settings)); });
  on_change({"save"}, [&] {
    persistence.SetSavePoints(SavePointsOf(settings));
    return absl::OkStatus();
  });
  on_change({"auto-aof-rewrite-percentage", "auto-aof-rewrite-min-size"}, [&] {
    persistence.SetRewriteLimits(
        settings.auto_aof_rewrite_percentage.load(kRelaxed),
        static_cast<uint64_t>(settings.auto_aof_rewrite_min_bytes.load(kRelaxed)));
    return absl::OkStatus();
  });
  on_change({"dbfilename"}, [&] {
    persistence.SetDumpName(settings.Text("dbfilename"));
    return absl::OkStatus();
  });
  on_change({"dir"}, [directory = settings.Text("dir"), &settings] {
    if (settings.Text("dir") == directory) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "the log and its lock are in the directory that the server was started with; start it "
        "with another one");
  });
}

// The process id in a file, for as long as the server runs.
class PidFile {
 public:
  explicit PidFile(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    std::ofstream out(path_);
    if (!(out << getpid() << "\n" << std::flush))
      LogWarning(absl::StrCat("Could not write the process id to '", path_, "'"));
  }
  ~PidFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  PidFile(const PidFile&) = delete;
  PidFile& operator=(const PidFile&) = delete;

 private:
  const std::string path_;
};

void LogStart(const Settings& settings) {
  LogWarning("oO0OoO0OoO0Oo idemd is starting oO0OoO0OoO0Oo");
  LogWarning(
      absl::StrCat("idemd version=", kIdemdVersion, ", bits=64, pid=", getpid(), ", just started"));
  if (settings.file().empty()) {
    LogWarning(
        "Warning: no config file specified, using the default config. In order to specify a config "
        "file use "
        "idemd /path/to/idemd.conf");
  } else {
    LogWarning("Configuration loaded");
  }
  for (const std::string& warning : settings.warnings()) LogWarning(warning);
  const bool plain = settings.port.load(std::memory_order_relaxed) != 0;
  LogNotice(absl::StrCat("Running mode=standalone, port=", settings.Text(plain ? "port" : "tls-port"), "."));
}

int Fail(absl::string_view text) {
  LogWarning(text);
  return 1;
}

// Loads what the directory holds, on a thread of its own: clients are told LOADING meanwhile.
class Loader {
 public:
  explicit Loader(std::function<absl::Status()> load)
      : load_(std::move(load)), thread_([this] { Run(); }) {}
  // When all is there. What cannot be loaded ends the process, before anything was served.
  ~Loader() { thread_.join(); }
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  bool DoneWithin(std::chrono::milliseconds time) {
    return done_.get_future().wait_for(time) == std::future_status::ready;
  }

 private:
  void Run() {
    if (const absl::Status loaded = load_(); !loaded.ok()) {
      LogWarning(absl::StrCat("Fatal error loading the DB: ", loaded.message(), ". Exiting."));
      std::_Exit(1);
    }
    LogNotice("Ready to accept connections");
    done_.set_value();
  }

  const std::function<absl::Status()> load_;
  std::promise<void> done_;
  std::thread thread_;
};

// Nothing was served and nothing is lost: what is on disk stays as it is, or as the start has mended it.
[[noreturn]] void LeaveAtOnce(const Settings& settings, absl::string_view during) {
  LogWarning(absl::StrCat("Received a wish to stop during ", during, ", exiting now."));
  if (const std::string path = settings.Text("pidfile"); !path.empty()) unlink(path.c_str());
  std::_Exit(0);
}

// After the last connection has gone.
int CloseDisk(Persistence& persistence, const Shutdown& shutdown) {
  // The dump that was made while clients were served may be all there is to save.
  const bool dump = shutdown.saves_at_end() && persistence.status().changes_since_save > 0;
  if (const absl::Status closed = persistence.Close(dump); !closed.ok()) {
    LogWarning(absl::StrCat("Error while closing what is on disk: ", closed.message()));
    return 1;
  }
  LogWarning("idemd is now ready to exit, bye bye...");
  return 0;
}

// Once a second. A wall clock that jumped is not followed, and somebody should know.
void Discipline(storage::EffectiveClock& clock, uint64_t* jumps) {
  clock.Discipline();
  if (clock.jumps_seen() == *jumps) return;
  *jumps = clock.jumps_seen();
  LogWarning(absl::StrCat("The wall clock differs from the effective clock by ", clock.State().difference_ms,
                          " ms, and is not followed: deadlines stay where they are. IDEM.CLOCK ACCEPT follows it."));
}

// The users of the configuration file, or those of the ACL file.
absl::Status LoadUsers(Settings& settings, acl::Users& users) {
  const std::string file = settings.Text("aclfile");
  if (file.empty()) {
    settings.RewriteUsersFrom([&users] {
      std::vector<std::string> lines;
      for (const auto& user : users.All()) lines.push_back(user->Describe(users.catalog()));
      return lines;
    });
    return users.Declare(settings.users());
  }
  if (!settings.users().empty())
    return absl::InvalidArgumentError(
        "Configuring Redis with users defined in redis.conf and at the same setting an ACL file path is invalid. This "
        "setup is very likely to lead to configuration errors and security holes, please define either an ACL file or "
        "declare users directly in your redis.conf, but not both.");
  std::vector<std::string> replaced;
  if (const absl::Status loaded = users.Load(file, &replaced); !loaded.ok())
    return absl::InvalidArgumentError(absl::StrCat("Aborting Redis startup because of ACL errors: ", loaded.message()));
  return absl::OkStatus();
}

int Serve(Settings& settings) {
  const std::unique_ptr<storage::TimeSource> time = storage::SystemTime();
  const std::unique_ptr<storage::FileSystem> files = storage::SystemFiles();
  storage::EffectiveClock clock(*time, 0);
  Persistence persistence(OptionsFrom(settings), *files, *time);
  storage::Store store(clock, persistence.log());
  storage::TokenMint tokens(storage::TokenMint::NewKey());
  Clients clients;
  SlowLog slowlog;
  LatencyMonitor latency;
  ServerStats stats;
  NativeStats native;
  const CommandTable commands;
  Scripts scripts(settings, commands);
  OutboundThreads outbound;
  Services services{.store = store,
                    .clock = &clock,
                    .tokens = tokens,
                    .settings = settings,
                    .clients = clients,
                    .slowlog = slowlog,
                    .latency = latency,
                    .stats = stats,
                    .native = native,
                    .commands = commands,
                    .run_id = storage::RandomHex(kRunIdChars),
                    .started_ms = time->WallNs() / 1'000'000,
                    .persistence = &persistence,
                    .scripts = &scripts,
                    .outbound = &outbound};
  ConnectSettings(settings, store, slowlog, latency, native);
  ConnectCollections(settings);
  EventRouter events(*services.pubsub, *services.tracking,
                     [&store](storage::EventClasses classes) { store.WantEvents(classes); });
  store.SetEventSink(&events);
  services.pause->OnChange([&store](bool paused) { store.SetFrozen(paused); });
  settings.OnChange({"notify-keyspace-events", "tracking-table-max-keys"}, [&settings, &events, &services] {
    events.SetKeyspaceEvents(ClassesOf(settings.notify_keyspace_events.load(std::memory_order_relaxed)));
    services.tracking->SetMaxKeys(
        static_cast<uint64_t>(settings.tracking_table_max_keys.load(std::memory_order_relaxed)));
    return absl::OkStatus();
  });
  persistence.SetLibraries([&scripts] {
    std::vector<std::string> texts;
    for (const auto& [name, library] : scripts.functions().All()) texts.push_back(library->text);
    return texts;
  });
  scripts.SetYield(&Server::ServeMeanwhile);
  store.SetWhileWaiting([&scripts] {
    if (scripts.busy()) Server::ServeMeanwhile();
  });
  if (absl::Status applied = settings.RunHooks(); !applied.ok()) return Fail(applied.message());
  if (absl::Status ready = LoadUsers(settings, *services.users); !ready.ok()) return Fail(ready.message());
  ConnectPersistence(settings, persistence);
  if (absl::Status opened = persistence.Open(); !opened.ok())
    return Fail(absl::StrCat("Fatal error loading the DB: ", opened.message(), ". Exiting."));

  LogWarning("Server initialized");

  Server server(services);
  Shutdown shutdown(settings, &persistence, [&] {
    if (persistence.loading()) LeaveAtOnce(settings, "loading");
    // What the script has changed so far is not in the log: all of it counts, or nothing.
    if (scripts.busy()) LeaveAtOnce(settings, "a script that does not end");
    server.Stop();
  });
  services.shutdown = &shutdown;
  persistence.OnReleased([&server] { server.OnReleased(); });
  server.HandleSignals([&shutdown](int number) { shutdown.OnSignal(number == SIGINT); });

  std::optional<Loader> loader;
  loader.emplace([&] {
    Replayer replayer(services);
    return persistence.Load(store, tokens, &clock,
                            [&replayer](const std::vector<absl::string_view>& words,
                                        storage::DbIndex* db) { return replayer.Run(words, db); });
  });
  const bool loaded = loader->DoneWithin(kLoadUnseen);
  if (absl::Status started = server.Start(); !started.ok()) {
    LogWarning(absl::StrCat(started.message(), ", aborting."));
    std::_Exit(1);  // whatever is still being loaded is on disk as it was
  }
  if (!loaded) LogNotice("Accepting connections; the data is still being loaded");
  const PidFile pid_file(settings.Text("pidfile"));

  // Callers that wait at a key hear, too, that it has expired.
  store.SetOnReady([&services](std::vector<storage::ReadyKey> ready) { ServeBlocked(services, std::move(ready)); });
  std::optional<Ticker> sweeper;
  sweeper.emplace([&] {
    // While loading, what has expired stays: later writes of the log count on it.
    if (persistence.loading()) return kSamplePeriod;
    const int64_t begin_ms = SteadyMs();
    const int64_t next_ms = store.Tick();
    latency.Add("expire-cycle", SteadyMs() - begin_ms);
    return std::chrono::milliseconds(next_ms - clock.NowMs());
  });
  store.SetWake([&sweeper] { sweeper->Wake(); });
  int samples = 0;
  uint64_t jumps = 0;
  std::optional<Ticker> housekeeping;
  housekeeping.emplace([&] {
    stats.Sample(time->BootNs() / 1'000'000, store.memory_bytes());
    if (++samples % kSamplesPerSecond == 0) Discipline(clock, &jumps);
    if (!persistence.loading()) persistence.Tick();
    int64_t ping_every_s = 0;
    if (persistence.has_replicas() && absl::SimpleAtoi(settings.Text("repl-ping-replica-period"), &ping_every_s) &&
        samples % (kSamplesPerSecond * ping_every_s) == 0)
      persistence.TellReplicas("*1\r\n$4\r\nPING\r\n");
    if (settings.min_replicas_to_write.load(std::memory_order_relaxed) != 0)
      services.replica_waits->Count(services.clients, settings.min_replicas_max_lag_s.load(std::memory_order_relaxed) * 1000);
    services.pause->Tick(SteadyMs());
    return kSamplePeriod;
  });

  server.Run();
  outbound.Stop();  // what has arrived elsewhere is removed before the log is closed
  store.SetWake({});
  sweeper.reset();
  housekeeping.reset();
  loader.reset();
  return CloseDisk(persistence, shutdown);
}

int Main(const std::vector<std::string>& arguments) {
  if (Printed(arguments)) return 0;
  if (const std::optional<int> code = Examined(arguments)) return *code;
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  Settings settings;
  if (absl::Status loaded = settings.Load(arguments); !loaded.ok()) {
    std::fprintf(stderr, "\n%s\n", std::string(loaded.message()).c_str());
    return 1;
  }
  if (absl::Status opened = SetLogFile(settings.Text("logfile")); !opened.ok()) {
    std::fprintf(stderr, "%s\n", std::string(opened.message()).c_str());
    return 1;
  }
  SetLogLevel(settings.loglevel.load(std::memory_order_relaxed));
  LogStart(settings);
  PrepareAllocator();
  return Serve(settings);
}

}  // namespace
}  // namespace idemd::server

int main(int argc, char** argv) {
  return idemd::server::Main(std::vector<std::string>(argv + 1, argv + argc));
}
