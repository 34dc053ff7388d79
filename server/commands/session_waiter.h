// A session that waits for an answer from elsewhere (its turn at a key, a sync, a dump): blocking
// and resuming it.
//
// Whoever ends the wait first marks the waiter done (Waiter::Cancel) and posts the reply to the
// connection's thread; the session is blocked meanwhile, so nothing else of this connection runs.
//
// Threads   made and blocked on the connection's thread; resumed from any.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "protocol/resp/writer.h"
#include "server/commands/context.h"
#include "server/session.h"
#include "storage/wait/waiter.h"

namespace idemd::server {

class SessionWaiter : public storage::Waiter, public std::enable_shared_from_this<SessionWaiter> {
 public:
  // Ends the wait for CLIENT UNBLOCK. False: it is over already, or this kind cannot be ended.
  virtual bool Unblock(bool with_error) = 0;
  // On the connection's thread: Session::give_up_at has come.
  virtual void WaitIsOver() {}
  // On the connection's thread, where no unit holds locks: the wait is over, or the connection gone.
  virtual void Settle() {}

  // Whether its connection is closed, or about to be.
  bool closing() const;

  // On the connection's thread, before it hears of the end: `note` runs there right after the reply was written.
  void NoteAtEnd(std::function<void(const Session& session)> note) { note_at_end_ = std::move(note); }

 protected:
  explicit SessionWaiter(Session& session);
  explicit SessionWaiter(Context& c) : SessionWaiter(c.session) {}
  int resp() const { return resp_; }
  std::shared_ptr<Peer> peer() const { return peer_.lock(); }  // null: gone

  using Write = std::function<void(Session& session, protocol::Writer& reply)>;
  // After Cancel(), or from Resolve(): the session goes on with the reply that `write` makes, which
  // may leave when `need` is durable. `write` runs on the connection's own thread, where no unit
  // holds locks.
  void Resume(storage::Lsn need, Write write);

 private:
  const std::weak_ptr<Peer> peer_;  // a waiter may outlive its connection for a while
  const int resp_;
  const bool quiet_;  // CLIENT REPLY SKIP came before
  std::function<void(const Session& session)> note_at_end_;  // touched by the connection's thread only
};

// From now on nothing of the session runs until its waiter resumes it.
void Block(Session& session, const std::shared_ptr<SessionWaiter>& waiter);

// The connection is gone: nobody waits any more.
void EndWait(Session& session);
// The session was blocked by a command that then failed: it is not. Its place in line stays where it is, for nobody.
void UndoBlock(Session& session);

// CLIENT UNBLOCK for the connection of `peer`. False when it does not wait.
bool UnblockSession(Peer& peer, bool with_error);

// One who waits for a call back instead of a place in line.
class CallWaiter final : public SessionWaiter {
 public:
  // Blocks the session. `at_unblock` writes the reply to CLIENT UNBLOCK ... TIMEOUT; null: it
  // cannot be ended.
  static std::shared_ptr<CallWaiter> Begin(Context& c,
                                           std::function<void(protocol::Writer& reply)> at_unblock);
  // Any thread. Only the first answer counts; it may leave when `need` is durable.
  void Answer(std::function<void(protocol::Writer& reply)> write, storage::Lsn need = storage::kNoLsn);

  bool Unblock(bool with_error) override;
  void Resolve(const storage::WaitAnswer&) override {}  // stands in no line

 private:
  CallWaiter(Context& c, std::function<void(protocol::Writer& reply)> at_unblock)
      : SessionWaiter(c), at_unblock_(std::move(at_unblock)) {}

  const std::function<void(protocol::Writer& reply)> at_unblock_;
};

}  // namespace idemd::server
