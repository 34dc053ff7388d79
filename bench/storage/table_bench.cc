// What a find, a batch of finds, a put, a replacement and a removal cost, against
// absl::flat_hash_map of strings.
//
// Keys: 36 characters, shuffled. The argument is their number; IDEMD_BENCH_KEYS adds a size
// (10000000 for the figures of the performance goals). One thread; 64 tables behind one pointer
// each, as in a store.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "storage/hashed_key.h"
#include "storage/table/table.h"

namespace idemd::storage {
namespace {

using Table = BasicTable<Entry, RealSync>;

constexpr size_t kKeyBytes = 36;

std::string KeyNumber(uint64_t number) {
  std::string key(kKeyBytes, '-');
  std::mt19937_64 random(number);
  for (char& c : key) c = "0123456789abcdef"[random() & 15];
  return key;
}

Entry* MakeEntry(absl::string_view key) {
  return Entry::Make(key, EntryForm::kString, 1, kNoDeadline);
}
void DestroyRetired(void* at) { Entry::Destroy(static_cast<Entry*>(at)); }

// The tables of one database.
class Shards {
 public:
  Table& operator[](uint64_t hash) { return tables_[hash >> 58]; }
  const Table& operator[](uint64_t hash) const { return tables_[hash >> 58]; }
  void Put(absl::string_view key) {
    const HashedKey hashed(key);
    if (Entry* old = (*this)[hashed.hash].Put(hashed.hash, MakeEntry(key)))
      Retire(old, &DestroyRetired);
  }
  void Take(absl::string_view key) {
    const HashedKey hashed(key);
    if (Entry* old = (*this)[hashed.hash].Take(hashed.hash, key)) Retire(old, &DestroyRetired);
  }
  size_t memory_bytes() const {
    size_t bytes = 0;
    for (const Table& table : tables_) bytes += table.memory_bytes();
    return bytes;
  }

 private:
  std::array<Table, 64> tables_;
};

// Words one after another in memory, so that reading the next key costs nothing and the table's own
// misses are seen.
class Words {
 public:
  void Add(absl::string_view word) { bytes_.append(word.data(), word.size()); }
  size_t size() const { return bytes_.size() / kKeyBytes; }
  absl::string_view operator[](size_t i) const {
    return {bytes_.data() + i * kKeyBytes, kKeyBytes};
  }

