// Callers in line at keys: in which order, which changes make a key ready for them, and who is told.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "storage/collection/list.h"
#include "storage/effect_log.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;

class Caller final : public Waiter {
 public:
  void Resolve(const WaitAnswer&) override {}
};

class BlockedTest : public ::testing::Test {
 protected:
  std::shared_ptr<Caller> Blocked(std::vector<std::string> names, bool minds_absence = false, DbIndex db = 0) {
    auto caller = std::make_shared<Caller>();
    caller->minds_absence = minds_absence;
    std::vector<HashedKey> keys;
    for (const std::string& name : names) keys.emplace_back(name);
    Unit unit(store);
    unit.LockKeys(keys);
    unit.Block(db, keys, caller);
    return caller;
  }
  // Those in line, in order.
  std::vector<const Waiter*> Line(absl::string_view name, DbIndex db = 0) {
    const HashedKey key(name);
    Unit unit(store);
    unit.Lock(key);
    std::vector<const Waiter*> line;
    // (Not a declaration in a for's condition: g++ 12 destroys it before the step.)
    auto caller = unit.NextBlocked(db, key, 0);
    while (caller != nullptr) {
      line.push_back(caller.get());
      caller = unit.NextBlocked(db, key, caller->arrival);
    }
    return line;
  }
  void Leave(const Waiter& caller, std::vector<std::string> names) {
    Unit unit(store);
    unit.LockAll();
    for (const std::string& name : names) {
      const HashedKey key(name);
      unit.Unblock(0, {&key, 1}, caller);
    }
  }
  // What a unit with this change makes ready: "db:key ...".
  template <class Change>
  std::string Ready(Change change) {
    Unit unit(store);
    unit.LockAll();
    change(unit);
    unit.Commit();
    return Names(unit.TakeReady());
  }
  static std::string Names(const std::vector<ReadyKey>& ready) {
    std::string names;
    for (const ReadyKey& key : ready) names += (names.empty() ? "" : " ") + std::to_string(key.db) + ":" + key.key;
    return names;
  }
  static void Push(Unit& unit, absl::string_view name, DbIndex db = 0) {
    const HashedKey key(name);
    const bool there = static_cast<bool>(unit.Find(db, key));
    Collection& list = there ? unit.EditCollection(db, key) : unit.CreateCollection(db, key, std::make_unique<List>());
    static_cast<List&>(list).Push(List::End::kTail, "x", List::Limits::Of(-2));
    unit.CollectionChanged(db, key, {"RPUSH", name, "x"});
  }

  FakeClock clock{kStart};
  MemoryLog log;
  Store store{clock, log};
};

TEST_F(BlockedTest, ALineIsInOrderOfArrivalWhateverKeysCallersNameBesides) {
  const auto a = Blocked({"k", "j"}), b = Blocked({"k"}), c = Blocked({"j", "k", "j"});
  EXPECT_EQ(Line("k"), (std::vector<const Waiter*>{a.get(), b.get(), c.get()}));
  EXPECT_EQ(Line("j"), (std::vector<const Waiter*>{a.get(), c.get()}));
  EXPECT_EQ(Line("k", 1), (std::vector<const Waiter*>{}));
  Leave(*a, {"k", "j"});
  Leave(*a, {"k"});
  EXPECT_EQ(Line("k"), (std::vector<const Waiter*>{b.get(), c.get()}));
  EXPECT_EQ(Line("j"), (std::vector<const Waiter*>{c.get()}));
}

TEST_F(BlockedTest, AKeyIsReadyWhenTheUnitLeavesACollectionThere) {
  const auto a = Blocked({"k"});
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "other"); }), "");
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "k", 1); }), "");
  EXPECT_EQ(Ready([](Unit& unit) { unit.SetString(0, HashedKey("k"), "x", kNoDeadline); }), "");
  EXPECT_EQ(Ready([](Unit& unit) { unit.Remove(0, HashedKey("k")); }), "");
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "k"); }), "0:k");
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "k"); }), "0:k");
  EXPECT_EQ(Ready([](Unit& unit) {
              Push(unit, "k");
              unit.Remove(0, HashedKey("k"));
            }),
            "");
  EXPECT_EQ(Ready([](Unit& unit) { unit.Copy(0, HashedKey("other"), 0, HashedKey("k")); }), "0:k");
  Leave(*a, {"k"});
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "k"); }), "");
}

TEST_F(BlockedTest, ReadyKeysComeInTheOrderOfTheirChanges) {
  const auto a = Blocked({"k", "j", "i"});
  EXPECT_EQ(Ready([](Unit& unit) {
              Push(unit, "j");
              Push(unit, "i");
              Push(unit, "j");
              Push(unit, "k");
            }),
            "0:j 0:i 0:k");
}

TEST_F(BlockedTest, WithoutALogKeysAreReadyAllTheSame) {
  store.SetLogging(false);
  const auto a = Blocked({"k"});
  EXPECT_EQ(Ready([](Unit& unit) { Push(unit, "k"); }), "0:k");
}

TEST_F(BlockedTest, WhoMindsAbsenceIsToldOfItToo) {
  const auto a = Blocked({"k"}, /*minds_absence=*/true);
  const auto b = Blocked({"k", "j"});
  EXPECT_EQ(Ready([](Unit& unit) { unit.SetString(0, HashedKey("k"), "x", kNoDeadline); }), "0:k");
  EXPECT_EQ(Ready([](Unit& unit) { unit.Remove(0, HashedKey("k")); }), "0:k");
  Leave(*a, {"k"});
  EXPECT_EQ(Ready([](Unit& unit) { unit.SetString(0, HashedKey("k"), "x", kNoDeadline); }), "");
}

TEST_F(BlockedTest, SwappedAndFlushedDatabasesAreLookedAtAsAWhole) {
  const auto a = Blocked({"k"}), b = Blocked({"gone"}, /*minds_absence=*/true), c = Blocked({"k"}, false, 1), d = Blocked({"j"});
  // In no particular order, and perhaps twice.
  const std::string ready = Ready([](Unit& unit) {
    Push(unit, "k", 1);
    unit.SwapDb(0, 1);
  });
  const std::vector<std::string> names = absl::StrSplit(ready, ' ');
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), (std::set<std::string>{"0:k", "0:gone"}));
  EXPECT_EQ(Ready([](Unit& unit) { unit.FlushAll(); }), "0:gone");
}

TEST_F(BlockedTest, WhatExpiresByItselfIsTold) {
  std::string told;
  store.SetOnReady([&](const std::vector<ReadyKey>& ready) { told += Names(ready); });
  const auto a = Blocked({"k"}, /*minds_absence=*/true);
  Ready([](Unit& unit) {
    Push(unit, "k");
    unit.SetDeadline(0, HashedKey("k"), kStart + 100);
  });
  clock.AdvanceMs(99);
  store.Tick();
  EXPECT_EQ(told, "");
  clock.AdvanceMs(1);
  store.Tick();
  EXPECT_EQ(told, "0:k");
}

}  // namespace
}  // namespace idemd::storage
