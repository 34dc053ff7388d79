// What is on disk as a fake, and a server over it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/commands/persistence_control.h"
#include "server/commands/shutdown.h"
#include "tests/support/harness.h"

namespace idemd::server {

// Does what it is told to, when it is told to.
class FakeDisk final : public PersistenceControl {
 public:
  LoadProgress progress() const override { return load; }
  PersistenceStatus status() const override { return now; }
  void SaveNow(std::function<void(absl::Status)> done) override {
    saves.push_back(std::move(done));
  }
  absl::Status SaveInBackground(bool schedule) override {
    asked_schedule = schedule;
    if (!answer.ok()) return answer;
    (now.rewriting ? now.save_scheduled : now.saving) = true;
    return answer;
  }
  absl::Status RewriteInBackground() override {
    if (!answer.ok()) return answer;
    (now.saving ? now.rewrite_scheduled : now.rewriting) = true;
    return answer;
  }
  void WaitSynced(storage::Lsn lsn, int64_t timeout_ms, std::function<void(bool)> done) override {
    waited_lsn = lsn;
    waited_ms = timeout_ms;
    waits.push_back(std::move(done));
  }
  bool WaitSyncedNow(storage::Lsn lsn) const override { return lsn <= now.durable_lsn; }
  absl::Status SetSync(SyncPolicy) override { return absl::OkStatus(); }
  absl::Status SetLog(bool) override { return absl::OkStatus(); }
  void SetSavePoints(std::vector<SavePoint>) override {}
  void SetRewriteLimits(int64_t, uint64_t) override {}
  void SetDumpName(std::string) override {}
  void AddReplica(ReplicaSink sink) override { replicas.push_back(std::move(sink)); }
  void TellReplicas(absl::string_view command) override { told_replicas.append(command.data(), command.size()); }
  void TellReplicas(absl::string_view command, storage::DbIndex db) override { absl::StrAppend(&told_replicas, "in ", db, ":", command); }
  bool has_replicas() const override { return !replicas.empty(); }
  uint64_t replication_offset() const override { return told_replicas.size(); }

  using PersistenceControl::SetLastSaveFailed;
  using PersistenceControl::SetLoading;
  // Ends the dump that was asked for first.
  void EndSave(absl::Status result) {
    ASSERT_FALSE(saves.empty());
    const auto done = std::move(saves.front());
    saves.pop_front();
    done(std::move(result));
  }
  void EndWait(bool synced) {
    ASSERT_FALSE(waits.empty());
    const auto done = std::move(waits.front());
    waits.pop_front();
    done(synced);
  }

  PersistenceStatus now;
  LoadProgress load;
  absl::Status answer;
  bool asked_schedule = false;
  storage::Lsn waited_lsn = 0;
  int64_t waited_ms = -1;
  std::deque<std::function<void(absl::Status)>> saves;
  std::deque<std::function<void(bool)>> waits;
  std::vector<ReplicaSink> replicas;
  std::string told_replicas;
};

class PersistenceTest : public ::testing::Test, protected testing::Harness {
 protected:
  PersistenceTest() {
    disk.now.log_enabled = true;
    services.persistence = &disk;
    services.shutdown = &shutdown;
  }
  void Config(const std::string& name, const std::string& value) {
    ASSERT_EQ(DoWords({"CONFIG", "SET", name, value}), "OK");
  }
  std::string Info() { return Do("INFO persistence"); }

  FakeDisk disk;
  int stops = 0;
  Shutdown shutdown{settings, &disk, [this] { ++stops; }};
};

}  // namespace idemd::server
