// The contract in as few words as it takes; nothing is shared with the server but the word for
// "never".
#include "tests/fuzz/key_model.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::fuzz {
namespace {

using storage::kNoDeadline;

constexpr int64_t kRetentionMs = 86'400'000;  // idem-retention
constexpr int64_t kConsumedKeepMs = 60'000;
const char* const kOk = "+OK\r\n";
const char* const kNil = "$-1\r\n";
const char* const kWrongType = "-WRONGTYPE";
const char* const kStale = "-STALE";
const char* const kConflict = "-CONFLICT";
const char* const kNotFound = "-NOTFOUND";

std::string Integer(int64_t n) { return absl::StrCat(":", n, "\r\n"); }
std::string Bulk(const std::string& text) {
  return absl::StrCat("$", text.size(), "\r\n", text, "\r\n");
}
std::string Simple(const char* text) { return absl::StrCat("+", text, "\r\n"); }

bool IsInteger(const std::string& text, int64_t* n) {
  *n = std::strtoll(text.c_str(), nullptr, 10);
  return std::to_string(*n) == text;
}

}  // namespace

std::string KeyModel::Held::Text() const {
  if (plain()) return value;
  constexpr const char* kWords[] = {"", "pending", "failed", "done", "consumed"};
  std::string line = absl::StrCat(
      "idem/1 state=", kWords[static_cast<int>(state)], " fence=", fence, " attempt=", attempt,
      " since=", since_ms, " lease=", lease_end_ms, " lease-ms=", lease_ms, " keep-ms=", keep_ms);
  if (!claim.empty()) absl::StrAppend(&line, " claim=", claim);
  if (!fingerprint.empty()) absl::StrAppend(&line, " fp=", fingerprint);
  if (stop) line += " onlapse=stop";
  if (after_ms.has_value()) absl::StrAppend(&line, " after=", *after_ms);
  if (code != 0) absl::StrAppend(&line, " code=", code);
  if (token.has_value()) absl::StrAppend(&line, " token=", *token);
  if (token.has_value() && token_expiry_ms != kNoDeadline)
    absl::StrAppend(&line, " token-expiry=", token_expiry_ms);
  return absl::StrCat(line, " payload=", has_payload ? "raw" : "none", "\n", value);
}

KeyModel::Held* KeyModel::Find(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return nullptr;
  if (found->second.deadline_ms > now_ms_) return &found->second;
  keys_.erase(found);
  return nullptr;
}

std::map<std::string, KeyModel::Shown> KeyModel::Contents() {
  std::map<std::string, Shown> contents;
  for (const auto& [key, held] : keys_) {
    if (held.deadline_ms > now_ms_) contents[key] = {held.Text(), held.deadline_ms};
  }
  return contents;
}

// --- strings

std::string KeyModel::Set(const std::string& key, const std::string& value,
                          std::optional<int64_t> lifetime_ms, bool keep_deadline, SetOnly only) {
  const Held* const before = Find(key);
  if ((only == SetOnly::kIfAbsent && before != nullptr) ||
      (only == SetOnly::kIfThere && before == nullptr))
    return kNil;
  Held held;
  held.value = value;
  if (keep_deadline && before != nullptr) held.deadline_ms = before->deadline_ms;
  if (lifetime_ms.has_value()) held.deadline_ms = now_ms_ + *lifetime_ms;
  keys_[key] = std::move(held);
  return kOk;
}

std::string KeyModel::Get(const std::string& key) {
  const Held* const held = Find(key);
  return held == nullptr ? kNil : Bulk(held->Text());
}

std::string KeyModel::GetDel(const std::string& key) {
  std::string reply = Get(key);
  keys_.erase(key);
  return reply;
}

std::string KeyModel::IncrBy(const std::string& key, int64_t by) {
  Held* held = Find(key);
  int64_t n = 0;
  if (held != nullptr && !held->plain()) return kWrongType;
  if (held != nullptr && !IsInteger(held->value, &n)) return "-ERR";
  if (__builtin_add_overflow(n, by, &n)) return "-ERR";
  if (held == nullptr) held = &keys_[key];
  held->value = std::to_string(n);
  return Integer(n);
}

