// The front door of storage: keys in 16 databases, and Unit, the one way to read or change them.
//
// A Unit is one atomic step: a command, later an EXEC or a script. Reads outside its locks are lock-free. Changes are
// made under the locks of the shards involved (the same 64 shards for every database), are visible to others as soon as
// they are made, and go to the log as effects when the unit commits, still under the locks.
//
//   Unit unit(store);
//   unit.Lock(db, key);                 // or LockKeys, LockAll; always before the first look at what will change
//   KeyView old = unit.Find(db, key);   // expired keys are removed by looking at them
//   unit.SetString(db, key, "1", deadline);
//   unit.Commit();                      // log, waiters, unlock; the destructor does it too
//   reply waits until store.log().released() >= unit.need(), and so does whatever else tells of the unit
//
// Threads     Store: any. Unit: one thread, on its stack.
// Lifetime    Views from a Unit are valid until it commits, or until that key is changed in it; see Find().
// Lock order  shards in ascending order, then the wait timer, then the log.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/clock.h"
#include "storage/collection/collection.h"
#include "storage/effect.h"
#include "storage/effect_log.h"
#include "storage/events.h"
#include "storage/eviction.h"
#include "storage/fence.h"
#include "storage/hashed_key.h"
#include "storage/record/life.h"
#include "storage/record/record.h"
#include "storage/stats.h"
#include "storage/sync/epoch.h"
#include "storage/table/entry.h"
#include "storage/use_count.h"
#include "storage/value/digest.h"
#include "storage/value_type.h"
#include "storage/wait/blocked_lines.h"
#include "storage/wait/waiter.h"
#include "storage/watch.h"

namespace idemd::storage {

inline constexpr DbIndex kDatabases = 16;
inline constexpr uint32_t kShards = 64;  // one bit each in a unit's set of held locks

// What a key held at one moment.
struct KeyView {
  ValueType type = ValueType::kNone;
  absl::string_view bytes;  // kString: the value; kRecord: the packed record
  int64_t deadline_ms = kNoDeadline;
  // Second of the last use or, while uses are counted, their number (use_count.h); 0 where it is not kept (inline keys and records).
  uint32_t access = 0;
  bool inlined = false;   // in the table's line, without an entry
  bool edited = false;    // a string that was edited in place (OBJECT ENCODING raw)
  const Collection* collection = nullptr;  // of the other types; good as long as their key's lock is held
  std::atomic<uint32_t>* replays = nullptr;  // of a record that is done: replies of its answer so far

  explicit operator bool() const { return type != ValueType::kNone; }
};

// The string that GET shows: the value itself, or a record's text rendered into `scratch`.
absl::string_view StringValue(const KeyView& view, std::string& scratch);
// The bytes that a key with such a value takes, its place in the table and allocator rounding included (MEMORY USAGE).
size_t MemoryUsage(absl::string_view key, const KeyView& view);

class Snapshot;
class Store;
struct Shard;
struct WaitLine;

class Unit {
 public:
  explicit Unit(Store& store);
  ~Unit();  // commits
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  Store& store() { return store_; }
  // Effective time: one reading for the whole unit, made under the first lock (or at the first lock-free read).
  int64_t now_ms();
  int64_t now_ns();

  // --- locks
  void Lock(const HashedKey& key);
  void LockKeys(absl::Span<const HashedKey> keys);
  void LockAll();
  bool Holds(const HashedKey& key) const;
  bool HoldsAll() const { return held_ == ~uint64_t{0}; }
  // EXEC and scripts: all locks have been taken, one reading of the time holds for all commands inside, and none of them
  // waits for other callers.
  void Seal() { sealed_ = true; }
  bool sealed() const { return sealed_; }

  // --- reads. In a unit without locks the read is lock-free. Where it cannot be (an expired key is removed by looking at
  // it, a large string is being edited in place, a change is not in the log yet) the unit borrows the key's lock, until
  // its next Find or Lock at the latest: that long the view is good. In a unit with locks only keys that it holds may be
  // looked at, and what is seen stays true until the unit ends.
  KeyView Find(DbIndex db, const HashedKey& key, bool touch = true);
  // Whether reads leave the keys' access times alone (EXISTS, CLIENT NO-TOUCH); hits and misses are counted all the same.
  void KeepAccessTimes(bool keep) { keep_access_ = keep; }
  // Whether a key that is not there is an event (`keymiss`): in commands that read, and only where they read.
  void ReportMisses(bool report) { report_misses_ = report; }
  // Counts one replay of the stored answer at `view` (a record of this unit that is done).
  static void CountReplay(const KeyView& view);

