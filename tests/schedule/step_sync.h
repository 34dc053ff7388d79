// The Sync of the schedules: atomics that remember, so that a load can be given any value that C++
// allows.
//
// Every location keeps its modification order. A load returns one of the values from the newest
// that happens before it (or that its thread has seen there, or, if it is seq_cst, the last seq_cst
// store) up to the newest of all; which one is the chooser's. Release and acquire carry clocks,
// read-modify-writes continue release sequences and read the newest value. Not modelled: fences,
// and loads that are satisfied by stores that come later.
//
// Beyond values it tells what would be a race: an atomic whose construction does not happen before
// its use, a destruction that does not happen after every use, a use after it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "storage/sync/epoch.h"
#include "storage/sync/sync.h"
#include "tests/schedule/schedule.h"

namespace idemd::storage {

// Who made, used and destroyed something, and whether that is in order.
class StepLife {
 public:
  StepLife() {
    Schedule* s = Schedule::current();
    maker_ = s->me();
    made_ = ++s->clock().at[maker_];
    alive_ = kAlive;
  }
  ~StepLife() { End(); }
  StepLife(const StepLife&) = delete;
  StepLife& operator=(const StepLife&) = delete;

  void Use() const {
    Schedule* s = Schedule::current();
    used_.at[s->me()] = ++s->clock().at[s->me()];
    if (alive_ != kAlive) s->Fail("nothing is used after it was freed");
    if (s->clock().at[maker_] < made_)
      s->Fail("whoever finds a thing sees it whole: made without a release");
  }
  void End() {
    Schedule* s = Schedule::current();
    if (alive_ != kAlive) return;
    for (uint32_t t = 0; t < kStepThreads; ++t)
      if (s->clock().at[t] < used_.at[t])
        s->Fail("a thing is freed after its last use, and the freeing thread knows");
    alive_ = kDead;
  }

 private:
  static constexpr uint32_t kAlive = 0x51feu, kDead = 0xdeadu;
  volatile uint32_t alive_;  // volatile: read after the end, on purpose
  uint32_t maker_;
  uint32_t made_;
  mutable StepClock used_;
};

template <class T>
class StepAtomic {
 public:
  StepAtomic() : StepAtomic(T{}) {}
  explicit StepAtomic(T value) : history_at_(new std::vector<Message>()) {
    const Schedule* s = Schedule::current();
    history_at_->push_back({value, s->me(), s->clock().at[s->me()], std::nullopt});
  }
  // The history stays, so that a use after the end gets some value and the run goes on to tell.
  ~StepAtomic() {
    Schedule::current()->Quarantine([history = history_at_] { delete history; });
  }
  StepAtomic(const StepAtomic&) = delete;
  StepAtomic& operator=(const StepAtomic&) = delete;

  T load(std::memory_order order) const {
    Schedule* s = Begin();
    const size_t newest = history().size() - 1;
    size_t pick = newest;
    if (s->stale()) pick -= s->chooser().Value(static_cast<uint32_t>(newest - Floor(order) + 1));
    seen_[s->me()] = std::max(seen_[s->me()], pick);
    Acquire(history()[pick], order);
    return history()[pick].value;
  }
  void store(T value, std::memory_order order) {
    Begin();
    Append(value, order, std::nullopt);
  }
  T exchange(T value, std::memory_order order) {
    Begin();
    const T old = history().back().value;
    Replace(value, order);
    return old;
  }
  bool compare_exchange(T& expected, T value, std::memory_order order) {
    Begin();
    if (history().back().value != expected) {
      expected = history().back().value;
      seen_[Schedule::current()->me()] = history().size() - 1;
      return false;
    }
    Replace(value, order);
    return true;
  }

 private:
  struct Message {
    T value;
    uint32_t thread;
    uint32_t stamp;
    std::optional<StepClock> released;  // what an acquiring load learns
  };

  static bool IsAcquire(std::memory_order order) {
    return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
  }
  static bool IsRelease(std::memory_order order) {
    return order == std::memory_order_release || order == std::memory_order_acq_rel ||
           order == std::memory_order_seq_cst;
  }
  std::vector<Message>& history() const { return *history_at_; }
  Schedule* Begin() const {
    Schedule* s = Schedule::current();
    s->Step();
    life_.Use();
    return s;
  }
  size_t Floor(std::memory_order order) const {
    const Schedule* s = Schedule::current();
    size_t floor = seen_[s->me()];
    if (order == std::memory_order_seq_cst) floor = std::max(floor, last_seq_cst_);
    for (size_t i = history().size(); i-- > floor;) {
      if (history()[i].stamp <= s->clock().at[history()[i].thread]) return i;
    }
    return floor;
  }
  void Acquire(const Message& message, std::memory_order order) const {
    if (IsAcquire(order) && message.released) Schedule::current()->clock().Join(*message.released);
  }
  void Append(T value, std::memory_order order, const std::optional<StepClock>& continued) {
    const Schedule* s = Schedule::current();
    std::optional<StepClock> released = continued;
    if (IsRelease(order)) {
      if (!released) released.emplace();
      released->Join(s->clock());
    }
    history().push_back({value, s->me(), s->clock().at[s->me()], released});
    seen_[s->me()] = history().size() - 1;
    if (order == std::memory_order_seq_cst) last_seq_cst_ = history().size() - 1;
  }
  void Replace(T value, std::memory_order order) {
    Acquire(history().back(), order);
    const std::optional<StepClock> continued = history().back().released;
    Append(value, order, continued);
  }

  std::vector<Message>* history_at_;
  mutable std::array<size_t, kStepThreads> seen_{};
  size_t last_seq_cst_ = 0;
  StepLife life_;
};

template <Fault planted = Fault::kNone>
struct StepSync {
  static constexpr Fault kFault = planted;
  template <class T>
  using Atomic = StepAtomic<T>;

  static void* Allocate(size_t bytes) { return RealSync::Allocate(bytes); }
  static void Free(void* at, size_t bytes) {
    Schedule::current()->Quarantine([at, bytes] { RealSync::Free(at, bytes); });
  }
};

// Holds off other threads of the schedule; what was done under it happens before the next holder.
class StepMutex {
 public:
  void Lock() {
    Schedule* s = Schedule::current();
    s->Step();
    while (held_) s->Block();
    held_ = true;
    s->clock().Join(released_);
  }
  void Unlock() {
    Schedule* s = Schedule::current();
    ++s->clock().at[s->me()];
    released_ = s->clock();
    held_ = false;
    s->Unblock();
  }

 private:
  bool held_ = false;
  StepClock released_;
};

// The epochs of one schedule: a domain that looks after its backlog at every step, and each
// thread's participant.
template <class Sync>
class StepEpochs {
 public:
  using Domain = BasicEpochDomain<Sync>;
  StepEpochs() : domain_(1) {
    current_ = this;
    for (auto& participant : participants_) participant = &domain_.Join();
  }
  ~StepEpochs() { current_ = nullptr; }
  Domain& domain() { return domain_; }
  static typename Domain::Participant& Mine() {
    return *current_->participants_[Schedule::current()->me()];
  }

 private:
  static inline StepEpochs* current_ = nullptr;
  Domain domain_;
  std::array<typename Domain::Participant*, kStepThreads> participants_{};
};

template <Fault planted>
struct ThisThread<StepSync<planted>> {
  static auto& Participant() { return StepEpochs<StepSync<planted>>::Mine(); }
};

}  // namespace idemd::storage
