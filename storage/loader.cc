// Batches by shard, and the threads that put them into the tables.
#include "storage/loader.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "storage/shard.h"

namespace idemd::storage {
namespace {

// Enough for a batch's cache misses to overlap, few enough for 64 of them to stay in the cache.
constexpr size_t kBatchOps = 128;
constexpr size_t kBatchBytes = 64 * 1024;
// Batches that wait for a worker: what is read is ahead of what is put in by so much, at the most.
constexpr size_t kQueueMax = 256;

enum class OpKind : uint8_t { kSet, kSetCollection, kDelete, kSetDeadline };

// Small: the reading thread writes some hundred open batches in turn.
struct Op {
  OpKind kind;
  uint8_t db;
  uint32_t key_at, key_size;
  size_t value_size;  // the value follows the key
  int64_t deadline_ms;
  uint64_t hash;
  std::unique_ptr<Collection> collection;
};

// How many keys there will be, by database. Written by the loader's thread before the batches that it concerns are handed on.
using Expected = std::array<std::atomic<uint64_t>, kDatabases>;

struct Batch {
  std::string text;
  std::vector<Op> ops;
  HashedKey KeyOf(const Op& op) const { return HashedKey(absl::string_view(text).substr(op.key_at, op.key_size), op.hash); }
  absl::string_view ValueOf(const Op& op) const { return absl::string_view(text).substr(op.key_at + op.key_size, op.value_size); }
  void clear() {
    text.clear();
    ops.clear();
  }
};

// A batch's share of keys that can be inline stands for all of them.
void MakeRoom(Unit& unit, const Batch& batch, uint64_t expected) {
  const Op& first = batch.ops[0];
  const auto inlined = static_cast<uint64_t>(std::count_if(batch.ops.begin(), batch.ops.end(), [&batch](const Op& op) {
    const HashedKey key = batch.KeyOf(op);
    return op.kind == OpKind::kSet && Entry::Words(key) != nullptr && Entry::CanBeShaped(key, op.value_size, op.deadline_ms);
  }));
  const uint64_t keys = expected / kShards;
  unit.MakeRoomFor(first.db, batch.KeyOf(first), keys, keys * inlined / batch.ops.size());
}

void Apply(Store& store, const Expected& expected, Batch& batch) {
  const EpochGuard guard;
  thread_local std::vector<HashedKey> keys;
  keys.clear();
  for (const Op& op : batch.ops) {
    keys.push_back(batch.KeyOf(op));
    store.Prefetch(op.db, keys.back(), true);
  }
  Unit unit(store);
  unit.Lock(keys[0]);  // all are of one shard
  if (const uint64_t promised = expected[batch.ops[0].db].load(std::memory_order_relaxed); promised != 0)
    MakeRoom(unit, batch, promised);
  for (size_t i = 0; i < keys.size(); ++i) {
    Op& op = batch.ops[i];
    const HashedKey& key = keys[i];
    switch (op.kind) {
      case OpKind::kSet:
        unit.SetString(op.db, key, batch.ValueOf(op), op.deadline_ms);
        break;
      case OpKind::kSetCollection:
        unit.SetCollection(op.db, key, std::move(op.collection), op.deadline_ms);
        break;
      case OpKind::kDelete:
        unit.Remove(op.db, key);
        break;
      case OpKind::kSetDeadline:
        unit.SetDeadline(op.db, key, op.deadline_ms);
        break;
    }
  }
}

// One thread and the batches that wait for it.
class Worker {
 public:
  Worker(Store& store, const Expected& expected) : store_(store), expected_(expected), thread_([this] { Run(); }) {}
  ~Worker() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // Takes the batch, and leaves an empty one in its place.
  void Take(std::unique_ptr<Batch>& batch) {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [this] { return queue_.size() < kQueueMax; });
    queue_.push_back(std::move(batch));
    if (!spare_.empty()) {
      batch = std::move(spare_.back());
      spare_.pop_back();
    } else {
      batch = std::make_unique<Batch>();
    }
    const bool first = queue_.size() == 1;
    lock.unlock();
    if (first) changed_.notify_one();
  }
  void Drain() {
    std::unique_lock<std::mutex> lock(mutex_);
    room_.wait(lock, [this] { return queue_.empty() && !busy_; });
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::unique_ptr<Batch> batch = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      Apply(store_, expected_, *batch);
      batch->clear();
      lock.lock();
      busy_ = false;
      spare_.push_back(std::move(batch));
      if (queue_.empty() || queue_.size() == kQueueMax / 2) room_.notify_all();
    }
  }

  Store& store_;
  const Expected& expected_;
  std::mutex mutex_;
  std::condition_variable changed_, room_;
  // Guarded by mutex_.
  std::deque<std::unique_ptr<Batch>> queue_;
  std::vector<std::unique_ptr<Batch>> spare_;
  bool busy_ = false, ending_ = false;
  std::thread thread_;
};

}  // namespace

class Loader::Impl {
 public:
  Impl(Store& store, unsigned workers) : store_(store) {
    for (std::unique_ptr<Batch>& batch : batches_) batch = std::make_unique<Batch>();
    for (unsigned i = 0; i < workers; ++i) workers_.push_back(std::make_unique<Worker>(store, expected));
  }

