// The tables that are compared, behind one shape: idemd's store as its callers see it, and three
// well-known maps that keep {value, deadline} under a std::string.
//
//   Get(key)             whether the key is there and has not expired
//   GetBatch(keys, i)    how many of the kBatch keys from the i-th on are there
//   Set(key, value, ms)  puts or replaces, with a deadline
//   Remove(key)          whether it was there
//   RemoveDue()          removes what has expired; returns how many
//   Settle()             does what may be done later: not measured
//   WritersShare(bool)   from now on two threads write: a map that is not made for it takes its
//   mutex
//
// All read the same clock. The maps hash as idemd does (XXH3 with the process's seed: clients
// choose the keys), except absl, whose own hash is seeded and as good. None of the maps can remove
// what has expired but by looking at every entry.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "bench/storage/keys.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/hashed_key.h"
#include "storage/store.h"
#include "storage/sync/epoch.h"
#include "xxhash.h"
#ifdef IDEMD_BENCH_TBB
#include <tbb/concurrent_hash_map.h>
#endif
#ifdef IDEMD_BENCH_CUCKOO
#include <libcuckoo/cuckoohash_map.hh>
#endif

namespace idemd::bench {

inline constexpr size_t kBatch = 32;

class IdemdTable {
 public:
  static constexpr const char* kName = "idemd";
  explicit IdemdTable(storage::Clock& clock) : store_(clock, log_) {}

  bool Get(absl::string_view key) {
    storage::Unit unit(store_);
    return static_cast<bool>(unit.Find(0, storage::HashedKey(key)));
  }
  // As a pipeline's commands are executed: all keys hashed and what leads to them asked for step by
  // step, then a unit for each.
  size_t GetBatch(const Keys& keys, size_t first) {
    const storage::EpochGuard guard;
    std::array<storage::HashedKey, kBatch> batch;
    for (size_t i = 0; i < kBatch; ++i) {
      batch[i] = storage::HashedKey(keys[first + i]);
      store_.PrefetchReference(0, batch[i]);
    }
    for (const storage::HashedKey& key : batch) store_.Prefetch(0, key);
    for (const storage::HashedKey& key : batch) store_.PrefetchEntry(0, key);
    size_t found = 0;
    for (const storage::HashedKey& key : batch) {
      storage::Unit unit(store_);
      if (unit.Find(0, key)) ++found;
    }
    return found;
  }
  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms) {
    storage::Unit unit(store_);
    const storage::HashedKey hashed(key);
    unit.Lock(hashed);
    unit.SetString(0, hashed, value, deadline_ms);
  }
  bool Remove(absl::string_view key) {
    storage::Unit unit(store_);
    const storage::HashedKey hashed(key);
    unit.Lock(hashed);
    return unit.Remove(0, hashed);
  }
  // One tick, and the memory of what it removed.
  size_t RemoveDue() {
    const size_t before = size();
    store_.Tick();
    storage::CollectGarbage(SIZE_MAX);
    return before - size();
  }
  void Settle() {
    for (int i = 0; i < 8; ++i) {  // an epoch each
      store_.Tick();
      storage::CollectGarbage(SIZE_MAX);
    }
  }
  void WritersShare(bool) {}
  size_t size() {
    storage::Unit unit(store_);
    return unit.Size(0);
  }
  storage::Store& store() { return store_; }

 private:
  storage::NullLog log_;
  storage::Store store_;
};

struct TimedValue {
  std::string value;
  int64_t deadline_ms = storage::kNoDeadline;
};

// What the three maps have in common.
template <class Map>
class RivalTable {
 public:
  explicit RivalTable(storage::Clock& clock) : clock_(clock) {}
  size_t GetBatch(const Keys& keys, size_t first) {
    size_t found = 0;
    for (size_t i = 0; i < kBatch; ++i) found += self().Get(keys[first + i]) ? 1 : 0;
    return found;
  }
  void Settle() {}
  void WritersShare(bool) {}

 protected:
  bool Live(const TimedValue& value) { return value.deadline_ms > clock_.NowMs(); }
  storage::Clock& clock_;

 private:
  Map& self() { return static_cast<Map&>(*this); }
};

// absl::flat_hash_map: no locks while one thread uses it or all only read; else one mutex.
class FlatTable : public RivalTable<FlatTable> {
 public:
  static constexpr const char* kName = "absl::flat_hash_map";
  using RivalTable::RivalTable;

