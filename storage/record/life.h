// The life of a record: (what the key holds, request, time) -> (reply, what to write).
//
// Pure functions: no table, socket, clock or allocation. The host looks the key up under its lock, calls one of these,
// applies the action and sends the reply; idemd's store, a module inside another server and a replica all do the same.
// The contract is the commands page; each function's comment says only what the page leaves to the reader.
// Lifetime  views in outcomes point into the subject or the request; apply the action while both are alive.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "storage/record/record.h"

namespace idemd::storage {

// What the key text says about a token, without any memory (storage/token/token.h reads it).
enum class TokenOrigin : uint8_t {
  kUnissued,  // never issued here
  kLive,      // issued here, still in its lifetime
  kExpired,   // issued here, past its lifetime
};

// What a key holds when a command looks at it. Expired keys are absent.
struct Subject {
  enum class Kind : uint8_t { kAbsent, kPlain, kRecord, kDamaged, kOtherType };
  Kind kind = Kind::kAbsent;
  absl::string_view plain;            // kPlain
  Record record;                      // kRecord
  int64_t deadline_ms = kNoDeadline;  // of the key
};

// How long a key is to be remembered, as the caller said it.
struct Lifetime {
  enum class Kind : uint8_t { kDefault, kDuration, kAbsolute, kForever };
  Kind kind = Kind::kDefault;
  int64_t ms = 0;  // kDuration: > 0; kAbsolute: unix ms, checked to be ahead of now by the caller
};

struct Limits {
  int64_t retention_ms = 86'400'000;  // idem-retention
  int64_t lease_ms = 30'000;          // idem-lease
  int64_t max_result_bytes = 1 << 20; // idem-max-result
  bool out_of_memory = false;         // at the memory limit: new claims are refused, results are not kept
};

// What to do with the key after the decision.
struct Action {
  enum class Kind : uint8_t {
    kNone,
    kSetRecord,   // write `record` with `deadline_ms`
    kSetPlain,    // write the string `plain` with `deadline_ms` (a token given back)
    kDelete,
  };
  Kind kind = Kind::kNone;
  Record record;
  absl::string_view plain;
  int64_t deadline_ms = kNoDeadline;
};

// What went wrong, where it is an error and not an answer. Texts: protocol/errors.h.
enum class LifeError : uint8_t {
  kNone,
  kWrongType,
  kDamagedRecord,  // begins with idem/ and is no record of this version
  kOutOfMemory,
  kNotFound,
  kStale,
  kConflict,
  kTooLarge,       // checkpoint above max_result_bytes
  kRange,          // a time or length that overflows
};

// --- IDEM.RESERVE (one key; MRESERVE calls it for each and applies all or none)
enum class ReserveStatus : uint8_t {
  kReserved, kHeld, kPending, kDone, kMismatch, kUnknown, kDuplicate, kExpired, kUnissued, kRefused,
};
const char* ReserveStatusName(ReserveStatus status);

struct ReserveRequest {
  absl::string_view claim = {};        // empty: none
  absl::string_view fingerprint = {};  // empty: none
  int64_t lease_ms = 0;           // 0: the default
  Lifetime lifetime = {};
  bool stop = false;
  bool issued = false;
  bool has_ifeq = false;
  absl::string_view ifeq = {};
};

struct ReserveReply {
  ReserveStatus status = ReserveStatus::kReserved;
  uint64_t fence = 0;
  uint64_t attempt = 0;
  int64_t ms = 0;
  int64_t code = 0;
  bool has_payload = false;
  absl::string_view payload;
};

struct ReserveOutcome {
  LifeError error = LifeError::kNone;
  ReserveReply reply;
  Action action;
  bool took_over = false;  // RESERVED, and an earlier attempt had lapsed, failed or been released
};

// `next_fence` is called once, and only when the claim is granted. `origin` is asked for only when the key's text has to
// tell why there is no right (ISSUED).
ReserveOutcome Reserve(const Subject& subject, const ReserveRequest& request, int64_t now_ms, const Limits& limits,
                       absl::FunctionRef<uint64_t()> next_fence, absl::FunctionRef<TokenOrigin()> origin);

// When a PENDING answer will next change by itself: the lease's or delay's end, or the key's deadline; kNoDeadline if
// only another command can change it.
int64_t NextChange(const Subject& subject, int64_t now_ms);

// --- the fenced commands
struct FencedOutcome {
  LifeError error = LifeError::kNone;
  Action action;
};

enum class CompleteStatus : uint8_t { kOk, kLate, kNoResult };
struct CompleteRequest {
  uint64_t fence = 0;
  absl::string_view result = {};
  int64_t code = 0;
  Lifetime lifetime = {};
};
struct CompleteOutcome : FencedOutcome {
  CompleteStatus status = CompleteStatus::kOk;
  bool late = false;    // also when status is kNoResult
  bool repeat = false;  // nothing changed: the same answer again
};
CompleteOutcome Complete(const Subject& subject, const CompleteRequest& request, int64_t now_ms, const Limits& limits);

struct FailOutcome : FencedOutcome {
  bool repeat = false;
};
FailOutcome Fail(const Subject& subject, uint64_t fence, int64_t after_ms /* 0: at once */, int64_t now_ms);

struct ReleaseOutcome : FencedOutcome {
  int64_t released = 0;  // the integer reply
  bool repeat = false;
};
ReleaseOutcome Release(const Subject& subject, uint64_t fence, int64_t now_ms);

struct ExtendOutcome : FencedOutcome {
  int64_t lease_left_ms = 0;
};
ExtendOutcome Extend(const Subject& subject, uint64_t fence, int64_t lease_ms, int64_t now_ms);

FencedOutcome Checkpoint(const Subject& subject, uint64_t fence, absl::string_view data,
                         int64_t lease_ms /* 0: the length last asked for */, int64_t now_ms, const Limits& limits);

// --- IDEM.CONSUME
enum class ConsumeStatus : uint8_t { kConsumed, kDuplicate, kExpired, kRefused, kUnissued };
const char* ConsumeStatusName(ConsumeStatus status);
struct ConsumeRequest {
  bool has_ifeq = false;
  absl::string_view ifeq = {};
  absl::string_view by = {};  // empty: none
};
struct ConsumeOutcome {
  LifeError error = LifeError::kNone;
  ConsumeStatus status = ConsumeStatus::kConsumed;
  bool repeat = false;  // CONSUMED again for the same BY
  Action action;
};
ConsumeOutcome Consume(const Subject& subject, const ConsumeRequest& request, int64_t now_ms, const Limits& limits,
                       absl::FunctionRef<TokenOrigin()> origin);

// --- IDEM.STATUS: the state word at a time.
enum class StatusWord : uint8_t { kIssued, kPending, kLapsed, kUnknown, kFailed, kDone, kConsumed };
const char* StatusWordName(StatusWord word);
StatusWord StatusAt(const Record& record, int64_t now_ms);

// --- IDEM.TRANSITION
enum class TransitionStatus : uint8_t { kMoved, kAlready, kRefused };
struct TransitionOutcome {
  LifeError error = LifeError::kNone;
  TransitionStatus status = TransitionStatus::kMoved;
  bool has_state = false;    // false: nil (the key is absent)
  absl::string_view state;   // MOVED: from; ALREADY: to; REFUSED: current
  Action action;
};
TransitionOutcome Transition(const Subject& subject, absl::string_view to,
                             absl::FunctionRef<bool(absl::string_view)> listed, bool init, const Lifetime& lifetime,
                             int64_t now_ms, const Limits& limits);

// --- IDEM.THROTTLE: the generic cell rate algorithm (ATM Forum TM 4.0, virtual scheduling form), in nanoseconds.
struct ThrottleRequest {
  int64_t max_burst = 0;
  int64_t count = 0;
  int64_t period_ns = 0;
  int64_t cost = 1;
  bool store = true;  // false: PEEK
};
struct ThrottleOutcome {
  LifeError error = LifeError::kNone;
  bool bad_state = false;  // the string is no integer
  bool limited = false;
  int64_t limit = 0;
  int64_t remaining = 0;
  int64_t retry_after_ns = -1;
  int64_t reset_after_ns = 0;
  bool write = false;
  int64_t tat_ns = 0;       // the new state: theoretical arrival time
  int64_t deadline_ms = 0;
};
ThrottleOutcome Throttle(const Subject& subject, const ThrottleRequest& request, int64_t now_ns);

}  // namespace idemd::storage