  // --- changes; the key's shard must be held.
  // A value that parses as a record line becomes a record. `deadline_ms` in the past is the caller's mistake.
  void SetString(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms);
  void SetRecord(DbIndex db, const HashedKey& key, const Record& record, int64_t deadline_ms);
  bool Remove(DbIndex db, const HashedKey& key);
  bool SetDeadline(DbIndex db, const HashedKey& key, int64_t deadline_ms);
  // As though the key had last been used so many seconds ago; nothing where that is not kept (KeyView::access).
  void SetIdle(DbIndex db, const HashedKey& key, int64_t idle_s);
  // As though it had been used so often, while uses are counted (Store::CountsUses()).
  void SetUses(DbIndex db, const HashedKey& key, uint8_t uses);
  uint8_t Uses(const KeyView& view) const;
  // Applies what a life function decided. The event is `set` or `del`; `expire` where only a lease was renewed.
  void Apply(DbIndex db, const HashedKey& key, const Action& action, bool lease_only = false);
  // Makes the string at `key` (absent: empty) exactly `size` bytes, old bytes kept, new ones zero, and hands them out
  // to be edited before the unit ends. Keeps the deadline. The key must hold no record.
  absl::Span<char> Edit(DbIndex db, const HashedKey& key, size_t size);
  // --- collections: changed where they are. The key's shard must be held.
  // The collection at `key`, which must hold one, about to be changed. CollectionChanged() follows before the unit ends; without a
  // command if it came to nothing.
  Collection& EditCollection(DbIndex db, const HashedKey& key);
  // Puts a collection at `key`, where nothing is; what is put into it is told by CollectionChanged().
  Collection& CreateCollection(DbIndex db, const HashedKey& key, std::unique_ptr<Collection> empty);
  // After a change: `command` is the write that makes the same of what the key held before, absolute and without options that
  // depend on anything else. It may be called several times for one EditCollection(). A collection that is gone() is removed: true.
  // Of what is only kept beside the elements (how far a stream's groups are) the log alone may be told: who watches the key, or
  // is blocked at it, does not notice.
  enum class Told : uint8_t { kEverybody, kLog };
  bool CollectionChanged(DbIndex db, const HashedKey& key, absl::Span<const absl::string_view> command,
                         Told told = Told::kEverybody);
  // Puts a whole collection at `key`, whatever is there.
  void SetCollection(DbIndex db, const HashedKey& key, std::unique_ptr<Collection> value, int64_t deadline_ms);
  // Makes room for `keys` keys, of which `inlined` can be kept inline, in the shard of `key`, where the database has none yet.
  void MakeRoomFor(DbIndex db, const HashedKey& key, size_t keys, size_t inlined);
  // Moves what `from` holds to `to`, replacing it; replay counter and form go along.
  void Rename(DbIndex from_db, const HashedKey& from, DbIndex to_db, const HashedKey& to);
  void Copy(DbIndex from_db, const HashedKey& from, DbIndex to_db, const HashedKey& to);

  // --- events (events.h). A handler tells what it did to a key; what storage itself does (a key expires, is added, is not
  // found) it tells itself. One relaxed load while nobody wants to know. `event` is a literal.
  void Notify(EventClass event_class, const char* event, DbIndex db, absl::string_view key);
  // Calls when the unit commits, in order with its events and under the same rules: it must neither wait nor use the store.
  void AtCommit(std::function<void(Lsn need)> call);
  // For the sink: whose unit it is.
  void SetOrigin(EventOrigin* origin) { origin_ = origin; }
  EventOrigin* origin() const { return origin_; }

  // --- whole databases; LockAll() first (Size and RandomKey need no lock).
  void FlushDb(DbIndex db);
  void FlushAll();
  void SwapDb(DbIndex a, DbIndex b);
  uint64_t Size(DbIndex db) const;
  uint64_t SizeWithDeadline(DbIndex db) const;
  // A key that is there now, or "" when the database is empty. Good until the unit ends.
  absl::string_view RandomKey(DbIndex db);
  // SCAN: calls `each` for at least `count` keys if there are that many, and returns the next cursor, 0 at the end.
  // Every key present throughout a full iteration is seen at least once. Expired keys are not shown.
  uint64_t Scan(DbIndex db, uint64_t cursor, uint64_t count,
                absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each);
  // Every key once, under the locks (KEYS).
  void ForEach(DbIndex db, absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each);