  bool Get(absl::string_view key) {
    const auto hold = Hold();
    const auto it = map_.find(key);
    return it != map_.end() && Live(it->second);
  }
  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms) {
    const auto hold = Hold();
    TimedValue& at = map_[key];
    at.value.assign(value.data(), value.size());
    at.deadline_ms = deadline_ms;
  }
  bool Remove(absl::string_view key) {
    const auto hold = Hold();
    return map_.erase(key) != 0;
  }
  size_t RemoveDue() {
    const size_t before = map_.size();
    for (auto it = map_.begin(); it != map_.end();) {
      const auto here = it++;
      if (!Live(here->second)) map_.erase(here);
    }
    return before - map_.size();
  }
  void WritersShare(bool share) { share_ = share; }
  size_t size() { return map_.size(); }

 private:
  std::unique_lock<std::mutex> Hold() {
    return share_ ? std::unique_lock<std::mutex>(mutex_) : std::unique_lock<std::mutex>();
  }
  bool share_ = false;
  std::mutex mutex_;
  absl::flat_hash_map<std::string, TimedValue> map_;
};

inline uint64_t HashOf(absl::string_view key) {
  return XXH3_64bits_withSeed(key.data(), key.size(), storage::HashSeed());
}

#ifdef IDEMD_BENCH_TBB
class TbbTable : public RivalTable<TbbTable> {
 public:
  static constexpr const char* kName = "tbb::concurrent_hash_map";
  using RivalTable::RivalTable;

  bool Get(absl::string_view key) {
    Map::const_accessor at;
    return map_.find(at, key) && Live(at->second);
  }
  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms) {
    Map::accessor at;
    map_.insert(at, key);
    at->second.value.assign(value.data(), value.size());
    at->second.deadline_ms = deadline_ms;
  }
  bool Remove(absl::string_view key) { return map_.erase(key); }
  // No iterator survives an erase, so the keys are remembered first.
  size_t RemoveDue() {
    std::vector<std::string> due;
    for (const auto& [key, value] : map_)
      if (!Live(value)) due.push_back(key);
    for (const std::string& key : due) map_.erase(key);
    return due.size();
  }
  size_t size() { return map_.size(); }

 private:
  struct HashCompare {
    using is_transparent = void;
    size_t hash(absl::string_view key) const { return HashOf(key); }
    bool equal(absl::string_view a, absl::string_view b) const { return a == b; }
  };
  using Map = tbb::concurrent_hash_map<std::string, TimedValue, HashCompare>;
  Map map_;
};
#endif

#ifdef IDEMD_BENCH_CUCKOO
class CuckooTable : public RivalTable<CuckooTable> {
 public:
  static constexpr const char* kName = "libcuckoo";
  using RivalTable::RivalTable;

  bool Get(absl::string_view key) {
    bool live = false;
    map_.find_fn(key, [&](const TimedValue& value) { live = Live(value); });
    return live;
  }
  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms) {
    TimedValue fresh{std::string(value), deadline_ms};
    map_.upsert(
        key, [&](TimedValue& at) { at = fresh; }, fresh);
  }
  bool Remove(absl::string_view key) { return map_.erase(key); }
  size_t RemoveDue() {
    auto all = map_.lock_table();
    const size_t before = all.size();
    for (auto it = all.begin(); it != all.end();) {
      auto here = it++;
      if (!Live(here->second)) all.erase(here);
    }
    return before - all.size();
  }
  size_t size() { return map_.size(); }

 private:
  struct Hash {
    size_t operator()(absl::string_view key) const { return HashOf(key); }
  };
  libcuckoo::cuckoohash_map<std::string, TimedValue, Hash, std::equal_to<>> map_;
};
#endif

// Calls `each` with a null pointer to every table type that was built in.
template <class Each>
void ForEachTable(Each each) {
  each(static_cast<IdemdTable*>(nullptr));
  each(static_cast<FlatTable*>(nullptr));
#ifdef IDEMD_BENCH_TBB
  each(static_cast<TbbTable*>(nullptr));
#endif
#ifdef IDEMD_BENCH_CUCKOO
  each(static_cast<CuckooTable*>(nullptr));
#endif
}

// What this build has to do without, by name.
inline std::vector<std::string> LeftOut() {
  std::vector<std::string> names;
#ifndef IDEMD_BENCH_TBB
  names.emplace_back("tbb::concurrent_hash_map (no libtbb-dev)");
#endif
#ifndef IDEMD_BENCH_CUCKOO
  names.emplace_back("libcuckoo (no libcuckoo-dev)");
#endif
  return names;
}

}  // namespace idemd::bench
