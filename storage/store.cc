// The store itself, and Tick(): expiry and the waiters' timer.
#include "storage/store.h"

#include <algorithm>
#include <chrono>

#include "storage/shard.h"

#ifdef __SANITIZE_THREAD__
// TSan's deadlock detector knows at most 64 locks held at once, and stops the process at the 65th: LockAll() and the log.
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
#endif

namespace idemd::storage {
namespace {

constexpr int64_t kTickEveryMs = 50;         // expired keys are noticed within this, when idle
constexpr int64_t kSweepEveryMsMax = 500;    // and within this in a storm,
constexpr int64_t kSweepShare = 16;          // so that sweeping takes a sixteenth of a core while that lasts
constexpr size_t kGarbagePerTick = 100'000;  // what idle threads left behind; freed in about 10 ms at the most
constexpr size_t kSweepSegmentsPerLock = 2;  // bounded work under one hold of a shard's lock: some 100 us at the most
constexpr size_t kSweptPerTick = 200'000;     // some 20 ms
constexpr size_t kRelocateSegmentsPerLock = 2;
constexpr std::chrono::milliseconds kEvictPerTick{10};  // of what the callers' own time was too short for
constexpr int64_t kMoveBaseEveryMs = 3'600'000;
// The base stays so far behind the time: a writer that was held up after it had read the time may give a key a deadline that
// lies in the past by now.
constexpr int64_t kBaseBehindMs = 60'000;

}  // namespace

Store::Store(Clock& clock, EffectLog& log)
    : clock_(clock), log_(log), fences_(FenceFloor(clock.NowMs()), log), impl_(std::make_unique<Impl>()) {
  for (uint32_t i = 0; i < kShards; ++i) impl_->shards[i].number = i;
  impl_->logs.store(log.wants_effects(), std::memory_order_relaxed);
  impl_->deadline_base_ms.store(clock.NowMs(), std::memory_order_relaxed);
  ProcessPages().KeepSpare(1);
  impl_->coarse_s.store(static_cast<uint32_t>(clock.NowMs() / 1000), std::memory_order_relaxed);
}

Store::~Store() {
  for (Shard& shard : impl_->shards)
    for (auto& table : shard.tables) delete table.load(std::memory_order_relaxed);
}

void Store::SetLogging(bool on, absl::FunctionRef<void()> at_switch) {
  Unit unit(*this);
  unit.LockAll();
  at_switch();
  if (impl_->logs.exchange(on, std::memory_order_relaxed) == on) return;
  // What changed before is nothing that a reply waits for, and no change is under way.
  unit.SetAllLsns(kNoLsn);
}

size_t Store::waiters() const { return impl_->waiters.load(std::memory_order_relaxed); }
size_t Store::wait_timer_size() const { return impl_->timer.size(); }

void Store::SetWake(std::function<void()> wake) { impl_->timer.SetWake(std::move(wake)); }

uint64_t Store::memory_bytes() const {
  uint64_t bytes = sizeof(Impl);
  for (const Shard& shard : impl_->shards) bytes += shard.all_entry_bytes.load(std::memory_order_relaxed);
  EpochGuard guard;
  for (const Shard& shard : impl_->shards) {
    for (const auto& slot : shard.tables) {
      const Table* table = slot.load(std::memory_order_acquire);
      if (table != nullptr) bytes += table->memory_bytes();
    }
  }
  return bytes;
}

MemoryStatus Store::memory_status() const {
  const PagePool::Status pages = ProcessPages().status();
  MemoryStatus status;
  status.used_bytes = memory_bytes();
  // What is used is held, wherever it comes from: malloc, where sanitizers watch.
  status.held_bytes = std::max(pages.in_use_bytes, status.used_bytes);
  status.resident_bytes = status.held_bytes + pages.free_touched_bytes;
  status.huge_pages = pages.huge_pages;
  status.why_not = pages.why_not;
  status.compacting = impl_->compacting.load(std::memory_order_relaxed) != 0;
  return status;
}

bool Store::OverMemoryLimit() const {
  const uint64_t limit = settings_.maxmemory_bytes.load(std::memory_order_relaxed);
  return limit != 0 && memory_bytes() > limit;
}

Limits Store::CurrentLimits() const {
  Limits limits;
  limits.retention_ms = settings_.retention_ms.load(std::memory_order_relaxed);
  limits.lease_ms = settings_.lease_ms.load(std::memory_order_relaxed);
  limits.max_result_bytes = settings_.max_result_bytes.load(std::memory_order_relaxed);
  limits.out_of_memory = OverMemoryLimit();
  return limits;
}

int64_t Store::Tick() {
  const int64_t now = clock_.NowMs();
  impl_->coarse_s.store(static_cast<uint32_t>(now / 1000), std::memory_order_relaxed);
  for (const WaitTimer::Due& due : impl_->timer.TakeDue(now)) {
    Unit unit(*this);
    unit.LockShard(due.shard);
    unit.ServeLine(impl_->shards[due.shard], due.name);
    EndOfTick(unit);
  }
  const bool swept = now < next_sweep_ms_ || SweepInTime(now);
  RoomMade made = evicts() ? MakeRoom(nullptr, kEvictPerTick) : RoomMade();
  if (!made.ready.empty() && on_ready_ != nullptr) on_ready_(std::move(made.ready));
  TendMemory();
  if (!swept || !made.finished) return now;
  return std::min(impl_->timer.next_ms(), now + kTickEveryMs);
}

// Commits a unit of Tick()'s.
void Store::EndOfTick(Unit& unit) {
  unit.Commit();
  if (unit.has_ready() && on_ready_ != nullptr) on_ready_(unit.TakeReady());
}

// A pass over what may be due, and when the next one may begin: with the next tick, but for storms, in which a pass has
// much to do and more at once is cheaper. False: there is more to do at once.
bool Store::SweepInTime(int64_t now) {
  const auto begin = std::chrono::steady_clock::now();
  const bool more = SweepExpired();
  sweep_took_ += std::chrono::steady_clock::now() - begin;
  if (more) return false;
  const int64_t took_ms = std::chrono::duration_cast<std::chrono::milliseconds>(sweep_took_).count();
  sweep_took_ = {};
  const int64_t rest_ms = took_ms * kSweepShare;
  next_sweep_ms_ = rest_ms > kTickEveryMs ? now + std::min(rest_ms, kSweepEveryMsMax) : 0;
  // Everything that expired up to `now` is gone, and what is inline lies after it.
  if (now - impl_->deadline_base_ms.load(std::memory_order_relaxed) >= kMoveBaseEveryMs)
    impl_->deadline_base_ms.store(now - kBaseBehindMs, std::memory_order_relaxed);
  return true;
}

// Returns whether it stopped before all was done, so that waiters are served in time in a storm of expiries.
bool Store::SweepExpired() {
  if (frozen_.load(std::memory_order_relaxed)) return false;
  size_t removed = 0;
  const int64_t now = clock_.NowMs();
  const uint32_t first = sweep_from_;
  for (uint32_t i = 0; i < kShards && removed < kSweptPerTick; ++i) {
    sweep_from_ = (first + i) % kShards;
    Shard& shard = impl_->shards[sweep_from_];
    for (DbIndex db = 0; db < kDatabases; ++db) {
      bool more = true;
      while (more && removed < kSweptPerTick) {
        {
          const EpochGuard guard;
          const Table* table = shard.tables[db].load(std::memory_order_acquire);
          if (table == nullptr || table->next_due_ms() > now) break;
        }
        Unit unit(*this);
        unit.LockShard(shard.number);
        removed += unit.ExpireDue(shard, db, kSweepSegmentsPerLock, &more);
        EndOfTick(unit);
      }
    }
  }
  if (removed != 0) stats_.Add(StorageStats::kExpired, removed);
  return removed >= kSweptPerTick;
}

// Frees what the epochs have let go, brings sparse blocks of the heaps together, and gives pages back to the system.
void Store::TendMemory() {
  CollectGarbage(kGarbagePerTick);
  impl_->graveyard->Work();
  for (Shard& shard : impl_->shards) Evacuate(shard);
  ProcessPages().Tend();
}

// One step of a shard's compaction, or the beginning of one: entries in the sparsest blocks move to others.
void Store::Evacuate(Shard& shard) {
  constexpr size_t kDrainBlocks = 64;
  Unit unit(*this);
  unit.LockShard(shard.number);
  shard.heap->Drain(kDrainBlocks);
  if (!shard.relocating) {
    if (!shard.heap->StartEvacuation()) return;
    shard.relocating = true;
    impl_->compacting.fetch_add(1, std::memory_order_relaxed);
    shard.relocating_db = 0;
    shard.relocated_to = 0;
  }
  if (shard.relocating_db == kDatabases) {
    // A tick later: the epochs have let go of what was moved, and most of the blocks are empty.
    shard.heap->EndEvacuation();
    shard.relocating = false;
    impl_->compacting.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  Table* table = shard.tables[shard.relocating_db].load(std::memory_order_relaxed);
  if (table != nullptr) {
    table->Relocate(&shard.relocated_to, kRelocateSegmentsPerLock, [&](Entry& entry) -> Entry* {
      if (!Heap::Leaving(&entry, entry.size_bytes()) || entry.in_place()) return nullptr;
      Entry* const copy = Entry::MakeCopy(*shard.heap, entry);
      Retire(&entry, &Entry::DestroyRetired);
      return copy;
    });
  }
  if (table != nullptr && shard.relocated_to != 0) return;
  shard.relocated_to = 0;
  // Databases without keys here cost no tick.
  while (++shard.relocating_db < kDatabases &&
         shard.tables[shard.relocating_db].load(std::memory_order_relaxed) == nullptr) {
  }
}

void Store::CheckInvariants() {
  Unit unit(*this);
  unit.LockAll();
  for (Shard& shard : impl_->shards) {
    for (auto& slot : shard.tables) {
      const Table* table = slot.load(std::memory_order_relaxed);
      if (table != nullptr) table->CheckInvariants(impl_->deadline_base_ms.load(std::memory_order_relaxed));
    }
  }
}

// --- prefetching

void Store::PrefetchReference(DbIndex db, const HashedKey& key) const {
  const Table* table = impl_->shards[ShardNumber(key.hash)].tables[db].load(std::memory_order_acquire);
  if (table != nullptr) table->PrefetchReference(key.hash);
}

void Store::Prefetch(DbIndex db, const HashedKey& key, bool change) const {
  const Table* table = impl_->shards[ShardNumber(key.hash)].tables[db].load(std::memory_order_acquire);
  if (table != nullptr) table->Prefetch(key.hash, change);
}

void Store::PrefetchEntry(DbIndex db, const HashedKey& key) const {
  const Table* table = impl_->shards[ShardNumber(key.hash)].tables[db].load(std::memory_order_acquire);
  if (table != nullptr) table->PrefetchEntry(key.hash);
}

void Store::PrefetchAll(DbIndex db, absl::Span<const HashedKey> keys, bool change) const {
  // Of a single key only what need not be waited for.
  if (keys.size() == 1) return Prefetch(db, keys[0], change);
  for (const HashedKey& key : keys) PrefetchReference(db, key);
  for (const HashedKey& key : keys) Prefetch(db, key, change);
  for (const HashedKey& key : keys) PrefetchEntry(db, key);
}

}  // namespace idemd::storage
