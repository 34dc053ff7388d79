// Reading of EX, PX, EXAT and PXAT.
#include "server/commands/string_lifetime.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/commands/option_word.h"

namespace idemd::server {

using Kind = LifetimeOption::Kind;

size_t LifetimeOption::Take(absl::Span<const absl::string_view> words, size_t i) {
  Kind named = Kind::kNone;
  switch (OptionWord(words[i])) {
    case OptionWord("ex"):
      named = Kind::kSeconds;
      break;
    case OptionWord("px"):
      named = Kind::kMilliseconds;
      break;
    case OptionWord("exat"):
      named = Kind::kUnixSeconds;
      break;
    case OptionWord("pxat"):
      named = Kind::kUnixMilliseconds;
      break;
    default:
      return 0;
  }
  if (i + 1 >= words.size() || (kind != Kind::kNone && kind != named)) return 0;
  kind = named;
  text = words[i + 1];
  return 2;
}

void ReplyInvalidExpire(Context& c) {
  c.reply.Error(absl::StrCat("ERR invalid expire time in '", absl::AsciiStrToLower(c.spec->name),
                             "' command"));
}

bool ReadLifetime(Context& c, const LifetimeOption& option, int64_t* ms) {
  if (!protocol::ParseInt64(option.text, ms)) {
    c.reply.Error(protocol::errors::kNotInteger);
    return false;
  }
  const bool seconds = option.kind == Kind::kSeconds || option.kind == Kind::kUnixSeconds;
  if (*ms > 0 && (!seconds || !__builtin_mul_overflow(*ms, int64_t{1000}, ms))) return true;
  ReplyInvalidExpire(c);
  return false;
}

bool ToDeadline(Context& c, const LifetimeOption& option, int64_t ms, int64_t* deadline_ms) {
  const int64_t from = option.absolute() ? 0 : c.unit.now_ms();
  if (__builtin_add_overflow(from, ms, deadline_ms)) {
    ReplyInvalidExpire(c);
    return false;
  }
  // The last millisecond of time is the mark for "never".
  *deadline_ms = std::min(*deadline_ms, storage::kNoDeadline - 1);
  return true;
}

}  // namespace idemd::server
