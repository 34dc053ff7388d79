// How a unit ends: waiters of changed keys are served, effects go to the log, locks are released, answers leave.
#include <utility>

#include "storage/shard.h"
#include "storage/snapshot/rdb_writer.h"
#include "storage/store.h"

namespace idemd::storage {

void Unit::Finish() noexcept {
  if (held_ == 0) {
    if (events_ != nullptr) [[unlikely]] TellEvents();
    return;
  }
  if (changes_ != 0 || serve_all_) {
    if (!changed_.empty() || serve_all_) {
      ServeWaiters();
      TouchWatches();
      CollectReady();
      AppendEffects();
    }
    changed_.clear();
    texts_.clear();
    touched_ = 0;
    deltas_.clear();
    delta_text_.clear();
    store_.stats_.Add(StorageStats::kChanges, std::exchange(changes_, 0));
    whole_effects_.clear();
    serve_all_ = false;
  }
  if (events_ != nullptr) [[unlikely]] {
    // Those who waited get their answers before they are told of what these changed.
    if (!served_.empty()) ResolveServed();
    TellEvents();
  }
  borrowed_ = 0;
  marks_ = 0;
  Unlock();
  if (!served_.empty()) ResolveServed();
}

void Unit::RememberEvent(EventClass event_class, const char* event, DbIndex db, absl::string_view key) {
  if (events_ == nullptr) events_ = std::make_unique<EventList>();
  events_->Add(event_class, event, db, key);
}

void Unit::AtCommit(std::function<void(Lsn need)> call) {
  if (events_ == nullptr) events_ = std::make_unique<EventList>();
  events_->Add(std::move(call));
}

void Unit::TellEvents() {
  const std::unique_ptr<EventList> events = std::move(events_);
  events->HandTo(store_.event_sink_, need_, origin_);
}

void Unit::ServeWaiters() {
  if (store_.impl_->waiters.load(std::memory_order_relaxed) == 0) return;
  // Serving changes keys too, but only those whose line was just looked at.
  const size_t changes = changed_.size();
  for (size_t i = 0; i < changes; ++i) {
    const Change change = changed_[i];
    if (change.noticed && !change.shard->lines.empty()) ServeLine(*change.shard, WaitLines::Name(change.db, KeyOf(change).bytes));
  }
  if (!serve_all_) return;
  for (Shard& shard : store_.impl_->shards)
    for (const std::string& name : shard.lines.Names()) ServeLine(shard, name);
}

void Unit::ServeDueWaiters(DbIndex db, const HashedKey& key) {
  Shard& shard = ShardOf(key);
  if (shard.lines.empty()) return;
  for (const Change& change : changed_)
    if (change.db == db && KeyOf(change).bytes == key.bytes) return;
  const WaitLine* line = shard.lines.Find(db, key.bytes);
  if (line != nullptr && line->wake_ms <= now_ms()) ServeLine(shard, WaitLines::Name(db, key.bytes));
}

// Looks at the waiters of one key in order of arrival, as though they called now. Who would be PENDING waits on, unless
// its patience has run out. A waiter's own change is seen by those behind it.
void Unit::ServeLine(Shard& shard, const std::string& name) {
  WaitLine* line = shard.lines.FindNamed(name);
  if (line == nullptr) return;
  const DbIndex db = WaitLines::DbOf(name);
  const HashedKey key(WaitLines::KeyOf(name));
  const Limits limits = store_.CurrentLimits();
  absl::string_view shared_bytes;
  std::shared_ptr<const std::string> shared;
  std::deque<std::shared_ptr<Waiter>> stay;
  int64_t wake = kNoDeadline;
  for (std::shared_ptr<Waiter>& waiter : line->waiters) {
    if (waiter->canceled_or_done()) continue;
    const KeyView view = FindLocked(shard, db, key, false);
    const Subject subject = SubjectOf(view);
    const int64_t now = now_ms();
    const ReserveOutcome outcome = Reserve(
        subject, waiter->request, now, limits, [this] { return store_.fences_.Next(); },
        [&] { return waiter->origin == nullptr ? TokenOrigin::kUnissued : waiter->origin(*waiter, now); });
    const bool pending = outcome.error == LifeError::kNone && outcome.reply.status == ReserveStatus::kPending;
    if (pending && waiter->give_up_at_ms > now) {
      wake = std::min({wake, waiter->give_up_at_ms, NextChange(subject, now)});
      stay.push_back(std::move(waiter));
      continue;
    }
    if (!waiter->Cancel()) continue;  // gone in this very moment
    WaitAnswer answer;
    answer.error = outcome.error;
    answer.reply = outcome.reply;
    answer.took_over = outcome.took_over;
    if (outcome.reply.has_payload) {
      if (shared == nullptr || shared_bytes.data() != outcome.reply.payload.data() ||
          shared_bytes.size() != outcome.reply.payload.size()) {
        shared_bytes = outcome.reply.payload;
        shared = std::make_shared<const std::string>(shared_bytes.data(), shared_bytes.size());
      }
      answer.payload = shared;
    }
    answer.reply.payload = {};
    if (outcome.reply.status == ReserveStatus::kDone && outcome.error == LifeError::kNone) CountReplay(view);
    Apply(db, key, outcome.action);
    served_.push_back({std::move(waiter), std::move(answer)});
  }
  store_.impl_->waiters.fetch_sub(line->waiters.size() - stay.size(), std::memory_order_relaxed);
  line->waiters = std::move(stay);
  line->gone = 0;
  if (line->waiters.empty()) return CloseLine(shard, name, *line);
  if (line->wake_ms <= now_ms() || wake < line->wake_ms) LookAtLine(shard, name, *line, wake);
}

void Unit::WatchKey(DbIndex db, const HashedKey& key, std::shared_ptr<Watch> watch) {
  Shard& shard = ShardOf(key);
  LiveItem(shard, db, key);
  TouchWatches();
  shard.watched.Add(WaitLines::Name(db, key.bytes), std::move(watch));
}

void Unit::UnwatchKey(DbIndex db, const HashedKey& key, const Watch& watch) {
  ShardOf(key).watched.Remove(WaitLines::Name(db, key.bytes), &watch);
}

void Unit::TouchWatches() {
  for (; touched_ < changed_.size(); ++touched_) {
    const Change& change = changed_[touched_];
    if (change.noticed && !change.shard->watched.empty()) change.shard->watched.Touch(WaitLines::Name(change.db, KeyOf(change).bytes));
  }
}

// A whole database is about to go or to be exchanged: whoever watches a key that is there sees a change.
void Unit::TouchDatabase(Shard& shard, DbIndex db) {
  if (shard.watched.empty()) return;
  for (const std::string& name : shard.watched.Names()) {
    if (WaitLines::DbOf(name) != db) continue;
    const Table* table = shard.tables[db].load(std::memory_order_relaxed);
    const HashedKey key(WaitLines::KeyOf(name));
    if (table != nullptr && table->Find(key)) shard.watched.Touch(name);
  }
}

void Unit::AppendEffects() {
  if (!store_.impl_->Logs()) return;
  absl::InlinedVector<Effect, 4> effects;
  // Of records. A deque, since effects keep views; kept by the thread, so that the usual unit allocates nothing.
  thread_local std::deque<std::string> texts;
  size_t texts_used = 0;
  effects.insert(effects.end(), whole_effects_.begin(), whole_effects_.end());
  for (const Change& change : changed_) {
    // What the key holds now that the unit is over.
    const HashedKey key = KeyOf(change);
    const Table* table = change.shard->tables[change.db].load(std::memory_order_relaxed);
    const Item item = table == nullptr ? Item{} : table->Find(key);
    Effect effect;
    effect.db = change.db;
    effect.key = key.bytes;
    if (!item && change.value != Change::Value::kDelta) {
      effect.kind = EffectKind::kDelete;
    } else {
      const KeyView view = item ? ViewOf(item) : KeyView();
      effect.deadline_ms = view.deadline_ms;
      if (change.value == Change::Value::kWhole) {
        effect.kind = EffectKind::kSet;
        effect.value = view.bytes;
        if (view.type != ValueType::kString) {
          if (texts.size() == texts_used) texts.emplace_back();
          std::string& text = texts[texts_used++];
          if (view.type == ValueType::kRecord) {
            effect.value = StringValue(view, text);
          } else {
            effect.kind = EffectKind::kRestore;
            effect.value = text = DumpPayload(*view.collection);
          }
        }
      } else {
        for (uint32_t i = change.first_delta; i != kNoDelta; i = deltas_[i].next) {
          effect.kind = EffectKind::kCommand;
          effect.value = absl::string_view(delta_text_.data() + deltas_[i].at, deltas_[i].size);
          effects.push_back(effect);
        }
        if (!change.deadline || !item) continue;
        effect.kind = effect.deadline_ms == kNoDeadline ? EffectKind::kPersist : EffectKind::kExpireAt;
      }
    }
    effects.push_back(effect);
  }
  const Lsn lsn = store_.log_.Append(effects);
  constexpr size_t kTextsKept = 64;
  if (texts.size() > kTextsKept) texts.resize(kTextsKept);
  for (const Change& change : changed_) change.shard->LsnOf(change.hash).store(lsn, std::memory_order_release);
  if (!whole_effects_.empty()) SetAllLsns(lsn);
  Need(lsn);
}

void Unit::ResolveServed() {
  store_.stats_.Add(StorageStats::kWaitsServed, served_.size());
  for (Served& served : served_) {
    served.answer.need = need_;
    served.waiter->Resolve(served.answer);
  }
  served_.clear();
}

}  // namespace idemd::storage
