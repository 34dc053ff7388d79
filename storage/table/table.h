// One shard's table of one database: extendible hashing, read without a lock.
//
//   table --> directory --> segment of buckets, one cache line each
//                                     bucket: up to three inline keys, or up to six slots --> entry
//
// Extendible hashing over segments of buckets is the idea of CCEH (Nam et al., FAST 2019) and Dash (Lu et al., VLDB 2020),
// one line per bucket that of CLHT (David et al., ASPLOS 2015), overflow counts that of F14 (Bronson and Shi, 2019). What differs: nothing ever moves inside a segment that readers can see. A key stays where
// it is until it is removed or replaced; to make room, a segment is copied into new ones. So a reader needs no lock, no
// version and, but for the moment in which a key's form changes, no second look.
//
// Forms       A key is *inline* (16 bytes of key, a shape that stands for the rest of its text and its value, and 32 bits
//             of deadline, all in the bucket's line) or *out of line* (a slot with the address of an entry).
// Threads     Find, Prefetch(Entry), Scan, Random: any thread, inside an EpochGuard. size, memory_bytes,
//             next_due_ms: any thread. The others: the holder of the shard's lock, inside an EpochGuard; the lock is the
//             caller's, the table has none of its own.
// Lifetime    An Entry* seen inside a guard stays valid until that guard ends. Entries that Put, Take and Remove return
//             are the caller's to retire; segments and directories the table retires.
// Invariants  [T1] Whoever sees a slot's entry sees all of the entry; whoever sees a pair's shape sees all of its key.
//             [T2] A key that was put before a Find() began, and is not taken before it ends, is
//                  found: with something that it had at some moment meanwhile. Its place is fixed in
//                  a segment, and the overflow counts of the lines from its home to there lead to it
//                  from before the place is filled until it is empty.
//             [T3] The same while segments split and merge and the directory grows and shrinks:
//                  what a reader can reach is whole when it becomes reachable and never changes
//                  after it is replaced. A reader still in a replaced segment answers as of the
//                  replacement, which came after that reader began.
//             [T4] What was replaced is retired after its successor is published, and freed when no
//                  guard can see it (storage/sync/epoch.h). A pair that was emptied holds another inline key
//                  only when no guard can be reading the one before.
//             [T5] No key has an earlier deadline than its segment's hint, and a segment with a hint stands in the queue
//                  at a time that is not later.
//             [T6] Every key present throughout a scan, from cursor 0 to cursor 0, is visited.
//             [T7] An inline key that goes out of line, or gets another shape where shape and deadline are not one word,
//                  goes to another place in the same line, or to a line that readers visit later, before its pair is
//                  emptied. Out of line it stays while its segment lives.
//             [T8] From BeginCut() on, each key that was there is saved once, with what it held then: line by line, by who
//                  first changes what the line holds, before the change, or by SaveNext(). Where it lies may change without
//                  that: what was saved is marked, and what is copied is saved before and its copy marked.
// Linearized  Out of line: Put and Take at the store to the slot, Find at its load of the slot. Inline: Put and Take at
//             the store to the header (of a deadline alone: to its cell), Find at its load of the header. If the segment
//             was replaced by then, at the replacement. Find that answers "absent": anywhere, if the key was never there
//             during the call; else just after the Take() that emptied its place.
// Orderings   Words, cells and headers are stored with release and loaded with acquire: in the order of T1 and T2 below,
//             what a reader has seen brings with it all that was stored before. References and the directory likewise
//             [T3]. Writers load with relaxed what only lock holders store: the lock orders it.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "storage/sync/epoch.h"
#include "storage/sync/sync.h"
#include "storage/table/segment.h"
#include "storage/table/words.h"

namespace idemd::storage {

// What is at one place of a table, or nothing.
template <class Entry>
struct Item {
  Entry* entry = nullptr;    // out of line
  uint32_t shape = 0;        // inline; its key and deadline:
  uint32_t cell = kCellNone;
  uint64_t words[2] = {0, 0};
  explicit operator bool() const { return entry != nullptr || shape != 0; }
};

// Where a table saves what it held at one moment; see BeginCut(). All of it: the holder of the shard's lock.
template <class Entry>
class Cut {
 public:
  // 0 is the epoch of no cut; no two cuts that a table sees have the same one.
  explicit Cut(uint32_t epoch) : epoch_(epoch) {}
  uint32_t epoch() const { return epoch_; }
  virtual void Save(const Item<Entry>& item) = 0;

