// Who read what, and whom to tell.
#include "server/pubsub/tracking.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "protocol/resp/writer.h"
#include "storage/emptied.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kChannel = "__redis__:invalidate";

using storage::Event;
using storage::EventClass;

}  // namespace

// Some keys that are not what they were, or all keys: the message about them, made once for each form that is needed.
class Tracking::Invalidation {
 public:
  // The views outlive the object. No keys: all.
  explicit Invalidation(absl::Span<const absl::string_view> keys, bool broadcast = false)
      : keys_(keys), broadcast_(broadcast) {}

  // Sends it to the client, or to the one it redirects to.
  void SendTo(Tracker& tracker, storage::Lsn need, Session* from) {
    std::shared_ptr<Peer> peer = tracker.peer.lock();
    if (peer == nullptr) return;
    const uint64_t redirect_id = tracker.redirect_id();
    if (redirect_id == 0) {
      if (Resp(*peer) > 2) Leave(*peer, Push(), need, from, false);
      return;
    }
    const std::shared_ptr<Peer> to = tracker.redirect_to();
    if (to == nullptr || to->info().closing.load(std::memory_order_relaxed)) {
      peer->info().tracking_broken.store(true, std::memory_order_relaxed);
      if (Resp(*peer) > 2) Leave(*peer, Broken(redirect_id), need, from, false);
    } else if (Resp(*to) > 2) {
      Leave(*to, Push(), need, from, true);
    } else if (to->info().subscribed()) {
      Leave(*to, Message(), need, from, true);
    }
  }

 private:
  static int Resp(const Peer& peer) { return peer.info().resp.load(std::memory_order_relaxed); }

  // What goes to the connection that is being served now comes behind its reply; before it, as in Redis, what it gets for
  // another client that reads.
  void Leave(Peer& peer, std::shared_ptr<const std::string> bytes, storage::Lsn need, Session* from, bool redirected) {
    if (from == nullptr || from->peer.get() != &peer) return peer.Send(std::move(bytes), need);
    (redirected && !broadcast_ ? from->pushes : from->invalidations) += *bytes;
  }

  void WriteKeys(protocol::Writer& writer) const {
    if (keys_.empty()) return writer.Null();
    writer.Array(keys_.size());
    for (const absl::string_view key : keys_) writer.Bulk(key);
  }
  const std::shared_ptr<const std::string>& Push() {
    if (push_ == nullptr) {
      auto bytes = std::make_shared<std::string>();
      protocol::Writer writer(*bytes, 3);
      writer.Push(2);
      writer.Bulk("invalidate");
      WriteKeys(writer);
      push_ = std::move(bytes);
    }
    return push_;
  }
  const std::shared_ptr<const std::string>& Message() {
    if (message_ == nullptr) {
      auto bytes = std::make_shared<std::string>();
      protocol::Writer writer(*bytes, 2);
      writer.Push(3);
      writer.Bulk("message");
      writer.Bulk(kChannel);
      WriteKeys(writer);
      message_ = std::move(bytes);
    }
    return message_;
  }
  static std::shared_ptr<const std::string> Broken(uint64_t id) {
    auto bytes = std::make_shared<std::string>();
    protocol::Writer writer(*bytes, 3);
    writer.Push(2);
    writer.Bulk("tracking-redir-broken");
    writer.Integer(static_cast<int64_t>(id));
    return bytes;
  }

  const absl::Span<const absl::string_view> keys_;
  const bool broadcast_;
  std::shared_ptr<const std::string> push_;     // RESP3
  std::shared_ptr<const std::string> message_;  // RESP2: as though from a channel
};

// --- who tracks

