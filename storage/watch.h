// WATCH: a mark that is set when a watched key changes.
//
// Threads   set under the key's shard lock by whoever changes the key; read by the watcher's thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/emptied.h"

namespace idemd::storage {

// One caller's watch over all its keys.
struct Watch {
  std::atomic<bool> touched{false};
};

// The watched keys of one shard. Holder of the shard's lock.
class WatchedKeys {
 public:
  bool empty() const { return keys_.empty(); }
  void Add(const std::string& name, std::shared_ptr<Watch> watch) { keys_[name].push_back(std::move(watch)); }
  // Forgets one caller's watch at a key.
  void Remove(const std::string& name, const Watch* watch) {
    auto it = keys_.find(name);
    if (it == keys_.end()) return;
    std::erase_if(it->second, [watch](const std::shared_ptr<Watch>& w) { return w.get() == watch; });
    if (!it->second.empty()) return;
    keys_.erase(it);
    FreeIfEmptied(keys_);
  }
  void Touch(const std::string& name) {
    auto it = keys_.find(name);
    if (it == keys_.end()) return;
    for (const std::shared_ptr<Watch>& watch : it->second) watch->touched.store(true, std::memory_order_release);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, watches] : keys_) names.push_back(name);
    return names;
  }

 private:
  absl::flat_hash_map<std::string, std::vector<std::shared_ptr<Watch>>> keys_;  // by WaitLines::Name
};

}  // namespace idemd::storage
