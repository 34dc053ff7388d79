// Everybody who is connected, for CLIENT LIST, CLIENT KILL, MONITOR and the limits on how many there may be.
//
// Threads   any. The lock is taken on connect, login, disconnect and by admin commands only, never per request;
//           monitors() is one relaxed load of a line that hardly ever changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "server/session.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class Clients {
 public:
  uint64_t NextId() { return next_id_.fetch_add(1, std::memory_order_relaxed) + 1; }
  void Add(std::shared_ptr<Peer> peer);
  void Remove(uint64_t id);
  std::shared_ptr<Peer> Find(uint64_t id) const;
  std::vector<std::shared_ptr<Peer>> All() const;  // by id
  size_t count() const { return count_.load(std::memory_order_relaxed); }
  size_t blocked() const;

  // Who has not logged in yet. AddStranger() gives the one who has to go because there are more than `max`: the oldest.
  [[nodiscard]] std::shared_ptr<Peer> AddStranger(uint64_t id, size_t max);
  void RemoveStranger(uint64_t id);

  struct Memory {
    uint64_t normal_bytes = 0;
    uint64_t replica_bytes = 0;
  };
  Memory memory() const;
  // Closes the clients that hold most until the others hold at most `limit_bytes` together; not replicas, nor who asked for
  // CLIENT NO-EVICT. Who is on the way out does not count any more. Gives those it has closed.
  std::vector<std::shared_ptr<Peer>> Evict(uint64_t limit_bytes);

  // MONITOR.
  void AddMonitor(uint64_t id);
  void RemoveMonitor(uint64_t id);
  size_t monitors() const { return monitors_.load(std::memory_order_relaxed); }
  // `need`: of the unit that it tells of.
  void SendToMonitors(std::shared_ptr<const std::string> line, storage::Lsn need) const;

 private:
  std::atomic<uint64_t> next_id_{0};
  std::atomic<size_t> count_{0};
  std::atomic<size_t> monitors_{0};
  mutable storage::Mutex mutex_;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
  std::set<uint64_t> stranger_ids_ ABSL_GUARDED_BY(mutex_);  // in the order in which they came
  std::vector<uint64_t> monitor_ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server
