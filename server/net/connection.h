// One client: reads requests, has them executed in order, writes the replies.
//
//   read -> parse a batch -> Dispatcher::Run -> send at once -> read ...
//
// Replies that reveal what the log has not made safe yet are held until it has; see Loop::Hold().
// What the socket does not take waits in the queue; while too much waits there, nothing more is
// executed or read. While the session is blocked, bytes are read (so that the peer's going away is
// noticed) but nothing is executed.
//
// The socket is Asio's, or the loop's ring's if it has one (connection_ring.cc); TLS is always on Asio.
//
// Threads    All state belongs to the loop's thread; Send(), Kill() and Resume() come from any and
// post to it. Lifetime   Handlers of Asio, the loop and the registry share it. Close() ends
// everything that points back. Memory     An active connection holds a read buffer of 16 KiB, into
// which the next read is already under way: that is
//            one system call per request less than waiting for readability first. After two quiet
//            seconds it gives the buffer back and does wait, so that idle connections cost about a
//            kilobyte. Replies are built in the loop's memory and kept only as far as the socket
//            did not take them. On a ring a read buffer holds no more than incomplete requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "protocol/resp/parser.h"
#include "server/admin/settings.h"
#include "server/net/asio.h"
#include "server/net/loop.h"
#include "server/net/output_queue.h"
#include "server/net/read_buffer.h"
#include "server/net/ring.h"
#include "server/session.h"

namespace idemd::server {

class TlsStream;

class Connection final : public Peer, private RingClient {
 public:
  // Takes over `fd`, which is non-blocking. `settings` as in the loop's services.
  Connection(std::shared_ptr<Loop> loop, Settings& settings, Clients& clients, int fd);
  ~Connection() override;
  // Before Start(): what comes is TLS. Whoever gets through the handshake is told `refusal`, which lives for ever, and
  // sent away; unless it is empty.
  void UseTls(std::unique_ptr<TlsStream> tls, absl::string_view refusal);

  // --- loop thread
  void Start();
  void Tick(int64_t now_ms);
  // Graceful stop: what was read is executed and answered, then the connection closes.
  void Finish();
  void Abort() { Close(); }

  // --- any thread
  void Send(std::shared_ptr<const std::string> bytes, storage::Lsn need,
            std::shared_ptr<const std::atomic<bool>> while_true) override;
  void Kill() override;
  void Resume(std::function<void(Session& session, std::string& out)> done) override;

  // --- loop thread, for the loop
  // What Send() left. True: it stands in the queue, the first since SendTaken().
  bool Take(const std::shared_ptr<const std::string>& bytes, storage::Lsn need,
            const std::shared_ptr<const std::atomic<bool>>& while_true);
  void SendTaken();
  // What Resume() left.
  void Continue(const std::function<void(Session& session, std::string& out)>& done);
  // The log has got to `released`: replies that waited for no more leave. False: others still wait.
  bool ReleaseHeld(storage::Lsn released);

  void TakePostedTurn();

  // Where the loop keeps it.
  size_t place() const { return place_; }
  void set_place(size_t place) { place_ = place; }

 private:
  enum class State : uint8_t {
    kServing,
    kFlushing,   // nothing more is executed; closes when the queue is empty
    kLingering,  // all is sent and our side is shut; reads what is in flight, so that no reset
                 // overtakes our replies
    kClosed,
  };
  std::shared_ptr<Connection> self() {
    return std::static_pointer_cast<Connection>(shared_from_this());
  }
  bool serving() const { return state_ == State::kServing; }
  // Its turn is under way further down this thread's stack (Loop::ServeMeanwhile): whatever else is to be done waits for its end.
  bool in_turn_below() const { return in_turn_ && loop_->serving_meanwhile(); }
  void TakeTurn();

