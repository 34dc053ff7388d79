// Samples, the pool, the walk, and the removal of the key that was chosen.
#include "storage/eviction.h"

#include <algorithm>
#include <utility>

#include "storage/key/tail.h"
#include "storage/shard.h"
#include "storage/store.h"
#include "storage/token/token.h"
#include "storage/use_count.h"

namespace idemd::storage {
namespace {

using std::chrono::steady_clock;
using TableItem = Item<Entry>;
using Candidate = EvictionSearch::Candidate;

constexpr int kRounds = 8;                // of samples without any key that may go
constexpr uint32_t kWalkBuckets = 4096;   // of one walk: some 12 000 keys, half a millisecond
constexpr uint32_t kPlaces = kShards * kDatabases;
constexpr std::chrono::milliseconds kRestAfterNothing{100};

}  // namespace

bool ReadsAsToken(absl::string_view key) {
  // By itself: before it may stand a prefix that is too long to be kept apart.
  return key.size() >= kTokenChars && ReadTail(key.substr(key.size() - kTokenChars)).kind == TailKind::kToken;
}

// Whether the policy lets the key go. What has expired is nobody's any more.
static bool MayGo(const TableItem& item, absl::string_view key, int64_t deadline_ms, int64_t now_ms, EvictionPolicy policy) {
  if (deadline_ms <= now_ms) return true;
  if (OnlyVolatile(policy) && deadline_ms == kNoDeadline) return false;
  if (item.entry == nullptr) return true;  // no tail of 16 bytes is a token
  return !item.entry->is_record() && !ReadsAsToken(key);
}

void Store::SetEviction(EvictionPolicy policy, uint32_t samples, UseCounting counting) {
  use_log_factor_.store(counting.log_factor, std::memory_order_relaxed);
  use_decay_minutes_.store(counting.decay_minutes, std::memory_order_relaxed);
  eviction_samples_.store(samples, std::memory_order_relaxed);
  eviction_policy_.store(policy, std::memory_order_relaxed);
}

// Puts a key that was seen into the sample, if it may go.
void Store::ConsiderForEviction(EvictionSearch& search, DbIndex db, const TableItem& item, int64_t now_ms) {
  const int64_t deadline_ms =
      item.entry != nullptr ? item.entry->deadline_ms()
                            : DeadlineOfCell(item.cell, impl_->deadline_base_ms.load(std::memory_order_relaxed));
  KeyText room;
  const absl::string_view key = KeyIn(item, room);
  if (!MayGo(item, key, deadline_ms, now_ms, search.policy)) return;
  Candidate one{db, std::string(key), 0, true};
  switch (search.policy) {
    case EvictionPolicy::kVolatileTtl:
      one.score = UINT64_MAX - static_cast<uint64_t>(deadline_ms);
      break;
    case EvictionPolicy::kAllRandom:
    case EvictionPolicy::kVolatileRandom:
      one.score = RandomU64();
      break;
    default: {
      const uint32_t access = item.entry == nullptr ? 0 : item.entry->access();
      one.has_score = access != 0;
      const uint32_t now_s = impl_->coarse_s.load(std::memory_order_relaxed);
      if (!one.has_score) break;
      if (IsLfu(search.policy))
        one.score = static_cast<uint64_t>(UINT8_MAX - UsesNow(access, now_s, counting()));
      else if (now_s > access)
        one.score = now_s - access;
    }
  }
  search.sample.push_back(std::move(one));
}

// Of each database some keys, each from a random shard.
void Store::SampleForEviction(EvictionSearch& search, int64_t now_ms) {
  const bool all = !OnlyVolatile(search.policy);
  const uint32_t samples = eviction_samples_.load(std::memory_order_relaxed);
  for (DbIndex db = 0; db < kDatabases; ++db) {
    for (uint32_t i = 0; i < samples; ++i) {
      const Table* table = nullptr;
      const auto first = static_cast<uint32_t>(RandomU64() % kShards);
      for (uint32_t j = 0; j < kShards && table == nullptr; ++j) {
        const Shard& shard = impl_->shards[(first + j) % kShards];
        const Table* here = shard.tables[db].load(std::memory_order_acquire);
        if (here == nullptr || here->size() == 0) continue;
        if (all || shard.with_deadline[db].load(std::memory_order_relaxed) != 0) table = here;
      }
      if (table == nullptr) break;  // nothing in this database
      const TableItem item = table->Random(RandomU64());
      if (item) ConsiderForEviction(search, db, item, now_ms);
    }
  }
  MergeForEviction(search);
}

// The best of the sample join the pool.
void Store::MergeForEviction(EvictionSearch& search) {
  uint64_t sum = 0, known = 0;
  for (const Candidate& one : search.sample) {
    sum += one.has_score ? one.score : 0;
    known += one.has_score ? 1 : 0;
  }
  for (Candidate& one : search.sample) {
    if (!one.has_score) one.score = known == 0 ? 0 : sum / known;
    const bool there = std::any_of(search.pool.begin(), search.pool.end(), [&](const Candidate& other) {
      return other.db == one.db && other.key == one.key;
    });
    if (!there) search.pool.push_back(std::move(one));
  }
  search.sample.clear();
  std::stable_sort(search.pool.begin(), search.pool.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score < b.score; });
  if (search.pool.size() > EvictionSearch::kPoolMax)
    search.pool.erase(search.pool.begin(), search.pool.end() - EvictionSearch::kPoolMax);
}

