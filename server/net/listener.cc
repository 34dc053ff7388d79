// Listening sockets.
#include "server/net/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/net/tls_context.h"

namespace idemd::server {
namespace {

absl::Status Failure(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::generic_category().message(error)));
}

void CloseAll(const std::vector<ListeningSocket>& sockets) {
  for (const ListeningSocket& socket : sockets) close(socket.fd);
}

// What an address after '-' may fail with: the machine does not have it.
bool IsMissing(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT ||
         error == ESOCKTNOSUPPORT || error == EPFNOSUPPORT || error == ENOPROTOOPT;
}

int Backlog(const Settings& settings) {
  return static_cast<int>(
      std::min<int64_t>(settings.tcp_backlog.load(std::memory_order_relaxed), INT_MAX));
}

// The descriptor, or -1 with errno set.
int ListenOn(const addrinfo& address, int backlog) {
  const int fd =
      socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (fd < 0) return -1;
  const int on = 1;
  const bool v6 = address.ai_family == AF_INET6;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      (!v6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0) &&
      bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, backlog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// The descriptor, or -1 with the reason in `error` and, in words, in `problem`.
int ListenAt(const std::string& host, int64_t port, int backlog, int* error, std::string* problem) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  const bool any = host == "*" || host == "::*";
  hints.ai_family = absl::StrContains(host, ':') ? AF_INET6 : AF_INET;
  addrinfo* found = nullptr;
  const std::string service = absl::StrCat(port);
  const int lookup = getaddrinfo(any ? nullptr : host.c_str(), service.c_str(), &hints, &found);
  if (lookup != 0) {
    *error = EADDRNOTAVAIL;
    *problem = gai_strerror(lookup);
    return -1;
  }
  int fd = -1;
  for (const addrinfo* a = found; a != nullptr && fd < 0; a = a->ai_next)
    fd = ListenOn(*a, backlog);
  *error = errno;
  freeaddrinfo(found);
  if (fd < 0) *problem = std::generic_category().message(*error);
  return fd;
}

// "127.0.0.1:6379", "[::1]:6379".
std::string NameOf(const sockaddr_storage& address, bool* loopback) {
  char text[INET6_ADDRSTRLEN] = "?";
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    *loopback = ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    return absl::StrCat(text, ":", ntohs(v4.sin_port));
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  *loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
  return absl::StrCat("[", text, "]:", ntohs(v6.sin6_port));
}

}  // namespace

absl::StatusOr<std::vector<ListeningSocket>> ListenTcp(const Settings& settings, bool tls) {
  const int64_t port = tls ? TlsNumber(settings, "tls-port") : settings.port.load(std::memory_order_relaxed);
  std::vector<ListeningSocket> sockets;
  if (port == 0) return sockets;
  for (const std::string& word : settings.bind()) {
    const bool optional = word[0] == '-';
    const std::string host = optional ? word.substr(1) : word;
    int error = 0;
    std::string problem;
    const int fd = ListenAt(host, port, Backlog(settings), &error, &problem);
    if (fd >= 0) {
      sockets.push_back({fd, false, tls, absl::StrCat(host, ":", port)});
      continue;
    }
    if (optional && IsMissing(error)) continue;
    CloseAll(sockets);
    return absl::UnavailableError(absl::StrCat("Could not create server ", tls ? "TLS" : "TCP",
                                               " listening socket ", host, ":", port, ": ", problem));
  }
  return sockets;
}

absl::StatusOr<ListeningSocket> ListenUnix(const Settings& settings, absl::string_view path) {
  const std::string file(path);
  const std::string what = absl::StrCat("Opening Unix socket ", path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof(address.sun_path)) return Failure(what, ENAMETOOLONG);
  std::copy(file.begin(), file.end(), address.sun_path);
  struct stat old {};
  if (lstat(file.c_str(), &old) == 0 && !S_ISSOCK(old.st_mode)) return Failure(what, EEXIST);
  unlink(file.c_str());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failure(what, errno);
  const auto mode = static_cast<mode_t>(settings.unixsocketperm.load(std::memory_order_relaxed));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      (mode == 0 || chmod(file.c_str(), mode) == 0) && listen(fd, Backlog(settings)) == 0) {
    return ListeningSocket{fd, true, false, file};
  }
  const int error = errno;
  close(fd);
  return Failure(what, error);
}

namespace {

void Describe(const ListeningSocket& listening, const sockaddr_storage& peer, Accepted* accepted) {
  if (listening.unix_socket) {
    accepted->address = absl::StrCat(listening.name, ":0");
    accepted->local_address = accepted->address;
    accepted->from_this_machine = true;
    return;
  }
  accepted->address = NameOf(peer, &accepted->from_this_machine);
  sockaddr_storage local{};
  socklen_t size = sizeof(local);
  bool ignored = false;
  if (getsockname(accepted->fd, reinterpret_cast<sockaddr*>(&local), &size) == 0)
    accepted->local_address = NameOf(local, &ignored);
  const int on = 1;
  setsockopt(accepted->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

}  // namespace

bool AcceptOne(const ListeningSocket& listening, Accepted* accepted) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  do {
    accepted->fd = accept4(listening.fd, reinterpret_cast<sockaddr*>(&peer), &size,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
  } while (accepted->fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (accepted->fd < 0) return false;
  Describe(listening, peer, accepted);
  return true;
}

bool TakeAccepted(const ListeningSocket& listening, Accepted* accepted) {
  sockaddr_storage peer{};
  socklen_t size = sizeof(peer);
  if (!listening.unix_socket && getpeername(accepted->fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
    close(accepted->fd);
    return false;
  }
  Describe(listening, peer, accepted);
  return true;
}

void SetKeepalive(int fd, int64_t seconds) {
  if (seconds <= 0) return;
  const int on = 1;
  const int idle = static_cast<int>(std::min<int64_t>(seconds, 32'767));  // the kernel's limit
  const int interval = std::max(idle / 3, 1);
  const int probes = 3;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

}  // namespace idemd::server
