// Who is blocked at which key of one shard until something is there for them (BLPOP and its kin), in order of arrival.
//
// Unlike in wait_line.h storage only remembers: a unit that changes a key at which somebody is blocked keeps the key's name
// (Unit::TakeReady), and whoever ended the unit serves them, each in a unit of its own.
//
// Threads   holder of the shard's lock.
// Lifetime  a caller stays in its lines until it is taken out; one that is done (Waiter::Cancel) may still stand there.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "storage/emptied.h"
#include "storage/wait/waiter.h"

namespace idemd::storage {

// A key that changed while somebody was blocked at it.
struct ReadyKey {
  DbIndex db;
  std::string key;
};

class BlockedLines {
 public:
  bool empty() const { return lines_.empty(); }

  // `name`: WaitLines::Name. Who stands there already keeps its place.
  void Add(const std::string& name, std::shared_ptr<Waiter> caller) {
    Line& line = lines_[name];
    const bool minds = caller->minds_absence;
    const uint64_t arrival = caller->arrival;
    if (line.callers.emplace(arrival, std::move(caller)).second) line.mind_absence += minds ? 1 : 0;
  }

  void Remove(const std::string& name, const Waiter& caller) {
    const auto line = lines_.find(name);
    if (line == lines_.end() || line->second.callers.erase(caller.arrival) == 0) return;
    line->second.mind_absence -= caller.minds_absence ? 1 : 0;
    if (!line->second.callers.empty()) return;
    lines_.erase(line);
    FreeIfEmptied(lines_);
  }

  bool Contains(const std::string& name) const { return lines_.contains(name); }
  // Whether somebody wants to know that nothing is there any more.
  bool MindAbsence(const std::string& name) const {
    const auto line = lines_.find(name);
    return line != lines_.end() && line->second.mind_absence != 0;
  }
  // The first of those who came after `after`; null: nobody.
  std::shared_ptr<Waiter> Next(const std::string& name, uint64_t after) const {
    const auto line = lines_.find(name);
    if (line == lines_.end()) return nullptr;
    const auto next = line->second.callers.upper_bound(after);
    return next == line->second.callers.end() ? nullptr : next->second;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    names.reserve(lines_.size());
    for (const auto& [name, line] : lines_) names.push_back(name);
    return names;
  }

 private:
  struct Line {
    absl::btree_map<uint64_t, std::shared_ptr<Waiter>> callers;  // by arrival
    size_t mind_absence = 0;
  };
  absl::flat_hash_map<std::string, Line> lines_;
};

}  // namespace idemd::storage
