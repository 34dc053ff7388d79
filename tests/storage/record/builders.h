// Records and subjects in the shapes that tests need, all at one fixed time.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/record/life.h"
#include "storage/record/record.h"

namespace idemd::storage {

inline constexpr int64_t kNow = 1'700'000'000'000;
inline constexpr int64_t kHour = 3'600'000;
inline constexpr int64_t kDay = 86'400'000;
inline constexpr uint64_t kFence = 1'740'800'000'000'123;

// A live claim of 30 s, made 10 s ago, kept a day.
inline Record Pending() {
  Record r;
  r.fence = kFence;
  r.attempt = 1;
  r.since_ms = kNow - 10'000;
  r.lease_end_ms = kNow + 20'000;
  r.lease_ms = 30'000;
  r.keep_ms = kDay;
  r.has_claim = true;
  r.claim = "me";
  return r;
}

inline Record Lapsed() {
  Record r = Pending();
  r.lease_end_ms = kNow - 1'000;
  return r;
}

inline Record Unknown() {
  Record r = Lapsed();
  r.stop = true;
  return r;
}

inline Record ReleasedRecord() {
  Record r = Pending();
  r.has_claim = false;
  r.claim = {};
  r.has_after = true;
  r.after_ms = 0;
  return r;
}

inline Record Failed(int64_t retry_in_ms) {
  Record r = Pending();
  r.state = RecordState::kFailed;
  r.lease_end_ms = kNow - 500;
  r.has_after = true;
  r.after_ms = kNow + retry_in_ms;
  return r;
}

inline Record Done(absl::string_view result = "ok", int64_t code = 200) {
  Record r = Pending();
  r.state = RecordState::kDone;
  r.lease_end_ms = kNow - 500;
  r.has_code = code != 0;
  r.code = code;
  r.has_payload = true;
  r.payload = result;
  return r;
}

inline Record DoneWithoutResult(absl::string_view result = "ok") {
  Record r = Done(result);
  r.has_payload = false;
  r.payload = {};
  r.has_digest = true;
  r.digest = ResultDigest(result);
  return r;
}

inline Record ConsumedBy(absl::string_view by = "me", absl::string_view value = "1") {
  Record r;
  r.state = RecordState::kConsumed;
  r.since_ms = kNow - 10'000;
  r.has_claim = true;
  r.claim = by;
  r.has_token = true;
  r.token = value;
  r.token_expiry_ms = kNow + kHour;
  return r;
}

inline Record WithToken(Record r, absl::string_view value = "1", int64_t expiry_ms = kNow + kHour) {
  r.has_token = true;
  r.token = value;
  r.token_expiry_ms = expiry_ms;
  return r;
}

inline Record WithPayload(Record r, absl::string_view payload) {
  r.has_payload = true;
  r.payload = payload;
  return r;
}

inline Subject Absent() { return {}; }
inline Subject Plain(absl::string_view value, int64_t deadline_ms = kNow + kHour) {
  Subject s;
  s.kind = Subject::Kind::kPlain;
  s.plain = value;
  s.deadline_ms = deadline_ms;
  return s;
}
inline Subject Holding(const Record& record, int64_t deadline_ms = kNow + kDay) {
  Subject s;
  s.kind = Subject::Kind::kRecord;
  s.record = record;
  s.deadline_ms = deadline_ms;
  return s;
}
inline Subject OfKind(Subject::Kind kind) {
  Subject s;
  s.kind = kind;
  return s;
}

inline std::string Text(const Record& record) {
  std::string text;
  AppendText(record, text);
  return text;
}

// What the key holds after the action, as one line; times relative to kNow would hide nothing, so
// they stay.
inline std::string Describe(const Action& action) {
  const std::string deadline =
      action.deadline_ms == kNoDeadline ? "forever" : std::to_string(action.deadline_ms - kNow);
  switch (action.kind) {
    case Action::Kind::kNone:
      return "-";
    case Action::Kind::kDelete:
      return "deleted";
    case Action::Kind::kSetPlain:
      return "plain " + std::string(action.plain) + " for " + deadline;
    case Action::Kind::kSetRecord:
      return Text(action.record) + " for " + deadline;
  }
  return "?";
}

inline const char* ErrorName(LifeError error) {
  switch (error) {
    case LifeError::kNone:
      return "none";
    case LifeError::kWrongType:
      return "WRONGTYPE";
    case LifeError::kDamagedRecord:
      return "DAMAGED";
    case LifeError::kOutOfMemory:
      return "OOM";
    case LifeError::kNotFound:
      return "NOTFOUND";
    case LifeError::kStale:
      return "STALE";
    case LifeError::kConflict:
      return "CONFLICT";
    case LifeError::kTooLarge:
      return "TOOLARGE";
    case LifeError::kRange:
      return "RANGE";
  }
  return "?";
}

}  // namespace idemd::storage
