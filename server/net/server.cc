// Accepting, dealing out, stopping.
#include "server/net/server.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <future>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "protocol/errors.h"
#include "server/admin/log.h"
#include "server/admin/settings.h"
#include "server/admin/stats.h"
#include "server/clients.h"
#include "server/net/connection.h"
#include "server/net/tls_stream.h"

namespace idemd::server {
namespace {

// Connections accepted before the control thread looks at anything else.
constexpr int kAcceptsPerTurn = 1000;
// When no descriptor is left, accepting is tried again after this long.
constexpr auto kAcceptRetry = std::chrono::milliseconds(100);
// How long clients have to take their last replies.
constexpr auto kStopTime = std::chrono::seconds(5);
// How long a hook waits for the control thread.
constexpr auto kHookTime = std::chrono::seconds(10);
// Descriptors that are not clients': log, listening sockets, and per loop three of Asio's and two of a ring.
constexpr int64_t kReservedFiles = 32;
constexpr int64_t kFilesPerLoop = 6;

constexpr absl::string_view kDenied =
    "-DENIED idemd is running in protected mode: no password is set for the default user, so it "
    "only accepts "
    "connections from the loopback interface. To let other machines in, set a password "
    "(requirepass), or turn the "
    "mode off (protected-mode no) if something else keeps strangers away.\r\n";

// Best effort: the socket is new, so its buffer is empty.
void Refuse(int fd, absl::string_view text) {
  if (!text.empty()) {
    [[maybe_unused]] const ssize_t sent =
        send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  close(fd);
}

// Of maxmemory-clients: "10%" is that share of `whole`.
uint64_t BytesOrShare(absl::string_view text, uint64_t whole) {
  uint64_t number = 0;  // the setting has been read: it is one
  const bool share = absl::ConsumeSuffix(&text, "%");
  (void)absl::SimpleAtoi(text, &number);
  return share ? whole / 100 * number : number;
}

}  // namespace

Server::Acceptor::Acceptor(Server& of, ListeningSocket listening)
    : server(of), socket(std::move(listening)), descriptor(of.control_), retry(of.control_) {
  if (of.ring_ != nullptr) {
    fcntl(socket.fd, F_SETFL, 0);  // blocking: see Ring::Add()
    ring_id = of.ring_->Add(this, socket.fd);
  } else {
    descriptor.assign(socket.fd);
  }
}

void Server::Acceptor::Close() {
  if (!std::exchange(open, false)) return;
  if (server.ring_ != nullptr) {
    server.ring_->Remove(ring_id);
    close(socket.fd);
  }
  ErrorCode ignored;
  descriptor.close(ignored);
  retry.cancel();
}

Server::Server(Services& services)
    : services_(services), work_(boost::asio::make_work_guard(control_)), signals_(control_) {
  services_.settings.OnChange({"port"}, [this] {
    return OnControlThread(&Server::ListenPlain).ok()
               ? absl::OkStatus()
               : absl::UnavailableError("Unable to listen on this port. Check server logs.");
  });
  services_.settings.OnChange({"bind"}, [this] {
    return OnControlThread(&Server::ListenAgain).ok()
               ? absl::OkStatus()
               : absl::UnavailableError("Failed to bind to specified addresses.");
  });
  // Before the one that listens: tls-port is among them because it asks for a context.
  services_.settings.OnChange(
      {"tls-cert-file", "tls-key-file", "tls-key-file-pass", "tls-ca-cert-file", "tls-ca-cert-dir", "tls-auth-clients",
       "tls-protocols", "tls-ciphers", "tls-ciphersuites", "tls-prefer-server-ciphers", "tls-session-caching",
       "tls-session-cache-size", "tls-session-cache-timeout", "tls-dh-params-file", "tls-port"},
      [this] {
        return OnControlThread(&Server::RenewTls).ok()
                   ? absl::OkStatus()
                   : absl::UnavailableError("Unable to update TLS configuration. Check server logs.");
      });
  services_.settings.OnChange({"tls-port"}, [this] {
    return OnControlThread(&Server::ListenTls).ok()
               ? absl::OkStatus()
               : absl::UnavailableError("Unable to listen on this port. Check server logs.");
  });
  services_.settings.OnChange({"maxmemory", "maxmemory-clients"}, [this] {
    LimitClientMemory();
    return absl::OkStatus();
  });
  services_.settings.OnChange({"maxclients"},
                              [this] { return OnControlThread(&Server::FitOpenFiles); });
}

Server::~Server() {
  if (!started_) return;
  Stop();
  Run();
}

void Server::LimitClientMemory() {
  Settings& settings = services_.settings;
  const auto whole = static_cast<uint64_t>(settings.maxmemory_bytes.load(std::memory_order_relaxed));
  const uint64_t limit = BytesOrShare(settings.Text("maxmemory-clients"), whole);
  settings.maxmemory_clients_bytes.store(limit, std::memory_order_relaxed);
  if (limit != 0) services_.stats.OnEvictedClients(services_.clients.Evict(limit).size());
}

absl::Status Server::Start() {
  LimitClientMemory();
  if (absl::Status status = FitOpenFiles(); !status.ok()) return status;
  if (!RenewTls().ok()) return absl::FailedPreconditionError("Failed to configure TLS. Check logs for more info.");
  if (absl::Status status = MakeLoops(); !status.ok()) return status;
  if (absl::Status status = ListenAgain(); !status.ok()) return status;
  if (const std::string path = services_.settings.Text("unixsocket"); !path.empty()) {
    absl::StatusOr<ListeningSocket> socket = ListenUnix(services_.settings, path);
    if (!socket.ok()) {
      CloseAcceptors([](const ListeningSocket&) { return true; });
      return socket.status();
    }
    acceptors_.push_back(std::make_shared<Acceptor>(*this, *std::move(socket)));
    WaitForConnections(acceptors_.back());
  }
  if (acceptors_.empty()) return absl::FailedPreconditionError("Configured to not listen anywhere, exiting");
  for (const auto& loop : loops_) loop->Start();
  loops_running_ = loops_.size();
  started_ = true;
  running_.store(true, std::memory_order_release);
  return absl::OkStatus();
}

absl::Status Server::MakeLoops() {
  Settings& settings = services_.settings;
  const int64_t threads = settings.io_threads.load(std::memory_order_relaxed);
  const int64_t backend = settings.io_backend.load(std::memory_order_relaxed);
  for (int64_t i = 0; i < threads; ++i) loops_.push_back(std::make_shared<Loop>(services_));
  if (backend == kIoEpoll) return absl::OkStatus();
  const absl::Status rings = UseRings();
  settings.io_uring_in_use.store(rings.ok(), std::memory_order_relaxed);
  if (rings.ok()) return rings;
  ring_.reset();
  for (const auto& loop : loops_) loop->DropRing();
  if (backend == kIoUring)
    return absl::UnavailableError(absl::StrCat("io-backend io_uring is not to be had here: ", rings.message()));
  LogVerbose(absl::StrCat("Sockets are served with epoll: ", rings.message()));
  return absl::OkStatus();
}

absl::Status Server::UseRings() {
  absl::StatusOr<std::unique_ptr<Ring>> ring = Ring::Make(control_, {.entries = 64, .completions = 1024, .buffers_first = 0, .buffers_max = 0});
  if (!ring.ok()) return ring.status();
  ring_ = *std::move(ring);
  for (const auto& loop : loops_)
    if (absl::Status status = loop->UseRing(); !status.ok()) return status;
  return absl::OkStatus();
}

void Server::Run() {
  if (ring_ != nullptr && started_) ring_->Start();
  control_.run();
  running_.store(false, std::memory_order_release);
  for (const auto& loop : loops_) loop->Join();
  started_ = false;
}

// Raises the limit on open files to what maxclients needs, or lowers maxclients to what the limit
// allows.
absl::Status Server::FitOpenFiles() {
  const int64_t wanted = services_.settings.maxclients.load(std::memory_order_relaxed);
  const int64_t reserved = kReservedFiles + kFilesPerLoop * services_.settings.io_threads.load(
                                                                std::memory_order_relaxed);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return absl::OkStatus();  // accepting copes with running out
  const auto needed = static_cast<rlim_t>(wanted + reserved);
  if (limit.rlim_cur >= needed) return absl::OkStatus();
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = needed;
  if (limit.rlim_max < needed) limit.rlim_max = needed;
  if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
    LogNotice(absl::StrCat("Increased maximum number of open files to ", needed,
                           " (it was originally set to ", before, ")."));
    return absl::OkStatus();
  }
  const int error = errno;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max > limit.rlim_cur) {
    limit.rlim_cur = std::min(needed, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  const int64_t room = static_cast<int64_t>(limit.rlim_cur) - reserved;
  if (room >= wanted) return absl::OkStatus();
  if (started_ || room < 1) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The operating system is not able to handle the specified number of clients, try with ",
        std::max<int64_t>(room, 0)));
  }
  const std::string lowered = absl::StrCat(room);
  if (absl::Status set = services_.settings.Set({{"maxclients", lowered}}, {}); !set.ok())
    return set;
  LogWarning(absl::StrCat("You requested maxclients of ", wanted, " requiring at least ", needed,
                          " max file descriptors."));
  LogWarning(absl::StrCat("Server can't set maximum open files to ", needed,
                          " because of OS error: ", std::generic_category().message(error), "."));
  LogWarning(absl::StrCat(
      "Current maximum open files is ", limit.rlim_cur, ". maxclients has been reduced to ", room,
      " to compensate for low ulimit. If you need higher maxclients increase 'ulimit -n'."));
  return absl::OkStatus();
}

