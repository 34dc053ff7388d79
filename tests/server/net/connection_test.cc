// One connection's life against a real server: pipelines, pieces, large words, slow and vanishing
// clients, waiting.
#include "server/net/connection.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "tests/server/net/net_fixture.h"

namespace idemd::server {
namespace {

using ::testing::StartsWith;

class ConnectionTest : public NetTest {};

TEST_F(ConnectionTest, AnswersOverTcpAndUnixSockets) {
  Start();
  Client tcp = Connect();
  Client local = Client::Unix(unix_path_);
  for (Client* client : {&tcp, &local}) {
    client->Send("PING\r\n");
    EXPECT_EQ(client->Line(), "+PONG\r\n");
    client->Send(Request({"ECHO", "a b"}));
    EXPECT_EQ(client->Read(9), "$3\r\na b\r\n");
  }
}

TEST_F(ConnectionTest, AnswersALongPipelineInOrder) {
  Start();
  constexpr int kRequests = 10'000;
  std::string requests;
  std::string expected;
  for (int i = 0; i < kRequests; ++i) {
    const std::string word = absl::StrCat("word-", i);
    absl::StrAppend(&requests, Request({"ECHO", word}));
    absl::StrAppend(&expected, "$", word.size(), "\r\n", word, "\r\n");
  }
  Client client = Connect();
  std::thread sender([&] { client.Send(requests); });
  EXPECT_EQ(client.Read(expected.size()), expected);
  sender.join();
}

TEST_F(ConnectionTest, TakesRequestsByteByByte) {
  Start();
  Client client = Connect();
  const std::string requests =
      Request({"ECHO", "one"}) + "\r\n" + "ECHO 'two three'\r\n" + Request({"PING"});
  for (const char byte : requests) client.Send(absl::string_view(&byte, 1));
  EXPECT_EQ(client.Read(9), "$3\r\none\r\n");
  EXPECT_EQ(client.Read(15), "$9\r\ntwo three\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
}

TEST_F(ConnectionTest, CarriesALargeWordBothWays) {
  Start();
  std::string word(64 << 20, 'a');
  for (size_t i = 0; i < word.size(); i += 4099) word[i] = static_cast<char>('b' + i % 23);
  Client client = Connect();
  std::thread sender([&] { client.Send(Request({"ECHO", word})); });
  const std::string head = absl::StrCat("$", word.size(), "\r\n");
  EXPECT_EQ(client.Read(head.size()), head);
  EXPECT_TRUE(client.Read(word.size()) == word);
  EXPECT_EQ(client.Read(2), "\r\n");
  sender.join();
  // And goes back to little memory.
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  EXPECT_TRUE(
      Eventually([&] { return clients_.All()[0]->info().query_free <= ReadBuffer::kBytesBusy; }));
}

TEST_F(ConnectionTest, AClientThatDoesNotReadIsNotExecutedForAndLosesNothing) {
  Start();
  Client slow = Connect();
  constexpr int kRequests = 4000;
  constexpr int kBytes = 20'000;
  const std::string request = Request({"FILL", absl::StrCat(kBytes)});
  std::string requests;
  for (int i = 0; i < kRequests; ++i) requests += request;
  std::thread sender([&] { slow.Send(requests); });
  // It stops well before all is executed; others are served meanwhile.
  Client other = Connect();
  int last = -1;
  EXPECT_TRUE(Eventually([&] {
    other.Send("PING\r\n");
    EXPECT_EQ(other.Line(), "+PONG\r\n");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const int now = executed();
    return now > 0 && std::exchange(last, now) == now;
  }));
  EXPECT_LT(executed(), kRequests / 2);
  const std::string reply = absl::StrCat("$", kBytes, "\r\n", std::string(kBytes, 'x'), "\r\n");
  for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(slow.Read(reply.size()) == reply) << i;
  sender.join();
  EXPECT_EQ(executed(), kRequests);
}

// Unix sockets hold little, so that most of what is sent at once is cut short somewhere.
TEST_F(ConnectionTest, ClientsThatReadInFitsGetEveryByteInOrder) {
  Start();
  constexpr int kClients = 8;
  constexpr int kRequests = 3000;
  std::string requests;
  std::string expected;
  for (int i = 0; i < kRequests; ++i) {
    const int n = i * 37 % 5000;
    absl::StrAppend(&requests, Request({"FILL", absl::StrCat(n)}), Request({"ECHO", absl::StrCat(i)}));
    absl::StrAppend(&expected, "$", n, "\r\n", std::string(static_cast<size_t>(n), 'x'), "\r\n");
    absl::StrAppend(&expected, "$", absl::StrCat(i).size(), "\r\n", i, "\r\n");
  }
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      Client client = Client::Unix(unix_path_);
      std::thread sender([&] { client.Send(requests); });
      std::string got;
      for (size_t round = 0; got.size() < expected.size(); ++round) {
        const std::string part = client.Read(std::min(expected.size() - got.size(), 1 + round * 7919 % 150'000));
        if (part.empty()) break;
        got += part;
        if (round % 8 == static_cast<size_t>(c)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (got == expected) ++good;
      sender.join();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kClients);
  EXPECT_TRUE(Eventually([&] { return stats_.Totals().written_bytes == kClients * expected.size(); }));
}

TEST_F(ConnectionTest, AHalfClosedClientGetsItsAnswersThenTheEnd) {
  Start();
  Client client = Connect();
  std::string requests;
  for (int i = 0; i < 300; ++i) requests += Request({"FILL", "10000"});
  client.Send(requests + "*1\r\n$4\r\nPI");  // the last one never comes in whole
  client.ShutWrite();
  bool closed = false;
  EXPECT_EQ(client.ReadToEnd(&closed).size(),
            300 * std::string("$10000\r\n\r\n").size() + 300 * 10'000);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
}

TEST_F(ConnectionTest, AClientThatVanishesDuringAWriteIsForgotten) {
  Start();
  Client client = Connect();
  for (int i = 0; i < 2000; ++i) client.Send(Request({"FILL", "20000"}));
  EXPECT_TRUE(Eventually(
      [&] { return clients_.count() == 1 && clients_.All()[0]->info().output_bytes > 0; }));
  client.Reset();
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
}

TEST_F(ConnectionTest, KillEndsAConnectionWithOutputWaiting) {
  Start();
  Client client = Connect();
  for (int i = 0; i < 2000; ++i) client.Send(Request({"FILL", "20000"}));
  EXPECT_TRUE(Eventually(
      [&] { return clients_.count() == 1 && clients_.All()[0]->info().output_bytes > 0; }));
  clients_.All()[0]->Kill();
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
  bool closed = false;
  client.ReadToEnd(&closed);
  EXPECT_TRUE(closed);
}

TEST_F(ConnectionTest, CloseAfterReplySendsTheReplyAndExecutesNoMore) {
  Start();
  Client client = Connect();
  client.Send(Request({"PING"}) + Request({"CLOSE"}) + Request({"ECHO", "no"}));
  EXPECT_THAT(client.ReadToEnd(), StartsWith("+PONG\r\n+OK\r\n"));
  EXPECT_EQ(executed(), 0);
}

TEST_F(ConnectionTest, WhileBlockedNothingIsExecutedAndAllIsAnsweredLater) {
  Start();
  Client client = Connect();
  // In the middle of a batch: what came behind it in the same read waits too.
  client.Send(Request({"ECHO", "1"}) + Request({"BLOCK"}) + Request({"ECHO", "2"}) + "\r\n" +
              "ECHO 3\r\n");
  EXPECT_EQ(client.Read(7), "$1\r\n1\r\n");
  ASSERT_TRUE(Eventually([&] { return blocked() == 1; }));
  EXPECT_TRUE(Eventually([&] { return clients_.blocked() == 1; }));
  std::string more;
  for (int i = 0; i < 5000; ++i) more += Request({"ECHO", "more"});  // past the buffer's first size
  client.Send(more);
  Client other = Connect();
  other.Send("PING\r\n");
  EXPECT_EQ(other.Line(), "+PONG\r\n");
  EXPECT_EQ(executed(), 1);
  Unblock(0, "+woken\r\n");
  EXPECT_EQ(client.Line(), "+woken\r\n");
  EXPECT_EQ(client.Read(14), "$1\r\n2\r\n$1\r\n3\r\n");
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.Read(10), "$4\r\nmore\r\n");
  EXPECT_EQ(clients_.blocked(), 0u);
}

TEST_F(ConnectionTest, BlocksAgainAndAgainInOnePipeline) {
  Start();
  Client client = Connect();
  std::string requests;
  for (int i = 0; i < 50; ++i) requests += Request({"BLOCK"}) + Request({"ECHO", absl::StrCat(i)});
  client.Send(requests);
  for (size_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(Eventually([&] { return blocked() == i + 1; }));
    Unblock(i, "+woken\r\n");
    ASSERT_EQ(client.Line(), "+woken\r\n");
    ASSERT_EQ(client.Line(), absl::StrCat("$", absl::StrCat(i).size(), "\r\n"));
    ASSERT_EQ(client.Line(), absl::StrCat(i, "\r\n"));
  }
}

TEST_F(ConnectionTest, ABlockedClientThatGoesAwayGivesUpItsWait) {
  Start();
  for (const bool reset : {false, true}) {
    const size_t before = blocked();
    Client client = Connect();
    client.Send(Request({"BLOCK"}));
    ASSERT_TRUE(Eventually([&] { return blocked() == before + 1; }));
    EXPECT_FALSE(waiter(before)->canceled_or_done());
    if (reset) client.Reset();
    client.Close();
    EXPECT_TRUE(Eventually([&] { return waiter(before)->canceled_or_done(); }));
    EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
    Unblock(before, "+too late\r\n");  // hits nobody
  }
}

TEST_F(ConnectionTest, AProtocolErrorIsAnsweredThenTheConnectionCloses) {
  Start();
  Client client = Connect();
  client.Send(Request({"PING"}) + "*1\r\n$x\r\n" + std::string(100'000, 'y'));
  bool closed = false;
  EXPECT_EQ(client.ReadToEnd(&closed), "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_TRUE(closed);
}

TEST_F(ConnectionTest, HttpIsCutOff) {
  Start();
  Client post = Connect();
  post.Send("POST / HTTP/1.1\r\nECHO x\r\n");
  EXPECT_TRUE(post.AtEnd());
  Client get = Connect();
  get.Send("GET / HTTP/1.1\r\nUser-Agent: x\r\nhOST: localhost\r\nECHO x\r\n");
  EXPECT_TRUE(get.AtEnd());
  for (const char* line : {"GET / HTTP/1.0\r\nECHO x\r\n", "PUT /x HTTP/1.1\r\nECHO x\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n"}) {
    Client first_line = Connect();
    first_line.Send(line);
    EXPECT_TRUE(first_line.AtEnd()) << line;
  }
  EXPECT_EQ(executed(), 0);
}

TEST_F(ConnectionTest, BytesThatNoCommandBeginsWithAreRefusedAtOnce) {
  Start();
  Client client = Connect();
  client.Send("\x80\x2e\x01");
  bool closed = false;
  EXPECT_THAT(client.ReadToEnd(&closed), ::testing::StartsWith("-ERR Protocol error: expected '*' or a command"));
  EXPECT_TRUE(closed);
}

TEST_F(ConnectionTest, OfTooManyWhoHaveNotLoggedInTheOldestHaveToGo) {
  Start("requirepass p\nunauthenticated-max-clients 2\n");
  std::vector<Client> strangers;
  for (int i = 0; i < 2; ++i) {
    strangers.push_back(Connect());
    strangers.back().Send(Request({"PING"}));
    EXPECT_THAT(strangers.back().Line(), ::testing::StartsWith("-NOAUTH"));
  }
  strangers.push_back(Connect());
  EXPECT_TRUE(strangers[0].AtEnd());
  strangers[1].Send(Request({"PING"}));
  EXPECT_THAT(strangers[1].Line(), ::testing::StartsWith("-NOAUTH"));
}

TEST_F(ConnectionTest, WhoDoesNotLogInInTimeHasToGo) {
  Start("requirepass p\nunauthenticated-max-seconds 1\n");
  Client client = Connect();
  bool closed = false;
  EXPECT_EQ(client.ReadToEnd(&closed), "-NOAUTH Authentication required.\r\n");
  EXPECT_TRUE(closed);
}

TEST_F(ConnectionTest, BeforeTheLoginFewBytesMayWait) {
  Start("requirepass p\nunauthenticated-query-buffer-limit 64kb\n");
  Client client = Connect();
  client.Send("*10\r\n");
  std::thread sender([&] {
    for (int i = 0; i < 9; ++i) client.Send(absl::StrCat("$16000\r\n", std::string(16000, 'x'), "\r\n"));
  });
  EXPECT_TRUE(Eventually([&] { return stats_.Totals().query_limit_disconnections == 1; }));
  sender.join();
}

TEST_F(ConnectionTest, ARequestHasNoMoreWordsThanTheSetting) {
  Start("proto-max-words 2000\n");
  Client client = Connect();
  client.Send("*2001\r\n");
  EXPECT_EQ(client.ReadToEnd(), "-ERR Protocol error: invalid multibulk length\r\n");
}

TEST_F(ConnectionTest, BeyondTheMemoryOfAllClientsWhoHoldsMostHasToGo) {
  Start("maxmemory-clients 10%\nmaxmemory 10mb\n");
  Client small = Connect();
  small.Send("*2\r\n$4\r\nECHO\r\n$300000\r\n" + std::string(200'000, 'x'));
  EXPECT_TRUE(Eventually([&] { return clients_.memory().normal_bytes > 200'000; }));
  Client kept = Connect();
  kept.Send(Request({"PING"}));
  EXPECT_EQ(kept.Line(), "+PONG\r\n");
  clients_.All().back()->info().no_evict = true;
  kept.Send("*2\r\n$4\r\nECHO\r\n$3000000\r\n" + std::string(2'900'000, 'x'));
  EXPECT_TRUE(Eventually([&] { return clients_.memory().normal_bytes > 2'900'000; }));
  Client large = Connect();
  large.Send("*2\r\n$4\r\nECHO\r\n$1100000\r\n");
  std::thread sender([&] { large.Send(std::string(1'050'000, 'x')); });
  EXPECT_TRUE(large.AtEnd());
  sender.join();
  EXPECT_EQ(stats_.Totals().evicted_clients, 1u);
  small.Send(std::string(100'000, 'x') + "\r\n");
  EXPECT_EQ(small.Read(9), "$300000\r\n");
  kept.Send(std::string(100'000, 'x') + "\r\n");
  EXPECT_EQ(kept.Read(10), "$3000000\r\n");
}

TEST_F(ConnectionTest, TooManyBytesOfRequestsCloseTheConnection) {
  Start("client-query-buffer-limit 1mb\n");
  Client client = Connect();
  client.Send(Request({"BLOCK"}));
  ASSERT_TRUE(Eventually([&] { return blocked() == 1; }));
  std::thread sender([&] { client.Send(std::string(3 << 20, 'x')); });
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
  sender.join();
  EXPECT_EQ(stats_.Totals().query_limit_disconnections, 1u);
  EXPECT_TRUE(waiter(0)->canceled_or_done());
}

TEST_F(ConnectionTest, TheHardOutputLimitClosesTheConnection) {
  Start("client-output-buffer-limit normal 100kb 0 0\n");
  Client client = Connect();
  client.Send(Request({"FILL", "50000000"}));  // more than the socket takes at once
  EXPECT_TRUE(Eventually([&] { return stats_.Totals().output_limit_disconnections == 1; }));
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 0; }));
}

TEST_F(ConnectionTest, TheSoftOutputLimitClosesAfterItsTime) {
  Start("client-output-buffer-limit normal 0 100kb 1\n");
  Client client = Connect();
  client.Send(Request({"FILL", "50000000"}));
  EXPECT_TRUE(Eventually([&] { return stats_.Totals().output_limit_disconnections == 1; }));
}

TEST_F(ConnectionTest, SentBytesComeInOrderAndCountAsPubsub) {
  Start("client-output-buffer-limit normal 1 1 1 pubsub 10mb 0 0\n");
  Client monitor = Connect();
  monitor.Send(Request({"MONITOR"}));
  EXPECT_EQ(monitor.Line(), "+OK\r\n");
  for (int i = 0; i < 1000; ++i)
    clients_.SendToMonitors(std::make_shared<const std::string>(absl::StrCat("+line ", i, "\r\n")), 0);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(monitor.Line(), absl::StrCat("+line ", i, "\r\n"));
  const auto large = std::make_shared<const std::string>(1 << 20, 'z');
  for (int i = 0; i < 40; ++i) clients_.SendToMonitors(large, 0);
  EXPECT_TRUE(Eventually([&] { return clients_.monitors() == 0; }));
}

std::shared_ptr<const std::string> Shared(absl::string_view text) {
  return std::make_shared<const std::string>(text.data(), text.size());
}

TEST_F(ConnectionTest, WhatIsSentWaitsForTheLogAndKeepsItsPlace) {
  Start();
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  const std::shared_ptr<Peer> peer = clients_.All()[0];
  peer->Send(Shared("+first\r\n"), 5);
  peer->Send(Shared("+second\r\n"), 7);
  peer->Send(Shared("+third\r\n"), 0);
  client.Send("PING\r\n");
  const size_t held = std::string("+first\r\n+second\r\n+third\r\n+PONG\r\n").size();
  EXPECT_TRUE(Eventually([&] { return peer->info().output_bytes == held; }));
  log_.ReleaseTo(5);
  server_->OnReleased();
  EXPECT_EQ(client.Line(), "+first\r\n");
  EXPECT_TRUE(Eventually([&] { return peer->info().output_bytes == held - 8; }));
  log_.ReleaseTo(7);
  server_->OnReleased();
  for (const char* line : {"+second\r\n", "+third\r\n", "+PONG\r\n"}) EXPECT_EQ(client.Line(), line);
}

TEST_F(ConnectionTest, WhatIsNotWantedAnyMoreIsNotSent) {
  Start();
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  const std::shared_ptr<Peer> peer = clients_.All()[0];
  const auto wanted = std::make_shared<std::atomic<bool>>(true);
  const auto unwanted = std::make_shared<std::atomic<bool>>(false);
  peer->Send(Shared("+one\r\n"), 0, wanted);
  peer->Send(Shared("+two\r\n"), 0, unwanted);
  peer->Send(Shared("+three\r\n"), 0, wanted);
  EXPECT_EQ(client.Line(), "+one\r\n");
  EXPECT_EQ(client.Line(), "+three\r\n");
}

TEST_F(ConnectionTest, AnAnswerFromElsewhereKeepsItsPlaceAmongMessages) {
  Start();
  Client client = Connect();
  client.Send(Request({"BLOCK"}) + Request({"ECHO", "next"}));
  ASSERT_TRUE(Eventually([&] { return blocked() == 1; }));
  const std::shared_ptr<Peer> peer = clients_.All()[0];
  peer->Send(Shared("+before\r\n"));
  Unblock(0, "+woken\r\n");
  peer->Send(Shared("+behind\r\n"));
  // The next request goes on with the answer.
  for (const char* line : {"+before\r\n", "+woken\r\n", "$4\r\n", "next\r\n", "+behind\r\n"})
    EXPECT_EQ(client.Line(), line);
}

TEST_F(ConnectionTest, ManyThreadsSendToManyConnectionsInOrder) {
  constexpr int kMessages = 500;
  Start("io-threads 2\n");
  std::vector<Client> receivers;
  for (int i = 0; i < 8; ++i) {
    receivers.push_back(Connect());
    receivers.back().Send("PING\r\n");
    EXPECT_EQ(receivers.back().Line(), "+PONG\r\n");
  }
  std::vector<std::thread> senders;
  for (int t = 0; t < 3; ++t) {
    senders.emplace_back([this, t] {
      const std::vector<std::shared_ptr<Peer>> peers = clients_.All();
      for (int i = 0; i < kMessages; ++i) {
        // Now and then one that is not copied.
        const std::string text = absl::StrCat("+", t, " ", i, std::string(i % 50 == 0 ? 5'000 : 0, 'x'), "\r\n");
        for (const auto& peer : peers) peer->Send(Shared(text));
      }
    });
  }
  for (Client& receiver : receivers) {
    int next[3] = {};
    for (int i = 0; i < 3 * kMessages; ++i) {
      const std::string line = receiver.Line();
      const int t = line[1] - '0';
      ASSERT_EQ(std::atoi(line.c_str() + 3), next[t]++) << line.substr(0, 20);
    }
  }
  for (std::thread& sender : senders) sender.join();
}

TEST_F(ConnectionTest, AnIdleConnectionGivesItsBufferBackAndStillAnswers) {
  Start();
  Client client = Connect();
  client.Send("PING\r\n");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  ASSERT_TRUE(Eventually([&] { return clients_.count() == 1; }));
  const std::shared_ptr<Peer> peer = clients_.All()[0];  // kept: what is read of it has its end before the loop frees it
  const ClientInfo& info = peer->info();
  EXPECT_TRUE(Eventually([&] { return info.query_free == 0; }));
  client.Send(Request({"ECHO", std::string(100'000, 'q')}));
  EXPECT_EQ(client.Read(9), "$100000\r\n");
  EXPECT_EQ(client.Read(100'002), std::string(100'000, 'q') + "\r\n");
}

TEST_F(ConnectionTest, TimeoutClosesIdleConnectionsButNotBlockedOnes) {
  Start("timeout 1\n");
  Client idle = Connect();
  Client blocking = Connect();
  blocking.Send(Request({"BLOCK"}));
  EXPECT_TRUE(idle.AtEnd());
  EXPECT_TRUE(Eventually([&] { return clients_.count() == 1; }));
  Unblock(0, "+woken\r\n");
  EXPECT_EQ(blocking.Line(), "+woken\r\n");
}

TEST_F(ConnectionTest, ClientInfoTellsWhoAndHowMuch) {
  Start();
  Client client = Connect();
  client.Send(Request({"PING"}) + "*1\r\n$4\r\nP");
  EXPECT_EQ(client.Line(), "+PONG\r\n");
  const std::shared_ptr<Peer> peer = clients_.All()[0];
  EXPECT_THAT(peer->info().address, StartsWith("127.0.0.1:"));
  EXPECT_EQ(peer->info().local_address, absl::StrCat("127.0.0.1:", port_));
  EXPECT_TRUE(Eventually([&] { return peer->info().query_bytes == 9; }));
  EXPECT_EQ(peer->info().commands, 1u);
  Client local = Client::Unix(unix_path_);
  local.Send("PING\r\n");
  EXPECT_EQ(local.Line(), "+PONG\r\n");
  EXPECT_EQ(clients_.All()[1]->info().address, unix_path_ + ":0");
  EXPECT_TRUE(clients_.All()[1]->info().unix_socket);
}

}  // namespace
}  // namespace idemd::server
