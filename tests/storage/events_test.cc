// Events: what storage tells by itself, in which order and with which LSN.
#include "storage/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr EventClasses kWithLetters = (Bit(EventClass::kNew) << 1) - 1;

// Keeps what it is told as "event db key @need".
class Listener final : public EventSink {
 public:
  void OnEvents(absl::Span<const Event> events, Lsn need, EventOrigin* origin) override {
    ++calls;
    last_origin = origin;
    for (const Event& e : events) told.push_back(absl::StrCat(e.name, " ", e.db, " ", e.key, " @", need));
  }
  std::vector<std::string> Take() { return std::exchange(told, {}); }

  std::vector<std::string> told;
  int calls = 0;
  EventOrigin* last_origin = nullptr;
};

class EventsTest : public ::testing::Test {
 protected:
  EventsTest() {
    store_.SetEventSink(&listener_);
    store_.WantEvents(kWithLetters);
  }
  void Set(absl::string_view key, int64_t deadline = kNoDeadline) {
    Unit unit(store_);
    const HashedKey k(key);
    unit.Lock(k);
    unit.SetString(0, k, "value", deadline);
    unit.Notify(EventClass::kString, "set", 0, key);
  }
  void Get(absl::string_view key, bool report_misses) {
    Unit unit(store_);
    unit.ReportMisses(report_misses);
    unit.Find(0, HashedKey(key));
  }

  FakeClock clock_;
  MemoryLog log_;
  Store store_{clock_, log_};
  Listener listener_;
};

TEST_F(EventsTest, AKeyIsNewOnceAndWhatTheUnitRevealsIsNeeded) {
  Set("a");
  Set("a");
  EXPECT_THAT(listener_.Take(), ElementsAre("new 0 a @1", "set 0 a @1", "set 0 a @2"));
  EXPECT_EQ(listener_.calls, 2);
}

TEST_F(EventsTest, NothingIsToldOfClassesThatNobodyWants) {
  store_.WantEvents(Bit(EventClass::kString));
  Set("a");
  Get("absent", true);
  EXPECT_THAT(listener_.Take(), ElementsAre("set 0 a @1"));
  store_.WantEvents(0);
  Set("b");
  EXPECT_THAT(listener_.Take(), IsEmpty());
}

TEST_F(EventsTest, AnExpiredKeyIsToldOnceWhoeverFindsIt) {
  const int64_t at = clock_.NowMs() + 10;
  for (const char* key : {"looked-at", "replaced", "swept"}) Set(key, at);
  listener_.Take();
  clock_.AdvanceMs(10);
  Get("looked-at", false);
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 looked-at @4"));
  Set("replaced");
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 replaced @5", "new 0 replaced @5", "set 0 replaced @5"));
  clock_.AdvanceMs(100);
  store_.Tick();
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 swept @6"));
  Get("looked-at", false);
  store_.Tick();
  EXPECT_THAT(listener_.Take(), IsEmpty());
}

TEST_F(EventsTest, AMissIsToldOnlyWhereMissesAreReported) {
  Get("absent", false);
  EXPECT_THAT(listener_.Take(), IsEmpty());
  Get("absent", true);
  EXPECT_THAT(listener_.Take(), ElementsAre("keymiss 0 absent @0"));
  Set("a", clock_.NowMs() + 10);
  listener_.Take();
  clock_.AdvanceMs(10);
  Get("a", true);
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 a @2", "keymiss 0 a @2"));
}

TEST_F(EventsTest, AUnitTellsAllAtItsEndInOrderWithItsOrigin) {
  EventOrigin origin;
  {
    Unit unit(store_);
    unit.SetOrigin(&origin);
    unit.LockAll();
    {
      const std::string key = "first";  // gone before the unit is
      unit.SetString(0, HashedKey(key), "1", kNoDeadline);
      unit.Notify(EventClass::kString, "set", 0, key);
    }
    unit.SetString(3, HashedKey("second"), "2", kNoDeadline);
    unit.Notify(EventClass::kString, "set", 3, "second");
    EXPECT_EQ(listener_.calls, 0);
  }
  EXPECT_EQ(listener_.calls, 1);
  EXPECT_EQ(listener_.last_origin, &origin);
  EXPECT_THAT(listener_.Take(),
              ElementsAre("new 0 first @1", "set 0 first @1", "new 3 second @1", "set 3 second @1"));
}

