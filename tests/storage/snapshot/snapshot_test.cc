// Snapshots one property at a time: what is in them, who waits for whom, what becomes of dropped tables.
#include "storage/snapshot/snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/storage/snapshot/fragment.h"

namespace idemd::storage {
namespace {

// A value that takes as many bytes in a snapshot as it has.
std::string Incompressible(size_t bytes) {
  std::string value(bytes, '\0');
  uint64_t state = 88172645463325252;
  for (char& c : value) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    c = static_cast<char>(state >> 32);
  }
  return value;
}


using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

// A UUID, whose key and value lie in the table's line.
std::string Uuid(uint64_t number) { return absl::StrCat(absl::Hex(number, absl::kZeroPad8), "-0000-4000-8000-0123456789ab"); }

class SnapshotTest : public ::testing::Test {
 protected:
  void Set(absl::string_view key, absl::string_view value, int64_t deadline = kNoDeadline, DbIndex db = 0) {
    Unit unit(store_);
    const HashedKey k(key);
    unit.Lock(k);
    unit.SetString(db, k, value, deadline);
  }
  void FlushAll() {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  }
  static std::string WalkAll(Snapshot& snapshot) {
    std::string bytes;
    while (snapshot.Walk(bytes)) {
    }
    return bytes;
  }
  // "db/key" and the value with its deadline, of all that is left to walk.
  static std::map<std::string, std::string> Rest(Snapshot& snapshot) {
    std::map<std::string, std::string> entries;
    const auto read = FragmentReader(WalkAll(snapshot)).ReadAll();
    EXPECT_TRUE(read.has_value());
    for (const FragmentEntry& entry : *read) {
      const std::string text =
          entry.deadline_ms == kNoDeadline ? entry.value : absl::StrCat(entry.value, "@", entry.deadline_ms);
      EXPECT_TRUE(entries.emplace(absl::StrCat(entry.db, "/", entry.key), text).second) << entry.key;
    }
    return entries;
  }

