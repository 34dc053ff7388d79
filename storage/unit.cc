// A unit's locks, reads and single-key changes.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "absl/strings/str_cat.h"
#include "storage/key/shapes.h"
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
  AppendText(Unpack(view.bytes, view.deadline_ms), scratch);
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
      subject.record = Unpack(view.bytes, view.deadline_ms);
      break;
    default:
      subject.kind = Subject::Kind::kOtherType;
      break;
  }
  return subject;
}

Unit::Unit(Store& store) : store_(store) {}
Unit::~Unit() {
  if (held_ == 0 && events_ == nullptr) return;
  std::uncaught_exceptions() == 0 ? Commit() : GiveUp();
}

void Unit::GiveUp() {
  if (marks_ != 0) Stop("out of memory in the middle of a change");
  events_.reset();
  borrowed_ = 0;
  Unlock();
}

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
  Store::Impl& store = *store_.impl_;
  if (held_ == 0 && store.brake.on()) [[unlikely]]
    store.brake.Wait();
  if (!store.shards[number].mutex.TryLock()) store_.WaitForLock(store.shards[number]);
  // The time that decides is read under the lock, unless a decision was made with an earlier one already.
  if (held_ == 0 && !sealed_) now_ns_ = 0;
  held_ |= bit;
}

// A script may hold the lock for long; see SetWhileWaiting().
void Store::WaitForLock(Shard& shard) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  constexpr std::chrono::milliseconds kPatience{10};
  if (while_waiting_ == nullptr) return shard.mutex.Lock();
  while (!shard.mutex.TryLockFor(kPatience)) while_waiting_();
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
  Forget();
  for (; held_ != 0; held_ &= held_ - 1)
    store_.impl_->shards[static_cast<uint32_t>(std::countr_zero(held_))].mutex.Unlock();
}

// --- reads

int64_t Unit::DeadlineOf(const Item& item) const {
  if (item.entry != nullptr) return item.entry->deadline_ms();
  return DeadlineOfCell(item.cell, store_.impl_->deadline_base_ms.load(std::memory_order_relaxed));
}

KeyView Unit::ViewOf(const Item& item) const {
  KeyView view;
  view.deadline_ms = DeadlineOf(item);
  if (item.entry == nullptr) {
    view.type = ValueType::kString;
    view.inlined = true;
    view.bytes = Shapes::Instance().At(static_cast<uint8_t>(item.shape)).value;
    return view;
  }
  const Entry& entry = *item.entry;
  view.access = entry.access();
  if (entry.form() == EntryForm::kCollection) [[unlikely]] {
    view.collection = entry.holder().collection;
    view.type = view.collection->type();
    return view;
  }
  view.type = entry.is_record() ? ValueType::kRecord : ValueType::kString;
  view.bytes = entry.value();
  view.edited = entry.form() == EntryForm::kBuffer;
  view.replays = entry.replays();
  return view;
}

inline void Unit::NoteUse(Entry& entry) {
  if (store_.CountsUses()) [[unlikely]]
    return CountUse(entry);
  entry.touch(store_.impl_->coarse_s.load(std::memory_order_relaxed));
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
  const Item item = table == nullptr ? Item{} : table->Find(key);
  if (item.entry == nullptr || !item.entry->in_place()) {
    const KeyView view = item ? ViewOf(item) : KeyView{};
    // After all that was seen of the key: who sees a change also sees that its LSN is pending.
    const Lsn lsn = store_.impl_->Logs() ? shard.LsnOf(key.hash).load(std::memory_order_acquire) : kNoLsn;
    if (lsn != kLsnPending && !Expired(view.deadline_ms)) {
      Need(lsn);
      if (touch) {
        if (item.entry != nullptr && !keep_access_) NoteUse(*item.entry);
        store_.stats_.Add(item ? StorageStats::kHits : StorageStats::kMisses);
      }
      if (!item && report_misses_) Notify(EventClass::kKeyMiss, "keymiss", db, key.bytes);
      return view;
    }
  }
  LockShard(shard.number);
  borrowed_ = held_;
  const KeyView view = FindLocked(shard, db, key, touch);
  if (touch) store_.stats_.Add(view ? StorageStats::kHits : StorageStats::kMisses);
  return view;
}

KeyView Unit::FindLocked(Shard& shard, DbIndex db, const HashedKey& key, bool touch) {
  const Item item = LiveItem(shard, db, key);
  if (!item) {
    if (report_misses_) Notify(EventClass::kKeyMiss, "keymiss", db, key.bytes);
    return {};
  }
  const KeyView view = ViewOf(item);
  if (view.collection != nullptr) seen_ = {item.entry, key.hash, db};
  if (touch && !keep_access_ && item.entry != nullptr) NoteUse(*item.entry);
  return view;
}

