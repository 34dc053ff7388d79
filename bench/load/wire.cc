// Sockets, and one question at a time.
#include "bench/load/wire.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "bench/load/reply_scanner.h"

namespace idemd::bench {
namespace {

absl::Status Failed(absl::string_view what, int error) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(error)));
}

absl::StatusOr<int> ConnectUnix(const std::string& path) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (path.size() >= sizeof(to.sun_path)) return absl::InvalidArgumentError(path + ": too long");
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return Failed(path, error);
  }
  return fd;
}

absl::StatusOr<int> ConnectTcp(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string address = absl::StrCat(host, ":", port);
  if (const int code = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
      code != 0) {
    return absl::UnavailableError(absl::StrCat(address, ": ", gai_strerror(code)));
  }
  int fd = -1, error = 0;
  for (const addrinfo* one = found; one != nullptr && fd < 0; one = one->ai_next) {
    fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
    if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0) break;
    error = errno;
    if (fd >= 0) close(fd);
    fd = -1;
  }
  freeaddrinfo(found);
  if (fd < 0) return Failed(address, error);
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

// A server that says nothing for so long is given up.
constexpr timeval kPatience = {.tv_sec = 20, .tv_usec = 0};

// Sends bytes that are one request, and waits for its reply. `what` names it in errors.
absl::StatusOr<std::string> Exchange(int fd, absl::string_view what, absl::string_view request,
                                     Dialect dialect) {
  for (size_t at = 0; at < request.size();) {
    const ssize_t n = send(fd, request.data() + at, request.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Failed(what, errno);
    at += static_cast<size_t>(n);
  }
  ReplyScanner scanner(dialect);
  bool done = false, error = false;
  std::string head;
  while (!done) {
    char bytes[4096];
    const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed(what, errno);
    if (n == 0) return absl::UnavailableError(absl::StrCat(what, ": the server hung up"));
    scanner.Feed(bytes, static_cast<size_t>(n), [&](const Reply& reply) {
      done = true;
      error = reply.error;
      head.assign(reply.head.data(), reply.head.size());
    });
    if (scanner.broken())
      return absl::UnavailableError(absl::StrCat(what, ": no reply of the protocol"));
  }
  if (error) return absl::FailedPreconditionError(absl::StrCat(what, ": ", head));
  return head;
}

absl::Status Introduce(int fd, const Target& target) {
  if (target.memcached) return Exchange(fd, "version", "version\r\n", Dialect::kMemcached).status();
  if (!target.password.empty()) {
    std::vector<absl::string_view> auth = {"AUTH"};
    if (!target.user.empty()) auth.push_back(target.user);
    auth.push_back(target.password);
    if (auto reply = Ask(fd, auth); !reply.ok()) return reply.status();
  }
  if (target.resp3) {
    if (auto reply = Ask(fd, {"HELLO", "3"}); !reply.ok()) return reply.status();
  }
  if (target.db != 0) {
    if (auto reply = Ask(fd, {"SELECT", absl::StrCat(target.db)}); !reply.ok())
      return reply.status();
  }
  // A connection is counted in the run only once the server has taken it.
  return Ask(fd, {"PING"}).status();
}

}  // namespace

absl::StatusOr<int> ConnectTo(const Target& target) {
  absl::StatusOr<int> fd =
      target.socket.empty() ? ConnectTcp(target.host, target.port) : ConnectUnix(target.socket);
  if (!fd.ok()) return fd;
  setsockopt(*fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof(kPatience));
  if (absl::Status status = Introduce(*fd, target); !status.ok()) {
    close(*fd);
    return status;
  }
  return fd;
}

absl::StatusOr<std::string> Ask(int fd, const std::vector<absl::string_view>& words) {
  std::string request = absl::StrCat("*", words.size(), "\r\n");
  for (const absl::string_view word : words) {
    absl::StrAppend(&request, "$", word.size(), "\r\n", word, "\r\n");
  }
  return Exchange(fd, words[0], request, Dialect::kResp);
}

}  // namespace idemd::bench
