// In the order in which Redis looks at them.
#include "server/commands/pop_words.h"

#include "absl/strings/match.h"
#include "protocol/errors.h"

namespace idemd::server {
namespace {

bool Syntax(Context& c) {
  c.Syntax();
  return false;
}

// A number that is at least 1.
bool ReadPositive(Context& c, size_t i, absl::string_view error, size_t* value) {
  int64_t number = 0;
  if (!c.Int(i, &number, error)) return false;
  *value = static_cast<size_t>(number);
  if (number >= 1) return true;
  c.reply.Error(error);
  return false;
}

}  // namespace

bool ReadPopWords(Context& c, size_t at, absl::string_view first_end, absl::string_view second_end, PopWords* pop) {
  size_t keys = 0;
  if (!ReadPositive(c, at, protocol::errors::kNumKeysPositive, &keys)) return false;
  if (keys >= c.words.size() - at - 1) return Syntax(c);
  const size_t end_at = at + 1 + keys;
  pop->second = absl::EqualsIgnoreCase(c.words[end_at], second_end);
  if (!pop->second && !absl::EqualsIgnoreCase(c.words[end_at], first_end)) return Syntax(c);
  bool counted = false;
  for (size_t i = end_at + 1; i < c.words.size(); i += 2) {
    if (counted || !absl::EqualsIgnoreCase(c.words[i], "count") || i + 1 == c.words.size()) return Syntax(c);
    counted = true;
    if (!ReadPositive(c, i + 1, protocol::errors::kCountPositive, &pop->count)) return false;
  }
  for (size_t i = at + 1; i < end_at; ++i) pop->keys.push_back(c.Key(i));
  return true;
}

}  // namespace idemd::server