Unit::Item Unit::LiveItem(Shard& shard, DbIndex db, const HashedKey& key) {
  if (const Table::Held* const known = Known(db, key)) return known->item();
  const Table* table = shard.tables[db].load(std::memory_order_relaxed);
  found_.key = nullptr;
  found_.held = Table::Held();
  if (table != nullptr) table->FindHeld(key, &found_.held);
  const Item item = found_.held.item();
  const bool expired = item && Expired(DeadlineOf(item));
  if (expired && !store_.frozen_.load(std::memory_order_relaxed)) {
    store_.stats_.Add(StorageStats::kExpired);
    RemoveItem(shard, db, key, "expired");
    Notify(EventClass::kExpired, "expired", db, key.bytes);
    return {};
  }
  if (store_.impl_->Logs()) {
    const Lsn lsn = shard.LsnOf(key.hash).load(std::memory_order_relaxed);
    if (lsn != kLsnPending) Need(lsn);  // pending: changed by this very unit
  }
  if (expired) return Item{};
  found_.key = key.bytes.data();
  found_.key_bytes = key.bytes.size();
  found_.hash = key.hash;
  found_.db = db;
  return item;
}

void Unit::CountReplay(const KeyView& view) {
  if (view.replays != nullptr) view.replays->fetch_add(1, std::memory_order_relaxed);
}

// --- changes

