// Passwords: digests, and a comparison whose time tells nothing.
#pragma once

#include <array>
#include <string>

#include "absl/strings/string_view.h"

namespace idemd::server {

// SHA-256; dies when the library cannot compute it, since nobody could be let in or kept out then.
std::array<unsigned char, 32> PasswordDigest(absl::string_view password);
// The digest as ACL LIST and ACL GETUSER show it.
std::string PasswordDigestHex(absl::string_view password);
// Compares in a time that tells nothing about where two passwords differ, or how long the right one
// is.
[[nodiscard]] bool SamePassword(absl::string_view given, absl::string_view expected);
// Hexadecimal digits from the CSPRNG; "" when the system has no randomness to give.
std::string RandomPassword(size_t digits);

}  // namespace idemd::server
