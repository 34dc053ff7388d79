// What keys hold, as the commands page says: a second, plain implementation to hold a server
// against.
//
// Each method is a command on keys of database 0 and gives the reply in RESP2; of an error its
// word. Texts that are put into records need no percent-encoding. Expiry is exact: what has a
// deadline at or before now is not there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/clock.h"

namespace idemd::fuzz {

class KeyModel {
 public:
  explicit KeyModel(int64_t now_ms) : now_ms_(now_ms) {}

  struct Reserving {
    std::string claim;
    int64_t lease_ms = 0;
    std::optional<int64_t> lifetime_ms;
    std::string fingerprint;
    bool stop = false;
    bool issued = false;
    std::optional<std::string> if_equal;
  };
  enum class SetOnly { kAlways, kIfAbsent, kIfThere };

  int64_t now_ms() const { return now_ms_; }
  void Pass(int64_t ms) { now_ms_ += ms; }
  // The server says how far it is when it starts; from there it counts.
  uint64_t fence() const { return fence_; }
  void set_fence(uint64_t last) { fence_ = last; }

  // --- strings
  std::string Set(const std::string& key, const std::string& value,
                  std::optional<int64_t> lifetime_ms, bool keep_deadline, SetOnly only);
  std::string Get(const std::string& key);
  std::string GetDel(const std::string& key);
  std::string IncrBy(const std::string& key, int64_t by);
  std::string Append(const std::string& key, const std::string& text);
  std::string Delete(const std::vector<std::string>& keys);
  std::string Rename(const std::string& from, const std::string& to);
  std::string Expire(const std::string& key, int64_t ms);
  std::string Persist(const std::string& key);
  std::string TimeLeft(const std::string& key);
  std::string FlushDb();

  // --- tokens; the server made this one.
  void Issued(const std::string& key, const std::string& value, int64_t lifetime_ms);
  std::string Consume(const std::string& key, const std::optional<std::string>& if_equal,
                      const std::string& by);

  // --- reservations
  std::string Reserve(const std::string& key, const Reserving& how);
  std::string Complete(const std::string& key, uint64_t fence, const std::string& result,
                       int64_t code);
  std::string Fail(const std::string& key, uint64_t fence, int64_t after_ms);
  std::string Release(const std::string& key, uint64_t fence);
  std::string Extend(const std::string& key, uint64_t fence, int64_t lease_ms);
  std::string Checkpoint(const std::string& key, uint64_t fence, const std::string& data);
  std::string Transition(const std::string& key, const std::string& to,
                         const std::vector<std::string>& from, bool init);

  struct Shown {
    std::string value;
    int64_t deadline_ms;
  };
  // As GET shows it.
  std::map<std::string, Shown> Contents();

 private:
  enum class State { kPlain, kPending, kFailed, kDone, kConsumed };
  struct Held {
    State state = State::kPlain;
    std::string value;  // kPlain; else the payload
    int64_t deadline_ms = storage::kNoDeadline;
    // Of records.
    uint64_t fence = 0, attempt = 0;
    int64_t since_ms = 0, lease_end_ms = 0, lease_ms = 0, keep_ms = 0, code = 0;
    std::string claim, fingerprint;
    bool stop = false, has_payload = false;
    std::optional<int64_t> after_ms;
    std::optional<std::string> token;
    int64_t token_expiry_ms = storage::kNoDeadline;

    bool plain() const { return state == State::kPlain; }
    bool released() const { return state == State::kPending && after_ms.has_value(); }
    std::string Text() const;
  };

  Held* Find(const std::string& key);
  // What a command with a fence says when the fence is not that of a claim which stands; "" when it
  // is.
  std::string FenceError(const Held* held, uint64_t fence) const;
  std::string ClaimError(const Held* held, uint64_t fence) const;
  const char* Origin(const std::string& key) const;
  std::string ReserveReply(const char* status, uint64_t fence, uint64_t attempt, int64_t ms,
                           int64_t code = 0, const Held* payload_of = nullptr) const;
  std::string Take(const std::string& key, Held held, const Reserving& how);

  int64_t now_ms_;
  uint64_t fence_ = 0;
  std::map<std::string, Held> keys_;
  std::map<std::string, int64_t> issued_;  // keys whose text says until when they are tokens
};

}  // namespace idemd::fuzz
