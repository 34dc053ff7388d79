// One ring over socket pairs: bytes in order, sends that are cut short, a pool that runs dry, requests in flight at the end.
#include "server/net/ring.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/net/refuse_uring.h"

namespace idemd::server {
namespace {

constexpr auto kPatience = std::chrono::seconds(20);

// One end of a pair on the ring, the other one ours.
class Socket final : public RingClient {
 public:
  explicit Socket(Ring& ring) : ring_(ring) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fd_ = ends[0];
    peer = ends[1];
    fcntl(peer, F_SETFL, O_NONBLOCK);
    id = ring_.Add(this, fd_);
  }
  ~Socket() {
    Remove();
    if (peer >= 0) close(peer);
  }
  void Remove() {
    if (fd_ < 0) return;
    ring_.Remove(id);
    close(std::exchange(fd_, -1));
  }

  void OnReceived(char* bytes, size_t n) override {
    received.append(bytes, n);
    if (keen) ring_.Receive(id);
  }
  void OnReceiveEnd(int error) override {
    ended = true;
    end_error = error;
  }
  void KeepUnsent(absl::string_view rest, int error) override {
    unsent.append(rest.data(), rest.size());
    send_error = error;
  }
  void OnUnsent() override { ++told_unsent; }
  void OnWritable() override { ++writable; }

  // What the peer can read now.
  std::string Drain() {
    std::string out;
    char bytes[64 * 1024];
    for (ssize_t n = 0; (n = recv(peer, bytes, sizeof(bytes), 0)) > 0;) out.append(bytes, static_cast<size_t>(n));
    return out;
  }
  // As much as fits.
  size_t Write(absl::string_view bytes) {
    const ssize_t n = send(peer, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 ? 0 : static_cast<size_t>(n);
  }

  Ring::Id id = 0;
  int peer = -1;
  bool keen = true;  // asks for more as soon as something has come
  std::string received;
  std::string unsent;
  bool ended = false;
  int end_error = 0;
  int send_error = 0;
  int told_unsent = 0;
  int writable = 0;

 private:
  Ring& ring_;
  int fd_ = -1;
};

class RingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (absl::Status status = Ring::Make(context_).status(); !status.ok()) GTEST_SKIP() << status;
  }
  void Start(const RingOptions& options = {}) {
    absl::StatusOr<std::unique_ptr<Ring>> made = Ring::Make(context_, options);
    ASSERT_TRUE(made.ok()) << made.status();
    ring_ = *std::move(made);
    ring_->Start();
  }
  void TearDown() override {
    sockets_.clear();
    if (ring_ != nullptr) ring_->Stop();
    context_.restart();
    context_.run();
  }
  Socket& New() { return sockets_.emplace_back(*ring_); }
  template <class Condition>
  bool Until(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!condition() && std::chrono::steady_clock::now() < end) context_.run_one_for(std::chrono::milliseconds(10));
    return condition();
  }
  void RunFor(std::chrono::milliseconds time) {
    context_.restart();
    context_.run_for(time);
  }

  IoContext context_{1};
  std::unique_ptr<Ring> ring_;
  std::deque<Socket> sockets_;
};

std::string Pattern(size_t n) {
  std::string bytes(n, 0);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<char>('a' + i * 7 % 26 + i / 4096 % 3);
  return bytes;
}

