// The server, the client and the commands of the network tests.
#include "tests/server/net/net_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/commands/context.h"
#include "server/commands/session_waiter.h"
#include "server/net/asio.h"
#include "server/net/ring.h"

namespace idemd::server {
namespace {

constexpr int kPatienceSeconds = 20;

struct Blocked {
  std::shared_ptr<Peer> peer;
  std::shared_ptr<storage::Waiter> waiter;
};
std::mutex blocked_mutex;
std::vector<Blocked> blocked_sessions;
std::atomic<int> executed_commands{0};

class TestWaiter final : public SessionWaiter {
 public:
  explicit TestWaiter(Context& c) : SessionWaiter(c) {}
  bool Unblock(bool) override { return false; }
  void Resolve(const storage::WaitAnswer&) override {}
};

void Ping(Context& c) { c.reply.Simple("PONG"); }
void Echo(Context& c) {
  executed_commands.fetch_add(1);
  c.reply.Bulk(c.words[1]);
}
void FillReply(Context& c) {
  int64_t n = 0;
  if (!c.Int(1, &n)) return;
  executed_commands.fetch_add(1);
  c.reply.Bulk(std::string(static_cast<size_t>(n), 'x'));
}
void Block(Context& c) {
  c.session.waiter = std::make_shared<TestWaiter>(c);
  const std::lock_guard<std::mutex> lock(blocked_mutex);
  blocked_sessions.push_back({c.session.peer, c.session.waiter});
}
void CloseAfter(Context& c) {
  c.session.close_after_reply = true;
  c.reply.Ok();
}
void Monitor(Context& c) {
  c.session.monitor = true;
  c.services.clients.AddMonitor(c.session.info().id);
  c.reply.Ok();
}

constexpr CommandSpec kTestCommands[] = {
    {.name = "PING", .handler = &Ping, .arity = -1, .flags = kFast},
    {.name = "ECHO", .handler = &Echo, .arity = 2, .flags = kFast},
    {.name = "FILL", .handler = &FillReply, .arity = 2},
    {.name = "BLOCK", .handler = &Block, .arity = 1},
    {.name = "CLOSE", .handler = &CloseAfter, .arity = 1},
    {.name = "MONITOR", .handler = &Monitor, .arity = 1, .flags = kAdmin},
};
constexpr absl::Span<const CommandSpec> kGroups[] = {kTestCommands};

int Connected(int fd, const sockaddr* address, socklen_t size) {
  timeval patience{kPatienceSeconds, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  // Called once more after an interruption it waits for the same handshake.
  if (Uninterrupted([&] { return connect(fd, address, size); }) == 0 || errno == EISCONN) return fd;
  if (errno != ECONNREFUSED) ADD_FAILURE() << "connect: " << std::strerror(errno);
  close(fd);
  return -1;
}

}  // namespace

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

Client Client::Tcp(int port, const char* address) {
  Client client;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, address, &to.sin_addr);
  client.fd_ =
      Connected(socket(AF_INET, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&to), sizeof(to));
  return client;
}

Client Client::Unix(const std::string& path) {
  Client client;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof(to.sun_path) - 1);
  client.fd_ =
      Connected(socket(AF_UNIX, SOCK_STREAM, 0), reinterpret_cast<sockaddr*>(&to), sizeof(to));
  return client;
}

Client::~Client() { Close(); }

Client& Client::operator=(Client&& other) noexcept {
  Close();
  std::swap(fd_, other.fd_);
  rest_ = std::move(other.rest_);
  return *this;
}

