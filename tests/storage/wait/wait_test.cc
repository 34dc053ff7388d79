// Waiters at a key: order of arrival, every kind of change, lapses, patience.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

class TestWaiter : public Waiter {
 public:
  void Resolve(const WaitAnswer& answer) override {
    ++resolved;
    last = answer;
    status = ReserveStatusName(answer.reply.status);
  }
  int resolved = 0;
  WaitAnswer last;
  std::string status;
};

class WaitTest : public ::testing::Test {
 protected:
  ReserveOutcome Reserve(const std::string& claim, int64_t lease_ms = 1'000) {
    Unit unit(store_);
    unit.Lock(key_);
    ReserveRequest request;
    request.claim = claim;
    request.lease_ms = lease_ms;
    const KeyView view = unit.Find(0, key_);
    ReserveOutcome outcome = storage::Reserve(
        SubjectOf(view), request, unit.now_ms(), store_.CurrentLimits(), [this] { return store_.fences().Next(); },
        [] { return TokenOrigin::kUnissued; });
    unit.Apply(0, key_, outcome.action);
    outcome.reply.payload = {};
    return outcome;
  }
  std::shared_ptr<TestWaiter> Wait(int64_t patience_ms, int64_t lease_ms = 1'000) {
    auto waiter = std::make_shared<TestWaiter>();
    waiter->request.lease_ms = lease_ms;
    waiter->give_up_at_ms = clock_.NowMs() + patience_ms;
    Unit unit(store_);
    unit.Lock(key_);
    unit.Wait(0, key_, waiter);
    return waiter;
  }
  template <class Decide>
  void Change(Decide decide) {
    Unit unit(store_);
    unit.Lock(key_);
    const KeyView view = unit.Find(0, key_);
    unit.Apply(0, key_, decide(SubjectOf(view), unit.now_ms()).action);
  }

  FakeClock clock_;
  MemoryLog log_;
  Store store_{clock_, log_};
  const HashedKey key_{"job"};
};

TEST_F(WaitTest, CompleteAnswersAllWithTheSameBytes) {
  const uint64_t fence = Reserve("a").reply.fence;
  std::vector<std::shared_ptr<TestWaiter>> waiters;
  for (int i = 0; i < 1'000; ++i) waiters.push_back(Wait(10'000));
  EXPECT_EQ(store_.waiters(), 1'000u);
  Change([&](const Subject& s, int64_t now) {
    CompleteRequest request;
    request.fence = fence;
    request.result = "answer";
    return Complete(s, request, now, store_.CurrentLimits());
  });
  for (const auto& waiter : waiters) {
    ASSERT_EQ(waiter->resolved, 1);
    EXPECT_EQ(waiter->status, "DONE");
    ASSERT_NE(waiter->last.payload, nullptr);
    EXPECT_EQ(*waiter->last.payload, "answer");
    EXPECT_EQ(waiter->last.payload, waiters[0]->last.payload) << "the bytes are shared";
    EXPECT_EQ(waiter->last.need, log_.released()) << "the reply waits for the completion";
  }
  EXPECT_EQ(store_.waiters(), 0u);
}

