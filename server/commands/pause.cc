// Holds commands back and lets them go.
#include "server/commands/pause.h"

#include <algorithm>
#include <utility>

#include "server/commands/command.h"

namespace idemd::server {

class Pause::Waiter final : public SessionWaiter {
 public:
  explicit Waiter(Session& session) : SessionWaiter(session) {}
  bool Unblock(bool) override { return false; }
  void Resolve(const storage::WaitAnswer&) override {}  // stands in no line
  // The command has not begun: there is nothing to answer.
  void GoOn() {
    if (Cancel()) Resume(storage::kNoLsn, [](Session&, protocol::Writer&) {});
  }
};

bool Pause::Holds(uint32_t flags) const {
  switch (mode_.load(std::memory_order_relaxed)) {
    case Mode::kNone:
      return false;
    case Mode::kWrite:
      return (flags & (kWrite | kMayReplicate)) != 0;
    case Mode::kAll:
      return true;
  }
  return false;
}

bool Pause::Hold(Session& session) {
  storage::MutexLock lock(mutex_);
  if (!on()) return false;
  auto waiter = std::make_shared<Waiter>(session);
  Block(session, waiter);
  waiters_.push_back(std::move(waiter));
  return true;
}

void Pause::Begin(Mode mode, int64_t until_ms) {
  bool begins = false;
  {
    storage::MutexLock lock(mutex_);
    begins = !on();
    until_ms_ = begins ? until_ms : std::max(until_ms_, until_ms);
    mode_.store(std::max(mode_.load(std::memory_order_relaxed), mode), std::memory_order_relaxed);
  }
  if (begins && on_change_ != nullptr) on_change_(true);
}

void Pause::End() {
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    storage::MutexLock lock(mutex_);
    if (!on()) return;
    mode_.store(Mode::kNone, std::memory_order_relaxed);
    waiters.swap(waiters_);
  }
  Finish(std::move(waiters));
}

void Pause::Tick(int64_t now_ms) {
  if (!on()) return;
  std::vector<std::shared_ptr<Waiter>> waiters;
  {
    storage::MutexLock lock(mutex_);
    if (!on() || now_ms < until_ms_) return;
    mode_.store(Mode::kNone, std::memory_order_relaxed);
    waiters.swap(waiters_);
  }
  Finish(std::move(waiters));
}

void Pause::Finish(std::vector<std::shared_ptr<Waiter>> waiters) {
  if (on_change_ != nullptr) on_change_(on());
  for (const std::shared_ptr<Waiter>& waiter : waiters) waiter->GoOn();
}

std::shared_ptr<Pause> MakePause() { return std::make_shared<Pause>(); }

}  // namespace idemd::server
