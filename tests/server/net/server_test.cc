// The server as a whole: admission, listening, changes while running, and the graceful stop.
#include "server/net/server.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/net/net_fixture.h"
#include "tests/server/net/refuse_uring.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ServerTest : public NetTest {
 protected:
  absl::Status SetOne(absl::string_view name, absl::string_view value) {
    const std::pair<absl::string_view, absl::string_view> pair[] = {{name, value}};
    return settings_.Set(pair, {});
  }
};

TEST_F(ServerTest, RefusesClientsBeyondMaxclients) {
  Start("maxclients 2\n");
  Client a = Connect();
  Client b = Connect();
  ASSERT_TRUE(Eventually([&] { return clients_.count() == 2; }));
  Client c = Connect();
  EXPECT_EQ(c.ReadToEnd(), "-ERR max number of clients reached\r\n");
  EXPECT_EQ(stats_.Totals().rejected_connections, 1u);
  a.Close();
  ASSERT_TRUE(Eventually([&] { return clients_.count() == 1; }));
  Client d = Connect();
  d.Send("PING\r\n");
  EXPECT_EQ(d.Line(), "+PONG\r\n");
}

TEST_F(ServerTest, SpreadsConnectionsOverItsLoops) {
  Start("io-threads 3\n");
  std::vector<Client> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(Connect());
    clients.back().Send(Request({"ECHO", absl::StrCat(i)}));
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(clients[static_cast<size_t>(i)].Line(), absl::StrCat("$", i < 10 ? 1 : 2, "\r\n"));
    EXPECT_EQ(clients[static_cast<size_t>(i)].Line(), absl::StrCat(i, "\r\n"));
  }
  EXPECT_EQ(stats_.Totals().connections, 30u);
  EXPECT_GE(stats_.Totals().read_bytes, 30u * Request({"ECHO", "1"}).size());
}

TEST_F(ServerTest, ManyConnectionsComeAndGo) {
  Start("io-threads 2\n");
  for (int round = 0; round < 5; ++round) {
    std::vector<Client> clients;
    for (int i = 0; i < 100; ++i) clients.push_back(Connect());
    for (Client& client : clients) client.Send("PING\r\n");
    for (size_t i = 0; i < clients.size(); ++i) {
      ASSERT_EQ(clients[i].Line(), "+PONG\r\n");
      if (i % 3 == 0) clients[i].Reset();
    }
  }
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
}

TEST_F(ServerTest, ThePortCanBeChangedWhileRunning) {
  Start();
  Client old = Connect();
  old.Send("PING\r\n");
  EXPECT_EQ(old.Line(), "+PONG\r\n");
  const int other = FreePort();
  ASSERT_TRUE(SetOne("port", absl::StrCat(other)).ok());
  Client fresh = Client::Tcp(other);
  fresh.Send("PING\r\n");
  EXPECT_EQ(fresh.Line(), "+PONG\r\n");
  EXPECT_FALSE(Client::Tcp(port_).connected());
  old.Send("PING\r\n");
  EXPECT_EQ(old.Line(), "+PONG\r\n");
  ASSERT_TRUE(SetOne("port", "0").ok());
  EXPECT_FALSE(Client::Tcp(other).connected());
  EXPECT_TRUE(Client::Unix(unix_path_).connected());
}

TEST_F(ServerTest, APortThatIsTakenChangesNothing) {
  Start();
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(fd, 1), 0);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  EXPECT_EQ(SetOne("port", absl::StrCat(ntohs(address.sin_port))).message(),
            "CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this "
            "port. Check server "
            "logs.");
  close(fd);
  EXPECT_EQ(settings_.port, port_);
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
}

TEST_F(ServerTest, BindCanBeChangedWhileRunning) {
  Start();
  EXPECT_FALSE(Client::Tcp(port_, "127.0.0.2").connected());
  ASSERT_TRUE(SetOne("bind", "127.0.0.2").ok());
  EXPECT_FALSE(Connect().connected());
  Client client = Client::Tcp(port_, "127.0.0.2");
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  // An address that this machine lacks is an error, unless it is optional.
  EXPECT_THAT(std::string(SetOne("bind", "192.0.2.1").message()),
              HasSubstr("Failed to bind to specified addresses."));
  EXPECT_TRUE(SetOne("bind", "127.0.0.1 -192.0.2.1").ok());
  EXPECT_TRUE(Connect().connected());
}

