// The cut, the walk, and the buffers in which writers hand over what they save.
#include "storage/snapshot/snapshot.h"

#include <algorithm>
#include <utility>

#include "storage/check.h"
#include "storage/key/shapes.h"
#include "storage/shard.h"
#include "storage/snapshot/rdb_writer.h"

namespace idemd::storage {
namespace {

constexpr uint32_t kLinesPerHold = 256;       // under one hold of a shard's lock, if they are not full, else
constexpr size_t kBytesPerHold = 32 * 1024;   // so much: some 700 keys, 50 us
constexpr size_t kTellBytes = 16 * 1024;      // a shard's buffer is counted in such steps
constexpr size_t kScratchBytesMax = 1 << 20;  // larger buffers are not kept

}  // namespace

class Snapshot::Impl {
 public:
  Impl(Store& of, const Limits& given) : store(*of.impl_), limits(given) {
    for (auto& part : parts) part = std::make_unique<Part>(*this);
  }

  // One shard's part. Holder of that shard's lock.
  class Part final : public BasicShardCut<Entry, RealSync> {
   public:
    explicit Part(Impl& of) : BasicShardCut(kDatabases), of_(of) {}

    std::string bytes;   // RDB: what was saved and is not taken over
    uint64_t keys = 0;   // that are in it
    size_t told = 0;     // of the bytes, are counted in held_bytes

   private:
    void Save(DbIndex db, const Item<Entry>& item) override {
      if (bytes.empty() || db != selected_) AppendRdbSelect(selected_ = db, bytes);
      KeyText room;
      const absl::string_view key = KeyIn(item, room);
      if (item.entry == nullptr) {
        AppendRdbEntry(key, Shapes::Instance().At(static_cast<uint8_t>(item.shape)).value,
                       DeadlineOfCell(item.cell, of_.deadline_base_ms), bytes);
      } else {
        SaveEntry(key, *item.entry);
      }
      ++keys;
      if (bytes.size() - told >= kTellBytes) Tell();
    }
    void SaveEntry(absl::string_view key, const Entry& entry) {
      const int64_t deadline_ms = entry.deadline_ms();
      if (entry.form() == EntryForm::kCollection) return AppendRdbEntry(key, *entry.holder().collection, deadline_ms, bytes);
      absl::string_view value = entry.value();
      if (entry.is_record()) {
        text_.clear();
        AppendText(Unpack(value, deadline_ms), text_);
        value = text_;
      }
      AppendRdbEntry(key, value, deadline_ms, bytes);
    }
    void Tell() {
      const size_t more = bytes.size() - std::exchange(told, bytes.size());
      if (of_.held_bytes.fetch_add(more, std::memory_order_relaxed) + more > of_.limits.hand_over_bytes) of_.store.brake.Tighten();
    }
    void Free(Table* table) override { of_.store.RetireTable(table); }

    Impl& of_;
    DbIndex selected_ = 0;
    std::string text_;  // of a record
  };

  // Goes on in the shard where the walk stands, and takes over what was saved there.
  void Step(std::string& out) {
    Part& part = *parts[at];
    bool all = false;
    {
      const EpochGuard guard;
      const MutexLock lock(store.shards[at].mutex);
      uint32_t lines = 0;
      const size_t hold_bytes = std::min(limits.walk_bytes, kBytesPerHold);
      all = part.SaveNext([&] { return ++lines >= kLinesPerHold || part.bytes.size() >= hold_bytes; });
      Take(part);
      if (all) {
        std::string().swap(part.bytes);
        store.shards[at].cut = nullptr;
      }
    }
    Append(out);
    if (all) ++at;
  }

  // Takes over from shards that the walk has not come to, so that writers need not wait for that.
  void Drain(std::string& out, size_t out_bytes) {
    for (uint32_t i = at; i < kShards && out.size() < out_bytes; ++i) {
      drain_next = drain_next < at || drain_next + 1 >= kShards ? at : drain_next + 1;
      {
        const MutexLock lock(store.shards[drain_next].mutex);
        Take(*parts[drain_next]);
      }
      Append(out);
    }
  }