absl::Status Server::ListenAgain() {
  absl::Status status = ListenPlain();
  if (status.ok()) status = ListenTls();
  return status;
}

// Closes the TCP sockets of one kind and opens those that the settings ask for.
absl::Status Server::Listen(bool tls) {
  CloseAcceptors([tls](const ListeningSocket& socket) { return !socket.unix_socket && socket.tls == tls; });
  absl::StatusOr<std::vector<ListeningSocket>> sockets = ListenTcp(services_.settings, tls);
  if (!sockets.ok()) {
    LogWarning(absl::StrCat("Warning: ", sockets.status().message()));
    return sockets.status();
  }
  for (ListeningSocket& socket : *sockets) {
    acceptors_.push_back(std::make_shared<Acceptor>(*this, std::move(socket)));
    WaitForConnections(acceptors_.back());
  }
  return absl::OkStatus();
}

// Reads the files again. Where something is wrong with them, new connections get what they got before.
absl::Status Server::RenewTls() {
  if (TlsNumber(services_.settings, "tls-port") == 0) return absl::OkStatus();
  absl::StatusOr<TlsContext> context = MakeTlsContext(services_.settings);
  if (!context.ok()) {
    LogWarning(context.status().message());
    return context.status();
  }
  tls_context_ = *std::move(context);
  return absl::OkStatus();
}

