// IDEM.RESERVE ... WAIT: a session in line at a pending key, until the store, the clock or CLIENT
// UNBLOCK answers it.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "protocol/errors.h"
#include "protocol/resp/writer.h"
#include "server/commands/idem_common.h"
#include "server/commands/idem_reserve.h"
#include "server/commands/session_waiter.h"
#include "storage/record/time_math.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::LifeError;
using storage::ReserveStatus;

// Owns copies of all that the request's words said: they are gone when the answer comes.
class ReserveWaiter final : public SessionWaiter {
 public:
  ReserveWaiter(Context& c, absl::string_view key_bytes, const storage::ReserveRequest& asked,
                int64_t give_up_ms)
      : SessionWaiter(c),
        services_(c.services),
        db_(c.db()),
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
    in_line_.store(false, std::memory_order_relaxed);
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

  // PENDING as it would be said now, or the UNBLOCKED error.
  bool Unblock(bool with_error) override {
    if (!Cancel()) return false;
    if (with_error) {
      Resume(storage::kNoLsn,
             [](Session&, protocol::Writer& reply) { reply.Error(errors::kUnblocked); });
      return true;
    }
    CountReserve(services_.native, key_, ReserveStatus::kPending, false);
    Resume(storage::kNoLsn, [self = std::static_pointer_cast<ReserveWaiter>(shared_from_this())](
                                Session& session, protocol::Writer& reply) {
      WriteReserveReply(reply, self->PendingNow(session));
    });
    return true;
  }

  void Settle() override {
    if (!in_line_.load(std::memory_order_relaxed)) return;
    const storage::HashedKey key(key_);
    storage::Unit unit(services_.store);
    unit.Lock(key);
    unit.LeaveLine(db_, key);
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

  Services& services_;
  const storage::DbIndex db_;
  const std::string key_;
  const std::string claim_;
  const std::string fingerprint_;
  const std::string ifeq_;
  std::atomic<bool> in_line_{true};  // false: written under the key's lock, read by the connection's thread after the answer came
};

}  // namespace

bool BeginWait(Context& c, const storage::HashedKey& key, const storage::ReserveRequest& request,
               int64_t wait_ms) {
  storage::Store& store = c.services.store;
  const auto max = static_cast<size_t>(store.settings().max_waiters.load(std::memory_order_relaxed));
  const auto max_per_key = static_cast<size_t>(store.settings().max_waiters_per_key.load(std::memory_order_relaxed));
  if (store.waiters() >= max || c.unit.WaitersAt(c.db(), key) >= max_per_key) return false;
  auto waiter = std::make_shared<ReserveWaiter>(c, key.bytes, request,
                                                storage::AddTimeOrNever(c.unit.now_ms(), wait_ms));
  Block(c.session, waiter);
  c.services.native.Count(key.bytes, NativeCounter::kWaits);
  c.unit.Wait(c.db(), key, std::move(waiter));
  return true;
}

}  // namespace idemd::server
