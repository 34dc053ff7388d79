// The table under real threads, for TSan and for luck: values prove themselves, and histories add
// up.
//
// IDEMD_STRESS_SECONDS: how long each test runs. IDEMD_STRESS_LOOKUPS: how many lookups the longest
// one checks.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/sync/mutex.h"
#include "storage/table/table.h"
#include "tests/storage/table/plain_entry.h"

namespace idemd::storage {
namespace {

constexpr uint64_t kKeys = 4000;
constexpr uint64_t kStable = 200;  // never removed, only replaced

#if defined(__SANITIZE_THREAD__)
constexpr double kLookups = 1e5;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr double kLookups = 1e5;
#else
constexpr double kLookups = 2e6;
#endif
#else
constexpr double kLookups = 2e6;
#endif

double FromEnvironment(const char* name, double otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtod(value, nullptr);
}

// Time is counted in versions, 4096 ms each; a deadline tells its key and version:
//
//   31        12 11      0
//   +-----------+---------+
//   | version   | key     |
//   +-----------+---------+
//
// and so does an inline shape, which is that of the version. Stable keys have deadlines half a turn
// later.
constexpr uint64_t kVersionBits = 20;
constexpr uint64_t kVersionMask = (uint64_t{1} << kVersionBits) - 1;
constexpr int64_t kMsPerVersion = 4096;
static_assert(kKeys < kMsPerVersion);

// One table that writers fill and empty in turn while readers look.
class Stress {
 public:
  using Table = BasicTable<PlainEntry, RealSync>;
  using Item = Table::Item;

  Stress()
      : table_(TimeOf(kFirstVersion)),
        lives_(std::make_unique<std::array<std::atomic<uint64_t>, kKeys>>()) {
    for (uint64_t key = 0; key < kStable; ++key)
      Change(key, key % 2 == 0 ? What::kPut : What::kPutInline);
  }

  void Writer(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; !over_.load(std::memory_order_relaxed); ++i) {
      const bool fills = (i / (2 * kKeys)) % 2 == 0;
      const uint64_t key = random() % kKeys;
      const uint64_t draw = random() % 16;
      if (draw < 2) {
        Change(key, What::kSetDeadline);
      } else if (draw < (fills ? 14u : 4u) || key < kStable) {
        Change(key, random() % 8 != 0 ? What::kPutInline : What::kPut);
      } else {
        Change(key, What::kTake);
      }
      if (random() % 1024 == 0) Sweep();
      if (random() % 1024 == 0) Relocate(random());
      if (random() % 16384 == 0) CheckEachKeyOnce();
    }
  }
  void Reader(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Known> known(kKeys);
    while (!over_.load(std::memory_order_relaxed)) {
      const EpochGuard guard;
      for (int i = 0; i < 64; ++i)
        Look(random() % 4 == 0 ? random() % kStable : random() % kKeys, known);
      const Item any = table_.Random(random());
      if (!any) Fail("there is always some key");
      if (any) VersionOf(any);
      if (lookups_.fetch_add(64, std::memory_order_relaxed) + 64 >= lookups_wanted_)
        over_.store(true, std::memory_order_relaxed);
    }
  }
  void Scanner() {
    while (!over_.load(std::memory_order_relaxed)) {
      std::vector<bool> seen(kStable);
      uint64_t cursor = 0;
      do {
        const EpochGuard guard;
        cursor = table_.Scan(cursor, [&](const Item& item) {
          VersionOf(item);
          if (KeyOf(item) < kStable) seen[KeyOf(item)] = true;
        });
      } while (cursor != 0);
      ++scans_;
      for (const bool there : seen)
        if (!there) Fail("a scan visits what is there throughout [T6]");
    }
  }
  void RunForSomeTime(std::vector<std::thread> threads) {
    std::this_thread::sleep_for(
        std::chrono::duration<double>(FromEnvironment("IDEMD_STRESS_SECONDS", 0.7)));
    over_.store(true, std::memory_order_relaxed);
    Finish(std::move(threads));
  }
  void RunForLookups(std::vector<std::thread> threads, uint64_t wanted) {
    EXPECT_EQ(lookups_wanted_, wanted) << "set before the threads began";
    Finish(std::move(threads));
    std::printf("%" PRIu64 " lookups checked, %" PRIu64 " scans, beside %" PRIu64
                " changes: %zu keys put, %zu taken, %zu expired, %" PRIu64 " changed their form\n",
                lookups_.load(), scans_, version_ - kFirstVersion, inserted_, taken_, expired_,
                converted_);
  }
  void set_lookups_wanted(uint64_t wanted) { lookups_wanted_ = wanted; }

