// CONSUME and TRANSITION, sentence by sentence.
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

ConsumeOutcome Ask(const Subject& subject, const ConsumeRequest& request = {},
                   TokenOrigin origin = TokenOrigin::kUnissued) {
  return Consume(subject, request, kNow, Limits(), [&] { return origin; });
}

TEST(Consume, TheTokenIsGone) {
  EXPECT_EQ(Describe(Ask(Plain("1")).action), "deleted");
  EXPECT_EQ(Describe(Ask(Plain("u"), {.has_ifeq = true, .ifeq = "u"}).action), "deleted");
}

TEST(Consume, AnotherValueIsRefusedAndTheTokenStays) {
  for (absl::string_view by : {"", "me"}) {
    const ConsumeOutcome o = Ask(Plain("u"), {.has_ifeq = true, .ifeq = "v", .by = by});
    EXPECT_EQ(o.status, ConsumeStatus::kRefused);
    EXPECT_EQ(o.action.kind, Action::Kind::kNone);
  }
  EXPECT_EQ(Ask(Plain(""), {.has_ifeq = true, .ifeq = ""}).status, ConsumeStatus::kConsumed);
}

TEST(Consume, OfAnAbsentTokenItsTextTells) {
  EXPECT_EQ(Ask(Absent(), {}, TokenOrigin::kLive).status, ConsumeStatus::kDuplicate);
  EXPECT_EQ(Ask(Absent(), {}, TokenOrigin::kExpired).status, ConsumeStatus::kExpired);
  EXPECT_EQ(Ask(Absent(), {}, TokenOrigin::kUnissued).status, ConsumeStatus::kUnissued);
}

TEST(Consume, ByLeavesARecordThatRemembers) {
  EXPECT_EQ(Describe(Ask(Plain("u"), {.by = "a b"}).action),
            "idem/1 state=consumed fence=0 attempt=0 since=1700000000000 lease=0 lease-ms=0 "
            "keep-ms=0 claim=a%20b token=u token-expiry=1700003600000 payload=none\n for 3600000");
  EXPECT_EQ(Ask(Plain("u", kNow + 5), {.by = "a"}).action.deadline_ms, kNow + 60'000);
  const Action forever = Ask(Plain("u", kNoDeadline), {.by = "a"}).action;
  EXPECT_EQ(forever.deadline_ms, kNow + kDay);
  EXPECT_EQ(forever.record.token_expiry_ms, kNoDeadline);
}

TEST(Consume, TheSameByIsToldConsumedAgain) {
  const Subject consumed = Holding(ConsumedBy("me", "u"));
  const ConsumeOutcome again = Ask(consumed, {.has_ifeq = true, .ifeq = "u", .by = "me"});
  EXPECT_EQ(again.status, ConsumeStatus::kConsumed);
  EXPECT_TRUE(again.repeat);
  EXPECT_EQ(again.action.kind, Action::Kind::kNone);
  EXPECT_EQ(Ask(consumed, {.by = "you"}).status, ConsumeStatus::kDuplicate);
  EXPECT_EQ(Ask(consumed).status, ConsumeStatus::kDuplicate);
  EXPECT_EQ(Ask(consumed, {.has_ifeq = true, .ifeq = "v", .by = "me"}).status,
            ConsumeStatus::kRefused);
}

TEST(Consume, AReservationIsADuplicate) {
  for (const Record& r : {Pending(), Lapsed(), Failed(0), Done(), ReleasedRecord()}) {
    EXPECT_EQ(Ask(Holding(WithToken(r, "u")), {.has_ifeq = true, .ifeq = "v"}).status,
              ConsumeStatus::kDuplicate);
  }
}

TransitionOutcome Move(const Subject& subject, absl::string_view to, absl::string_view from,
                       bool init = false, Lifetime lifetime = {}, const Limits& limits = {}) {
  return Transition(
      subject, to, [&](absl::string_view state) { return state == from; }, init, lifetime, kNow,
      limits);
}

TEST(Transition, MovesFromAListedState) {
  const TransitionOutcome o = Move(Plain("new"), "paid", "new");
  EXPECT_EQ(o.status, TransitionStatus::kMoved);
  EXPECT_EQ(o.state, "new");
  EXPECT_EQ(Describe(o.action), "plain paid for 3600000");  // the lifetime is unchanged
}

TEST(Transition, SaysAlreadyListedOrNot) {
  for (const char* from : {"paid", "new"}) {
    const TransitionOutcome o =
        Move(Plain("paid"), "paid", from, true, {Lifetime::Kind::kForever, 0});
    EXPECT_EQ(o.status, TransitionStatus::kAlready);
    EXPECT_EQ(o.state, "paid");
    EXPECT_EQ(o.action.kind, Action::Kind::kNone);
  }
}

TEST(Transition, RefusesAnUnlistedStateAndNamesIt) {
  const TransitionOutcome o = Move(Plain("sent"), "paid", "new", true);
  EXPECT_EQ(o.status, TransitionStatus::kRefused);
  EXPECT_TRUE(o.has_state);
  EXPECT_EQ(o.state, "sent");
}

TEST(Transition, AnAbsentKeyCountsOnlyWithInit) {
  const TransitionOutcome refused = Move(Absent(), "new", "");
  EXPECT_EQ(refused.status, TransitionStatus::kRefused);
  EXPECT_FALSE(refused.has_state);
  const TransitionOutcome moved = Move(Absent(), "new", "", true);
  EXPECT_EQ(moved.status, TransitionStatus::kMoved);
  EXPECT_FALSE(moved.has_state);
  EXPECT_EQ(Describe(moved.action), "plain new for forever");
}

TEST(Transition, ALifetimeGivenIsSet) {
  EXPECT_EQ(Move(Plain("a"), "b", "a", false, {Lifetime::Kind::kDuration, 9}).action.deadline_ms,
            kNow + 9);
  EXPECT_EQ(Move(Plain("a"), "b", "a", false, {Lifetime::Kind::kForever, 0}).action.deadline_ms,
            kNoDeadline);
  EXPECT_EQ(Move(Plain("a"), "b", "a", false, {Lifetime::Kind::kDuration, INT64_MAX}).error,
            LifeError::kRange);
}

TEST(Transition, AtTheMemoryLimitOnlyANewKeyIsRefused) {
  Limits full;
  full.out_of_memory = true;
  EXPECT_EQ(Move(Absent(), "new", "", true, {}, full).error, LifeError::kOutOfMemory);
  EXPECT_EQ(Move(Absent(), "new", "", false, {}, full).status, TransitionStatus::kRefused);
  EXPECT_EQ(Move(Plain("a"), "much longer", "a", false, {}, full).status, TransitionStatus::kMoved);
}

}  // namespace
}  // namespace idemd::storage
