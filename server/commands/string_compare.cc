// Comparing a key's value with what a caller believes it to be.
#include "server/commands/string_compare.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/commands/option_word.h"

namespace idemd::server {

using Kind = Comparison::Kind;

std::array<char, 16> DigestText(absl::string_view value) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  uint64_t digest = storage::ValueDigest(value);
  std::array<char, 16> text;
  for (size_t i = text.size(); i-- > 0; digest >>= 4) text[i] = kHexDigits[digest & 15];
  return text;
}

size_t Comparison::Take(absl::Span<const absl::string_view> words, size_t i) {
  Kind named = Kind::kNone;
  switch (OptionWord(words[i])) {
    case OptionWord("ifeq"):
      named = Kind::kEqual;
      break;
    case OptionWord("ifne"):
      named = Kind::kNotEqual;
      break;
    case OptionWord("ifdeq"):
      named = Kind::kDigestEqual;
      break;
    case OptionWord("ifdne"):
      named = Kind::kDigestNotEqual;
      break;
    default:
      return 0;
  }
  if (kind != Kind::kNone || i + 1 >= words.size()) return 0;
  kind = named;
  operand = words[i + 1];
  return 2;
}

bool Comparison::Check(Context& c) const {
  if (kind != Kind::kDigestEqual && kind != Kind::kDigestNotEqual) return true;
  bool hexadecimal = operand.size() == std::tuple_size<std::array<char, 16>>::value;
  for (const char digit : operand) {
    hexadecimal = hexadecimal && absl::ascii_isxdigit(static_cast<unsigned char>(digit));
  }
  if (!hexadecimal) c.reply.Error(protocol::errors::kDigestLength);
  return hexadecimal;
}

bool Comparison::Holds(const storage::KeyView& view) const {
  const bool wants_equal = kind == Kind::kEqual || kind == Kind::kDigestEqual;
  if (!view) return !wants_equal;
  std::string text;
  const absl::string_view value = storage::StringValue(view, text);
  if (kind == Kind::kEqual || kind == Kind::kNotEqual) return (value == operand) == wants_equal;
  const std::array<char, 16> digest = DigestText(value);
  return absl::EqualsIgnoreCase(operand, absl::string_view(digest.data(), digest.size())) ==
         wants_equal;
}

}  // namespace idemd::server
