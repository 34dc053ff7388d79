// Reading, executing and closing; writing is in connection_output.cc.
#include "server/net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <iterator>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/admin/log.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/net/tls_stream.h"
#include "server/steady_time.h"

namespace idemd::server {
namespace {

// Requests parsed at a time. What a batch of them had not executed is parsed again, so it is not
// large.
constexpr size_t kBatchRequests = 128;
// A turn ends after this much, and the other connections of the loop have theirs.
constexpr size_t kTurnRequests = 1024;
constexpr size_t kTurnInputBytes = 1024 * 1024;
// Replies are sent when this much has gathered.
constexpr size_t kOutputBytes = 256 * 1024;
// Quiet for this long, a connection gives its buffer back.
constexpr uint32_t kParkSeconds = 2;
// Requests at a connection's beginning that are looked at for HTTP: a browser made to talk to us
// says it in its first lines.
constexpr uint16_t kInspectRequests = 64;

// "GET / HTTP/1.1", as an inline request: no command of these names takes two words.
bool IsHttpLine(absl::Span<const absl::string_view> words, char first_byte) {
  constexpr absl::string_view kMethods[] = {"GET",   "HEAD", "PUT", "DELETE", "CONNECT", "OPTIONS",
                                            "TRACE", "PATCH", "PRI"};
  return words.size() == 3 && first_byte != '*' && absl::StartsWith(words[2], "HTTP/") &&
         std::find(std::begin(kMethods), std::end(kMethods), words[0]) != std::end(kMethods);
}

}  // namespace

Connection::Connection(std::shared_ptr<Loop> loop, Settings& settings, Clients& clients, int fd)
    : loop_(std::move(loop)), settings_(settings), clients_(clients), fd_(fd) {}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::Start() {
  if (state_ == State::kClosed) return;
  if (loop_->ring() != nullptr && tls_ == nullptr)
    JoinRing();
  else if (!JoinAsio())
    return;
  session_.peer = shared_from_this();
  session_.authenticated = !settings_.has_password.load(std::memory_order_relaxed);
  loop_->Add(self());
  if (tls_ == nullptr) loop_->dispatcher().thread_stats().OnConnection();
  last_read_tick_ = loop_->ticks();
  if (!session_.authenticated) NoteLogin();
  if (info().closing.load(std::memory_order_relaxed)) return Close();  // killed before it began
  if (loop_->stopping()) return Close();
  StartRead();
}

bool Connection::JoinAsio() {
  socket_.emplace(loop_->context());
  ErrorCode error;
  socket_->assign(boost::asio::generic::stream_protocol(info().unix_socket ? AF_UNIX : AF_INET, 0),
                  fd_, error);
  if (error) {
    socket_.reset();
    clients_.Remove(info().id);
    closed_.store(true, std::memory_order_relaxed);
    state_ = State::kClosed;
    return false;
  }
  fd_ = -1;
  return true;
}

void Connection::StartRead() {
  if (reading_ || state_ == State::kClosed) return;
  if (ring_ != nullptr) return StartRingRead();
  if (tls_ != nullptr) return StartTlsRead();
  if (!buffer_.MakeRoom(parser_.bytes_wanted())) return OutOfMemory();
  reading_ = true;
  socket_->async_read_some(
      boost::asio::buffer(buffer_.space(), buffer_.space_bytes()),
      [self = self()](const ErrorCode& error, size_t n) { self->OnRead(error, n); });
}

// A quiet connection keeps no memory that it can have again.
void Connection::FreeBuffers() {
  buffer_.Free();
  if (held_.empty()) std::string().swap(held_);
  ShowBuffers(0);
}

// Waits for input without a buffer.
void Connection::Park() {
  FreeBuffers();
  reading_ = true;
  socket_->async_wait(StreamSocket::wait_read, [self = self()](const ErrorCode& error) {
    self->reading_ = false;
    if (self->state_ == State::kClosed) return;
    if (error) return self->Close();
    self->StartRead();
  });
}

void Connection::OnRead(const ErrorCode& error, size_t n) {
  if (in_turn_below()) return loop_->AfterTurn([self = self(), error, n] { self->OnRead(error, n); });
  reading_ = false;
  const bool parked = std::exchange(parking_, false);
  if (state_ == State::kClosed) return;
  if (error == boost::asio::error::operation_aborted && parked && serving()) return Park();
  if (error) return OnEndOfInput();
  last_read_tick_ = loop_->ticks();
  loop_->dispatcher().thread_stats().OnRead(n);
  if (!serving()) {  // what comes now is not for us any more
    buffer_.Clear();
    if (state_ == State::kLingering) StartRead();
    return;
  }
  buffer_.Commit(n);
  OnInput();
}

void Connection::OutOfMemory() {
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Out of memory for the requests of client ", Describe()));
  Close();
}

// Then it was closed.
bool Connection::OverQueryLimit() {
  const auto limit = static_cast<size_t>(
      (session_.authenticated ? settings_.client_query_buffer_bytes : settings_.unauthenticated_query_buffer_bytes)
          .load(std::memory_order_relaxed));
  if (buffer_.size() <= limit) return false;
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Closing client that reached max query buffer length: ", Describe()));
  loop_->dispatcher().services().stats.OnQueryLimit();
  Close();
  return true;
}

void Connection::OnInput() {
  if (OverQueryLimit()) return;
  if (session_.waiter == nullptr && !turn_posted_ && !output_full_) return Turn();
  ShowBuffers(buffer_.size());
  if (!output_full_) StartRead();
}

// The peer has sent all it will, or is gone.
void Connection::OnEndOfInput() {
  end_of_input_ = true;
  // A caller that waits and is gone must not be given a claim that nobody will work on. One that
  // only shut its side looks the same.
  if (session_.waiter != nullptr || state_ == State::kLingering) return Close();
  if (serving() && !turn_posted_ && !output_full_) AfterTurn();
}

protocol::ParserLimits Connection::Limits() const {
  protocol::ParserLimits limits;
  limits.bulk_bytes_max = settings_.proto_max_bulk_bytes.load(std::memory_order_relaxed);
  limits.unauthenticated = !session_.authenticated;
  // A stranger's limit is a lower one, and has an error of its own.
  limits.words_max = limits.unauthenticated ? std::numeric_limits<int32_t>::max()
                                            : settings_.proto_max_words.load(std::memory_order_relaxed);
  return limits;
}

void Connection::Turn() {
  const std::shared_ptr<Connection> keep = self();
  in_turn_ = true;
  bool memory = true;
  try {
    TakeTurn();
  } catch (const std::bad_alloc&) {
    memory = false;
  }
  in_turn_ = false;
  if (!memory) [[unlikely]] {  // what was executed is whole; its reply is lost
    LogWarning("Out of memory in a client's turn: it is closed");
    Close();
  }
  loop_->TrimBatch();
  if (!loop_->serving_meanwhile()) loop_->RunAfterTurn();
}

// Executes what has been read, as much as one turn allows.
void Connection::TakeTurn() {
  size_t requests = 0;
  size_t bytes = 0;
  session_.turn_us = loop_->turn_us();
  session_.turn_end_us = 0;
  while (serving()) {
    protocol::Batch& batch = loop_->batch;
    batch.clear();
    if (inspected_ == 0 && IsTlsHello()) {
      static LogLimit log_limit;
      LogWarning(log_limit, absl::StrCat("A TLS handshake on a port that does not speak TLS. Connection aborted: ", Describe()));
      return Close();
    }
    const protocol::ParseStatus status =
        parser_.Parse(buffer_.view(), Limits(), kBatchRequests, batch);
    ShowBuffers(buffer_.size());
    const bool http = inspected_ < kInspectRequests && CutAtHttp();
    requests += batch.requests.size();
    bytes += parser_.consumed();
    const bool all = ExecuteBatch();
    if (!serving()) return;
    if (session_.authenticated == stranger_) [[unlikely]]
      NoteLogin();
    if (session_.close_after_reply) {
      Flush();
      return CloseWhenSent(false);
    }
    if (turn_over_) return PostTurn();
    if (!all) break;
    if (http) {
      static LogLimit log_limit;
      LogWarning(
          log_limit,
          absl::StrCat("Possible SECURITY ATTACK detected. It looks like somebody is sending POST "
                       "or Host: commands. "
                       "This is likely due to an attacker attempting to use Cross Protocol "
                       "Scripting to compromise "
                       "this instance. Connection aborted: ",
                       Describe()));
      return Close();
    }
    if (status == protocol::ParseStatus::kError) return RefuseProtocol();
    if (status == protocol::ParseStatus::kNeedMore) break;
    if (requests >= kTurnRequests || bytes >= kTurnInputBytes || SteadyUs() >= session_.turn_end_us) return PostTurn();
  }
  Flush();
  AfterTurn();
}

// The turn is over and there is more to execute: behind the others.
void Connection::PostTurn() {
  Flush();
  if (!serving() || output_full_) return;
  turn_posted_ = true;
  loop_->PostTurn(self());
}

void Connection::TakePostedTurn() {
  turn_posted_ = false;
  if (serving() && session_.waiter == nullptr && !output_full_) Turn();
}

// False: the session blocked, is to be closed, or must first take its output; the rest will be
// parsed again.
bool Connection::ExecuteBatch() {
  const protocol::Batch& batch = loop_->batch;
  size_t done = 0;
  turn_over_ = false;
  while (done < batch.requests.size()) {
    done += loop_->dispatcher().Run(session_, batch, done, kOutputBytes, loop_->out);
    if (session_.waiter != nullptr || session_.close_after_reply) break;
    if (done == batch.requests.size()) break;
    turn_over_ = SteadyUs() >= session_.turn_end_us;
    if (turn_over_) break;
    Flush();
    if (!serving()) return false;
    if (output_full_) break;
  }
  if (done == batch.requests.size()) {
    buffer_.Consume(parser_.consumed());
    return session_.waiter == nullptr;
  }
  buffer_.Consume(done == 0 ? 0 : batch.requests[done - 1].end);
  parser_ = protocol::Parser();
  return false;
}

// Looks for the words of an HTTP request, and leaves only what came before them in the batch. Redis knows POST and Host: only,
// and says to the line before that it has too many words.
bool Connection::CutAtHttp() {
  protocol::Batch& batch = loop_->batch;
  for (size_t i = 0; i < batch.requests.size() && inspected_ < kInspectRequests;
       ++i, ++inspected_) {
    const protocol::RequestSpan& request = batch.requests[i];
    const absl::string_view name = batch.words[request.first];
    if (!absl::EqualsIgnoreCase(name, "POST") && !absl::EqualsIgnoreCase(name, "Host:") &&
        !IsHttpLine(batch.words_of(request), buffer_.view()[request.end - request.bytes])) {
      continue;
    }
    batch.requests.resize(i);
    return true;
  }
  return false;
}

// Whether the first bytes are those of a TLS client: a handshake record, of any version. The first one says it already, since no command
// begins with it.
bool Connection::IsTlsHello() const {
  const absl::string_view begin = buffer_.view().substr(0, 2);
  return tls_ == nullptr && !begin.empty() && absl::StartsWith("\x16\x03", begin);
}

// Decides what comes next once all that could be executed was, and its output was sent or queued.
void Connection::AfterTurn() {
  if (!serving()) return;
  info().blocked.store(session_.waiter != nullptr, std::memory_order_relaxed);
  ShowBuffers(buffer_.size());
  if (session_.waiter != nullptr) {
    if (end_of_input_ || finishing_) return Close();
    AwaitEndOfWait();
    return StartRead();
  }
  if (output_full_) return;  // OnWritten() goes on
  if (finishing_) return CloseWhenSent(true);
  if (end_of_input_) return CloseWhenSent(false);
  StartRead();
}

// A wait that has its own time.
void Connection::AwaitEndOfWait() {
  if (session_.give_up_at == std::chrono::steady_clock::time_point()) return;
  if (patience_ == nullptr) patience_ = std::make_unique<Timer>(loop_->context());
  patience_->expires_at(session_.give_up_at);
  patience_->async_wait([self = self(), waiter = session_.waiter](const ErrorCode& error) {
    if (!error && self->serving() && self->session_.waiter == waiter) self->loop_->dispatcher().WaitIsOver(self->session_);
  });
}

void Connection::RefuseProtocol() {
  Flush();
  if (!serving()) return;
  if (parser_.foreign()) {
    static LogLimit log_limit;
    LogWarning(log_limit, absl::StrCat("A client does not speak the Redis protocol (TLS on a port without it, for one). ",
                                       "Connection aborted: ", Describe()));
  } else {
    LogVerbose(absl::StrCat(parser_.error(), " from client: ", Describe()));
  }
  absl::StrAppend(&loop_->out, "-", parser_.error(), "\r\n");
  Flush();
  CloseWhenSent(true);
}

// The session has logged in, or it has not, or not any more.
void Connection::NoteLogin() {
  stranger_ = !session_.authenticated;
  if (!stranger_) return clients_.RemoveStranger(info().id);
  stranger_since_tick_ = loop_->ticks();
  const auto max = static_cast<size_t>(settings_.unauthenticated_max_clients.load(std::memory_order_relaxed));
  const std::shared_ptr<Peer> oldest = clients_.AddStranger(info().id, max);
  if (oldest == nullptr) return;
  static LogLimit log_limit;
  LogWarning(log_limit, "More clients than unauthenticated-max-clients have not logged in: the oldest are closed.");
  oldest->Kill();
}

// There was time enough to log in.
void Connection::CloseStranger() {
  loop_->out = absl::StrCat("-", protocol::errors::kNoAuth, "\r\n");
  Flush();
  CloseWhenSent(false);
}

void Connection::Tick(int64_t now_ms) {
  if (in_turn_) return;
  if (state_ == State::kLingering) {
    if (loop_->ticks() >= linger_until_tick_) Close();
    return;
  }
  CheckOutputLimits(now_ms);
  if (!serving()) return;
  const int64_t login_s = settings_.unauthenticated_max_seconds.load(std::memory_order_relaxed);
  if (stranger_ && login_s > 0 && loop_->ticks() - stranger_since_tick_ > login_s) return CloseStranger();
  if (InHandshake()) {
    const int64_t limit_s = TlsNumber(settings_, "tls-handshake-timeout");
    if (now_ms - info().created_ms > limit_s * 1000) return FailHandshake("Handshake not finished in time");
  }
  const int64_t timeout_s = settings_.timeout_s.load(std::memory_order_relaxed);
  const int64_t active_ms =
      std::max(info().last_active_ms.load(std::memory_order_relaxed), info().created_ms);
  if (timeout_s > 0 && session_.waiter == nullptr && !session_.monitor && !info().subscribed() &&
      now_ms - active_ms > timeout_s * 1000) {
    LogVerbose("Closing idle client");
    return Close();
  }
  if (reading_ && !parking_ && !writing_ && buffer_.empty() && buffer_.capacity() > 0 &&
      loop_->ticks() - last_read_tick_ > kParkSeconds) {
    if (tls_ != nullptr || ring_ != nullptr) return FreeBuffers();  // nothing is read into it
    parking_ = true;
    ErrorCode ignored;  // then the read goes on as it is
    socket_->cancel(ignored);
  }
}

void Connection::Finish() {
  if (in_turn_below()) return loop_->AfterTurn([self = self()] { self->Finish(); });
  if (!serving()) return;
  finishing_ = true;
  if (!turn_posted_ && !output_full_) AfterTurn();
}

void Connection::Kill() {
  info().closing.store(true, std::memory_order_relaxed);
  if (closed_.load(std::memory_order_relaxed)) return;
  loop_->Post([self = self()] { self->Close(); });
}

void Connection::Resume(std::function<void(Session& session, std::string& out)> done) {
  if (closed_.load(std::memory_order_relaxed)) return;
  Loop::Errand errand;
  errand.to = self();
  errand.resume = std::move(done);
  loop_->Give(std::move(errand));
}

void Connection::Continue(const std::function<void(Session& session, std::string& out)>& done) {
  if (in_turn_below()) return loop_->AfterTurn([self = self(), done] { self->Continue(done); });
  if (!serving()) return;
  const std::shared_ptr<storage::Waiter> waited = session_.waiter;
  if (patience_ != nullptr) patience_->cancel();
  std::string& out = loop_->out;
  done(session_, out);
  if (session_.reply_mode != ReplyMode::kOn) out.clear();
  if (session_.waiter == waited) session_.waiter.reset();
  info().blocked.store(session_.waiter != nullptr, std::memory_order_relaxed);
  Flush();
  if (!serving()) return;
  if (session_.close_after_reply) return CloseWhenSent(false);
  if (!turn_posted_ && !output_full_ && session_.waiter == nullptr) Turn();
}

void Connection::Close() {
  if (in_turn_below()) return loop_->AfterTurn([self = self()] { self->Close(); });
  if (state_ == State::kClosed || (!socket_.has_value() && ring_ == nullptr)) return;
  const std::shared_ptr<Connection> keep = self();
  state_ = State::kClosed;
  closed_.store(true, std::memory_order_relaxed);
  info().closing.store(true, std::memory_order_relaxed);
  loop_->dispatcher().Closed(session_);
  info().blocked.store(false, std::memory_order_relaxed);
  clients_.Remove(info().id);
  if (tls_ != nullptr) SayEndOfTls();
  if (ring_ != nullptr) LeaveRing();
  socket_.reset();    // handlers of what is under way still run, and find it closed
  patience_.reset();
  loop_->out.clear();
  queue_.Clear();
  held_.clear();
  held_up_to_.clear();
  if (!reading_) buffer_.Free();
  session_.peer.reset();
  loop_->Remove(*this);
}

void Connection::ShowBuffers(size_t query_bytes) {
  info().query_bytes.store(query_bytes, std::memory_order_relaxed);
  info().query_free.store(buffer_.capacity() - query_bytes, std::memory_order_relaxed);
  NoteMemory();
}

// maxmemory-clients: the clients are gone through once those of this loop have come to hold a good deal more.
void Connection::NoteMemory() {
  const uint64_t limit = settings_.maxmemory_clients_bytes.load(std::memory_order_relaxed);
  if (limit == 0) [[likely]]
    return;
  const uint64_t before = std::exchange(noted_bytes_, info().buffer_bytes());
  if (noted_bytes_ <= before || !loop_->NoteGrowth(noted_bytes_ - before, limit)) return;
  const std::vector<std::shared_ptr<Peer>> gone = clients_.Evict(limit);
  if (gone.empty()) return;
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Evicting ", gone.size(), " clients beyond maxmemory-clients, such as id=", gone[0]->info().id,
                                     " addr=", gone[0]->info().address));
  loop_->dispatcher().services().stats.OnEvictedClients(gone.size());
}

std::string Connection::Describe() const {
  return absl::StrCat("id=", info().id, " addr=", info().address, " laddr=", info().local_address,
                      " fd=", info().fd, " name=", session_.name, " db=", session_.db,
                      " qbuf=", buffer_.size(), " obl=", queue_.bytes(), " user=", session_.user);
}

}  // namespace idemd::server
