// The registry of connections.
#include "server/clients.h"

#include <algorithm>
#include <utility>

namespace idemd::server {

void Clients::Add(std::shared_ptr<Peer> peer) {
  storage::MutexLock lock(mutex_);
  const uint64_t id = peer->info().id;
  peers_[id] = std::move(peer);
  count_.store(peers_.size(), std::memory_order_relaxed);
}

void Clients::Remove(uint64_t id) {
  std::shared_ptr<Peer> gone;  // destroyed after the lock is released
  storage::MutexLock lock(mutex_);
  auto it = peers_.find(id);
  if (it == peers_.end()) return;
  gone = std::move(it->second);
  peers_.erase(it);
  count_.store(peers_.size(), std::memory_order_relaxed);
  stranger_ids_.erase(id);
  monitor_ids_.erase(std::remove(monitor_ids_.begin(), monitor_ids_.end(), id), monitor_ids_.end());
  monitors_.store(monitor_ids_.size(), std::memory_order_relaxed);
}

std::shared_ptr<Peer> Clients::Find(uint64_t id) const {
  storage::MutexLock lock(mutex_);
  auto it = peers_.find(id);
  return it == peers_.end() ? nullptr : it->second;
}

std::vector<std::shared_ptr<Peer>> Clients::All() const {
  std::vector<std::shared_ptr<Peer>> all;
  {
    storage::MutexLock lock(mutex_);
    all.reserve(peers_.size());
    for (const auto& [id, peer] : peers_) all.push_back(peer);
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->info().id < b->info().id; });
  return all;
}

size_t Clients::blocked() const {
  storage::MutexLock lock(mutex_);
  size_t n = 0;
  for (const auto& [id, peer] : peers_) n += peer->info().blocked.load(std::memory_order_relaxed);
  return n;
}

std::shared_ptr<Peer> Clients::AddStranger(uint64_t id, size_t max) {
  storage::MutexLock lock(mutex_);
  stranger_ids_.insert(id);
  if (stranger_ids_.size() <= max) return nullptr;
  const auto oldest = stranger_ids_.begin();
  const auto it = peers_.find(*oldest);
  stranger_ids_.erase(oldest);
  return it == peers_.end() ? nullptr : it->second;
}

void Clients::RemoveStranger(uint64_t id) {
  storage::MutexLock lock(mutex_);
  stranger_ids_.erase(id);
}

namespace {

uint64_t MemoryOf(const ClientInfo& info) { return info.buffer_bytes() + sizeof(ClientInfo) + sizeof(Session); }

}  // namespace

Clients::Memory Clients::memory() const {
  storage::MutexLock lock(mutex_);
  Memory memory;
  for (const auto& [id, peer] : peers_) {
    const ClientInfo& info = peer->info();
    (info.replica.load(std::memory_order_relaxed) ? memory.replica_bytes : memory.normal_bytes) += MemoryOf(info);
  }
  return memory;
}

std::vector<std::shared_ptr<Peer>> Clients::Evict(uint64_t limit_bytes) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  std::vector<std::pair<uint64_t, std::shared_ptr<Peer>>> may_go;
  uint64_t sum = 0;
  storage::MutexLock lock(mutex_);
  for (const auto& [id, peer] : peers_) {
    const ClientInfo& info = peer->info();
    if (info.closing.load(kRelaxed) || info.replica.load(kRelaxed) || info.no_evict.load(kRelaxed)) continue;
    sum += MemoryOf(info);
    may_go.emplace_back(MemoryOf(info), peer);
  }
  std::vector<std::shared_ptr<Peer>> gone;
  if (sum <= limit_bytes) return gone;
  std::sort(may_go.begin(), may_go.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [bytes, peer] : may_go) {
    if (sum <= limit_bytes) break;
    sum -= bytes;
    peer->Kill();
    gone.push_back(std::move(peer));
  }
  return gone;
}

void Clients::AddMonitor(uint64_t id) {
  storage::MutexLock lock(mutex_);
  if (std::find(monitor_ids_.begin(), monitor_ids_.end(), id) != monitor_ids_.end()) return;
  monitor_ids_.push_back(id);
  monitors_.store(monitor_ids_.size(), std::memory_order_relaxed);
}

void Clients::RemoveMonitor(uint64_t id) {
  storage::MutexLock lock(mutex_);
  monitor_ids_.erase(std::remove(monitor_ids_.begin(), monitor_ids_.end(), id), monitor_ids_.end());
  monitors_.store(monitor_ids_.size(), std::memory_order_relaxed);
}

void Clients::SendToMonitors(std::shared_ptr<const std::string> line, storage::Lsn need) const {
  storage::MutexLock lock(mutex_);
  for (uint64_t id : monitor_ids_) {
    auto it = peers_.find(id);
    if (it != peers_.end()) it->second->Send(line, need);
  }
}

}  // namespace idemd::server
