// One loop thread.
#include "server/net/loop.h"

#include <algorithm>
#include <iterator>

#include "server/net/connection.h"

namespace idemd::server {
namespace {

thread_local Loop* loop_of_thread = nullptr;

}  // namespace

Loop::Loop(Services& services)
    : work_(boost::asio::make_work_guard(context_)),
      tick_(context_),
      deadline_(context_),
      dispatcher_(services) {}

Loop::~Loop() { Join(); }

absl::Status Loop::UseRing() {
  absl::StatusOr<std::unique_ptr<Ring>> ring = Ring::Make(context_, {.posted = &posted_});
  if (ring.ok()) ring_ = *std::move(ring);
  return ring.status();
}

void Loop::Start() {
  thread_ = std::thread([this] { Run(); });
}

void Loop::Run() {
  loop_of_thread = this;
  ScheduleTick();
  if (ring_ != nullptr) ring_->Start();
  context_.run();
  // Work that was posted while the loop ended holds connections, which hold the loop.
  context_.restart();
  context_.poll();
}

void Loop::Join() {
  if (!thread_.joinable()) return;
  thread_.join();
  context_.restart();
  context_.poll();
  // They hold the loop.
  holding_.clear();
  turns_.clear();
  storage::MutexLock lock(errands_mutex_);
  errands_.clear();
}

void Loop::Add(std::shared_ptr<Connection> connection) {
  connection->set_place(connections_.size());
  connections_.push_back(std::move(connection));
}

void Loop::Remove(Connection& connection) {
  const size_t place = connection.place();
  connections_[place].swap(connections_.back());
  connections_[place]->set_place(place);
  connections_.pop_back();
  CheckStopped();
}

bool Loop::NoteGrowth(uint64_t bytes, uint64_t limit_bytes) {
  constexpr uint64_t kStepBytes = 16 * 1024;
  const auto loops = static_cast<uint64_t>(dispatcher_.services().settings.io_threads.load(std::memory_order_relaxed));
  grown_bytes_ += bytes;
  if (grown_bytes_ < std::max(kStepBytes, limit_bytes / 16 / std::max<uint64_t>(loops, 1))) return false;
  grown_bytes_ = 0;
  return true;
}

void Loop::PostTurn(std::shared_ptr<Connection> connection) {
  turns_.push_back(std::move(connection));
  if (std::exchange(turns_posted_, true)) return;
  Post([this] { RunTurns(); });
}

// A few at a time: in between the io_context looks for what has come, and finds so many at a time itself. Were all that is due run at
// once, whoever has just begun to ask would wait for as many rounds as there are hundreds of others.
void Loop::RunTurns() {
  constexpr int kTurnsAtOnce = 8;
  turns_posted_ = false;
  for (int i = 0; i < kTurnsAtOnce && !turns_.empty(); ++i) {
    const std::shared_ptr<Connection> connection = std::move(turns_.front());
    turns_.pop_front();
    // First, so that they go on in the middle of a long turn, too.
    if (!turns_.empty() && !std::exchange(turns_posted_, true)) Post([this] { RunTurns(); });
    connection->TakePostedTurn();
  }
}

void Loop::Need(storage::Lsn need) {
  need_ = std::max(need_, need);
  if (release_posted_) return;
  release_posted_ = true;
  // Before the log is asked: it may answer on another thread, and must find us waiting.
  waiting_.store(true, std::memory_order_seq_cst);
  Post([this] {
    release_posted_ = false;
    dispatcher_.Release(need_);
    ReleaseHeld();
  });
}

void Loop::OnReleased() {
  if (!waiting_.load(std::memory_order_seq_cst) || told_.exchange(true, std::memory_order_acq_rel)) return;
  Post([this] {
    told_.store(false, std::memory_order_release);
    ReleaseHeld();
  });
}

void Loop::ReleaseHeld() {
  if (!releasing_.empty()) return AfterTurn([this] { ReleaseHeld(); });  // the turn under way came from here
  const storage::Lsn released = dispatcher_.released();
  releasing_.swap(holding_);
  // A connection that goes on may hold new replies, and then stands in holding_ again.
  for (std::shared_ptr<Connection>& connection : releasing_)
    if (!connection->ReleaseHeld(released)) holding_.push_back(std::move(connection));
  releasing_.clear();
  if (!holding_.empty()) return;
  waiting_.store(release_posted_, std::memory_order_seq_cst);
}

void Loop::Give(Errand errand) {
  {
    storage::MutexLock lock(errands_mutex_);
    errands_.push_back(std::move(errand));
    if (errands_.size() > 1) return;  // whoever came first has posted
  }
  Post([this] { RunErrands(); });
}

// What several messages leave for one connection is sent together, but before the connection does anything else. While
// an errand is run this may be called again (ServeMeanwhile): then the errands behind that one come first.
void Loop::RunErrands() {
  {
    storage::MutexLock lock(errands_mutex_);
    running_.insert(running_.end(), std::make_move_iterator(errands_.begin()), std::make_move_iterator(errands_.end()));
    errands_.clear();
  }
  while (next_errand_ < running_.size()) {
    const Errand errand = std::move(running_[next_errand_++]);
    if (errand.bytes != nullptr) {
      if (errand.to->Take(errand.bytes, errand.need, errand.while_true)) taken_.push_back(errand.to);
    } else {
      SendTaken();
      errand.to->Continue(errand.resume);
    }
  }
  SendTaken();
  running_.clear();
  next_errand_ = 0;
}

void Loop::SendTaken() {
  for (const std::shared_ptr<Connection>& connection : taken_) connection->SendTaken();
  taken_.clear();
}

// The turn's requests and replies are put aside: its own are views into them.
void Loop::ServeMeanwhile() {
  Loop* const loop = loop_of_thread;
  if (loop == nullptr || loop->serving_meanwhile_) return;
  loop->serving_meanwhile_ = true;
  protocol::Batch batch_of_turn = std::move(loop->batch);
  std::string out_of_turn = std::move(loop->out);
  loop->batch.clear();
  loop->out.clear();
  {
    const Meanwhile meanwhile;
    loop->context_.poll();
    if (loop->ring_ != nullptr) loop->ring_->ServeMeanwhile();
  }
  loop->batch = std::move(batch_of_turn);
  loop->out = std::move(out_of_turn);
  loop->serving_meanwhile_ = false;
}

void Loop::RunAfterTurn() {
  for (const std::function<void()>& work : std::exchange(after_turn_, {})) work();
}

void Loop::ScheduleTick() {
  tick_.expires_after(std::chrono::seconds(1));
  tick_.async_wait([this](const ErrorCode& error) {
    if (error) return;
    Tick();
    if (work_.has_value()) ScheduleTick();  // the last connection may have ended in this tick
  });
}

void Loop::Tick() {
  ++ticks_;
  const int64_t now_ms = SteadyMs();
  // From the back: a connection that closes is replaced by one that was already looked at.
  for (size_t i = connections_.size(); i-- > 0;) {
    const std::shared_ptr<Connection> connection = connections_[i];
    connection->Tick(now_ms);
  }
}

void Loop::Stop(std::chrono::steady_clock::time_point deadline, std::function<void()> done) {
  Post([this, deadline, done = std::move(done)]() mutable {
    stopping_ = true;
    done_ = std::move(done);
    // Set before the first connection ends: the last one that does cancels it.
    deadline_.expires_at(deadline);
    deadline_.async_wait([this](const ErrorCode& error) {
      if (error) return;
      const std::vector<std::shared_ptr<Connection>> left = connections_;
      for (const auto& connection : left) connection->Abort();
    });
    const std::vector<std::shared_ptr<Connection>> all = connections_;
    for (const auto& connection : all) connection->Finish();
    CheckStopped();
  });
}

void Loop::CheckStopped() {
  if (!stopping_ || !connections_.empty() || !work_.has_value()) return;
  tick_.cancel();
  deadline_.cancel();
  work_.reset();
  if (ring_ != nullptr) ring_->Stop();
  if (done_) done_();
  done_ = nullptr;
}

}  // namespace idemd::server
