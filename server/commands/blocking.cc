// The lines are storage's (storage/wait/blocked_lines.h); here is who stands in them, and how their turn comes.
#include "server/commands/blocking.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "protocol/errors.h"
#include "server/admin/stats.h"
#include "server/commands/session_waiter.h"
#include "server/commands/table.h"

namespace idemd::server {

namespace errors = protocol::errors;
using storage::DbIndex;
using storage::HashedKey;
using storage::ReadyKey;

// Owns copies of its keys: the request's words are gone when its turn comes.
class BlockedCaller final : public SessionWaiter {
 public:
  BlockedCaller(Context& c, const BlockedCall& call)
      : SessionWaiter(c),
        services_(c.services),
        db_(c.db()),
        wants_(call.wants),
        waits_at_(call.keys.size()),
        serve_(call.serve),
        thread_stats_(c.thread_stats),
        ordinal_(c.services.commands.EntryOf(*c.spec).ordinal) {
    reader_.tracker = c.session.tracker;
    minds_absence = call.minds_absence;
    size_t bytes = 0;
    for (const HashedKey& key : call.keys) bytes += key.bytes.size();
    for (const HashedKey& key : call.others) bytes += key.bytes.size();
    texts_.reserve(bytes);
    keys_.reserve(call.keys.size() + call.others.size());
    for (const absl::Span<const HashedKey>& keys : {call.keys, call.others}) {
      for (const HashedKey& key : keys) {
        const size_t at = texts_.size();
        texts_.append(key.bytes.data(), key.bytes.size());
        keys_.emplace_back(absl::string_view(texts_).substr(at), key.hash);
      }
    }
  }

  void Resolve(const storage::WaitAnswer&) override {}  // stands in no line of reservations

  absl::Span<const HashedKey> in_line_at() const { return absl::MakeSpan(keys_).first(waits_at_); }
  absl::Span<const HashedKey> locks() const { return keys_; }
  // Whether it has a turn when such a value is there.
  bool MayLookAt(storage::ValueType type) const { return type == wants_ || minds_absence; }

  // Gives it its turn. True: it was served, is in no line any more, and waits for Deliver().
  bool Serve(storage::Unit& unit, const HashedKey& key) {
    protocol::Writer reply(reply_, resp());
    Turn turn{this, unit, db_, key, reply};
    serve_(turn);
    if (!turn.taken) return false;
    reader_.peer = peer();  // until Deliver(): it holds this waiter, too
    unit.SetOrigin(&reader_);
    LeaveLines(unit);
    return true;
  }
  // After the unit's end.
  void Deliver(storage::Lsn need) {
    reader_.peer.reset();
    Resume(need, [this, self = shared_from_this()](Session&, protocol::Writer& out) {
      // As though the session had run the command now: messages to its own connection lie around the reply.
      out.buffer().append(reader_.pushes).append(reply_).append(reader_.invalidations);
      if (reply_[0] != '-') return;
      thread_stats_->OnError(absl::string_view(reply_).substr(1, reply_.find(' ') - 1));
      thread_stats_->OnFailed(ordinal_);
    });
  }

  void WaitIsOver() override { End(false); }
  bool Unblock(bool with_error) override { return End(with_error); }
  // Not while somebody holds locks: CLIENT UNBLOCK inside of EXEC leaves it to the connection's thread.
  void Settle() override {
    if (!in_line_.load(std::memory_order_relaxed)) return;
    storage::Unit unit(services_.store);
    unit.LockKeys(in_line_at());
    LeaveLines(unit);
  }

  void StandInLine(storage::Unit& unit, std::shared_ptr<BlockedCaller> self) {
    in_line_.store(true, std::memory_order_relaxed);
    unit.Block(db_, in_line_at(), std::move(self));
  }

 private:
  bool End(bool with_error) {
    if (!Cancel()) return false;
    Resume(storage::kNoLsn, [with_error](Session&, protocol::Writer& reply) {
      with_error ? reply.Error(errors::kUnblocked) : reply.NullArray();
    });
    return true;
  }
  void LeaveLines(storage::Unit& unit) {
    in_line_.store(false, std::memory_order_relaxed);
    unit.Unblock(db_, in_line_at(), *this);
  }

