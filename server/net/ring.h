// One io_uring of one thread, hung into that thread's io_context: receives, sends and accepts without a system call each.
//
//   kernel -> eventfd -> Run(): submit what is staged and take what is complete, in one call -> clients -> stage ... -> sleep
//
// Receiving   One request per socket stays in the kernel and takes buffers out of a pool that the ring's sockets share, so
//             that a silent socket holds none. The pool grows when it runs dry, up to a limit; a socket that found it dry
//             is received from again once buffers are back.
// Sending     Bytes are copied into an arena and go out with the next submit, for many sockets in one call. A send never
//             waits in the kernel: it is over when the submit returns, and there is a completion for it only if something
//             was left over. That is handed to KeepUnsent() before Submit() returns, so what a client sends next can
//             stand behind it, and the arena is free again.
// Threads     Made on any thread before Start(); then all of it belongs to the thread that called Start(), which runs the
//             io_context.
// Lifetime    The ring goes before its io_context. A client is not called any more once Remove() was, and its descriptor
//             may then be closed: nothing of the kernel's refers to it by number.
// Errors      Make() says why there can be no ring here. Errors of sockets are errno values, 0 for none.
#pragma once

#include <liburing.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/net/asio.h"

namespace idemd::server {

// What a ring has to say to the owner of a socket, on the ring's thread.
class RingClient {
 public:
  // The answer to Receive(): the bytes are there until this returns. Without a Receive() before, they came before
  // receiving could be stopped.
  virtual void OnReceived(char* bytes, size_t n) = 0;
  // Nothing more will come; 0: the peer has shut its side.
  virtual void OnReceiveEnd(int error) = 0;
  // `rest` of a send was not sent; 0: only because the socket was full. Called within Submit(), so all that may be done is
  // to keep it: OnUnsent() follows when it is time to go on.
  virtual void KeepUnsent(absl::string_view rest, int error) = 0;
  virtual void OnUnsent() = 0;
  // The answer to AwaitWritable().
  virtual void OnWritable() = 0;

 protected:
  ~RingClient() = default;
};

// ... and to the owner of a listening one.
class RingListener {
 public:
  // A descriptor, non-blocking, or a negated errno value. After an error nothing is accepted until Accept() is called again.
  virtual void OnAccepted(int result) = 0;

 protected:
  ~RingListener() = default;
};

struct RingOptions {
  unsigned entries = 256;        // requests of one submit
  unsigned completions = 4096;   // more are kept by the kernel, at a price
  unsigned buffers_first = 32;   // a power of two each; 0: nothing is received
  unsigned buffers_max = 256;
  size_t buffer_bytes = 16 * 1024;
  // Not 0: something waits in the io_context. What was put there before bytes came is run before their client gets them, as
  // it would be if the io_context itself read them. Null: nobody counts.
  const std::atomic<uint32_t>* posted = nullptr;
};

class Ring {
 public:
  using Id = uint32_t;
  // A longer send is not worth copying.
  static constexpr size_t kSendBytesMax = 64 * 1024;

  static absl::StatusOr<std::unique_ptr<Ring>> Make(IoContext& context, const RingOptions& options = {});
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  void Start();
  // The io_context has nothing to wait for any more on account of the ring.
  void Stop();

  // `fd` is a blocking one: with others the kernel does not wait.
  Id Add(RingClient* client, int fd);
  Id Add(RingListener* listener, int fd);
  // Submits, so that nothing staged is lost.
  void Remove(Id id);

  // Asks for one OnReceived() or OnReceiveEnd().
  void Receive(Id id);
  void Accept(Id id);
  void AwaitWritable(Id id);
  // False: too long, or not to be put behind what is staged for this socket. Then that has been submitted; the caller looks
  // whether something of it came back, and goes on by itself.
  [[nodiscard]] bool Send(Id id, absl::string_view bytes);
  bool staged(Id id) const { return slots_[id].piece != kNoPiece; }
  void Submit();

  // Runs clients for what is complete, from within one of them.
  void ServeMeanwhile() { Serve(kCompletionsPerRun); }

  unsigned buffers() const { return buffers_; }

 private:
  // Clients called in a row, before the io_context has its turn.
  static constexpr int kCompletionsPerRun = 128;
  static constexpr size_t kArenaBytes = 4 * kSendBytesMax;
  // So many replies do not wait for the ones behind them.
  static constexpr size_t kSendsPerSubmit = 16;
  static constexpr uint32_t kNoPiece = UINT32_MAX;

  enum class Kind : uint32_t { kReceive, kAccept, kWritable, kSend, kCancel };
  struct Slot {
    RingClient* client = nullptr;
    RingListener* listener = nullptr;
    int fd = -1;
    uint32_t serial = 0;      // how many it has had
    uint32_t piece = kNoPiece;  // of pieces_
    bool used = false;
    bool wanted = false;      // the client has asked for bytes
    bool taking = false;      // the kernel has a receive or an accept
    bool canceling = false;   // ... that is to end
    bool awaiting = false;    // the kernel waits until it can be written to
  };
  struct Piece {
    Id id;
    size_t offset;  // in the arena
    size_t bytes;
  };
  struct Completion {
    uint64_t tag;
    int32_t result;
    uint32_t flags;
  };

  explicit Ring(IoContext& context, const RingOptions& options);
  absl::Status SetUp();
  absl::Status SetUpBuffers();

  static uint64_t Tag(Kind kind, uint32_t number) { return uint64_t{static_cast<uint32_t>(kind)} << 32 | number; }
  Id NewSlot(int fd);
  void FreeIfOver(Id id);
  io_uring_sqe* Request(Kind kind, uint32_t number);
  void StageReceive(Id id);
  void StageCancel(Kind kind, Id id);
  void Harvest();
  void TakeFailedSend(uint32_t number, int result);
  void Run();
  void RunSoon();
  bool Sleep();
  void AwaitEvent();
  bool Serve(int budget);
  void Dispatch(const Completion& completion);
  void OnReceiveCompletion(Id id, const Completion& completion);
  void ContinueUnsent();
  char* buffer(unsigned number) const { return memory_ + number * options_.buffer_bytes; }
  void GiveBuffer(unsigned number);
  void GrowPool();
  bool KernelIsDue() const;
  bool HasWork() const;

  IoContext& context_;
  const RingOptions options_;
  io_uring ring_{};
  Descriptor event_;  // the kernel writes to it when something is complete and the ring sleeps
  uint64_t event_count_ = 0;
  std::deque<Slot> slots_;
  std::vector<Id> free_;
  // Taken out of the kernel's queue, and not dispatched from next_ on. Clients may run Serve().
  std::vector<Completion> completions_;
  size_t next_ = 0;
  size_t settled_ = 0;  // before it, nothing that is posted goes first
  // Staged sends.
  std::unique_ptr<char[]> arena_;
  size_t arena_used_ = 0;
  std::vector<Piece> pieces_;
  io_uring_sqe* last_send_ = nullptr;  // the request of the last piece
  struct Unsent {
    Id id;
    uint32_t serial;
  };
  std::vector<Unsent> unsent_;  // who has OnUnsent() to come
  // Buffers: the kernel takes them from pool_, in the order in which they were given.
  io_uring_buf_ring* pool_ = nullptr;
  char* memory_ = nullptr;
  unsigned buffers_ = 0;
  bool made_ = false;
  bool enabled_ = false;
  bool stopped_ = false;
  bool running_ = false;
  bool run_posted_ = false;
  bool awaiting_event_ = false;
};

}  // namespace idemd::server
