// The waiting loop of a ticker.
#include "server/ticker.h"

#include <algorithm>
#include <utility>

namespace idemd::server {
namespace {

// A task that wants to run at once, again and again, still lets others have the processor.
constexpr std::chrono::milliseconds kWaitMin{1};
// And one that never wants to run again is looked at now and then: its clock may differ from ours.
constexpr std::chrono::milliseconds kWaitMax{1000};

}  // namespace

Ticker::Ticker(std::function<std::chrono::milliseconds()> task)
    : task_(std::move(task)), thread_([this] { Run(); }) {}

Ticker::~Ticker() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Ticker::Wake() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void Ticker::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    woken_ = false;
    lock.unlock();
    const auto wait = std::clamp(task_(), kWaitMin, kWaitMax);
    lock.lock();
    changed_.wait_for(lock, wait, [this] { return woken_ || ending_; });
  }
}

}  // namespace idemd::server