  // Under the shard's lock.
  void Take(Part& part) {
    taken.swap(part.bytes);
    taken_keys = std::exchange(part.keys, 0);
    taken_told = std::exchange(part.told, 0);
  }
  // Outside it.
  void Append(std::string& out) {
    out += taken;
    taken.clear();
    if (taken.capacity() > kScratchBytesMax) std::string().swap(taken);
    held_bytes.fetch_sub(taken_told, std::memory_order_relaxed);
    keys_walked.fetch_add(taken_keys, std::memory_order_relaxed);
  }

  // The limit is no longer near: writers go on.
  void ReleaseWriters() {
    if (store.brake.on() && held_bytes.load(std::memory_order_relaxed) <= limits.hand_over_bytes / 2) store.brake.Release();
  }

  Store::Impl& store;
  const Limits limits;
  // All inline deadlines of the cut lie at most 2^32 ms after this, also when the store's base has moved on.
  int64_t deadline_base_ms = 0;
  std::array<uint64_t, kDatabases> keys{};
  std::array<uint64_t, kDatabases> with_deadline{};
  // Writers: the walker. Readers: any thread.
  std::atomic<uint64_t> keys_walked{0};
  // In all parts' buffers. Writers: whoever saves, and the walker.
  std::atomic<size_t> held_bytes{0};
  std::array<std::unique_ptr<Part>, kShards> parts;
  // The walker's own.
  uint32_t at = 0;  // shards before are done
  uint32_t drain_next = 0;
  std::string taken;
  uint64_t taken_keys = 0;
  size_t taken_told = 0;
};

Snapshot::Snapshot(Store& store, absl::FunctionRef<void()> at_cut, const Limits& limits)
    : impl_(std::make_unique<Impl>(store, limits)) {
  Store::Impl& of = impl_->store;
  Check(!of.has_snapshot.exchange(true), "there is one snapshot at a time");
  of.brake.Exempt(std::this_thread::get_id());
  Unit unit(store);
  unit.LockAll();
  const uint32_t epoch = ++of.cut_epoch;
  impl_->deadline_base_ms = of.deadline_base_ms.load(std::memory_order_relaxed);
  for (Shard& shard : of.shards) {
    Impl::Part& part = *impl_->parts[shard.number];
    shard.cut = &part;
    for (DbIndex db = 0; db < kDatabases; ++db) {
      Table* const table = shard.tables[db].load(std::memory_order_relaxed);
      if (table == nullptr) continue;
      part.Begin(epoch, db, *table);
      impl_->keys[db] += table->size();
      impl_->with_deadline[db] += shard.with_deadline[db].load(std::memory_order_relaxed);
    }
  }
  at_cut();
}

Snapshot::~Snapshot() {
  Store::Impl& store = impl_->store;
  const EpochGuard guard;
  for (Shard& shard : store.shards) {
    const MutexLock lock(shard.mutex);
    impl_->parts[shard.number]->End();
    shard.cut = nullptr;
  }
  // Nobody saves any more, so nobody is held back again.
  store.brake.Release();
  store.has_snapshot.store(false);
}

uint64_t Snapshot::keys() const {
  uint64_t n = 0;
  for (const uint64_t in_db : impl_->keys) n += in_db;
  return n;
}
uint64_t Snapshot::keys(DbIndex db) const { return impl_->keys[db]; }
uint64_t Snapshot::with_deadline(DbIndex db) const { return impl_->with_deadline[db]; }
uint64_t Snapshot::keys_walked() const { return impl_->keys_walked.load(std::memory_order_relaxed); }
uint32_t Snapshot::writers_waiting() const { return impl_->store.brake.waiting(); }

bool Snapshot::Walk(std::string& out) {
  const size_t before = out.size(), full = before + impl_->limits.walk_bytes;
  if (impl_->held_bytes.load(std::memory_order_relaxed) > impl_->limits.hand_over_bytes / 4) impl_->Drain(out, full);
  while (impl_->at < kShards && out.size() < full) impl_->Step(out);
  impl_->ReleaseWriters();
  return out.size() != before;
}

}  // namespace idemd::storage
