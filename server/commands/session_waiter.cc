// How a session is blocked, and how it goes on.
#include "server/commands/session_waiter.h"

#include <algorithm>

#include "protocol/errors.h"

namespace idemd::server {

namespace {

// The session waits no more, for itself and for those who look at it.
void ForgetWaiter(Session& session) {
  session.waiter.reset();
  session.give_up_at = {};
  ClientInfo& info = session.info();
  info.blocked.store(false, std::memory_order_relaxed);
  storage::MutexLock lock(info.mutex);
  info.waiter.reset();
}

}  // namespace

SessionWaiter::SessionWaiter(Session& session)
    : peer_(session.peer),
      resp_(session.resp),
      quiet_(session.reply_mode == ReplyMode::kSkipThis) {}

bool SessionWaiter::closing() const {
  const std::shared_ptr<Peer> peer = peer_.lock();
  return peer == nullptr || peer->info().closing.load(std::memory_order_relaxed);
}

void SessionWaiter::Resume(storage::Lsn need, Write write) {
  const std::shared_ptr<Peer> peer = peer_.lock();
  if (peer == nullptr) return;  // gone while it waited
  // Whoever ended the wait sees that it is over, though the connection's thread is yet to hear of it.
  peer->info().blocked.store(false, std::memory_order_relaxed);
  peer->Resume([self = shared_from_this(), need, resp = resp_, quiet = quiet_,
                write = std::move(write)](Session& session, std::string& out) {
    self->Settle();
    session.need = std::max(session.need, need);
    ForgetWaiter(session);
    if (!quiet) {
      protocol::Writer reply(out, resp);
      write(session, reply);
    }
    if (self->note_at_end_ != nullptr) self->note_at_end_(session);
  });
}

void Block(Session& session, const std::shared_ptr<SessionWaiter>& waiter) {
  session.waiter = waiter;
  ClientInfo& info = session.info();
  info.blocked.store(true, std::memory_order_relaxed);
  storage::MutexLock lock(info.mutex);
  info.waiter = waiter;
}

void EndWait(Session& session) {
  if (session.waiter == nullptr) return;
  // Whoever puts a waiter into a session is Block().
  const auto waiter = std::static_pointer_cast<SessionWaiter>(std::move(session.waiter));
  session.waiter.reset();
  session.give_up_at = {};
  waiter->Cancel();
  waiter->Settle();
}

void UndoBlock(Session& session) {
  if (session.waiter == nullptr) return;
  session.waiter->Cancel();
  ForgetWaiter(session);
}

bool UnblockSession(Peer& peer, bool with_error) {
  std::shared_ptr<storage::Waiter> waiter;
  {
    storage::MutexLock lock(peer.info().mutex);
    waiter = peer.info().waiter;
  }
  // Whoever puts a waiter into ClientInfo is Block().
  return waiter != nullptr && std::static_pointer_cast<SessionWaiter>(waiter)->Unblock(with_error);
}

std::shared_ptr<CallWaiter> CallWaiter::Begin(Context& c,
                                              std::function<void(protocol::Writer&)> at_unblock) {
  std::shared_ptr<CallWaiter> waiter(new CallWaiter(c, std::move(at_unblock)));
  Block(c.session, waiter);
  return waiter;
}

void CallWaiter::Answer(std::function<void(protocol::Writer&)> write, storage::Lsn need) {
  if (!Cancel()) return;
  Resume(need,
         [write = std::move(write)](Session&, protocol::Writer& reply) { write(reply); });
}

bool CallWaiter::Unblock(bool with_error) {
  if (at_unblock_ == nullptr || !Cancel()) return false;
  Resume(storage::kNoLsn,
         [self = shared_from_this(), this, with_error](Session&, protocol::Writer& reply) {
           with_error ? reply.Error(protocol::errors::kUnblocked) : at_unblock_(reply);
         });
  return true;
}

}  // namespace idemd::server
