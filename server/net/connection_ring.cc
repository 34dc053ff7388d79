// A connection on its loop's ring, where it differs from one on Asio.
//
// What came is executed in the ring's memory; only what is left of it, an incomplete request as a rule, is copied. A turn's
// output goes into the ring's next submit; what the socket does not take of it comes back and is the first in the queue,
// which is written with plain calls when the socket has room.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/net/connection.h"

namespace idemd::server {

void Connection::JoinRing() {
  fcntl(fd_, F_SETFL, 0);  // blocking: see Ring::Add()
  ring_ = loop_->ring();
  ring_id_ = ring_->Add(this, fd_);
}

void Connection::LeaveRing() {
  ring_->Remove(ring_id_);
  ::close(std::exchange(fd_, -1));
}

void Connection::StartRingRead() {
  reading_ = true;
  ring_->Receive(ring_id_);
}

void Connection::OnReceived(char* bytes, size_t n) {
  if (in_turn_below())
    return loop_->AfterTurn([self = self(), copy = std::string(bytes, n)]() mutable { self->OnReceived(copy.data(), copy.size()); });
  const std::shared_ptr<Connection> keep = self();
  const bool wanted = std::exchange(reading_, false);
  last_read_tick_ = loop_->ticks();
  loop_->dispatcher().thread_stats().OnRead(n);
  if (!serving()) {  // what comes now is not for us any more
    buffer_.Clear();
    if (state_ == State::kLingering) StartRead();
    return;
  }
  if (!wanted || !buffer_.empty()) {
    if (!buffer_.Append({bytes, n}, parser_.bytes_wanted())) return OutOfMemory();
    if (wanted) return OnInput();
    if (!OverQueryLimit()) ShowBuffers(buffer_.size());
    return;
  }
  buffer_.Lend(bytes, n);
  OnInput();
  if (!buffer_.lent()) return;  // closed
  if (!buffer_.KeepRest(parser_.bytes_wanted())) return OutOfMemory();
  if (state_ != State::kClosed) ShowBuffers(buffer_.size());
}

void Connection::OnReceiveEnd(int error) {
  if (in_turn_below()) return loop_->AfterTurn([self = self(), error] { self->OnReceiveEnd(error); });
  const std::shared_ptr<Connection> keep = self();
  reading_ = false;
  if (state_ != State::kClosed) OnEndOfInput();
}

void Connection::KeepUnsent(absl::string_view rest, int error) {
  queue_.Append(rest);
  loop_->dispatcher().thread_stats().OnUnsent(rest.size());
  send_error_ = error;
}

void Connection::OnUnsent() {
  if (in_turn_below()) return loop_->AfterTurn([self = self()] { self->OnUnsent(); });
  const std::shared_ptr<Connection> keep = self();
  if (state_ == State::kClosed) return;
  if (send_error_ != 0) return Close();
  CheckOutputLimits(SteadyMs());
  if (state_ != State::kClosed) StartWrite();
}

void Connection::OnWritable() {
  if (in_turn_below()) return loop_->AfterTurn([self = self()] { self->OnWritable(); });
  const std::shared_ptr<Connection> keep = self();
  if (state_ == State::kClosed) return;
  const OutputQueue::Buffers front = queue_.Front();
  iovec pieces[OutputQueue::kBuffersMax];
  size_t count = 0;
  for (const boost::asio::const_buffer& piece : front)
    if (piece.size() > 0) pieces[count++] = {const_cast<void*>(piece.data()), piece.size()};
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = count;
  ssize_t n = 0;
  do {
    n = ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n >= 0) return OnWritten(ErrorCode(), static_cast<size_t>(n));
  if (errno != EAGAIN && errno != EWOULDBLOCK) return OnWritten(ErrorCode(errno, boost::system::system_category()), 0);
  ring_->AwaitWritable(ring_id_);
}

// Everything that was said is in the socket or in the queue.
void Connection::Settle() {
  if (ring_->staged(ring_id_)) ring_->Submit();
}

}  // namespace idemd::server
