// Passwords: digests, random ones, and a comparison whose time tells nothing.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace idemd::server {

// SHA-256 in hexadecimal, as ACL LIST and ACL GETUSER show it.
std::string PasswordDigestHex(absl::string_view password);
// So many hexadecimal digits from the CSPRNG; "" when the system has no randomness to give.
std::string RandomPassword(size_t digits);
// Compares in a time that tells nothing about where two passwords differ, or how long the right one is.
[[nodiscard]] bool SamePassword(absl::string_view given, absl::string_view expected);
// The same of two digests in hexadecimal.
[[nodiscard]] bool SameDigest(absl::string_view a, absl::string_view b);

}  // namespace idemd::server
