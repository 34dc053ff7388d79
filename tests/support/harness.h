// A whole server without sockets or real time: requests go in as lines, replies come out readable.
//
// Replies read like this: OK (simple string), "x" (bulk), 5 (integer), nil, -ERR ... (error), [a b]
// (array), {a: b} (map).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/admin/latency.h"
#include "server/admin/native_stats.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/dispatch.h"
#include "server/commands/scripts.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::testing {

// A connection that keeps what is posted to it until the test lets it run.
class ScriptedPeer final : public server::Peer {
 public:
  void Send(std::shared_ptr<const std::string> bytes, storage::Lsn lsn,
            std::shared_ptr<const std::atomic<bool>> while_true) override {
    if (while_true != nullptr && !while_true->load()) return;
    sent += *bytes;
    need = lsn;
  }
  void Kill() override { killed = true; }
  void Resume(std::function<void(server::Session&, std::string&)> done) override {
    posted.push_back(std::move(done));
  }

  std::string sent;
  storage::Lsn need = storage::kNoLsn;  // of what was sent last
  bool killed = false;
  std::vector<std::function<void(server::Session&, std::string&)>> posted;
};

struct TestClient {
  std::shared_ptr<ScriptedPeer> peer = std::make_shared<ScriptedPeer>();
  server::Session session;

  bool waits() const { return session.waiter != nullptr; }
};

class Harness {
 public:
  static constexpr int64_t kStart = 1'700'000'000'000;
  // The first fence that this server gives out; the next ones follow one by one.
  static constexpr int64_t kFirstFence = kStart * 1024 + 1;

  Harness() {
    services.scripts = &scripts;
    me = Connect();
  }

  std::unique_ptr<TestClient> Connect();
  // One request as an inline line, with Redis' quotes.
  std::string Do(TestClient& client, absl::string_view line);
  std::string Do(absl::string_view line) { return Do(*me, line); }
  // One request of any bytes.
  std::string DoWords(TestClient& client, const std::vector<std::string>& words);
  std::string DoWords(const std::vector<std::string>& words) { return DoWords(*me, words); }
  // Whether the request has to wait before it begins (CLIENT PAUSE).
  bool Waits(TestClient& client, absl::string_view line);
  // What was posted to a client that waited, or "" when nothing was.
  std::string Posted(TestClient& client);
  // Time passes, and the store's own thread notices.
  void Pass(int64_t ms);
  // What the log was told since the last call: a line per effect.
  std::vector<std::string> NewEffects();

  storage::FakeClock clock{kStart};
  storage::MemoryLog log;
  storage::Store store{clock, log};
  storage::TokenMint tokens{storage::TokenKey{1, 2, 3}};
  server::Settings settings;
  server::Clients clients;
  server::SlowLog slowlog;
  server::LatencyMonitor latency;
  server::ServerStats stats;
  server::NativeStats native;
  server::CommandTable commands;
  server::Services services{store, nullptr, tokens,   settings, clients, slowlog, latency,
                            stats, native,  commands, "run id", kStart};
  server::Scripts scripts{settings, commands};
  server::Dispatcher dispatcher{services};
  std::unique_ptr<TestClient> me;

 private:
  size_t units_seen_ = 0;
};

// RESP bytes, which may hold several replies, as text.
std::string Readable(absl::string_view resp);

}  // namespace idemd::testing
