// A server without sockets: commands go through the dispatcher as they would from a connection.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "protocol/resp/parser.h"
#include "server/admin/latency.h"
#include "server/admin/native_stats.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/dispatch.h"
#include "server/commands/observe.h"
#include "server/commands/scripts.h"
#include "server/commands/services.h"
#include "server/commands/shutdown.h"
#include "server/commands/table.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::server {

// A connection that keeps what others sent to it.
class FakePeer final : public Peer {
 public:
  void Send(std::shared_ptr<const std::string> bytes, storage::Lsn,
            std::shared_ptr<const std::atomic<bool>>) override {
    sent += *bytes;
  }
  void Kill() override { killed = true; }
  void Resume(std::function<void(Session&, std::string&)> done) override {
    resumes.push_back(std::move(done));
  }

  std::string sent;
  bool killed = false;
  std::vector<std::function<void(Session&, std::string&)>> resumes;
};

class IntrospectionTest : public ::testing::Test {
 protected:
  // One connected client.
  struct Client {
    std::shared_ptr<FakePeer> peer = std::make_shared<FakePeer>();
    Session session;
  };

  IntrospectionTest() {
    settings_.OnChange({"slowlog-log-slower-than", "latency-monitor-threshold"}, [this] {
      slowlog_.slower_than_us = settings_.slowlog_log_slower_than_us.load();
      latency_.threshold_ms = settings_.latency_monitor_threshold_ms.load();
      return absl::OkStatus();
    });
  }

  std::unique_ptr<Client> Connect(absl::string_view address = "127.0.0.1:5000") {
    auto client = std::make_unique<Client>();
    ClientInfo& info = client->peer->info();
    info.id = clients_.NextId();
    info.address = std::string(address);
    info.local_address = "127.0.0.1:6379";
    info.fd = 8;
    client->session.peer = client->peer;
    client->session.authenticated = !settings_.has_password.load();
    clients_.Add(client->peer);
    return client;
  }

  // The raw reply to a request in inline form.
  std::string Run(Client& client, absl::string_view line) {
    const std::string text = std::string(line) + "\r\n";
    protocol::Parser parser;
    protocol::Batch batch;
    EXPECT_EQ(parser.Parse(text, protocol::ParserLimits{}, 16, batch),
              protocol::ParseStatus::kNeedMore)
        << line;
    std::string out;
    dispatcher_.Run(client.session, batch, 0, SIZE_MAX, out);
    return out;
  }
  std::string Run(absl::string_view line) { return Run(*me_, line); }

  // CONFIG SET without the command.
  void Set(absl::string_view name, absl::string_view value) {
    const std::pair<absl::string_view, absl::string_view> pair{name, value};
    ASSERT_TRUE(settings_.Set(absl::MakeConstSpan(&pair, 1), {}).ok()) << name;
  }

  storage::FakeClock clock_;
  storage::NullLog log_;
  storage::Store store_{clock_, log_};
  storage::TokenMint tokens_{storage::TokenMint::NewKey()};
  Settings settings_;
  Clients clients_;
  SlowLog slowlog_;
  LatencyMonitor latency_;
  ServerStats stats_;
  NativeStats native_;
  CommandTable commands_;
  Scripts scripts_{settings_, commands_};
  int shutdowns_ = 0;
  Shutdown shutdown_{settings_, nullptr, [this] { ++shutdowns_; }};
  Services services_{store_,
                     nullptr,
                     tokens_,
                     settings_,
                     clients_,
                     slowlog_,
                     latency_,
                     stats_,
                     native_,
                     commands_,
                     std::string(40, 'a'),
                     1'600'000'000'000,
                     &shutdown_,
                     nullptr,
                     &scripts_};
  Dispatcher dispatcher_{services_};
  std::unique_ptr<Client> me_ = Connect();
};

inline std::string Bulk(absl::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

}  // namespace idemd::server
