// Tables of flushed databases, freed by a thread of their own: ten million entries take seconds, and neither a command nor
// the expiry of other keys should wait for them.
//
// Threads     Bury(): any, also as a callback of the epochs. Work(): the one thread that calls Store::Tick().
// Lifetime    the destructor waits until everything is freed.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"
#include "storage/table/entry.h"

namespace idemd::storage {

class Graveyard {
 public:
  ~Graveyard();
  // Takes a table that nobody can reach any more.
  void Bury(Table* table);
  // Starts a thread for what was buried, unless one is still at work.
  void Work();

 private:
  std::vector<Table*> TakeAll();

  Mutex mutex_;
  std::vector<Table*> buried_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> working_{false};
  std::thread worker_;
};

}  // namespace idemd::storage