  FakeClock clock_;
  NullLog log_;
  Store store_{clock_, log_};
};

TEST_F(SnapshotTest, OfNothingIsEmpty) {
  Snapshot snapshot(store_, [] {});
  Set("after the cut", "1");
  std::string bytes;
  EXPECT_FALSE(snapshot.Walk(bytes));
  EXPECT_TRUE(bytes.empty());
  EXPECT_EQ(snapshot.keys(), 0u);
  EXPECT_EQ(snapshot.keys_walked(), 0u);
}

TEST_F(SnapshotTest, TellsKeysAndDeadlinesOfEachDatabase) {
  const int64_t at = clock_.NowMs() + 1000;
  Set("a", "1", at);
  Set("b", "2");
  Set(Uuid(1), "1", at + 1, 15);
  Snapshot snapshot(store_, [] {});
  EXPECT_EQ(snapshot.keys(), 3u);
  EXPECT_EQ(snapshot.keys(0), 2u);
  EXPECT_EQ(snapshot.with_deadline(0), 1u);
  EXPECT_EQ(snapshot.keys(15), 1u);
  EXPECT_EQ(snapshot.with_deadline(15), 1u);
  EXPECT_THAT(Rest(snapshot), ElementsAre(Pair("0/a", absl::StrCat("1@", at)), Pair("0/b", "2"),
                                          Pair("15/" + Uuid(1), absl::StrCat("1@", at + 1))));
  EXPECT_EQ(snapshot.keys_walked(), 3u);
}

TEST_F(SnapshotTest, HoldsWhatIsChangedOnlyAsItWas) {
  const int64_t at = clock_.NowMs() + 1000;
  Set("changed", "old", at);
  Set("removed", "old");
  Set("renamed", "old");
  Set("expires", "old", clock_.NowMs() + 1);
  Set("deadline", "old", at);
  Set(Uuid(1), "1", at);
  Set(Uuid(2), "0", at);
  {
    Unit unit(store_);
    const HashedKey key("edited");
    unit.Lock(key);
    unit.Edit(0, key, 1)[0] = 'o';
  }
  Snapshot snapshot(store_, [] {});
  {
    Unit unit(store_);
    unit.LockAll();
    unit.SetString(0, HashedKey("changed"), "new", kNoDeadline);
    unit.SetString(0, HashedKey("made"), "new", kNoDeadline);
    unit.Remove(0, HashedKey("removed"));
    unit.Rename(0, HashedKey("renamed"), 3, HashedKey("renamed"));
    unit.SetDeadline(0, HashedKey("deadline"), at + 5);
    const std::string first = Uuid(1), second = Uuid(2);
    unit.SetDeadline(0, HashedKey(first), at + 5);
    unit.SetString(0, HashedKey(second), "1", at + 5);
    unit.Edit(0, HashedKey("edited"), 1)[0] = 'n';
  }
  clock_.AdvanceMs(1);
  store_.Tick();
  EXPECT_EQ(Unit(store_).Size(0), 6u);
  EXPECT_THAT(Rest(snapshot),
              UnorderedElementsAre(Pair("0/changed", absl::StrCat("old@", at)), Pair("0/removed", "old"),
                                   Pair("0/renamed", "old"), Pair("0/expires", absl::StrCat("old@", clock_.NowMs())),
                                   Pair("0/deadline", absl::StrCat("old@", at)), Pair("0/edited", "o"),
                                   Pair("0/" + Uuid(1), absl::StrCat("1@", at)), Pair("0/" + Uuid(2), absl::StrCat("0@", at))));
}

TEST_F(SnapshotTest, WhatHadExpiredAndWasThereIsWrittenToo) {
  const int64_t at = clock_.NowMs() + 1;
  Set("k", "v", at);
  clock_.AdvanceMs(1000);
  Snapshot snapshot(store_, [] {});
  EXPECT_EQ(snapshot.keys(), 1u);
  EXPECT_THAT(Rest(snapshot), ElementsAre(Pair("0/k", absl::StrCat("v@", at))));
}

TEST_F(SnapshotTest, DatabasesThatAreSwappedKeepTheirNumbersOfTheCut) {
  Set("zero", "0", kNoDeadline, 0);
  Set("one", "1", kNoDeadline, 1);
  Snapshot snapshot(store_, [] {});
  {
    Unit unit(store_);
    unit.LockAll();
    unit.SwapDb(0, 1);
  }
  Set("zero", "changed", kNoDeadline, 1);
  EXPECT_THAT(Rest(snapshot), ElementsAre(Pair("0/zero", "0"), Pair("1/one", "1")));
}

// Nobody sweeps what was dropped, while the base of inline deadlines moves on.
TEST_F(SnapshotTest, WhatWasDroppedIsWalkedWithItsDeadlinesHoweverLateThatIs) {
  const int64_t at = clock_.NowMs() + 1000;
  for (uint64_t i = 0; i < 200; ++i) Set(Uuid(i), "1", at);
  Snapshot snapshot(store_, [] {});
  FlushAll();
  for (int hours = 0; hours < 5; ++hours) {
    clock_.AdvanceMs(4'000'000);
    store_.Tick();
  }
  Set(Uuid(7), "1", clock_.NowMs() + 1000);
  const auto rest = Rest(snapshot);
  EXPECT_EQ(rest.size(), 200u);
  for (const auto& [key, value] : rest) ASSERT_EQ(value, absl::StrCat("1@", at)) << key;
}

// Comes to no end where it is not freed. (Under a sanitizer entries come from malloc, and a leak is what tells.)
TEST_F(SnapshotTest, WhatWasDroppedIsFreedWhenItHasBeenWalkedOrTheSnapshotEnds) {
  const auto pages_bytes = [&] {
    store_.Tick();
    DrainForTest();
    std::this_thread::yield();
    return ProcessPages().status().in_use_bytes;
  };
  const uint64_t before = pages_bytes();
  for (const bool walked : {true, false}) {
    for (int i = 0; i < 30'000; ++i) Set(absl::StrCat("key:", i), std::string(300, 'x'));
    {
      Snapshot snapshot(store_, [] {});
      FlushAll();
      EXPECT_EQ(Unit(store_).Size(0), 0u);
      if (walked) {
        EXPECT_EQ(Rest(snapshot).size(), 30'000u);
      }
    }
    while (pages_bytes() > before + 4'000'000) {
    }
  }
}

TEST_F(SnapshotTest, GivesUpAndTheNextOneIsWhole) {
  for (uint64_t i = 0; i < 5000; ++i) Set(Uuid(i), "1", clock_.NowMs() + 1'000'000);
  for (int i = 0; i < 3; ++i) {
    Snapshot::Limits limits;
    limits.walk_bytes = 1;
    Snapshot snapshot(store_, [] {}, limits);
    std::string bytes;
    for (int j = 0; j < 500; ++j) snapshot.Walk(bytes);
    for (uint64_t j = 0; j < 500; ++j) Set(Uuid(j * 7), "0", clock_.NowMs() + 2'000'000);
    EXPECT_GT(snapshot.keys_walked(), 0u);
    EXPECT_LT(snapshot.keys_walked(), snapshot.keys());
  }
  Snapshot snapshot(store_, [] {});
  EXPECT_EQ(Rest(snapshot).size(), 5000u);
}

// Large values that writers save fill the hand-over buffers long before the walk.
class SnapshotWaitTest : public SnapshotTest {
 protected:
  static constexpr int kKeys = 400;
  static constexpr size_t kValueBytes = 50'000;

  void SetUp() override {
    for (int i = 0; i < kKeys; ++i) Set(absl::StrCat("k", i), Incompressible(kValueBytes));
    limits_.hand_over_bytes = 1'000'000;
  }
  // Overwrites everything, a unit each.
  void Overwrite() {
    for (int i = 0; i < kKeys; ++i) {
      Set(absl::StrCat("k", i), "new");
      written_.fetch_add(1);
    }
  }
  void ExpectOldValues(const std::string& bytes) {
    const auto entries = FragmentReader(bytes).ReadAll();
    ASSERT_TRUE(entries.has_value());
    EXPECT_EQ(entries->size(), static_cast<size_t>(kKeys));
    for (const FragmentEntry& entry : *entries) ASSERT_EQ(entry.value, Incompressible(kValueBytes)) << entry.key;
  }

  Snapshot::Limits limits_;
  std::atomic<int> written_{0};
};

TEST_F(SnapshotWaitTest, WritersWaitWhileTheBuffersAreFullAndGoOnWhenTheyAreTakenOver) {
  Snapshot snapshot(store_, [] {}, limits_);
  std::thread writer([&] { Overwrite(); });
  // Either the writer waits or, where nothing holds it back, it comes to its end.
  const auto waits = [&] {
    while (snapshot.writers_waiting() == 0 && written_.load() < kKeys) std::this_thread::yield();
    return snapshot.writers_waiting() != 0;
  };
  EXPECT_TRUE(waits());
  // A key in a line may bring five others with it; a shard's last step is not counted yet.
  const int most = static_cast<int>(limits_.hand_over_bytes / kValueBytes) + 6 + static_cast<int>(kShards);
  EXPECT_LE(written_.load(), most);
  std::string bytes;
  snapshot.Walk(bytes);
  EXPECT_LT(snapshot.keys_walked(), static_cast<uint64_t>(kKeys));
  while (snapshot.Walk(bytes)) {
  }
  writer.join();
  ExpectOldValues(bytes);
  EXPECT_EQ(snapshot.keys_walked(), snapshot.keys());
}

// Else a writer in the last shard would wait for the whole walk.
TEST_F(SnapshotWaitTest, BuffersOfShardsThatTheWalkHasNotComeToAreTakenOverToo) {
  Snapshot snapshot(store_, [] {}, limits_);
  std::thread writer([&] {
    for (int i = 0; i < kKeys; ++i) {
      const std::string name = absl::StrCat("k", i);
      if (HashedKey(name).hash >> 58 >= 3 * kShards / 4) Set(name, "new");
    }
    written_.store(kKeys);
  });
  std::string bytes;
  while (snapshot.writers_waiting() == 0 && written_.load() < kKeys) std::this_thread::yield();
  EXPECT_NE(snapshot.writers_waiting(), 0u);
  // Until it is the walk's turn to wait.
  while (snapshot.writers_waiting() != 0) snapshot.Walk(bytes);
  EXPECT_LT(snapshot.keys_walked(), static_cast<uint64_t>(kKeys / 2));
  while (snapshot.Walk(bytes)) {
  }
  writer.join();
  ExpectOldValues(bytes);
}

TEST_F(SnapshotWaitTest, WritersGoOnWhenTheSnapshotEnds) {
  std::thread writer;
  {
    Snapshot snapshot(store_, [] {}, limits_);
    writer = std::thread([&] { Overwrite(); });
    while (snapshot.writers_waiting() == 0 && written_.load() < kKeys) std::this_thread::yield();
    EXPECT_LT(written_.load(), kKeys);
  }
  writer.join();
  EXPECT_EQ(written_.load(), kKeys);
}

TEST_F(SnapshotWaitTest, TheWalkersOwnUnitsDoNotWaitForItself) {
  Snapshot snapshot(store_, [] {}, limits_);
  Overwrite();
  EXPECT_EQ(written_.load(), kKeys);
  ExpectOldValues(WalkAll(snapshot));
}

TEST(StoreLogging, CanBeSwitchedOffAndOn) {
  FakeClock clock;
  MemoryLog log;
  Store store(clock, log);
  const HashedKey key("k");
  const auto set = [&](absl::string_view value) {
    Unit unit(store);
    unit.Lock(key);
    unit.SetString(0, key, value, kNoDeadline);
    unit.Commit();
    return unit.need();
  };
  const auto need = [&] {
    Unit unit(store);
    unit.Find(0, key);
    return unit.need();
  };
  EXPECT_EQ(set("1"), 1u);
  EXPECT_EQ(need(), 1u);
  store.SetLogging(false);
  EXPECT_EQ(need(), kNoLsn) << "nothing has to be waited for";
  EXPECT_EQ(set("2"), kNoLsn);
  EXPECT_EQ(need(), kNoLsn);
  store.SetLogging(true);
  EXPECT_EQ(need(), kNoLsn) << "what changed meanwhile is not in the log";
  EXPECT_EQ(set("3"), 2u);
  EXPECT_EQ(need(), 2u);
  EXPECT_THAT(log.Units(), ElementsAre(ElementsAre("SET 0 k 1"), ElementsAre("SET 0 k 3")));
}

TEST(StoreLogging, CanBeSwitchedOnWhereTheLogDidNotAskForIt) {
  FakeClock clock;
  NullLog log;
  Store store(clock, log);
  store.SetLogging(true);
  Unit unit(store);
  const HashedKey key("k");
  unit.Lock(key);
  unit.SetString(0, key, "v", kNoDeadline);
  unit.Commit();
  EXPECT_EQ(unit.Find(0, key).bytes, "v");
}

}  // namespace
}  // namespace idemd::storage