  // --- waiting
  // Puts `waiter` in line at `key` (whose lock is held): it is looked at again after every change of the key.
  void Wait(DbIndex db, const HashedKey& key, std::shared_ptr<Waiter> waiter);
  // How many wait at `key`, whose lock is held.
  size_t WaitersAt(DbIndex db, const HashedKey& key);
  // One of those who wait at `key`, whose lock is held, was cancelled.
  void LeaveLine(DbIndex db, const HashedKey& key);
  // Before a claim is decided (the key's lock is held): whoever waits for a lapse, a delay or an expiry that has come
  // goes first, whether or not the timer has noticed it yet. A key that this unit has changed itself is left to Commit().
  void ServeDueWaiters(DbIndex db, const HashedKey& key);

  // --- blocked callers (wait/blocked_lines.h)
  // Puts `caller` in line at `keys`, whose locks are held: it is served, by whoever calls NextBlocked(), when one of them
  // holds something.
  void Block(DbIndex db, absl::Span<const HashedKey> keys, const std::shared_ptr<Waiter>& caller);
  void Unblock(DbIndex db, absl::Span<const HashedKey> keys, const Waiter& caller);
  // Who has been blocked at `key` (whose lock is held) longest, of those who came after `after`. Null: nobody.
  std::shared_ptr<Waiter> NextBlocked(DbIndex db, const HashedKey& key, uint64_t after) const;
  // After Commit(): the keys that this unit has changed and at which somebody is blocked, in the order of the changes. They
  // are for the caller to serve, before it goes on with anything else, and outside of locks.
  bool has_ready() const { return !ready_.empty(); }
  std::vector<ReadyKey> TakeReady() { return std::exchange(ready_, {}); }

  // WATCH: `watch` is marked when the key changes from now on; the key's lock is held. A key that has expired is removed
  // first, so that only what comes later counts.
  void WatchKey(DbIndex db, const HashedKey& key, std::shared_ptr<Watch> watch);
  void UnwatchKey(DbIndex db, const HashedKey& key, const Watch& watch);
  // Marks the watches of what this unit has changed so far (Commit does too): EXEC looks at them before it begins.
  void TouchWatches();

  // Grows whenever a change is begun, and is 0 when a unit begins: whoever finds it as it was may give up what he was at.
  uint32_t marks() const { return marks_; }
  // Something outside of the store has changed that belongs to this unit.
  void Mark() { ++marks_; }
  // What the unit was about to do failed, for want of memory. Ends the process when a change was begun: nothing of the unit is
  // in the log, so that the next start finds what was there before it.
  void GiveUp();

  // Ends the unit: effects to the log, waiters of changed keys served, events told, locks released.
  void Commit() {
    if (held_ != 0 || events_ != nullptr) Finish();
  }
  // After Commit(): another unit, with a reading of the time of its own. Who goes on without saying so, with what had arrived
  // when the time was read, has the same reading until a lock is taken. What it needs comes on top of need().
  void BeginAnew() { now_ns_ = 0; }
  // The LSN that everything this unit revealed depends on.
  Lsn need() const { return need_; }

