// Connections to a server, and the few questions that are asked before anything is measured.
//
// Errors    absl::Status with the address, or with the server's own words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace idemd::bench {

// Where the server is, and as whom.
struct Target {
  std::string host = "127.0.0.1";
  uint16_t port = 6379;
  std::string socket;  // a Unix socket, instead of the two above
  std::string user, password;
  int db = 0;
  bool resp3 = false;
  bool memcached =
      false;  // the server speaks memcached's text protocol, without any of the three above
};

// A descriptor that blocks, authenticated, in its database, and already answered by the server. The
// caller closes it.
absl::StatusOr<int> ConnectTo(const Target& target);
// Sends a command and waits for its reply: the first scalar of it, at most ReplyScanner::kKept
// bytes.
absl::StatusOr<std::string> Ask(int fd, const std::vector<absl::string_view>& words);

}  // namespace idemd::bench
