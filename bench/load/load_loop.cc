// The two loops, and what a readable or writable connection does in both.
#include "bench/load/load_loop.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace idemd::bench {
namespace {

constexpr size_t kReadBytes = 256 * 1024;
constexpr int kEventsMax = 256;
// A server that says nothing for so long is given up.
constexpr int64_t kPatienceNs = 20'000'000'000;

}  // namespace

LoadLoop::LoadLoop(std::vector<int> fds, size_t index, size_t threads, Dialect dialect)
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      index_(index),
      threads_(threads),
      connections_(fds.size()),
      in_(kReadBytes) {
  for (size_t i = 0; i < fds.size(); ++i) {
    connections_[i].fd = fds[i];
    connections_[i].index = i;
    connections_[i].scanner = ReplyScanner(dialect);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = i;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fds[i], &event);
  }
}

LoadLoop::~LoadLoop() {
  for (const Connection& c : connections_) {
    if (c.fd >= 0) close(c.fd);
  }
  close(epoll_);
}

PassResult LoadLoop::Run(const Pass& pass) {
  Begin(pass);
  if (closed_loop()) {
    RunClosed();
  } else {
    RunOpen();
  }
  pass_ = nullptr;
  return std::move(result_);
}

void LoadLoop::Begin(const Pass& pass) {
  pass_ = &pass;
  result_ = PassResult();
  for (const auto& expected : pass.expected) result_.outcomes.emplace_back(expected);
  random_ = Random(Mix(pass.seed + index_));
  live_ = busy_ = 0;
  waiting_ = 0;
  exhausted_ = false;
  interval_ns_ =
      closed_loop() ? 0 : 1e9 * pass.pipeline * static_cast<double>(threads_) / pass.rate;
  size_t longest = 0;
  for (const RequestTemplate& one : pass.templates) longest = std::max(longest, one.size());
  for (Connection& c : connections_) {
    if (c.fd < 0) continue;
    ++live_;
    c.numbers.resize(pass.pipeline);
    c.captured.assign(pass.pipeline * kCaptureChars, '0');
    c.out.resize(pass.pipeline * longest);
    c.out_size = c.out_sent = 0;
    c.busy = false;
    c.step = c.batch = c.awaiting = 0;
    c.batches_due = c.batches_built = c.sent = c.replied = 0;
  }
}

void LoadLoop::RunClosed() {
  for (Connection& c : connections_) {
    if (c.fd < 0) continue;
    c.busy = true;
    ++busy_;
    NextBatch(c, SteadyNs());
  }
  while (busy_ != 0) {
    if (!Serve(kPatienceNs)) {
      result_.Complain("no reply for 20 s");
      return;
    }
  }
}

void LoadLoop::RunOpen() {
  prctl(PR_SET_TIMERSLACK, 1);  // otherwise the kernel may wake us 50 us late
  uint64_t next = 0;
  int64_t heard_ns = SteadyNs();
  while (live_ != 0) {
    const int64_t now = SteadyNs();
    for (; !exhausted_ && Due(next) <= now && Due(next) < pass_->end_ns; ++next) {
      Connection& c = connections_[next % connections_.size()];
      ++c.batches_due;
      if (c.fd >= 0) SendDue(c, now);
    }
    const bool more = !exhausted_ && Due(next) < pass_->end_ns;
    if (!more && waiting_ == 0) return;
    const int64_t until_due = more ? std::max<int64_t>(0, Due(next) - SteadyNs()) : kPatienceNs;
    if (Serve(std::min(until_due, kPatienceNs)) || waiting_ == 0) {
      heard_ns = SteadyNs();
    } else if (SteadyNs() - heard_ns > kPatienceNs) {
      result_.Complain("no reply for 20 s");
      return;
    }
  }
}

bool LoadLoop::Serve(int64_t wait_ns) {
  epoll_event events[kEventsMax];
  const timespec timeout = {wait_ns / 1'000'000'000, wait_ns % 1'000'000'000};
  int n = epoll_pwait2(epoll_, events, kEventsMax, &timeout, nullptr);
  if (n < 0 && (errno == ENOSYS || errno == EPERM)) {
    // Where it is not there or not allowed: a wait that is too short is followed by another.
    n = epoll_wait(epoll_, events, kEventsMax, static_cast<int>(wait_ns / 1'000'000));
  }
  for (int i = 0; i < n; ++i) {
    Connection& c = connections_[events[i].data.u64];
    if (c.fd >= 0 && (events[i].events & EPOLLOUT) != 0) {
      Watch(c, EPOLLIN);
      Flush(c);
    }
    if (c.fd >= 0 && (events[i].events & ~uint32_t{EPOLLOUT}) != 0) Read(c);
  }
  return n > 0 || (n < 0 && errno == EINTR);
}

void LoadLoop::NextBatch(Connection& c, int64_t now) {
  if (!pass_->mixed && c.batch != 0 && c.step + 1 < pass_->templates.size()) {
    ++c.step;
  } else {
    c.step = 0;
    c.batch =
        now >= pass_->end_ns ? 0 : pass_->numbers->Take(pass_->pipeline, random_, c.numbers.data());
    if (c.batch == 0) {
      c.busy = false;
      --busy_;
      return;
    }
  }
  Build(c, c.batch);
  c.awaiting = c.batch;
  c.sent_ns = c.waits_since_ns = now;
  result_.requests += c.batch;
  Flush(c);
}

