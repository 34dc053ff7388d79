// Units over the store: effects, lifetimes, locks, walks, whole databases, and races between threads.
#include "storage/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"

namespace idemd::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StoreTest : public ::testing::Test {
 protected:
  void Set(absl::string_view key, absl::string_view value, int64_t deadline = kNoDeadline, DbIndex db = 0) {
    Unit unit(store_);
    const HashedKey k(key);
    unit.Lock(k);
    unit.SetString(db, k, value, deadline);
  }
  std::string Get(absl::string_view key, DbIndex db = 0) {
    Unit unit(store_);
    std::string scratch;
    const KeyView view = unit.Find(db, HashedKey(key));
    return view ? std::string(StringValue(view, scratch)) : "(absent)";
  }
  bool Remove(absl::string_view key, DbIndex db = 0) {
    Unit unit(store_);
    const HashedKey k(key);
    unit.Lock(k);
    return unit.Remove(db, k);
  }
  std::set<std::string> ScanAll(DbIndex db, uint64_t count) {
    std::set<std::string> seen;
    uint64_t cursor = 0;
    do {
      Unit unit(store_);
      cursor = unit.Scan(db, cursor, count, [&](absl::string_view key, const KeyView&) { seen.emplace(key); });
    } while (cursor != 0);
    return seen;
  }

  FakeClock clock_;
  MemoryLog log_;
  Store store_{clock_, log_};
};

TEST_F(StoreTest, EveryChangeIsOnePlainAbsoluteEffect) {
  const int64_t at = clock_.NowMs() + 1'000;
  Set("a", "1");
  Set("a", "2", at);
  {
    Unit unit(store_);
    const HashedKey k("a");
    unit.Lock(k);
    unit.SetDeadline(0, k, at + 5);
  }
  {
    Unit unit(store_);
    const HashedKey k("a");
    unit.Lock(k);
    unit.SetDeadline(0, k, kNoDeadline);
  }
  Remove("a");
  EXPECT_THAT(log_.Units(), ElementsAre(ElementsAre("SET 0 a 1"), ElementsAre(absl::StrCat("SET 0 a 2 PXAT ", at)),
                                        ElementsAre(absl::StrCat("PEXPIREAT 0 a ", at + 5)),
                                        ElementsAre("PERSIST 0 a"), ElementsAre("DEL 0 a")));
}

TEST_F(StoreTest, WhatChangesNothingWritesNothing) {
  Get("absent");
  Remove("absent");
  {
    Unit unit(store_);
    const HashedKey k("absent");
    unit.Lock(k);
    EXPECT_FALSE(unit.SetDeadline(0, k, clock_.NowMs() + 1));
  }
  EXPECT_THAT(log_.Units(), IsEmpty());
}

TEST_F(StoreTest, AUnitOfSeveralKeysIsOneUnitOfTheLog) {
  {
    Unit unit(store_);
    const HashedKey keys[] = {HashedKey("a"), HashedKey("b"), HashedKey("c")};
    unit.LockKeys(keys);
    for (const HashedKey& key : keys) unit.SetString(0, key, "v", kNoDeadline);
    unit.SetString(0, keys[2], "w", kNoDeadline);
  }
  EXPECT_THAT(log_.Units(), ElementsAre(ElementsAre("SET 0 a v", "SET 0 b v", "SET 0 c w")));
}

TEST_F(StoreTest, SeeingAKeyExpiredIsALoggedChangeThatTheReplyDependsOn) {
  Set("k", "v", clock_.NowMs() + 10);
  clock_.AdvanceMs(9);
  EXPECT_EQ(Get("k"), "v");
  clock_.AdvanceMs(1);
  Unit unit(store_);
  EXPECT_FALSE(unit.Find(0, HashedKey("k")));
  unit.Commit();
  EXPECT_EQ(unit.need(), 2u);
  EXPECT_THAT(log_.Units().back(), ElementsAre("DEL 0 k"));
  EXPECT_EQ(unit.Size(0), 0u);
}

TEST_F(StoreTest, AReplyDependsOnTheLsnOfWhatItReveals) {
  Set("a", "1");
  Set("b", "1");
  Unit unit(store_);
  unit.Find(0, HashedKey("a"));
  EXPECT_EQ(unit.need(), 1u);
  unit.Find(0, HashedKey("b"));
  EXPECT_EQ(unit.need(), 2u);
}

