// Conversations with other servers, each with blocking calls on one of a few threads: what waits for a stranger's network
// waits where no client is served.
//
// Threads   Begin(): any. Stop() and the destructor: one thread, when nobody calls Begin() any more; a conversation under way
//           is broken off and its caller told so. A name that is being resolved is waited for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "server/commands/outbound.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class OutboundThreads final : public Outbound {
 public:
  static constexpr size_t kThreadsMax = 4;  // made when there is something for them to do

  OutboundThreads() = default;
  ~OutboundThreads() override { Stop(); }
  OutboundThreads(const OutboundThreads&) = delete;
  OutboundThreads& operator=(const OutboundThreads&) = delete;

  void Begin(Conversation conversation, std::function<void(const ConversationResult&)> done) override;
  void Stop();

 private:
  struct Job {
    Conversation conversation;
    std::function<void(const ConversationResult&)> done;
  };
  void Work();
  bool MakeThread() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<bool> stopping_{false};
  storage::Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;             // under mutex_
  std::vector<std::thread> threads_;  // under mutex_
  size_t idle_ = 0;                   // under mutex_
};

}  // namespace idemd::server
