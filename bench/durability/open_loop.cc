// Requests at a fixed rate, half GET and half SET, and how long each took from the moment when it was due: what a snapshot does to
// others. It works against any server that speaks RESP.
//
//   open_loop PORT RATE SECONDS KEYS [COMMAND AFTER]     COMMAND (BGSAVE) is sent after so many seconds
//
// A request is due whether or not earlier ones have been answered, so a server that stops is charged for all that wait.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kConnections = 50;

struct Connection {
  int fd = -1;
  std::deque<Clock::time_point> due;  // of requests that have no reply yet
  std::string in;
};

int Connect(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
    std::perror("connect");
    std::exit(1);
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

void Send(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) std::exit(1);
    at += static_cast<size_t>(n);
  }
}

// The keys that the filler of durability_bench.py does not make; they are made by SET.
std::string Request(std::mt19937_64& random, uint64_t keys) {
  char key[48];
  const int size = std::snprintf(key, sizeof(key), "%08lx-0000-4000-8000-000000000000", random() % keys);
  std::string request;
  if (random() % 2 == 0) {
    request = "*2\r\n$3\r\nGET\r\n$" + std::to_string(size) + "\r\n" + key + "\r\n";
  } else {
    request = "*5\r\n$3\r\nSET\r\n$" + std::to_string(size) + "\r\n" + key + "\r\n$1\r\n1\r\n$2\r\nEX\r\n$5\r\n86400\r\n";
  }
  return request;
}

// Replies are lines, or a bulk string of two; returns how many are complete.
size_t Replies(std::string& in) {
  size_t replies = 0, at = 0;
  while (true) {
    const size_t end = in.find("\r\n", at);
    if (end == std::string::npos) break;
    size_t next = end + 2;
    if (in[at] == '$' && in[at + 1] != '-') {
      next += static_cast<size_t>(std::atoi(in.c_str() + at + 1)) + 2;
      if (next > in.size()) break;
    }
    at = next;
    ++replies;
  }
  in.erase(0, at);
  return replies;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 7) {
    std::fprintf(stderr, "usage: open_loop PORT RATE SECONDS KEYS [COMMAND AFTER]\n");
    return 2;
  }
  const auto port = static_cast<uint16_t>(std::atoi(argv[1]));
  const double rate = std::atof(argv[2]), seconds = std::atof(argv[3]);
  const auto keys = static_cast<uint64_t>(std::atoll(argv[4]));
  const double command_after = argc == 7 ? std::atof(argv[6]) : seconds + 1;
  std::vector<Connection> connections(kConnections);
  for (Connection& c : connections) c.fd = Connect(port);
  const int control = argc == 7 ? Connect(port) : -1;
  std::mt19937_64 random(42);
  std::vector<double> took_ms;
  took_ms.reserve(static_cast<size_t>(rate * seconds));
  const auto begin = Clock::now();
  const auto step = std::chrono::nanoseconds(static_cast<int64_t>(1e9 / rate));
  auto due = begin;
  const auto end = begin + std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
  size_t next = 0;
  bool told = false;
  size_t waiting = 0;
  while (due < end || waiting != 0) {
    for (auto now = Clock::now(); due <= now && due < end; due += step) {
      Connection& c = connections[next++ % kConnections];
      Send(c.fd, Request(random, keys));
      c.due.push_back(due);
      ++waiting;
    }
    if (!told && Clock::now() - begin >= std::chrono::nanoseconds(static_cast<int64_t>(command_after * 1e9))) {
      told = true;
      Send(control, std::string(argv[5]) + "\r\n");
    }
    for (Connection& c : connections) {
      if (c.due.empty()) continue;
      char bytes[16384];
      const ssize_t n = recv(c.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
      if (n == 0) return 1;
      if (n < 0) continue;
      c.in.append(bytes, static_cast<size_t>(n));
      const auto now = Clock::now();
      for (size_t i = Replies(c.in); i != 0; --i) {
        took_ms.push_back(std::chrono::duration<double, std::milli>(now - c.due.front()).count());
        c.due.pop_front();
        --waiting;
      }
    }
  }
  std::sort(took_ms.begin(), took_ms.end());
  const auto at = [&](double share) { return took_ms[static_cast<size_t>(share * static_cast<double>(took_ms.size() - 1))]; };
  std::printf("%zu requests: p50 %.3f p99 %.3f p99.9 %.3f longest %.3f ms\n", took_ms.size(), at(0.5), at(0.99), at(0.999), took_ms.back());
  return 0;
}
