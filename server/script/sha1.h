// SHA1 in hexadecimal digits: the names of scripts.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace idemd::server {

inline constexpr size_t kSha1HexBytes = 40;
std::string Sha1Hex(absl::string_view text);

}  // namespace idemd::server