 private:
  static constexpr uint64_t kFirstVersion = 400'000'000;
  enum class What : uint8_t { kPut, kPutInline, kTake, kSetDeadline };
  // What a reader knows of a key: a version, and the version that was the table's newest when it
  // looked.
  struct Known {
    uint64_t version = 0;
    uint64_t looked_at = 0;
  };

  static int64_t TimeOf(uint64_t version) { return static_cast<int64_t>(version) * kMsPerVersion; }
  static int64_t DeadlineOf(uint64_t key, uint64_t version) {
    return TimeOf(version + (key < kStable ? (kVersionMask + 1) / 2 : 0)) +
           static_cast<int64_t>(key);
  }
  static uint64_t LowVersion(uint64_t key, uint32_t cell) {
    return (cell / kMsPerVersion + (key < kStable ? (kVersionMask + 1) / 2 : 0)) & kVersionMask;
  }
  // Few, so that a deadline with the same shape is not many versions away.
  static uint32_t ShapeOf(uint64_t key, uint64_t version) {
    return PlainKey(key).ShapeFor(version % 8);
  }
  // All deadlines lie within its reach: what can expire is swept long before it is this old.
  int64_t base_ms() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return TimeOf(version_ - (kVersionMask + 1) / 4);
  }

  static uint64_t KeyOf(const Item& item) {
    return item.entry != nullptr ? item.entry->number()
                                 : PlainEntry::NumberOf(item.shape, item.words);
  }
  // The low bits of the version that an item tells, which proves itself.
  uint64_t VersionOf(const Item& item) {
    const uint64_t key = KeyOf(item);
    if (key >= kKeys) Fail("a key is one of those that were put [T1]");
    if (item.entry != nullptr) {
      if (!item.entry->proves_itself()) Fail("an entry is whole [T1]");
      return item.entry->version() & kVersionMask;
    }
    const uint64_t version = LowVersion(key, item.cell);
    if (!PlainKey::CanBeInline(key) || item.cell % kMsPerVersion != key ||
        item.words[1] != PlainEntry::SecondWord(key))
      Fail("an inline key is whole, and its deadline its own [T1] [T4]");
    if (item.shape != ShapeOf(key, version))
      Fail("a deadline and a shape were there at one moment [T2]");
    return version;
  }

  // A key lives while its count is odd. The count is made odd after the key was put and even before
  // it is taken; so a lookup during which it stays odd must find the key.
  void Look(uint64_t key, std::vector<Known>& known) {
    std::atomic<uint64_t>& life = (*lives_)[key];
    const uint64_t life_before = life.load(std::memory_order_acquire);
    const uint64_t looked_at = newest_.load(std::memory_order_relaxed);
    const Item item = table_.Find(PlainKey(key));
    if (!item) {
      if (life_before % 2 == 1 && life.load(std::memory_order_relaxed) == life_before)
        Fail("absent is a promise [T2]");
      return;
    }
    if (KeyOf(item) != key) Fail("what is found is the key's [T1]");
    const uint64_t version = VersionOf(item);
    // Only while the low bits are enough to tell older from newer.
    const uint64_t newest = newest_.load(std::memory_order_relaxed);
    if (known[key].looked_at != 0 && newest - known[key].looked_at < kVersionMask / 8 &&
        ((version - known[key].version) & kVersionMask) > kVersionMask / 2) {
      Fail("a key's versions do not go back [T2]");
    }
    known[key] = {version, looked_at};
  }

