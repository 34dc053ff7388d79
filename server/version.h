// The versions the server tells: its own, and the Redis whose behaviour clients may count on.
#pragma once

#include "absl/strings/string_view.h"

namespace idemd::server {

inline constexpr absl::string_view kIdemdVersion = "0.1.0";
inline constexpr absl::string_view kRedisVersion = "7.0.15";  // clients branch on it

}  // namespace idemd::server
