// One io_uring. Needs Linux 6.1: receives that stay, pools of buffers, and completions that wait until their thread asks.
#include "server/net/ring.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/check.h"

namespace idemd::server {
namespace {

constexpr unsigned short kBufferGroup = 0;

absl::Status Failure(absl::string_view call, int error) {
  std::string text = absl::StrCat(call, ": ", std::generic_category().message(error));
  if (error == EINVAL) absl::StrAppend(&text, " (it takes Linux 6.1 or later)");
  return absl::UnavailableError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Ring>> Ring::Make(IoContext& context, const RingOptions& options) {
  std::unique_ptr<Ring> ring(new Ring(context, options));
  absl::Status status = ring->SetUp();
  if (!status.ok()) return status;
  return ring;
}

Ring::Ring(IoContext& context, const RingOptions& options) : context_(context), options_(options), event_(context) {}

Ring::~Ring() {
  if (made_) io_uring_queue_exit(&ring_);
  if (pool_ != nullptr) munmap(pool_, options_.buffers_max * sizeof(io_uring_buf));
  if (memory_ != nullptr) munmap(memory_, options_.buffers_max * options_.buffer_bytes);
}

absl::Status Ring::SetUp() {
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_COOP_TASKRUN |
                 IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_R_DISABLED | IORING_SETUP_CQSIZE;
  params.cq_entries = options_.completions;
  if (const int error = io_uring_queue_init_params(options_.entries, &ring_, &params); error < 0)
    return Failure("io_uring_setup", -error);
  made_ = true;
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (event < 0) return Failure("eventfd", errno);
  ErrorCode error;
  event_.assign(event, error);
  if (error) {
    close(event);
    return Failure("epoll_ctl", error.value());
  }
  if (const int result = io_uring_register_eventfd(&ring_, event); result < 0)
    return Failure("io_uring_register", -result);
  arena_.reset(new char[kArenaBytes]);
  return options_.buffers_max == 0 ? absl::OkStatus() : SetUpBuffers();
}

absl::Status Ring::SetUpBuffers() {
  const auto map = [](size_t bytes) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  };
  pool_ = static_cast<io_uring_buf_ring*>(map(options_.buffers_max * sizeof(io_uring_buf)));
  memory_ = static_cast<char*>(map(options_.buffers_max * options_.buffer_bytes));
  if (pool_ == nullptr || memory_ == nullptr) return Failure("mmap", ENOMEM);
  io_uring_buf_reg pool{};
  pool.ring_addr = reinterpret_cast<uint64_t>(pool_);
  pool.ring_entries = options_.buffers_max;
  pool.bgid = kBufferGroup;
  if (const int error = io_uring_register_buf_ring(&ring_, &pool, 0); error < 0)
    return Failure("io_uring_register", -error);
  while (buffers_ < options_.buffers_first) GiveBuffer(buffers_++);
  return absl::OkStatus();
}

void Ring::Start() {
  // liburing 2.3 does not export its own word for this.
  const int enabled = io_uring_register(static_cast<unsigned>(ring_.ring_fd), IORING_REGISTER_ENABLE_RINGS, nullptr, 0);
  IDEMD_CHECK(enabled == 0, "io_uring: enabling");
  enabled_ = true;
  io_uring_register_ring_fd(&ring_);  // where it fails, calls are a little slower
  Run();
}

void Ring::Stop() {
  stopped_ = true;
  ErrorCode ignored;
  event_.close(ignored);
  io_uring_unregister_ring_fd(&ring_);  // it was this thread's
}

// --- Sockets

Ring::Id Ring::NewSlot(int fd) {
  if (free_.empty()) {
    free_.push_back(static_cast<Id>(slots_.size()));
    slots_.emplace_back();
  }
  const Id id = free_.back();
  free_.pop_back();
  const uint32_t serial = slots_[id].serial;
  slots_[id] = Slot{.fd = fd, .serial = serial + 1, .used = true};
  return id;
}

Ring::Id Ring::Add(RingClient* client, int fd) {
  const Id id = NewSlot(fd);
  slots_[id].client = client;
  return id;
}

Ring::Id Ring::Add(RingListener* listener, int fd) {
  const Id id = NewSlot(fd);
  slots_[id].listener = listener;
  return id;
}

void Ring::Remove(Id id) {
  Slot& slot = slots_[id];
  if (slot.taking && !slot.canceling) StageCancel(slot.client != nullptr ? Kind::kReceive : Kind::kAccept, id);
  if (slot.awaiting) StageCancel(Kind::kWritable, id);
  if (enabled_) Submit();
  slot.client = nullptr;
  slot.listener = nullptr;
  FreeIfOver(id);
}

// A slot is used again when no completion can name it any more.
void Ring::FreeIfOver(Id id) {
  Slot& slot = slots_[id];
  if (!slot.used || slot.client != nullptr || slot.listener != nullptr || slot.taking || slot.awaiting) return;
  slot.used = false;
  free_.push_back(id);
}

// --- Staging

io_uring_sqe* Ring::Request(Kind kind, uint32_t number) {
  io_uring_sqe* request = io_uring_get_sqe(&ring_);
  if (request == nullptr) {
    Submit();
    request = io_uring_get_sqe(&ring_);
  }
  std::memset(request, 0, sizeof(*request));
  io_uring_sqe_set_data64(request, Tag(kind, number));
  RunSoon();
  return request;
}

void Ring::Receive(Id id) {
  Slot& slot = slots_[id];
  slot.wanted = true;
  if (!slot.taking) StageReceive(id);
}

void Ring::StageReceive(Id id) {
  Slot& slot = slots_[id];
  io_uring_sqe* const request = Request(Kind::kReceive, id);
  request->opcode = IORING_OP_RECV;
  request->fd = slot.fd;
  request->ioprio = IORING_RECV_MULTISHOT;
  request->flags = IOSQE_BUFFER_SELECT;
  request->buf_group = kBufferGroup;
  slot.taking = true;
}

void Ring::Accept(Id id) {
  Slot& slot = slots_[id];
  if (slot.taking) return;
  io_uring_sqe* const request = Request(Kind::kAccept, id);
  request->opcode = IORING_OP_ACCEPT;
  request->fd = slot.fd;
  request->ioprio = IORING_ACCEPT_MULTISHOT;
  request->accept_flags = SOCK_NONBLOCK | SOCK_CLOEXEC;
  slot.taking = true;
}

void Ring::AwaitWritable(Id id) {
  Slot& slot = slots_[id];
  io_uring_sqe* const request = Request(Kind::kWritable, id);
  request->opcode = IORING_OP_POLL_ADD;
  request->fd = slot.fd;
  request->poll32_events = __io_uring_prep_poll_mask(POLLOUT);
  slot.awaiting = true;
}

void Ring::StageCancel(Kind kind, Id id) {
  io_uring_sqe* const request = Request(Kind::kCancel, id);
  request->opcode = IORING_OP_ASYNC_CANCEL;
  request->fd = -1;
  request->addr = Tag(kind, id);
  request->flags = IOSQE_CQE_SKIP_SUCCESS;
  if (kind == Kind::kReceive) slots_[id].canceling = true;
}

bool Ring::Send(Id id, absl::string_view bytes) {
  Slot& slot = slots_[id];
  const size_t n = bytes.size();
  if (slot.piece != kNoPiece) {
    // Behind its own last bytes, where there is room: one send takes both.
    if (slot.piece + 1 == pieces_.size() && arena_used_ + n <= kArenaBytes) {
      std::memcpy(arena_.get() + arena_used_, bytes.data(), n);
      arena_used_ += n;
      pieces_.back().bytes += n;
      last_send_->len += static_cast<uint32_t>(n);
      return true;
    }
    // Two sends of one socket in one submit: the second one would go out although the first had been cut short.
    Submit();
    return false;
  }
  if (n > kSendBytesMax) return false;
  if (pieces_.size() == kSendsPerSubmit || arena_used_ + n > kArenaBytes) Submit();
  io_uring_sqe* const request = Request(Kind::kSend, static_cast<uint32_t>(pieces_.size()));
  // Request() may have submitted: what it gave was for a piece of a new submit then.
  io_uring_sqe_set_data64(request, Tag(Kind::kSend, static_cast<uint32_t>(pieces_.size())));
  char* const place = arena_.get() + arena_used_;
  std::memcpy(place, bytes.data(), n);
  request->opcode = IORING_OP_SEND;
  request->fd = slot.fd;
  request->addr = reinterpret_cast<uint64_t>(place);
  request->len = static_cast<uint32_t>(n);
  // MSG_DONTWAIT: it is over when the submit returns. MSG_WAITALL: one that is cut short counts as failed, and is told of
  // although successes are not.
  request->msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL;
  request->flags = IOSQE_CQE_SKIP_SUCCESS;
  last_send_ = request;
  slot.piece = static_cast<uint32_t>(pieces_.size());
  pieces_.push_back({id, arena_used_, n});
  arena_used_ += n;
  return true;
}

// --- Submitting and harvesting

void Ring::Submit() {
  do {
    const int result = io_uring_submit_and_get_events(&ring_);
    // The kernel is short of memory, or wants its completions taken first.
    IDEMD_CHECK(result >= 0 || result == -EAGAIN || result == -EBUSY || result == -EINTR, "io_uring: submitting");
    Harvest();
  } while (io_uring_sq_ready(&ring_) != 0);
  for (const Piece& piece : pieces_) slots_[piece.id].piece = kNoPiece;
  pieces_.clear();
  arena_used_ = 0;
  if (HasWork()) RunSoon();
}

// Empties the kernel's queue, its overflow included: after a submit every send that failed is known.
void Ring::Harvest() {
  for (;;) {
    unsigned head = 0;
    unsigned n = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      ++n;
      if (cqe->user_data >> 32 == static_cast<uint32_t>(Kind::kSend))
        TakeFailedSend(static_cast<uint32_t>(cqe->user_data), cqe->res);
      else
        completions_.push_back({cqe->user_data, cqe->res, cqe->flags});
    }
    io_uring_cq_advance(&ring_, n);
    if (!io_uring_cq_has_overflow(&ring_)) return;
    io_uring_get_events(&ring_);
  }
}

void Ring::TakeFailedSend(uint32_t number, int result) {
  const Piece& piece = pieces_[number];
  const bool full = result >= 0 || result == -EAGAIN || result == -EINTR;
  const size_t sent = result > 0 ? static_cast<size_t>(result) : 0;
  const Slot& slot = slots_[piece.id];
  slot.client->KeepUnsent({arena_.get() + piece.offset + sent, piece.bytes - sent}, full ? 0 : -result);
  unsent_.push_back({piece.id, slot.serial});
}

void Ring::ContinueUnsent() {
  while (!unsent_.empty()) {
    const Unsent unsent = unsent_.back();
    unsent_.pop_back();
    const Slot& slot = slots_[unsent.id];
    if (slot.serial == unsent.serial && slot.client != nullptr) slot.client->OnUnsent();
  }
}

// --- Running

// A submit would do something.
bool Ring::KernelIsDue() const {
  return io_uring_sq_ready(&ring_) != 0 || io_uring_cq_ready(&ring_) != 0 ||
         (IO_URING_READ_ONCE(*ring_.sq.kflags) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

bool Ring::HasWork() const { return next_ != completions_.size() || !unsent_.empty() || KernelIsDue(); }

// What was staged by others than the ring's clients leaves when the handlers that are ready now have run.
void Ring::RunSoon() {
  if (running_ || run_posted_) return;
  run_posted_ = true;
  boost::asio::post(context_, [this] {
    run_posted_ = false;
    Run();
  });
}

void Ring::Run() {
  if (stopped_ || running_) return;
  running_ = true;
  io_uring_cq_eventfd_toggle(&ring_, false);  // what is complete from here on is found without being told
  const bool all = Serve(kCompletionsPerRun);
  running_ = false;
  if (stopped_) return;
  if (!all) settled_ = completions_.size();  // the next run comes behind what is posted now
  if (!all || !Sleep()) RunSoon();
}

// False: something has come meanwhile.
bool Ring::Sleep() {
  io_uring_cq_eventfd_toggle(&ring_, true);
  // The kernel sets its flag, then looks whether we want to be told; we do it the other way round.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (HasWork()) return false;
  if (!awaiting_event_) AwaitEvent();
  return true;
}

void Ring::AwaitEvent() {
  awaiting_event_ = true;
  event_.async_read_some(boost::asio::buffer(&event_count_, sizeof(event_count_)),
                         [this](const ErrorCode& error, size_t) {
                           awaiting_event_ = false;
                           if (!error) Run();
                         });
}

// False: there is more than `budget`, or something posted goes first.
bool Ring::Serve(int budget) {
  while (!stopped_) {
    if (KernelIsDue()) Submit();
    ContinueUnsent();
    if (!HasWork()) break;
    while (next_ < completions_.size() && !stopped_) {
      if (next_ >= settled_) {
        if (options_.posted != nullptr && options_.posted->load(std::memory_order_seq_cst) != 0) return false;
        settled_ = completions_.size();
      }
      if (budget-- == 0) {
        completions_.erase(completions_.begin(), completions_.begin() + static_cast<ptrdiff_t>(next_));
        settled_ -= next_;
        next_ = 0;
        return false;
      }
      const Completion completion = completions_[next_++];
      if (next_ == completions_.size()) {
        completions_.clear();
        next_ = settled_ = 0;
      }
      Dispatch(completion);
    }
  }
  return true;
}

void Ring::Dispatch(const Completion& completion) {
  const auto id = static_cast<Id>(completion.tag);
  switch (static_cast<Kind>(completion.tag >> 32)) {
    case Kind::kReceive:
      OnReceiveCompletion(id, completion);
      break;
    case Kind::kAccept: {
      Slot& slot = slots_[id];
      if ((completion.flags & IORING_CQE_F_MORE) == 0) slot.taking = false;
      if (slot.listener != nullptr)
        slot.listener->OnAccepted(completion.result);
      else if (completion.result >= 0)
        close(completion.result);
      break;
    }
    case Kind::kWritable: {
      Slot& slot = slots_[id];
      slot.awaiting = false;
      if (slot.client != nullptr) slot.client->OnWritable();
      break;
    }
    case Kind::kSend:
    case Kind::kCancel:
      return;
  }
  FreeIfOver(id);
}

void Ring::OnReceiveCompletion(Id id, const Completion& completion) {
  Slot& slot = slots_[id];
  const uint32_t serial = slot.serial;
  const int result = completion.result;
  if ((completion.flags & IORING_CQE_F_MORE) == 0) slot.taking = slot.canceling = false;
  const bool wanted = std::exchange(slot.wanted, false);
  if (result > 0 && slot.client != nullptr) {
    const unsigned number = completion.flags >> IORING_CQE_BUFFER_SHIFT;
    slot.client->OnReceived(buffer(number), static_cast<size_t>(result));
    // Bytes that nobody wants: the client is behind, and what it does not take is to stay in the socket.
    if (!wanted && slot.serial == serial && slot.client != nullptr && slot.taking && !slot.wanted && !slot.canceling)
      StageCancel(Kind::kReceive, id);
  }
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0) GiveBuffer(completion.flags >> IORING_CQE_BUFFER_SHIFT);
  if (result > 0 || slot.client == nullptr) return;
  if (result == -ENOBUFS || result == -ECANCELED) {
    if (result == -ENOBUFS) GrowPool();
    if (wanted) Receive(id);
    return;
  }
  slot.client->OnReceiveEnd(-result);
}

// --- Buffers

// By hand: the header's own words put the array elsewhere when C++ compiles some versions of them.
void Ring::GiveBuffer(unsigned number) {
  auto* const entries = reinterpret_cast<io_uring_buf*>(pool_);
  io_uring_buf& entry = entries[pool_->tail & (options_.buffers_max - 1)];
  entry.addr = reinterpret_cast<uint64_t>(buffer(number));
  entry.len = static_cast<uint32_t>(options_.buffer_bytes);
  entry.bid = static_cast<uint16_t>(number);
  io_uring_smp_store_release(&pool_->tail, static_cast<uint16_t>(pool_->tail + 1));
}

void Ring::GrowPool() {
  const unsigned more = std::min(2 * buffers_, options_.buffers_max);
  while (buffers_ < more) GiveBuffer(buffers_++);
}

}  // namespace idemd::server
