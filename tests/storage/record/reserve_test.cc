// RESERVE, sentence by sentence.
#include <gtest/gtest.h>

#include <string>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

TokenOrigin Unissued() { return TokenOrigin::kUnissued; }
uint64_t NextFence() { return kFence + 1; }

ReserveOutcome Ask(const Subject& subject, const ReserveRequest& request = {},
                   const Limits& limits = {}) {
  return Reserve(subject, request, kNow, limits, &NextFence, &Unissued);
}

// "status fence attempt ms code payload", as the contract's table has it; the fence as its distance
// from the record's.
std::string Reply(const ReserveOutcome& o) {
  if (o.error != LifeError::kNone) return ErrorName(o.error);
  const ReserveReply& r = o.reply;
  const std::string fence =
      r.fence == 0 ? "0" : "F+" + std::to_string(static_cast<int64_t>(r.fence - kFence));
  return std::string(ReserveStatusName(r.status)) + " " + fence + " " + std::to_string(r.attempt) +
         " " + std::to_string(r.ms) + " " + std::to_string(r.code) + " " +
         (r.has_payload ? "'" + std::string(r.payload) + "'" : "nil");
}

Record WithFingerprint(Record r) {
  r.has_fingerprint = true;
  r.fingerprint = "fp1";
  return r;
}

