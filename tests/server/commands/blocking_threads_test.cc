// Callers who wait at lists, on real threads: each element goes to one of them, or stays.
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "protocol/resp/parser.h"
#include "tests/support/harness.h"
#include "tests/support/seed.h"

namespace idemd::testing {
namespace {

constexpr int kKeys = 3;

// A connection whose thread waits for what is posted to it.
class WaitingPeer final : public server::Peer {
 public:
  void Send(std::shared_ptr<const std::string>, storage::Lsn, std::shared_ptr<const std::atomic<bool>>) override {}
  void Kill() override {}
  void Resume(std::function<void(server::Session&, std::string&)> done) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    posted_ = std::move(done);
    changed_.notify_all();
  }
  std::function<void(server::Session&, std::string&)> Take(bool wait) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (wait) changed_.wait(lock, [this] { return posted_ != nullptr; });
    return std::exchange(posted_, nullptr);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void(server::Session&, std::string&)> posted_;
};

// One connection on one thread.
class Client {
 public:
  explicit Client(server::Services& services) : dispatcher_(services) { Connect(); }
  ~Client() { dispatcher_.Closed(session_); }

  // The reply; "" while it waits.
  std::string Do(absl::string_view line) {
    const std::string request = absl::StrCat(line, "\r\n");
    protocol::Parser parser;
    protocol::Batch batch;
    static_cast<void>(parser.Parse(request, protocol::ParserLimits(), 16, batch));
    std::string out;
    dispatcher_.Run(session_, batch, 0, SIZE_MAX, out);
    return out.empty() ? out : Readable(out);
  }
  bool waits() const { return session_.waiter != nullptr; }
  // What was posted to it; "" if nothing was and it is not to wait.
  std::string Posted(bool wait) {
    const auto done = peer_->Take(wait);
    if (done == nullptr) return "";
    std::string out;
    done(session_, out);
    return Readable(out);
  }
  void TimeIsUp() { dispatcher_.WaitIsOver(session_); }
  // Gone while it waited, and here again as another one. If somebody had served it by then, that is on its way to the old
  // one; a real connection would be gone with it.
  std::string Reconnect() {
    const bool served = !session_.waiter->Cancel();
    dispatcher_.Closed(session_);
    const auto done = peer_->Take(/*wait=*/served);
    std::string out;
    if (done != nullptr) done(session_, out);
    Connect();
    return out.empty() ? out : Readable(out);
  }
  uint64_t id() const { return peer_->info().id; }

 private:
  void Connect() {
    session_ = server::Session();
    peer_ = std::make_shared<WaitingPeer>();
    session_.peer = peer_;
  }

