// IDEM.RESERVE ... WAIT: a session in line at a pending key, until the store, the clock or CLIENT
// UNBLOCK answers it.
//
// Whoever ends the wait first marks the waiter done (Waiter::Cancel) and posts the reply to the
// connection's thread; the session is blocked meanwhile, so nothing else of this connection runs.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "protocol/errors.h"
#include "protocol/resp/writer.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_reserve.h"
#include "storage/record/time_math.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::LifeError;
using storage::ReserveStatus;

// Owns copies of all that the request's words said: they are gone when the answer comes.
class ReserveWaiter final : public storage::Waiter {
 public:
  ReserveWaiter(Context& c, absl::string_view key_bytes, const storage::ReserveRequest& asked,
                int64_t give_up_ms)
      : services_(c.services),
        peer_(c.session.peer),
        db_(c.db()),
        resp_(c.session.resp),
        quiet_(c.session.reply_mode == ReplyMode::kSkipThis),
        key_(key_bytes),
        claim_(asked.claim),
        fingerprint_(asked.fingerprint),
        ifeq_(asked.ifeq) {
    request = asked;
    request.claim = claim_;
    request.fingerprint = fingerprint_;
    request.ifeq = ifeq_;
    give_up_at_ms = give_up_ms;
    origin = &Origin;
  }

  void Resolve(const storage::WaitAnswer& answer) override {
    if (answer.error == LifeError::kNone) {
      const ReserveStatus status = answer.reply.status;
      if (status != ReserveStatus::kPending)
        services_.native.Count(key_, NativeCounter::kWaitsServed);
      CountReserve(services_.native, key_, status, answer.took_over);
    }
    Resume(answer.need, [answer](Session&, protocol::Writer& reply) {
      if (answer.error != LifeError::kNone) return reply.Error(LifeErrorText(answer.error, {}));
      WriteReserveReply(
          reply, storage::ReserveStatusName(answer.reply.status), answer.reply,
          answer.payload == nullptr ? absl::string_view() : absl::string_view(*answer.payload));
    });
  }

  // After Cancel(): PENDING as it would be said now. Looked up on the connection's own thread,
  // where no unit holds locks.
  static void AnswerPending(const std::shared_ptr<ReserveWaiter>& self) {
    CountReserve(self->services_.native, self->key_, ReserveStatus::kPending, false);
    self->Resume(storage::kNoLsn, [self](Session& session, protocol::Writer& reply) {
      WriteReserveReply(reply, self->PendingNow(session));
    });
  }

  void AnswerUnblocked() {
    Resume(storage::kNoLsn,
           [](Session&, protocol::Writer& reply) { reply.Error(errors::kUnblocked); });
  }

 private:
  static storage::TokenOrigin Origin(const Waiter& waiter, int64_t now_ms) {
    const auto& self = static_cast<const ReserveWaiter&>(waiter);
    return OriginOf(self.services_.tokens, self.db_, self.key_, now_ms);
  }

  // What changed this very moment is not told: this caller was sent away.
  storage::ReserveReply PendingNow(Session& session) const {
    storage::Unit unit(services_.store);
    const storage::Subject subject =
        storage::SubjectOf(unit.Find(db_, storage::HashedKey(key_), false));
    const int64_t now_ms = unit.now_ms();
    const storage::ReserveOutcome outcome = storage::Reserve(
        subject, request, now_ms, services_.store.CurrentLimits(), [] { return uint64_t{0}; },
        [&] { return Origin(*this, now_ms); });
    storage::ReserveReply pending;
    if (outcome.error == LifeError::kNone && outcome.reply.status == ReserveStatus::kPending)
      pending = outcome.reply;
    pending.status = ReserveStatus::kPending;
    unit.Commit();
    session.need = std::max(session.need, unit.need());
    return pending;
  }

  template <class Write>
  void Resume(storage::Lsn need, Write write) {
    const std::shared_ptr<Peer> peer = peer_.lock();
    if (peer == nullptr) return;  // gone while it waited
    peer->Resume([need, resp = resp_, quiet = quiet_, write = std::move(write)](Session& session,
                                                                                std::string& out) {
      session.need = std::max(session.need, need);
      session.waiter.reset();
      ClientInfo& info = session.info();
      info.blocked.store(false, std::memory_order_relaxed);
      {
        storage::MutexLock lock(info.mutex);
        info.waiter.reset();
      }
      if (quiet) return;
      protocol::Writer reply(out, resp);
      write(session, reply);
    });
  }

  Services& services_;
  const std::weak_ptr<Peer>
      peer_;  // a waiter may stay in line for a while after its connection has gone
  const storage::DbIndex db_;
  const int resp_;
  const bool quiet_;  // CLIENT REPLY SKIP came before
  const std::string key_;
  const std::string claim_;
  const std::string fingerprint_;
  const std::string ifeq_;
};

}  // namespace

bool BeginWait(Context& c, const storage::HashedKey& key, const storage::ReserveRequest& request,
               int64_t wait_ms) {
  storage::Store& store = c.services.store;
  const int64_t max = store.settings().max_waiters.load(std::memory_order_relaxed);
  if (store.waiters() >= static_cast<uint64_t>(max)) return false;
  auto waiter = std::make_shared<ReserveWaiter>(c, key.bytes, request,
                                                storage::AddTimeOrNever(c.unit.now_ms(), wait_ms));
  c.session.waiter = waiter;
  ClientInfo& info = c.session.info();
  info.blocked.store(true, std::memory_order_relaxed);
  {
    storage::MutexLock lock(info.mutex);
    info.waiter = waiter;
  }
  c.services.native.Count(key.bytes, NativeCounter::kWaits);
  c.unit.Wait(c.db(), key, std::move(waiter));
  return true;
}

bool UnblockReserve(Services&, Peer& peer, bool with_error) {
  std::shared_ptr<storage::Waiter> waiter;
  {
    storage::MutexLock lock(peer.info().mutex);
    waiter = peer.info().waiter;
  }
  if (waiter == nullptr || !waiter->Cancel()) return false;
  // Whoever puts a waiter into ClientInfo is BeginWait().
  const auto reserve = std::static_pointer_cast<ReserveWaiter>(waiter);
  if (with_error) {
    reserve->AnswerUnblocked();
  } else {
    ReserveWaiter::AnswerPending(reserve);
  }
  return true;
}

}  // namespace idemd::server