TEST_F(ServerTest, TheUnixSocketHasItsPermissionsAndGoesWithTheServer) {
  Start("unixsocketperm 700\n");
  struct stat info {};
  ASSERT_EQ(stat(unix_path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  StopAndWait();
  EXPECT_NE(stat(unix_path_.c_str(), &info), 0);
}

TEST_F(ServerTest, AStopAnswersWhatWasReadAndClosesIdleAndBlockedClients) {
  Start("io-threads 2\n");
  Client idle = Connect();
  Client blocking = Connect();
  blocking.Send(Request({"BLOCK"}));
  ASSERT_TRUE(Eventually([&] { return blocked() == 1; }));
  Client busy = Connect();
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += Request({"FILL", "100000"});
  busy.Send(requests);
  ASSERT_TRUE(Eventually([&] { return executed() > 0; }));
  server_->Stop();
  bool closed = false;
  const std::string replies = busy.ReadToEnd(&closed);
  EXPECT_TRUE(closed);
  EXPECT_EQ(replies.size(), static_cast<size_t>(executed()) * 100'011);
  EXPECT_TRUE(idle.AtEnd());
  EXPECT_TRUE(blocking.AtEnd());
  busy.Close();
  running_.join();
  EXPECT_TRUE(waiter(0)->canceled_or_done());
  EXPECT_EQ(clients_.count(), 0u);
  EXPECT_FALSE(Connect().connected());
}

TEST_F(ServerTest, AStopDoesNotWaitForEverForAClientThatDoesNotRead) {
  Start();
  Client client = Connect();
  for (int i = 0; i < 100; ++i) client.Send(Request({"FILL", "1000000"}));
  ASSERT_TRUE(Eventually([&] { return executed() > 0; }));
  const auto begin = std::chrono::steady_clock::now();
  StopAndWait();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(clients_.count(), 0u);
}

TEST_F(ServerTest, AStopBeforeAnythingHappenedEndsAtOnce) {
  Start("io-threads 4\n");
  StopAndWait();
  SUCCEED();
}

TEST_F(ServerTest, ItDoesNotStartOnAPortThatIsTaken) {
  Start();
  Settings settings;
  ASSERT_TRUE(settings.LoadText(absl::StrCat("port ", port_, "\n")).ok());
  Services services{.store = store_,
                    .clock = nullptr,
                    .tokens = tokens_,
                    .settings = settings,
                    .clients = clients_,
                    .slowlog = slowlog_,
                    .latency = latency_,
                    .stats = stats_,
                    .native = native_,
                    .commands = *commands_,
                    .run_id = "",
                    .started_ms = 0};
  Server second(services);
  EXPECT_THAT(
      std::string(second.Start().message()),
      StartsWith(absl::StrCat("Could not create server TCP listening socket 127.0.0.1:", port_)));
}

TEST_F(ServerTest, AnotherBackendIsForTheNextStart) {
  Start();
  ASSERT_TRUE(SetOne("io-backend", "auto").ok());
  EXPECT_EQ(settings_.Text("io-backend"), "auto");
  EXPECT_EQ(settings_.io_uring_in_use.load(), BackendUnderTest() == std::string("io_uring"));
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
}

TEST_F(ServerTest, AutoIsEpollWhereIoUringIsNotAllowed) {
  std::thread([this] {
    if (!RefuseUring()) GTEST_SKIP() << "no seccomp here";
    Start("io-backend auto\n");
  }).join();
  if (IsSkipped()) return;
  EXPECT_FALSE(settings_.io_uring_in_use.load());
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
}

TEST_F(ServerTest, AutoIsIoUringWhereItIsAllowed) {
  if (!RingIsAllowed()) GTEST_SKIP() << "no io_uring is allowed here";
  Start("io-backend auto\n");
  EXPECT_TRUE(settings_.io_uring_in_use.load());
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
}

TEST_F(ServerTest, DoesNotStartWhereIoUringIsAskedForAndNotAllowed) {
  absl::Status started;
  std::thread([&] {
    if (!RefuseUring()) GTEST_SKIP() << "no seccomp here";
    started = TryStart("io-backend io_uring\n");
  }).join();
  if (IsSkipped()) return;
  EXPECT_EQ(started.message(),
            "io-backend io_uring is not to be had here: io_uring_setup: Operation not permitted");
}

}  // namespace
}  // namespace idemd::server