 protected:
  ~Cut() = default;

 private:
  const uint32_t epoch_;
};

// An Entry type says what keys are and how they compare:
//   Key                                   has a hash
//   Words(key) -> const uint64_t*         the 16 bytes of a key that can be inline, or nullptr
//   ShapeIs(shape, key)                   whether a pair with those 16 bytes and this shape is that key
//   InlineHash(shape, words)              the key's hash again
//   entry.Is(key), entry.hash(), entry.deadline_ms(), Destroy(entry)
template <class Entry, class Sync, class Shape = ServerShape>
class BasicTable {
 public:
  using Key = typename Entry::Key;
  using Item = storage::Item<Entry>;
  class Due;  // a place whose deadline has come

  // `now_ms`: about now; a better guess makes the first sweep cheaper, nothing else.
  explicit BasicTable(int64_t now_ms = 0) : time_ms_(now_ms) {}
  ~BasicTable();  // destroys the entries left; nobody reads any more
  BasicTable(const BasicTable&) = delete;
  BasicTable& operator=(const BasicTable&) = delete;

  // --- any thread inside a guard
  // Nothing: provably absent.
  Item Find(const Key& key) const;
  // In steps, each of which needs what the one before has had the time to bring into the cache. The reference to the key's
  // segment:
  void PrefetchReference(uint64_t hash) const;
  // The key's home bucket; for a `change`, the segment's counts, too.
  void Prefetch(uint64_t hash, bool change = false) const;
  // What is likely looked at next: the key's entry, or the next line.
  void PrefetchEntry(uint64_t hash) const;
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  size_t memory_bytes() const { return sizeof(*this) + bytes_.load(std::memory_order_relaxed); }
  // Visits the keys of one bucket and returns the next cursor; 0 begins, 0 is the end [T6]. A key
  // may be visited twice. A cursor has kCursorBits.
  uint64_t Scan(uint64_t cursor, absl::FunctionRef<void(const Item&)> each) const;
  static constexpr uint32_t kDepthBits = 5;
  static constexpr uint32_t kCursorBits = kDepthMax + kPlaceBits + kDepthBits;
  // Some key, each about as likely as any other; nothing when there is none.
  Item Random(uint64_t random) const;
  // Nothing is due before.
  int64_t next_due_ms() const { return next_due_ms_.load(std::memory_order_relaxed); }

  // --- the holder of the shard's lock
  // Where a key is, or would be looked for, into a fresh one. Good until the table is changed.
  class Held;
  void FindHeld(const Key& key, Held* held) const;
  // Makes a table that has never held a key as large as so many words need (words.h: an inline key takes two, another one). It
  // grows and shrinks from there as ever.
  void Reserve(size_t words);
  // Inserts or replaces; returns what was replaced, whose entry is the caller's to retire. `known`, here and below: what FindHeld()
  // said of this key, if the caller has asked; then it is not looked for again.
  Item Put(const Key& key, Entry* fresh, const Held* known = nullptr);
  // The same inline: false, and nothing done, when the key is there out of line. `deadline_ms` fits a cell. A deadline that
  // came by `now_ms` is as good as a removal: what lapsed never changes back [T2].
  [[nodiscard]] bool PutInline(const Key& key, uint32_t shape, int64_t deadline_ms, int64_t now_ms, int64_t base_ms,
                               Item* replaced, const Held* known = nullptr);
  // Removes; returns what was there, whose entry is the caller's to retire.
  Item Take(const Key& key, const Held* known = nullptr);
  // The key is there and gets this deadline; out of line the entry has it already, inline it fits a cell.
  void SetDeadline(const Key& key, int64_t deadline_ms);
  // Adds to `due` the places whose deadline is at or before `now_ms`, from up to `max_segments` segments in which one may
  // be. The caller removes all of them before it gives up the lock. Returns whether there may be more.
  bool CollectDue(int64_t now_ms, int64_t base_ms, size_t max_segments, std::vector<Due>& due);
  void Remove(const Due& due);
  // After the last Remove().
  void FinishDue(const std::vector<Due>& due);
  void ForEach(absl::FunctionRef<void(const Item&)> each) const;
  // Offers the entries of up to `max_segments` segments, from *position on (0: from the beginning; set to 0 at the end), to
  // `move`, which may return a copy of one in another place; the old one is the caller's to retire.
  void Relocate(uint64_t* position, size_t max_segments, absl::FunctionRef<Entry*(Entry&)> move);
  void CheckInvariants(int64_t base_ms) const;

