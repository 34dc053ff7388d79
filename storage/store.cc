// The store itself, and Tick(): expiry and the waiters' timer.
#include "storage/store.h"

#include <algorithm>

#include "storage/shard.h"

#ifdef __SANITIZE_THREAD__
// TSan's deadlock detector knows at most 64 locks held at once, and stops the process at the 65th: LockAll() and the log.
extern "C" const char* __tsan_default_options() { return "detect_deadlocks=0"; }
#endif

namespace idemd::storage {
namespace {

constexpr int64_t kSweepEveryMs = 50;        // expired keys are noticed within this, when idle
constexpr size_t kGarbagePerTick = 100'000;  // what idle threads left behind; freed in about 10 ms at the most
constexpr size_t kSweepSegmentsPerLock = 8;  // bounded work under one hold of a shard's lock

}  // namespace

Store::Store(Clock& clock, EffectLog& log)
    : clock_(clock), log_(log), fences_(FenceFloor(clock.NowMs())), impl_(std::make_unique<Impl>()) {
  for (uint32_t i = 0; i < kShards; ++i) impl_->shards[i].number = i;
  impl_->logs = log.wants_effects();
  impl_->coarse_s.store(static_cast<uint32_t>(clock.NowMs() / 1000), std::memory_order_relaxed);
}

Store::~Store() {
  for (Shard& shard : impl_->shards)
    for (auto& table : shard.tables) delete table.load(std::memory_order_relaxed);
}

size_t Store::waiters() const { return impl_->waiters.load(std::memory_order_relaxed); }

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
  }
  SweepExpired();
  CollectGarbage(kGarbagePerTick);
  impl_->graveyard->Work();
  return std::min(impl_->timer.next_ms(), now + kSweepEveryMs);
}

int64_t Store::SweepExpired() {
  int64_t removed = 0;
  std::vector<Entry*> due;
  for (Shard& shard : impl_->shards) {
    for (DbIndex db = 0; db < kDatabases; ++db) {
      if (shard.with_deadline[db].load(std::memory_order_relaxed) == 0) continue;
      do {
        Unit unit(*this);
        unit.LockShard(shard.number);
        Table* table = shard.tables[db].load(std::memory_order_relaxed);
        if (table == nullptr) break;
        due.clear();
        table->Due(unit.now_ms(), &shard.sweep_position[db], kSweepSegmentsPerLock, due);
        for (Entry* entry : due) {
          if (!entry->expired(unit.now_ms())) continue;
          const uint64_t hash = HashedKey(entry->key()).hash;
          unit.RemoveEntry(shard, db, entry, hash);
          ++removed;
        }
      } while (shard.sweep_position[db] != 0);
    }
  }
  if (removed != 0) stats_.Add(StorageStats::kExpired, static_cast<uint64_t>(removed));
  return removed;
}

void Store::CheckInvariants() {
  Unit unit(*this);
  unit.LockAll();
  for (Shard& shard : impl_->shards) {
    for (auto& slot : shard.tables) {
      const Table* table = slot.load(std::memory_order_relaxed);
      if (table != nullptr) table->CheckInvariants();
    }
  }
}

}  // namespace idemd::storage
