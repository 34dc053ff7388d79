// Every state of a key against every command: one row a state, one cell a command.
//
// A cell is the answer, and after ">" the state that the key is in then ("=" when nothing changes).
#include <gtest/gtest.h>

#include <iterator>
#include <string>
#include <vector>

#include "tests/storage/record/builders.h"

namespace idemd::storage {
namespace {

std::string StateAfter(const Subject& subject) {
  switch (subject.kind) {
    case Subject::Kind::kAbsent:
      return "absent";
    case Subject::Kind::kPlain:
      return "plain";
    case Subject::Kind::kDamaged:
      return "damaged";
    case Subject::Kind::kOtherType:
      return "other";
    case Subject::Kind::kRecord:
      break;
  }
  const Record& r = subject.record;
  std::string word = Released(r) ? "released" : StatusWordName(StatusAt(r, kNow));
  if (r.state == RecordState::kDone && r.has_after) word += "-late";
  if (r.state != RecordState::kConsumed) word += std::to_string(r.attempt);
  return word;
}

std::string Effect(const Subject& subject, const Action& action) {
  if (action.kind == Action::Kind::kNone) return ">=";
  Subject after;
  after.deadline_ms = action.deadline_ms;
  if (action.kind == Action::Kind::kSetRecord) {
    after.kind = Subject::Kind::kRecord;
    after.record = action.record;
    // Whatever a command leaves behind must be a line that this version reads.
    std::string scratch;
    Record read;
    EXPECT_EQ(ParseText(Text(action.record), scratch, read), ParseVerdict::kRecord)
        << Text(action.record);
  }
  if (action.kind == Action::Kind::kSetPlain) after.kind = Subject::Kind::kPlain;
  EXPECT_GT(action.kind == Action::Kind::kDelete ? kNoDeadline : action.deadline_ms, kNow);
  (void)subject;
  return ">" + StateAfter(after);
}

TokenOrigin Live() { return TokenOrigin::kLive; }
uint64_t NextFence() { return kFence + 1; }

std::string DoReserve(const Subject& subject, const ReserveRequest& request) {
  const ReserveOutcome o = Reserve(subject, request, kNow, Limits(), &NextFence, &Live);
  if (o.error != LifeError::kNone) {
    EXPECT_EQ(o.action.kind, Action::Kind::kNone);
    return ErrorName(o.error);
  }
  // A fence is for those who may go ahead, and for nobody else.
  const bool go_ahead =
      o.reply.status == ReserveStatus::kReserved || o.reply.status == ReserveStatus::kHeld;
  EXPECT_EQ(o.reply.fence != 0, go_ahead);
  return ReserveStatusName(o.reply.status) + Effect(subject, o.action);
}

std::string Plainly(const Subject& subject) { return DoReserve(subject, {}); }
std::string WithMyClaim(const Subject& subject) {
  ReserveRequest request;
  request.claim = "me";
  return DoReserve(subject, request);
}
std::string Issued(const Subject& subject) {
  ReserveRequest request;
  request.issued = true;
  request.claim = "me";
  return DoReserve(subject, request);
}
std::string DoComplete(const Subject& subject, uint64_t fence) {
  CompleteRequest request;
  request.fence = fence;
  request.result = "ok";
  request.code = 200;
  const CompleteOutcome o = Complete(subject, request, kNow, Limits());
  if (o.error != LifeError::kNone) return ErrorName(o.error);
  const char* names[] = {"OK", "LATE", "NORESULT"};
  return names[static_cast<int>(o.status)] + Effect(subject, o.action);
}
std::string CompleteMine(const Subject& subject) { return DoComplete(subject, kFence); }
std::string CompleteOther(const Subject& subject) { return DoComplete(subject, kFence + 7); }
std::string DoFail(const Subject& subject) {
  const FailOutcome o = Fail(subject, kFence, 0, kNow);
  return o.error != LifeError::kNone ? ErrorName(o.error) : "OK" + Effect(subject, o.action);
}
std::string DoRelease(const Subject& subject) {
  const ReleaseOutcome o = Release(subject, kFence, kNow);
  return o.error != LifeError::kNone ? ErrorName(o.error)
                                     : std::to_string(o.released) + Effect(subject, o.action);
}
std::string DoExtend(const Subject& subject) {
  const ExtendOutcome o = Extend(subject, kFence, 5'000, kNow);
  return o.error != LifeError::kNone ? ErrorName(o.error)
                                     : std::to_string(o.lease_left_ms) + Effect(subject, o.action);
}
std::string DoCheckpoint(const Subject& subject) {
  const FencedOutcome o = Checkpoint(subject, kFence, "data", 0, kNow, Limits());
  return o.error != LifeError::kNone ? ErrorName(o.error) : "OK" + Effect(subject, o.action);
}
std::string DoConsume(const Subject& subject) {
  ConsumeRequest request;
  request.by = "me";
  const ConsumeOutcome o = Consume(subject, request, kNow, Limits(), &Live);
  return o.error != LifeError::kNone ? ErrorName(o.error)
                                     : ConsumeStatusName(o.status) + Effect(subject, o.action);
}
std::string DoTransition(const Subject& subject) {
  const auto listed = [](absl::string_view state) { return state == "1"; };
  const TransitionOutcome o = Transition(subject, "2", listed, true, {}, kNow, Limits());
  const char* names[] = {"MOVED", "ALREADY", "REFUSED"};
  return o.error != LifeError::kNone
             ? ErrorName(o.error)
             : names[static_cast<int>(o.status)] + Effect(subject, o.action);
}
std::string DoThrottle(const Subject& subject) {
  const ThrottleOutcome o =
      Throttle(subject, {.max_burst = 5, .count = 1, .period_ns = 1'000'000'000}, kNow * 1'000'000);
  return o.error != LifeError::kNone ? ErrorName(o.error) : o.limited ? "limited" : "allowed";
}

using Command = std::string (*)(const Subject&);
struct Column {
  const char* name;
  Command run;
};
constexpr Column kColumns[] = {
    {"RESERVE", &Plainly},
    {"RESERVE CLAIM", &WithMyClaim},
    {"RESERVE ISSUED", &Issued},
    {"COMPLETE", &CompleteMine},
    {"COMPLETE other", &CompleteOther},
    {"FAIL", &DoFail},
    {"RELEASE", &DoRelease},
    {"EXTEND", &DoExtend},
    {"CHECKPOINT", &DoCheckpoint},
    {"CONSUME", &DoConsume},
    {"TRANSITION", &DoTransition},
    {"THROTTLE", &DoThrottle},
};

struct Row {
  const char* name;
  Subject subject;
  std::vector<std::string> cells;
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = {
      // clang-format off
      {"absent", Absent(),
       {"RESERVED>pending1", "RESERVED>pending1", "DUPLICATE>=", "NOTFOUND", "NOTFOUND", "NOTFOUND",
        "0>=", "NOTFOUND", "NOTFOUND", "DUPLICATE>=", "MOVED>plain", "allowed"}},
      {"plain", Plain("1"),
       {"PENDING>=", "PENDING>=", "RESERVED>pending1", "NOTFOUND", "NOTFOUND", "NOTFOUND",
        "0>=", "NOTFOUND", "NOTFOUND", "CONSUMED>consumed", "MOVED>plain", "allowed"}},
      {"other type", OfKind(Subject::Kind::kOtherType),
       std::vector<std::string>(12, "WRONGTYPE")},
      {"damaged", OfKind(Subject::Kind::kDamaged),
       std::vector<std::string>(12, "DAMAGED")},
      {"consumed", Holding(ConsumedBy()),
       {"DUPLICATE>=", "DUPLICATE>=", "DUPLICATE>=", "CONFLICT", "CONFLICT", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "CONSUMED>=", "WRONGTYPE", "WRONGTYPE"}},
      {"pending", Holding(Pending()),
       {"PENDING>=", "HELD>=", "HELD>=", "OK>done1", "STALE", "OK>failed1",
        "1>absent", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"pending with token", Holding(WithToken(Pending())),
       {"PENDING>=", "PENDING>=", "HELD>=", "OK>done1", "STALE", "OK>failed1",
        "1>plain", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"pending with a past token", Holding(WithToken(Pending(), "1", kNow)),
       {"PENDING>=", "PENDING>=", "HELD>=", "OK>done1", "STALE", "OK>failed1",
        "1>absent", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"pending with checkpoint", Holding(WithPayload(Pending(), "x")),
       {"PENDING>=", "HELD>=", "HELD>=", "OK>done1", "STALE", "OK>failed1",
        "1>released1", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"lapsed", Holding(Lapsed()),
       {"RESERVED>pending2", "RESERVED>pending2", "DUPLICATE>=", "LATE>done-late1", "STALE", "OK>failed1",
        "1>absent", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"lapsed with token", Holding(WithToken(Lapsed())),
       {"PENDING>=", "PENDING>=", "RESERVED>pending2", "LATE>done-late1", "STALE", "OK>failed1",
        "1>plain", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"lapsed with a past token", Holding(WithToken(Lapsed(), "1", kNow)),
       {"PENDING>=", "PENDING>=", "DUPLICATE>=", "LATE>done-late1", "STALE", "OK>failed1",
        "1>absent", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"unknown", Holding(Unknown()),
       {"UNKNOWN>=", "UNKNOWN>=", "UNKNOWN>=", "LATE>done-late1", "STALE", "OK>failed1",
        "1>absent", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"unknown with token", Holding(WithToken(Unknown())),
       {"UNKNOWN>=", "UNKNOWN>=", "UNKNOWN>=", "LATE>done-late1", "STALE", "OK>failed1",
        "1>plain", "5000>pending1", "OK>pending1", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"released", Holding(ReleasedRecord()),
       {"RESERVED>pending2", "RESERVED>pending2", "DUPLICATE>=", "STALE", "STALE", "STALE",
        "1>=", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"released with token", Holding(WithToken(ReleasedRecord())),
       {"PENDING>=", "PENDING>=", "RESERVED>pending2", "STALE", "STALE", "STALE",
        "1>=", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"failed", Holding(Failed(0)),
       {"RESERVED>pending2", "RESERVED>pending2", "DUPLICATE>=", "LATE>done-late1", "STALE", "OK>=",
        "STALE", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"failed, delay runs", Holding(Failed(5'000)),
       {"PENDING>=", "PENDING>=", "DUPLICATE>=", "LATE>done-late1", "STALE", "OK>=",
        "STALE", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"failed with token", Holding(WithToken(Failed(0))),
       {"PENDING>=", "PENDING>=", "RESERVED>pending2", "LATE>done-late1", "STALE", "OK>=",
        "STALE", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"failed with token, delay runs", Holding(WithToken(Failed(5'000))),
       {"PENDING>=", "PENDING>=", "PENDING>=", "LATE>done-late1", "STALE", "OK>=",
        "STALE", "STALE", "STALE", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done", Holding(Done()),
       {"DONE>=", "DONE>=", "DONE>=", "OK>=", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done with token", Holding(WithToken(Done())),
       {"DONE>=", "DONE>=", "DONE>=", "OK>=", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done, another answer", Holding(Done("other")),
       {"DONE>=", "DONE>=", "DONE>=", "CONFLICT", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done, another code", Holding(Done("ok", 0)),
       {"DONE>=", "DONE>=", "DONE>=", "CONFLICT", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done, result not kept", Holding(DoneWithoutResult()),
       {"DONE>=", "DONE>=", "DONE>=", "NORESULT>=", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      {"done, another result not kept", Holding(DoneWithoutResult("other")),
       {"DONE>=", "DONE>=", "DONE>=", "CONFLICT", "STALE", "CONFLICT",
        "CONFLICT", "CONFLICT", "CONFLICT", "DUPLICATE>=", "WRONGTYPE", "WRONGTYPE"}},
      // clang-format on
  };
  return rows;
}

TEST(LifePairs, EveryStateAgainstEveryCommand) {
  for (const Row& row : Rows()) {
    ASSERT_EQ(row.cells.size(), std::size(kColumns)) << row.name;
    for (size_t i = 0; i < std::size(kColumns); ++i)
      EXPECT_EQ(kColumns[i].run(row.subject), row.cells[i])
          << row.name << " / " << kColumns[i].name;
  }
}

TEST(LifePairs, EveryOtherFenceIsStaleWhereverThereIsAReservation) {
  for (const Row& row : Rows()) {
    if (row.subject.kind != Subject::Kind::kRecord) continue;
    const bool consumed = row.subject.record.state == RecordState::kConsumed;
    const LifeError expected = consumed ? LifeError::kConflict : LifeError::kStale;
    for (uint64_t fence : {uint64_t{1}, kFence - 1, kFence + 1, ~uint64_t{0}}) {
      EXPECT_EQ(Complete(row.subject, {.fence = fence}, kNow, Limits()).error, expected);
      EXPECT_EQ(Fail(row.subject, fence, 0, kNow).error, expected) << row.name;
      EXPECT_EQ(Release(row.subject, fence, kNow).error, expected) << row.name;
      EXPECT_EQ(Extend(row.subject, fence, 1, kNow).error, expected) << row.name;
      EXPECT_EQ(Checkpoint(row.subject, fence, "", 0, kNow, Limits()).error, expected) << row.name;
    }
  }
}

TEST(LifePairs, AtTheMemoryLimitOnlyNewClaimsAreRefused) {
  Limits full;
  full.out_of_memory = true;
  for (const Row& row : Rows()) {
    for (bool issued : {false, true}) {
      ReserveRequest request;
      request.issued = issued;
      const ReserveOutcome room = Reserve(row.subject, request, kNow, Limits(), &NextFence, &Live);
      const ReserveOutcome none = Reserve(row.subject, request, kNow, full, &NextFence, &Live);
      const bool is_new = room.error == LifeError::kNone &&
                          room.reply.status == ReserveStatus::kReserved && !room.took_over;
      EXPECT_EQ(none.error, is_new ? LifeError::kOutOfMemory : room.error) << row.name;
      if (is_new) {
        EXPECT_EQ(none.action.kind, Action::Kind::kNone);
      }
    }
    EXPECT_EQ(Checkpoint(row.subject, kFence, "a longer one", 0, kNow, full).error,
              Checkpoint(row.subject, kFence, "a longer one", 0, kNow, Limits()).error);
    EXPECT_EQ(Consume(row.subject, {.by = "me"}, kNow, full, &Live).status,
              Consume(row.subject, {.by = "me"}, kNow, Limits(), &Live).status);
    EXPECT_EQ(Complete(row.subject, {.fence = kFence}, kNow, full).error,
              Complete(row.subject, {.fence = kFence}, kNow, Limits()).error);
  }
}

}  // namespace
}  // namespace idemd::storage