  void Add(OpKind kind, DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms,
           std::unique_ptr<Collection> collection = nullptr) {
    const HashedKey hashed(key);
    const uint32_t shard = ShardNumber(hashed.hash);
    Batch& batch = *batches_[shard];
    const size_t at = batch.text.size();
    batch.text.append(key.data(), key.size());
    batch.text.append(value.data(), value.size());
    batch.ops.push_back({kind, static_cast<uint8_t>(db), static_cast<uint32_t>(at), static_cast<uint32_t>(key.size()),
                         value.size(), deadline_ms, hashed.hash, std::move(collection)});
    if (batch.ops.size() >= kBatchOps || batch.text.size() >= kBatchBytes) Send(shard);
  }

  void Drain() {
    for (uint32_t shard = 0; shard < kShards; ++shard) Send(shard);
    for (const std::unique_ptr<Worker>& worker : workers_) worker->Drain();
  }

  Store& store() { return store_; }
  bool saw_records = false;
  Expected expected{};

 private:
  void Send(uint32_t shard) {
    std::unique_ptr<Batch>& batch = batches_[shard];
    if (batch->ops.empty()) return;
    if (!workers_.empty()) return workers_[shard % workers_.size()]->Take(batch);
    Apply(store_, expected, *batch);
    batch->clear();
  }

  Store& store_;
  std::array<std::unique_ptr<Batch>, kShards> batches_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

Loader::Loader(Store& store, unsigned workers) : impl_(std::make_unique<Impl>(store, workers)) {
  store.SetReplaying(true);
}
Loader::~Loader() { Finish(); }

void Loader::Expect(DbIndex db, uint64_t keys) {
  std::atomic<uint64_t>& expected = impl_->expected[db];
  expected.store(std::max(keys, expected.load(std::memory_order_relaxed)), std::memory_order_relaxed);
}
void Loader::Set(DbIndex db, absl::string_view key, absl::string_view value, int64_t deadline_ms) {
  impl_->saw_records |= LooksLikeRecord(value);
  impl_->Add(OpKind::kSet, db, key, value, deadline_ms);
}
void Loader::SetCollection(DbIndex db, absl::string_view key, std::unique_ptr<Collection> value, int64_t deadline_ms) {
  impl_->Add(OpKind::kSetCollection, db, key, {}, deadline_ms, std::move(value));
}
void Loader::Delete(DbIndex db, absl::string_view key) { impl_->Add(OpKind::kDelete, db, key, {}, kNoDeadline); }
void Loader::SetDeadline(DbIndex db, absl::string_view key, int64_t deadline_ms) {
  impl_->Add(OpKind::kSetDeadline, db, key, {}, deadline_ms);
}

void Loader::FlushDb(DbIndex db) {
  impl_->Drain();
  Unit unit(impl_->store());
  unit.LockAll();
  unit.FlushDb(db);
}

void Loader::FlushAll() {
  impl_->Drain();
  Unit unit(impl_->store());
  unit.LockAll();
  unit.FlushAll();
}

void Loader::SwapDb(DbIndex a, DbIndex b) {
  impl_->Drain();
  Unit unit(impl_->store());
  unit.LockAll();
  unit.SwapDb(a, b);
}

void Loader::Wait() { impl_->Drain(); }
bool Loader::saw_records() const { return impl_->saw_records; }

void Loader::Finish() {
  impl_->Drain();
  impl_->store().SetReplaying(false);
}

uint64_t ExtendClaims(Store& store, int64_t last_ms, int64_t at_least_ms) {
  store.SetReplaying(true);  // also what would have expired while nobody served
  // First seen, then changed: a walk takes no lock, and a change takes its key's.
  std::vector<std::pair<DbIndex, std::string>> live;
  for (DbIndex db = 0; db < kDatabases; ++db) {
    Unit unit(store);
    if (unit.Size(db) == 0) continue;
    unit.LockAll();
    unit.ForEach(db, [&](absl::string_view key, const KeyView& view) {
      if (view.type != ValueType::kRecord || view.replays != nullptr) return;
      const Record record = Unpack(view.bytes, view.deadline_ms);
      if (record.state == RecordState::kPending && record.lease_end_ms > last_ms && record.lease_end_ms < at_least_ms)
        live.emplace_back(db, std::string(key));
    });
  }
  uint64_t extended = 0;
  for (const auto& [db, name] : live) {
    const HashedKey key(name);
    Unit unit(store);
    unit.Lock(key);
    const KeyView view = unit.Find(db, key, false);
    if (view.type != ValueType::kRecord) continue;
    const std::string packed(view.bytes);
    Record record = Unpack(packed, view.deadline_ms);
    if (record.state != RecordState::kPending || record.lease_end_ms >= at_least_ms) continue;
    record.lease_end_ms = at_least_ms;
    // A record lives at least as long as its lease.
    unit.SetRecord(db, key, record, std::max(view.deadline_ms, at_least_ms));
    ++extended;
  }
  store.SetReplaying(false);
  return extended;
}

}  // namespace idemd::storage