namespace {

void RetireEntry(StorageStats& stats, Entry* entry) {
  // What small entries a thread keeps until it has retired enough of them stays below a megabyte.
  constexpr size_t kLargeBytes = 16 * 1024;
  const size_t bytes = entry->in_place() ? entry->memory_bytes() : entry->value().size();
  if (bytes < kLargeBytes) return Retire(entry, &Entry::DestroyRetired);
  stats.Add(StorageStats::kLazyFreed);
  RetireLarge(entry, &Entry::DestroyRetired);
}

void AddBytes(Shard& shard, DbIndex db, size_t plus, size_t minus) {
  if (plus == minus) return;
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

size_t BytesOf(const Item<Entry>& item) { return item.entry == nullptr ? 0 : item.entry->memory_bytes(); }

}  // namespace

void Unit::MarkPending(Shard& shard, uint64_t hash) {
  ++marks_;
  Forget();
  if (store_.impl_->Logs()) shard.LsnOf(hash).store(kLsnPending, std::memory_order_release);
}

// Nobody wants to know: then a change needs no copy of its key. Nobody can begin to while the shard's lock is held.
void Unit::NoteChange(Shard& shard, DbIndex db, const HashedKey& key, Kind kind, const char* why, Told told) {
  ++changes_;
  if (told == Told::kEverybody) Notify(EventClass::kChanged, why, db, key.bytes);
  if (!store_.impl_->Logs() && !shard.observed()) return;
  // Mostly it is the last one, again. What is told twice is told right; only commands are put to what was told before.
  Change* change = kind == Kind::kCollection || changed_.empty() ? LastChangeOf(db, key) : &changed_.back();
  if (change != nullptr && (change->db != db || change->hash != key.hash || KeyOf(*change).bytes != key.bytes))
    change = nullptr;
  if (change == nullptr) {
    const size_t at = texts_.size();
    texts_.insert(texts_.end(), key.bytes.begin(), key.bytes.end());
    changed_.push_back({&shard, db, key.hash, at, key.bytes.size(), false, Change::Value::kSame, kNoDelta, kNoDelta});
    change = &changed_.back();
  }
  if (told == Told::kEverybody) {
    change->noticed = true;
    touched_ = std::min(touched_, static_cast<size_t>(change - changed_.data()));
  }
  switch (kind) {
    case Kind::kValue:
      change->value = Change::Value::kWhole;
      break;
    case Kind::kDeadline:
      change->deadline = true;
      break;
    case Kind::kCollection:
      if (change->value == Change::Value::kSame) change->value = Change::Value::kDelta;
      break;
  }
}

Table& Unit::TableFor(Shard& shard, DbIndex db) {
  Table* table = shard.tables[db].load(std::memory_order_relaxed);
  if (table == nullptr) {
    table = new Table(now_ms());
    shard.tables[db].store(table, std::memory_order_release);
  }
  return *table;
}

void Unit::MakeRoomFor(DbIndex db, const HashedKey& key, size_t keys, size_t inlined) {
  Shard& shard = ShardOf(key);
  if (shard.tables[db].load(std::memory_order_relaxed) == nullptr) TableFor(shard, db).Reserve(keys + inlined);
}

void Unit::Publish(Shard& shard, DbIndex db, const HashedKey& key, Entry::Made made, Kind kind) {
  const Table::Held* const known = Known(db, key);
  MarkPending(shard, key.hash);
  Entry* const fresh = made.entry;
  const int64_t deadline_ms = fresh->deadline_ms();
  const Item old = TableFor(shard, db).Put(key, fresh, known);
  NoteFirstUse(*fresh, old.entry);
  AddBytes(shard, db, made.memory_bytes, 0);
  Replaced(shard, db, key, old, deadline_ms, kind);
}

// After a key got a new value with this deadline in place of `old`, or of nothing.
void Unit::Replaced(Shard& shard, DbIndex db, const HashedKey& key, const Item& old, int64_t deadline_ms, Kind kind) {
  const int64_t old_deadline_ms = old ? DeadlineOf(old) : kNoDeadline;
  AddBytes(shard, db, 0, BytesOf(old));
  CountDeadline(shard, db, old_deadline_ms, deadline_ms);
  const bool expired = Expired(old_deadline_ms);
  if (expired) {
    store_.stats_.Add(StorageStats::kExpired);
    Notify(EventClass::kExpired, "expired", db, key.bytes);
  }
  if (!old || expired) Notify(EventClass::kNew, "new", db, key.bytes);
  if (old.entry != nullptr) RetireEntry(store_.stats_, old.entry);
  NoteChange(shard, db, key, kind);
}

void Unit::RemoveItem(Shard& shard, DbIndex db, const HashedKey& key, const char* why) {
  const Table::Held* const known = Known(db, key);
  MarkPending(shard, key.hash);
  const Item item = shard.tables[db].load(std::memory_order_relaxed)->Take(key, known);
  AddBytes(shard, db, 0, BytesOf(item));
  CountDeadline(shard, db, DeadlineOf(item), kNoDeadline);
  if (item.entry != nullptr) RetireEntry(store_.stats_, item.entry);
  NoteChange(shard, db, key, Kind::kValue, why);
}

// Removes what has expired from some segments; the shard's lock is held. Returns how many.
size_t Unit::ExpireDue(Shard& shard, DbIndex db, size_t max_segments, bool* more) {
  *more = false;
  Table* table = shard.tables[db].load(std::memory_order_relaxed);
  if (table == nullptr) return 0;
  std::vector<Table::Due> due;
  *more = table->CollectDue(now_ms(), store_.impl_->deadline_base_ms.load(std::memory_order_relaxed), max_segments, due);
  const bool somebody_cares = store_.impl_->Logs() || shard.observed();
  const bool tells = store_.WantsEvent(EventClass::kExpired) || store_.WantsEvent(EventClass::kChanged);
  size_t bytes = 0;
  for (const Table::Due& d : due) {
    MarkPending(shard, d.hash);
    table->Remove(d);
    if (somebody_cares || tells) {
      KeyText room;
      const absl::string_view key = KeyIn(d.item, room);
      NoteChange(shard, db, HashedKey(key, d.hash), Kind::kValue, "expired");
      Notify(EventClass::kExpired, "expired", db, key);
    } else {
      ++changes_;
    }
    if (d.item.entry == nullptr) continue;
    bytes += d.item.entry->memory_bytes();
    RetireEntry(store_.stats_, d.item.entry);
  }
  AddBytes(shard, db, 0, bytes);
  std::atomic<uint64_t>& with_deadline = shard.with_deadline[db];
  with_deadline.store(with_deadline.load(std::memory_order_relaxed) - due.size(), std::memory_order_relaxed);
  table->FinishDue(due);
  return due.size();
}

// A value without looking into it.
void Unit::SetBytes(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms) {
  Shard& shard = ShardOf(key);
  const int64_t base_ms = store_.impl_->deadline_base_ms.load(std::memory_order_relaxed);
  if (Entry::CanBeShaped(key, value.size(), deadline_ms)) {
    const uint32_t shape = Shapes::Instance().Id(key.prefix(), key.tail.kind, value);
    if (shape != 0) {
      Item old;
      if (Entry::Words(key) != nullptr && FitsCell(deadline_ms, base_ms)) {
        const Table::Held* const known = Known(db, key);
        MarkPending(shard, key.hash);
        if (TableFor(shard, db).PutInline(key, shape, deadline_ms, now_ms(), base_ms, &old, known))
          return Replaced(shard, db, key, old, deadline_ms);
      }
      return Publish(shard, db, key, Entry::MakeShaped(*shard.heap, key, shape, deadline_ms));
    }
  }
  Publish(shard, db, key, Entry::MakeWith(*shard.heap, key, EntryForm::kString, value, deadline_ms));
}

// A value that is the text of a record becomes one. False: it is none.
bool Unit::SetParsed(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms) {
  if (!LooksLikeRecord(value)) return false;
  std::string scratch;
  Record record;
  if (ParseText(value, scratch, record) != ParseVerdict::kRecord || !FencePlausible(record.fence, now_ms())) return false;
  store_.fences_.Raise(record.fence);
  SetRecord(db, key, record, deadline_ms);
  return true;
}

void Unit::SetString(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms) {
  if (!SetParsed(db, key, value, deadline_ms)) SetBytes(db, key, value, deadline_ms);
}

void Unit::SetRecord(DbIndex db, const HashedKey& key, const Record& record, int64_t deadline_ms) {
  Shard& shard = ShardOf(key);
  const EntryForm form = record.state == RecordState::kDone ? EntryForm::kDone : EntryForm::kRecord;
  // Mostly it is small, and then packed once, before its size is known.
  constexpr size_t kSmallBytes = 512;
  if (PackedSizeMax(record) <= kSmallBytes) {
    char room[kSmallBytes];
    const auto size = static_cast<size_t>(Pack(record, deadline_ms, room) - room);
    return Publish(shard, db, key, Entry::MakeWith(*shard.heap, key, form, absl::string_view(room, size), deadline_ms));
  }
  Entry* entry = Entry::Make(*shard.heap, key, form, PackedSize(record, deadline_ms), deadline_ms);
  Pack(record, deadline_ms, entry->value_data());
  Publish(shard, db, key, entry);
}

void Unit::Apply(DbIndex db, const HashedKey& key, const Action& action, bool lease_only) {
  switch (action.kind) {
    case Action::Kind::kNone:
      return;
    case Action::Kind::kSetRecord:
      SetRecord(db, key, action.record, action.deadline_ms);
      lease_only ? Notify(EventClass::kGeneric, "expire", db, key.bytes)
                 : Notify(EventClass::kString, "set", db, key.bytes);
      return;
    case Action::Kind::kSetPlain:
      SetString(db, key, action.plain, action.deadline_ms);
      Notify(EventClass::kString, "set", db, key.bytes);
      return;
    case Action::Kind::kDelete:
      if (Remove(db, key)) Notify(EventClass::kGeneric, "del", db, key.bytes);
      return;
  }
}

bool Unit::Remove(DbIndex db, const HashedKey& key) {
  Shard& shard = ShardOf(key);
  if (!LiveItem(shard, db, key)) return false;
  RemoveItem(shard, db, key);
  return true;
}

bool Unit::SetDeadline(DbIndex db, const HashedKey& key, int64_t deadline_ms) {
  Shard& shard = ShardOf(key);
  const Item item = LiveItem(shard, db, key);
  if (!item) return false;
  const int64_t before = DeadlineOf(item);
  if (before == deadline_ms) {
    if (deadline_ms == kNoDeadline) return true;
    MarkPending(shard, key.hash);
    NoteChange(shard, db, key, Kind::kDeadline);  // for everybody else a write, as in Redis
    return true;
  }
  MarkPending(shard, key.hash);
  if (item.entry != nullptr) shard.tables[db].load(std::memory_order_relaxed)->SaveBefore(key);
  const bool in_place = item.entry != nullptr
                            ? item.entry->set_deadline_ms(deadline_ms)
                            : FitsCell(deadline_ms, store_.impl_->deadline_base_ms.load(std::memory_order_relaxed));
  if (in_place) {
    shard.tables[db].load(std::memory_order_relaxed)->SetDeadline(key, deadline_ms);
    CountDeadline(shard, db, before, deadline_ms);
  } else {
    CopyTo(db, key, ViewOf(item), deadline_ms);
  }
  NoteChange(shard, db, key, Kind::kDeadline);
  return true;
}

absl::Span<char> Unit::Edit(DbIndex db, const HashedKey& key, size_t size) {
  Shard& shard = ShardOf(key);
  const Item item = LiveItem(shard, db, key);
  if (item.entry != nullptr && item.entry->form() == EntryForm::kBuffer) {
    const size_t before = item.entry->memory_bytes();
    item.entry->ReserveBuffer(size);
    MarkPending(shard, key.hash);
    shard.tables[db].load(std::memory_order_relaxed)->SaveBefore(key);
    item.entry->ResizeBuffer(size);
    AddBytes(shard, db, item.entry->memory_bytes(), before);
    NoteChange(shard, db, key, Kind::kValue);
    return {item.entry->buffer().data, size};
  }
  const KeyView old = item ? ViewOf(item) : KeyView{};
  Entry* fresh = Entry::MakeBuffer(*shard.heap, key, size, size, old.deadline_ms);
  if (item) std::memcpy(fresh->buffer().data, old.bytes.data(), std::min(size, old.bytes.size()));
  Publish(shard, db, key, fresh);
  return {fresh->buffer().data, size};
}

bool Unit::CollectionChanged(DbIndex db, const HashedKey& key, absl::Span<const absl::string_view> command, Told told) {
  Shard& shard = ShardOf(key);
  Holder& holder = EntryAt(shard, db, key)->holder();
  const size_t bytes = holder.collection->memory_bytes();
  AddBytes(shard, db, bytes, holder.bytes);
  holder.bytes = bytes;
  const bool gone = holder.collection->gone();
  if (!command.empty()) NoteDelta(shard, db, key, command, told);
  if (gone) RemoveEmptied(shard, db, key, !command.empty());
  return gone;
}

// Gives `to` what `view` shows, with this deadline; form and replay counter go along.
void Unit::CopyTo(DbIndex to_db, const HashedKey& to, const KeyView& view, int64_t deadline_ms) {
  Shard& shard = ShardOf(to);
  if (view.type == ValueType::kRecord) {
    const uint32_t replays = view.replays == nullptr ? 0 : view.replays->load(std::memory_order_relaxed);
    SetRecord(to_db, to, Unpack(view.bytes, view.deadline_ms), deadline_ms);
    const Item item = shard.tables[to_db].load(std::memory_order_relaxed)->Find(to);
    if (item.entry->replays() != nullptr) item.entry->replays()->store(replays, std::memory_order_relaxed);
  } else if (view.collection != nullptr) {
    SetCollection(to_db, to, view.collection->Clone(), deadline_ms);
  } else if (view.edited) {
    Entry* fresh = Entry::MakeBuffer(*shard.heap, to, view.bytes.size(), view.bytes.size(), deadline_ms);
    std::memcpy(fresh->buffer().data, view.bytes.data(), view.bytes.size());
    Publish(shard, to_db, to, fresh);
  } else {
    SetBytes(to_db, to, view.bytes, deadline_ms);
  }
}

void Unit::Copy(DbIndex from_db, const HashedKey& from, DbIndex to_db, const HashedKey& to) {
  const Item item = LiveItem(ShardOf(from), from_db, from);
  if (!item) return;
  const KeyView view = ViewOf(item);
  const bool replaces = store_.WantsEvent(EventClass::kNew) && LiveItem(ShardOf(to), to_db, to);
  CopyTo(to_db, to, view, view.deadline_ms);
  // What it replaces counts as deleted before.
  if (replaces) Notify(EventClass::kNew, "new", to_db, to.bytes);
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
  if (wake < line.wake_ms) LookAtLine(shard, WaitLines::Name(db, key.bytes), line, wake);
}

size_t Unit::WaitersAt(DbIndex db, const HashedKey& key) {
  const WaitLine* line = ShardOf(key).lines.Find(db, key.bytes);
  return line == nullptr ? 0 : line->waiters.size();
}

// The line is gone through once half of it has gone, so that leaving costs the same however long it is.
void Unit::LeaveLine(DbIndex db, const HashedKey& key) {
  Shard& shard = ShardOf(key);
  WaitLine* line = shard.lines.Find(db, key.bytes);
  if (line == nullptr || 2 * ++line->gone < line->waiters.size()) return;
  auto& waiters = line->waiters;
  const size_t before = waiters.size();
  waiters.erase(std::remove_if(waiters.begin(), waiters.end(), [](const auto& waiter) { return waiter->canceled_or_done(); }), waiters.end());
  store_.impl_->waiters.fetch_sub(before - waiters.size(), std::memory_order_relaxed);
  line->gone = 0;
  if (waiters.empty()) CloseLine(shard, WaitLines::Name(db, key.bytes), *line);
}

void Unit::LookAtLine(Shard& shard, const std::string& name, WaitLine& line, int64_t at_ms) {
  store_.impl_->timer.Move(shard.number, name, line.wake_ms, at_ms);
  line.wake_ms = at_ms;
}

void Unit::CloseLine(Shard& shard, const std::string& name, WaitLine& line) {
  LookAtLine(shard, name, line, kNoDeadline);
  shard.lines.CloseNamed(name);
}

}  // namespace idemd::storage