  // From now until EndCut() what is there now is saved to `cut`, as it is now [T8]. One cut at a time.
  void BeginCut(Cut<Entry>& cut) { cut_ = &cut; }
  void EndCut() { cut_ = nullptr; }
  Cut<Entry>* cut() const { return cut_; }
  // Before the caller changes the entry of this key where it is: its bytes, its deadline.
  void SaveBefore(const Key& key);
  // Saves lines that are not saved yet, from *position on (0: from the beginning), until all are or `enough` says so, which
  // is asked after each line. Whether all are.
  bool SaveNext(uint64_t* position, absl::FunctionRef<bool()> enough);

 private:
  using Line = BasicLine<Sync>;
  using Segment = BasicSegment<Sync, Shape>;
  using Directory = BasicDirectory<Sync>;

  enum class Seen : uint8_t { kHere, kNotHere, kChanged };
  // Where something lies.
  struct Spot {
    Line* line = nullptr;
    uint32_t distance = 0;  // from the home bucket
    uint32_t word = 0;      // of the line's six
    uint32_t pair() const { return word / 2; }
  };
  // Where a lock holder finds what belongs to a hash.
  struct Where {
    Directory* directory;
    Segment* segment;
    uint32_t buckets;  // of the segment
    uint32_t bucket;   // the hash's
  };
  // A key on its way into a new segment.
  struct Moving {
    uint64_t hash;
    Item item;
  };
  struct Queued {
    int64_t at_ms;
    uint32_t prefix;  // kDepthMax directory bits
    bool operator<(const Queued& other) const { return at_ms > other.at_ms; }  // the earliest on top
  };

  static Segment* SegmentOf(uint64_t reference) {
    return reinterpret_cast<Segment*>(reference & kAddressMask & ~uint64_t{63});
  }
  static uint64_t ReferenceTo(const Segment* segment) {
    return Reference(segment, segment->depth(), segment->buckets());
  }
  static constexpr std::memory_order PublishUnless(Fault planted) {
    return Sync::kFault == planted ? std::memory_order_relaxed : std::memory_order_release;
  }

  // table.h
  Where Locate(uint64_t hash) const;  // the directory exists
  const Held& HeldOf(const Key& key, const Held* known, Held* own) const;
  static Seen LookInLine(Line& line, uint64_t header, const Key& key, Item* item, uint32_t* word);
  static Seen Look(Segment& segment, uint32_t buckets, uint32_t bucket, const Key& key, Item* item, Spot* spot);
  static uint64_t ItemHash(const Item& item) {
    return item.entry != nullptr ? item.entry->hash() : Entry::InlineHash(item.shape, item.words);
  }

  // place.h: how lines change
  static bool CanReuse(uint32_t cell);
  static uint32_t CellAt(const Line& line, uint64_t header, uint32_t pair);
  static uint64_t CellsWith(const Line& line, uint32_t pair, uint32_t cell);
  static uint32_t RoomForSlot(const Line& line);
  static uint32_t RoomForPair(Line& line);
  static void FillSlot(Line& line, uint32_t word, uint64_t slot, uint32_t coarse, std::memory_order order);
  static void FillPair(Line& line, uint32_t pair, const Item& item, std::memory_order order);
  static bool ChangeInPlace(Line& line, uint32_t pair, uint32_t old_shape, const Item& item);
  static void SetCoarse(Line& line, uint32_t word, uint32_t coarse);
  static void EmptyPair(Line& line, uint32_t pair);
  static void Raise(Line& line, std::memory_order order);
  static void Lower(Line& line);
  bool Insert(Segment& segment, uint32_t bucket, const Item& item, uint64_t hash, uint32_t distance_min,
              std::memory_order order);
  void Erase(Segment& segment, uint32_t bucket, const Spot& spot, bool inlined);