 private:
  std::string bytes_;
};

// Keys in random order and both maps filled with them in another; `missing` is in neither. Built
// once per size.
struct Filled {
  Words keys, missing;
  Shards shards;
  absl::flat_hash_map<std::string, std::string> flat;
};

Filled& FilledWith(int64_t n) {
  static std::map<int64_t, std::unique_ptr<Filled>> filled;
  auto& f = filled[n];
  if (f != nullptr) return *f;
  f = std::make_unique<Filled>();
  std::vector<uint64_t> numbers(static_cast<size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (const uint64_t number : numbers) f->shards.Put(KeyNumber(number));
  for (const uint64_t number : numbers) f->flat.emplace(KeyNumber(number), "1");
  std::shuffle(numbers.begin(), numbers.end(), std::mt19937_64(1));
  for (const uint64_t number : numbers) f->keys.Add(KeyNumber(number));
  for (const uint64_t number : numbers) f->missing.Add(KeyNumber(number + numbers.size()));
  return *f;
}

void Sizes(benchmark::internal::Benchmark* b) {
  b->Arg(10'000)->Arg(300'000);
  if (const char* more = std::getenv("IDEMD_BENCH_KEYS")) b->Arg(std::strtoll(more, nullptr, 10));
}

void BM_TableFind(benchmark::State& state, bool hit) {
  Filled& f = FilledWith(state.range(0));
  const auto& keys = hit ? f.keys : f.missing;
  size_t i = 0, found = 0;
  for (auto _ : state) {
    const absl::string_view key = keys[i];
    if (++i == keys.size()) i = 0;
    const HashedKey hashed(key);
    const EpochGuard guard;
    if (const Entry* entry = f.shards[hashed.hash].Find(hashed.hash, key))
      found += entry->value().size();
  }
  benchmark::DoNotOptimize(found);
  state.counters["table bytes/key"] =
      static_cast<double>(f.shards.memory_bytes()) / static_cast<double>(f.keys.size());
}
BENCHMARK_CAPTURE(BM_TableFind, hit, true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_TableFind, miss, false)->Apply(Sizes);

void BM_FlatFind(benchmark::State& state, bool hit) {
  Filled& f = FilledWith(state.range(0));
  const auto& keys = hit ? f.keys : f.missing;
  size_t i = 0, found = 0;
  for (auto _ : state) {
    const absl::string_view key = keys[i];
    if (++i == keys.size()) i = 0;
    const auto it = f.flat.find(key);
    if (it != f.flat.end()) found += it->second.size();
  }
  benchmark::DoNotOptimize(found);
}
BENCHMARK_CAPTURE(BM_FlatFind, hit, true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_FlatFind, miss, false)->Apply(Sizes);

// 32 keys of one read: hashed, prefetched in two steps, then looked up. The time is that of one
// key.
void BM_TableFindBatch(benchmark::State& state, bool hit) {
  constexpr size_t kBatch = 32;
  Filled& f = FilledWith(state.range(0));
  const auto& keys = hit ? f.keys : f.missing;
  size_t i = 0, found = 0;
  std::array<HashedKey, kBatch> batch;
  while (state.KeepRunningBatch(kBatch)) {
    const EpochGuard guard;
    for (HashedKey& hashed : batch) {
      hashed = HashedKey(keys[i]);
      if (++i == keys.size()) i = 0;
      f.shards[hashed.hash].Prefetch(hashed.hash);
    }
    for (const HashedKey& hashed : batch) f.shards[hashed.hash].PrefetchEntry(hashed.hash);
    for (const HashedKey& hashed : batch)
      if (const Entry* entry = f.shards[hashed.hash].Find(hashed.hash, hashed.bytes))
        found += entry->value().size();
  }
  benchmark::DoNotOptimize(found);
}
BENCHMARK_CAPTURE(BM_TableFindBatch, hit, true)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_TableFindBatch, miss, false)->Apply(Sizes);

// Fills an empty table: growth is part of the price.
void BM_TablePut(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  auto shards = std::make_unique<Shards>();
  size_t i = 0;
  for (auto _ : state) {
    const EpochGuard guard;
    shards->Put(f.keys[i]);
    if (++i == f.keys.size()) {
      state.PauseTiming();
      shards = std::make_unique<Shards>();
      i = 0;
      state.ResumeTiming();
    }
  }
}
BENCHMARK(BM_TablePut)->Apply(Sizes);

void BM_FlatPut(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  auto flat = std::make_unique<absl::flat_hash_map<std::string, std::string>>();
  size_t i = 0;
  for (auto _ : state) {
    (*flat)[f.keys[i]] = "1";
    if (++i == f.keys.size()) {
      state.PauseTiming();
      flat = std::make_unique<absl::flat_hash_map<std::string, std::string>>();
      i = 0;
      state.ResumeTiming();
    }
  }
}
BENCHMARK(BM_FlatPut)->Apply(Sizes);

void BM_TableReplace(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  size_t i = 0;
  for (auto _ : state) {
    const EpochGuard guard;
    f.shards.Put(f.keys[i]);
    if (++i == f.keys.size()) i = 0;
  }
}
BENCHMARK(BM_TableReplace)->Apply(Sizes);

void BM_FlatReplace(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  size_t i = 0;
  for (auto _ : state) {
    f.flat[f.keys[i]] = "1";
    if (++i == f.keys.size()) i = 0;
  }
}
BENCHMARK(BM_FlatReplace)->Apply(Sizes);

// Removes a key and puts it back: a queue's steady state.
void BM_TableTakeAndPut(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  size_t i = 0;
  for (auto _ : state) {
    const EpochGuard guard;
    f.shards.Take(f.keys[i]);
    f.shards.Put(f.keys[i]);
    if (++i == f.keys.size()) i = 0;
  }
}
BENCHMARK(BM_TableTakeAndPut)->Apply(Sizes);

void BM_FlatTakeAndPut(benchmark::State& state) {
  Filled& f = FilledWith(state.range(0));
  size_t i = 0;
  for (auto _ : state) {
    f.flat.erase(f.keys[i]);
    f.flat.emplace(f.keys[i], "1");
    if (++i == f.keys.size()) i = 0;
  }
}
BENCHMARK(BM_FlatTakeAndPut)->Apply(Sizes);

void BM_EpochGuard(benchmark::State& state) {
  for (auto _ : state) {
    const EpochGuard guard;
    benchmark::ClobberMemory();
  }
}
BENCHMARK(BM_EpochGuard);

}  // namespace
}  // namespace idemd::storage
