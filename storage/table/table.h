// One shard's table of one database: extendible hashing, read without a lock.
//
//   table --> directory --> segment: 64 buckets of 7 slots, and a stash      slot --> entry
//
// Segments with a stash and overflow counts are the idea of Dash (Lu et al., VLDB 2020), one line
// per bucket that of CLHT (David et al., ASPLOS 2015). What differs: nothing ever moves inside a
// segment that readers can see. A key stays in its slot until it is removed or replaced there; to
// make room, a segment is copied into new ones. So a reader needs no version, no retry and no lock.
//
// Threads     Find, Prefetch(Entry), size, Scan, Random, memory_bytes: any thread, inside an
// EpochGuard
//             (size and memory_bytes need none). The others: the holder of the shard's lock, which
//             is the caller's; the table has none of its own.
// Lifetime    An Entry* seen inside a guard stays valid until that guard ends. What Put and Take
//             return is the caller's to retire; segments and directories the table retires.
// Invariants  [T1] Whoever sees a slot's entry sees all of the entry.
//             [T2] A key that was put before a Find() began, and is not taken before it ends, is
//                  found: with an entry that it had at some moment meanwhile. Its slot is fixed in
//                  a segment, and the counts in its home bucket's header lead there from before the
//                  slot is filled until it is empty.
//             [T3] The same while segments split and merge and the directory grows and shrinks:
//                  what a reader can reach is whole when it becomes reachable and never changes
//                  after it is replaced. A reader still in a replaced segment answers as of the
//                  replacement, which came after that reader began.
//             [T4] What was replaced is retired after its successor is published, and freed when no
//                  guard can see it (storage/sync/epoch.h).
//             [T5] No key has an earlier deadline than its segment's hint.
//             [T6] Every key present throughout a scan, from cursor 0 to cursor 0, is visited.
// Linearized  Put and Take at the store to the slot. Find that answers an entry: at its load of the
//             slot; if the segment was replaced by then, at the replacement. Find that answers
//             "absent": anywhere, if the key was never there during the call; else just after the
//             Take() that emptied the slot.
// Orderings   Slots are stored with release and loaded with acquire [T1]. Headers are stored with
//             release, before a slot is filled and after it is emptied, and loaded with acquire
//             [T2]. References and the directory are stored with release when what they lead to is
//             whole, and loaded with acquire [T3]. Writers load with relaxed what only lock holders
//             store: the lock orders it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/sync/epoch.h"
#include "storage/sync/sync.h"
#include "storage/table/entry.h"
#include "storage/table/segment.h"
#include "storage/table/words.h"

namespace idemd::storage {

// An Entry has key(), deadline_ms(), a static Destroy(Entry*), and EntryHash(const Entry&) beside
// it.
template <class Entry, class Sync, class Shape = ServerShape>
class BasicTable {
 public:
  BasicTable() = default;
  ~BasicTable();  // destroys the entries left; nobody reads any more
  BasicTable(const BasicTable&) = delete;
  BasicTable& operator=(const BasicTable&) = delete;

  // --- any thread inside a guard
  // nullptr: provably absent.
  Entry* Find(uint64_t hash, absl::string_view key) const;
  // Brings the key's home bucket into the cache.
  void Prefetch(uint64_t hash) const;
  // After Prefetch() has had its time: brings the entry that is likely the key's into the cache.
  void PrefetchEntry(uint64_t hash) const;
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  size_t memory_bytes() const { return sizeof(*this) + bytes_.load(std::memory_order_relaxed); }
  // Visits the keys of one bucket and returns the next cursor; 0 begins, 0 is the end [T6]. A key
  // may be visited twice.
  uint32_t Scan(uint32_t cursor, absl::FunctionRef<void(Entry&)> each) const;
  // Some entry, each about as likely as any other; nullptr when there is none.
  Entry* Random(uint64_t random) const;

  // --- the holder of the shard's lock
  // Inserts or replaces; returns the replaced entry, which is the caller's to retire, or nullptr.
  Entry* Put(uint64_t hash, Entry* fresh);
  // Removes; returns the entry, which is the caller's to retire, or nullptr.
  Entry* Take(uint64_t hash, absl::string_view key);
  // The entry at `hash` was given this deadline after it was put.
  void NoteDeadline(uint64_t hash, int64_t deadline_ms);
  // Adds to `due` the entries whose deadline is at or before `now_ms`, in up to `max_segments`
  // segments from *position on (0: from the beginning; set to 0 after a full pass). Segments in
  // which nothing can be due are passed over. Returns the number of entries looked at.
  size_t Due(int64_t now_ms, uint64_t* position, size_t max_segments, std::vector<Entry*>& due);
  void ForEach(absl::FunctionRef<void(Entry&)> each) const;
  void CheckInvariants() const;