  // grow.h
  enum class Half : uint8_t { kBoth, kLower, kUpper };
  void MakeFirst();
  static constexpr uint32_t kLargest = Shape::kLinesMax + Shape::kStepsMore * Shape::kLinesStep;
  static bool Crowded(const Segment& segment) {
    return segment.words + 2 > segment.capacity_words() * Shape::kFillMax / 100;
  }
  void MakeRoom(uint64_t hash, int attempt);
  void MaybeShrink(uint64_t hash);
  static uint32_t NextSize(uint32_t size);
  static uint32_t SizeFor(size_t words, uint32_t percent, bool first);
  static uint32_t SizeMax(uint64_t hash, uint32_t depth);
  static void Gather(const Segment& segment, std::vector<Moving>& moving);
  bool Fill(Segment& segment, const std::vector<Moving>& moving, Half half);
  Segment* MakeSegment(uint32_t depth, uint32_t size);
  Segment* MakeFilled(uint32_t depth, uint32_t size, const std::vector<Moving>& moving, Half half,
                      int64_t deadline_hint_ms);
  void Replace(const Where& at, uint64_t hash, uint32_t size);
  void Split(const Where& at, uint64_t hash);
  void PublishHalves(const Where& at, uint64_t hash, Segment* lower, Segment* upper);
  bool Merge(const Where& at, uint64_t hash);
  void HalveDirectory(Directory* directory);
  static void Refer(Directory& directory, uint32_t prefix, const Segment* segment);
  void PublishDirectory(Directory* directory);
  void RetireSegment(Segment* segment);
  void RetireDirectory(Directory* directory);
  void AddBytes(size_t add) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + add, std::memory_order_relaxed);
  }
  void SubtractBytes(size_t bytes) { AddBytes(size_t{0} - bytes); }
  void SetSize(size_t size) { size_.store(size, std::memory_order_relaxed); }

  // due.h
  void NoteDeadline(Segment& segment, uint64_t hash, int64_t deadline_ms);
  void Enqueue(Segment& segment, uint32_t prefix);
  void SetNextDue();
  void CompactQueue();
  void SweepSegment(Segment& segment, int64_t now_ms, int64_t base_ms, std::vector<Due>& due);

  // save.h
  void SaveLine(Segment& segment, const Line& line) {
    if (cut_ != nullptr) [[unlikely]]
      SaveUnlessSaved(segment, static_cast<uint32_t>(&line - &segment.line(0)));
  }
  void SaveUnlessSaved(Segment& segment, uint32_t bucket);
  void SaveSegment(Segment& segment);
  static void PrefetchLine(const Segment& segment, uint32_t bucket);

  // walk.h
  static bool VisitLine(const Line& line, uint64_t header, absl::FunctionRef<void(const Item&)> each);
  static void VisitSegment(const Segment& segment, absl::FunctionRef<void(const Item&)> each);
  static void CheckSegment(const Segment& segment, uint32_t prefix, int64_t base_ms);

  // Writer: holder of the shard's lock. Readers: any thread inside a guard. nullptr until the first
  // Put().
  typename Sync::template Atomic<Directory*> directory_{nullptr};
  // Holder of the shard's lock. Here, since changes look at it and nobody but a cut stores to it.
  Cut<Entry>* cut_ = nullptr;
  // Writer: holder of the shard's lock. Readers: any thread; they answer nothing but these. In a line of their own: each
  // insertion stores to them, and lookups must not wait for that.
  alignas(64) typename Sync::template Atomic<size_t> size_{0};
  typename Sync::template Atomic<size_t> bytes_{0};
  typename Sync::template Atomic<int64_t> next_due_ms_{kNoDeadline};
  // Holder of the shard's lock.
  std::vector<Queued> queue_;  // a heap: when segments want to be looked at for deadlines
  int64_t time_ms_;            // about now
  uint32_t deepest_ = 0;       // segments whose depth is the directory's
  uint32_t segments_ = 0;
};

template <class Entry, class Sync, class Shape>
class BasicTable<Entry, Sync, Shape>::Held {
 public:
  const Item& item() const { return item_; }

 private:
  friend class BasicTable;
  Where at_{};  // no segment: there was no table
  Spot spot_;
  Item item_;
};

