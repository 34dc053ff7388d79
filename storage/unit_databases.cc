// Whole-database work of a unit: counting, walking, emptying and swapping.
#include <memory>

#include "storage/shard.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::storage {
namespace {

// One SCAN call looks at no more than this many buckets beyond ten per key asked for, so that a sparse database of a
// few keys is walked in one call and a call stays short all the same.
constexpr uint64_t kScanBucketsMin = 8192;
constexpr uint64_t kScanBucketsPerKey = 10;
constexpr int kRandomTries = 64;

// A flushed table on its way through the epochs, which may outlive the store.
struct Burial {
  std::shared_ptr<Graveyard> graveyard;
  Table* table;
};

}  // namespace

void Store::Impl::RetireTable(Table* table) {
  auto* burial = new Burial{graveyard, table};
  RetireLarge(burial, [](void* p) {
    const std::unique_ptr<Burial> due(static_cast<Burial*>(p));
    due->graveyard->Bury(due->table);
  });
}

uint64_t Unit::Size(DbIndex db) const {
  uint64_t n = 0;
  for (const Shard& shard : store_.impl_->shards) {
    const Table* table = shard.tables[db].load(std::memory_order_acquire);
    if (table != nullptr) n += table->size();
  }
  return n;
}

uint64_t Unit::SizeWithDeadline(DbIndex db) const {
  uint64_t n = 0;
  for (const Shard& shard : store_.impl_->shards) n += shard.with_deadline[db].load(std::memory_order_relaxed);
  return n;
}

absl::string_view Unit::RandomKey(DbIndex db) {
  for (int attempt = 0; attempt < kRandomTries; ++attempt) {
    const uint64_t total = Size(db);
    if (total == 0) return {};
    uint64_t place = RandomU64() % total;
    for (Shard& shard : store_.impl_->shards) {
      const Table* table = shard.tables[db].load(std::memory_order_acquire);
      const uint64_t here = table == nullptr ? 0 : table->size();
      if (place >= here) {
        place -= here;
        continue;
      }
      const Item item = table->Random(RandomU64());
      if (!item) break;
      if (Expired(DeadlineOf(item))) break;
      KeyText room;
      random_key_ = std::string(KeyIn(item, room));
      return random_key_;
    }
  }
  return {};
}

// Shows a key that has not expired. The value's bytes are left out of a string that is edited in place: they may be read
// under its lock only.
void Unit::Show(const Item& item, absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each) {
  KeyView view = ViewOf(item);
  if (Expired(view.deadline_ms)) return;
  if (view.edited) view.bytes = {};
  view.collection = nullptr;
  KeyText room;
  each(KeyIn(item, room), view);
}

uint64_t Unit::Scan(DbIndex db, uint64_t cursor, uint64_t count,
                    absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each) {
  uint64_t number = cursor >> Table::kCursorBits;
  uint64_t inside = cursor & ((uint64_t{1} << Table::kCursorBits) - 1);
  uint64_t buckets = std::max(kScanBucketsMin, count < UINT64_MAX / kScanBucketsPerKey ? count * kScanBucketsPerKey : count);
  uint64_t seen = 0;
  while (number < kShards) {
    const Table* table = store_.impl_->shards[number].tables[db].load(std::memory_order_acquire);
    if (table != nullptr && table->size() != 0) {
      inside = table->Scan(inside, [&](const Item& item) {
        ++seen;
        Show(item, each);
      });
    } else {
      inside = 0;
    }
    if (inside == 0) ++number;
    if (seen >= count || --buckets == 0) break;
  }
  return number >= kShards ? 0 : number << Table::kCursorBits | inside;
}

void Unit::ForEach(DbIndex db, absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each) {
  for (Shard& shard : store_.impl_->shards) {
    const Table* table = shard.tables[db].load(std::memory_order_acquire);
    if (table == nullptr) continue;
    table->ForEach([&](const Item& item) { Show(item, each); });
  }
}