void LoadLoop::SendDue(Connection& c, int64_t now) {
  while (c.fd >= 0 && c.out_sent == c.out_size && c.batches_built < c.batches_due) {
    const size_t n = pass_->numbers->Take(pass_->pipeline, random_, c.numbers.data());
    if (n == 0) {
      exhausted_ = true;
      return;
    }
    Build(c, n);
    const int64_t due = Due(c.batches_built * connections_.size() + c.index);
    result_.late.Add(static_cast<uint64_t>(std::max<int64_t>(0, now - due)), n);
    ++c.batches_built;
    if (c.sent == c.replied) c.waits_since_ns = now;
    c.sent += n;
    waiting_ += n;
    result_.requests += n;
    Flush(c);
  }
}

void LoadLoop::Build(Connection& c, size_t n) {
  char* out = c.out.data();
  for (size_t i = 0; i < n; ++i) {
    const RequestTemplate* one = &pass_->templates[c.step];
    if (pass_->mixed && random_.Chance(pass_->second_share)) one = &pass_->templates[1];
    const uint64_t number = c.numbers[i];
    one->Write({number, random_.Next(),
                pass_->captured != nullptr
                    ? pass_->captured + (number - pass_->numbers->first()) * kCaptureChars
                    : c.captured.data() + i * kCaptureChars},
               out);
    out += one->size();
  }
  c.out_size = static_cast<size_t>(out - c.out.data());
  c.out_sent = 0;
}

void LoadLoop::Flush(Connection& c) {
  while (c.out_sent != c.out_size) {
    const ssize_t n =
        send(c.fd, c.out.data() + c.out_sent, c.out_size - c.out_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      c.out_sent += static_cast<size_t>(n);
    } else if (errno == EAGAIN) {
      Watch(c, EPOLLIN | EPOLLOUT);
      return;
    } else if (errno != EINTR) {
      Lose(c, std::strerror(errno));
      return;
    }
  }
}

void LoadLoop::Read(Connection& c) {
  const ssize_t n = recv(c.fd, in_.data(), in_.size(), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) {
    Lose(c, n == 0 ? "the server hung up" : std::strerror(errno));
    return;
  }
  const int64_t now = SteadyNs();
  const uint64_t before = result_.replies;
  c.scanner.Feed(in_.data(), static_cast<size_t>(n),
                 [&](const Reply& reply) { OnReply(c, reply, now); });
  if (c.scanner.broken()) Lose(c, "the server sent what is no reply");
  if (result_.replies == before) return;
  result_.last_reply_ns = now;
  result_.longest_silence_ns = std::max(result_.longest_silence_ns, now - c.waits_since_ns);
  c.waits_since_ns = now;
  if (!closed_loop()) return;
  result_.latency.Add(static_cast<uint64_t>(now - c.sent_ns), result_.replies - before);
  if (c.fd >= 0 && c.awaiting == 0) NextBatch(c, now);
}

void LoadLoop::OnReply(Connection& c, const Reply& reply, int64_t now) {
  if (c.fd < 0) return;  // lost by an earlier reply of this read
  if (closed_loop() ? c.awaiting == 0 : c.replied == c.sent) {
    Lose(c, "a reply to no request");
    return;
  }
  ++result_.replies;
  if (reply.error) {
    ++result_.errors;
    result_.Complain(reply.head);
  } else {
    result_.outcomes[c.step].Add(reply.head);
  }
  if (!closed_loop()) {
    const int64_t due = Due(c.replied / pass_->pipeline * connections_.size() + c.index);
    result_.latency.Add(static_cast<uint64_t>(std::max<int64_t>(0, now - due)));
    ++c.replied;
    --waiting_;
    return;
  }
  const size_t i = c.batch - c.awaiting--;
  switch (pass_->captures[c.step]) {
    case Capture::kNothing:
      break;
    case Capture::kToken:
      Keep(c, i, reply.head, kTokenChars);
      break;
    case Capture::kFence:
      Keep(c, i, reply.second, kFenceChars);
      break;
  }
}

void LoadLoop::Keep(Connection& c, size_t i, absl::string_view what, size_t chars) {
  if (what.size() != chars) {
    if (result_.errors++ == 0) result_.Complain(absl::StrCat("no token or fence: ", what));
    return;
  }
  char* const to = pass_->captured != nullptr
                       ? pass_->captured + (c.numbers[i] - pass_->numbers->first()) * kCaptureChars
                       : c.captured.data() + i * kCaptureChars;
  std::memcpy(to, what.data(), chars);
}

void LoadLoop::Lose(Connection& c, absl::string_view why) {
  if (c.fd < 0) return;
  close(c.fd);  // epoll forgets it
  c.fd = -1;
  --live_;
  ++result_.lost_connections;
  result_.Complain(why);
  if (closed_loop()) {
    if (c.busy) --busy_;
    c.busy = false;
  } else {
    waiting_ -= c.sent - c.replied;
  }
}

void LoadLoop::Watch(const Connection& c, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = c.index;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, c.fd, &event);
}

int64_t LoadLoop::Due(uint64_t batch) const {
  // The loops of several threads take turns.
  const double turn = static_cast<double>(index_) / static_cast<double>(threads_);
  return pass_->begin_ns + static_cast<int64_t>((static_cast<double>(batch) + turn) * interval_ns_);
}

}  // namespace idemd::bench
