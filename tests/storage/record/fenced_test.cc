// COMPLETE, FAIL, RELEASE, EXTEND and CHECKPOINT, sentence by sentence.
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

CompleteOutcome Finish(const Subject& subject, absl::string_view result, int64_t code = 0,
                       Lifetime lifetime = {}, const Limits& limits = {}) {
  return Complete(subject, {kFence, result, code, lifetime}, kNow, limits);
}

Subject After(const Action& action) {
  if (action.kind == Action::Kind::kDelete) return Absent();
  if (action.kind == Action::Kind::kSetPlain) return Plain(action.plain, action.deadline_ms);
  return Holding(action.record, action.deadline_ms);
}

TEST(Complete, TheAnswerReplacesTheCheckpointAndTheLeaseEnds) {
  const CompleteOutcome o = Finish(Holding(WithPayload(Pending(), "step")), "body", 201);
  EXPECT_EQ(Describe(o.action),
            "idem/1 state=done fence=1740800000000123 attempt=1 since=1699999990000 "
            "lease=1700000000000 lease-ms=30000 keep-ms=86400000 claim=me code=201 "
            "payload=raw\nbody for 86400000");
  EXPECT_EQ(o.status, CompleteStatus::kOk);
}

TEST(Complete, CodeZeroIsNotWritten) {
  EXPECT_EQ(Describe(Finish(Holding(Pending()), "").action).find("code="), std::string::npos);
}