 private:
  using Line = BasicLine<Sync, Shape>;
  using Segment = BasicSegment<Sync, Shape>;
  using Directory = BasicDirectory<Sync>;
  using Slot = typename Sync::template Atomic<uint64_t>;

  enum class Place : uint8_t { kHome, kNext, kStash };
  struct Found {
    Slot* slot = nullptr;
    uint64_t word = 0;
    Place place = Place::kHome;
    uint32_t index = 0;  // of the slot in its line
    explicit operator bool() const { return slot != nullptr; }
  };
  // Where a lock holder finds what belongs to a hash.
  struct Where {
    Directory* directory;
    Segment* segment;
    uint32_t bucket;
    uint64_t tag;
  };
  // An entry on its way into a new segment.
  struct Moving {
    uint64_t word;
    uint32_t bucket;  // kBucketUnknown: it was in the stash
    bool upper;       // the directory bit after those that its old segment shared
  };
  static constexpr uint32_t kBucketUnknown = UINT32_MAX;

  static Segment* SegmentOf(uint64_t reference) {
    return reinterpret_cast<Segment*>(reference & ~kDepthMask);
  }
  static uint64_t ReferenceTo(const Segment* segment) {
    return reinterpret_cast<uintptr_t>(segment) | segment->depth();
  }
  static uint32_t Bucket(uint64_t hash, uint32_t bucket_bits) {
    return BucketOf(hash, bucket_bits, Shape::kBucketBits);
  }
  static constexpr std::memory_order PublishUnless(Fault planted) {
    return Sync::kFault == planted ? std::memory_order_relaxed : std::memory_order_release;
  }

  // table.h
  Where Locate(uint64_t hash) const;  // the directory exists
  static Found FindInLine(Line& line, uint64_t tag, absl::string_view key, Place place);
  static Found FindSlot(Segment& segment, uint32_t bucket, uint64_t tag, absl::string_view key);
  static bool Insert(Segment& segment, uint32_t bucket, uint64_t word, std::memory_order order);
  static bool InsertInLine(Line& line, uint64_t word, std::memory_order order);
  static void ChangeHeader(Line& line, uint64_t add, uint64_t subtract, std::memory_order order);
  static void Erase(Segment& segment, uint32_t bucket, const Found& found);
  static void LowerHint(Segment& segment, int64_t deadline_ms);

  // grow.h
  enum class Half : uint8_t { kBoth, kLower, kUpper };
  void MakeFirst();
  void MakeRoom(uint64_t hash);
  void MaybeShrink(uint64_t hash);
  static void Gather(const Segment& segment, std::vector<Moving>& moving);
  static void Readdress(std::vector<Moving>& moving, uint32_t old_depth, uint32_t depth,
                        uint32_t bucket_bits, bool all);
  static bool Fill(Segment& segment, const std::vector<Moving>& moving, Half half);
  static Segment* MakeFilled(uint32_t depth, uint32_t bucket_bits, uint32_t stash_lines,
                             const std::vector<Moving>& moving, Half half,
                             int64_t deadline_hint_ms);
  void ReplaceOnly(uint32_t bucket_bits);
  void WidenStash(const Where& at, uint64_t hash);
  void Split(const Where& at, uint64_t hash);
  void PublishHalves(const Where& at, uint64_t hash, const Segment* lower, const Segment* upper);
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

  // walk.h
  static void VisitSegment(const Segment& segment, absl::FunctionRef<void(Entry&)> each);
  static void VisitSlots(const Line& line, uint64_t which, absl::FunctionRef<void(Entry&)> each);
  static Entry* AnyIn(const Segment& segment, uint64_t random);
  static void CheckSegment(const Segment& segment, uint32_t prefix);

