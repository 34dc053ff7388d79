// A token is recognised at its key, with its expiry, and in no other database, under no other
// prefix or key of the mint; a token that was changed, and text that was never issued, is not
// recognised.
#include <string>
#include <utility>

#include "storage/token/token.h"
#include "tests/fuzz/input.h"

using namespace idemd::storage;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;

namespace {

// Fewer than a tag has: a fuzzer sees what is compared, and puts whole tokens of earlier runs into
// its inputs.
constexpr size_t kChangedBytesMax = 8;

std::string Changed(const std::string& key, Input& input) {
  std::string changed = key;
  const size_t at = input.Below(256) % key.size();
  switch (input.Below(5)) {
    case 0:
      changed[at] = static_cast<char>(changed[at] ^ (1 << input.Below(8)));
      break;
    case 1:
      changed.insert(at, 1, static_cast<char>(input.Byte()));
      break;
    case 2:
      changed.erase(at, 1 + input.Below(4));
      break;
    case 3: {
      const absl::string_view text = input.Text(kChangedBytesMax);
      changed.replace(at, text.size(), text.data(), text.size());
      break;
    }
    default:
      std::swap(changed[at], changed[input.Below(256) % key.size()]);
  }
  return changed;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // The third one has issued nothing.
  static const TokenMint mint(TokenKey{1, 2, 3}), other_mint(TokenKey{1, 2, 4}),
      silent_mint(TokenKey{9});
  Input input(data, size);
  const auto db = static_cast<uint32_t>(input.Below(16));
  if (input.Below(4) == 0) {
    Require(!silent_mint.Read(db, input.Rest()).issued);
    return 0;
  }
  const auto expiry_ms = static_cast<int64_t>(input.Number());
  std::string key(input.Text(40));
  const std::string prefix = key;
  key.resize(prefix.size() + kTokenChars);
  const bool fits = expiry_ms >= 0 && expiry_ms <= kTokenExpiryMax;
  Require(mint.Issue(db, prefix, expiry_ms, &key[prefix.size()]) == fits);
  if (!fits) return 0;
  for (const char c : absl::string_view(key).substr(prefix.size()))
    Require((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
            c == '-' || c == '_');
  const TokenReading reading = mint.Read(db, key);
  Require(reading.issued && reading.expiry_ms == expiry_ms);
  Require(!mint.Read(db + 1, key).issued && !other_mint.Read(db, key).issued);
  const std::string changed = Changed(key, input);
  if (changed != key) Require(!mint.Read(db, changed).issued);
  return 0;
}
