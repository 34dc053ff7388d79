// A store with its persistence on a simulated disk, everything on the caller's thread.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "server/journal/persistence.h"
#include "storage/clock.h"
#include "storage/store.h"
#include "storage/token/token.h"
#include "tests/support/sim_fs.h"

namespace idemd::server {

struct FakeTime final : storage::TimeSource {
  int64_t boot_ns = 1'000'000'000;
  int64_t wall_ns = 1'700'000'000'000'000'000;
  std::string boot = "boot-1";
  int64_t BootNs() override { return boot_ns; }
  int64_t WallNs() override { return wall_ns; }
  std::string BootId() override { return boot; }
  void Advance(int64_t ms) {
    boot_ns += ms * 1'000'000;
    wall_ns += ms * 1'000'000;
  }
};

class Node {
 public:
  static PersistenceOptions Options() {
    PersistenceOptions options;
    options.directory = "/d";
    options.on_callers_thread = true;
    options.sync = SyncPolicy::kAlways;
    return options;
  }

  Node(storage::FileSystem& files, FakeTime& time, PersistenceOptions options = Options()) : clock(time, 0) {
    options.die = [this](const absl::Status& why) { died = why; };
    persistence = std::make_unique<Persistence>(options, files, time);
    store = std::make_unique<storage::Store>(clock, persistence->log());
    status = persistence->Open();
    if (status.ok()) status = persistence->Load(*store, tokens, &clock, replay);
  }
  ~Node() {
    store.reset();
    persistence.reset();
  }

  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms = storage::kNoDeadline, storage::DbIndex db = 0) {
    const storage::HashedKey hashed(key);
    storage::Unit unit(*store);
    unit.Lock(hashed);
    unit.SetString(db, hashed, value, deadline_ms);
    unit.Commit();
    need = unit.need();
    persistence->log().Release(need);
  }
  bool Delete(absl::string_view key, storage::DbIndex db = 0) {
    const storage::HashedKey hashed(key);
    storage::Unit unit(*store);
    unit.Lock(hashed);
    const bool was = unit.Remove(db, hashed);
    unit.Commit();
    need = unit.need();
    persistence->log().Release(need);
    return was;
  }
  bool released() const { return persistence->log().released() >= need; }
  // "(nil)" when absent.
  std::string Get(absl::string_view key, storage::DbIndex db = 0) {
    storage::Unit unit(*store);
    const storage::KeyView view = unit.Find(db, storage::HashedKey(key));
    if (!view) return "(nil)";
    std::string scratch;
    return std::string(storage::StringValue(view, scratch));
  }
  uint64_t Size(storage::DbIndex db = 0) { return storage::Unit(*store).Size(db); }

  storage::EffectiveClock clock;
  storage::TokenMint tokens{storage::TokenMint::NewKey()};
  Persistence::Replay replay;
  std::unique_ptr<Persistence> persistence;
  std::unique_ptr<storage::Store> store;
  absl::Status status;
  absl::Status died;
  storage::Lsn need = 0;
};

}  // namespace idemd::server
