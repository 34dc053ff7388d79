// The network side of the process: loops, listening sockets, signals, and the way to stop.
//
// The thread in Run() is the control thread: it accepts, deals connections out to the loops in
// turn, and takes signals. A connection stays with its loop. On io_uring (io-backend) every loop has a ring, and the control
// thread one to accept with. Threads   Start(), Run() and the
// destructor: one thread. Stop() from any. Settings hooks (port, bind, maxclients, TLS) from
//           any: they hand their work to the control thread and wait for it.
#pragma once

#include <atomic>
#include <boost/asio/signal_set.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/commands/dispatch.h"
#include "server/net/asio.h"
#include "server/net/listener.h"
#include "server/net/loop.h"
#include "server/net/ring.h"
#include "server/net/tls_context.h"

namespace idemd::server {

class Server {
 public:
  // Registers its hooks with the settings, which must not change any more once the server is gone.
  explicit Server(Services& services);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Makes room for maxclients, listens, starts the loops. On error nothing runs.
  [[nodiscard]] absl::Status Start();
  // From now on SIGTERM and SIGINT call `told` on the control thread; one that comes while the server stops ends the
  // process at once.
  void HandleSignals(std::function<void(int number)> told);
  // Serves until Stop(), then until all connections are finished.
  void Run();
  // Any thread: the log has got further, so held replies may leave.
  void OnReleased();
  // Begins a graceful stop: no new connections; what was read is executed, answered and sent,
  // within a few seconds.
  void Stop();
  // On a loop's thread, in the middle of a connection's turn: serves the loop's other connections for a moment. Elsewhere
  // nothing.
  static void ServeMeanwhile() { Loop::ServeMeanwhile(); }

 private:
  struct Acceptor final : RingListener {
    Acceptor(Server& of, ListeningSocket listening);
    ~Acceptor() { Close(); }
    void Close();
    void OnAccepted(int result) override { server.OnAccepted(*this, result); }
    Server& server;
    ListeningSocket socket;
    Descriptor descriptor;  // owns socket.fd, unless it is on the ring
    Ring::Id ring_id = 0;
    Timer retry;
    bool open = true;
  };

  absl::Status MakeLoops();
  absl::Status UseRings();
  void LimitClientMemory();
  absl::Status FitOpenFiles();
  absl::Status Listen(bool tls);
  absl::Status ListenPlain() { return Listen(false); }
  absl::Status ListenTls() { return Listen(true); }
  absl::Status ListenAgain();
  absl::Status RenewTls();
  absl::Status OnControlThread(absl::Status (Server::*work)());
  void WaitForSignal();
  void WaitForConnections(std::shared_ptr<Acceptor> acceptor);
  void AcceptAll(const std::shared_ptr<Acceptor>& acceptor);
  void OnAccepted(Acceptor& acceptor, int result);
  void Admit(const ListeningSocket& listening, const Accepted& accepted);
  void CloseAcceptors(absl::FunctionRef<bool(const ListeningSocket&)> which);
  void StopNow();

  Services& services_;
  IoContext control_{1};
  std::unique_ptr<Ring> ring_;  // null: accepts on epoll
  std::optional<WorkGuard> work_;
  boost::asio::basic_signal_set<Executor> signals_;
  std::function<void(int)> on_signal_;
  std::vector<std::shared_ptr<Acceptor>> acceptors_;  // control thread
  TlsContext tls_context_;                            // control thread; null until there is a tls-port
  std::vector<std::shared_ptr<Loop>> loops_;
  size_t next_loop_ = 0;
  size_t loops_running_ = 0;
  bool started_ = false;
  bool stopping_ = false;
  std::atomic<bool> running_{
      false};  // between Start() and the end of Run(), which does what hooks ask for
};

}  // namespace idemd::server
