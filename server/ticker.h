// A thread that does something now and then: its task says how long to wait until the next time.
//
// Threads   Wake() from any, also from inside the task; the constructor and the destructor from
// one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace idemd::server {

class Ticker {
 public:
  // `task` runs at once, and again after the time it returned, or sooner when woken.
  explicit Ticker(std::function<std::chrono::milliseconds()> task);
  // Waits for a task under way.
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  void Wake();

 private:
  void Run();

  const std::function<std::chrono::milliseconds()> task_;
  std::mutex mutex_;  // std::mutex: a condition variable waits with it
  std::condition_variable changed_;
  bool woken_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace idemd::server