  bool JoinAsio();
  void StartRead();
  void OnRead(const ErrorCode& error, size_t n);
  void OnInput();
  void OnEndOfInput();
  void FreeBuffers();
  void Park();
  void Turn();
  void PostTurn();
  bool ExecuteBatch();
  bool CutAtHttp();
  void NoteLogin();
  void NoteMemory();
  void CloseStranger();
  bool IsTlsHello() const;
  void AfterTurn();
  void AwaitEndOfWait();
  void RefuseProtocol();
  void Flush();
  void Hold(absl::string_view bytes, storage::Lsn need);
  void SendOut();
  void SendBytes();
  void StartWrite();
  void NoteQueue();
  void OnWritten(const ErrorCode& error, size_t n);
  void CheckOutputLimits(int64_t now_ms);
  void CloseWhenSent(bool linger);
  void EndOutput();
  void Close();
  // connection_tls.cc
  bool InHandshake() const;
  void StartTlsRead();
  void OnTlsReadable(const ErrorCode& error);
  void TakeSealed(absl::string_view sealed);
  void FailHandshake(absl::string_view why);
  bool SealOut();
  bool SealToQueue(absl::string_view bytes);
  void SayEndOfTls();
  // connection_ring.cc
  void JoinRing();
  void LeaveRing();
  void StartRingRead();
  void OnReceived(char* bytes, size_t n) override;
  void OnReceiveEnd(int error) override;
  void KeepUnsent(absl::string_view rest, int error) override;
  void OnUnsent() override;
  void OnWritable() override;
  void Settle();

  int fd() { return socket_.has_value() ? socket_->native_handle() : fd_; }
  bool OverQueryLimit();
  void OutOfMemory();
  void ShowBuffers(size_t query_bytes);
  protocol::ParserLimits Limits() const;
  std::string Describe() const;

  const std::shared_ptr<Loop> loop_;
  Settings& settings_;
  Clients& clients_;
  int fd_;  // until Start() gives it to socket_; -1 afterwards
  std::optional<StreamSocket> socket_;  // none on a ring
  Ring* ring_ = nullptr;                // null: the socket is Asio's
  Ring::Id ring_id_ = 0;
  int send_error_ = 0;                  // of the ring's
  std::unique_ptr<TlsStream> tls_;  // null: plain
  absl::string_view refusal_;
  std::unique_ptr<Timer> patience_;  // rings when a wait is over by itself; made when the first such wait begins
  Session session_;
  protocol::Parser parser_;
  ReadBuffer buffer_;
  OutputQueue queue_;
  // Replies that reveal what is not on disk yet, in order, and how far each may go when.
  struct HeldUpTo {
    storage::Lsn need;
    size_t end;
  };
  std::string held_;
  std::vector<HeldUpTo> held_up_to_;
  bool in_held_list_ = false;  // of the loop
  size_t place_ = 0;
  uint64_t noted_bytes_ = 0;  // see NoteMemory()
  int64_t over_soft_limit_since_ms_ = 0;  // 0: it is not
  uint32_t last_read_tick_ = 0;
  uint32_t linger_until_tick_ = 0;
  uint32_t stranger_since_tick_ = 0;
  uint16_t inspected_ = 0;  // requests that were looked at for HTTP
  State state_ = State::kServing;
  bool in_turn_ = false;
  bool reading_ = false;  // a read or a wait is under way; on a ring: bytes are wanted
  bool parking_ = false;  // ... and was cancelled to give back the buffer
  bool writing_ = false;
  bool turn_over_ = false;  // of ExecuteBatch(): its time was, before all was executed
  bool turn_posted_ = false;
  bool output_full_ = false;  // nothing is executed until the queue is shorter
  bool end_of_input_ = false;
  bool finishing_ = false;
  bool stranger_ = false;  // not logged in, and counted as such
  bool linger_ = false;
  bool taken_ = false;   // of the loop: SendTaken() is to come
  bool pushed_ = false;  // gets more than replies, without a subscription: MONITOR
  std::atomic<bool> closed_{false};
};

}  // namespace idemd::server
