// One caller who waits at a pending key, as the store sees it.
//
// The host makes one, hands it to Unit::Wait(), and gets Resolve() once: with the answer that RESERVE would have given
// at that moment, or with PENDING when patience ran out.
// Threads   Resolve() is called on whichever thread ended the unit, under the key's shard lock: it must only hand the
//           answer over (post it to the connection's loop) and never call the store.
// Lifetime  the request's views must stay valid until Resolve() or Cancel() has returned.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "storage/effect.h"
#include "storage/record/life.h"

namespace idemd::storage {

struct WaitAnswer {
  LifeError error = LifeError::kNone;
  bool damaged_or_wrong = false;
  ReserveReply reply;  // payload is in `payload` instead
  // The bytes of the stored answer, shared by all who waited for it; null when there are none.
  std::shared_ptr<const std::string> payload;
  bool took_over = false;
  Lsn need = kNoLsn;  // the reply may leave when this is durable
};

class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void Resolve(const WaitAnswer& answer) = 0;

  // Of one who is blocked at keys (blocked_lines.h): its place among all who are; and whether it is to be looked at when
  // nothing, or something else, is there.
  uint64_t arrival = 0;
  bool minds_absence = false;

  ReserveRequest request;
  int64_t give_up_at_ms = kNoDeadline;  // effective time
  // For telling why a token has no right (ISSUED).
  TokenOrigin (*origin)(const Waiter&, int64_t now_ms) = nullptr;

  // Any thread: from now on nobody resolves it (the connection is gone, or was unblocked). False when it was resolved
  // already: its answer is on the way.
  bool Cancel() { return !done_.exchange(true, std::memory_order_acq_rel); }
  bool canceled_or_done() const { return done_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> done_{false};
};

}  // namespace idemd::storage
