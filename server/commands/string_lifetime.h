// Lifetimes as the string commands take them: EX, PX, EXAT and PXAT, checked for overflow before
// anything changes.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/commands/context.h"

namespace idemd::server {

struct LifetimeOption {
  enum class Kind : uint8_t { kNone, kSeconds, kMilliseconds, kUnixSeconds, kUnixMilliseconds };
  Kind kind = Kind::kNone;
  absl::string_view text;  // the number, as the client sent it

  explicit operator bool() const { return kind != Kind::kNone; }
  bool absolute() const { return kind == Kind::kUnixSeconds || kind == Kind::kUnixMilliseconds; }
  // Takes the option at words[i] and its number behind it, if it is one. As in Redis the same kind
  // may come again, and the last one counts; another kind is a syntax error. Returns how many words
  // it took: 0 if it is none, or not allowed.
  size_t Take(absl::Span<const absl::string_view> words, size_t i);
};

// The number in `option`, in milliseconds; false, with the error written, when it is none, not
// above zero, or too large.
[[nodiscard]] bool ReadLifetime(Context& c, const LifetimeOption& option, int64_t* ms);
// The deadline that these milliseconds mean now; false, with the error written, when it overflows.
[[nodiscard]] bool ToDeadline(Context& c, const LifetimeOption& option, int64_t ms,
                              int64_t* deadline_ms);
// "ERR invalid expire time in 'set' command"
void ReplyInvalidExpire(Context& c);

}  // namespace idemd::server
