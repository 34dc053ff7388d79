// Kept until the snapshot is over, sent at once from then on.
#include "server/journal/replica_feed.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/journal/commands_text.h"

namespace idemd::server {

bool ReplicaFeed::StillWanted() {
  storage::MutexLock lock(mutex_);
  std::erase_if(replicas_, [](const Replica& replica) { return !replica.sink.alive(); });
  // Those whose snapshot is being written see that we live.
  static const auto* const newline = new std::shared_ptr<const std::string>(std::make_shared<const std::string>("\n"));
  for (Replica& replica : replicas_)
    if (replica.state == Replica::State::kWaits) replica.sink.send(*newline, storage::kNoLsn);
  const bool any = !replicas_.empty();
  if (!any) wanted_.store(false, std::memory_order_relaxed);
  return any;
}

uint64_t ReplicaFeed::Open(ReplicaSink sink) {
  storage::MutexLock lock(mutex_);
  // The snapshot leaves its reader in no database, and the others are told again where they are.
  db_ = kNoDb;
  const std::string greeting = absl::StrReplaceAll(sink.greeting, {{"{offset}", absl::StrCat(offset())}});
  if (!greeting.empty()) sink.send(std::make_shared<const std::string>(greeting), storage::kNoLsn);
  replicas_.push_back({++last_id_, std::move(sink), Replica::State::kWaits, {}, storage::kNoLsn});
  return last_id_;
}

void ReplicaFeed::BeginSnapshot(uint64_t id, absl::string_view head) {
  storage::MutexLock lock(mutex_);
  for (Replica& replica : replicas_) {
    if (replica.id != id) continue;
    replica.state = Replica::State::kGetsSnapshot;
    replica.sink.send(std::make_shared<const std::string>(head), storage::kNoLsn);
  }
}

void ReplicaFeed::Begin(uint64_t id) {
  storage::MutexLock lock(mutex_);
  for (Replica& replica : replicas_) {
    if (replica.id != id) continue;
    replica.state = Replica::State::kBegun;
    if (!replica.kept.empty()) replica.sink.send(std::make_shared<const std::string>(std::move(replica.kept)), replica.kept_need);
    replica.kept = std::string();
    return;
  }
}

void ReplicaFeed::Drop(uint64_t id) {
  storage::MutexLock lock(mutex_);
  std::erase_if(replicas_, [id](const Replica& replica) { return replica.id == id; });
}

void ReplicaFeed::Append(absl::string_view commands, storage::DbIndex first_db, storage::DbIndex last_db, storage::Lsn need) {
  storage::MutexLock lock(mutex_);
  if (replicas_.empty()) return;
  auto text = std::make_shared<std::string>();
  if (first_db != kAnyDb) {
    if (db_ != first_db) AppendSelect(first_db, *text);
    db_ = last_db;
  }
  text->append(commands.data(), commands.size());
  offset_.fetch_add(text->size(), std::memory_order_relaxed);
  std::erase_if(replicas_, [&](Replica& replica) {
    if (replica.state == Replica::State::kBegun) return !replica.sink.send(text, need);
    replica.kept += *text;
    replica.kept_need = std::max(replica.kept_need, need);
    if (replica.kept.size() <= kKeptBytesMax) return false;
    replica.sink.kill();
    return true;
  });
}

}  // namespace idemd::server
