// Who waits at which key of one shard, in order of arrival, and when time alone will change something for them.
//
// Threads   WaitLines: holder of the shard's lock. WaitTimer: any thread; its lock is taken after shard locks.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/effect.h"
#include "storage/emptied.h"
#include "storage/sync/mutex.h"
#include "storage/wait/waiter.h"

namespace idemd::storage {

struct WaitLine {
  std::deque<std::shared_ptr<Waiter>> waiters;
  size_t gone = 0;                // about so many of waiters have been cancelled since they came
  int64_t wake_ms = kNoDeadline;  // the timer will look at this line then
};

class WaitLines {
 public:
  bool empty() const { return lines_.empty(); }
  // One string names database and key, so that a look-up makes no pair.
  static std::string Name(DbIndex db, absl::string_view key) {
    std::string name(1, static_cast<char>(db));
    name.append(key.data(), key.size());
    return name;
  }
  static DbIndex DbOf(absl::string_view name) { return static_cast<unsigned char>(name[0]); }
  static absl::string_view KeyOf(absl::string_view name) { return name.substr(1); }

  WaitLine* Find(DbIndex db, absl::string_view key) { return FindNamed(Name(db, key)); }
  WaitLine* FindNamed(const std::string& name) {
    auto it = lines_.find(name);
    return it == lines_.end() ? nullptr : &it->second;
  }
  WaitLine& Open(DbIndex db, absl::string_view key) { return lines_[Name(db, key)]; }
  void CloseNamed(const std::string& name) {
    lines_.erase(name);
    FreeIfEmptied(lines_);
  }
  std::vector<std::string> Names() const;

 private:
  absl::flat_hash_map<std::string, WaitLine> lines_;
};

// The times at which lines want to be looked at, one for a line at most.
class WaitTimer {
 public:
  struct Due {
    int64_t at_ms;
    uint32_t shard;
    std::string name;  // WaitLines::Name
  };
  // A line that was to be looked at at `from_ms` is so at `to_ms`; kNoDeadline is never.
  void Move(uint32_t shard, const std::string& name, int64_t from_ms, int64_t to_ms);
  std::vector<Due> TakeDue(int64_t now_ms);
  size_t size() const;
  int64_t next_ms() const { return next_ms_.load(std::memory_order_relaxed); }
  // Called when something earlier than everything before was added.
  void SetWake(std::function<void()> wake);

 private:
  struct Earlier {
    bool operator()(const Due& a, const Due& b) const {
      return std::tie(a.at_ms, a.shard, a.name) < std::tie(b.at_ms, b.shard, b.name);
    }
  };
  mutable Mutex mutex_;
  absl::btree_set<Due, Earlier> due_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> wake_ ABSL_GUARDED_BY(mutex_);
  std::atomic<int64_t> next_ms_{kNoDeadline};
};

}  // namespace idemd::storage