void Client::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = Uninterrupted([&] { return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

bool Client::Fill() {
  char bytes[64 * 1024];
  const ssize_t n = Uninterrupted([&] { return recv(fd_, bytes, sizeof(bytes), 0); });
  if (n <= 0) return false;
  rest_.append(bytes, static_cast<size_t>(n));
  return true;
}

std::string Client::Read(size_t n) {
  while (rest_.size() < n && Fill()) {
  }
  std::string out = rest_.substr(0, n);
  rest_.erase(0, out.size());
  return out;
}

std::string Client::Line() {
  size_t end = 0;
  while ((end = rest_.find('\n')) == std::string::npos && Fill()) {
  }
  return Read(end == std::string::npos ? rest_.size() : end + 1);
}

std::string Client::ReadToEnd(bool* closed) {
  errno = 0;
  while (Fill()) {
  }
  if (closed != nullptr) *closed = errno == 0 || errno == ECONNRESET;
  std::string out = std::move(rest_);
  rest_.clear();
  return out;
}

bool Client::AtEnd() {
  bool closed = false;
  return ReadToEnd(&closed).empty() && closed;
}

void Client::ShutWrite() { shutdown(fd_, SHUT_WR); }

void Client::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

void Client::Reset() {
  const linger abort{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
  Close();
}

std::string Request(const std::vector<absl::string_view>& words) {
  std::string out = absl::StrCat("*", words.size(), "\r\n");
  for (absl::string_view word : words)
    absl::StrAppend(&out, "$", word.size(), "\r\n", word, "\r\n");
  return out;
}

absl::string_view BackendUnderTest() {
  const char* const backend = std::getenv("IDEMD_TEST_IO_BACKEND");
  return backend == nullptr ? "epoll" : backend;
}

bool RingIsAllowed() {
  IoContext context;
  return Ring::Make(context).ok();
}

void NetTest::SetUp() {
  if (BackendUnderTest() == "io_uring" && !RingIsAllowed()) GTEST_SKIP() << "no io_uring is allowed here";
}

NetTest::NetTest() {
  SetLogLevel(kLogNothing);
  executed_commands = 0;
  const std::lock_guard<std::mutex> lock(blocked_mutex);
  blocked_sessions.clear();
}

NetTest::~NetTest() {
  if (running_.joinable()) StopAndWait();
  const std::lock_guard<std::mutex> lock(blocked_mutex);
  blocked_sessions.clear();
}

absl::Status NetTest::TryStart(const std::string& options) {
  port_ = FreePort();
  unix_path_ = absl::StrCat(::testing::TempDir(), "idemd-net-", getpid(), ".sock");
  EXPECT_TRUE(
      settings_
          .LoadText(absl::StrCat("port ", port_, "\nio-threads 1\nmaxclients 500\nio-backend ",
                                 BackendUnderTest(), "\nunixsocket ", unix_path_, "\n", options))
          .ok());
  commands_ = std::make_unique<CommandTable>(kGroups);
  services_ = std::make_unique<Services>(Services{.store = store_,
                                                  .clock = nullptr,
                                                  .tokens = tokens_,
                                                  .settings = settings_,
                                                  .clients = clients_,
                                                  .slowlog = slowlog_,
                                                  .latency = latency_,
                                                  .stats = stats_,
                                                  .native = native_,
                                                  .commands = *commands_,
                                                  .run_id = "test",
                                                  .started_ms = 0});
  server_ = std::make_unique<Server>(*services_);
  absl::Status started;
  // On a thread of its own, because of those interruptions: OpenSSL's clients do not look for them.
  std::thread([&] { started = server_->Start(); }).join();
  if (started.ok()) running_ = std::thread([this] { server_->Run(); });
  return started;
}

void NetTest::Start(const std::string& options) {
  const absl::Status started = TryStart(options);
  ASSERT_TRUE(started.ok()) << started;
}

void NetTest::StopAndWait() {
  server_->Stop();
  running_.join();
}

bool NetTest::Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

size_t NetTest::blocked() {
  const std::lock_guard<std::mutex> lock(blocked_mutex);
  return blocked_sessions.size();
}

std::shared_ptr<storage::Waiter> NetTest::waiter(size_t i) {
  const std::lock_guard<std::mutex> lock(blocked_mutex);
  return blocked_sessions.at(i).waiter;
}

void NetTest::Unblock(size_t i, std::string reply) {
  std::shared_ptr<Peer> peer;
  {
    const std::lock_guard<std::mutex> lock(blocked_mutex);
    peer = blocked_sessions.at(i).peer;
  }
  peer->Resume([reply = std::move(reply)](Session&, std::string& out) { out += reply; });
}

int NetTest::executed() { return executed_commands.load(); }

}  // namespace idemd::server