  // Writer: holder of the shard's lock. Readers: any thread inside a guard. nullptr until the first
  // Put().
  typename Sync::template Atomic<Directory*> directory_{nullptr};
  // Writer: holder of the shard's lock. Readers: any thread; they answer nothing but these counts.
  typename Sync::template Atomic<size_t> size_{0};
  typename Sync::template Atomic<size_t> bytes_{0};
  // Holder of the shard's lock: segments whose depth is the directory's.
  uint32_t deepest_ = 0;
};

static_assert(sizeof(BasicTable<Entry, RealSync>) <= 64, "an empty table costs next to nothing");

// --- template bodies: Find, Put, Take

template <class Entry, class Sync, class Shape>
Entry* BasicTable<Entry, Sync, Shape>::Find(uint64_t hash, absl::string_view key) const {
  Directory* directory =
      directory_.load(std::memory_order_acquire);  // [T3] pairs with PublishDirectory()
  if (directory == nullptr) return nullptr;
  const uint64_t reference = directory->at(DirectoryIndex(hash, directory->depth()))
                                 .load(std::memory_order_acquire);  // [T3] pairs with Refer()
  const Found found = FindSlot(*SegmentOf(reference), Bucket(hash, directory->bucket_bits()),
                               TagOf(hash, DepthOf(reference)), key);
  return found ? EntryOf<Entry>(found.word) : nullptr;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Prefetch(uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const uint64_t reference =
      directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_acquire);
  __builtin_prefetch(&SegmentOf(reference)->line(Bucket(hash, directory->bucket_bits())));
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::PrefetchEntry(uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_acquire);
  if (directory == nullptr) return;
  const uint64_t reference =
      directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_acquire);
  const uint64_t tag = TagOf(hash, DepthOf(reference));
  for (const Slot& slot :
       SegmentOf(reference)->line(Bucket(hash, directory->bucket_bits())).slots) {
    const uint64_t word = slot.load(std::memory_order_relaxed);  // only a guess, never followed
    if ((word >> 48) != tag) continue;
    __builtin_prefetch(EntryOf<char>(word));
    __builtin_prefetch(EntryOf<char>(word) + 64);
  }
}

template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Found BasicTable<Entry, Sync, Shape>::FindInLine(
    Line& line, uint64_t tag, absl::string_view key, Place place) {
  for (uint32_t i = 0; i < Shape::kSlots; ++i) {
    // [T1] pairs with the store that filled or emptied it; also in a lock holder, who shares this
    // code.
    const uint64_t word = line.slots[i].load(std::memory_order_acquire);
    if ((word >> 48) == tag && word != 0 && EntryOf<Entry>(word)->key() == key)
      return {&line.slots[i], word, place, i};
  }
  return {};
}

// The reader's whole work. [T2] If the key sits in its slot throughout, the counts that lead there
// were raised before the slot was filled, which happens before this call or is seen with the slot;
// so the line is looked at. If it is taken and put elsewhere meanwhile, there was a moment at which
// it was absent.
template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Found BasicTable<Entry, Sync, Shape>::FindSlot(
    Segment& segment, uint32_t bucket, uint64_t tag, absl::string_view key) {
  Line& home = segment.line(bucket);
  if (const Found found = FindInLine(home, tag, key, Place::kHome)) return found;
  const uint64_t header =
      home.header.load(std::memory_order_acquire);  // [T2] pairs with ChangeHeader()
  if (!Header::Overflowed(header)) [[likely]]
    return {};
  if (Header::Next(header) != 0) {
    Line& next = segment.line(segment.NextBucket(bucket));
    if (const Found found = FindInLine(next, tag, key, Place::kNext)) return found;
  }
  if (Header::Stash(header) != 0) {
    for (uint32_t i = segment.buckets(); i < segment.lines(); ++i)
      if (const Found found = FindInLine(segment.line(i), tag, key, Place::kStash)) return found;
  }
  return {};
}

template <class Entry, class Sync, class Shape>
typename BasicTable<Entry, Sync, Shape>::Where BasicTable<Entry, Sync, Shape>::Locate(
    uint64_t hash) const {
  Directory* directory = directory_.load(std::memory_order_relaxed);
  const uint64_t reference =
      directory->at(DirectoryIndex(hash, directory->depth())).load(std::memory_order_relaxed);
  return {directory, SegmentOf(reference), Bucket(hash, directory->bucket_bits()),
          TagOf(hash, DepthOf(reference))};
}

template <class Entry, class Sync, class Shape>
Entry* BasicTable<Entry, Sync, Shape>::Put(uint64_t hash, Entry* fresh) {
  if (directory_.load(std::memory_order_relaxed) == nullptr) MakeFirst();
  constexpr auto kPublish = PublishUnless(Fault::kSlotPublishedRelaxed);
  Where at = Locate(hash);
  if (const Found found = FindSlot(*at.segment, at.bucket, at.tag, fresh->key())) {
    if constexpr (Sync::kFault == Fault::kReplacedByHalves) found.slot->store(0, kPublish);
    found.slot->store(SlotWord(at.tag, fresh),
                      kPublish);  // [T1] [T2] in place: never absent meanwhile
    LowerHint(*at.segment, fresh->deadline_ms());
    return EntryOf<Entry>(found.word);
  }
  while (!Insert(*at.segment, at.bucket, SlotWord(at.tag, fresh), kPublish)) {
    MakeRoom(hash);
    at = Locate(hash);
  }
  LowerHint(*at.segment, fresh->deadline_ms());
  SetSize(size() + 1);
  return nullptr;
}

