// A connection's TLS, around what connection.cc and connection_output.cc do with plain bytes.
//
// Sealed bytes are read into memory of the loop's, after waiting until there are some: the
// connection's own buffer holds only what the client said, and an idle connection holds none. What
// is sent is sealed as it goes into the socket or the queue, so that the queue's limits, and what
// it takes to continue a write that was cut, are the same for both kinds.
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/admin/stats.h"
#include "server/net/connection.h"
#include "server/net/tls_stream.h"

namespace idemd::server {
namespace {

// What is kept of the loop's memory for sealing.
constexpr size_t kSealedKeepBytes = 1024 * 1024;

}  // namespace

void Connection::UseTls(std::unique_ptr<TlsStream> tls, absl::string_view refusal) {
  tls_ = std::move(tls);
  refusal_ = refusal;
}

bool Connection::InHandshake() const { return tls_ != nullptr && !tls_->established(); }

void Connection::StartTlsRead() {
  reading_ = true;
  socket_->async_wait(StreamSocket::wait_read,
                      [self = self()](const ErrorCode& error) { self->OnTlsReadable(error); });
}

void Connection::OnTlsReadable(const ErrorCode& error) {
  if (in_turn_below()) return loop_->AfterTurn([self = self(), error] { self->OnTlsReadable(error); });
  reading_ = false;
  if (state_ == State::kClosed) return;
  if (error) return Close();
  char* const bytes = loop_->sealed_input();
  ssize_t n = 0;
  do {
    n = ::recv(socket_->native_handle(), bytes, Loop::kSealedInputBytes, 0);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return StartTlsRead();
  if (n <= 0) {
    if (!InHandshake()) return OnEndOfInput();
    return FailHandshake(n == 0 ? "Connection closed" : std::generic_category().message(errno));
  }
  last_read_tick_ = loop_->ticks();
  loop_->dispatcher().thread_stats().OnRead(static_cast<size_t>(n));
  if (serving()) return TakeSealed({bytes, static_cast<size_t>(n)});
  if (state_ == State::kLingering) StartTlsRead();  // what comes now is not for us any more
}

// Between turns: the loop's output is empty, and takes what TLS itself has to say.
void Connection::TakeSealed(absl::string_view sealed) {
  const bool in_handshake = InHandshake();
  const TlsStream::Progress progress =
      tls_->Take(sealed, parser_.bytes_wanted(), buffer_, loop_->out);
  if (!loop_->out.empty()) SendBytes();
  if (state_ == State::kClosed) return;
  if (progress == TlsStream::Progress::kFailed) {
    if (in_handshake && InHandshake()) return FailHandshake(tls_->problem());
    LogVerbose(absl::StrCat("Reading from client: ", tls_->problem(), ": ", Describe()));
    return Close();
  }
  if (InHandshake()) {
    if (progress == TlsStream::Progress::kEnd) return FailHandshake("Connection closed");
    return StartTlsRead();
  }
  if (in_handshake) {
    if (!refusal_.empty()) {
      loop_->out.append(refusal_.data(), refusal_.size());
      SendOut();
      return CloseWhenSent(true);
    }
    loop_->dispatcher().thread_stats().OnConnection();
    if (buffer_.empty() && progress == TlsStream::Progress::kOpen) return StartRead();
  }
  if (progress == TlsStream::Progress::kEnd) {
    end_of_input_ = true;
    if (session_.waiter != nullptr) return Close();  // as OnEndOfInput()
  }
  OnInput();
}

void Connection::FailHandshake(absl::string_view why) {
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Error accepting a client connection: ", why, " (addr=", info().address,
                                     " laddr=", info().local_address, ")"));
  Close();
}

// The loop's output becomes what is to be sent. False: the connection was closed.
bool Connection::SealOut() {
  std::string& sealed = loop_->sealed;
  if (!tls_->Seal(loop_->out, sealed)) {
    sealed.clear();
    Close();
    return false;
  }
  loop_->out.swap(sealed);
  if (sealed.capacity() > kSealedKeepBytes) std::string().swap(sealed);
  sealed.clear();
  return true;
}

// As SealOut(), but of bytes that others get, too, and straight into the queue.
bool Connection::SealToQueue(absl::string_view bytes) {
  std::string& sealed = loop_->sealed;
  if (!tls_->Seal(bytes, sealed)) {
    sealed.clear();
    Close();
    return false;
  }
  queue_.Append(sealed, 0);
  return true;
}

// Best effort, and only when nothing that was sealed before still waits.
void Connection::SayEndOfTls() {
  if (!queue_.empty() || writing_) return;
  std::string& sealed = loop_->sealed;
  tls_->SealEnd(sealed);
  if (!sealed.empty()) {
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_->native_handle(), sealed.data(), sealed.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  sealed.clear();
}

}  // namespace idemd::server