TEST(Complete, LateAfterALapseOrAFailure) {
  const CompleteOutcome lapsed = Finish(Holding(Lapsed()), "x");
  EXPECT_EQ(lapsed.status, CompleteStatus::kLate);
  EXPECT_EQ(lapsed.action.record.after_ms, kNow - 1'000);  // when the lease ended
  const CompleteOutcome failed = Finish(Holding(Failed(5'000)), "x");
  EXPECT_EQ(failed.status, CompleteStatus::kLate);
  EXPECT_EQ(failed.action.record.after_ms, kNow + 5'000);  // kept from the failure
  const CompleteOutcome unknown = Finish(Holding(Unknown()), "x");
  EXPECT_EQ(unknown.status, CompleteStatus::kLate);
  EXPECT_TRUE(unknown.action.record.stop);
}

TEST(Complete, ARepeatGetsTheSameReplyAndChangesNothing) {
  Limits small;
  small.max_result_bytes = 3;
  const struct {
    Record record;
    absl::string_view result;
    CompleteStatus status;
    bool late;
  } rows[] = {
      {Pending(), "abc", CompleteStatus::kOk, false},
      {Lapsed(), "abc", CompleteStatus::kLate, true},
      {Failed(7), "", CompleteStatus::kLate, true},
      {Pending(), "abcd", CompleteStatus::kNoResult, false},
      {Lapsed(), "abcd", CompleteStatus::kNoResult, true},
  };
  for (const auto& row : rows) {
    const CompleteOutcome first = Finish(Holding(row.record), row.result, 5, {}, small);
    EXPECT_EQ(first.status, row.status);
    EXPECT_EQ(first.late, row.late);
    EXPECT_FALSE(first.repeat);
    // Also with another lifetime, and after the limits have changed.
    const CompleteOutcome second =
        Finish(After(first.action), row.result, 5, {Lifetime::Kind::kForever, 0});
    EXPECT_EQ(second.status, row.status);
    EXPECT_EQ(second.late, row.late);
    EXPECT_TRUE(second.repeat);
    EXPECT_EQ(second.action.kind, Action::Kind::kNone);
    EXPECT_EQ(Finish(After(first.action), "other", 5, {}, small).error, LifeError::kConflict);
    EXPECT_EQ(Finish(After(first.action), row.result, 6, {}, small).error, LifeError::kConflict);
  }
}

TEST(Complete, AResultThatIsTooLargeIsNotKeptButTheKeyIsDone) {
  Limits small;
  small.max_result_bytes = 2;
  const CompleteOutcome o = Finish(Holding(WithPayload(Pending(), "step")), "body", 1, {}, small);
  EXPECT_EQ(o.status, CompleteStatus::kNoResult);
  EXPECT_EQ(o.action.record.state, RecordState::kDone);
  EXPECT_FALSE(o.action.record.has_payload);
  EXPECT_EQ(o.action.record.digest, ResultDigest("body"));
  EXPECT_EQ(Finish(Holding(Pending()), "bo", 1, {}, small).status, CompleteStatus::kOk);
}

TEST(Complete, AtTheMemoryLimitOnlyWhatNeedsNoMoreRoomIsKept) {
  Limits full;
  full.out_of_memory = true;
  const Subject subject = Holding(WithPayload(Pending(), "step"));
  EXPECT_EQ(Finish(subject, "body", 0, {}, full).status, CompleteStatus::kOk);
  EXPECT_EQ(Finish(subject, "body+", 0, {}, full).status, CompleteStatus::kNoResult);
  EXPECT_EQ(Finish(Holding(Pending()), "", 0, {}, full).status, CompleteStatus::kOk);
}

TEST(Complete, Lifetimes) {
  Record forever = Pending();
  forever.keep_ms = 0;
  const struct {
    const char* what;
    Subject subject;
    Lifetime lifetime;
    int64_t deadline_ms;
    int64_t keep_ms;
  } rows[] = {
      {"as asked for, from now", Holding(Pending(), kNow + 100), {}, kNow + kDay, kDay},
      {"never shortening", Holding(Pending(), kNow + 9 * kDay), {}, kNow + 9 * kDay, kDay},
      {"an absolute one stays", Holding(forever, kNow + 100), {}, kNow + 100, 0},
      {"for ever stays", Holding(forever, kNoDeadline), {}, kNoDeadline, 0},
      {"a token's for ever stays", Holding(Pending(), kNoDeadline), {}, kNoDeadline, kDay},
      {"given: may shorten", Holding(Pending()), {Lifetime::Kind::kDuration, 5}, kNow + 5, 5},
      {"given: shortens for ever",
       Holding(forever, kNoDeadline),
       {Lifetime::Kind::kDuration, 5},
       kNow + 5,
       5},
      {"given: absolute", Holding(Pending()), {Lifetime::Kind::kAbsolute, kNow + 9}, kNow + 9, 0},
      {"given: for ever", Holding(Pending()), {Lifetime::Kind::kForever, 0}, kNoDeadline, 0},
  };
  for (const auto& row : rows) {
    const CompleteOutcome o = Finish(row.subject, "x", 0, row.lifetime);
    EXPECT_EQ(o.action.deadline_ms, row.deadline_ms) << row.what;
    EXPECT_EQ(o.action.record.keep_ms, row.keep_ms) << row.what;
  }
  EXPECT_EQ(Finish(Holding(Pending()), "x", 0, {Lifetime::Kind::kDuration, INT64_MAX}).error,
            LifeError::kRange);
  // A stored lifetime too long to add up must not cost the answer.
  Record endless = Pending();
  endless.keep_ms = INT64_MAX;
  EXPECT_EQ(Finish(Holding(endless), "x").action.deadline_ms, kNoDeadline);
}

TEST(Complete, FingerprintAndTokenStay) {
  Record r = WithToken(Pending(), "v");
  r.has_fingerprint = true;
  r.fingerprint = "fp";
  const Record done = Finish(Holding(r), "x").action.record;
  EXPECT_EQ(done.fingerprint, "fp");
  EXPECT_EQ(done.token, "v");
  EXPECT_EQ(done.claim, "me");
}

TEST(Fail, KeepsFingerprintCheckpointAndAttempt) {
  Record r = WithPayload(WithToken(Pending()), "step");
  r.attempt = 3;
  r.has_fingerprint = true;
  r.fingerprint = "fp";
  EXPECT_EQ(
      Describe(Fail(Holding(r), kFence, 700, kNow).action),
      "idem/1 state=failed fence=1740800000000123 attempt=3 since=1699999990000 "
      "lease=1700000000000 lease-ms=30000 keep-ms=86400000 claim=me fp=fp "
      "after=1700000000700 token=1 token-expiry=1700003600000 payload=raw\nstep for 86400000");
}

TEST(Fail, TheKeyOutlivesTheDelay) {
  EXPECT_EQ(Fail(Holding(Pending(), kNow + 5), kFence, 700, kNow).action.deadline_ms, kNow + 700);
  EXPECT_EQ(Fail(Holding(Pending()), kFence, INT64_MAX, kNow).error, LifeError::kRange);
}

TEST(Fail, ARepeatKeepsTheFirstDelay) {
  const FailOutcome o = Fail(Holding(Failed(700)), kFence, 5, kNow);
  EXPECT_TRUE(o.repeat);
  EXPECT_EQ(o.action.kind, Action::Kind::kNone);
}

TEST(Fail, IsNotBoundByStop) {
  const FailOutcome o = Fail(Holding(Unknown()), kFence, 0, kNow);
  EXPECT_EQ(StatusAt(o.action.record, kNow), StatusWord::kFailed);
  EXPECT_TRUE(o.action.record.stop);
}

TEST(Release, OfTheFirstAttemptLeavesNothing) {
  EXPECT_EQ(Describe(Release(Holding(Pending()), kFence, kNow).action), "deleted");
  EXPECT_EQ(Describe(Release(Holding(Unknown()), kFence, kNow).action), "deleted");
}

TEST(Release, OfTheFirstAttemptRestoresTheToken) {
  EXPECT_EQ(Describe(Release(Holding(WithToken(Pending(), "v")), kFence, kNow).action),
            "plain v for 3600000");
  EXPECT_EQ(Describe(Release(Holding(WithToken(Pending(), "v", kNoDeadline)), kFence, kNow).action),
            "plain v for forever");
  EXPECT_EQ(Describe(Release(Holding(WithToken(Pending(), "v", kNow)), kFence, kNow).action),
            "deleted");
}

TEST(Release, OfALaterAttemptLeavesTheEarlierOnesRecord) {
  Record r = WithPayload(WithToken(Pending()), "step");
  r.attempt = 3;
  r.stop = true;
  r.has_fingerprint = true;
  r.fingerprint = "fp";
  const ReleaseOutcome o = Release(Holding(r), kFence, kNow);
  EXPECT_EQ(Describe(o.action),
            "idem/1 state=pending fence=1740800000000123 attempt=2 since=1699999990000 "
            "lease=1700000000000 lease-ms=30000 keep-ms=86400000 fp=fp onlapse=stop after=0 "
            "token=1 token-expiry=1700003600000 payload=raw\nstep for 86400000");
  r.has_payload = false;
  EXPECT_EQ(Release(Holding(r), kFence, kNow).action.record.attempt, 2u);
}

TEST(Release, AFirstAttemptThatSavedACheckpointStaysOne) {
  const ReleaseOutcome o = Release(Holding(WithPayload(Pending(), "")), kFence, kNow);
  EXPECT_EQ(o.action.record.attempt, 1u);
  EXPECT_TRUE(Released(o.action.record));
  const ReleaseOutcome again = Release(After(o.action), kFence, kNow);
  EXPECT_TRUE(again.repeat);
  EXPECT_EQ(again.released, 1);
}

TEST(Release, AReleasedAttemptCountsOnceMoreWhenTakenOver) {
  Record r = Pending();
  r.attempt = 2;
  const Action released = Release(Holding(r), kFence, kNow).action;
  const ReserveOutcome o = Reserve(
      After(released), {}, kNow, Limits(), [] { return kFence + 1; },
      [] { return TokenOrigin::kLive; });
  EXPECT_EQ(o.reply.attempt, 2u);
  EXPECT_TRUE(o.took_over);
}

TEST(Extend, MovesTheLeaseAndTheKeyWhereItWouldGoFirst) {
  const ExtendOutcome o = Extend(Holding(Lapsed(), kNow + 5), kFence, 7'000, kNow);
  EXPECT_EQ(o.lease_left_ms, 7'000);
  EXPECT_EQ(o.action.record.lease_end_ms, kNow + 7'000);
  EXPECT_EQ(o.action.record.lease_ms, 7'000);
  EXPECT_EQ(o.action.deadline_ms, kNow + 7'000);
  EXPECT_EQ(Extend(Holding(Pending()), kFence, 7'000, kNow).action.deadline_ms, kNow + kDay);
  EXPECT_EQ(Extend(Holding(Pending()), kFence, INT64_MAX, kNow).error, LifeError::kRange);
}

TEST(Checkpoint, SavesAndRenews) {
  const FencedOutcome o =
      Checkpoint(Holding(WithPayload(Unknown(), "old"), kNow + 5), kFence, "new", 0, kNow, {});
  EXPECT_EQ(o.action.record.payload, "new");
  EXPECT_EQ(o.action.record.lease_end_ms, kNow + 30'000);  // the length last asked for
  EXPECT_EQ(o.action.deadline_ms, kNow + 30'000);
  EXPECT_EQ(StatusAt(o.action.record, kNow), StatusWord::kPending);
  const FencedOutcome given = Checkpoint(Holding(Pending()), kFence, "", 50, kNow, {});
  EXPECT_EQ(given.action.record.lease_end_ms, kNow + 50);
  EXPECT_EQ(given.action.record.lease_ms, 50);
  EXPECT_TRUE(given.action.record.has_payload);
}

TEST(Checkpoint, AboveTheLimitNothingChanges) {
  Limits small;
  small.max_result_bytes = 2;
  const FencedOutcome o = Checkpoint(Holding(Pending()), kFence, "abc", 0, kNow, small);
  EXPECT_EQ(o.error, LifeError::kTooLarge);
  EXPECT_EQ(o.action.kind, Action::Kind::kNone);
  EXPECT_EQ(Checkpoint(Holding(Pending()), kFence, "ab", 0, kNow, small).error, LifeError::kNone);
  EXPECT_EQ(Checkpoint(Holding(Pending()), kFence, "", INT64_MAX, kNow, small).error,
            LifeError::kRange);
}

}  // namespace
}  // namespace idemd::storage
