// A server in this process, on a free port and a Unix socket, with commands made for the tests; and
// a plain client.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/admin/latency.h"
#include "server/admin/native_stats.h"
#include "server/admin/settings.h"
#include "server/admin/slowlog.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "server/net/server.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::server {

// What `call` says, which asks the system for something; again while it was only interrupted: the end of a ring, of an earlier test
// even, interrupts the thread that made it. errno is that of the last call, 0 if it did not fail.
template <typename Call>
auto Uninterrupted(Call call) {
  while (true) {
    errno = 0;
    const auto result = call();
    if (result > 0 || errno != EINTR) return result;
  }
}

// A port of 127.0.0.1 that nobody listens on now.
int FreePort();

// A blocking socket. Everything gives up after some seconds, so that a fault fails a test instead
// of stopping it.
class Client {
 public:
  static Client Tcp(int port, const char* address = "127.0.0.1");
  static Client Unix(const std::string& path);
  Client() = default;
  ~Client();
  Client(Client&& other) noexcept : fd_(other.fd_), rest_(std::move(other.rest_)) {
    other.fd_ = -1;
  }
  Client& operator=(Client&& other) noexcept;

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  void Send(absl::string_view bytes);
  // Exactly this many bytes, or fewer when the peer closed or time ran out.
  std::string Read(size_t n);
  // Up to and including the next line end.
  std::string Line();
  // Everything until the peer closes; `closed` tells whether it did.
  std::string ReadToEnd(bool* closed = nullptr);
  bool AtEnd();
  void ShutWrite();
  void Close();
  // With a reset instead of a goodbye.
  void Reset();

 private:
  bool Fill();
  int fd_ = -1;
  std::string rest_;
};

// *n $len word ...
std::string Request(const std::vector<absl::string_view>& words);

// Keeps nothing; what may be revealed is what the test says.
class SteppedLog final : public storage::EffectLog {
 public:
  bool wants_effects() const override { return false; }
  storage::Lsn Append(absl::Span<const storage::Effect>) override { return storage::kNoLsn; }
  void ReserveFences(uint64_t) override {}
  storage::Lsn released() const override { return released_.load(); }
  void Release(storage::Lsn) override {}
  absl::Status Refusal() const override { return absl::OkStatus(); }
  void ReleaseTo(storage::Lsn lsn) { released_.store(lsn); }

 private:
  std::atomic<storage::Lsn> released_{storage::kNoLsn};
};

// Whether this machine lets us have an io_uring.
bool RingIsAllowed();
// The io-backend that the tests run with: IDEMD_TEST_IO_BACKEND, else epoll. Both are run by CTest.
absl::string_view BackendUnderTest();

// Commands of the test's own: PING, ECHO x, FILL n (n bytes), BLOCK (waits for Unblock()), CLOSE
// (answers and closes), COUNT (of all commands executed), and MONITOR.
class NetTest : public ::testing::Test {
 protected:
  NetTest();
  ~NetTest() override;
  void SetUp() override;

  // Starts with one loop unless `options`, lines of a file, say otherwise.
  void Start(const std::string& options = "");
  absl::Status TryStart(const std::string& options);
  // Stops and waits for the end.
  void StopAndWait();
  Client Connect() const { return Client::Tcp(port_); }
  // Waits until `condition` holds; false when time ran out.
  static bool Eventually(const std::function<bool()>& condition);

  // Of the sessions that blocked, in order: ends the wait of one with this reply.
  static size_t blocked();
  static void Unblock(size_t i, std::string reply);
  static std::shared_ptr<storage::Waiter> waiter(size_t i);
  static int executed();

  int port_ = 0;
  std::string unix_path_;
  storage::FakeClock clock_;
  SteppedLog log_;
  storage::Store store_{clock_, log_};
  storage::TokenMint tokens_{storage::TokenMint::NewKey()};
  Settings settings_;
  Clients clients_;
  SlowLog slowlog_;
  LatencyMonitor latency_;
  ServerStats stats_;
  NativeStats native_;
  std::unique_ptr<CommandTable> commands_;
  std::unique_ptr<Services> services_;
  std::unique_ptr<Server> server_;
  std::thread running_;
};

}  // namespace idemd::server