template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::InsertInLine(Line& line, uint64_t word,
                                                  std::memory_order order) {
  for (Slot& slot : line.slots) {
    if (slot.load(std::memory_order_relaxed) != 0) continue;
    slot.store(word, order);  // [T1] pairs with FindInLine()
    return true;
  }
  return false;
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::ChangeHeader(Line& line, uint64_t add, uint64_t subtract,
                                                  std::memory_order order) {
  // [T2] release: who sees a count lowered sees the slot emptied too, and never the key again;
  // pairs with FindSlot().
  line.header.store(line.header.load(std::memory_order_relaxed) + add - subtract, order);
}

// `order` is relaxed for a segment that nobody sees yet.
template <class Entry, class Sync, class Shape>
bool BasicTable<Entry, Sync, Shape>::Insert(Segment& segment, uint32_t bucket, uint64_t word,
                                            std::memory_order order) {
  const auto count = [&](uint64_t one) {
    if constexpr (Sync::kFault != Fault::kOverflowNotRaised)
      ChangeHeader(segment.line(bucket), one, 0, order);  // [T2] before the slot is filled
  };
  if (InsertInLine(segment.line(bucket), word, order)) {
    ++segment.live;
    return true;
  }
  Line& next = segment.line(segment.NextBucket(bucket));
  for (uint32_t i = 0; i < Shape::kSlots; ++i) {
    if (next.slots[i].load(std::memory_order_relaxed) != 0) continue;
    ChangeHeader(next, uint64_t{1} << i, 0, order);  // [T6] a scan knows whose it is
    count(Header::kOneNext);
    next.slots[i].store(word, order);  // [T1]
    ++segment.live;
    return true;
  }
  for (uint32_t i = segment.buckets(); i < segment.lines(); ++i) {
    for (Slot& slot : segment.line(i).slots) {
      if (slot.load(std::memory_order_relaxed) != 0) continue;
      count(Header::kOneStash);
      slot.store(word, order);  // [T1]
      ++segment.live;
      return true;
    }
  }
  return false;
}

template <class Entry, class Sync, class Shape>
Entry* BasicTable<Entry, Sync, Shape>::Take(uint64_t hash, absl::string_view key) {
  if (directory_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  const Where at = Locate(hash);
  const Found found = FindSlot(*at.segment, at.bucket, at.tag, key);
  if (!found) return nullptr;
  Erase(*at.segment, at.bucket, found);
  SetSize(size() - 1);
  MaybeShrink(hash);
  return EntryOf<Entry>(found.word);
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::Erase(Segment& segment, uint32_t bucket, const Found& found) {
  // Release: who is told "absent" sees what was done before the removal; pairs with FindInLine().
  found.slot->store(0, std::memory_order_release);
  --segment.live;
  Line& home = segment.line(bucket);
  switch (found.place) {
    case Place::kHome:
      if constexpr (Sync::kFault == Fault::kMovedInPlace) {
        Line& next = segment.line(segment.NextBucket(bucket));
        const uint64_t guests = Header::Guests(next.header.load(std::memory_order_relaxed));
        if (guests == 0) break;
        const auto i = static_cast<uint32_t>(__builtin_ctzll(guests));
        const uint64_t word = next.slots[i].load(std::memory_order_relaxed);
        found.slot->store(word, std::memory_order_release);
        next.slots[i].store(0, std::memory_order_release);
        ChangeHeader(home, 0, Header::kOneNext, std::memory_order_release);
        ChangeHeader(next, 0, uint64_t{1} << i, std::memory_order_release);
      }
      break;
    case Place::kNext:
      ChangeHeader(home, 0, Header::kOneNext, std::memory_order_release);
      ChangeHeader(segment.line(segment.NextBucket(bucket)), 0, uint64_t{1} << found.index,
                   std::memory_order_release);
      break;
    case Place::kStash:
      ChangeHeader(home, 0, Header::kOneStash, std::memory_order_release);
      break;
  }
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::LowerHint(Segment& segment, int64_t deadline_ms) {
  if constexpr (Sync::kFault == Fault::kHintNotLowered) return;
  if (deadline_ms < segment.deadline_hint_ms) segment.deadline_hint_ms = deadline_ms;  // [T5]
}

template <class Entry, class Sync, class Shape>
void BasicTable<Entry, Sync, Shape>::NoteDeadline(uint64_t hash, int64_t deadline_ms) {
  if (directory_.load(std::memory_order_relaxed) != nullptr)
    LowerHint(*Locate(hash).segment, deadline_ms);
}

}  // namespace idemd::storage

#include "storage/table/grow.h"
#include "storage/table/walk.h"
