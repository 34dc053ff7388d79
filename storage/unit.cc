// A unit's locks, reads and single-key changes.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "storage/shard.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

[[noreturn]] void Stop(const char* what) {
  std::fprintf(stderr, "storage: %s\n", what);
  std::abort();
}

}  // namespace

absl::string_view StringValue(const KeyView& view, std::string& scratch) {
  if (view.type != ValueType::kRecord) return view.bytes;
  scratch.clear();
  AppendText(Unpack(view.bytes), scratch);
  return scratch;
}

Subject SubjectOf(const KeyView& view) {
  Subject subject;
  subject.deadline_ms = view.deadline_ms;
  switch (view.type) {
    case ValueType::kNone:
      break;
    case ValueType::kString:
      // A value that was a record of this version became one when it was written.
      subject.kind = LooksLikeRecord(view.bytes) ? Subject::Kind::kDamaged : Subject::Kind::kPlain;
      subject.plain = view.bytes;
      break;
    case ValueType::kRecord:
      subject.kind = Subject::Kind::kRecord;
      subject.record = Unpack(view.bytes);
      break;
  }
  return subject;
}

Unit::Unit(Store& store) : store_(store) {}
Unit::~Unit() { Commit(); }

int64_t Unit::now_ns() {
  if (now_ns_ == 0) now_ns_ = store_.clock_.NowNs();
  return now_ns_;
}
int64_t Unit::now_ms() { return now_ns() / 1'000'000; }

Shard& Unit::ShardOf(const HashedKey& key) const { return store_.impl_->shards[ShardNumber(key.hash)]; }

// --- locks

void Unit::LockShard(uint32_t number) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const uint64_t bit = uint64_t{1} << number;
  if ((held_ & bit) != 0) return;
  if (sealed_) Stop("a sealed unit took all its locks before it was sealed");
  store_.impl_->shards[number].mutex.Lock();
  // The time that decides is read under the lock, unless a decision was made with an earlier one already.
  if (held_ == 0 && !sealed_) now_ns_ = 0;
  held_ |= bit;
}

// A lock that a Find() took is given back before others are taken: shards are locked in ascending order only.
void Unit::ReturnBorrowed() {
  if (borrowed_ == 0) return;
  borrowed_ = 0;
  Commit();
}

void Unit::Lock(const HashedKey& key) {
  ReturnBorrowed();
  LockShard(ShardNumber(key.hash));
}

void Unit::LockKeys(absl::Span<const HashedKey> keys) {
  ReturnBorrowed();
  uint64_t wanted = 0;
  for (const HashedKey& key : keys) wanted |= uint64_t{1} << ShardNumber(key.hash);
  for (wanted &= ~held_; wanted != 0; wanted &= wanted - 1)
    LockShard(static_cast<uint32_t>(std::countr_zero(wanted)));
}

void Unit::LockAll() {
  ReturnBorrowed();
  for (uint32_t i = 0; i < kShards; ++i) LockShard(i);
}

bool Unit::Holds(const HashedKey& key) const { return (held_ >> ShardNumber(key.hash) & 1) != 0; }

void Unit::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (; held_ != 0; held_ &= held_ - 1)
    store_.impl_->shards[static_cast<uint32_t>(std::countr_zero(held_))].mutex.Unlock();
}

// --- reads

namespace {

KeyView ViewOf(const Entry& entry) {
  KeyView view;
  view.type = entry.form() == EntryForm::kRecord ? ValueType::kRecord : ValueType::kString;
  view.bytes = entry.value();
  view.deadline_ms = entry.deadline_ms();
  view.access_s = entry.access_s();
  view.edited = entry.form() == EntryForm::kBuffer;
  return view;
}

}  // namespace

void Store::PrefetchEntry(DbIndex db, const HashedKey& key) const {
  const Table* table = impl_->shards[ShardNumber(key.hash)].tables[db].load(std::memory_order_acquire);
  if (table != nullptr) table->PrefetchEntry(key.hash);
}

void Store::Prefetch(DbIndex db, const HashedKey& key) const {
  const Table* table = impl_->shards[ShardNumber(key.hash)].tables[db].load(std::memory_order_acquire);
  if (table != nullptr) table->Prefetch(key.hash);
}