std::string KeyModel::Append(const std::string& key, const std::string& text) {
  Held* held = Find(key);
  if (held != nullptr && !held->plain()) return kWrongType;
  if (held == nullptr) held = &keys_[key];
  held->value += text;
  return Integer(static_cast<int64_t>(held->value.size()));
}

std::string KeyModel::Delete(const std::vector<std::string>& keys) {
  int64_t deleted = 0;
  for (const std::string& key : keys) {
    if (Find(key) == nullptr) continue;
    keys_.erase(key);
    ++deleted;
  }
  return Integer(deleted);
}

std::string KeyModel::Rename(const std::string& from, const std::string& to) {
  Held* const held = Find(from);
  if (held == nullptr) return "-ERR";
  if (from == to) return kOk;
  keys_[to] = *held;
  keys_.erase(from);
  return kOk;
}

std::string KeyModel::Expire(const std::string& key, int64_t ms) {
  Held* const held = Find(key);
  if (held == nullptr) return Integer(0);
  held->deadline_ms = now_ms_ + ms;
  return Integer(1);
}

std::string KeyModel::Persist(const std::string& key) {
  Held* const held = Find(key);
  if (held == nullptr || held->deadline_ms == kNoDeadline) return Integer(0);
  held->deadline_ms = kNoDeadline;
  return Integer(1);
}

std::string KeyModel::TimeLeft(const std::string& key) {
  const Held* const held = Find(key);
  if (held == nullptr) return Integer(-2);
  return Integer(held->deadline_ms == kNoDeadline ? -1 : held->deadline_ms - now_ms_);
}

std::string KeyModel::FlushDb() {
  keys_.clear();
  return kOk;
}

// --- tokens

void KeyModel::Issued(const std::string& key, const std::string& value, int64_t lifetime_ms) {
  Held& held = keys_[key];
  held.value = value;
  held.deadline_ms = issued_[key] = now_ms_ + lifetime_ms;
}

const char* KeyModel::Origin(const std::string& key) const {
  const auto issued = issued_.find(key);
  if (issued == issued_.end()) return "UNISSUED";
  return issued->second > now_ms_ ? "DUPLICATE" : "EXPIRED";
}

std::string KeyModel::Consume(const std::string& key, const std::optional<std::string>& if_equal,
                              const std::string& by) {
  Held* const held = Find(key);
  if (held == nullptr) return Simple(Origin(key));
  if (!held->plain()) {
    if (held->state != State::kConsumed) return Simple("DUPLICATE");
    if (if_equal.has_value() && *if_equal != *held->token) return Simple("REFUSED");
    return Simple(!by.empty() && by == held->claim ? "CONSUMED" : "DUPLICATE");
  }
  if (if_equal.has_value() && *if_equal != held->value) return Simple("REFUSED");
  if (by.empty()) {
    keys_.erase(key);
    return Simple("CONSUMED");
  }
  Held consumed;
  consumed.state = State::kConsumed;
  consumed.since_ms = now_ms_;
  consumed.claim = by;
  consumed.token = held->value;
  consumed.token_expiry_ms = held->deadline_ms;
  consumed.deadline_ms = held->deadline_ms == kNoDeadline
                             ? now_ms_ + kRetentionMs
                             : std::max(held->deadline_ms, now_ms_ + kConsumedKeepMs);
  *held = std::move(consumed);
  return Simple("CONSUMED");
}

// --- reservations

std::string KeyModel::ReserveReply(const char* status, uint64_t fence, uint64_t attempt, int64_t ms,
                                   int64_t code, const Held* payload_of) const {
  const bool payload = payload_of != nullptr && payload_of->has_payload;
  return absl::StrCat("*6\r\n", Bulk(status), ":", fence, "\r\n:", attempt, "\r\n", Integer(ms),
                      Integer(code), payload ? Bulk(payload_of->value) : kNil);
}