  void Change(uint64_t key, What what) {
    const PlainKey table_key(key);
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    Item old;
    if (what == What::kPutInline && !PlainKey::CanBeInline(key)) what = What::kPut;
    switch (what) {
      case What::kPutInline: {
        NextVersion();
        const int64_t now_ms = TimeOf(version_) - kLifetimeMs;
        old = table_.Find(table_key);
        if (old && old.entry == nullptr && DeadlineOfCell(old.cell, base_ms()) <= now_ms)
          Dies(key);  // absent for a moment
        old = {};
        if (table_.PutInline(table_key, ShapeOf(key, version_), DeadlineOf(key, version_), now_ms,
                             base_ms(), &old)) {
          Put(key, old);
          return;
        }
        [[fallthrough]];  // it is there out of line
      }
      case What::kPut:
        NextVersion();
        old = table_.Put(table_key, new PlainEntry(key, version_, DeadlineOf(key, version_)));
        Put(key, old);
        if (old && old.entry == nullptr) ++converted_;
        return;
      case What::kTake:
        Dies(key);
        old = table_.Take(table_key);
        if (old) ++taken_;
        Forget(key, old);
        return;
      case What::kSetDeadline: {
        old = table_.Find(table_key);
        if (!old) return;
        // The shape stays, so it is a version with that shape.
        do NextVersion();
        while (old.entry == nullptr && ShapeOf(key, version_) != old.shape);
        if (old.entry != nullptr) old.entry->set_deadline_ms(DeadlineOf(key, version_));
        table_.SetDeadline(table_key, DeadlineOf(key, version_));
        return;
      }
    }
  }
  void NextVersion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    newest_.store(++version_, std::memory_order_relaxed);
  }
  void Put(uint64_t key, const Item& old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (old) {
      Retired(old);
    } else {
      ++inserted_;
    }
    Lives(key);
  }
  void Forget(uint64_t key, const Item& old) {
    if (old && KeyOf(old) != key) Fail("what is removed is the key's");
    Retired(old);
  }
  static void Retired(const Item& old) {
    if (old.entry != nullptr) Retire(old.entry, &PlainEntry::DestroyRetired);
  }
  void Lives(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::atomic<uint64_t>& life = (*lives_)[key];
    const uint64_t count = life.load(std::memory_order_relaxed);
    if (count % 2 == 0)
      life.store(count + 1, std::memory_order_release);  // after the key was put; pairs with Look()
  }
  void Dies(uint64_t key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    std::atomic<uint64_t>& life = (*lives_)[key];
    const uint64_t count = life.load(std::memory_order_relaxed);
    if (count % 2 == 1)
      life.store(count + 1, std::memory_order_relaxed);  // the removal's release brings it with it
  }

  // Expires what is old, as the sweeper does.
  void Sweep() {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    const int64_t now_ms = TimeOf(version_) - kLifetimeMs;
    std::vector<Table::Due> due;
    bool more = true;
    while (more) {
      due.clear();
      more = table_.CollectDue(now_ms, base_ms(), 4, due);
      for (const Table::Due& d : due) {
        const uint64_t key = KeyOf(d.item);
        VersionOf(d.item);
        if (key < kStable) Fail("no key expires before its deadline [T5]");
        Dies(key);
        table_.Remove(d);
        Retired(d.item);
        ++expired_;
      }
      table_.FinishDue(due);
    }
  }
  void Relocate(uint64_t random) {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    std::vector<PlainEntry*> moved;
    table_.Relocate(&relocate_position_, 2, [&](PlainEntry& entry) -> PlainEntry* {
      if ((entry.number() ^ random) % 4 != 0) return nullptr;
      moved.push_back(&entry);
      return new PlainEntry(entry.number(), entry.version(), entry.deadline_ms());
    });
    for (PlainEntry* entry : moved) Retire(entry, &PlainEntry::DestroyRetired);
  }
  void CheckEachKeyOnce() {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    std::vector<bool> seen(kKeys);
    size_t count = 0;
    table_.ForEach([&](const Item& item) {
      const uint64_t key = KeyOf(item);
      VersionOf(item);
      if (seen[key]) Fail("no key is in the table twice");
      if ((*lives_)[key].load(std::memory_order_relaxed) % 2 == 0) Fail("what was removed is gone");
      seen[key] = true;
      ++count;
    });
    if (count != table_.size()) Fail("a table knows its size");
    table_.CheckInvariants(base_ms());
  }
  void Finish(std::vector<std::thread> threads) {
    for (std::thread& thread : threads) thread.join();
    CheckEachKeyOnce();
    EXPECT_EQ(table_.size(), inserted_ - taken_ - expired_)
        << "each insertion and each removal has one winner";
    EXPECT_EQ(failures_.load(), 0) << what_.load();
    EXPECT_GT(inserted_, kStable) << "writers wrote";
  }
  void Fail(const char* what) {
    if (failures_.fetch_add(1) == 0) what_.store(what);
  }

  // What is older may be swept. More than a writer fills the table with; less than a sixteenth of
  // the base's reach.
  static constexpr int64_t kLifetimeMs = int64_t{3 * kKeys} * kMsPerVersion;

  Mutex mutex_;
  Table table_;
  uint64_t version_ = kFirstVersion;  // these under mutex_
  size_t inserted_ = 0, taken_ = 0, expired_ = 0;
  uint64_t converted_ = 0;
  uint64_t relocate_position_ = 0;
  uint64_t scans_ = 0;  // the scanner's
  uint64_t lookups_wanted_ = UINT64_MAX;
  // Writer: holder of mutex_. Readers: any thread.
  std::unique_ptr<std::array<std::atomic<uint64_t>, kKeys>> lives_;
  std::atomic<uint64_t> newest_{kFirstVersion};
  std::atomic<uint64_t> lookups_{0};
  std::atomic<bool> over_{false};
  std::atomic<int> failures_{0};
  std::atomic<const char*> what_{""};
};

