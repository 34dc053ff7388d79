// From a wish to stop to the stop, or back to serving.
#include "server/commands/shutdown.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/admin/log.h"

namespace idemd::server {
namespace {

// The words of shutdown-on-sigterm: "default", or what SHUTDOWN takes.
ShutdownRequest RequestOf(absl::string_view words) {
  ShutdownRequest request;
  for (const absl::string_view word : absl::StrSplit(words, ' ')) {
    if (word == "save") request.save = true;
    if (word == "nosave") request.nosave = true;
    if (word == "now") request.now = true;
    if (word == "force") request.force = true;
  }
  return request;
}

}  // namespace

Shutdown::Shutdown(const Settings& settings, PersistenceControl* persistence,
                   std::function<void()> stop)
    : settings_(settings), persistence_(persistence), stop_(std::move(stop)) {}

void Shutdown::Begin(ShutdownRequest request, std::function<void()> gave_up) {
  bool dump = false;
  {
    storage::MutexLock lock(mutex_);
    if (gave_up != nullptr) gave_up_.push_back(std::move(gave_up));
    if (state_ != State::kServing) return;
    // What is only half loaded must not replace the dump that it comes from.
    dump = persistence_ != nullptr && !persistence_->loading() && !request.nosave &&
           (request.save || settings_.has_save_points.load(std::memory_order_relaxed));
    state_ = dump ? State::kSaving : State::kStopping;
    aborted_ = false;
  }
  LogWarning("User requested shutdown...");
  if (!dump) return stop_();
  LogNotice("Saving the final RDB snapshot before exiting.");
  persistence_->SaveNow(
      [this, force = request.force](const absl::Status& saved) { OnSaved(saved, force); });
}

void Shutdown::OnSaved(const absl::Status& saved, bool force) {
  std::vector<std::function<void()>> told;
  bool stops = false;
  {
    storage::MutexLock lock(mutex_);
    stops = !aborted_ && (saved.ok() || force);
    state_ = stops ? State::kStopping : State::kServing;
    saves_at_end_ = saved.ok();
    if (!stops) told = std::exchange(gave_up_, {});
  }
  if (!saved.ok()) {
    LogWarning(absl::StrCat("Error trying to save the DB, ",
                            force ? "exiting anyway" : "can't exit", ": ", saved.message()));
  }
  if (stops) return stop_();
  LogWarning("Errors trying to shut down the server. Check the logs for more information.");
  for (const auto& tell : told) tell();
}

void Shutdown::OnSignal(bool interrupt) {
  if (interrupt) {
    storage::MutexLock lock(mutex_);
    if (state_ == State::kSaving) {
      LogWarning("You insist... exiting now.");
      std::_Exit(1);
    }
  }
  const char* const name = interrupt ? "SIGINT" : "SIGTERM";
  LogWarning(absl::StrCat("Received ", name, " scheduling shutdown..."));
  Begin(RequestOf(settings_.Text(interrupt ? "shutdown-on-sigint" : "shutdown-on-sigterm")),
        [name] {
          LogWarning(
              absl::StrCat(name,
                           " received but errors trying to shut down the server, check the logs "
                           "for more information"));
        });
}

bool Shutdown::saves_at_end() const {
  storage::MutexLock lock(mutex_);
  return saves_at_end_;
}

bool Shutdown::Abort() {
  {
    storage::MutexLock lock(mutex_);
    if (state_ != State::kSaving || aborted_) return false;
    aborted_ = true;
  }
  LogWarning("Shutdown manually aborted.");
  return true;
}

}  // namespace idemd::server
