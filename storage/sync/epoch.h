// Epoch-based reclamation (Fraser 2004): frees what was taken out of a structure when no reader can
// be looking at it any more.
//
// A reader makes an EpochGuard, then looks. A writer takes a thing out of every place where it could
// be found, then calls Retire(). One counter, the epoch, moves on when every open guard has pinned
// its current value.
//
//   epoch   ... w             w+1              w+2              w+3
//   remover     |- guard, unlinking, Retire -|
//   reader A    |------- may hold it, pins w -------|
//   reader B                  |-- may hold it, pins w+1 --|
//   reader C                                   |-- cannot find it [R3] ...
//                                                               free
//
// Threads     All of it, any time. A participant belongs to one thread.
// Invariants  [R1] While a guard that pinned e is open, the epoch is at most e + 1.
//             [R2] A thing retired under a guard that pinned w is freed when the epoch is w + 3 or
//                  later.
//             [R3] A guard that pins w + 2 or later cannot find it.
//
// Why R1: Enter() stores e to the slot and then reads the epoch, both seq_cst. A scan that begins at
// epoch e + 1 and misses the store comes before it in the one order of seq_cst operations; then so
// does the read of e + 1 with which that scan began, and Enter() reads e + 1 or more and pins anew.
// Why R3: by R1 the step from w + 1 to w + 2 saw the remover's guard ended (a release that the scan
// acquires). So the unlinking happens before that step, and the step before a guard that reads w + 2.
// Why R2 is enough: by R3 only guards that pinned w + 1 or less hold the thing, and by R1 the step to
// w + 3 saw the last of them ended: what they did happens before the free. The pin of the remover is
// used, not the epoch at Retire(): a plain load could be satisfied before the unlinking is visible.
//
// Cost        The outermost guard: one seq_cst store (an xchg) and a load that hits. A nested one: a
//             counter.
// Bounds      A thread looks after its backlog every kCollectEvery retirements and guards. What
//             waits is what was retired while the oldest guard has been open, and the last few of
//             each thread. A backlog above kHandOver goes to the domain, where any thread frees it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "storage/sync/garbage_ring.h"
#include "storage/sync/mutex.h"
#include "storage/sync/sync.h"

namespace idemd::storage {

template <class Sync>
class BasicEpochDomain {
 public:
  static constexpr uint64_t kOutside = 0;  // a slot's value when its thread has no guard
  static constexpr uint64_t kGrace = Sync::kFault == Fault::kFreedOneEpochEarly ? 2 : 3;
  static constexpr uint32_t kCollectEvery =
      64;  // a scan reads one line per thread: seldom enough to cost nothing
  static constexpr size_t kCollectMin =
      64;  // per look; with 1/256 of the backlog more, so that it drains
  static constexpr size_t kHandOver =
      8192;  // a thread that dropped a database must not have to clean up alone

  // After something large: enough looks for the epoch to come far enough when other guards were open at the first.
  static constexpr uint32_t kUrgentLooks = 4;

  // One thread's part: its slot, which all read, and its backlog, which is its own.
  class alignas(64) Participant {
   public:
    void Enter();
    void Leave();
    // The caller has unlinked `at`; it is destroyed by some thread after every guard that may have
    // seen it has ended.
    void Retire(void* at, void (*destroy)(void*));
    // The same for what holds much memory: it is not left to wait until this thread has retired more, but looked at
    // when its guard ends, and by whoever collects.
    void RetireLarge(void* at, void (*destroy)(void*));
    bool inside() const { return depth_ != 0; }
    // For structures that reuse places instead of retiring them: what is emptied under a guard that pinned pin() may be
    // filled again when domain_epoch() is kGrace further.
    uint64_t pin() const { return pin_; }
    uint64_t domain_epoch() const { return domain_.epoch(); }
    size_t backlog() const { return backlog_.size(); }

   private:
    friend class BasicEpochDomain;
    explicit Participant(BasicEpochDomain& domain) : domain_(domain) {}
    void Look();

