// CLIENT PAUSE: commands that have to wait until the pause is over, and who waits.
//
// Threads   any. One relaxed load per command while there is no pause.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "server/commands/session_waiter.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class Pause {
 public:
  enum class Mode : uint8_t { kNone, kWrite, kAll };

  // Longer and stricter than a pause under way only: then that goes on.
  void Begin(Mode mode, int64_t until_ms);  // steady milliseconds
  void End();
  // Ends a pause whose time is over; to be called every now and then.
  void Tick(int64_t now_ms);

  bool on() const { return mode_.load(std::memory_order_relaxed) != Mode::kNone; }
  // Whether a command waits that has any of `flags`.
  bool Holds(uint32_t flags) const;
  // Blocks the session: the command is looked at again when the pause is over. False: it is over already.
  bool Hold(Session& session);

  // `hook` gets whether there is a pause, when that has changed.
  void OnChange(std::function<void(bool paused)> hook) { on_change_ = std::move(hook); }

 private:
  class Waiter;
  void Finish(std::vector<std::shared_ptr<Waiter>> waiters);

  std::atomic<Mode> mode_{Mode::kNone};  // written under the mutex
  storage::Mutex mutex_;
  int64_t until_ms_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<Waiter>> waiters_ ABSL_GUARDED_BY(mutex_);
  std::function<void(bool)> on_change_;
};

}  // namespace idemd::server
