// Replicas are connections that say so; whoever waits for them is looked at whenever one of them acknowledges.
#include "server/commands/replicas.h"

#include <chrono>
#include <utility>

#include "protocol/errors.h"
#include "server/clients.h"
#include "server/commands/context.h"
#include "server/commands/services.h"
#include "server/commands/session_waiter.h"
#include "server/steady_time.h"

namespace idemd::server {

std::vector<std::shared_ptr<Peer>> ReplicasOf(const Clients& clients) {
  std::vector<std::shared_ptr<Peer>> replicas = clients.All();
  std::erase_if(replicas, [](const std::shared_ptr<Peer>& peer) { return !peer->info().replica.load(std::memory_order_relaxed); });
  return replicas;
}

int64_t ReplicasAt(const Clients& clients, uint64_t offset) {
  int64_t count = 0;
  for (const std::shared_ptr<Peer>& replica : ReplicasOf(clients))
    if (replica->info().replica_offset.load(std::memory_order_relaxed) >= offset) ++count;
  return count;
}

std::string AddressOfReplica(const ClientInfo& info) { return info.address.substr(0, info.address.rfind(':')); }

class ReplicaWaits::Caller final : public SessionWaiter {
 public:
  Caller(Context& c, uint64_t offset, int64_t replicas)
      : SessionWaiter(c), clients_(c.services.clients), offset_(offset), replicas_(replicas) {}

  void Resolve(const storage::WaitAnswer&) override {}  // stands in no line
  void WaitIsOver() override { End(); }
  bool Unblock(bool with_error) override {
    if (!with_error) return End();
    if (!Cancel()) return false;
    Resume(storage::kNoLsn, [](Session&, protocol::Writer& reply) { reply.Error(protocol::errors::kUnblocked); });
    return true;
  }
  // True: its wait is over.
  bool Look() { return closing() || (ReplicasAt(clients_, offset_) >= replicas_ && (End(), true)); }

 private:
  bool End() {
    if (!Cancel()) return false;
    const int64_t have = ReplicasAt(clients_, offset_);
    Resume(storage::kNoLsn, [have](Session&, protocol::Writer& reply) { reply.Integer(have); });
    return true;
  }

  const Clients& clients_;
  const uint64_t offset_;
  const int64_t replicas_;
};

void ReplicaWaits::Begin(Context& c, uint64_t offset, int64_t replicas, int64_t timeout_ms) {
  const auto caller = std::make_shared<Caller>(c, offset, replicas);
  if (timeout_ms != 0) c.session.give_up_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  Block(c.session, caller);
  storage::MutexLock lock(mutex_);
  callers_.push_back(caller);
}

void ReplicaWaits::OnAck() {
  storage::MutexLock lock(mutex_);
  if (callers_.empty()) return;
  std::erase_if(callers_, [](const std::weak_ptr<Caller>& weak) {
    const std::shared_ptr<Caller> caller = weak.lock();
    return caller == nullptr || caller->Look();
  });
}

void ReplicaWaits::Count(const Clients& clients, int64_t lag_ms) {
  int64_t good = 0;
  for (const std::shared_ptr<Peer>& replica : ReplicasOf(clients))
    good += SteadyMs() - replica->info().replica_heard_ms.load(std::memory_order_relaxed) <= lag_ms ? 1 : 0;
  good_.store(good, std::memory_order_relaxed);
}

std::shared_ptr<ReplicaWaits> MakeReplicaWaits() { return std::make_shared<ReplicaWaits>(); }

}  // namespace idemd::server