std::string KeyModel::Take(const std::string& key, Held held, const Reserving& how) {
  const Held before = held;
  held.state = State::kPending;
  held.fence = ++fence_;
  held.attempt += 1;
  held.claim = how.claim;
  held.lease_ms = how.lease_ms;
  held.lease_end_ms = now_ms_ + how.lease_ms;
  held.after_ms.reset();
  held.stop = held.stop || how.stop;
  if (held.fingerprint.empty()) held.fingerprint = how.fingerprint;
  held.deadline_ms = std::max(held.deadline_ms, held.lease_end_ms);
  keys_[key] = held;
  return ReserveReply("RESERVED", held.fence, held.attempt, how.lease_ms, 0, &before);
}

std::string KeyModel::Reserve(const std::string& key, const Reserving& how) {
  const Held* const held = Find(key);
  if (held == nullptr || held->plain()) {
    if (held == nullptr && how.issued) return ReserveReply(Origin(key), 0, 0, 0);
    if (held != nullptr && !how.issued)
      return ReserveReply("PENDING", 0, 0,
                          held->deadline_ms == kNoDeadline ? -1 : held->deadline_ms - now_ms_);
    if (held != nullptr && how.if_equal.has_value() && *how.if_equal != held->value)
      return ReserveReply("REFUSED", 0, 0, 0);
    Held fresh;
    fresh.since_ms = now_ms_;
    fresh.keep_ms = how.lifetime_ms.value_or(kRetentionMs);
    fresh.deadline_ms = now_ms_ + fresh.keep_ms;
    if (held != nullptr) {
      fresh.token = held->value;
      fresh.token_expiry_ms = held->deadline_ms;
      fresh.deadline_ms = std::max(fresh.deadline_ms, held->deadline_ms);
    }
    return Take(key, std::move(fresh), how);
  }
  if (held->state == State::kConsumed) return ReserveReply("DUPLICATE", 0, 0, 0);
  if (how.issued && how.if_equal.has_value() && held->token.has_value() &&
      *held->token != *how.if_equal)
    return ReserveReply("REFUSED", 0, 0, 0);
  const int64_t left = held->deadline_ms == kNoDeadline ? -1 : held->deadline_ms - now_ms_;
  const auto at_most = [&](int64_t ms) { return left < 0 ? ms : std::min(ms, left); };
  if (!how.fingerprint.empty() && !held->fingerprint.empty() &&
      how.fingerprint != held->fingerprint)
    return ReserveReply("MISMATCH", 0, held->attempt, left);
  if (held->state == State::kDone)
    return ReserveReply("DONE", 0, held->attempt, left, held->code, held);
  if (held->state == State::kPending && !held->released()) {
    const int64_t lease_left = held->lease_end_ms - now_ms_;
    if (lease_left > 0) {
      if ((how.issued || !held->token.has_value()) && !how.claim.empty() &&
          how.claim == held->claim)
        return ReserveReply("HELD", held->fence, held->attempt, lease_left, 0, held);
      return ReserveReply("PENDING", 0, held->attempt, at_most(lease_left));
    }
    if (held->stop) return ReserveReply("UNKNOWN", 0, held->attempt, -lease_left, 0, held);
  }
  // Nobody is at work.
  if (how.issued && !held->token.has_value()) return ReserveReply("DUPLICATE", 0, 0, 0);
  if (how.issued && held->token_expiry_ms <= now_ms_) return ReserveReply(Origin(key), 0, 0, 0);
  if (held->state == State::kFailed && *held->after_ms > now_ms_)
    return ReserveReply("PENDING", 0, held->attempt, at_most(*held->after_ms - now_ms_));
  if (!how.issued && held->token.has_value())
    return ReserveReply("PENDING", 0, held->attempt, left);
  return Take(key, *held, how);
}

std::string KeyModel::FenceError(const Held* held, uint64_t fence) const {
  if (held == nullptr || held->plain()) return kNotFound;
  if (held->state == State::kConsumed) return kConflict;
  return held->fence == fence ? "" : kStale;
}

std::string KeyModel::ClaimError(const Held* held, uint64_t fence) const {
  std::string error = FenceError(held, fence);
  if (!error.empty()) return error;
  if (held->state == State::kDone) return kConflict;
  return held->state == State::kFailed || held->released() ? kStale : "";
}