 private:
  friend class Store;
  using Item = storage::Item<Entry>;
  // One changed key; its text is this unit's copy (texts_).
  struct Change {
    Shard* shard;
    DbIndex db;
    uint64_t hash;
    size_t text_at;
    size_t text_size;
    bool deadline;  // it was changed, and the value not as a whole
    enum class Value : uint8_t { kSame, kDelta, kWhole } value;
    uint32_t first_delta, last_delta;  // of kDelta, in deltas_
    bool noticed = false;              // not by the log alone
  };
  // A command that a change of a collection amounted to, in RESP (delta_text_).
  struct Delta {
    size_t at, size;
    uint32_t next;
  };
  static constexpr uint32_t kNoDelta = UINT32_MAX;
  struct Served {
    std::shared_ptr<Waiter> waiter;
    WaitAnswer answer;
  };
  enum class Kind : uint8_t { kValue, kDeadline, kCollection };  // what was changed: all, the deadline, something in a collection
  Shard& ShardOf(const HashedKey& key) const;
  void LockShard(uint32_t number);
  void ReturnBorrowed();
  KeyView FindLockFree(Shard& shard, DbIndex db, const HashedKey& key, bool touch);
  KeyView FindLocked(Shard& shard, DbIndex db, const HashedKey& key, bool touch);
  KeyView ViewOf(const Item& item) const;
  int64_t DeadlineOf(const Item& item) const;
  // Asks for the time only where there is a deadline.
  bool Expired(int64_t deadline_ms);
  Item LiveItem(Shard& shard, DbIndex db, const HashedKey& key);
  void SetBytes(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms);
  bool SetParsed(DbIndex db, const HashedKey& key, absl::string_view value, int64_t deadline_ms);
  void CopyTo(DbIndex to_db, const HashedKey& to, const KeyView& view, int64_t deadline_ms);
  Table& TableFor(Shard& shard, DbIndex db);
  void Publish(Shard& shard, DbIndex db, const HashedKey& key, Entry::Made fresh, Kind kind = Kind::kValue);
  void Publish(Shard& shard, DbIndex db, const HashedKey& key, Entry* fresh, Kind kind = Kind::kValue) {
    Publish(shard, db, key, Entry::Made{fresh, fresh->memory_bytes()}, kind);
  }
  void Replaced(Shard& shard, DbIndex db, const HashedKey& key, const Item& old, int64_t deadline_ms, Kind kind = Kind::kValue);
  void RemoveItem(Shard& shard, DbIndex db, const HashedKey& key, const char* why = "");
  bool Evict(DbIndex db, const HashedKey& key, EvictionPolicy policy);
  void RemoveEmptied(Shard& shard, DbIndex db, const HashedKey& key, bool told);
  size_t ExpireDue(Shard& shard, DbIndex db, size_t max_segments, bool* more);
  void NoteUse(Entry& entry);
  void CountUse(Entry& entry);
  void NoteFirstUse(Entry& fresh, const Entry* old);
  // Before a change: until the log has it, nobody else may see it.
  void MarkPending(Shard& shard, uint64_t hash);
  // Null: nothing is known. Asked for before MarkPending(), good until the table is changed.
  const Table::Held* Known(DbIndex db, const HashedKey& key) const {
    const bool same = found_.key != nullptr && found_.key == key.bytes.data() && found_.hash == key.hash &&
                      found_.key_bytes == key.bytes.size() && found_.db == db;
    return same ? &found_.held : nullptr;
  }
  void Forget() {
    seen_.entry = nullptr;
    found_.key = nullptr;
  }
  // The entry at `key`, which is there and whose lock is held.
  Entry* EntryAt(Shard& shard, DbIndex db, const HashedKey& key) const;
  void NoteChange(Shard& shard, DbIndex db, const HashedKey& key, Kind kind, const char* why = "", Told told = Told::kEverybody);
  void NoteDelta(Shard& shard, DbIndex db, const HashedKey& key, absl::Span<const absl::string_view> command, Told told);
  Change* LastChangeOf(DbIndex db, const HashedKey& key);
  HashedKey KeyOf(const Change& change) const {
    return HashedKey(absl::string_view(texts_.data() + change.text_at, change.text_size), change.hash);
  }
  void Show(const Item& item, absl::FunctionRef<void(absl::string_view key, const KeyView& value)> each);
  void DropTable(Shard& shard, DbIndex db);
  void MarkAllPending();
  void SetAllLsns(Lsn lsn);
  void TouchDatabase(Shard& shard, DbIndex db);
  void RememberEvent(EventClass event_class, const char* event, DbIndex db, absl::string_view key);
  void TellEvents();
  void ServeWaiters();
  void ServeLine(Shard& shard, const std::string& name);
  void LookAtLine(Shard& shard, const std::string& name, WaitLine& line, int64_t at_ms);
  void CloseLine(Shard& shard, const std::string& name, WaitLine& line);
  void NoteReady(Shard& shard, const std::string& name);
  void CollectReady();
  void TellWhole(DbIndex db);
  void Finish() noexcept;  // without memory in the middle of it the process ends
  void AppendEffects();
  void ResolveServed();
  void Unlock();
  void Need(Lsn lsn) { need_ = lsn > need_ ? lsn : need_; }