void Server::CloseAcceptors(absl::FunctionRef<bool(const ListeningSocket&)> which) {
  const auto closes = [&](const std::shared_ptr<Acceptor>& acceptor) {
    if (!which(acceptor->socket)) return false;
    acceptor->Close();
    if (acceptor->socket.unix_socket) unlink(acceptor->socket.name.c_str());
    return true;
  };
  acceptors_.erase(std::remove_if(acceptors_.begin(), acceptors_.end(), closes), acceptors_.end());
}

// Before Start() there is nothing to bring up to date: it reads the settings.
absl::Status Server::OnControlThread(absl::Status (Server::*work)()) {
  if (!running_.load(std::memory_order_acquire)) return absl::OkStatus();
  auto result = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> status = result->get_future();
  boost::asio::post(control_, [this, work, result] {
    result->set_value(stopping_ ? absl::CancelledError("the server is stopping") : (this->*work)());
  });
  if (status.wait_for(kHookTime) != std::future_status::ready)
    return absl::DeadlineExceededError("the server is busy");
  return status.get();
}

void Server::WaitForConnections(std::shared_ptr<Acceptor> acceptor) {
  if (ring_ != nullptr) return ring_->Accept(acceptor->ring_id);
  Descriptor& descriptor = acceptor->descriptor;
  descriptor.async_wait(Descriptor::wait_read,
                        [this, acceptor = std::move(acceptor)](const ErrorCode& error) {
                          if (!error && acceptor->descriptor.is_open()) AcceptAll(acceptor);
                        });
}

void Server::AcceptAll(const std::shared_ptr<Acceptor>& acceptor) {
  Accepted accepted;
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (AcceptOne(acceptor->socket, &accepted)) {
      Admit(acceptor->socket, accepted);
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) break;
    static LogLimit log_limit;
    LogWarning(
        log_limit,
        absl::StrCat("Accepting client connection: ", std::generic_category().message(errno)));
    acceptor->retry.expires_after(kAcceptRetry);
    acceptor->retry.async_wait([this, acceptor](const ErrorCode& error) {
      if (!error && acceptor->descriptor.is_open()) AcceptAll(acceptor);
    });
    return;
  }
  WaitForConnections(acceptor);
}

