// How a unit changes collections, and how it remembers what to tell the log of it.
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "storage/check.h"
#include "storage/shard.h"
#include "storage/store.h"

namespace idemd::storage {

Entry* Unit::EntryAt(Shard& shard, DbIndex db, const HashedKey& key) const {
  if (seen_.entry != nullptr && seen_.hash == key.hash && seen_.db == db && seen_.entry->Is(key)) return seen_.entry;
  return shard.tables[db].load(std::memory_order_relaxed)->Find(key).entry;
}

Collection& Unit::EditCollection(DbIndex db, const HashedKey& key) {
  Shard& shard = ShardOf(key);
  Table& table = *shard.tables[db].load(std::memory_order_relaxed);
  const Entry* const entry = EntryAt(shard, db, key);
  Check(entry != nullptr && entry->form() == EntryForm::kCollection, "there is a collection to change");
  ++marks_;
  table.SaveBefore(key);
  return *entry->holder().collection;
}

Collection& Unit::CreateCollection(DbIndex db, const HashedKey& key, std::unique_ptr<Collection> empty) {
  Shard& shard = ShardOf(key);
  Collection& collection = *empty;
  // Of a key that was not changed before in this unit the log knows that nothing is there, unless it has expired and stays.
  const Table* table = shard.tables[db].load(std::memory_order_relaxed);
  const bool absent = table == nullptr || !table->Find(key);
  const Kind kind = absent && LastChangeOf(db, key) == nullptr ? Kind::kCollection : Kind::kValue;
  Entry* const entry = Entry::MakeHolder(*shard.heap, key, std::move(empty), kNoDeadline);
  Publish(shard, db, key, entry, kind);
  seen_ = {entry, key.hash, db};
  return collection;
}

void Unit::SetCollection(DbIndex db, const HashedKey& key, std::unique_ptr<Collection> value, int64_t deadline_ms) {
  Shard& shard = ShardOf(key);
  Publish(shard, db, key, Entry::MakeHolder(*shard.heap, key, std::move(value), deadline_ms), Kind::kValue);
}

Unit::Change* Unit::LastChangeOf(DbIndex db, const HashedKey& key) {
  for (size_t i = changed_.size(); i-- > 0;) {
    Change& change = changed_[i];
    if (change.hash == key.hash && change.db == db && KeyOf(change).bytes == key.bytes) return &change;
  }
  return nullptr;
}

// Puts the command to those that the key's change consists of, unless the whole value is told anyway.
void Unit::NoteDelta(Shard& shard, DbIndex db, const HashedKey& key, absl::Span<const absl::string_view> command, Told told) {
  NoteChange(shard, db, key, Kind::kCollection, "", told);
  if (!store_.impl_->Logs()) return;
  Change& change = *LastChangeOf(db, key);
  if (change.value != Change::Value::kDelta) return;
  const size_t at = delta_text_.size();
  const auto append = [this](absl::string_view text) { delta_text_.insert(delta_text_.end(), text.begin(), text.end()); };
  append(absl::StrCat("*", command.size(), "\r\n"));
  for (const absl::string_view word : command) {
    append(absl::StrCat("$", word.size(), "\r\n"));
    append(word);
    append("\r\n");
  }
  const auto number = static_cast<uint32_t>(deltas_.size());
  deltas_.push_back({at, delta_text_.size() - at, kNoDelta});
  (change.first_delta == kNoDelta ? change.first_delta : deltas_[change.last_delta].next) = number;
  change.last_delta = number;
}

// Whoever reads the log removes the key, too, once its last element goes: the commands say enough, if they tell all.
void Unit::RemoveEmptied(Shard& shard, DbIndex db, const HashedKey& key, bool told) {
  const Change* const before = LastChangeOf(db, key);
  const bool by_commands = told && before != nullptr && before->value == Change::Value::kDelta;
  RemoveItem(shard, db, key);
  if (by_commands && store_.impl_->Logs()) LastChangeOf(db, key)->value = Change::Value::kDelta;
}

}  // namespace idemd::storage