TEST_F(StoreTest, AbsenceDependsOnTheRemoval) {
  Set("a", "1");
  Remove("a");
  Unit unit(store_);
  EXPECT_FALSE(unit.Find(0, HashedKey("a")));
  EXPECT_EQ(unit.need(), 2u);
}

TEST_F(StoreTest, TickRemovesWhatExpiredByItself) {
  for (int i = 0; i < 1'000; ++i) Set(absl::StrCat("k", i), "v", clock_.NowMs() + (i % 2 == 0 ? 100 : 100'000));
  clock_.AdvanceMs(100);
  store_.Tick();
  Unit unit(store_);
  EXPECT_EQ(unit.Size(0), 500u);
  EXPECT_EQ(unit.SizeWithDeadline(0), 500u);
  EXPECT_EQ(store_.stats().Get(StorageStats::kExpired), 500u);
  EXPECT_EQ(Get("k1"), "v");
}

TEST_F(StoreTest, AShortenedDeadlineIsNoticedByTheSweep) {
  Set("k", "v", clock_.NowMs() + 1'000'000);
  store_.Tick();
  {
    Unit unit(store_);
    const HashedKey k("k");
    unit.Lock(k);
    unit.SetDeadline(0, k, clock_.NowMs() + 5);
  }
  clock_.AdvanceMs(5);
  store_.Tick();
  EXPECT_EQ(Unit(store_).Size(0), 0u);
}

TEST_F(StoreTest, AReadingOfTheTimeHoldsUntilTheUnitBeginsAnewOrLocks) {
  Set("k", "v", clock_.NowMs() + 10);
  Set("other", "v");
  const HashedKey key("k"), other("other");
  Unit unit(store_);
  EXPECT_TRUE(unit.Find(0, key));
  clock_.AdvanceMs(10);
  EXPECT_TRUE(unit.Find(0, key));
  const int64_t before = unit.now_ms();
  unit.Lock(other);
  EXPECT_EQ(unit.now_ms(), before + 10);
  unit.Commit();
  clock_.AdvanceMs(5);
  EXPECT_EQ(unit.now_ms(), before + 10);
  EXPECT_FALSE(unit.Find(0, key));
  unit.BeginAnew();
  EXPECT_EQ(unit.now_ms(), before + 15);
}

TEST_F(StoreTest, DatabasesAreApartAndSwap) {
  Set("k", "zero", kNoDeadline, 0);
  Set("k", "one", clock_.NowMs() + 50, 1);
  EXPECT_EQ(Get("k", 0), "zero");
  EXPECT_EQ(Get("k", 1), "one");
  {
    Unit unit(store_);
    unit.LockAll();
    unit.SwapDb(0, 1);
  }
  EXPECT_EQ(Get("k", 0), "one");
  EXPECT_EQ(Get("k", 1), "zero");
  EXPECT_EQ(Unit(store_).SizeWithDeadline(0), 1u);
  EXPECT_EQ(Unit(store_).SizeWithDeadline(1), 0u);
  EXPECT_THAT(log_.Units().back(), ElementsAre("SWAPDB 0 1"));
}

TEST_F(StoreTest, FlushEmptiesOneDatabaseOrAll) {
  for (DbIndex db = 0; db < 3; ++db)
    for (int i = 0; i < 100; ++i) Set(absl::StrCat("k", i), "v", kNoDeadline, db);
  {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushDb(1);
  }
  EXPECT_EQ(Unit(store_).Size(0), 100u);
  EXPECT_EQ(Unit(store_).Size(1), 0u);
  EXPECT_EQ(Get("k5", 1), "(absent)");
  {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  }
  EXPECT_EQ(Unit(store_).Size(0), 0u);
  EXPECT_EQ(Unit(store_).Size(2), 0u);
  Set("k5", "again", kNoDeadline, 1);
  EXPECT_EQ(Get("k5", 1), "again");
}

// Save points count with the number of changes (its difference), whatever CONFIG RESETSTAT does.
TEST_F(StoreTest, ResetCountersBeginAtZeroButChangesGoOn) {
  Set("a", "1");
  Get("a");
  Get("b");
  StorageStats& stats = store_.stats();
  EXPECT_EQ(stats.Get(StorageStats::kHits), 1u);
  stats.Reset();
  EXPECT_EQ(stats.Get(StorageStats::kHits), 0u);
  EXPECT_EQ(stats.Get(StorageStats::kMisses), 0u);
  EXPECT_EQ(stats.Get(StorageStats::kChanges), 1u);
  Get("a");
  EXPECT_EQ(stats.Get(StorageStats::kHits), 1u);
}

