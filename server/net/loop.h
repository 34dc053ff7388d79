// One loop thread: its connections, its dispatcher, and the memory that one turn of a connection
// uses and leaves behind.
//
// Threads   Everything but Post() and the counters belongs to the loop's own thread, from Start()
// until Join() has
//           returned.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/post.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "protocol/resp/parser.h"
#include "server/commands/dispatch.h"
#include "server/net/asio.h"
#include "server/net/ring.h"
#include "server/session.h"
#include "server/steady_time.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class Connection;

class Loop : public std::enable_shared_from_this<Loop> {
 public:
  explicit Loop(Services& services);
  ~Loop();

  // Before Start(): plain sockets are to be served by a ring.
  absl::Status UseRing();
  void DropRing() { ring_.reset(); }
  void Start();
  // Any thread. Runs `work` on the loop's thread, unless the loop has ended.
  template <class Work>
  void Post(Work work) {
    posted_.fetch_add(1, std::memory_order_seq_cst);
    boost::asio::post(context_, [this, work = std::move(work)]() mutable {
      posted_.fetch_sub(1, std::memory_order_seq_cst);
      work();
    });
  }
  // What other threads have for a connection of this loop: bytes to send, or a way to go on.
  struct Errand {
    std::shared_ptr<Connection> to;
    std::shared_ptr<const std::string> bytes;  // null: `resume`
    storage::Lsn need = storage::kNoLsn;
    std::shared_ptr<const std::atomic<bool>> while_true;
    std::function<void(Session& session, std::string& out)> resume;
  };
  // Any thread. Errands are run in order; those that came while the loop was busy, in one go.
  void Give(Errand errand);
  // Any thread: finishes every connection, closing by force what is left at `deadline`, and calls
  // `done` at the end.
  void Stop(std::chrono::steady_clock::time_point deadline, std::function<void()> done);
  void Join();

  // --- for connections
  IoContext& context() { return context_; }
  Ring* ring() { return ring_.get(); }  // null: it has none
  Dispatcher& dispatcher() { return dispatcher_; }
  void Add(std::shared_ptr<Connection> connection);
  void Remove(Connection& connection);
  // A connection has replies that must not leave before the log is as far as Need() said. At the end of this round of
  // events the log is asked, once for all connections.
  void Hold(std::shared_ptr<Connection> connection) { holding_.push_back(std::move(connection)); }
  void Need(storage::Lsn need);
  // Any thread: the log has got further.
  void OnReleased();
  void ReleaseHeld();
  // Seconds since the start, roughly; cheaper than a clock.
  uint32_t ticks() const { return ticks_; }
  bool stopping() const { return stopping_; }

  // --- in the middle of a turn
  // Runs what is ready of the thread's loop, but nothing of the connection whose turn it is: see Connection::IsInTurn().
  // Only on the outermost level.
  static void ServeMeanwhile();
  bool serving_meanwhile() const { return serving_meanwhile_; }
  // Runs when the turn that is under way is over.
  void AfterTurn(std::function<void()> work) { after_turn_.push_back(std::move(work)); }
  void RunAfterTurn();

  // The connection has more to execute: its next turn comes behind those of others, and behind what has come for still others.
  void PostTurn(std::shared_ptr<Connection> connection);
  // How long one turn may be, so that all connections get theirs within about half a second: the last request of a turn may begin
  // before the time is over, and reading and writing take some, too.
  int64_t turn_us() const { return std::clamp<int64_t>(250'000 / static_cast<int64_t>(connections_.size() + 1), 20, 2000); }

  // Connections have come to hold `bytes` more: whether that is enough since the last time it was to look at all of them.
  bool NoteGrowth(uint64_t bytes, uint64_t limit_bytes);

  // Gives back the memory of a request with very many words. Called between turns.
  void TrimBatch() {
    if (batch.words.capacity() > kBatchWordsKept) batch = protocol::Batch();
  }

  // One turn's requests and replies. Both are empty between turns.
  protocol::Batch batch;
  std::string out;
  // For TLS, and only within one call: what came from a socket, and what is on its way into one.
  static constexpr size_t kSealedInputBytes = 64 * 1024;
  char* sealed_input() {
    if (sealed_input_ == nullptr) sealed_input_.reset(new char[kSealedInputBytes]);
    return sealed_input_.get();
  }
  std::string sealed;

 private:
  static constexpr size_t kBatchWordsKept = 64 * 1024;

  void Run();
  void ScheduleTick();
  void Tick();
  void CheckStopped();
  void RunErrands();
  void RunTurns();
  void SendTaken();

  // One thread runs it: Asio then skips wake-ups of its own.
  IoContext context_{1};
  // What Post() has taken and not begun. Writer: any; reader: the ring, which lets it go first.
  std::atomic<uint32_t> posted_{0};
  std::unique_ptr<Ring> ring_;
  std::optional<WorkGuard> work_;
  Timer tick_;
  Timer deadline_;
  Dispatcher dispatcher_;
  std::vector<std::shared_ptr<Connection>> connections_;  // each knows its place
  std::vector<std::shared_ptr<Connection>> holding_;
  std::vector<std::shared_ptr<Connection>> releasing_;  // ReleaseHeld()'s own; kept for its capacity
  storage::Lsn need_ = storage::kNoLsn;                 // of all that is held
  bool release_posted_ = false;
  std::atomic<bool> waiting_{false};      // writer: the loop; readers: whoever calls OnReleased()
  std::atomic<bool> told_{false};         // OnReleased() has posted
  storage::Mutex errands_mutex_;
  std::vector<Errand> errands_ ABSL_GUARDED_BY(errands_mutex_);
  std::vector<Errand> running_;                     // those that RunErrands() is at
  size_t next_errand_ = 0;                          // of running_
  std::vector<std::shared_ptr<Connection>> taken_;  // those that took bytes and have not sent them yet
  std::deque<std::shared_ptr<Connection>> turns_;   // due, in order
  bool turns_posted_ = false;
  uint32_t ticks_ = 0;
  uint64_t grown_bytes_ = 0;
  std::unique_ptr<char[]> sealed_input_;  // made for the first TLS connection
  bool stopping_ = false;
  bool serving_meanwhile_ = false;
  std::vector<std::function<void()>> after_turn_;
  std::function<void()> done_;
  std::thread thread_;
};

}  // namespace idemd::server