std::string KeyModel::Complete(const std::string& key, uint64_t fence, const std::string& result,
                               int64_t code) {
  Held* const held = Find(key);
  if (std::string error = FenceError(held, fence); !error.empty()) return error;
  if (held->state == State::kDone) {
    if (held->value != result || held->code != code) return kConflict;
    return held->after_ms.has_value() ? Simple("LATE") : kOk;
  }
  if (held->released()) return kStale;
  const bool failed = held->state == State::kFailed;
  const bool late = failed || held->lease_end_ms <= now_ms_;
  if (!late) held->after_ms.reset();
  if (late && !failed) held->after_ms = held->lease_end_ms;
  held->state = State::kDone;
  held->lease_end_ms = std::min(held->lease_end_ms, now_ms_);
  held->value = result;
  held->has_payload = true;
  held->code = code;
  held->deadline_ms = std::max(held->deadline_ms, now_ms_ + held->keep_ms);
  return late ? Simple("LATE") : kOk;
}

std::string KeyModel::Fail(const std::string& key, uint64_t fence, int64_t after_ms) {
  Held* const held = Find(key);
  if (FenceError(held, fence).empty() && held->state == State::kFailed) return kOk;
  if (std::string error = ClaimError(held, fence); !error.empty()) return error;
  held->state = State::kFailed;
  held->after_ms = now_ms_ + after_ms;
  held->lease_end_ms = std::min(held->lease_end_ms, now_ms_);
  held->deadline_ms = std::max(held->deadline_ms, *held->after_ms);
  return kOk;
}

std::string KeyModel::Release(const std::string& key, uint64_t fence) {
  Held* const held = Find(key);
  if (held == nullptr || held->plain()) return Integer(0);
  if (FenceError(held, fence).empty() && held->released()) return Integer(1);
  if (std::string error = ClaimError(held, fence); !error.empty()) return error;
  if (held->attempt == 1 && !held->has_payload) {
    if (!held->token.has_value() || held->token_expiry_ms <= now_ms_) {
      keys_.erase(key);
      return Integer(1);
    }
    Held token;
    token.value = *held->token;
    token.deadline_ms = held->token_expiry_ms;
    *held = std::move(token);
    return Integer(1);
  }
  held->attempt = std::max<uint64_t>(1, held->attempt - 1);
  held->claim.clear();
  held->after_ms = 0;
  held->lease_end_ms = std::min(held->lease_end_ms, now_ms_);
  return Integer(1);
}

std::string KeyModel::Extend(const std::string& key, uint64_t fence, int64_t lease_ms) {
  Held* const held = Find(key);
  if (std::string error = ClaimError(held, fence); !error.empty()) return error;
  held->lease_ms = lease_ms;
  held->lease_end_ms = now_ms_ + lease_ms;
  held->deadline_ms = std::max(held->deadline_ms, held->lease_end_ms);
  return Integer(lease_ms);
}

std::string KeyModel::Checkpoint(const std::string& key, uint64_t fence, const std::string& data) {
  Held* const held = Find(key);
  if (std::string error = ClaimError(held, fence); !error.empty()) return error;
  held->lease_end_ms = now_ms_ + held->lease_ms;
  held->deadline_ms = std::max(held->deadline_ms, held->lease_end_ms);
  held->value = data;
  held->has_payload = true;
  return kOk;
}

std::string KeyModel::Transition(const std::string& key, const std::string& to,
                                 const std::vector<std::string>& from, bool init) {
  Held* const held = Find(key);
  if (held != nullptr && !held->plain()) return kWrongType;
  const std::string current = held == nullptr ? kNil : Bulk(held->value);
  const auto reply = [](const char* status, const std::string& state) {
    return absl::StrCat("*2\r\n", Bulk(status), state);
  };
  if (held != nullptr && held->value == to) return reply("ALREADY", current);
  const bool listed =
      held == nullptr ? init : std::find(from.begin(), from.end(), held->value) != from.end();
  if (!listed) return reply("REFUSED", current);
  keys_[key].value = to;
  return reply("MOVED", current);
}

}  // namespace idemd::fuzz
