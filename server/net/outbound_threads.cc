// A conversation: resolve, connect, write everything, read so many lines.
#include "server/net/outbound_threads.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

namespace idemd::server {
namespace {

using std::chrono::steady_clock;

constexpr int kLookAtStopEveryMs = 50;
constexpr size_t kLineBytesMax = 64 * 1024;  // whoever sends longer ones is no such server
constexpr size_t kReadBytes = 4096;
constexpr size_t kWriteBytes = 64 * 1024;  // each has its own timeout, as in Redis

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

// Waits until something can be done with the socket, or it has failed. False: the time is up, or everything ends.
bool WaitFor(int fd, short events, steady_clock::time_point until, const std::atomic<bool>& stopping) {
  while (!stopping.load(std::memory_order_relaxed)) {
    // Looked at once more when the time is up: what is ready by then counts.
    const int64_t left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::clamp<int64_t>(left, 0, kLookAtStopEveryMs)));
    if (ready > 0) return true;
    if (left <= 0 || (ready < 0 && errno != EINTR)) return false;
  }
  return false;
}

// The first address that takes a connection, or begins to; -1 when there is none.
int Connect(const Conversation& what) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(what.host.c_str(), std::to_string(what.port).c_str(), &hints, &found) != 0) return -1;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    const int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, at->ai_protocol);
    if (fd < 0) continue;
    if (connect(fd, at->ai_addr, at->ai_addrlen) == 0 || errno == EINPROGRESS) {
      const int on = 1;
      (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      return fd;
    }
    close(fd);
  }
  return -1;
}

// Reads whole lines into `lines`, of a peer that answers while it still is being written to.
class Lines {
 public:
  Lines(std::vector<std::string>& lines, size_t wanted) : lines_(lines), wanted_(wanted) {}
  bool done() const { return lines_.size() >= wanted_; }

  // Takes what has come. False: the connection is over, or talks nonsense.
  bool TakeFrom(int fd) {
    char bytes[kReadBytes];
    const ssize_t got = recv(fd, bytes, sizeof bytes, 0);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) return false;
    for (const char byte : std::string(bytes, static_cast<size_t>(got))) {
      if (byte != '\n') {
        rest_ += byte;
        if (rest_.size() > kLineBytesMax) return false;
        continue;
      }
      if (!rest_.empty() && rest_.back() == '\r') rest_.pop_back();
      if (!done()) lines_.push_back(std::move(rest_));
      rest_.clear();
    }
    return true;
  }

 private:
  std::vector<std::string>& lines_;
  const size_t wanted_;
  std::string rest_;
};

ConversationResult Talk(const Conversation& what, const std::atomic<bool>& stopping) {
  ConversationResult result;
  const auto deadline = [&] { return steady_clock::now() + std::chrono::milliseconds(what.timeout_ms); };
  const Socket socket(Connect(what));
  if (socket.fd() < 0 || !WaitFor(socket.fd(), POLLOUT, deadline(), stopping)) {
    result.failure = LinkFailure::kConnecting;
    return result;
  }
  Lines lines(result.lines, what.replies);
  size_t written = 0;
  auto until = deadline();
  size_t next_deadline_at = kWriteBytes;
  while (written < what.requests.size()) {
    const size_t size = std::min(kWriteBytes, what.requests.size() - written);
    const ssize_t n = send(socket.fd(), what.requests.data() + written, size, MSG_NOSIGNAL);
    if (n > 0) {
      written += static_cast<size_t>(n);
      if (written < next_deadline_at) continue;
      next_deadline_at = written + kWriteBytes;
      until = deadline();
      continue;
    }
    // A peer that answers and is not listened to might stop reading, too.
    if ((errno != EAGAIN && errno != EINTR) || !WaitFor(socket.fd(), POLLOUT | POLLIN, until, stopping) ||
        !lines.TakeFrom(socket.fd())) {
      result.failure = LinkFailure::kWriting;
      return result;
    }
  }
  size_t lines_before = 0;
  until = deadline();
  while (!lines.done()) {
    if (result.lines.size() != lines_before) {
      lines_before = result.lines.size();
      until = deadline();
    }
    if (!WaitFor(socket.fd(), POLLIN, until, stopping) || !lines.TakeFrom(socket.fd())) {
      if (lines.done()) break;
      result.failure = LinkFailure::kReading;
      return result;
    }
  }
  return result;
}

}  // namespace

void OutboundThreads::Begin(Conversation conversation, std::function<void(const ConversationResult&)> done) {
  {
    storage::MutexLock lock(mutex_);
    if (MakeThread()) jobs_.push_back({std::move(conversation), std::exchange(done, nullptr)});
  }
  if (done != nullptr) return done({LinkFailure::kConnecting, {}});
  changed_.notify_one();
}

// Another one where all are busy. False: there is none, and none is to be had.
bool OutboundThreads::MakeThread() {
  if (idle_ > jobs_.size() || threads_.size() >= kThreadsMax) return true;
  try {
    threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
  }
  return !threads_.empty();
}

void OutboundThreads::Work() {
  std::unique_lock<std::mutex> lock(mutex_.native());
  while (true) {
    ++idle_;
    changed_.wait(lock, [this] { return stopping_.load(std::memory_order_relaxed) || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job.done(Talk(job.conversation, stopping_));
    lock.lock();
  }
}

void OutboundThreads::Stop() {
  std::vector<std::thread> threads;
  {
    storage::MutexLock lock(mutex_);
    stopping_.store(true, std::memory_order_relaxed);
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace idemd::server