KeyView Unit::Find(DbIndex db, const HashedKey& key, bool touch) {
  Shard& shard = ShardOf(key);
  if (borrowed_ == 0 && Holds(key)) return FindLocked(shard, db, key, touch);
  ReturnBorrowed();
  // Our own mistake, and one that could deadlock: see Find() in store.h.
  if (held_ != 0) Stop("a unit with locks looks only at keys that it holds");
  return FindLockFree(shard, db, key, touch);
}

KeyView Unit::FindLockFree(Shard& shard, DbIndex db, const HashedKey& key, bool touch) {
  const Table* table = shard.tables[db].load(std::memory_order_acquire);
  Entry* entry = table == nullptr ? nullptr : table->Find(key.hash, key.bytes);
  if (entry == nullptr) {
    const Lsn removed = shard.removal_lsn.load(std::memory_order_acquire);
    if (removed != kLsnPending) {
      Need(removed);
      if (touch) store_.stats_.Add(StorageStats::kMisses);
      return {};
    }
  } else if (entry->form() != EntryForm::kBuffer) {
    // The deadline before the LSN: who sees a new deadline also sees that its LSN is pending.
    const int64_t deadline = entry->deadline_ms();
    const Lsn lsn = entry->lsn();
    if (lsn != kLsnPending && (deadline == kNoDeadline || deadline > now_ms())) {
      Need(lsn);
      if (touch) {
        if (!keep_access_) entry->touch(store_.impl_->coarse_s.load(std::memory_order_relaxed));
        store_.stats_.Add(StorageStats::kHits);
      }
      return ViewOf(*entry);
    }
  }
  LockShard(shard.number);
  borrowed_ = held_;
  const KeyView view = FindLocked(shard, db, key, touch);
  if (touch) store_.stats_.Add(view ? StorageStats::kHits : StorageStats::kMisses);
  return view;
}

KeyView Unit::FindLocked(Shard& shard, DbIndex db, const HashedKey& key, bool touch) {
  Entry* entry = LiveEntry(shard, db, key);
  if (entry == nullptr) return {};
  const KeyView view = ViewOf(*entry);
  if (touch && !keep_access_) entry->touch(store_.impl_->coarse_s.load(std::memory_order_relaxed));
  return view;
}

Entry* Unit::LiveEntry(Shard& shard, DbIndex db, const HashedKey& key) {
  const Table* table = shard.tables[db].load(std::memory_order_relaxed);
  Entry* entry = table == nullptr ? nullptr : table->Find(key.hash, key.bytes);
  if (entry == nullptr) {
    const Lsn removed = shard.removal_lsn.load(std::memory_order_relaxed);
    if (removed != kLsnPending) Need(removed);
    return nullptr;
  }
  if (entry->deadline_ms() != kNoDeadline && entry->expired(now_ms())) {
    store_.stats_.Add(StorageStats::kExpired);
    RemoveEntry(shard, db, entry, key.hash);
    return nullptr;
  }
  const Lsn lsn = entry->lsn();
  if (lsn != kLsnPending) Need(lsn);  // pending: changed by this very unit
  return entry;
}

void Unit::CountReplay(const KeyView& view) {
  PackedReplays(view.bytes.data()).fetch_add(1, std::memory_order_relaxed);
}

// --- changes

namespace {

void RetireEntry(Entry* entry) {
  const auto destroy = [](void* p) { Entry::Destroy(static_cast<Entry*>(p)); };
  // What small entries a thread keeps until it has retired enough of them stays below a megabyte.
  constexpr size_t kLargeBytes = 16 * 1024;
  const size_t bytes = entry->form() == EntryForm::kBuffer ? entry->buffer().capacity : entry->value().size();
  bytes < kLargeBytes ? Retire(entry, destroy) : RetireLarge(entry, destroy);
}

void AddBytes(Shard& shard, DbIndex db, size_t plus, size_t minus) {
  for (std::atomic<uint64_t>* bytes : {&shard.entry_bytes[db], &shard.all_entry_bytes})
    bytes->store(bytes->load(std::memory_order_relaxed) + plus - minus, std::memory_order_relaxed);
}

void CountDeadline(Shard& shard, DbIndex db, int64_t before, int64_t after) {
  const int change = (after != kNoDeadline ? 1 : 0) - (before != kNoDeadline ? 1 : 0);
  if (change == 0) return;
  std::atomic<uint64_t>& count = shard.with_deadline[db];
  count.store(count.load(std::memory_order_relaxed) + static_cast<uint64_t>(int64_t{change}),
              std::memory_order_relaxed);
}

}  // namespace