// --- template bodies: finding, putting, taking

template <class Entry, class Sync, class Shape>
Item<Entry> BasicTable<Entry, Sync, Shape>::Find(const Key& key) const {
  Directory* directory = directory_.load(std::memory_order_acquire);  // [T3] pairs with PublishDirectory()
  if (directory == nullptr) return {};
  const uint64_t reference = directory->at(DirectoryIndex(key.hash, directory->depth()))
                                 .load(std::memory_order_acquire);  // [T3] pairs with Refer()
  Segment& segment = *SegmentOf(reference);
  const uint32_t buckets = BucketsOf(reference), bucket = BucketOf(key.hash, buckets);
  for (;;) {
    Item item;
    if (Look(segment, buckets, bucket, key, &item, nullptr) != Seen::kChanged) [[likely]]
      return item;
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PrefetchReference(uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory != nullptr) __builtin_prefetch(&directory->at(DirectoryIndex(hash, directory->depth())));
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Prefetch(uint64_t hash, bool change) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const uint64_t reference = directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_acquire);
  Segment* const segment = SegmentOf(reference);
  __builtin_prefetch(&segment->line(BucketOf(hash, BucketsOf(reference))));
  if (change) __builtin_prefetch(segment);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PrefetchEntry(uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const uint64_t reference = directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_acquire);
  const Line& line = SegmentOf(reference)->line(BucketOf(hash, BucketsOf(reference)));
  const uint64_t header = line.header.load(std::memory_order_acquire);
  if (Header::Overflow(header) != 0) __builtin_prefetch(&line + 1);  // behind the last line there is none, and no harm
  if (!Header::HasSlots(header)) return;
  for (uint32_t pair = 0; pair < Shape::kPairs; ++pair) {
    if (Header::Pair(header, pair) != Header::kSlots) continue;
    for (uint32_t i = 2 * pair; i < 2 * pair + 2; ++i) {
      const uint64_t word = line.words[i].load(std::memory_order_relaxed);  // only a guess, never followed
      if ((word >> 48) != TagOf(hash) || word == 0) continue;
      __builtin_prefetch(EntryOf<char>(word));
      __builtin_prefetch(EntryOf<char>(word) + 64);
    }
  }
}

// An inline key is compared with all three pairs before the first branch: which of them matches cannot be predicted, and a
// wrong guess costs more than the comparisons, since the next lookup's cache miss cannot begin before it is known.
template <class Entry, class Sync, class Shape>
[[gnu::always_inline]] inline typename BasicTable<Entry, Sync, Shape>::Seen BasicTable<Entry, Sync, Shape>::LookInLine(
    Line& line, uint64_t header, const Key& key, Item* item, uint32_t* at) {
  if (const uint64_t* const mine = Entry::Words(key)) {
    // [T1] pairs with FillPair(); of a pair that holds something else the words tell nothing.
    const auto same = [&line, first = mine[0], second = mine[1]](uint32_t pair) {
      const uint64_t apart = (line.words[2 * pair].load(std::memory_order_acquire) ^ first) |
                             (line.words[2 * pair + 1].load(std::memory_order_acquire) ^ second);
      return uint32_t{apart == 0} << pair;
    };
    static_assert(Shape::kPairs <= Header::kPairs && Header::kPairs == 3);
    uint32_t pairs = same(0);
    if constexpr (Shape::kPairs > 1) pairs |= same(1);
    if constexpr (Shape::kPairs > 2) pairs |= same(2);
    for (; pairs != 0; pairs &= pairs - 1) {
      const auto pair = static_cast<uint32_t>(std::countr_zero(pairs));
      const uint64_t what = Header::Pair(header, pair);
      if (what < Header::kShapeMin || !Entry::ShapeIs(static_cast<uint32_t>(what), key)) continue;
      const uint32_t cell = CellAt(line, header, pair);
      if constexpr (Sync::kFault != Fault::kInlineNotRechecked) {
        // [T2] Still that key? The cell of a pair that was emptied meanwhile holds an epoch.
        if (Header::Pair(line.header.load(std::memory_order_acquire), pair) != what) return Seen::kChanged;
      }
      item->shape = static_cast<uint32_t>(what);
      item->cell = cell;
      item->words[0] = mine[0];
      item->words[1] = mine[1];
      *at = 2 * pair;
      return Seen::kHere;
    }
  }
  if (!Header::HasSlots(header)) return Seen::kNotHere;
  const uint64_t tag = TagOf(key.hash);
  for (uint32_t word = 0; word < 2 * Shape::kPairs; ++word) {
    if (Header::Pair(header, word / 2) != Header::kSlots) continue;
    // [T1] pairs with the store that filled or emptied it; also in a lock holder, who shares this code.
    const uint64_t slot = line.words[word].load(std::memory_order_acquire);
    if (slot >> 48 != tag || slot == 0) continue;
    Entry* const entry = EntryOf<Entry>(slot);
    if (!entry->Is(key)) continue;
    item->entry = entry;
    *at = word;
    return Seen::kHere;
  }
  return Seen::kNotHere;
}