TEST_F(WaitTest, ReleaseGivesTheClaimToTheOneThatWaitedLongestInTheSameUnit) {
  const uint64_t fence = Reserve("a").reply.fence;
  auto first = Wait(10'000);
  auto second = Wait(10'000);
  const size_t units = log_.Units().size();
  Change([&](const Subject& s, int64_t now) { return Release(s, fence, now); });
  EXPECT_EQ(first->status, "RESERVED");
  EXPECT_GT(first->last.reply.fence, fence);
  EXPECT_EQ(second->resolved, 0);
  ASSERT_EQ(log_.Units().size(), units + 1) << "no new caller can come between";
  EXPECT_EQ(log_.Units().back().size(), 1u);
  EXPECT_EQ(log_.Units().back()[0].substr(0, 24), "SET 0 job idem/1 state=p") << "one effect: the new claim";
}

TEST_F(WaitTest, ALapseGivesTheClaimToOneAndTheRestWaitOn) {
  Reserve("a", 100);
  auto first = Wait(10'000, 100);
  auto second = Wait(10'000, 100);
  EXPECT_LE(store_.Tick(), clock_.NowMs() + 100);
  clock_.AdvanceMs(99);
  store_.Tick();
  EXPECT_EQ(first->resolved, 0);
  clock_.AdvanceMs(1);
  store_.Tick();
  EXPECT_EQ(first->status, "RESERVED");
  EXPECT_EQ(first->last.reply.attempt, 2u);
  EXPECT_TRUE(first->last.took_over);
  EXPECT_EQ(second->resolved, 0);
  clock_.AdvanceMs(100);
  store_.Tick();
  EXPECT_EQ(second->status, "RESERVED") << "the first one lapsed too";
  EXPECT_EQ(second->last.reply.attempt, 3u);
}

TEST_F(WaitTest, ANewCallerDoesNotOvertakeAtALapseThatTheTimerHasNotNoticed) {
  Reserve("a", 100);
  auto waiter = Wait(10'000, 100);
  clock_.AdvanceMs(100);
  {
    Unit unit(store_);
    unit.Lock(key_);
    unit.ServeDueWaiters(0, key_);
    EXPECT_EQ(waiter->resolved, 0) << "the answer leaves when the unit is over";
    const KeyView view = unit.Find(0, key_);
    EXPECT_EQ(Unpack(view.bytes, view.deadline_ms).attempt, 2u) << "the waiter has it before the caller looks";
  }
  EXPECT_EQ(waiter->status, "RESERVED");
}

TEST_F(WaitTest, PatienceThatRunsOutIsPending) {
  Reserve("a", 10'000);
  auto waiter = Wait(50);
  clock_.AdvanceMs(49);
  store_.Tick();
  EXPECT_EQ(waiter->resolved, 0);
  clock_.AdvanceMs(1);
  store_.Tick();
  EXPECT_EQ(waiter->status, "PENDING");
  EXPECT_EQ(waiter->last.reply.ms, 9'950);
  EXPECT_EQ(store_.waiters(), 0u);
}

TEST_F(WaitTest, ACanceledWaiterGetsNothingAndDoesNotHoldUpTheNext) {
  const uint64_t fence = Reserve("a").reply.fence;
  auto gone = Wait(10'000);
  auto next = Wait(10'000);
  EXPECT_TRUE(gone->Cancel());
  Change([&](const Subject& s, int64_t now) { return Release(s, fence, now); });
  EXPECT_EQ(gone->resolved, 0);
  EXPECT_EQ(next->status, "RESERVED");
}

TEST_F(WaitTest, DeleteOverwriteFlushSwapAndExpiryAreChangesToo) {
  const auto expect_reserved = [&](auto change, const char* what) {
    SCOPED_TRACE(what);
    {
      Unit unit(store_);
      unit.LockAll();
      unit.FlushAll();
    }
    Reserve("a", 100'000);
    auto waiter = Wait(1'000'000);
    change();
    EXPECT_EQ(waiter->resolved, 1);
    EXPECT_EQ(waiter->status, "RESERVED");
  };
  expect_reserved(
      [&] {
        Unit unit(store_);
        unit.Lock(key_);
        unit.Remove(0, key_);
      },
      "delete");
  expect_reserved(
      [&] {
        Unit unit(store_);
        unit.LockAll();
        unit.FlushDb(0);
      },
      "flush");
  expect_reserved(
      [&] {
        Unit unit(store_);
        unit.LockAll();
        unit.SwapDb(0, 5);
      },
      "swap");
  expect_reserved(
      [&] {
        {
          Unit unit(store_);
          unit.Lock(key_);
          unit.SetDeadline(0, key_, clock_.NowMs() + 10);
        }
        clock_.AdvanceMs(10);
        store_.Tick();
      },
      "expiry");
  expect_reserved(
      [&] {
        Unit unit(store_);
        const HashedKey other("elsewhere");
        const HashedKey keys[] = {key_, other};
        unit.LockKeys(keys);
        unit.Rename(0, key_, 0, other);
      },
      "rename: waiters stay with the name");
}

TEST_F(WaitTest, ALockTakenBySetNxPxWakesItsWaitersWhenItExpires) {
  {
    Unit unit(store_);
    unit.Lock(key_);
    unit.SetString(0, key_, "somebody", clock_.NowMs() + 30);
  }
  auto waiter = Wait(10'000);
  clock_.AdvanceMs(30);
  store_.Tick();
  EXPECT_EQ(waiter->status, "RESERVED");
  EXPECT_EQ(waiter->last.reply.attempt, 1u);
}

TEST_F(WaitTest, WhoHasLeftTakesNoPlaceAndNoTime) {
  constexpr int64_t kLong = int64_t{1} << 40;
  const auto leave = [&](TestWaiter& waiter) {
    EXPECT_TRUE(waiter.Cancel());
    Unit unit(store_);
    unit.Lock(key_);
    unit.LeaveLine(0, key_);
  };
  Reserve("a", kLong);
  for (int i = 0; i < 100; ++i) {
    leave(*Wait(kLong - i));
    EXPECT_EQ(store_.waiters(), 0u);
    EXPECT_EQ(store_.wait_timer_size(), 0u);
  }
  auto stays = Wait(kLong);
  for (int i = 0; i < 100; ++i) {
    leave(*Wait(kLong - i));
    EXPECT_LE(store_.waiters(), 2u);
    EXPECT_LE(store_.wait_timer_size(), 1u);
  }
  {
    Unit unit(store_);
    unit.Lock(key_);
    unit.Remove(0, key_);
  }
  EXPECT_EQ(stays->status, "RESERVED");
  EXPECT_EQ(store_.waiters(), 0u);
  EXPECT_EQ(store_.wait_timer_size(), 0u);
}

TEST_F(WaitTest, ALineStandsInTheTimerOnce) {
  Reserve("a", 100'000);
  Wait(50'000);
  Wait(10);
  Wait(60'000);
  EXPECT_EQ(store_.wait_timer_size(), 1u);
  clock_.AdvanceMs(10);
  store_.Tick();
  EXPECT_EQ(store_.wait_timer_size(), 1u);
  Unit unit(store_);
  unit.Lock(key_);
  EXPECT_EQ(unit.WaitersAt(0, key_), 2u);
  unit.Remove(0, key_);
  unit.Commit();
  EXPECT_EQ(store_.wait_timer_size(), 1u) << "the one who has it now may lapse, and another waits";
}

TEST_F(WaitTest, AnEarlierWakeIsAnnounced) {
  int wakes = 0;
  store_.SetWake([&] { ++wakes; });
  Reserve("a", 100'000);
  Wait(50'000);
  EXPECT_EQ(wakes, 1);
  Wait(60'000);
  EXPECT_EQ(wakes, 1);
  Wait(10);
  EXPECT_EQ(wakes, 2);
}

}  // namespace
}  // namespace idemd::storage
