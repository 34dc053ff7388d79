// Callers who are blocked at keys: in line, out of it, and which keys are to be looked at for them.
#include "storage/shard.h"
#include "storage/store.h"

namespace idemd::storage {

void Unit::Block(DbIndex db, absl::Span<const HashedKey> keys, const std::shared_ptr<Waiter>& caller) {
  // Under the locks of all its keys: in each line the numbers grow in the order in which callers come.
  caller->arrival = store_.impl_->arrivals.fetch_add(1, std::memory_order_relaxed) + 1;
  for (const HashedKey& key : keys) ShardOf(key).blocked.Add(WaitLines::Name(db, key.bytes), caller);
}

void Unit::Unblock(DbIndex db, absl::Span<const HashedKey> keys, const Waiter& caller) {
  for (const HashedKey& key : keys) ShardOf(key).blocked.Remove(WaitLines::Name(db, key.bytes), caller);
}

std::shared_ptr<Waiter> Unit::NextBlocked(DbIndex db, const HashedKey& key, uint64_t after) const {
  const BlockedLines& blocked = ShardOf(key).blocked;
  return blocked.empty() ? nullptr : blocked.Next(WaitLines::Name(db, key.bytes), after);
}

void Unit::NoteReady(Shard& shard, const std::string& name) {
  const DbIndex db = WaitLines::DbOf(name);
  const HashedKey key(WaitLines::KeyOf(name));
  const Table* table = shard.tables[db].load(std::memory_order_relaxed);
  const Item item = table == nullptr ? Item{} : table->Find(key);
  const bool something = item.entry != nullptr && item.entry->form() == EntryForm::kCollection;
  if (something || shard.blocked.MindAbsence(name)) ready_.push_back({db, std::string(key.bytes)});
}

// What the unit leaves behind counts, not what it did on the way.
void Unit::CollectReady() {
  for (const Change& change : changed_) {
    if (!change.noticed || change.shard->blocked.empty()) continue;
    const std::string name = WaitLines::Name(change.db, KeyOf(change).bytes);
    if (change.shard->blocked.Contains(name)) NoteReady(*change.shard, name);
  }
  if (!serve_all_) return;
  for (Shard& shard : store_.impl_->shards) {
    if (shard.blocked.empty()) continue;
    for (const std::string& name : shard.blocked.Names()) NoteReady(shard, name);
  }
}

}  // namespace idemd::storage
