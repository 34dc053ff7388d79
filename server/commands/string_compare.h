// Conditions on a key's present value: IFEQ, IFNE, and IFDEQ, IFDNE on its digest (Valkey 9,
// Redis 8.4).
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/context.h"

namespace idemd::server {

// XXH3-64 of the value, in 16 hexadecimal digits, as DIGEST shows it.
std::array<char, 16> DigestText(absl::string_view value);

struct Comparison {
  enum class Kind : uint8_t { kNone, kEqual, kNotEqual, kDigestEqual, kDigestNotEqual };
  Kind kind = Kind::kNone;
  absl::string_view operand;

  explicit operator bool() const { return kind != Kind::kNone; }
  // Takes the condition at words[i] with its operand, if it is one and the first; returns how many
  // words it took.
  size_t Take(absl::Span<const absl::string_view> words, size_t i);
  // False, with the error written: a digest that cannot be one.
  [[nodiscard]] bool Check(Context& c) const;
  // An absent key equals nothing.
  bool Holds(const storage::KeyView& view) const;
};

}  // namespace idemd::server
