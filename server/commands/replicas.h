// Who follows this server, how far they are, and those who wait for that (WAIT).
//
// Threads   any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/session.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class Clients;
struct Context;

std::vector<std::shared_ptr<Peer>> ReplicasOf(const Clients& clients);
// How many say that they have everything up to `offset`.
int64_t ReplicasAt(const Clients& clients, uint64_t offset);
std::string AddressOfReplica(const ClientInfo& info);

class ReplicaWaits {
 public:
  // Blocks the session of `c` until `replicas` of them have `offset`, or `timeout_ms` is over (0: never).
  void Begin(Context& c, uint64_t offset, int64_t replicas, int64_t timeout_ms);
  // One of them has said how far it is.
  void OnAck();

  // How many have been heard of in the last `lag_ms`, as of the last Count().
  int64_t good() const { return good_.load(std::memory_order_relaxed); }
  void Count(const Clients& clients, int64_t lag_ms);

 private:
  class Caller;
  std::atomic<int64_t> good_{0};
  storage::Mutex mutex_;
  std::vector<std::weak_ptr<Caller>> callers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server
