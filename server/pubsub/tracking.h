// CLIENT TRACKING: clients that keep what they read are told when it may have changed.
//
// In the plain mode the server remembers which client read which key, until the key changes: then each of them gets one
// message, and must read again to be told again. In the broadcasting mode (BCAST) it remembers nothing but prefixes.
// Messages are told with the unit that changed the key: when the log is as far as that unit needs.
//
// A client that tracks reads under the locks of its keys, and what it read is remembered when its unit commits, in order
// with the changes: so no change falls between the read and the remembering.
//
// Threads     Remember() and OnEvents(): any, under locks of storage. The rest: any.
// Invariants  [T1] Whoever was answered with a key's value gets a message after the key's next change.
//             [T2] The table holds no more than tracking-table-max-keys: others are told to be forgotten.
// Lock order  the broadcast mutex or a part of the table; nothing is locked under either but what Peer::Send locks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/session.h"
#include "storage/events.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

// One client that tracks, or did: it stays the same for as long as the connection lives. Written by the connection's
// thread; read by whoever changes a key.
struct Tracker {
  std::weak_ptr<Peer> peer;
  std::atomic<bool> on{false};
  std::atomic<bool> broadcast{false};
  std::atomic<bool> no_loop{false};
  // The connection's thread only.
  bool opt_in = false;
  bool opt_out = false;
  bool caching = false;  // CLIENT CACHING, for the next command
  std::set<std::string> prefixes;

  // Whether what a command reads is to be remembered.
  bool RemembersReads() const {
    if (!on.load(std::memory_order_relaxed) || broadcast.load(std::memory_order_relaxed)) return false;
    return opt_in ? caching : !(opt_out && caching);
  }

  // Where messages go instead; id 0: nowhere else.
  void Redirect(uint64_t id, const std::shared_ptr<Peer>& to) {
    storage::MutexLock lock(mutex);
    redirect_id_ = id;
    redirect_to_ = to;
  }
  uint64_t redirect_id() const {
    storage::MutexLock lock(mutex);
    return redirect_id_;
  }
  std::shared_ptr<Peer> redirect_to() const {
    storage::MutexLock lock(mutex);
    return redirect_to_.lock();
  }

 private:
  mutable storage::Mutex mutex;
  uint64_t redirect_id_ ABSL_GUARDED_BY(mutex) = 0;
  std::weak_ptr<Peer> redirect_to_ ABSL_GUARDED_BY(mutex);
};

class Tracking final {
 public:
  struct Options {
    bool broadcast = false;
    bool opt_in = false;
    bool opt_out = false;
    bool no_loop = false;
    uint64_t redirect_id = 0;
    std::shared_ptr<Peer> redirect_to = {};
    std::vector<std::string> prefixes = {};  // of a broadcasting client; none: all keys
  };
  // The connection's thread. A client that tracks already may get more prefixes and other options.
  void Enable(Session& session, const Options& options);
  void Disable(Session& session);

  // `hook` runs when clients() has changed, before the client is told; maybe on several threads at a time.
  void OnClientsChange(std::function<void()> hook) { on_clients_change_ = std::move(hook); }

  // A client has read the key.
  void Remember(absl::string_view key, const std::shared_ptr<Tracker>& tracker);
  // What a unit did, of all its events those of the classes kChanged and kFlushed.
  void OnEvents(absl::Span<const storage::Event> events, storage::Lsn need, Session* from);

  // 0: no limit.
  void SetMaxKeys(uint64_t max_keys);

  // --- INFO
  size_t clients() const { return clients_.load(std::memory_order_relaxed); }
  size_t keys() const { return keys_.load(std::memory_order_relaxed); }
  size_t items() const { return items_.load(std::memory_order_relaxed); }
  size_t prefixes() const;

 private:
  using Trackers = std::vector<std::shared_ptr<Tracker>>;
  struct Part {
    storage::Mutex mutex;
    absl::flat_hash_map<std::string, Trackers> readers ABSL_GUARDED_BY(mutex);
  };
  static constexpr size_t kParts = 64;
  class Invalidation;

  Part& PartOf(absl::string_view key);
  void Changed(absl::string_view key, storage::Lsn need, Session* from);
  void Flushed(storage::Lsn need, Session* from);
  void Broadcast(absl::Span<const storage::Event> events, storage::Lsn need, Session* from);
  void KeepLimit();
  void ForgetThoseOff();
  void ClientsChanged();

  std::array<Part, kParts> parts_;
  std::atomic<size_t> keys_{0};
  std::atomic<size_t> items_{0};
  std::atomic<uint64_t> max_keys_{0};
  std::atomic<size_t> next_evicted_{0};  // the part that gives up a key next
  std::atomic<size_t> clients_{0};
  std::atomic<size_t> broadcasting_{0};  // prefixes; zero lets changes skip the mutex
  mutable storage::Mutex mutex_;
  std::map<std::string, std::set<std::shared_ptr<Tracker>>> by_prefix_ ABSL_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Tracker>> all_ ABSL_GUARDED_BY(mutex_);
  std::function<void()> on_clients_change_;
};

}  // namespace idemd::server