    // Writer: this thread. Readers: any thread's TryAdvance(). kOutside, or the epoch that its
    // guard pinned.
    typename Sync::template Atomic<uint64_t> pinned_{kOutside};
    uint64_t pin_ = kOutside;  // what pinned_ holds
    uint32_t depth_ = 0;
    uint32_t until_look_ = 1;
    uint32_t urgent_looks_ = 0;  // so many guards more end with a look
    GarbageRing backlog_;  // pins never fall from front to back
    BasicEpochDomain& domain_;
    Participant* next_ = nullptr;  // of all participants; set before it is published
    // Writers: Join() and Part(), any thread. Whether a thread owns it.
    typename Sync::template Atomic<bool> taken_{true};
  };

  explicit BasicEpochDomain(uint32_t collect_every = kCollectEvery)
      : collect_every_(collect_every) {}
  ~BasicEpochDomain();  // nobody uses it any more: destroys all that is left
  BasicEpochDomain(const BasicEpochDomain&) = delete;
  BasicEpochDomain& operator=(const BasicEpochDomain&) = delete;

  Participant& Join();
  // The thread ends: its backlog is handed over to the others.
  void Part(Participant& participant);
  // Moves the epoch on if every open guard has pinned the current one.
  bool TryAdvance();
  // Destroys up to `max` things of this thread and of those handed over whose time has come;
  // returns how many.
  size_t Collect(Participant& participant, size_t max);
  // Destroys everything retired by this thread or handed over. No guard of this thread is open;
  // waits for the others'.
  void DrainForTest(Participant& participant);
  uint64_t epoch() const { return epoch_.load(std::memory_order_acquire); }

 private:
  size_t CollectHandedOver(uint64_t epoch, size_t max);
  void HandOver(GarbageRing& backlog, size_t keep);

  const uint32_t collect_every_;
  // Writers: TryAdvance(), any thread. Readers: all. Begins above kGrace so that no subtraction
  // wraps.
  alignas(64) typename Sync::template Atomic<uint64_t> epoch_{8};
  // Writers: Join(). Participants are never freed before the domain; a thread that ended leaves its
  // own to be reused.
  alignas(64) typename Sync::template Atomic<Participant*> participants_{nullptr};
  // No atomic operation of Sync happens under it, so a schedule never stops inside.
  Mutex handed_over_mutex_;
  std::deque<Garbage> handed_over_ ABSL_GUARDED_BY(handed_over_mutex_);
};

// Finds the running thread's participant; the server's is below, StepSync's beside it.
template <class Sync>
struct ThisThread;

// Keeps what is found under it from being freed. Nests; only the outermost one costs anything.
template <class Sync>
class BasicEpochGuard {
 public:
  BasicEpochGuard() : BasicEpochGuard(ThisThread<Sync>::Participant()) {}
  explicit BasicEpochGuard(typename BasicEpochDomain<Sync>::Participant& participant)
      : participant_(participant) {
    participant_.Enter();
  }
  ~BasicEpochGuard() { participant_.Leave(); }
  BasicEpochGuard(const BasicEpochGuard&) = delete;
  BasicEpochGuard& operator=(const BasicEpochGuard&) = delete;

 private:
  typename BasicEpochDomain<Sync>::Participant& participant_;
};

template <class Sync>
void BasicRetire(void* at, void (*destroy)(void*)) {
  ThisThread<Sync>::Participant().Retire(at, destroy);
}

// --- the process-wide domain of the server
using EpochDomain = BasicEpochDomain<RealSync>;
using EpochGuard = BasicEpochGuard<RealSync>;

EpochDomain& ProcessEpochs();

template <>
struct ThisThread<RealSync> {
  static EpochDomain::Participant& Participant() {
    return participant != nullptr ? *participant : Join();
  }

