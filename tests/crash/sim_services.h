// What the handlers of commands need beside a store, for servers without sockets or threads, and for
// running the commands of a log.
//
// Threads   one.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/admin/latency.h"
#include "server/admin/native_stats.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/replay.h"
#include "server/commands/scripts.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::testing {

class SimServices {
 public:
  SimServices(storage::Store& store, storage::TokenMint& tokens,
              server::PersistenceControl* persistence, int64_t started_ms);
  server::Services& services() { return services_; }

 private:
  server::Clients clients_;
  server::SlowLog slowlog_;
  server::LatencyMonitor latency_;
  server::ServerStats stats_;
  server::NativeStats native_;
  server::Services services_;
};

// Runs commands of a log on a store, as a start does.
class SimReplay {
 public:
  SimReplay(storage::Store& store, storage::TokenMint& tokens, server::PersistenceControl* persistence)
      : services_(store, tokens, persistence, 0), replayer_(services_.services()) {}
  absl::Status Run(const std::vector<absl::string_view>& words, storage::DbIndex* db) {
    return replayer_.Run(words, db);
  }

 private:
  SimServices services_;
  server::Replayer replayer_;
};

}  // namespace idemd::testing