// The reader's whole work; `buckets` is the segment's number of them, of which it would cost a cache miss to ask the
// segment. [T2] If the key stays in its place, the counts that lead there were raised before the place was
// filled, which happens before this call or is seen with it; so the line is looked at. If its place changes meanwhile,
// it goes to the same line or to a later one [T7]: its old line's header, which tells that the pair is empty, was stored
// after both the new place and the counts that lead there. If it is taken and put elsewhere meanwhile, there was a moment
// at which it was absent.
template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Seen BasicTable<Entry, Sync, Shape>::Look(Segment& segment, uint32_t buckets,
                                                                                   uint32_t bucket, const Key& key,
                                                                                   Item* item, Spot* spot) {
  uint32_t number = bucket;
  for (uint32_t distance = 0; distance < buckets; ++distance) {
    Line& line = segment.line(number);
    const uint64_t header = line.header.load(std::memory_order_acquire);  // [T1] [T2] pairs with Raise(), FillPair(), ...
    uint32_t word = 0;
    const Seen seen = LookInLine(line, header, key, item, &word);
    if (seen != Seen::kNotHere) {
      if (spot != nullptr) *spot = {&line, distance, word};
      return seen;
    }
    if (Header::Overflow(header) == 0) [[likely]]
      break;
    if (++number == buckets) number = 0;
  }
  return Seen::kNotHere;
}

template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Where BasicTable<Entry, Sync, Shape>::Locate(uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  const uint64_t reference = directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_relaxed);
  const uint32_t buckets = BucketsOf(reference);
  return {directory, SegmentOf(reference), buckets, BucketOf(hash, buckets)};
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::FindHeld(const Key& key, Held* held) const {
  if (directory_.load(std::memory_order_relaxed) == nullptr) return;
  held->at_ = Locate(key.hash);
  (void)Look(*held->at_.segment, held->at_.buckets, held->at_.bucket, key, &held->item_, &held->spot_);  // nobody changes anything
}

// What is known of the key already, or what is looked up into `own`.
template <class Entry, class Sync, class Shape>
inline const typename BasicTable<Entry, Sync, Shape>::Held& BasicTable<Entry, Sync, Shape>::HeldOf(const Key& key, const Held* known,
                                                                                                   Held* own) const {
  if (known != nullptr && known->at_.segment != nullptr) return *known;
  FindHeld(key, own);
  return *own;
}