  Store& store_;
  EpochGuard guard_;
  uint64_t held_ = 0;      // a bit per shard
  uint64_t borrowed_ = 0;  // of held_: the one that a Find() took
  // The collection that was seen last, so that a command which changes it looks for it once. Forgotten whenever something is put into
  // a table or taken out, and with the locks.
  struct {
    Entry* entry = nullptr;
    uint64_t hash = 0;
    DbIndex db = 0;
  } seen_;
  // What LiveItem() found last, so that a change of that key does not look for it again. Forgotten likewise. The key is known by where
  // its text stands and by its hash: a text that is another one meanwhile would have to have the same hash, under a seed that nobody
  // knows.
  struct {
    Table::Held held;
    const char* key = nullptr;  // null: nothing
    size_t key_bytes = 0;
    uint64_t hash = 0;
    DbIndex db = 0;
  } found_;
  int64_t now_ns_ = 0;
  Lsn need_ = kNoLsn;
  uint32_t changes_ = 0;
  uint32_t marks_ = 0;
  bool sealed_ = false;
  bool keep_access_ = false;
  bool report_misses_ = false;
  bool serve_all_ = false;  // whole databases changed: every line is looked at
  absl::InlinedVector<Change, 2> changed_;   // those that somebody wants to know of: the log, waiters, watches
  absl::InlinedVector<char, 128> texts_;     // their keys
  absl::InlinedVector<Delta, 2> deltas_;
  absl::InlinedVector<char, 128> delta_text_;
  std::string random_key_;
  size_t touched_ = 0;  // of changed_: those whose watches were marked
  std::vector<Effect> whole_effects_;  // FLUSHDB, FLUSHALL, SWAPDB
  std::vector<Served> served_;
  std::vector<ReadyKey> ready_;
  std::unique_ptr<EventList> events_;  // null: none so far
  EventOrigin* origin_ = nullptr;
};

// What a key holds, as the life functions take it.
Subject SubjectOf(const KeyView& view);

// Where the store's memory comes from, beside the heap of the rest of the process.
struct MemoryStatus {
  uint64_t used_bytes = 0;      // entries and tables, as memory_bytes() counts them
  uint64_t held_bytes = 0;      // pages in use for them, partly used blocks included
  uint64_t resident_bytes = 0;  // these and free pages that the system has not got back yet
  bool huge_pages = false;
  std::string why_not;  // empty when huge_pages
  bool compacting = false;
};

class Store {
 public:
  struct Settings {
    std::atomic<int64_t> retention_ms{86'400'000};
    std::atomic<int64_t> lease_ms{30'000};
    std::atomic<int64_t> token_ttl_ms{300'000};
    std::atomic<int64_t> max_result_bytes{1 << 20};
    std::atomic<uint64_t> maxmemory_bytes{0};
    std::atomic<int64_t> max_waiters{100'000};
    std::atomic<int64_t> max_waiters_per_key{10'000};
  };

  Store(Clock& clock, EffectLog& log);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  Clock& clock() { return clock_; }
  EffectLog& log() { return log_; }
  Settings& settings() { return settings_; }
  FenceCounter& fences() { return fences_; }
  StorageStats& stats() { return stats_; }

  // While a log is replayed nothing expires: see loader.h.
  void SetReplaying(bool replaying) { replaying_.store(replaying, std::memory_order_relaxed); }

  // Keys that expire are absent, but stay where they are and are told to nobody, until it is switched off (CLIENT PAUSE).
  void SetFrozen(bool frozen) { frozen_.store(frozen, std::memory_order_relaxed); }
  // Removes keys whose deadline has passed and serves waiters whose lease, delay or patience has run out. One thread
  // calls it in a loop; returns the effective time at which it wants to be called again.
  int64_t Tick();
  // Called (from any thread) when a waiter needs an earlier Tick() than the one announced.
  void SetWake(std::function<void()> wake);
  // Told of keys that Tick() has made ready (Unit::TakeReady), outside of locks; before the first Tick().
  void SetOnReady(std::function<void(std::vector<ReadyKey>)> on_ready) { on_ready_ = std::move(on_ready); }
  // Who is told of events; before the first unit, and until the last.
  void SetEventSink(EventSink* sink) { event_sink_ = sink; }
  // The classes that are told to the sink from now on; at first, none.
  void WantEvents(EventClasses classes) { wanted_events_.store(classes, std::memory_order_relaxed); }
  bool WantsEvent(EventClass event_class) const {
    return (wanted_events_.load(std::memory_order_relaxed) & Bit(event_class)) != 0;
  }
  // Called (on a thread that waits for a lock, every few milliseconds) so that it can do something else meanwhile: what it
  // does must not take a lock of the store. Set before units run.
  void SetWhileWaiting(std::function<void()> meanwhile) { while_waiting_ = std::move(meanwhile); }
  // Whether changes go to the log and readers wait for it; at first, what the log says. Takes all locks, and calls `at_switch`.
  void SetLogging(bool on, absl::FunctionRef<void()> at_switch = [] {});
  // The limits that life functions take, from the settings and the memory in use.
  Limits CurrentLimits() const;

  // The fast path of a pipeline, inside an epoch guard: brings what leads to the key's bucket into the cache, the bucket (and
  // what else a `change` of it looks at), and the entry. Each step needs what the one before has had the time to bring.
  void PrefetchReference(DbIndex db, const HashedKey& key) const;
  void Prefetch(DbIndex db, const HashedKey& key, bool change = false) const;
  void PrefetchEntry(DbIndex db, const HashedKey& key) const;
  // All of it for all keys of a command, so that their cache misses overlap.
  void PrefetchAll(DbIndex db, absl::Span<const HashedKey> keys, bool change = false) const;
  size_t waiters() const;         // callers in line, all keys
  size_t wait_timer_size() const;  // lines that time alone may change something for
  uint64_t memory_bytes() const;  // keys, values and tables
  MemoryStatus memory_status() const;
  bool OverMemoryLimit() const;
  // What goes at the limit (eviction.h); at first, nothing. `samples`: keys looked at, of each database, to choose one.
  void SetEviction(EvictionPolicy policy, uint32_t samples, UseCounting counting = {});
  // The policy is one for which uses are counted, instead of the time of the last one being kept.
  bool CountsUses() const { return IsLfu(eviction_policy_.load(std::memory_order_relaxed)); }
  UseCounting counting() const {
    return {use_log_factor_.load(std::memory_order_relaxed), use_decay_minutes_.load(std::memory_order_relaxed)};
  }
  bool evicts() const { return eviction_policy_.load(std::memory_order_relaxed) != EvictionPolicy::kNone; }
  // Evicts keys until memory is below its limit, for about that long. The caller has no unit with locks; `origin` is whose
  // connection waits for it.
  RoomMade MakeRoom(EventOrigin* origin, std::chrono::microseconds time);
  // Debug builds and tests: walks every shard and checks its invariants.
  void CheckInvariants();

 private:
  friend class Unit;
  friend class Snapshot;
  friend struct Shard;
  class Impl;
  void WaitForLock(Shard& shard);
  bool SweepInTime(int64_t now_ms);
  bool SweepExpired();
  void TendMemory();
  void EndOfTick(Unit& unit);
  void Evacuate(Shard& shard);
  void ConsiderForEviction(EvictionSearch& search, DbIndex db, const Item<Entry>& item, int64_t now_ms);
  void SampleForEviction(EvictionSearch& search, int64_t now_ms);
  static void MergeForEviction(EvictionSearch& search);
  bool WalkForEviction(EvictionSearch& search, int64_t now_ms);
  bool EvictOne(EvictionSearch& search, EventOrigin* origin, RoomMade& made);
  Clock& clock_;
  EffectLog& log_;
  Settings settings_;
  FenceCounter fences_;
  StorageStats stats_;
  std::unique_ptr<Impl> impl_;
  std::function<void()> while_waiting_;
  std::atomic<bool> replaying_{false};  // writer: the loader's thread; readers: units
  std::atomic<bool> frozen_{false};  // writer: SetFrozen(); readers: units and Tick(), for keys that have expired
  std::atomic<EventClasses> wanted_events_{0};  // writer: WantEvents(); readers: units
  EventSink* event_sink_ = nullptr;
  std::function<void(std::vector<ReadyKey>)> on_ready_;
  // Tick()'s own.
  uint32_t sweep_from_ = 0;  // the shard to begin with
  int64_t next_sweep_ms_ = 0;
  std::chrono::nanoseconds sweep_took_{0};
  // Writer: SetEviction(). Readers: whoever makes room.
  std::atomic<EvictionPolicy> eviction_policy_{EvictionPolicy::kNone};
  std::atomic<uint32_t> eviction_samples_{5};
  std::atomic<uint32_t> use_log_factor_{10};
  std::atomic<uint32_t> use_decay_minutes_{1};
};

inline bool Unit::Expired(int64_t deadline_ms) {
  return deadline_ms != kNoDeadline && deadline_ms <= now_ms() && !store_.replaying_.load(std::memory_order_relaxed);
}

inline void Unit::Notify(EventClass event_class, const char* event, DbIndex db, absl::string_view key) {
  if (store_.WantsEvent(event_class)) [[unlikely]]
    RememberEvent(event_class, event, db, key);
}

}  // namespace idemd::storage