void Unit::NoteChange(const Change& change) {
  ++changes_;
  if (!changed_.empty()) {
    Change& last = changed_.back();
    if (last.db == change.db && last.key.hash == change.key.hash && last.key.bytes == change.key.bytes) {
      const bool deadline_only = last.deadline_only && change.deadline_only;
      last = change;
      last.deadline_only = deadline_only;
      touched_ = std::min(touched_, changed_.size() - 1);
      return;
    }
  }
  changed_.push_back(change);
}

void Unit::Publish(Shard& shard, DbIndex db, uint64_t hash, Entry* fresh) {
  Table* table = shard.tables[db].load(std::memory_order_relaxed);
  if (table == nullptr) {
    table = new Table();
    shard.tables[db].store(table, std::memory_order_release);
  }
  if (!store_.impl_->logs) fresh->set_lsn(kNoLsn);
  fresh->set_access_s(store_.impl_->coarse_s.load(std::memory_order_relaxed));
  const int64_t deadline = fresh->deadline_ms();
  size_t replaced_bytes = 0;
  int64_t replaced_deadline = kNoDeadline;
  Entry* replaced = table->Put(hash, fresh);
  if (replaced != nullptr) {
    replaced_bytes = replaced->memory_bytes();
    replaced_deadline = replaced->deadline_ms();
    RetireEntry(replaced);
  }
  if (deadline != kNoDeadline) table->NoteDeadline(hash, deadline);
  AddBytes(shard, db, fresh->memory_bytes(), replaced_bytes);
  CountDeadline(shard, db, replaced_deadline, deadline);
  NoteChange({&shard, db, HashedKey(fresh->key(), hash), fresh, false});
}

void Unit::RemoveEntry(Shard& shard, DbIndex db, Entry* entry, uint64_t hash) {
  if (store_.impl_->logs) shard.removal_lsn.store(kLsnPending, std::memory_order_release);
  shard.tables[db].load(std::memory_order_relaxed)->Take(hash, entry->key());
  AddBytes(shard, db, 0, entry->memory_bytes());
  CountDeadline(shard, db, entry->deadline_ms(), kNoDeadline);
  NoteChange({&shard, db, HashedKey(entry->key(), hash), nullptr, false});
  RetireEntry(entry);
}

Entry* Unit::NewEntry(const HashedKey& key, absl::string_view value, int64_t deadline_ms) {
  if (LooksLikeRecord(value)) {
    std::string scratch;
    Record record;
    if (ParseText(value, scratch, record) == ParseVerdict::kRecord && FencePlausible(record.fence, now_ms())) {
      store_.fences_.Raise(record.fence);
      Entry* entry = Entry::Make(key.bytes, EntryForm::kRecord, PackedSize(record), deadline_ms);
      Pack(record, entry->value_data());
      return entry;
    }
  }
  Entry* entry = Entry::Make(key.bytes, EntryForm::kString, value.size(), deadline_ms);
  std::memcpy(entry->value_data(), value.data(), value.size());
  return entry;
}

void Unit::SetString(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms) {
  Publish(ShardOf(key), db, key.hash, NewEntry(key, value, deadline_ms));
}

void Unit::SetRecord(DbIndex db, const HashedKey& key, const Record& record, int64_t deadline_ms) {
  Entry* entry = Entry::Make(key.bytes, EntryForm::kRecord, PackedSize(record), deadline_ms);
  Pack(record, entry->value_data());
  Publish(ShardOf(key), db, key.hash, entry);
}

void Unit::Apply(DbIndex db, const HashedKey& key, const Action& action) {
  switch (action.kind) {
    case Action::Kind::kNone:
      return;
    case Action::Kind::kSetRecord:
      SetRecord(db, key, action.record, action.deadline_ms);
      return;
    case Action::Kind::kSetPlain:
      SetString(db, key, action.plain, action.deadline_ms);
      return;
    case Action::Kind::kDelete:
      Remove(db, key);
      return;
  }
}

