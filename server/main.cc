// The process: builds the parts, connects them, serves until it is told to stop.
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/admin/latency.h"
#include "server/admin/log.h"
#include "server/admin/native_stats.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/commands_page.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "server/net/server.h"
#include "server/ticker.h"
#include "server/version.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
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
  settings.OnChange(
      {"idem-token-ttl", "idem-retention", "idem-lease", "idem-max-result", "idem-max-waiters",
       "idem-max-namespaces", "maxmemory"},
      [&] {
        storage::Store::Settings& to = store.settings();
        to.token_ttl_ms.store(settings.idem_token_ttl_ms.load(kRelaxed), kRelaxed);
        to.retention_ms.store(settings.idem_retention_ms.load(kRelaxed), kRelaxed);
        to.lease_ms.store(settings.idem_lease_ms.load(kRelaxed), kRelaxed);
        to.max_result_bytes.store(settings.idem_max_result_bytes.load(kRelaxed), kRelaxed);
        to.max_waiters.store(settings.idem_max_waiters.load(kRelaxed), kRelaxed);
        to.maxmemory_bytes.store(static_cast<uint64_t>(settings.maxmemory_bytes.load(kRelaxed)),
                                 kRelaxed);
        native.set_max_namespaces(static_cast<size_t>(settings.idem_max_namespaces.load(kRelaxed)));
        return absl::OkStatus();
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
  LogNotice(absl::StrCat(
      "Running mode=standalone, port=", settings.port.load(std::memory_order_relaxed), "."));
}

int Fail(absl::string_view text) {
  LogWarning(text);
  return 1;
}

int Serve(Settings& settings) {
  const std::unique_ptr<storage::TimeSource> time = storage::SystemTime();
  storage::EffectiveClock clock(*time, 0);
  storage::NullLog log;
  storage::Store store(clock, log);
  storage::TokenMint tokens(storage::TokenMint::NewKey());
  Clients clients;
  SlowLog slowlog;
  LatencyMonitor latency;
  ServerStats stats;
  NativeStats native;
  const CommandTable commands;
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
                    .shutdown = {}};
  ConnectSettings(settings, store, slowlog, latency, native);
  if (absl::Status applied = settings.RunHooks(); !applied.ok()) return Fail(applied.message());

  Server server(services);
  services.shutdown = [&server] { server.Stop(); };
  server.HandleSignals();
  if (absl::Status started = server.Start(); !started.ok()) {
    return Fail(absl::StrCat(started.message(), ", aborting."));
  }
  const PidFile pid_file(settings.Text("pidfile"));

  Ticker sweeper(
      [&store, &clock] { return std::chrono::milliseconds(store.Tick() - clock.NowMs()); });
  store.SetWake([&sweeper] { sweeper.Wake(); });
  int samples = 0;
  const Ticker housekeeping([&] {
    stats.Sample(time->BootNs() / 1'000'000, store.memory_bytes());
    if (++samples % kSamplesPerSecond == 0) clock.Discipline();
    return kSamplePeriod;
  });

  LogNotice("Ready to accept connections");
  server.Run();
  store.SetWake({});
  LogWarning("idemd is now ready to exit, bye bye...");
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  if (Printed(arguments)) return 0;
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
  return Serve(settings);
}

}  // namespace
}  // namespace idemd::server

int main(int argc, char** argv) {
  return idemd::server::Main(std::vector<std::string>(argv + 1, argv + argc));
}
