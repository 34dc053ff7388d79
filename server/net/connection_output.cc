// A connection's output: sent at once where the socket takes it, else queued, within the limits of
// its class.
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/admin/stats.h"
#include "server/net/connection.h"

namespace idemd::server {
namespace {

// A client that leaves this much unread gets no more of its requests executed until half of it has
// gone.
constexpr size_t kQueueFullBytes = 256 * 1024;
// ... and before it has logged in, when there is nothing to be had but short errors.
constexpr size_t kStrangerFullBytes = 4 * 1024;
// The loop's output memory is given back when one reply made it larger than this.
constexpr size_t kOutputKeepBytes = 1024 * 1024;
// How long a shut connection is read on.
constexpr uint32_t kLingerSeconds = 2;

}  // namespace

// Sends the loop's output, or holds it until the log is as far as it needs.
void Connection::Flush() {
  std::string& out = loop_->out;
  if (out.empty()) return;
  if (held_.empty() && session_.need <= loop_->dispatcher().released()) return SendOut();
  Hold(out, session_.need);
  if (out.capacity() > kOutputKeepBytes) std::string().swap(out);
  out.clear();
  CheckOutputLimits(SteadyMs());
}

// Behind what is held already, which needs less.
void Connection::Hold(absl::string_view bytes, storage::Lsn need) {
  held_.append(bytes.data(), bytes.size());
  if (held_up_to_.empty() || held_up_to_.back().need < need)
    held_up_to_.push_back({need, held_.size()});
  else
    held_up_to_.back().end = held_.size();
  NoteQueue();
  if (!in_held_list_) {
    in_held_list_ = true;
    loop_->Hold(self());
  }
  loop_->Need(held_up_to_.back().need);
}

bool Connection::ReleaseHeld(storage::Lsn released) {
  if (in_turn_below()) {
    loop_->AfterTurn([loop = loop_] { loop->ReleaseHeld(); });
    return false;
  }
  if (state_ == State::kClosed) {
    in_held_list_ = false;
    return true;
  }
  size_t end = 0;
  size_t marks = 0;
  for (; marks < held_up_to_.size() && held_up_to_[marks].need <= released; ++marks)
    end = held_up_to_[marks].end;
  if (end == 0) return false;
  std::string& out = loop_->out;
  if (end == held_.size()) {
    out.swap(held_);
    held_.clear();
    held_up_to_.clear();
  } else {
    out.assign(held_, 0, end);
    held_.erase(0, end);
    held_up_to_.erase(held_up_to_.begin(), held_up_to_.begin() + static_cast<ptrdiff_t>(marks));
    for (HeldUpTo& mark : held_up_to_) mark.end -= end;
  }
  in_held_list_ = !held_.empty();
  const bool was_full = output_full_;
  SendOut();
  if (state_ == State::kClosed) {
    in_held_list_ = false;
    return true;
  }
  NoteQueue();
  const bool all = !in_held_list_;
  if (state_ == State::kFlushing && queue_.empty() && held_.empty()) {
    EndOutput();
  } else if (was_full && serving() && !output_full_ && !turn_posted_ && session_.waiter == nullptr) {
    Turn();
  }
  return all;
}

// Sends the loop's output, and queues what the socket does not take.
void Connection::SendOut() {
  if (tls_ == nullptr || SealOut()) SendBytes();
}

// As it is, that is, sealed if it is to be.
void Connection::SendBytes() {
  std::string& out = loop_->out;
  size_t sent = 0;
  if (ring_ != nullptr && queue_.empty() && ring_->Send(ring_id_, out)) {
    loop_->dispatcher().thread_stats().OnWrite(out.size());
    return out.clear();
  }
  if (queue_.empty()) {
    ssize_t n = 0;
    do {
      n = ::send(fd(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Close();
    if (n > 0) {
      sent = static_cast<size_t>(n);
      loop_->dispatcher().thread_stats().OnWrite(sent);
    }
  }
  queue_.Append(out, sent);
  if (out.capacity() > kOutputKeepBytes) std::string().swap(out);
  out.clear();
  if (queue_.empty()) return;
  CheckOutputLimits(SteadyMs());
  if (state_ != State::kClosed) StartWrite();
}

void Connection::StartWrite() {
  NoteQueue();
  if (writing_) return;
  writing_ = true;
  if (ring_ != nullptr) return ring_->AwaitWritable(ring_id_);
  socket_->async_write_some(queue_.Front(), [self = self()](const ErrorCode& error, size_t n) {
    self->OnWritten(error, n);
  });
}

void Connection::NoteQueue() {
  const size_t bytes = queue_.bytes() + held_.size();
  info().output_bytes.store(bytes, std::memory_order_relaxed);
  const size_t full = stranger_ ? kStrangerFullBytes : kQueueFullBytes;
  if (bytes > full) output_full_ = true;
  if (bytes <= full / 2) output_full_ = false;
  NoteMemory();
}

void Connection::OnWritten(const ErrorCode& error, size_t n) {
  if (in_turn_below()) return loop_->AfterTurn([self = self(), error, n] { self->OnWritten(error, n); });
  writing_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  loop_->dispatcher().thread_stats().OnWrite(n);
  queue_.Consume(n);
  NoteQueue();
  if (!queue_.empty()) {
    StartWrite();
  } else {
    over_soft_limit_since_ms_ = 0;
    if (state_ == State::kFlushing && held_.empty()) return EndOutput();
  }
  // What had stopped for want of room goes on.
  if (serving() && !output_full_ && !turn_posted_ && session_.waiter == nullptr) Turn();
}

void Connection::Send(std::shared_ptr<const std::string> bytes, storage::Lsn need,
                      std::shared_ptr<const std::atomic<bool>> while_true) {
  if (closed_.load(std::memory_order_relaxed)) return;
  Loop::Errand errand;
  errand.to = self();
  errand.bytes = std::move(bytes);
  errand.need = need;
  errand.while_true = std::move(while_true);
  loop_->Give(std::move(errand));
}

bool Connection::Take(const std::shared_ptr<const std::string>& bytes, storage::Lsn need,
                      const std::shared_ptr<const std::atomic<bool>>& while_true) {
  if (in_turn_below()) {
    loop_->AfterTurn([self = self(), bytes, need, while_true] {
      if (self->Take(bytes, need, while_true)) self->SendTaken();
    });
    return false;
  }
  if (!serving() || InHandshake()) return false;
  if (while_true == nullptr)
    pushed_ = true;
  else if (!while_true->load(std::memory_order_relaxed))
    return false;
  if (ring_ != nullptr) Settle();
  if (!held_.empty() || need > loop_->dispatcher().released()) {
    Hold(*bytes, need);
    CheckOutputLimits(SteadyMs());
    return false;
  }
  if (tls_ == nullptr)
    queue_.AppendShared(bytes);
  else if (!SealToQueue(*bytes))
    return false;
  return !std::exchange(taken_, true);
}

// Sends what was taken, as far as the socket takes it at once.
void Connection::SendTaken() {
  taken_ = false;
  if (!serving() || queue_.empty()) return;
  if (!writing_) {
    const boost::asio::const_buffer front = queue_.Front()[0];
    ssize_t n = 0;
    do {
      n = ::send(fd(), front.data(), front.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return Close();
    if (n > 0) {
      queue_.Consume(static_cast<size_t>(n));
      loop_->dispatcher().thread_stats().OnWrite(static_cast<size_t>(n));
    }
  }
  NoteQueue();
  CheckOutputLimits(SteadyMs());
  if (serving() && !queue_.empty()) StartWrite();
}

// A client that is sent more than it asks for counts as pubsub: refusing to read from it would not
// slow that down.
void Connection::CheckOutputLimits(int64_t now_ms) {
  const OutputLimit& limit = info().replica.load(std::memory_order_relaxed) ? settings_.output_limit_replica
                             : pushed_ || info().subscribed()               ? settings_.output_limit_pubsub
                                                                            : settings_.output_limit_normal;
  const auto hard = static_cast<size_t>(limit.hard_bytes.load(std::memory_order_relaxed));
  const auto soft = static_cast<size_t>(limit.soft_bytes.load(std::memory_order_relaxed));
  const size_t bytes = queue_.bytes() + held_.size();
  bool over = hard != 0 && bytes > hard;
  if (soft == 0 || bytes <= soft) {
    over_soft_limit_since_ms_ = 0;
  } else if (over_soft_limit_since_ms_ == 0) {
    over_soft_limit_since_ms_ = now_ms;
  } else {
    const int64_t seconds = limit.soft_seconds.load(std::memory_order_relaxed);
    over = over || now_ms - over_soft_limit_since_ms_ > seconds * 1000;
  }
  if (!over) return;
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Client ", Describe(),
                          " scheduled to be closed ASAP for overcoming of output buffer limits."));
  loop_->dispatcher().services().stats.OnOutputLimit();
  Close();
}

// `linger`: the client may still be sending, and must not lose our last replies to that.
void Connection::CloseWhenSent(bool linger) {
  if (!serving()) return;
  state_ = State::kFlushing;
  linger_ = linger;
  if (queue_.empty() && held_.empty()) EndOutput();
}

// All is sent. To close a socket with input in it resets the connection, and a reset overtakes what
// was sent.
void Connection::EndOutput() {
  if (ring_ != nullptr) {
    Settle();
    if (!queue_.empty()) return;  // not all: OnUnsent() goes on
  }
  int unread = 0;
  const bool waiting = ioctl(fd(), FIONREAD, &unread) == 0 && unread > 0;
  const bool active = loop_->ticks() - last_read_tick_ <= 1;
  if (end_of_input_ || !linger_ || (!waiting && !active)) return Close();
  state_ = State::kLingering;
  linger_until_tick_ = loop_->ticks() + kLingerSeconds;
  if (tls_ != nullptr) SayEndOfTls();
  ::shutdown(fd(), SHUT_WR);
  buffer_.Clear();
  parser_ = protocol::Parser();
  StartRead();
}

}  // namespace idemd::server