bool Unit::Remove(DbIndex db, const HashedKey& key) {
  Shard& shard = ShardOf(key);
  Entry* entry = LiveEntry(shard, db, key);
  if (entry == nullptr) return false;
  RemoveEntry(shard, db, entry, key.hash);
  return true;
}

bool Unit::SetDeadline(DbIndex db, const HashedKey& key, int64_t deadline_ms) {
  Shard& shard = ShardOf(key);
  Entry* entry = LiveEntry(shard, db, key);
  if (entry == nullptr) return false;
  const int64_t before = entry->deadline_ms();
  if (before == deadline_ms) return true;
  if (store_.impl_->logs) entry->set_lsn(kLsnPending);
  entry->set_deadline_ms(deadline_ms);
  if (deadline_ms != kNoDeadline) shard.tables[db].load(std::memory_order_relaxed)->NoteDeadline(key.hash, deadline_ms);
  CountDeadline(shard, db, before, deadline_ms);
  NoteChange({&shard, db, HashedKey(entry->key(), key.hash), entry, true});
  return true;
}

absl::Span<char> Unit::Edit(DbIndex db, const HashedKey& key, size_t size) {
  Shard& shard = ShardOf(key);
  Entry* entry = LiveEntry(shard, db, key);
  if (entry != nullptr && entry->form() == EntryForm::kBuffer) {
    const size_t before = entry->memory_bytes();
    if (store_.impl_->logs) entry->set_lsn(kLsnPending);
    entry->ResizeBuffer(size);
    AddBytes(shard, db, entry->memory_bytes(), before);
    NoteChange({&shard, db, HashedKey(entry->key(), key.hash), entry, false});
    return {entry->buffer().data, size};
  }
  const int64_t deadline = entry == nullptr ? kNoDeadline : entry->deadline_ms();
  Entry* fresh = Entry::MakeBuffer(key.bytes, size, size, deadline);
  if (entry != nullptr) std::memcpy(fresh->buffer().data, entry->value().data(), std::min(size, entry->value().size()));
  Publish(shard, db, key.hash, fresh);
  return {fresh->buffer().data, size};
}

void Unit::Copy(DbIndex from_db, const HashedKey& from, DbIndex to_db, const HashedKey& to) {
  Entry* entry = LiveEntry(ShardOf(from), from_db, from);
  if (entry == nullptr) return;
  const absl::string_view value = entry->value();
  Entry* fresh = nullptr;
  if (entry->form() == EntryForm::kBuffer) {
    fresh = Entry::MakeBuffer(to.bytes, value.size(), value.size(), entry->deadline_ms());
    std::memcpy(fresh->buffer().data, value.data(), value.size());
  } else {
    fresh = Entry::Make(to.bytes, entry->form(), value.size(), entry->deadline_ms());
    if (entry->form() == EntryForm::kRecord) {
      Pack(Unpack(value), fresh->value_data());
      PackedReplays(fresh->value_data())
          .store(PackedReplays(value.data()).load(std::memory_order_relaxed), std::memory_order_relaxed);
    } else {
      std::memcpy(fresh->value_data(), value.data(), value.size());
    }
  }
  Publish(ShardOf(to), to_db, to.hash, fresh);
}

void Unit::Rename(DbIndex from_db, const HashedKey& from, DbIndex to_db, const HashedKey& to) {
  Copy(from_db, from, to_db, to);
  Remove(from_db, from);
}

// --- waiting

void Unit::Wait(DbIndex db, const HashedKey& key, std::shared_ptr<Waiter> waiter) {
  Shard& shard = ShardOf(key);
  const int64_t change = NextChange(SubjectOf(FindLocked(shard, db, key, false)), now_ms());
  WaitLine& line = shard.lines.Open(db, key.bytes);
  const int64_t wake = std::min(change, waiter->give_up_at_ms);
  line.waiters.push_back(std::move(waiter));
  store_.impl_->waiters.fetch_add(1, std::memory_order_relaxed);
  store_.stats_.Add(StorageStats::kWaits);
  if (wake >= line.wake_ms) return;
  line.wake_ms = wake;
  store_.impl_->timer.Add({wake, shard.number, WaitLines::Name(db, key.bytes)});
}

}  // namespace idemd::storage
