// One connection's state: plain data, owned by the connection's loop thread.
//
// What other threads may look at (CLIENT LIST) or do (CLIENT KILL) goes through the Peer and its ClientInfo.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "storage/effect.h"
#include "storage/events.h"
#include "storage/sync/mutex.h"
#include "storage/wait/waiter.h"
#include "storage/watch.h"

namespace idemd::server {

namespace acl {
class User;  // server/acl/user.h
}
struct CommandSpec;
struct CommandEntry;
struct Subscriptions;  // server/pubsub/subscription.h
struct Tracker;        // server/pubsub/tracking.h

// What CLIENT LIST and CLIENT KILL see of a connection. Written by its own thread: numbers as relaxed atomics, texts
// under the mutex.
struct ClientInfo {
  uint64_t id = 0;           // set before it is registered
  std::string address;       // "127.0.0.1:1234", "/path/of.sock:0"; set before it is registered
  std::string local_address;
  int fd = -1;
  int64_t created_ms = 0;    // steady milliseconds
  bool unix_socket = false;

  std::atomic<int64_t> last_active_ms{0};  // steady milliseconds
  std::atomic<uint32_t> db{0};
  std::atomic<int> resp{2};
  std::atomic<uint64_t> query_bytes{0};    // qbuf
  std::atomic<uint64_t> query_free{0};     // qbuf-free
  std::atomic<uint64_t> output_bytes{0};   // obl
  std::atomic<uint64_t> commands{0};
  std::atomic<const CommandSpec*> last_command{nullptr};
  std::atomic<int> queued{-1};             // commands queued by MULTI, -1 outside
  std::atomic<uint64_t> queued_bytes{0};   // multi-mem
  std::atomic<bool> blocked{false};
  std::atomic<bool> monitor{false};
  std::atomic<bool> no_evict{false};
  std::atomic<bool> closing{false};
  // Subscriptions.
  std::atomic<uint32_t> channels{0};
  std::atomic<uint32_t> patterns{0};
  std::atomic<uint32_t> shard_channels{0};
  // CLIENT TRACKING.
  std::atomic<bool> tracking{false};
  std::atomic<bool> tracking_broadcast{false};
  std::atomic<bool> tracking_broken{false};  // the client that messages are redirected to is gone; written by any thread
  std::atomic<int64_t> redirect{-1};         // its id; 0: nowhere else, -1: no tracking

  // SYNC, PSYNC, REPLCONF.
  std::atomic<bool> replica{false};
  std::atomic<int> replica_port{0};
  std::atomic<uint64_t> replica_offset{0};      // what it says it has
  std::atomic<int64_t> replica_heard_ms{0};     // when it said so, steady milliseconds

  mutable storage::Mutex mutex;
  std::string name ABSL_GUARDED_BY(mutex);
  std::string user ABSL_GUARDED_BY(mutex) = "default";
  std::string lib_name ABSL_GUARDED_BY(mutex);     // CLIENT SETINFO
  std::string lib_version ABSL_GUARDED_BY(mutex);
  std::shared_ptr<storage::Waiter> waiter ABSL_GUARDED_BY(mutex);  // what CLIENT UNBLOCK ends

  bool subscribed() const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    return channels.load(kRelaxed) + patterns.load(kRelaxed) + shard_channels.load(kRelaxed) != 0;
  }
  // What the connection holds: of requests, queued commands and replies.
  uint64_t buffer_bytes() const {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    return query_bytes.load(kRelaxed) + query_free.load(kRelaxed) + queued_bytes.load(kRelaxed) + output_bytes.load(kRelaxed);
  }
};

// The connection as the rest of the server sees it: implemented in server/net.
class Peer : public std::enable_shared_from_this<Peer> {
 public:
  virtual ~Peer() = default;
  ClientInfo& info() { return info_; }
  const ClientInfo& info() const { return info_; }