template <class Entry, class Sync, class Shape>
Item<Entry> BasicTable<Entry, Sync, Shape>::Put(const Key& key, Entry* fresh, const Held* known) {
  constexpr auto kPublish = PublishUnless(Fault::kSlotPublishedRelaxed);
  if (directory_.load(std::memory_order_relaxed) == nullptr) MakeFirst();
  const int64_t deadline_ms = fresh->deadline_ms();
  Item item;
  item.entry = fresh;
  for (int attempt = 0;; ++attempt) {
    Held own;
    const Held& held = HeldOf(key, attempt == 0 ? known : nullptr, &own);
    Segment& segment = *held.at_.segment;
    const Item& old = held.item_;
    const Spot& spot = held.spot_;
    const bool there = static_cast<bool>(old);
    if (there && old.entry != nullptr) {
      if constexpr (Sync::kFault != Fault::kReplacedUnsaved) SaveLine(segment, *spot.line);  // [T8]
      if constexpr (Sync::kFault == Fault::kReplacedByHalves) spot.line->words[spot.word].store(0, kPublish);
      SetCoarse(*spot.line, spot.word, CoarseOf(deadline_ms, segment.coarse_base_ms));
      // [T1] [T2] in place: never absent meanwhile
      spot.line->words[spot.word].store(SlotWord(TagOf(key.hash), fresh), kPublish);
      NoteDeadline(segment, key.hash, deadline_ms);
      return old;
    }
    const uint32_t distance_min = there && Sync::kFault != Fault::kOutOfLineAnywhere ? spot.distance : 0;  // [T7]
    if (!Crowded(segment) && Insert(segment, held.at_.bucket, item, key.hash, distance_min, kPublish)) {
      if (there)
        Erase(segment, held.at_.bucket, spot, true);
      else
        SetSize(size() + 1);
      NoteDeadline(segment, key.hash, deadline_ms);
      return old;
    }
    MakeRoom(key.hash, attempt);
  }
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::PutInline(const Key& key, uint32_t shape, int64_t deadline_ms, int64_t now_ms,
                                               int64_t base_ms, Item* replaced, const Held* known) {
  if (directory_.load(std::memory_order_relaxed) == nullptr) MakeFirst();
  Item item;
  item.shape = shape;
  item.cell = CellOf(deadline_ms);
  item.words[0] = Entry::Words(key)[0];
  item.words[1] = Entry::Words(key)[1];
  for (int attempt = 0;; ++attempt) {
    Held own;
    const Held& held = HeldOf(key, attempt == 0 ? known : nullptr, &own);
    Segment& segment = *held.at_.segment;
    const Item& old = held.item_;
    const Spot& spot = held.spot_;
    bool there = static_cast<bool>(old);
    if (there) {
      if (old.entry != nullptr) return false;
      *replaced = old;
      if constexpr (Sync::kFault != Fault::kReplacedUnsaved) SaveLine(segment, *spot.line);  // [T8]
      if (DeadlineOfCell(old.cell, base_ms) <= now_ms) {
        Erase(segment, held.at_.bucket, spot, true);
        SetSize(size() - 1);
        there = false;
      } else if (ChangeInPlace(*spot.line, spot.pair(), old.shape, item)) {
        NoteDeadline(segment, key.hash, deadline_ms);
        return true;
      }
    }
    if (!Crowded(segment) && Insert(segment, held.at_.bucket, item, key.hash, there ? spot.distance : 0,  // [T7]
                                    PublishUnless(Fault::kPairPublishedRelaxed))) {
      if (there)
        Erase(segment, held.at_.bucket, spot, true);
      else
        SetSize(size() + 1);
      NoteDeadline(segment, key.hash, deadline_ms);
      return true;
    }
    MakeRoom(key.hash, attempt);
  }
}

template <class Entry, class Sync, class Shape>
Item<Entry> BasicTable<Entry, Sync, Shape>::Take(const Key& key, const Held* known) {
  Held own;
  const Held& held = HeldOf(key, known, &own);
  const Item item = held.item_;
  if (!item) return item;
  Erase(*held.at_.segment, held.at_.bucket, held.spot_, item.entry == nullptr);
  SetSize(size() - 1);
  MaybeShrink(key.hash);
  return item;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::SetDeadline(const Key& key, int64_t deadline_ms) {
  const Where at = Locate(key.hash);
  Item item;
  Spot spot;
  if (Look(*at.segment, at.buckets, at.bucket, key, &item, &spot) != Seen::kHere) return;
  if constexpr (Sync::kFault != Fault::kReplacedUnsaved) SaveLine(*at.segment, *spot.line);  // [T8]
  if (item.entry != nullptr) {
    SetCoarse(*spot.line, spot.word, CoarseOf(deadline_ms, at.segment->coarse_base_ms));
  } else {
    item.cell = CellOf(deadline_ms);
    (void)ChangeInPlace(*spot.line, spot.pair(), item.shape, item);
  }
  NoteDeadline(*at.segment, key.hash, deadline_ms);
}

}  // namespace idemd::storage

#include "storage/table/due.h"
#include "storage/table/grow.h"
#include "storage/table/place.h"
#include "storage/table/save.h"
#include "storage/table/walk.h"
