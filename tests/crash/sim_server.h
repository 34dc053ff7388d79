// A whole server on one thread, over a simulated disk and a simulated time; and what the next
// process makes of that disk.
//
// Threads   one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/commands/dispatch.h"
#include "server/journal/persistence.h"
#include "storage/clock.h"
#include "storage/store.h"
#include "storage/token/token.h"
#include "tests/crash/history.h"
#include "tests/crash/sim_services.h"
#include "tests/support/sim_fs.h"

namespace idemd::testing {

class SimTime final : public storage::TimeSource {
 public:
  explicit SimTime(int64_t now_ms) : now_ns_(now_ms * 1'000'000) {}
  int64_t BootNs() override { return now_ns_ - kBootNs; }
  int64_t WallNs() override { return now_ns_; }
  std::string BootId() override { return "sim"; }
  void AdvanceMs(int64_t ms) { now_ns_ += ms * 1'000'000; }

 private:
  static constexpr int64_t kBootNs = 1'600'000'000'000'000'000;
  int64_t now_ns_;
};

struct SimOptions {
  server::SyncPolicy sync = server::SyncPolicy::kAlways;
  WatchedLog::Fault fault = WatchedLog::Fault::kNone;
  int64_t restart_grace_ms = 0;
  std::function<void()> gave_up;  // the disk failed; a process would have ended here
};

// Store, log and token key: what a recovery fills.
class SimData {
 public:
  // An error says why the server would refuse to start.
  static absl::StatusOr<std::unique_ptr<SimData>> Recover(SimFs& fs, storage::TimeSource& time,
                                                          storage::Clock& clock, History& history,
                                                          const SimOptions& options);
  storage::Store& store() { return store_; }
  WatchedLog& log() { return log_; }
  storage::TokenMint& tokens() { return tokens_; }
  server::Persistence& persistence() { return persistence_; }
  const std::string& died() const { return *died_; }

 private:
  SimData(SimFs& fs, storage::TimeSource& time, storage::Clock& clock, History& history,
          const SimOptions& options);

  std::shared_ptr<std::string> died_ =
      std::make_shared<std::string>();  // why the disk was given up
  server::Persistence persistence_;
  WatchedLog log_;
  storage::Store store_;
  storage::TokenMint tokens_{storage::TokenKey{}};
};

// Runs commands over a SimData.
class SimServer {
 public:
  SimServer(SimData& data, int64_t started_ms);
  // One request; the reply as RESP. Inside MULTI as over a connection.
  std::string Do(const std::vector<std::string>& words);
  // What the replies so far have to wait for.
  storage::Lsn need() const { return session_.need; }

 private:
  class NoPeer;
  SimData& data_;
  SimServices services_;
  server::Dispatcher dispatcher_;
  server::Session session_;
};

}  // namespace idemd::testing
