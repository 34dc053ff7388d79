// What a lookup costs in the table itself: alone, in batches of 32, of absent keys, out of line, and beside a writer.
//
// Keys are UUIDs of 36 characters; each lookup reads and hashes its key's text. 64 tables behind one pointer each, as in a
// store. IDEMD_BENCH_KEYS sets the number of keys (1 000 000; 10 000 000 for the figures of the performance goals).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "bench/storage/keys.h"
#include "bench/storage/process.h"
#include "storage/key/shapes.h"
#include "storage/sync/mutex.h"
#include "storage/table/entry.h"

namespace idemd::bench {
namespace {

using storage::EpochGuard;
using storage::Entry;
using storage::HashedKey;
using storage::Item;
using storage::Table;

constexpr int64_t kBaseMs = 1'700'000'000'000;
constexpr size_t kBatch = 32;

size_t KeyCount() {
  const char* keys = std::getenv("IDEMD_BENCH_KEYS");
  return keys == nullptr ? 1'000'000 : std::strtoull(keys, nullptr, 10);
}

class Tables {
 public:
  explicit Tables(bool inlined) : inlined_(inlined) {
    for (auto& shard : shards_) shard = std::make_unique<Shard>();
  }
  const Table& Of(const HashedKey& key) const { return shards_[key.hash >> 58]->table; }
  void Put(absl::string_view text) {
    const HashedKey key(text);
    Shard& shard = *shards_[key.hash >> 58];
    const EpochGuard guard;
    const storage::MutexLock lock(shard.mutex);
    const int64_t deadline_ms = kBaseMs + 86'400'000 + static_cast<int64_t>(key.hash & 0xffff);
    if (inlined_) {
      Item<Entry> old;
      (void)shard.table.PutInline(key, shape_, deadline_ms, kBaseMs, kBaseMs, &old);
    } else {
      Entry* entry = Entry::Make(*shard.heap, key, storage::EntryForm::kString, 1, deadline_ms);
      *entry->value_data() = '1';
      Retire(shard.table.Put(key, entry));
    }
  }
  void Take(absl::string_view text) {
    const HashedKey key(text);
    Shard& shard = *shards_[key.hash >> 58];
    const EpochGuard guard;
    const storage::MutexLock lock(shard.mutex);
    Retire(shard.table.Take(key));
  }

 private:
  struct alignas(128) Shard {
    storage::Mutex mutex;
    storage::HeapPtr heap{storage::Heap::Make()};
    Table table{kBaseMs};
  };
  static void Retire(const Item<Entry>& old) {
    if (old.entry != nullptr) storage::Retire(old.entry, &Entry::DestroyRetired);
  }
  const bool inlined_;
  const uint32_t shape_ = storage::Shapes::Instance().Id("", storage::TailKind::kUuid, "1");
  std::array<std::unique_ptr<Shard>, 64> shards_;
};

// Filled once per form. What is looked up lies in order in memory, so that the keys themselves cost no cache miss.
struct Filled {
  explicit Filled(bool inlined) : tables(inlined) {
    const Keys keys = UuidKeys(KeyCount(), 1);
    for (size_t i = 0; i < KeyCount(); ++i) tables.Put(keys[i]);
    present = keys.Sample(std::min<size_t>(KeyCount(), 2'000'000), 2);
    absent = UuidKeys(present.size(), 3);
  }
  absl::string_view Key(size_t i, bool is_present) const {
    return is_present ? present[i % present.size()] : absent[i % absent.size()];
  }
  Keys present, absent;
  Tables tables;
};

Filled& TheFilled(bool inlined) {
  static std::unique_ptr<Filled> filled[2];
  if (filled[inlined ? 1 : 0] == nullptr) {
    filled[inlined ? 0 : 1].reset();
    filled[inlined ? 1 : 0] = std::make_unique<Filled>(inlined);
  }
  return *filled[inlined ? 1 : 0];
}

void Lookups(benchmark::State& state, bool inlined, bool present) {
  Filled& filled = TheFilled(inlined);
  size_t i = static_cast<size_t>(state.thread_index()) * 1'000'003, found = 0;
  // One guard for what a server reads from its sockets at a time; opening one waits for all earlier loads.
  while (state.KeepRunningBatch(kBatch)) {
    const EpochGuard guard;
    for (size_t n = 0; n < kBatch; ++n) {
      const HashedKey key(filled.Key(i++, present));
      found += filled.tables.Of(key).Find(key) ? 1 : 0;
    }
  }
  if (found != (present ? static_cast<size_t>(state.iterations()) : 0)) state.SkipWithError("a wrong answer");
}

void Batches(benchmark::State& state, bool inlined) {
  Filled& filled = TheFilled(inlined);
  std::array<HashedKey, kBatch> keys;
  size_t i = 0, found = 0;
  while (state.KeepRunningBatch(kBatch)) {
    const EpochGuard guard;
    for (HashedKey& key : keys) {
      key = HashedKey(filled.Key(i++, true));
      filled.tables.Of(key).PrefetchReference(key.hash);
    }
    for (const HashedKey& key : keys) filled.tables.Of(key).Prefetch(key.hash);
    for (const HashedKey& key : keys) filled.tables.Of(key).PrefetchEntry(key.hash);
    for (const HashedKey& key : keys) found += filled.tables.Of(key).Find(key) ? 1 : 0;
  }
  if (found != static_cast<size_t>(state.iterations())) state.SkipWithError("a wrong answer");
}

// Another thread on the other core puts and takes keys that nobody looks up, as fast as it can.
void BesideAWriter(benchmark::State& state, bool inlined) {
  Filled& filled = TheFilled(inlined);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    for (size_t i = 0; !over.load(std::memory_order_relaxed); ++i) {
      filled.tables.Put(filled.Key(i, false));
      if (i >= 1000) filled.tables.Take(filled.Key(i - 1000, false));
    }
    for (size_t i = 0; i < filled.absent.size(); ++i) filled.tables.Take(filled.absent[i]);
  });
  Lookups(state, inlined, true);
  over.store(true);
  writer.join();
}

void Replacements(benchmark::State& state, bool inlined) {
  Filled& filled = TheFilled(inlined);
  size_t i = 0;
  for (auto _ : state) filled.tables.Put(filled.Key(i++, true));
}

void Insertions(benchmark::State& state, bool inlined) {
  const Keys keys = UuidKeys(KeyCount(), 7);
  for (auto _ : state) {
    state.PauseTiming();
    auto tables = std::make_unique<Tables>(inlined);
    state.ResumeTiming();
    for (size_t i = 0; i < KeyCount(); ++i) tables->Put(keys[i]);
    state.PauseTiming();
    tables.reset();
    state.ResumeTiming();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * KeyCount()));
}

BENCHMARK_CAPTURE(Lookups, hit/inline, true, true);
BENCHMARK_CAPTURE(Batches, inline, true);
BENCHMARK_CAPTURE(Lookups, miss/inline, true, false);
BENCHMARK_CAPTURE(Lookups, hit/inline, true, true)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(BesideAWriter, inline, true);
BENCHMARK_CAPTURE(Replacements, inline, true);
BENCHMARK_CAPTURE(Lookups, hit/out_of_line, false, true);
BENCHMARK_CAPTURE(Batches, out_of_line, false);
BENCHMARK_CAPTURE(Lookups, miss/out_of_line, false, false);
BENCHMARK_CAPTURE(Replacements, out_of_line, false);
BENCHMARK_CAPTURE(Insertions, inline, true)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Insertions, out_of_line, false)->Iterations(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace idemd::bench
