// How the process comes to stop: what SHUTDOWN and signals ask for, the dump before it, and staying
// up when that fails.
//
// A dump is written while clients are still served, so that a disk that takes none keeps the server
// up (Redis' rule). What they wrote meanwhile goes into a second one after the last of them is
// gone: see saves_at_end().
//
// Threads   any. Lifetime: longer than the work that was asked of `persistence`.
#pragma once

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "server/admin/settings.h"
#include "server/commands/persistence_control.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

struct ShutdownRequest {
  bool save = false;    // a dump, whether or not there are save points
  bool nosave = false;  // no dump
  bool now = false;     // there are no replicas to wait for, so this changes nothing
  bool force = false;   // also when the dump fails
};

class Shutdown {
 public:
  // `stop` begins the end: connections are finished, then the process ends. `persistence` may be
  // null.
  Shutdown(const Settings& settings, PersistenceControl* persistence, std::function<void()> stop);
  Shutdown(const Shutdown&) = delete;
  Shutdown& operator=(const Shutdown&) = delete;

  // `gave_up` is called once, on any thread, if the process goes on after all.
  void Begin(ShutdownRequest request, std::function<void()> gave_up);
  // SIGTERM, or SIGINT: as shutdown-on-sigterm and shutdown-on-sigint say.
  void OnSignal(bool interrupt);
  // SHUTDOWN ABORT. False: there is none under way, or it is too late.
  bool Abort();
  // Whether a dump is to hold everything that clients wrote until the end.
  bool saves_at_end() const;

 private:
  enum class State : uint8_t { kServing, kSaving, kStopping };
  void OnSaved(const absl::Status& saved, bool force);

  const Settings& settings_;
  PersistenceControl* const persistence_;
  const std::function<void()> stop_;
  mutable storage::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kServing;
  bool aborted_ ABSL_GUARDED_BY(mutex_) = false;
  bool saves_at_end_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> gave_up_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server