  Services& services_;
  const DbIndex db_;
  const storage::ValueType wants_;
  const size_t waits_at_;  // of keys_: so many from the front
  const std::function<void(Turn&)> serve_;
  ThreadStats* const thread_stats_;  // of the connection's thread, which alone writes them
  const uint32_t ordinal_;
  // Stands for the session in the unit that serves it, on whatever thread that is.
  Session reader_;
  std::string texts_;
  std::vector<HashedKey> keys_;
  std::string reply_;
  // Written under the locks of its keys; the connection's thread looks before it takes them.
  std::atomic<bool> in_line_{false};
};

bool Turn::Take() {
  // One that is being closed is as good as gone, though its thread may not have noticed yet.
  taken = !caller->closing() && caller->Cancel();
  return taken;
}

void BlockOn(Context& c, const BlockedCall& call) {
  auto caller = std::make_shared<BlockedCaller>(c, call);
  Block(c.session, caller);
  if (call.timeout_ms != 0) {
    c.session.give_up_at = std::chrono::steady_clock::now() + std::chrono::milliseconds(call.timeout_ms);
  }
  caller->StandInLine(c.unit, caller);
}

namespace {

// Serves the next one at the key of those who came after `*after`, if there is one; then what that made ready follows in
// `ready`. False: nobody in line has anything to look at.
bool ServeNext(Services& services, DbIndex db, const HashedKey& key, uint64_t* after, std::vector<ReadyKey>& ready) {
  storage::Unit unit(services.store);
  unit.Lock(key);
  while (true) {
    const storage::KeyView view = unit.Find(db, key, /*touch=*/false);
    // Only BlockOn() puts anybody in these lines.
    const auto caller = std::static_pointer_cast<BlockedCaller>(unit.NextBlocked(db, key, *after));
    if (caller == nullptr) return false;
    // Under one lock, so that nobody is passed over who could be served a moment later.
    *after = caller->arrival;
    if (caller->canceled_or_done() || !caller->MayLookAt(view.type)) continue;
    bool holds_all = true;
    for (const HashedKey& other : caller->locks()) holds_all = holds_all && unit.Holds(other);
    if (!holds_all) {
      unit.Commit();
      unit.LockKeys(caller->locks());
    }
    if (!caller->canceled_or_done() && caller->Serve(unit, key)) {
      unit.Commit();
      caller->Deliver(unit.need());
      for (ReadyKey& more : unit.TakeReady()) ready.push_back(std::move(more));
      return true;
    }
    if (!holds_all) return true;  // the unit has others' locks now
  }
}

}  // namespace

void ServeBlocked(Services& services, std::vector<ReadyKey> ready) {
  for (size_t i = 0; i < ready.size(); ++i) {
    const ReadyKey one = std::move(ready[i]);
    const HashedKey key(one.key);
    uint64_t after = 0;
    while (ServeNext(services, one.db, key, &after, ready)) {
    }
  }
}

bool OthersFirst(Context& c, const HashedKey& key) {
  if (!MayBlock(c) || c.unit.NextBlocked(c.db(), key, 0) == nullptr) return false;
  c.unit.Commit();
  ServeBlocked(c.services, {{c.db(), std::string(key.bytes)}});
  return true;
}

void PopOrWait(Context& c, BlockedCall call) {
  c.unit.LockKeys(call.keys);
  bool others_were_first = false;
  for (size_t i = 0; i < call.keys.size(); ++i) {
    const HashedKey& key = call.keys[i];
    const storage::KeyView view = c.unit.Find(c.db(), key);
    if (!view) continue;
    if (view.type != call.wants) return c.reply.Error(errors::kWrongType);
    if (!others_were_first && OthersFirst(c, key)) {
      others_were_first = true;
      c.unit.LockKeys(call.keys);
      i = SIZE_MAX;  // from the first one on
      continue;
    }
    Turn turn{nullptr, c.unit, c.db(), key, c.reply};
    return call.serve(turn);
  }
  if (!MayBlock(c)) return c.reply.NullArray();
  call.serve = [wants = call.wants, pop = std::move(call.serve)](Turn& turn) {
    if (turn.unit.Find(turn.db, turn.key).type == wants && turn.Take()) pop(turn);
  };
  BlockOn(c, call);
}

bool ReadTimeout(Context& c, size_t i, int64_t* ms) {
  constexpr long double kMsMax = 1e12L;  // some 30 years; the clock's own range is not much larger
  long double seconds = 0;
  if (!protocol::ParseLongDouble(c.words[i], &seconds)) {
    c.reply.Error(errors::kTimeoutNotFloat);
    return false;
  }
  const long double rounded = std::ceil(seconds * 1000.0L);
  // What is too large for a number of milliseconds comes out negative in Redis.
  if (rounded < 0 || rounded >= 0x1p63L) {
    c.reply.Error(errors::kTimeoutNegative);
    return false;
  }
  *ms = static_cast<int64_t>(std::min(rounded, kMsMax));
  return true;
}

}  // namespace idemd::server
