// A server in its steady state allocates nothing for a request: neither its connection, nor its commands, nor the table.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "server/net/server.h"
#include "tests/server/allocation/allocations.h"
#include "tests/server/commands/introspection_fixture.h"
#include "tests/server/net/net_fixture.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kEnd = "+PONG\r\n";

// A server with all commands, over TCP.
class SteadyStateTest : public IntrospectionTest {
 protected:
  SteadyStateTest() {
    if (!idemd::testing::allocations::CanCount()) return;
    port_ = server::FreePort();
    EXPECT_TRUE(settings_.LoadText(absl::StrCat("port ", port_, "\nio-threads 1\n")).ok());
    server_ = std::make_unique<Server>(services_);
    EXPECT_TRUE(server_->Start().ok());
    running_ = std::thread([this] { server_->Run(); });
  }
  ~SteadyStateTest() override {
    if (server_ == nullptr) return;
    server_->Stop();
    running_.join();
  }

  // Reads up to the answer of the PING that ends a batch.
  static bool Skip(int fd) {
    char bytes[4096];
    size_t kept = 0;
    for (;;) {
      const ssize_t n = recv(fd, bytes + kept, sizeof(bytes) - kept, 0);
      if (n <= 0) return false;
      const absl::string_view got(bytes, kept + static_cast<size_t>(n));
      if (absl::EndsWith(got, kEnd)) return true;
      kept = std::min(got.size(), kEnd.size());
      std::memmove(bytes, bytes + got.size() - kept, kept);
    }
  }

  // Of `rounds` times these requests, once they have run often enough that everything has grown to its size.
  int64_t AllocationsOf(const std::vector<std::vector<absl::string_view>>& requests, int rounds) {
    std::string batch;
    for (const auto& words : requests) batch += Request(words);
    batch += Request({"PING"});
    server::Client client = server::Client::Tcp(port_);
    const auto run = [&](int n) {
      for (int i = 0; i < n; ++i) {
        client.Send(batch);
        ASSERT_TRUE(Skip(client.fd()));
      }
    };
    run(3000);
    idemd::testing::allocations::Count();
    run(rounds);
    idemd::testing::allocations::Stop();
    return idemd::testing::allocations::Seen();
  }

  // Pipelines of 1 and of 16.
  void ExpectNone(const std::vector<absl::string_view>& words) {
    if (!idemd::testing::allocations::CanCount()) GTEST_SKIP() << "the sanitizer has an allocator of its own";
    for (const size_t depth : {1, 16}) {
      const std::vector<std::vector<absl::string_view>> requests(depth, words);
      constexpr int kRounds = 2000;
      // What is kept for later (retired entries, statistics) may grow once more.
      EXPECT_LE(AllocationsOf(requests, kRounds), 4) << words[0] << " at pipeline " << depth << ", " << kRounds << " rounds";
    }
  }

  int port_ = 0;
  std::unique_ptr<Server> server_;
  std::thread running_;
};

constexpr absl::string_view kKey = "form:0b6f3c52-9d3e-4b55-8a2c-6a1c3e0f9b77";

TEST_F(SteadyStateTest, Ping) { ExpectNone({"PING"}); }
TEST_F(SteadyStateTest, GetOfNothing) { ExpectNone({"GET", kKey}); }
TEST_F(SteadyStateTest, Get) {
  Run(absl::StrCat("SET ", kKey, " ", std::string(100, 'v')));
  ExpectNone({"GET", kKey});
}
TEST_F(SteadyStateTest, Set) { ExpectNone({"SET", kKey, "value", "EX", "100"}); }
TEST_F(SteadyStateTest, SetNx) { ExpectNone({"SET", kKey, "1", "NX", "EX", "100"}); }
TEST_F(SteadyStateTest, Incr) { ExpectNone({"INCR", "counter"}); }
TEST_F(SteadyStateTest, Expire) {
  Run(absl::StrCat("SET ", kKey, " v"));
  ExpectNone({"EXPIRE", kKey, "100"});
}
TEST_F(SteadyStateTest, HashField) {
  Run("HSET h f v");
  ExpectNone({"HGET", "h", "f"});
}
TEST_F(SteadyStateTest, ReserveOfWhatIsPending) { ExpectNone({"IDEM.RESERVE", kKey, "CLAIM", "me", "LEASE", "100000"}); }
TEST_F(SteadyStateTest, ReserveOfWhatIsDone) {
  const std::string reserved = Run(absl::StrCat("IDEM.RESERVE ", kKey));
  const std::vector<std::string> parts = absl::StrSplit(reserved, "\r\n");
  Run(absl::StrCat("IDEM.COMPLETE ", kKey, " ", parts[3].substr(1), " answer"));
  EXPECT_THAT(Run(absl::StrCat("IDEM.RESERVE ", kKey)), ::testing::HasSubstr("DONE"));
  ExpectNone({"IDEM.RESERVE", kKey, "CLAIM", "me"});
}
TEST_F(SteadyStateTest, ConsumeOfWhatIsGone) { ExpectNone({"IDEM.CONSUME", kKey}); }
TEST_F(SteadyStateTest, Status) { ExpectNone({"IDEM.STATUS", kKey}); }
TEST_F(SteadyStateTest, Throttle) { ExpectNone({"IDEM.THROTTLE", "limit", "5", "10", "60"}); }

}  // namespace
}  // namespace idemd::server
