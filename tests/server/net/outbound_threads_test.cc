// Conversations over real sockets of this machine.
#include "server/net/outbound_threads.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <string>
#include <thread>

namespace idemd::server {
namespace {

// Listens on a free port of 127.0.0.1.
class Listening {
 public:
  Listening() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(fd_, 4), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listening() { Close(); }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int port() const { return port_; }
  // Takes one connection, reads `bytes` bytes, and sends `reply`.
  std::string Serve(size_t bytes, const std::string& reply) {
    const int peer = accept(fd_, nullptr, nullptr);
    std::string got;
    char byte = 0;
    while (got.size() < bytes && read(peer, &byte, 1) == 1) got += byte;
    EXPECT_EQ(write(peer, reply.data(), reply.size()), static_cast<ssize_t>(reply.size()));
    close(peer);
    return got;
  }

 private:
  int fd_;
  int port_ = 0;
};

ConversationResult Talk(OutboundThreads& threads, Conversation what) {
  std::promise<ConversationResult> result;
  threads.Begin(std::move(what), [&](const ConversationResult& r) { result.set_value(r); });
  return result.get_future().get();
}

TEST(OutboundThreads, WhatIsAskedIsSentAndTheLinesComeBack) {
  Listening other;
  std::string got;
  std::thread serving([&] { got = other.Serve(5, "+OK\r\n-ERR no\r\n"); });
  OutboundThreads threads;
  const ConversationResult result = Talk(threads, {"127.0.0.1", other.port(), 10'000, "hello", 2});
  serving.join();
  EXPECT_EQ(got, "hello");
  EXPECT_EQ(result.failure, LinkFailure::kNone);
  EXPECT_EQ(result.lines, (std::vector<std::string>{"+OK", "-ERR no"}));
}

TEST(OutboundThreads, APeerThatClosesEarlyLeavesTheLinesThatCame) {
  Listening other;
  std::thread serving([&] { other.Serve(5, "+OK\r\n+O"); });
  OutboundThreads threads;
  const ConversationResult result = Talk(threads, {"127.0.0.1", other.port(), 10'000, "hello", 2});
  serving.join();
  EXPECT_EQ(result.failure, LinkFailure::kReading);
  EXPECT_EQ(result.lines, std::vector<std::string>{"+OK"});
}

TEST(OutboundThreads, APeerThatNeverAnswersCostsTheTimeout) {
  Listening other;  // the kernel takes the connection
  OutboundThreads threads;
  EXPECT_EQ(Talk(threads, {"127.0.0.1", other.port(), 1, "hello", 1}).failure, LinkFailure::kReading);
}

TEST(OutboundThreads, WhereNobodyListensWritingFails) {
  Listening other;
  const int port = other.port();
  other.Close();
  OutboundThreads threads;
  EXPECT_EQ(Talk(threads, {"127.0.0.1", port, 10'000, "hello", 1}).failure, LinkFailure::kWriting);
}

TEST(OutboundThreads, StopBreaksOffWhatIsUnderWay) {
  Listening other;
  OutboundThreads threads;
  std::promise<ConversationResult> result;
  threads.Begin({"127.0.0.1", other.port(), 3'600'000, "hello", 1},
                [&](const ConversationResult& r) { result.set_value(r); });
  threads.Stop();
  EXPECT_NE(result.get_future().get().failure, LinkFailure::kNone);
}

}  // namespace
}  // namespace idemd::server