TEST(TableStressT2, ReadersSeeEveryLiveKeyWhileOneWriterFillsAndEmpties) {
  Stress stress;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { stress.Writer(1); });
  threads.emplace_back([&] { stress.Reader(2); });
  threads.emplace_back([&] { stress.Reader(3); });
  stress.RunForSomeTime(std::move(threads));
  DrainForTest();
}

TEST(TableStressT6, ScannersAndTwoWriters) {
  Stress stress;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { stress.Writer(4); });
  threads.emplace_back([&] { stress.Writer(5); });
  threads.emplace_back([&] { stress.Reader(6); });
  threads.emplace_back([&] { stress.Scanner(); });
  stress.RunForSomeTime(std::move(threads));
  DrainForTest();
}

TEST(TableStressT4, NothingIsLeftWhenTheThreadsHaveEnded) {
  const int64_t living = PlainEntry::living.load();
  {
    Stress stress;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t) threads.emplace_back([&, t] { stress.Writer(10 + t); });
    stress.RunForSomeTime(std::move(threads));
  }
  DrainForTest();
  EXPECT_EQ(PlainEntry::living.load(), living);
}

// The one that is asked for a billion.
TEST(TableStressT2, NoLookupMissesALiveKeyUnderFullChurn) {
  const auto wanted = static_cast<uint64_t>(FromEnvironment("IDEMD_STRESS_LOOKUPS", kLookups));
  Stress stress;
  stress.set_lookups_wanted(wanted);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { stress.Writer(20); });
  threads.emplace_back([&] { stress.Reader(21); });
  threads.emplace_back([&] { stress.Reader(22); });
  threads.emplace_back([&] { stress.Scanner(); });
  stress.RunForLookups(std::move(threads), wanted);
  DrainForTest();
}

}  // namespace
}  // namespace idemd::storage
