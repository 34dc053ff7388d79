// Sockets that listen: made from the settings, and read out by accepting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/admin/settings.h"

namespace idemd::server {

struct ListeningSocket {
  int fd = -1;
  bool unix_socket = false;
  bool tls = false;
  std::string name;  // "127.0.0.1:6379", "/run/idemd.sock"
};

// What accept() gave: a non-blocking descriptor and both ends' names, as CLIENT LIST shows them.
struct Accepted {
  int fd = -1;
  std::string address;
  std::string local_address;
  bool from_this_machine = false;
};

// Opens a socket per address of `bind` on `port`, or `tls-port`, nothing when the port is 0. An address
// after '-' may be missing on this machine. On error none stays open.
absl::StatusOr<std::vector<ListeningSocket>> ListenTcp(const Settings& settings, bool tls);
// Opens the Unix socket, in place of a file that an earlier process left there.
absl::StatusOr<ListeningSocket> ListenUnix(const Settings& settings, absl::string_view path);

// One connection; false, with errno set, when there is none or no descriptor is left.
bool AcceptOne(const ListeningSocket& listening, Accepted* accepted);
// One that the kernel has accepted already: `accepted` has its descriptor. False: it is gone again, and was closed.
bool TakeAccepted(const ListeningSocket& listening, Accepted* accepted);
// Off for 0 seconds; else the interval between probes, and a third of it between the unanswered.
void SetKeepalive(int fd, int64_t seconds);

}  // namespace idemd::server