  // Any thread. Queues bytes behind what was written before (MONITOR lines, pushes); never blocks. They leave when the log
  // is as far as `need`. Not sent if `while_true` is false by then: it changes on the connection's thread.
  virtual void Send(std::shared_ptr<const std::string> bytes, storage::Lsn need = storage::kNoLsn,
                    std::shared_ptr<const std::atomic<bool>> while_true = nullptr) = 0;
  // Any thread. Ends the connection soon; what is queued may be lost.
  virtual void Kill() = 0;
  // Any thread: runs `done` on the connection's thread (if it still lives), with its session blocked by `Block()`:
  // `done` writes the reply into `out`, and the connection goes on with the requests that queued up meanwhile.
  virtual void Resume(std::function<void(struct Session& session, std::string& out)> done) = 0;

 private:
  ClientInfo info_;
};

// What MULTI has queued.
struct Transaction {
  struct Queued {
    const CommandEntry* entry;
    std::vector<std::string> words;
  };
  std::vector<Queued> commands;
  size_t bytes = 0;                  // of all that is queued
  uint32_t flags_any = 0;            // flags that one of them has
  uint32_t flags_all = ~uint32_t{0};  // flags that all of them have
  bool aborted = false;  // a command was refused at queueing: EXEC will not run
};

// What WATCH looks after; all share one mark.
struct WatchedSet {
  std::shared_ptr<storage::Watch> watch = std::make_shared<storage::Watch>();
  absl::flat_hash_set<std::pair<storage::DbIndex, std::string>> keys;
};

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkipThis };

struct Session : storage::EventOrigin {
  std::shared_ptr<Peer> peer;     // never null in a server
  // How long the connection's turn may be, and (steady; 0: the dispatcher has not begun) when it is over: no further request of it is
  // begun then.
  int64_t turn_us = int64_t{1} << 60;
  int64_t turn_end_us = 0;
  int resp = 2;
  storage::DbIndex db = 0;
  bool authenticated = true;
  std::string user = "default";
  // What the user may do, as of this version of all users (acl::Users); 0: not looked up yet. Null: the user is gone.
  std::shared_ptr<const acl::User> rights;
  uint64_t rights_version = 0;
  bool restricted = false;  // calls have to be checked against the rights
  bool trusted = false;     // replays the log: may do everything, whatever users there are
  std::string name;
  ReplyMode reply_mode = ReplyMode::kOn;
  bool close_after_reply = false;
  bool monitor = false;
  bool no_touch = false;
  bool in_script = false;  // runs the commands of a script

  // How many more IDEM.TOKEN stand in what was read, at the most; how many of them to make at once goes by it.
  uint32_t tokens_ahead = 0;

  // What was revealed to this client so far is durable once the log is durable up to here; a reply waits for that.
  storage::Lsn need = storage::kNoLsn;
  // What MONITOR is to show of the commands that ran in this unit, once it has been committed.
  std::vector<std::shared_ptr<const std::string>> shown;

  std::shared_ptr<Subscriptions> subscriptions;  // null before the first
  std::shared_ptr<Tracker> tracker;              // null before the first CLIENT TRACKING ON
  // While a script runs: the keys it declared, which count as read when it reads any key at all.
  const absl::Span<const absl::string_view>* script_keys = nullptr;
  // Messages that the command under way has sent to its own connection: they leave with its reply.
  std::string pushes;
  // The same for what it must not keep in its cache any longer: behind the reply.
  std::string invalidations;
  // Parts of the reply that CLIENT REPLY does not silence, while it silences.
  std::vector<std::pair<size_t, size_t>> unsilenced;

  std::unique_ptr<Transaction> transaction;  // MULTI: what is queued; null outside
  std::unique_ptr<WatchedSet> watched;       // WATCH; null when nothing is watched

  // Set while a command of this session waits (IDEM.RESERVE ... WAIT): no further request is executed until it resumes.
  std::shared_ptr<storage::Waiter> waiter;
  // When that wait is over by itself (Dispatcher::WaitIsOver); the clock's epoch: never, or somebody else sees to it.
  std::chrono::steady_clock::time_point give_up_at;

  ClientInfo& info() { return peer->info(); }
};

}  // namespace idemd::server