TEST_F(RingTest, WhatIsSentArrivesAndWhatArrivesIsReceived) {
  Start();
  if (IsSkipped()) return;
  Socket& socket = New();
  ring_->Receive(socket.id);
  EXPECT_TRUE(ring_->Send(socket.id, "one "));
  EXPECT_TRUE(ring_->Send(socket.id, "two"));
  EXPECT_TRUE(ring_->staged(socket.id));
  std::string out;
  EXPECT_TRUE(Until([&] { return (out += socket.Drain()) == "one two"; }));
  EXPECT_FALSE(ring_->staged(socket.id));
  for (const char* word : {"three ", "four ", "five"}) {
    socket.Write(word);
    RunFor(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(Until([&] { return socket.received == "three four five"; }));
  EXPECT_FALSE(socket.ended);
  shutdown(socket.peer, SHUT_WR);
  EXPECT_TRUE(Until([&] { return socket.ended; }));
  EXPECT_EQ(socket.end_error, 0);
}

TEST_F(RingTest, WhatTheSocketDoesNotTakeIsKeptBeforeTheSubmitReturns) {
  Start();
  if (IsSkipped()) return;
  Socket& full = New();
  Socket& other = New();
  const std::string all = Pattern(8 << 20);
  size_t staged = 0;
  while (full.unsent.empty() && staged < all.size()) {
    ASSERT_TRUE(ring_->Send(full.id, absl::string_view(all).substr(staged, 50'000)));
    staged += 50'000;
    // Another one's bytes in the same submit, behind those that do not fit.
    ASSERT_TRUE(ring_->Send(other.id, "x"));
    ring_->Submit();
  }
  ASSERT_FALSE(full.unsent.empty());
  EXPECT_EQ(full.send_error, 0);
  EXPECT_TRUE(other.unsent.empty());
  // Refused as a whole.
  const size_t cut = full.unsent.size();
  ASSERT_TRUE(ring_->Send(full.id, absl::string_view(all).substr(staged, 10)));
  staged += 10;
  ring_->Submit();
  EXPECT_EQ(full.unsent.size(), cut + 10);
  const std::string sent = full.Drain();
  EXPECT_TRUE(sent + full.unsent == all.substr(0, staged));
  EXPECT_EQ(full.told_unsent, 0);
  ring_->AwaitWritable(full.id);
  EXPECT_TRUE(Until([&] { return full.told_unsent > 0 && full.writable == 1; }));
}

TEST_F(RingTest, ASendIsNotPutBehindOneThatMayBeCutShort) {
  Start();
  if (IsSkipped()) return;
  Socket& one = New();
  Socket& other = New();
  ASSERT_TRUE(ring_->Send(one.id, "1"));
  ASSERT_TRUE(ring_->Send(other.id, "2"));
  EXPECT_FALSE(ring_->Send(one.id, "3"));  // not the last in the arena: what was staged has left instead
  EXPECT_FALSE(ring_->staged(one.id));
  EXPECT_EQ(one.Drain(), "1");
  EXPECT_EQ(other.Drain(), "2");
  EXPECT_FALSE(ring_->Send(one.id, std::string(Ring::kSendBytesMax + 1, 'x')));
}

TEST_F(RingTest, APoolThatRunsDryGrowsToItsLimitAndLosesNothing) {
  Start({.buffers_first = 1, .buffers_max = 2, .buffer_bytes = 1024});
  if (IsSkipped()) return;
  const std::string bytes = Pattern(200'000);
  constexpr size_t kSockets = 20;
  for (size_t i = 0; i < kSockets; ++i) ring_->Receive(New().id);
  std::vector<size_t> written(kSockets, 0);
  EXPECT_TRUE(Until([&] {
    bool all = true;
    for (size_t i = 0; i < kSockets; ++i) {
      if (written[i] < bytes.size()) written[i] += sockets_[i].Write(absl::string_view(bytes).substr(written[i]));
      all = all && sockets_[i].received.size() == bytes.size();
    }
    return all;
  }));
  for (const Socket& socket : sockets_) EXPECT_TRUE(socket.received == bytes);
  EXPECT_EQ(ring_->buffers(), 2u);
}

TEST_F(RingTest, BytesThatNobodyAsksForStayInTheSocket) {
  Start();
  if (IsSkipped()) return;
  Socket& slow = New();
  slow.keen = false;
  const std::string bytes = Pattern(16 << 20);
  size_t written = 0;
  ring_->Receive(slow.id);
  for (int i = 0; i < 200; ++i) {
    written += slow.Write(absl::string_view(bytes).substr(written));
    RunFor(std::chrono::milliseconds(1));
  }
  EXPECT_LT(slow.received.size(), size_t{2} << 20);
  EXPECT_LT(written, bytes.size());
  slow.keen = true;
  ring_->Receive(slow.id);
  EXPECT_TRUE(Until([&] {
    written += slow.Write(absl::string_view(bytes).substr(written));
    return slow.received.size() == bytes.size();
  }));
  EXPECT_TRUE(slow.received == bytes);
}

TEST_F(RingTest, AfterRemoveThePeerSeesTheEndAndTheClientHearsNothing) {
  Start();
  if (IsSkipped()) return;
  Socket& socket = New();
  ring_->Receive(socket.id);
  RunFor(std::chrono::milliseconds(5));
  ring_->AwaitWritable(socket.id);
  ASSERT_TRUE(ring_->Send(socket.id, "bye"));
  socket.Remove();
  EXPECT_EQ(socket.Drain(), "bye");
  char byte = 0;
  EXPECT_EQ(recv(socket.peer, &byte, 1, 0), 0);
  // Whoever gets its place is not taken for it.
  Socket& next = New();
  ring_->Receive(next.id);
  next.Write("hello");
  EXPECT_TRUE(Until([&] { return next.received == "hello"; }));
  EXPECT_TRUE(socket.received.empty());
  EXPECT_FALSE(socket.ended);
  EXPECT_EQ(next.writable, 0);
}

TEST_F(RingTest, APeerThatIsGoneIsAnErrorOfTheSend) {
  Start();
  if (IsSkipped()) return;
  Socket& socket = New();
  close(std::exchange(socket.peer, -1));
  ASSERT_TRUE(ring_->Send(socket.id, "hello"));
  ring_->Submit();
  EXPECT_EQ(socket.send_error, EPIPE);
  EXPECT_TRUE(Until([&] { return socket.told_unsent == 1; }));
}

// The kernel keeps what its queue has no room for; a send that failed is known all the same.
TEST_F(RingTest, MoreCompletionsThanTheQueueHoldsAreNotLost) {
  Start({.entries = 8, .completions = 16, .buffers_first = 4, .buffers_max = 4});
  if (IsSkipped()) return;
  constexpr size_t kSockets = 200;
  for (size_t i = 0; i < kSockets; ++i) ring_->Receive(New().id);
  RunFor(std::chrono::milliseconds(5));
  for (Socket& socket : sockets_) {
    socket.Write("last words");
    close(std::exchange(socket.peer, -1));
  }
  for (Socket& socket : sockets_) {
    ASSERT_TRUE(ring_->Send(socket.id, "hello"));
    ring_->Submit();
    EXPECT_EQ(socket.unsent, "hello");
  }
  EXPECT_TRUE(Until([&] {
    for (const Socket& socket : sockets_)
      if (!socket.ended || socket.told_unsent == 0) return false;
    return true;
  }));
  for (const Socket& socket : sockets_) EXPECT_EQ(socket.received, "last words");
}

TEST_F(RingTest, WhereItIsNotAllowedMakeSaysSo) {
  std::thread([this] {
    if (!RefuseUring()) GTEST_SKIP() << "no seccomp here";
    const absl::StatusOr<std::unique_ptr<Ring>> ring = Ring::Make(context_);
    ASSERT_FALSE(ring.ok());
    EXPECT_EQ(ring.status().message(), "io_uring_setup: Operation not permitted");
  }).join();
}

}  // namespace
}  // namespace idemd::server