// Goes on with the walk until it has found some keys. False: it did not, in all its buckets or all that there is.
bool Store::WalkForEviction(EvictionSearch& search, int64_t now_ms) {
  const auto begin = steady_clock::now();
  if (begin < search.nothing_until) return false;
  const bool all = !OnlyVolatile(search.policy);
  for (uint32_t buckets = 0; buckets < kWalkBuckets;) {
    const Shard& shard = impl_->shards[search.place / kDatabases];
    const DbIndex db = search.place % kDatabases;
    const Table* table = shard.tables[db].load(std::memory_order_acquire);
    const bool worth_it = table != nullptr && table->size() != 0 &&
                          (all || shard.with_deadline[db].load(std::memory_order_relaxed) != 0);
    if (worth_it) {
      ++buckets;
      search.cursor = table->Scan(search.cursor, [&](const TableItem& item) { ConsiderForEviction(search, db, item, now_ms); });
    } else {
      search.cursor = 0;
    }
    if (!search.sample.empty()) {
      search.fruitless = 0;
      MergeForEviction(search);
      return true;
    }
    if (search.cursor != 0) continue;
    search.place = (search.place + 1) % kPlaces;
    // One more than all: the first may have been begun in its middle.
    if (++search.fruitless <= kPlaces) continue;
    search.fruitless = 0;
    search.nothing_until = begin + kRestAfterNothing;
    return false;
  }
  return false;
}

// One key less. False: none was found that may go.
bool Store::EvictOne(EvictionSearch& search, EventOrigin* origin, RoomMade& made) {
  const EpochGuard guard;
  const int64_t now_ms = clock_.NowMs();
  for (int round = 0; round <= kRounds; ++round) {
    if (round < kRounds)
      SampleForEviction(search, now_ms);
    else if (!WalkForEviction(search, now_ms))
      return false;
    while (!search.pool.empty()) {
      const Candidate chosen = std::move(search.pool.back());
      search.pool.pop_back();
      Unit unit(*this);
      unit.SetOrigin(origin);
      const bool gone = unit.Evict(chosen.db, HashedKey(chosen.key), search.policy);
      unit.Commit();
      made.need = std::max(made.need, unit.need());
      for (ReadyKey& ready : unit.TakeReady()) made.ready.push_back(std::move(ready));
      if (gone) return true;
    }
  }
  return false;
}

// Under the lock, where what was seen without one is looked at again.
bool Unit::Evict(DbIndex db, const HashedKey& key, EvictionPolicy policy) {
  Lock(key);
  Shard& shard = ShardOf(key);
  const uint32_t changes = changes_;
  const Item item = LiveItem(shard, db, key);
  if (!item) return changes_ != changes;  // it had expired
  if (!MayGo(item, key.bytes, DeadlineOf(item), now_ms(), policy)) return false;
  store_.stats_.Add(StorageStats::kEvicted);
  RemoveItem(shard, db, key, "evicted");
  Notify(EventClass::kEvicted, "evicted", db, key.bytes);
  return true;
}

RoomMade Store::MakeRoom(EventOrigin* origin, std::chrono::microseconds time) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  RoomMade made;
  if (!OverMemoryLimit()) return made;
  const EvictionPolicy policy = eviction_policy_.load(std::memory_order_relaxed);
  if (policy == EvictionPolicy::kNone) {
    made.room = false;
    return made;
  }
  // While nothing expires nothing is evicted either, and a log that takes no writes says so by itself.
  if (frozen_.load(std::memory_order_relaxed) || replaying_.load(std::memory_order_relaxed) || log_.refusing()) return made;
  EvictionSearch& search = impl_->eviction;
  if (!search.mutex.TryLock()) return made;  // somebody is at it
  if (search.policy != policy) {
    search.policy = policy;
    search.pool.clear();
    search.nothing_until = {};
  }
  const auto until = steady_clock::now() + time;
  while (made.room && made.finished && OverMemoryLimit()) {
    made.room = EvictOne(search, origin, made);
    made.finished = steady_clock::now() < until;
  }
  search.mutex.Unlock();
  return made;
}

}  // namespace idemd::storage