// On the ring.
void Server::OnAccepted(Acceptor& acceptor, int result) {
  if (result >= 0) {
    Accepted accepted;
    accepted.fd = result;
    if (TakeAccepted(acceptor.socket, &accepted)) Admit(acceptor.socket, accepted);
    return ring_->Accept(acceptor.ring_id);  // where it has ended by itself
  }
  if (result == -ECONNABORTED || result == -EINTR) return ring_->Accept(acceptor.ring_id);
  static LogLimit log_limit;
  LogWarning(log_limit, absl::StrCat("Accepting client connection: ", std::generic_category().message(-result)));
  const std::shared_ptr<Acceptor> kept = *std::find_if(acceptors_.begin(), acceptors_.end(),
                                                       [&](const auto& one) { return one.get() == &acceptor; });
  acceptor.retry.expires_after(kAcceptRetry);
  acceptor.retry.async_wait([this, kept](const ErrorCode& error) {
    if (!error && kept->open) ring_->Accept(kept->ring_id);
  });
}

void Server::Admit(const ListeningSocket& listening, const Accepted& accepted) {
  Settings& settings = services_.settings;
  if (static_cast<int64_t>(services_.clients.count()) >=
      settings.maxclients.load(std::memory_order_relaxed)) {
    services_.stats.OnRejectedConnection();
    // Before a handshake, nothing can be said to a TLS client.
    const std::string text = absl::StrCat("-", protocol::errors::kMaxClients, "\r\n");
    return Refuse(accepted.fd, listening.tls ? "" : text);
  }
  const bool denied = !accepted.from_this_machine && settings.protected_mode.load(std::memory_order_relaxed) &&
                      !settings.has_password.load(std::memory_order_relaxed);
  if (denied) {
    services_.stats.OnRejectedConnection();
    if (!listening.tls) return Refuse(accepted.fd, kDenied);
  }
  std::unique_ptr<TlsStream> tls;
  if (listening.tls) {
    tls = TlsStream::Accept(tls_context_);
    if (tls == nullptr) {
      LogWarning(absl::StrCat("Out of memory for the TLS connection of ", accepted.address));
      return Refuse(accepted.fd, "");
    }
  }
  if (!listening.unix_socket)
    SetKeepalive(accepted.fd, settings.tcp_keepalive_s.load(std::memory_order_relaxed));
  const std::shared_ptr<Loop>& loop = loops_[next_loop_++ % loops_.size()];
  const auto connection =
      std::make_shared<Connection>(loop, settings, services_.clients, accepted.fd);
  if (tls != nullptr) connection->UseTls(std::move(tls), denied ? kDenied : "");
  ClientInfo& info = connection->info();
  info.id = services_.clients.NextId();
  info.address = accepted.address;
  info.local_address = accepted.local_address;
  info.fd = accepted.fd;
  info.created_ms = SteadyMs();
  info.unix_socket = listening.unix_socket;
  info.last_active_ms.store(info.created_ms, std::memory_order_relaxed);
  services_.clients.Add(connection);
  LogVerbose(absl::StrCat("Accepted ", accepted.address));
  loop->Post([connection] { connection->Start(); });
}

void Server::HandleSignals(std::function<void(int)> told) {
  on_signal_ = std::move(told);
  signals_.add(SIGTERM);
  signals_.add(SIGINT);
  WaitForSignal();
}

void Server::WaitForSignal() {
  signals_.async_wait([this](const ErrorCode& error, int number) {
    if (error) return;
    if (stopping_) {
      LogWarning(absl::StrCat("Received ", number == SIGINT ? "SIGINT" : "SIGTERM",
                              " again, exiting at once."));
      std::_Exit(1);
    }
    on_signal_(number);
    WaitForSignal();
  });
}

void Server::OnReleased() {
  // The loops are made once, before anything is running.
  if (!running_.load(std::memory_order_acquire)) return;
  for (const auto& loop : loops_) loop->OnReleased();
}

void Server::Stop() {
  boost::asio::post(control_, [this] { StopNow(); });
}

void Server::StopNow() {
  if (stopping_) return;
  stopping_ = true;
  CloseAcceptors([](const ListeningSocket&) { return true; });
  const auto deadline = std::chrono::steady_clock::now() + kStopTime;
  const auto one_ended = [this] {
    boost::asio::post(control_, [this] {
      if (--loops_running_ > 0) return;
      if (ring_ != nullptr) ring_->Stop();
      ErrorCode ignored;
      signals_.cancel(ignored);
      work_.reset();
    });
  };
  for (const auto& loop : loops_) loop->Stop(deadline, one_ended);
}

}  // namespace idemd::server