  server::Dispatcher dispatcher_;
  server::Session session_;
  std::shared_ptr<WaitingPeer> peer_;
};

std::string RandomWait(std::mt19937_64& rng) {
  const std::string a = absl::StrCat("k", rng() % kKeys), b = absl::StrCat("k", rng() % kKeys);
  switch (rng() % 4) {
    case 0:
      return absl::StrCat("BLPOP ", a, " ", b, " 0");
    case 1:
      return absl::StrCat("BRPOP ", a, " 0");
    case 2:
      return absl::StrCat("BLMPOP 0 2 ", a, " ", b, " LEFT COUNT 2");
    default:
      return absl::StrCat("BLMOVE ", a, " taken LEFT RIGHT 0");
  }
}

// The elements in a readable reply: they are "e" and a number.
void CountElements(absl::string_view reply, std::map<std::string, int>& seen) {
  for (absl::string_view word : absl::StrSplit(reply, absl::ByAnyChar(" []\""), absl::SkipEmpty()))
    if (word[0] == 'e') ++seen[std::string(word)];
}

TEST(BlockingThreadsTest, EachElementIsTakenOnceOrStays) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  constexpr int kPushers = 2, kTakers = 4, kPushes = 5000;
  Harness h;
  std::atomic<bool> pushed{false};
  std::mutex mutex;
  std::map<std::string, int> seen;
  std::vector<std::thread> threads;
  std::atomic<int> pushing{kPushers};
  for (int p = 0; p < kPushers; ++p) {
    threads.emplace_back([&, p] {
      std::mt19937_64 rng(seed + static_cast<uint64_t>(p));
      Client client(h.services);
      for (int i = 0; i < kPushes; ++i) {
        const std::string key = absl::StrCat("k", rng() % kKeys), element = absl::StrCat("e", p * kPushes + i);
        if (rng() % 8 == 0) {
          client.Do("MULTI");
          client.Do(absl::StrCat("RPUSH ", key, " ", element));
          EXPECT_EQ(client.Do("EXEC")[0], '[');
        } else if (rng() % 8 == 0) {
          client.Do(absl::StrCat("RPUSH own", p, " ", element));
          client.Do(absl::StrCat("LMOVE own", p, " ", key, " LEFT LEFT"));
        } else {
          client.Do(absl::StrCat("RPUSH ", key, " ", element));
        }
        std::this_thread::yield();
      }
      if (--pushing == 0) pushed = true;
    });
  }
  for (int t = 0; t < kTakers; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 rng(seed + 100 + static_cast<uint64_t>(t));
      Client client(h.services);
      std::map<std::string, int> mine;
      while (!pushed) {
        const std::string line = RandomWait(rng);
        const bool moves = line.find("BLMOVE") == 0;
        std::string reply = client.Do(line);
        if (client.waits()) {
          switch (rng() % 3) {
            case 0:
              client.TimeIsUp();
              reply = client.Posted(/*wait=*/true);
              break;
            case 1:
              reply = client.Reconnect();
              break;
            default:
              // Somebody else's push ends it, or the time does.
              reply = client.Posted(false);
              if (!reply.empty()) break;
              std::this_thread::yield();
              client.TimeIsUp();
              reply = client.Posted(true);
              break;
          }
        }
        EXPECT_FALSE(client.waits());
        if (!moves) CountElements(reply, mine);
      }
      const std::lock_guard<std::mutex> lock(mutex);
      for (const auto& [element, times] : mine) seen[element] += times;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const char* key : {"k0", "k1", "k2", "taken"}) CountElements(h.Do(absl::StrCat("LRANGE ", key, " 0 -1")), seen);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kPushers * kPushes));
  for (const auto& [element, times] : seen) EXPECT_EQ(times, 1) << element;
  h.store.CheckInvariants();
}

// Nothing wakes these but the pushes: one that is missed hangs here.
TEST(BlockingThreadsTest, NoPushIsMissed) {
  constexpr int kTakers = 4, kRounds = 3000;
  Harness h;
  std::vector<std::thread> threads;
  std::atomic<int> taken{0};
  for (int t = 0; t < kTakers; ++t) {
    threads.emplace_back([&] {
      Client client(h.services);
      for (int i = 0; i < kRounds; ++i) {
        std::string reply = client.Do("BLPOP a b 0");
        if (client.waits()) reply = client.Posted(/*wait=*/true);
        EXPECT_EQ(reply[0], '[') << reply;
        ++taken;
      }
    });
  }
  for (int p = 0; p < 2; ++p) {
    threads.emplace_back([&, p] {
      Client client(h.services);
      for (int i = 0; i < kRounds * kTakers / 2; ++i) client.Do(p == 0 ? "RPUSH a x" : "LPUSH b y");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, kTakers * kRounds);
  EXPECT_EQ(h.Do("EXISTS a b"), "0");
}

// A chain of moves by callers of their own, each of whom waits for the one before.
TEST(BlockingThreadsTest, AChainOfMovesCarriesAllElementsInOrder) {
  constexpr int kLinks = 3, kElements = 3000;
  Harness h;
  std::vector<std::thread> threads;
  for (int link = 0; link < kLinks; ++link) {
    threads.emplace_back([&, link] {
      Client client(h.services);
      for (int i = 0; i < kElements; ++i) {
        const std::string reply = client.Do(absl::StrCat("BLMOVE c", link, " c", link + 1, " LEFT RIGHT 0"));
        if (client.waits()) client.Posted(/*wait=*/true);
      }
    });
  }
  threads.emplace_back([&] {
    Client client(h.services);
    for (int i = 0; i < kElements; ++i) client.Do(absl::StrCat("RPUSH c0 ", i));
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(h.Do(absl::StrCat("LLEN c", kLinks)), std::to_string(kElements));
  EXPECT_EQ(h.Do(absl::StrCat("LRANGE c", kLinks, " 0 3")), "[\"0\" \"1\" \"2\" \"3\"]");
  EXPECT_EQ(h.Do(absl::StrCat("LINDEX c", kLinks, " -1")), absl::StrCat("\"", kElements - 1, "\""));
}

}  // namespace
}  // namespace idemd::testing