void Tracking::Enable(Session& session, const Options& options) {
  if (session.tracker == nullptr) {
    session.tracker = std::make_shared<Tracker>();
    session.tracker->peer = session.peer;
  }
  const std::shared_ptr<Tracker>& tracker = session.tracker;
  constexpr auto kRelaxed = std::memory_order_relaxed;
  {
    storage::MutexLock lock(mutex_);
    all_.insert(tracker);
    if (options.broadcast) {
      std::vector<std::string> prefixes = options.prefixes;
      if (prefixes.empty()) prefixes.emplace_back();
      for (const std::string& prefix : prefixes) {
        by_prefix_[prefix].insert(tracker);
        tracker->prefixes.insert(prefix);
      }
      broadcasting_.store(by_prefix_.size(), std::memory_order_release);
    }
  }
  tracker->Redirect(options.redirect_id, options.redirect_to);
  ClientInfo& info = session.info();
  info.tracking.store(true, kRelaxed);
  info.tracking_broadcast.store(options.broadcast, kRelaxed);
  info.tracking_broken.store(false, kRelaxed);
  info.redirect.store(static_cast<int64_t>(options.redirect_id), kRelaxed);
  tracker->broadcast.store(options.broadcast, kRelaxed);
  tracker->no_loop.store(options.no_loop, kRelaxed);
  tracker->opt_in = options.opt_in;
  tracker->opt_out = options.opt_out;
  if (tracker->on.exchange(true)) return;
  clients_.fetch_add(1);
  ClientsChanged();
}

void Tracking::Disable(Session& session) {
  const std::shared_ptr<Tracker>& tracker = session.tracker;
  if (tracker == nullptr || !tracker->on.exchange(false)) return;
  {
    storage::MutexLock lock(mutex_);
    all_.erase(tracker);
    for (const std::string& prefix : tracker->prefixes) {
      const auto it = by_prefix_.find(prefix);
      it->second.erase(tracker);
      if (it->second.empty()) by_prefix_.erase(it);
    }
    broadcasting_.store(by_prefix_.size(), std::memory_order_release);
  }
  tracker->prefixes.clear();
  tracker->broadcast.store(false, std::memory_order_relaxed);
  tracker->no_loop.store(false, std::memory_order_relaxed);
  ClientInfo& info = session.info();
  info.tracking.store(false, std::memory_order_relaxed);
  info.tracking_broadcast.store(false, std::memory_order_relaxed);
  info.tracking_broken.store(false, std::memory_order_relaxed);
  info.redirect.store(-1, std::memory_order_relaxed);
  tracker->opt_in = tracker->opt_out = tracker->caching = false;
  // From now on nobody hears of changes, nor that all keys are gone: what is remembered would stay for ever.
  if (clients_.fetch_sub(1) == 1) ForgetThoseOff();
  ClientsChanged();
}

// Only what clients that do not track have read: another may begin to in this very moment.
void Tracking::ForgetThoseOff() {
  for (Part& part : parts_) {
    storage::MutexLock lock(part.mutex);
    for (auto it = part.readers.begin(); it != part.readers.end();) {
      const size_t gone = std::erase_if(it->second, [](const std::shared_ptr<Tracker>& tracker) {
        return !tracker->on.load(std::memory_order_relaxed);
      });
      items_.fetch_sub(gone, std::memory_order_relaxed);
      const auto here = it++;
      if (!here->second.empty()) continue;
      part.readers.erase(here);
      keys_.fetch_sub(1, std::memory_order_relaxed);
    }
    storage::FreeIfEmptied(part.readers);
  }
}

void Tracking::ClientsChanged() {
  if (on_clients_change_ != nullptr) on_clients_change_();
}

size_t Tracking::prefixes() const {
  storage::MutexLock lock(mutex_);
  return by_prefix_.size();
}

// --- the table

Tracking::Part& Tracking::PartOf(absl::string_view key) { return parts_[absl::HashOf(key) >> 7 & (kParts - 1)]; }

void Tracking::Remember(absl::string_view key, const std::shared_ptr<Tracker>& tracker) {
  Part& part = PartOf(key);
  {
    storage::MutexLock lock(part.mutex);
    const auto [it, is_new] = part.readers.try_emplace(std::string(key));
    if (is_new) keys_.fetch_add(1, std::memory_order_relaxed);
    if (std::find(it->second.begin(), it->second.end(), tracker) != it->second.end()) return;
    it->second.push_back(tracker);
    items_.fetch_add(1, std::memory_order_relaxed);
  }
  KeepLimit();
}