TEST_F(EventsTest, EveryChangeIsToldToThoseWhoWantNoNames) {
  store_.WantEvents(Bit(EventClass::kChanged) | Bit(EventClass::kFlushed));
  const int64_t at = clock_.NowMs() + 10;
  Set("a", at);
  {
    Unit unit(store_);
    const HashedKey k("a");
    unit.Lock(k);
    unit.SetDeadline(0, k, at);
  }
  EXPECT_THAT(listener_.Take(), ElementsAre(" 0 a @1", " 0 a @2"));
  clock_.AdvanceMs(100);
  store_.Tick();
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 a @3"));
  Unit unit(store_);
  unit.LockAll();
  unit.FlushDb(3);
  unit.Commit();
  EXPECT_THAT(listener_.Take(), ElementsAre(" 3  @4"));
}

TEST_F(EventsTest, CallsComeInOrderWithTheEvents) {
  Unit unit(store_);
  unit.LockAll();
  unit.Notify(EventClass::kString, "one", 0, "a");
  unit.AtCommit([this](Lsn need) { listener_.told.push_back(absl::StrCat("call @", need)); });
  unit.SetString(0, HashedKey("b"), "", kNoDeadline);
  EXPECT_THAT(listener_.Take(), IsEmpty());
  unit.Commit();
  EXPECT_THAT(listener_.Take(), ElementsAre("one 0 a @1", "call @1", "new 0 b @1"));
}

TEST_F(EventsTest, WhileFrozenWhatExpiresIsAbsentButStays) {
  Set("a", clock_.NowMs() + 10);
  listener_.Take();
  store_.SetFrozen(true);
  clock_.AdvanceMs(100);
  store_.Tick();
  Get("a", true);
  EXPECT_THAT(listener_.Take(), ElementsAre("keymiss 0 a @1"));
  EXPECT_EQ(Unit(store_).Size(0), 1u);
  store_.SetFrozen(false);
  store_.Tick();
  EXPECT_THAT(listener_.Take(), ElementsAre("expired 0 a @2"));
  EXPECT_EQ(Unit(store_).Size(0), 0u);
}

TEST_F(EventsTest, WhatARenameReplacesCountsAsDeletedBefore) {
  Set("a");
  Set("b");
  listener_.Take();
  Unit unit(store_);
  unit.LockAll();
  unit.Rename(0, HashedKey("a"), 0, HashedKey("b"));
  unit.Commit();
  EXPECT_THAT(listener_.Take(), ElementsAre("new 0 b @3"));
}

// The last event of a key names what the key was made last, whichever thread did it.
TEST_F(EventsTest, TheEventsOfAKeyComeInTheOrderOfItsChanges) {
  class Last final : public EventSink {
   public:
    void OnEvents(absl::Span<const Event> events, Lsn, EventOrigin*) override { name = events.back().name; }
    const char* name = "";  // under the lock of the key's shard
  } last;
  store_.SetEventSink(&last);
  const HashedKey key("contended");
  const auto toggle = [&] {
    for (int i = 0; i < 2'000; ++i) {
      Unit unit(store_);
      unit.Lock(key);
      const char* const before = last.name;
      const bool there = static_cast<bool>(unit.Find(0, key));
      EXPECT_TRUE(before[0] == 0 || there == (before == absl::string_view("set")));
      if (there) {
        unit.Remove(0, key);
        unit.Notify(EventClass::kGeneric, "del", 0, key.bytes);
      } else {
        unit.SetString(0, key, "1", kNoDeadline);
        unit.Notify(EventClass::kString, "set", 0, key.bytes);
      }
    }
  };
  std::thread other(toggle);
  toggle();
  other.join();
}

}  // namespace
}  // namespace idemd::storage
