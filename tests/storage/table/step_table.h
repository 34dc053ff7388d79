// A table under a schedule: entries that tell when they are misused, and the states that each key
// went through.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "storage/table/table.h"
#include "tests/schedule/step_sync.h"

namespace idemd::storage {

inline uint64_t TestHash(uint64_t number) {  // splitmix64
  uint64_t x = number * 0x9e3779b97f4a7c15u + 0x1234567u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class StepEntry {
 public:
  StepEntry(uint32_t key, int version, int64_t deadline_ms = kNoDeadline)
      : name_(std::to_string(key)), number_(key), version_(version), deadline_ms_(deadline_ms) {
    ++living;
  }
  static void Destroy(StepEntry* entry) {
    entry->life_.End();
    --living;
    Schedule::current()->Quarantine([entry] { delete entry; });
  }

  absl::string_view key() const {
    life_.Use();
    return name_;
  }
  uint32_t number() const {
    life_.Use();
    return number_;
  }
  int version() const {
    life_.Use();
    return version_;
  }
  int64_t deadline_ms() const { return deadline_ms_; }

  static inline int living = 0;

 private:
  StepLife life_;
  const std::string name_;
  const uint32_t number_;
  const int version_;
  const int64_t deadline_ms_;
};

inline uint64_t EntryHash(const StepEntry& entry) { return TestHash(entry.number()); }

// Two buckets of two slots and two stashed: six keys fill a segment.
struct TinyShape {
  static constexpr uint32_t kSlots = 2;
  static constexpr uint32_t kBucketBits = 1;
  static constexpr uint32_t kBucketBitsFirst = 1;
  static constexpr uint32_t kBucketsPerStash = 16;
  static constexpr uint32_t kMergeDivisor = 2;
  static constexpr size_t kKeysPerReferenceMin = 1;
};
// Begins with two buckets and grows to four before it splits.
struct SmallShape : TinyShape {
  static constexpr uint32_t kBucketBits = 2;
};

// The states of one key in the order in which the writers made them. A state begins at some step of
// the operation that made it, so that a find may answer it from that operation's first step until
// the next one's last.
class KeyStates {
 public:
  static constexpr int kAbsent = -1;

  void Begin(int version) { states_.push_back({version, UINT64_MAX}); }
  void End(uint64_t now) { states_.back().surely_from = now; }
  int now() const { return states_.back().version; }

  // The earliest state, not before number `from`, that a find from step `begun` until now may have
  // answered with `version`; -1: none. With `timeless`, steps say nothing about what is visible to
  // whom (stale values).
  int Explain(int version, int from, uint64_t begun, bool timeless) const {
    for (size_t i = static_cast<size_t>(from); i < states_.size(); ++i) {
      const bool over = i + 1 < states_.size() && states_[i + 1].surely_from < begun;
      if (states_[i].version == version && (timeless || !over)) return static_cast<int>(i);
    }
    return -1;
  }

 private:
  struct State {
    int version;
    uint64_t surely_from;  // the step at which its operation had ended
  };
  std::vector<State> states_ = {{kAbsent, 0}};
};

template <class Sync, class Shape>
class StepTable {
 public:
  static constexpr uint32_t kKeys = 24;
  using Table = BasicTable<StepEntry, Sync, Shape>;

  explicit StepTable(Schedule& schedule) : schedule_(schedule) {}

  Table& table() { return table_; }
  const KeyStates& states(uint32_t key) const { return states_[key]; }

  // Writers; the lock is taken here, inside a guard as in a Unit.
  void Put(uint32_t key) {
    const BasicEpochGuard<Sync> guard;
    mutex_.Lock();
    auto* fresh = new StepEntry(key, ++version_);
    states_[key].Begin(version_);
    if (StepEntry* old = table_.Put(TestHash(key), fresh)) Retire(old);
    states_[key].End(schedule_.now());
    mutex_.Unlock();
  }
  void Take(uint32_t key) {
    const BasicEpochGuard<Sync> guard;
    mutex_.Lock();
    const bool there = states_[key].now() != KeyStates::kAbsent;
    states_[key].Begin(KeyStates::kAbsent);
    StepEntry* old = table_.Take(TestHash(key), std::to_string(key));
    schedule_.Expect((old != nullptr) == there, "Take finds what was put [T2]");
    if (old != nullptr) Retire(old);
    states_[key].End(schedule_.now());
    mutex_.Unlock();
  }

  // One reader's memory: what it saw of each key must not go back.
  class Reader {
   public:
    explicit Reader(StepTable& of) : of_(of) {}

    void Find(uint32_t key) {
      of_.epochs_.domain().TryAdvance();  // as a thread with a backlog does now and then
      const uint64_t begun = of_.schedule_.now();
      const BasicEpochGuard<Sync> guard;
      const StepEntry* entry = of_.table_.Find(TestHash(key), std::to_string(key));
      const int version = entry == nullptr ? KeyStates::kAbsent : entry->version();
      const int state = of_.states_[key].Explain(version, at_[key], begun, of_.schedule_.stale());
      of_.schedule_.Expect(state >= 0, entry == nullptr ? "absent is a promise [T2] [T3]"
                                                        : "what is found is current [T2]");
      if (state >= 0) at_[key] = state;
    }
    // A whole scan; returns the keys seen.
    std::set<uint32_t> Scan() {
      std::set<uint32_t> seen;
      uint32_t cursor = 0;
      do {
        const BasicEpochGuard<Sync> guard;
        cursor = of_.table_.Scan(cursor, [&](StepEntry& entry) { seen.insert(entry.number()); });
      } while (cursor != 0);
      return seen;
    }

   private:
    StepTable& of_;
    std::array<int, kKeys> at_{};
  };

 private:
  void Retire(StepEntry* old) { BasicRetire<Sync>(old, &DestroyRetired); }
  static void DestroyRetired(void* at) { StepEntry::Destroy(static_cast<StepEntry*>(at)); }

  Schedule& schedule_;
  StepEpochs<Sync> epochs_;  // outlives the table, which retires to it
  Table table_;
  StepMutex mutex_;
  int version_ = 0;
  std::array<KeyStates, kKeys> states_;
};

}  // namespace idemd::storage