void Unit::DropTable(Shard& shard, DbIndex db) {
  TouchDatabase(shard, db);
  Table* table = shard.tables[db].exchange(nullptr, std::memory_order_acq_rel);
  shard.with_deadline[db].store(0, std::memory_order_relaxed);
  if (table == nullptr) return;
  const uint64_t bytes = shard.entry_bytes[db].exchange(0, std::memory_order_relaxed);
  shard.all_entry_bytes.store(shard.all_entry_bytes.load(std::memory_order_relaxed) - bytes,
                              std::memory_order_relaxed);
  changes_ += static_cast<uint32_t>(table->size());
  if (shard.cut == nullptr || !shard.cut->Drop(*table)) store_.impl_->RetireTable(table);
}

void Unit::SetAllLsns(Lsn lsn) {
  for (Shard& shard : store_.impl_->shards)
    for (std::atomic<Lsn>& cell : *shard.lsns) cell.store(lsn, std::memory_order_release);
}

void Unit::MarkAllPending() {
  ++marks_;
  Forget();
  if (store_.impl_->Logs()) SetAllLsns(kLsnPending);
}

// What was done to a key's parts before a flush is not to be done behind it: its effect is what the key holds in the end.
void Unit::TellWhole(DbIndex db) {
  for (Change& change : changed_)
    if (change.db == db) change.value = Change::Value::kWhole;
}

void Unit::FlushDb(DbIndex db) {
  MarkAllPending();
  TellWhole(db);
  Notify(EventClass::kFlushed, "", db, {});
  for (Shard& shard : store_.impl_->shards) DropTable(shard, db);
  Effect effect;
  effect.kind = EffectKind::kFlushDb;
  effect.db = db;
  whole_effects_.push_back(effect);
  serve_all_ = true;
}

void Unit::FlushAll() {
  MarkAllPending();
  for (DbIndex db = 0; db < kDatabases; ++db) TellWhole(db);
  Notify(EventClass::kFlushed, "", 0, {});
  for (Shard& shard : store_.impl_->shards)
    for (DbIndex db = 0; db < kDatabases; ++db) DropTable(shard, db);
  Effect effect;
  effect.kind = EffectKind::kFlushAll;
  whole_effects_.push_back(effect);
  serve_all_ = true;
}

void Unit::SwapDb(DbIndex a, DbIndex b) {
  if (a == b) return;
  MarkAllPending();
  // What was changed before goes along: effects tell what keys hold in the end, behind what became of whole databases.
  TouchWatches();
  for (Change& change : changed_) {
    if (change.db == a)
      change.db = b;
    else if (change.db == b)
      change.db = a;
  }
  for (Shard& shard : store_.impl_->shards) {
    // A key that is in one of the two changes in both, in the eyes of those who watch.
    TouchDatabase(shard, a);
    TouchDatabase(shard, b);
    Table* table_a = shard.tables[a].load(std::memory_order_relaxed);
    shard.tables[a].store(shard.tables[b].load(std::memory_order_relaxed), std::memory_order_release);
    shard.tables[b].store(table_a, std::memory_order_release);
    const uint64_t deadlines_a = shard.with_deadline[a].load(std::memory_order_relaxed);
    shard.with_deadline[a].store(shard.with_deadline[b].load(std::memory_order_relaxed), std::memory_order_relaxed);
    shard.with_deadline[b].store(deadlines_a, std::memory_order_relaxed);
    const uint64_t bytes_a = shard.entry_bytes[a].load(std::memory_order_relaxed);
    shard.entry_bytes[a].store(shard.entry_bytes[b].load(std::memory_order_relaxed), std::memory_order_relaxed);
    shard.entry_bytes[b].store(bytes_a, std::memory_order_relaxed);
    TouchDatabase(shard, a);
    TouchDatabase(shard, b);
  }
  Effect effect;
  effect.kind = EffectKind::kSwapDb;
  effect.db = a;
  effect.other_db = b;
  whole_effects_.push_back(effect);
  serve_all_ = true;
  ++changes_;
}

}  // namespace idemd::storage