void Tracking::Changed(absl::string_view key, storage::Lsn need, Session* from) {
  Trackers readers;
  if (keys() == 0) return;
  {
    Part& part = PartOf(key);
    storage::MutexLock lock(part.mutex);
    const auto it = part.readers.find(key);
    if (it == part.readers.end()) return;
    readers = std::move(it->second);
    part.readers.erase(it);
    storage::FreeIfEmptied(part.readers);
    keys_.fetch_sub(1, std::memory_order_relaxed);
    items_.fetch_sub(readers.size(), std::memory_order_relaxed);
  }
  Invalidation invalidation({&key, 1});
  constexpr auto kRelaxed = std::memory_order_relaxed;
  for (const std::shared_ptr<Tracker>& tracker : readers) {
    // Read before it went over to broadcasting, or stopped.
    if (!tracker->on.load(kRelaxed) || tracker->broadcast.load(kRelaxed)) continue;
    if (tracker->no_loop.load(kRelaxed) && from != nullptr && from->tracker == tracker) continue;
    invalidation.SendTo(*tracker, need, from);
  }
}

void Tracking::Flushed(storage::Lsn need, Session* from) {
  for (Part& part : parts_) {
    storage::MutexLock lock(part.mutex);
    keys_.fetch_sub(part.readers.size(), std::memory_order_relaxed);
    for (const auto& [key, readers] : part.readers) items_.fetch_sub(readers.size(), std::memory_order_relaxed);
    part.readers.clear();
    storage::FreeIfEmptied(part.readers);
  }
  Invalidation invalidation({});
  storage::MutexLock lock(mutex_);
  for (const std::shared_ptr<Tracker>& tracker : all_) invalidation.SendTo(*tracker, need, from);
}

// One message for each prefix, with all the keys of the unit, as though sorted into a set.
void Tracking::Broadcast(absl::Span<const Event> events, storage::Lsn need, Session* from) {
  // Whether the client itself changed the key last; what expired, nobody changed.
  std::map<absl::string_view, bool> keys;
  for (const Event& event : events)
    if (event.event_class == EventClass::kChanged) keys[event.key] = from != nullptr && event.name[0] == '\0';
  if (keys.empty()) return;
  storage::MutexLock lock(mutex_);
  for (const auto& [prefix, trackers] : by_prefix_) {
    std::vector<absl::string_view> all;
    std::vector<absl::string_view> of_others;
    for (auto it = keys.lower_bound(prefix); it != keys.end() && it->first.substr(0, prefix.size()) == prefix; ++it) {
      all.push_back(it->first);
      if (!it->second) of_others.push_back(it->first);
    }
    if (all.empty()) continue;
    Invalidation invalidation(all, /*broadcast=*/true);
    for (const std::shared_ptr<Tracker>& tracker : trackers) {
      const bool own = from != nullptr && from->tracker == tracker;
      if (!own || !tracker->no_loop.load(std::memory_order_relaxed)) {
        invalidation.SendTo(*tracker, need, from);
      } else if (!of_others.empty()) {
        Invalidation(of_others, /*broadcast=*/true).SendTo(*tracker, need, from);
      }
    }
  }
}

void Tracking::OnEvents(absl::Span<const Event> events, storage::Lsn need, Session* from) {
  for (const Event& event : events) {
    if (event.event_class == EventClass::kChanged) Changed(event.key, need, from);
    if (event.event_class == EventClass::kFlushed) Flushed(need, from);
  }
  if (broadcasting_.load(std::memory_order_acquire) != 0) Broadcast(events, need, from);
}

// --- the limit

void Tracking::SetMaxKeys(uint64_t max_keys) {
  max_keys_.store(max_keys, std::memory_order_relaxed);
  KeepLimit();
}

// Forgets a key of one part after the other. Its readers are told as though it had changed.
void Tracking::KeepLimit() {
  const uint64_t max_keys = max_keys_.load(std::memory_order_relaxed);
  while (max_keys != 0 && keys() > max_keys) {
    Part& part = parts_[next_evicted_.fetch_add(1, std::memory_order_relaxed) % kParts];
    std::string key;
    {
      storage::MutexLock lock(part.mutex);
      if (part.readers.empty()) continue;
      key = part.readers.begin()->first;
    }
    Changed(key, storage::kNoLsn, nullptr);
  }
}

}  // namespace idemd::server