TEST(Reserve, RepliesOfTheContractsTable) {
  const struct {
    const char* what;
    Subject subject;
    ReserveRequest request;
    const char* reply;
  } rows[] = {
      {"new", Absent(), {}, "RESERVED F+1 1 30000 0 nil"},
      {"lease given", Absent(), {.lease_ms = 7}, "RESERVED F+1 1 7 0 nil"},
      {"taken over", Holding(WithPayload(Lapsed(), "step")), {}, "RESERVED F+1 2 30000 0 'step'"},
      {"failed before", Holding(Failed(-1)), {}, "RESERVED F+1 2 30000 0 nil"},
      {"held",
       Holding(WithPayload(Pending(), "step")),
       {.claim = "me"},
       "HELD F+0 1 20000 0 'step'"},
      {"at work", Holding(WithPayload(Pending(), "step")), {}, "PENDING 0 1 20000 0 nil"},
      {"retry delay", Holding(Failed(700)), {}, "PENDING 0 1 700 0 nil"},
      {"done", Holding(Done()), {}, "DONE 0 1 86400000 200 'ok'"},
      {"done for ever", Holding(Done("", 0), kNoDeadline), {}, "DONE 0 1 -1 0 ''"},
      {"done, nothing kept", Holding(DoneWithoutResult()), {}, "DONE 0 1 86400000 200 nil"},
      {"other request",
       Holding(WithFingerprint(WithPayload(Pending(), "x"))),
       {.fingerprint = "fp2"},
       "MISMATCH 0 1 86400000 0 nil"},
      {"other request for ever",
       Holding(WithFingerprint(Done()), kNoDeadline),
       {.fingerprint = "fp2"},
       "MISMATCH 0 1 -1 0 nil"},
      {"unknown", Holding(WithPayload(Unknown(), "step")), {}, "UNKNOWN 0 1 1000 0 'step'"},
      {"consumed", Holding(ConsumedBy()), {}, "DUPLICATE 0 0 0 0 nil"},
      {"never issued", Absent(), {.issued = true}, "UNISSUED 0 0 0 0 nil"},
      {"other value",
       Plain("1"),
       {.issued = true, .has_ifeq = true, .ifeq = "2"},
       "REFUSED 0 0 0 0 nil"},
      {"a lock", Plain("x", kNow + 5), {}, "PENDING 0 0 5 0 nil"},
      {"a lock for ever", Plain("x", kNoDeadline), {.claim = "me"}, "PENDING 0 0 -1 0 nil"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(Reply(Ask(row.subject, row.request)), row.reply) << row.what;
}

TEST(Reserve, WithoutARightTheTokensTextTells) {
  const struct {
    TokenOrigin origin;
    ReserveStatus status;
  } rows[] = {{TokenOrigin::kLive, ReserveStatus::kDuplicate},
              {TokenOrigin::kExpired, ReserveStatus::kExpired},
              {TokenOrigin::kUnissued, ReserveStatus::kUnissued}};
  const Subject without_right[] = {Absent(), Holding(WithToken(Lapsed(), "1", kNow)),
                                   Holding(WithToken(Failed(0), "1", kNow - 1)),
                                   Holding(WithToken(ReleasedRecord(), "1", kNow - 1))};
  for (const auto& row : rows) {
    const auto origin = [&] { return row.origin; };
    for (const Subject& subject : without_right) {
      const ReserveOutcome o =
          Reserve(subject, {.issued = true}, kNow, Limits(), &NextFence, origin);
      EXPECT_EQ(o.reply.status, row.status);
      EXPECT_EQ(o.action.kind, Action::Kind::kNone);
    }
  }
}

TEST(Reserve, AFirstClaimIsWrittenWhole) {
  ReserveRequest request;
  request.claim = "c/1";
  request.fingerprint = "fp";
  request.lease_ms = 1'000;
  request.lifetime = {Lifetime::Kind::kDuration, 60'000};
  request.stop = true;
  EXPECT_EQ(Describe(Ask(Absent(), request).action),
            "idem/1 state=pending fence=1740800000000124 attempt=1 since=1700000000000 "
            "lease=1700000001000 lease-ms=1000 keep-ms=60000 claim=c%2F1 fp=fp onlapse=stop "
            "payload=none\n for 60000");
}

TEST(Reserve, LifetimesAsAsked) {
  const struct {
    Lifetime lifetime;
    int64_t lease_ms;
    int64_t deadline_ms;
    int64_t keep_ms;
  } rows[] = {
      {{}, 0, kNow + kDay, kDay},
      {{Lifetime::Kind::kDuration, 40'000}, 0, kNow + 40'000, 40'000},
      {{Lifetime::Kind::kDuration, 5}, 0, kNow + 30'000, 5},  // never shorter than the lease
      {{Lifetime::Kind::kDuration, 500}, 500, kNow + 500, 500},
      {{Lifetime::Kind::kAbsolute, kNow + 40'000}, 0, kNow + 40'000, 0},
      {{Lifetime::Kind::kAbsolute, kNow + 1}, 0, kNow + 30'000, 0},
      {{Lifetime::Kind::kForever, 0}, 0, kNoDeadline, 0},
  };
  for (const auto& row : rows) {
    const ReserveOutcome o = Ask(Absent(), {.lease_ms = row.lease_ms, .lifetime = row.lifetime});
    EXPECT_EQ(o.action.deadline_ms, row.deadline_ms);
    EXPECT_EQ(o.action.record.keep_ms, row.keep_ms);
  }
}

TEST(Reserve, TimesThatOverflowAreRefusedWhateverTheState) {
  const ReserveRequest requests[] = {
      {.lease_ms = INT64_MAX},
      {.lease_ms = INT64_MAX - kNow},  // kNoDeadline is not a time
      {.lifetime = {Lifetime::Kind::kDuration, INT64_MAX - kNow + 1}},
      {.lifetime = {Lifetime::Kind::kAbsolute, INT64_MAX}},
  };
  for (const ReserveRequest& request : requests)
    for (const Subject& subject : {Absent(), Holding(Done()), Plain("1"), Holding(Lapsed())})
      EXPECT_EQ(Reply(Ask(subject, request)), "RANGE");
  EXPECT_EQ(Ask(Absent(), {.lease_ms = INT64_MAX - kNow - 1}).action.deadline_ms, INT64_MAX - 1);
}

TEST(Reserve, ATokenBecomesAReservationThatRemembersIt) {
  ReserveRequest request;
  request.claim = "me";
  request.issued = true;
  request.has_ifeq = true;
  request.ifeq = "user 1";
  request.lifetime = {Lifetime::Kind::kDuration, 1'000};
  EXPECT_EQ(Describe(Ask(Plain("user 1"), request).action),
            "idem/1 state=pending fence=1740800000000124 attempt=1 since=1700000000000 "
            "lease=1700000030000 lease-ms=30000 keep-ms=1000 claim=me token=user%201 "
            "token-expiry=1700003600000 payload=none\n for 3600000");
  // The longest of what was asked for, the lease and the token's own.
  request.lifetime = {Lifetime::Kind::kDuration, 2 * kHour};
  EXPECT_EQ(Ask(Plain("user 1"), request).action.deadline_ms, kNow + 2 * kHour);
  request.lifetime = {Lifetime::Kind::kDuration, 1};
  EXPECT_EQ(Ask(Plain("user 1", kNow + 2), request).action.deadline_ms, kNow + 30'000);
  // None, if the token has none.
  const Action forever = Ask(Plain("user 1", kNoDeadline), request).action;
  EXPECT_EQ(forever.deadline_ms, kNoDeadline);
  EXPECT_EQ(forever.record.token_expiry_ms, kNoDeadline);
}

TEST(Reserve, IfeqIsTestedBeforeFingerprintAndState) {
  ReserveRequest request;
  request.issued = true;
  request.has_ifeq = true;
  request.ifeq = "other";
  request.fingerprint = "fp2";
  for (const Record& r : {Pending(), Lapsed(), Unknown(), Failed(0), Done(), ReleasedRecord()}) {
    EXPECT_EQ(Reply(Ask(Holding(WithToken(WithFingerprint(r))), request)), "REFUSED 0 0 0 0 nil");
    // A reservation that remembers no token has nothing to compare.
    EXPECT_EQ(Ask(Holding(WithFingerprint(r)), request).reply.status, ReserveStatus::kMismatch);
  }
}

TEST(Reserve, FingerprintIsTestedBeforeTheState) {
  for (const Record& r : {Pending(), Lapsed(), Unknown(), Failed(0), Failed(9), Done(),
                          ReleasedRecord(), DoneWithoutResult()}) {
    EXPECT_EQ(Ask(Holding(WithFingerprint(r)), {.claim = "me", .fingerprint = "fp2"}).reply.status,
              ReserveStatus::kMismatch);
    EXPECT_NE(Ask(Holding(WithFingerprint(r)), {.fingerprint = "fp1"}).reply.status,
              ReserveStatus::kMismatch);
    // Who brings none, or where none is kept, nothing is compared.
    EXPECT_NE(Ask(Holding(WithFingerprint(r))).reply.status, ReserveStatus::kMismatch);
    EXPECT_NE(Ask(Holding(r), {.fingerprint = "fp2"}).reply.status, ReserveStatus::kMismatch);
  }
}

TEST(Reserve, ATakeOverBringsItsClaimAndLeaseAndNothingElse) {
  Record before = WithPayload(WithToken(Lapsed()), "step");
  before.attempt = 4;
  ReserveRequest request;
  request.issued = true;
  request.claim = "you";
  request.lease_ms = 9'000;
  request.lifetime = {Lifetime::Kind::kForever, 0};
  request.fingerprint = "late fp";
  request.stop = true;
  const ReserveOutcome o = Ask(Holding(before, kNow + 10), request);
  EXPECT_TRUE(o.took_over);
  EXPECT_EQ(Describe(o.action),
            "idem/1 state=pending fence=1740800000000124 attempt=5 since=1699999990000 "
            "lease=1700000009000 lease-ms=9000 keep-ms=86400000 claim=you fp=late%20fp "
            "onlapse=stop token=1 token-expiry=1700003600000 payload=raw\nstep for 9000");
  EXPECT_EQ(o.reply.payload, "step");
}

TEST(Reserve, ATakeOverWithoutClaimHasNone) {
  const ReserveOutcome o = Ask(Holding(Lapsed()));
  EXPECT_FALSE(o.action.record.has_claim);
  EXPECT_EQ(o.action.deadline_ms, kNow + kDay);
}

TEST(Reserve, ATakeOverEndsFailureAndRelease) {
  for (const Record& r : {Failed(0), ReleasedRecord()}) {
    const ReserveOutcome o = Ask(Holding(r), {.claim = "you"});
    EXPECT_EQ(StatusAt(o.action.record, kNow), StatusWord::kPending);
    EXPECT_FALSE(o.action.record.has_after);
  }
}

TEST(Reserve, TakeTightensToStopAndNeverBack) {
  EXPECT_TRUE(Ask(Holding(Lapsed()), {.stop = true}).action.record.stop);
  Record stop = Failed(0);
  stop.stop = true;
  EXPECT_TRUE(Ask(Holding(stop), {.stop = false}).action.record.stop);
}

TEST(Reserve, UnderStopAFailedOrReleasedClaimIsTakenOver) {
  for (Record r : {Failed(0), ReleasedRecord()}) {
    r.stop = true;
    r.lease_end_ms = kNow - 5'000;
    EXPECT_TRUE(Ask(Holding(r)).took_over);
  }
}

TEST(Reserve, ALeaseEndsExactlyAtItsEnd) {
  Record r = Pending();
  r.lease_end_ms = kNow + 1;
  EXPECT_EQ(Reply(Ask(Holding(r), {.claim = "me"})), "HELD F+0 1 1 0 nil");
  r.lease_end_ms = kNow;
  EXPECT_EQ(Reply(Ask(Holding(r), {.claim = "me"})), "RESERVED F+1 2 30000 0 nil");
  EXPECT_EQ(Reply(Ask(Holding(Failed(0)))), "RESERVED F+1 2 30000 0 nil");
  EXPECT_EQ(Reply(Ask(Holding(Failed(1)))), "PENDING 0 1 1 0 nil");
}

TEST(Reserve, NoClaimHoldsNothing) {
  Record r = Pending();
  r.has_claim = false;
  r.claim = {};
  EXPECT_EQ(Ask(Holding(r)).reply.status, ReserveStatus::kPending);
  EXPECT_EQ(Ask(Holding(r), {.claim = "me"}).reply.status, ReserveStatus::kPending);
  EXPECT_EQ(Ask(Holding(Pending()), {.claim = "you"}).reply.status, ReserveStatus::kPending);
}

TEST(Reserve, WithoutIssuedAClaimedTokenIsPendingUntilDone) {
  const struct {
    Record record;
    const char* reply;
  } rows[] = {
      {Pending(), "PENDING 0 1 20000 0 nil"},           {Failed(700), "PENDING 0 1 700 0 nil"},
      {Failed(0), "PENDING 0 1 86400000 0 nil"},        {Lapsed(), "PENDING 0 1 86400000 0 nil"},
      {ReleasedRecord(), "PENDING 0 1 86400000 0 nil"}, {Unknown(), "UNKNOWN 0 1 1000 0 nil"},
      {Done(), "DONE 0 1 86400000 200 'ok'"},
  };
  for (const auto& row : rows)
    EXPECT_EQ(Reply(Ask(Holding(WithToken(row.record)), {.claim = "me"})), row.reply);
  EXPECT_EQ(Reply(Ask(Holding(WithToken(Lapsed()), kNoDeadline))), "PENDING 0 1 -1 0 nil");
}

TEST(Reserve, TheFenceIsDrawnOnlyForAGrantedClaim) {
  int drawn = 0;
  const auto next_fence = [&] { return kFence + static_cast<uint64_t>(++drawn); };
  for (const Subject& s : {Holding(Pending()), Holding(Done()), Plain("1"), Holding(Unknown()),
                           Holding(Failed(5)), Holding(ConsumedBy())}) {
    Reserve(s, {.claim = "me"}, kNow, Limits(), next_fence, &Unissued);
  }
  Limits full;
  full.out_of_memory = true;
  Reserve(Absent(), {}, kNow, full, next_fence, &Unissued);
  EXPECT_EQ(drawn, 0);
  Reserve(Absent(), {}, kNow, Limits(), next_fence, &Unissued);
  Reserve(Holding(Lapsed()), {}, kNow, full, next_fence, &Unissued);
  EXPECT_EQ(drawn, 2);
}

TEST(Reserve, TheOriginIsAskedForOnlyWhereItDecides) {
  int asked = 0;
  const auto origin = [&] {
    ++asked;
    return TokenOrigin::kLive;
  };
  for (const Subject& s : {Plain("1"), Holding(WithToken(Lapsed())), Holding(Done()),
                           Holding(Lapsed()), Holding(WithToken(Pending()))}) {
    Reserve(s, {.issued = true}, kNow, Limits(), &NextFence, origin);
  }
  Reserve(Absent(), {}, kNow, Limits(), &NextFence, origin);
  EXPECT_EQ(asked, 0);
}

TEST(NextChange, IsTheFirstTimeAtWhichTheAnswerMayDiffer) {
  const struct {
    const char* what;
    Subject subject;
    int64_t at_ms;
  } rows[] = {
      {"lease", Holding(Pending()), kNow + 20'000},
      {"key goes first", Holding(Pending(), kNow + 5), kNow + 5},
      {"lapsed", Holding(WithToken(Lapsed())), kNow + kDay},
      {"released", Holding(WithToken(ReleasedRecord())), kNow + kDay},
      {"delay", Holding(Failed(700)), kNow + 700},
      {"delay over", Holding(WithToken(Failed(0), "1", kNoDeadline), kNoDeadline), kNoDeadline},
      {"right ends in the delay", Holding(WithToken(Failed(700), "1", kNow + 50)), kNow + 50},
      {"lock", Plain("x", kNow + 9), kNow + 9},
      {"lock for ever", Plain("x", kNoDeadline), kNoDeadline},
      {"absent", Absent(), kNoDeadline},
  };
  for (const auto& row : rows) EXPECT_EQ(NextChange(row.subject, kNow), row.at_ms) << row.what;
}

TEST(StatusAt, WordOfEveryState) {
  EXPECT_EQ(StatusAt(Pending(), kNow), StatusWord::kPending);
  EXPECT_EQ(StatusAt(Pending(), kNow + 20'000), StatusWord::kLapsed);
  EXPECT_EQ(StatusAt(Unknown(), kNow), StatusWord::kUnknown);
  EXPECT_EQ(StatusAt(Unknown(), kNow - 2'000), StatusWord::kPending);
  EXPECT_EQ(StatusAt(ReleasedRecord(), kNow), StatusWord::kLapsed);
  EXPECT_EQ(StatusAt(Failed(99), kNow), StatusWord::kFailed);
  EXPECT_EQ(StatusAt(Done(), kNow), StatusWord::kDone);
  EXPECT_EQ(StatusAt(ConsumedBy(), kNow), StatusWord::kConsumed);
}

}  // namespace
}  // namespace idemd::storage