 private:
  friend struct ThreadEnd;
  static EpochDomain::Participant& Join();
  static constinit thread_local EpochDomain::Participant* participant;
};

inline void Retire(void* at, void (*destroy)(void*)) { BasicRetire<RealSync>(at, destroy); }
inline void RetireLarge(void* at, void (*destroy)(void*)) {
  ThisThread<RealSync>::Participant().RetireLarge(at, destroy);
}
// For a thread that comes by regularly: moves the epoch on and frees up to `max` things, other
// threads' surplus included.
size_t CollectGarbage(size_t max);
// Frees everything this thread retired and everything handed over; for tests, outside every guard.
void DrainForTest();

// --- template bodies

template <class Sync>
void BasicEpochDomain<Sync>::Participant::Enter() {
  if (depth_++ != 0) return;
  constexpr auto kPinOrder = Sync::kFault == Fault::kEnteredRelaxed ? std::memory_order_relaxed
                                                                    : std::memory_order_seq_cst;
  // Relaxed: only a guess. The read after the store decides.
  uint64_t epoch = domain_.epoch_.load(std::memory_order_relaxed);
  for (;;) {
    pinned_.store(epoch, kPinOrder);  // [R1] before the read below, in the order that scans see
    if constexpr (Sync::kFault == Fault::kEnteredWithoutRecheck) break;
    // [R1] [R3] acquires the steps up to this epoch. At most one more round: a pinned slot holds
    // the epoch.
    const uint64_t now = domain_.epoch_.load(std::memory_order_seq_cst);
    if (now == epoch) break;
    epoch = now;
  }
  pin_ = epoch;
}

template <class Sync>
void BasicEpochDomain<Sync>::Participant::Leave() {
  if (--depth_ != 0) return;
  constexpr auto kLeaveOrder =
      Sync::kFault == Fault::kLeftRelaxed ? std::memory_order_relaxed : std::memory_order_release;
  pinned_.store(kOutside,
                kLeaveOrder);  // [R2] [R3] all that was done inside; pairs with TryAdvance()
  if (urgent_looks_ != 0) {
    --urgent_looks_;
    // Outside every guard of its own the thread can move the epoch all the way, if no other guard is open.
    for (uint64_t step = 1; step < kGrace; ++step)
      if (!domain_.TryAdvance()) break;
    Look();
  } else if (!backlog_.empty() && --until_look_ == 0) {
    Look();
  }
}

template <class Sync>
void BasicEpochDomain<Sync>::Participant::RetireLarge(void* at, void (*destroy)(void*)) {
  BasicEpochGuard<Sync> guard(*this);
  {
    const MutexLock lock(domain_.handed_over_mutex_);
    domain_.handed_over_.push_back({at, destroy, pin_});
  }
  urgent_looks_ = kUrgentLooks;
}

template <class Sync>
void BasicEpochDomain<Sync>::Participant::Retire(void* at, void (*destroy)(void*)) {
  // Without a guard one is made here: then the pin is read after the unlinking, which is as good.
  BasicEpochGuard<Sync> guard(*this);
  backlog_.push_back({at, destroy, pin_});
  if (--until_look_ == 0) Look();
}

template <class Sync>
void BasicEpochDomain<Sync>::Participant::Look() {
  until_look_ = domain_.collect_every_;
  domain_.TryAdvance();
  domain_.Collect(*this, kCollectMin + backlog_.size() / 256);
  if (backlog_.size() > kHandOver) domain_.HandOver(backlog_, kHandOver / 2);
}

template <class Sync>
BasicEpochDomain<Sync>::~BasicEpochDomain() {
  while (!handed_over_.empty()) {
    const Garbage garbage = handed_over_.front();
    handed_over_.pop_front();
    garbage.destroy(garbage.at);
  }
  Participant* p = participants_.load(std::memory_order_acquire);
  while (p != nullptr) {
    while (!p->backlog_.empty()) {
      const Garbage garbage = p->backlog_.front();
      p->backlog_.pop_front();
      garbage.destroy(garbage.at);
    }
    delete std::exchange(p, p->next_);
  }
}

template <class Sync>
typename BasicEpochDomain<Sync>::Participant& BasicEpochDomain<Sync>::Join() {
  // Acquire: what the thread that left it did to its plain members; pairs with Part().
  for (Participant* p = participants_.load(std::memory_order_acquire); p != nullptr; p = p->next_) {
    bool taken = false;
    if (p->taken_.compare_exchange(taken, true, std::memory_order_acquire)) return *p;
  }
  auto* fresh = new Participant(*this);
  fresh->next_ = participants_.load(std::memory_order_relaxed);
  // Release: the participant is whole before a scan finds it. seq_cst: [R1] a scan that misses it
  // came before its first Enter() in the one order.
  while (!participants_.compare_exchange(fresh->next_, fresh, std::memory_order_seq_cst)) {
  }
  return *fresh;
}

template <class Sync>
void BasicEpochDomain<Sync>::Part(Participant& participant) {
  HandOver(participant.backlog_, 0);
  participant.until_look_ = 1;
  participant.taken_.store(false, std::memory_order_release);  // pairs with Join()
}

template <class Sync>
bool BasicEpochDomain<Sync>::TryAdvance() {
  uint64_t epoch =
      epoch_.load(std::memory_order_seq_cst);  // [R1] before the slots, in the one order
  for (Participant* p = participants_.load(std::memory_order_seq_cst); p != nullptr; p = p->next_) {
    // [R1] sees every pin before it in the one order; [R2] acquires the guards that have ended.
    const uint64_t pinned = p->pinned_.load(std::memory_order_seq_cst);
    if (pinned != kOutside && pinned != epoch) return false;
  }
  return epoch_.compare_exchange(epoch, epoch + 1, std::memory_order_seq_cst);
}

template <class Sync>
size_t BasicEpochDomain<Sync>::Collect(Participant& participant, size_t max) {
  const uint64_t epoch =
      epoch_.load(std::memory_order_acquire);  // [R2] the scans that let it come this far
  size_t destroyed = 0;
  auto& backlog = participant.backlog_;
  while (destroyed < max && !backlog.empty() && backlog.front().pin + kGrace <= epoch) {
    // Taken out first: destroying may retire.
    const Garbage garbage = backlog.front();
    backlog.pop_front();
    garbage.destroy(garbage.at);
    ++destroyed;
  }
  return destroyed + CollectHandedOver(epoch, max - destroyed);
}

template <class Sync>
size_t BasicEpochDomain<Sync>::CollectHandedOver(uint64_t epoch, size_t max) {
  if (max == 0 || !handed_over_mutex_.TryLock()) return 0;  // busy: another thread is at it
  std::vector<Garbage> ready;
  // Several threads' backlogs one after another: each is in order, so the first that is too young
  // ends the search.
  while (ready.size() < max && !handed_over_.empty() &&
         handed_over_.front().pin + kGrace <= epoch) {
    ready.push_back(handed_over_.front());
    handed_over_.pop_front();
  }
  handed_over_mutex_.Unlock();
  for (const Garbage& garbage : ready) garbage.destroy(garbage.at);
  return ready.size();
}

template <class Sync>
void BasicEpochDomain<Sync>::HandOver(GarbageRing& backlog, size_t keep) {
  if (backlog.size() <= keep) return;
  const MutexLock lock(handed_over_mutex_);
  // The oldest go: they are due first, and the next thread to collect can free them.
  while (backlog.size() > keep) {
    handed_over_.push_back(backlog.front());
    backlog.pop_front();
  }
}

template <class Sync>
void BasicEpochDomain<Sync>::DrainForTest(Participant& participant) {
  HandOver(participant.backlog_, 0);
  for (;;) {
    {
      const MutexLock lock(handed_over_mutex_);
      if (handed_over_.empty() && participant.backlog_.empty()) return;
    }
    TryAdvance();
    Collect(participant, SIZE_MAX);
  }
}

}  // namespace idemd::storage