TEST_F(StoreTest, MemoryGoesBackWhenKeysGo) {
  const uint64_t empty = store_.memory_bytes();
  for (int i = 0; i < 10'000; ++i) Set(absl::StrCat("key:", i), std::string(200, 'x'));
  const uint64_t full = store_.memory_bytes();
  EXPECT_GT(full - empty, 10'000u * 200);
  {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  }
  EXPECT_EQ(store_.memory_bytes(), empty);
}

TEST_F(StoreTest, MemoryIsExactThroughReplaceEditRenameCopyAndRemove) {
  const auto entries = [this] {
    Unit unit(store_);
    unit.LockAll();
    return store_.memory_bytes();
  };
  Set("a", "x");  // their shards have their tables
  Set("b", "x");
  Remove("a");
  Remove("b");
  const uint64_t base = entries();
  const HashedKey a("a");
  const HashedKey b("b");
  for (int round = 0; round < 50; ++round) {
    Unit unit(store_);
    const HashedKey keys[] = {a, b};
    unit.LockKeys(keys);
    unit.SetString(0, a, std::string(static_cast<size_t>(round) * 37, 'y'), kNoDeadline);
    unit.Edit(0, a, static_cast<size_t>(round) * 91 + 1);
    unit.Edit(0, a, static_cast<size_t>(round) * 191 + 1);
    unit.Copy(0, a, 0, b);
    unit.Rename(0, b, 0, a);
    unit.Remove(0, a);
  }
  EXPECT_EQ(entries(), base);
}

TEST_F(StoreTest, EditKeepsTheOldBytesAndTheDeadline) {
  const int64_t at = clock_.NowMs() + 1'000;
  Set("k", "abc", at);
  {
    Unit unit(store_);
    const HashedKey k("k");
    unit.Lock(k);
    absl::Span<char> bytes = unit.Edit(0, k, 5);
    EXPECT_EQ(std::string(bytes.data(), bytes.size()), std::string("abc\0\0", 5));
    bytes[4] = 'z';
    bytes = unit.Edit(0, k, 5000);
    EXPECT_EQ(bytes[4], 'z');
    EXPECT_EQ(bytes[4999], '\0');
  }
  Unit unit(store_);
  const KeyView view = unit.Find(0, HashedKey("k"));
  EXPECT_EQ(view.bytes.size(), 5000u);
  EXPECT_EQ(view.deadline_ms, at);
  EXPECT_TRUE(unit.Holds(HashedKey("k"))) << "an edited string is read under its lock";
}

TEST_F(StoreTest, ReadsOfManyEditedStringsBorrowOneLockAtATime) {
  for (int i = 0; i < 300; ++i) {
    Unit unit(store_);
    const std::string name = absl::StrCat("big", i);
    const HashedKey k(name);
    unit.Lock(k);
    unit.Edit(0, k, 100)[0] = 'b';
  }
  Unit unit(store_);
  std::string previous;
  for (int i = 0; i < 300; ++i) {
    const std::string name = absl::StrCat("big", i);
    EXPECT_EQ(unit.Find(0, HashedKey(name)).bytes[0], 'b');
    // What the read before borrowed is back, unless it is the same shard.
    if (!previous.empty() && (HashedKey(previous).hash >> 58) != (HashedKey(name).hash >> 58)) {
      EXPECT_FALSE(unit.Holds(HashedKey(previous)));
    }
    previous = name;
  }
}

TEST_F(StoreTest, AUnitWithLocksThatLooksElsewhereStopsTheProcess) {
  EXPECT_DEATH(
      {
        Unit unit(store_);
        const HashedKey a("a");
        unit.Lock(a);
        for (int i = 0; i < 200; ++i) {
          const std::string name = absl::StrCat("other", i);
          unit.Find(0, HashedKey(name));
        }
      },
      "only at keys that it holds");
}

TEST_F(StoreTest, AWrittenRecordLineIsARecordAndReadsBackTheSame) {
  const std::string line = absl::StrCat(
      "idem/1 state=pending fence=", FenceFloor(clock_.NowMs()) + 77, " attempt=1 since=", clock_.NowMs(),
      " lease=", clock_.NowMs() + 30'000, " lease-ms=30000 keep-ms=86400000 claim=me payload=none\n");
  const uint64_t mark = store_.fences().last();
  Set("k", line);
  Unit unit(store_);
  EXPECT_EQ(unit.Find(0, HashedKey("k")).type, ValueType::kRecord);
  EXPECT_EQ(Get("k"), line);
  EXPECT_EQ(store_.fences().last(), mark + 77) << "its fence raises the mark";
}

TEST_F(StoreTest, ARecordWithAnIncredibleFenceStaysAStringAndRaisesNothing) {
  const uint64_t mark = store_.fences().last();
  const uint64_t fence = FenceFloor(clock_.NowMs()) + kFenceHeadroom + 1;
  Set("k", absl::StrCat("idem/1 state=pending fence=", fence, " attempt=1 since=1 lease=2 lease-ms=1 keep-ms=1 "
                        "claim=me payload=none\n"));
  Unit unit(store_);
  EXPECT_EQ(unit.Find(0, HashedKey("k")).type, ValueType::kString);
  EXPECT_EQ(SubjectOf(unit.Find(0, HashedKey("k"))).kind, Subject::Kind::kDamaged);
  EXPECT_EQ(store_.fences().last(), mark);
}

TEST_F(StoreTest, ScanSeesEveryKeyThatWasThereThroughout) {
  std::set<std::string> throughout;
  for (int i = 0; i < 2'000; ++i) {
    Set(absl::StrCat("stay", i), "v");
    throughout.insert(absl::StrCat("stay", i));
  }
  for (uint64_t count : {1u, 10u, 1'000u}) {
    std::set<std::string> seen;
    uint64_t cursor = 0;
    int added = 0;
    do {
      {
        Unit unit(store_);
        cursor = unit.Scan(0, cursor, count, [&](absl::string_view key, const KeyView&) { seen.emplace(key); });
      }
      // Growth and shrinking between the calls.
      for (int i = 0; i < 5; ++i) Set(absl::StrCat("come", count, ":", added++), "v");
      if (added % 3 == 0)
        for (int i = 0; i < added; i += 2) Remove(absl::StrCat("come", count, ":", i));
    } while (cursor != 0 && added < 2'000'000);
    for (const std::string& key : throughout) ASSERT_TRUE(seen.count(key)) << key << " with COUNT " << count;
    for (int i = 0; i < added; ++i) Remove(absl::StrCat("come", count, ":", i));
  }
}

TEST_F(StoreTest, RandomOperationsAgreeWithAPlainMap) {
  const char* text = std::getenv("IDEMD_SEED");
  const unsigned seed = text != nullptr ? static_cast<unsigned>(std::atoi(text)) : std::random_device{}();
  SCOPED_TRACE(absl::StrCat("IDEMD_SEED=", seed));
  std::mt19937 random(seed);
  struct Value {
    std::string bytes;
    int64_t deadline;
  };
  std::map<std::pair<DbIndex, std::string>, Value> model;
  const auto drop_expired = [&] {
    for (auto it = model.begin(); it != model.end();)
      it = it->second.deadline <= clock_.NowMs() ? model.erase(it) : std::next(it);
  };
  // Keys that stay text, UUIDs, and UUIDs behind a common prefix; values that live in the table's line and others.
  const auto some_key = [&] {
    const auto number = static_cast<uint32_t>(random() % 300);
    const std::string uuid = absl::StrCat(absl::Hex(number, absl::kZeroPad8), "-0000-4000-8000-0123456789ab");
    return number % 3 == 0 ? absl::StrCat("k", number) : number % 3 == 1 ? uuid : absl::StrCat("order:", uuid);
  };
  const auto some_deadline = [&]() -> int64_t {
    constexpr int64_t kHourMs = 3'600'000;
    switch (random() % 8) {
      case 0:
        return clock_.NowMs() + kHourMs * static_cast<int64_t>(1 + random() % 3000);  // some beyond a line's reach
      case 1:
        return int64_t{1} << 50;
      case 2:
      case 3:
        return kNoDeadline;
      default:
        return clock_.NowMs() + 1 + random() % 50;
    }
  };
  for (int step = 0; step < 60'000; ++step) {
    const DbIndex db = random() % 2;
    const std::string key = some_key();
    const HashedKey k(key);
    switch (random() % 9) {
      case 0:
      case 1:
      case 2: {
        const int64_t deadline = some_deadline();
        const std::string value = random() % 2 == 0 ? std::string(random() % 2, '1')
                                                    : std::string(random() % 100, static_cast<char>('a' + random() % 26));
        Set(key, value, deadline, db);
        model[{db, key}] = {value, deadline};
        break;
      }
      case 3:
        ASSERT_EQ(Remove(key, db), model.erase({db, key}) == 1);
        break;
      case 4: {
        Unit unit(store_);
        unit.Lock(k);
        const int64_t deadline = some_deadline();
        const auto it = model.find({db, key});
        ASSERT_EQ(unit.SetDeadline(db, k, deadline), it != model.end());
        if (it != model.end()) it->second.deadline = deadline;
        break;
      }
      case 5: {
        const std::string other = some_key();
        if (other == key) break;
        Unit unit(store_);
        const HashedKey keys[] = {k, HashedKey(other)};
        unit.LockKeys(keys);
        if (!unit.Find(db, k)) break;
        unit.Rename(db, k, db, keys[1]);
        model[{db, other}] = model[{db, key}];
        model.erase({db, key});
        break;
      }
      case 6: {
        Unit unit(store_);
        unit.Lock(k);
        const size_t size = random() % 200;
        absl::Span<char> bytes = unit.Edit(db, k, size);
        auto [it, fresh] = model.try_emplace({db, key}, Value{"", kNoDeadline});
        it->second.bytes.resize(size, '\0');
        if (size > 0) bytes[size - 1] = it->second.bytes[size - 1] = 'e';
        break;
      }
      case 7:
        clock_.AdvanceMs(random() % 64 == 0 ? 4'000'000 : random() % 3);
        drop_expired();
        if (random() % 4 == 0) store_.Tick();
        if (random() % 64 == 0) store_.CheckInvariants();
        break;
      default: {
        const auto it = model.find({db, key});
        ASSERT_EQ(Get(key, db), it == model.end() ? "(absent)" : it->second.bytes) << "step " << step;
        if (it != model.end()) {
          ASSERT_EQ(Unit(store_).Find(db, k).deadline_ms, it->second.deadline) << "step " << step;
        }
      }
    }
  }
  clock_.AdvanceMs(500);  // after a sweep that took long, here of a busy machine, the next one is not at once
  store_.Tick();
  drop_expired();
  for (DbIndex db = 0; db < 2; ++db) {
    std::set<std::string> expected;
    for (const auto& [name, value] : model)
      if (name.first == db) expected.insert(name.second);
    EXPECT_EQ(ScanAll(db, 10), expected);
    EXPECT_EQ(Unit(store_).Size(db), expected.size());
  }
  store_.CheckInvariants();
}

TEST_F(StoreTest, OfManyThreadsThatTakeOneKeyExactlyOneWins) {
  NullLog log;
  Store store(clock_, log);
  constexpr int kThreads = 4;
  constexpr int kKeys = 5'000;
  for (int i = 0; i < kKeys; ++i) {
    Unit unit(store);
    const std::string name = absl::StrCat("k", i);
    const HashedKey key(name);
    unit.Lock(key);
    unit.SetString(0, key, "1", kNoDeadline);
  }
  std::vector<std::atomic<int>> wins(kKeys);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kKeys; ++i) {
        const std::string name = absl::StrCat("k", i);
        const HashedKey key(name);
        Unit unit(store);
        if (!unit.Find(0, key)) continue;
        unit.Lock(key);
        if (unit.Remove(0, key)) wins[static_cast<size_t>(i)].fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(wins[static_cast<size_t>(i)].load(), 1) << i;
}

TEST_F(StoreTest, ReadersNeverMissAKeyThatIsOnlyReplaced) {
  NullLog log;
  Store store(clock_, log);
  std::atomic<bool> stop{false};
  std::atomic<int> missed{0};
  const std::string name = "hot";
  const HashedKey key(name);
  {
    Unit unit(store);
    unit.Lock(key);
    unit.SetString(0, key, "0:0", kNoDeadline);
  }
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      while (!stop.load()) {
        Unit unit(store);
        const KeyView view = unit.Find(0, key);
        // A value proves itself: both halves are the same number.
        const std::string value(view.bytes);
        const size_t colon = value.find(':');
        if (!view || colon == std::string::npos || value.substr(0, colon) != value.substr(colon + 1)) missed.fetch_add(1);
      }
    });
  }
  for (int i = 1; i < 20'000; ++i) {
    Unit unit(store);
    unit.Lock(key);
    unit.SetString(0, key, absl::StrCat(i, ":", i), i % 2 == 0 ? kNoDeadline : clock_.NowMs() + 1'000'000);
    const std::string other = absl::StrCat("other", i);
    unit.Commit();
    Unit second(store);
    const HashedKey other_key(other);
    second.Lock(other_key);
    second.SetString(0, other_key, "x", kNoDeadline);  // growth beside it
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(missed.load(), 0);
}

}  // namespace
}  // namespace idemd::storage
