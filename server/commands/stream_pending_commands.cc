// Entries that were delivered and not acknowledged: XPENDING looks at them, XCLAIM and XAUTOCLAIM give them to another consumer.
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/groups.h"
#include "server/commands/persistence_control.h"
#include "server/commands/stream_args.h"
#include "server/commands/stream_delivery.h"
#include "server/commands/stream_reply.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::Stream;
using storage::StreamCursor;
using storage::StreamGroup;
using storage::StreamId;

int64_t ReplyConsumersWithPending(Context& c, const StreamGroup& group) {
  int64_t consumers = 0;
  for (const auto& [name, consumer] : group.consumers()) {
    if (consumer.pending.empty()) continue;
    c.reply.Array(2);
    c.reply.Bulk(storage::ViewOf(name));
    c.reply.BulkInteger(static_cast<int64_t>(consumer.pending.size()));
    ++consumers;
  }
  return consumers;
}

void ReplyPendingSummary(Context& c, const StreamGroup& group) {
  c.reply.Array(4);
  c.reply.Integer(static_cast<int64_t>(group.pending().size()));
  if (group.pending().empty()) {
    c.reply.Null();
    c.reply.Null();
    return c.reply.NullArray();
  }
  ReplyId(c.reply, group.pending().begin()->first);
  ReplyId(c.reply, std::prev(group.pending().end())->first);
  const size_t mark = c.reply.Mark();
  c.reply.InsertArray(mark, static_cast<size_t>(ReplyConsumersWithPending(c, group)));
}

struct PendingRange {
  StreamId start, end;
  int64_t count = 0;
  int64_t idle_ms_min = 0;
  std::optional<absl::string_view> consumer;
};

// False: the error was written.
bool ReadPendingRange(Context& c, PendingRange* range) {
  constexpr size_t kWordsMin = 6, kWordsMax = 9;
  size_t at = 3;
  if (c.words.size() < kWordsMin || c.words.size() > kWordsMax) {
    c.Syntax();
    return false;
  }
  if (absl::EqualsIgnoreCase(c.words[at], "idle")) {
    if (!c.Int(at + 1, &range->idle_ms_min)) return false;
    at += 2;
    if (c.words.size() < at + 3) {
      c.Syntax();
      return false;
    }
  }
  if (!c.Int(at + 2, &range->count) || !ReadRangeStart(c, at, &range->start) || !ReadRangeEnd(c, at + 1, &range->end))
    return false;
  if (at + 3 < c.words.size()) range->consumer = c.words[at + 3];
  return true;
}

// False: it is not idle for long enough.
bool ReplyPending(Context& c, StreamId id, const StreamGroup::Pending& pending, int64_t idle_ms_min) {
  const int64_t idle_ms = c.unit.now_ms() - pending.delivered_ms;
  if (idle_ms_min != 0 && idle_ms < idle_ms_min) return false;
  c.reply.Array(4);
  ReplyId(c.reply, id);
  c.reply.Bulk(storage::ViewOf(pending.consumer->first));
  c.reply.Integer(std::max<int64_t>(idle_ms, 0));
  c.reply.Integer(static_cast<int64_t>(pending.deliveries));
  return true;
}

void ReplyPendingRange(Context& c, const StreamGroup& group, const PendingRange& range) {
  const size_t mark = c.reply.Mark();
  int64_t shown = 0;
  if (!range.consumer) {
    for (auto at = group.pending().lower_bound(range.start);
         shown < range.count && at != group.pending().end() && at->first <= range.end; ++at)
      shown += ReplyPending(c, at->first, at->second, range.idle_ms_min) ? 1 : 0;
  } else if (const StreamGroup::Consumer* const consumer = group.FindConsumer(*range.consumer); consumer != nullptr) {
    const storage::StreamConsumer::Ids& ids = consumer->second.pending;
    for (auto at = ids.lower_bound(range.start); shown < range.count && at != ids.end() && *at <= range.end; ++at)
      shown += ReplyPending(c, *at, *group.FindPending(*at), range.idle_ms_min) ? 1 : 0;
  }
  c.reply.InsertArray(mark, static_cast<size_t>(shown));
}

void Pending(Context& c) {
  const bool summary = c.words.size() == 3;
  PendingRange range;
  if (!summary && !ReadPendingRange(c, &range)) return;
  const Stream* stream = nullptr;
  const StreamGroup* group = nullptr;
  if (!FindGroup(c, c.Key(1), c.words[2], &stream, &group)) return;
  summary ? ReplyPendingSummary(c, *group) : ReplyPendingRange(c, *group, range);
}

// --- claiming

struct ClaimRequest {
  int64_t idle_ms_min = 0;
  StreamIds ids;
  std::optional<int64_t> delivered_ms;
  int64_t deliveries = -1;  // negative: one more than before
  bool force = false;
  bool just_id = false;
  StreamId last_id;
};

// What follows the IDs, from words[i] on. False: the error was written.
bool ReadClaimOptions(Context& c, size_t i, ClaimRequest* request) {
  for (; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const bool more = i + 1 < c.words.size();
    int64_t number = 0;
    if (absl::EqualsIgnoreCase(word, "force")) {
      request->force = true;
    } else if (absl::EqualsIgnoreCase(word, "justid")) {
      request->just_id = true;
    } else if (more && absl::EqualsIgnoreCase(word, "idle")) {
      if (!c.Int(++i, &number, "ERR Invalid IDLE option argument for XCLAIM")) return false;
      int64_t at_ms = 0;
      // What cannot be told is taken for now, below.
      request->delivered_ms = __builtin_sub_overflow(c.unit.now_ms(), number, &at_ms) ? INT64_MAX : at_ms;
    } else if (more && absl::EqualsIgnoreCase(word, "time")) {
      if (!c.Int(++i, &number, "ERR Invalid TIME option argument for XCLAIM")) return false;
      request->delivered_ms = number;
    } else if (more && absl::EqualsIgnoreCase(word, "retrycount")) {
      if (!c.Int(++i, &request->deliveries, "ERR Invalid RETRYCOUNT option argument for XCLAIM")) return false;
    } else if (more && absl::EqualsIgnoreCase(word, "lastid")) {
      if (!ReadStreamId(c, ++i, IdForm::kPlain, 0, &request->last_id)) return false;
    } else {
      c.reply.Error(absl::StrCat("ERR Unrecognized XCLAIM option '", word, "'"));
      return false;
    }
  }
  return true;
}

bool ReadClaim(Context& c, ClaimRequest* request) {
  if (!c.Int(4, &request->idle_ms_min, "ERR Invalid min-idle-time argument for XCLAIM")) return false;
  size_t i = 5;
  for (StreamId id; i < c.words.size() && ParseStreamId(c.words[i], IdForm::kPlain, 0, &id); ++i) request->ids.push_back(id);
  return ReadClaimOptions(c, i, request);
}

// Gives entries of one group to one consumer, which is made when it gets the first.
class Claimer {
 public:
  Claimer(Context& c, const StreamKey& key, Stream& stream, int64_t idle_ms_min)
      : c_(c), key_(key), stream_(stream), group_(*stream.FindGroup(c.words[2])), idle_ms_min_(idle_ms_min),
        claims_(key, c.words[2], c.words[3]) {}

  // The entry is gone: it cannot be pending any more. False: it was not.
  bool Forget(StreamId id) {
    if (!group_.Acknowledge(id)) return false;
    claims_.Flush();
    LogWords log;
    log.Add("XACK").Add(c_.words[1]).Add(c_.words[2]).Add(id);
    key_.GroupChanged(log.words());
    return true;
  }

  bool IdleLongEnough(const StreamGroup::Pending& pending) const {
    return idle_ms_min_ <= 0 || c_.unit.now_ms() - pending.delivered_ms >= idle_ms_min_;
  }

  // Writes it, too: with its fields, or the ID alone.
  void Take(StreamId id, int64_t delivered_ms, uint64_t deliveries, bool just_id) {
    if (consumer_ == nullptr) consumer_ = &SeeConsumer(key_, c_.words[2], group_, c_.words[3]);
    group_.Deliver(id, *consumer_, delivered_ms, deliveries);
    claims_.Add(id, delivered_ms, deliveries);
    if (just_id) return ReplyId(c_.reply, id);
    StreamCursor cursor(stream_, id, id);
    if (cursor.Next()) ReplyEntry(c_.reply, cursor);
  }

  // The log is told all.
  void Finish() {
    claims_.Flush();
    key_.GroupChanged();
  }

 private:
  Context& c_;
  const StreamKey& key_;
  const Stream& stream_;
  StreamGroup& group_;
  const int64_t idle_ms_min_;
  StreamGroup::Consumer* consumer_ = nullptr;
  ClaimLog claims_;
};

void Claim(Context& c) {
  const HashedKey key = c.Key(1);
  LockToRead(c, key);
  const Stream* found = nullptr;
  const StreamGroup* found_group = nullptr;
  ClaimRequest request;
  if (!FindGroup(c, key, c.words[2], &found, &found_group) || !ReadClaim(c, &request)) return;
  const int64_t now_ms = c.unit.now_ms();
  // A time that cannot be is taken for now: the caller may have reckoned with another clock. A log has reckoned with ours, which
  // at a start is not yet where it was.
  const bool from_log = c.services.persistence != nullptr && c.services.persistence->loading();
  int64_t delivered_ms = request.delivered_ms.value_or(now_ms);
  if (delivered_ms < 0 || (delivered_ms > now_ms && !from_log)) delivered_ms = now_ms;
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  StreamGroup& group = *stream.FindGroup(c.words[2]);
  if (request.last_id > group.last_id) {
    group.last_id = request.last_id;
    LogGroupRead(changed, c.words[2], group);
  }
  Claimer claimer(c, changed, stream, request.idle_ms_min);
  const size_t mark = c.reply.Mark();
  size_t claimed = 0;
  for (const StreamId id : request.ids) {
    if (!stream.Has(id)) {
      claimer.Forget(id);
      continue;
    }
    const StreamGroup::Pending* const pending = group.FindPending(id);
    if (pending == nullptr ? !request.force : !claimer.IdleLongEnough(*pending)) continue;
    uint64_t deliveries = pending == nullptr ? 1 : pending->deliveries;
    if (request.deliveries >= 0) {
      deliveries = static_cast<uint64_t>(request.deliveries);
    } else if (!request.just_id) {
      ++deliveries;
    }
    claimer.Take(id, delivered_ms, deliveries, request.just_id);
    ++claimed;
  }
  claimer.Finish();
  c.reply.InsertArray(mark, claimed);
}

struct AutoClaimRequest {
  int64_t idle_ms_min = 0;
  StreamId start;
  int64_t count = 100;
  bool just_id = false;
};
constexpr int64_t kAttemptsPerEntry = 10;  // that are looked at and left, for each one that may be claimed

// False: the error was written.
bool ReadAutoClaim(Context& c, AutoClaimRequest* request) {
  constexpr int64_t kCountMax = INT64_MAX / 16;  // as in Redis, which takes so many bytes for each
  if (!c.Int(4, &request->idle_ms_min, "ERR Invalid min-idle-time argument for XAUTOCLAIM")) return false;
  if (!ReadRangeStart(c, 5, &request->start)) return false;
  for (size_t i = 6; i < c.words.size(); ++i) {
    if (absl::EqualsIgnoreCase(c.words[i], "count") && i + 1 < c.words.size()) {
      constexpr absl::string_view kError = "ERR COUNT must be > 0";
      if (!c.Int(++i, &request->count, kError)) return false;
      if (request->count >= 1 && request->count <= kCountMax) continue;
      c.reply.Error(kError);
      return false;
    }
    if (!absl::EqualsIgnoreCase(c.words[i], "justid")) {
      c.Syntax();
      return false;
    }
    request->just_id = true;
  }
  return true;
}

void AutoClaim(Context& c) {
  AutoClaimRequest request;
  if (!ReadAutoClaim(c, &request)) return;
  const HashedKey key = c.Key(1);
  LockToRead(c, key);
  const Stream* found = nullptr;
  const StreamGroup* found_group = nullptr;
  if (!FindGroup(c, key, c.words[2], &found, &found_group)) return;
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  const StreamGroup& group = *stream.FindGroup(c.words[2]);
  const int64_t now_ms = c.unit.now_ms();
  Claimer claimer(c, changed, stream, request.idle_ms_min);
  StreamIds gone;
  const size_t mark = c.reply.Mark();
  size_t claimed = 0;
  int64_t attempts = request.count * kAttemptsPerEntry;
  auto at = group.pending().lower_bound(request.start);
  for (; attempts > 0 && request.count > 0 && at != group.pending().end(); --attempts) {
    const StreamId id = at->first;
    if (!stream.Has(id)) {
      claimer.Forget(id);
      gone.push_back(id);
      at = group.pending().lower_bound(id);
      --request.count;
      continue;
    }
    const StreamGroup::Pending pending = at->second;
    ++at;
    if (!claimer.IdleLongEnough(pending)) continue;
    claimer.Take(id, now_ms, pending.deliveries + (request.just_id ? 0 : 1), request.just_id);
    ++claimed;
    --request.count;
  }
  const StreamId next = at == group.pending().end() ? StreamId::Min() : at->first;
  claimer.Finish();
  c.reply.InsertArray(mark, claimed);
  std::string head;
  protocol::Writer head_reply(head, c.reply.resp());
  head_reply.Array(3);
  ReplyId(head_reply, next);
  c.reply.buffer().insert(mark, head);
  c.reply.Array(gone.size());
  for (const StreamId id : gone) ReplyId(c.reply, id);
}

constexpr ArgSpec kFilterArgs[] = {
    {.name = "min-idle-time", .type = ArgType::kInteger, .token = "IDLE", .optional = true, .since = "6.2.0"},
    {.name = "start"},
    {.name = "end"},
    {.name = "count", .type = ArgType::kInteger},
    {.name = "consumer", .optional = true}};
constexpr ArgSpec kPendingArgs[] = {{.name = "key", .type = ArgType::kKey},
                                    {.name = "group"},
                                    {.name = "filters", .type = ArgType::kBlock, .optional = true, .args = kFilterArgs}};
constexpr ArgSpec kClaimArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "group"},
    {.name = "consumer"},
    {.name = "min-idle-time"},
    {.name = "id", .multiple = true},
    {.name = "ms", .type = ArgType::kInteger, .token = "IDLE", .optional = true},
    {.name = "unix-time-milliseconds", .type = ArgType::kUnixTime, .token = "TIME", .optional = true},
    {.name = "count", .type = ArgType::kInteger, .token = "RETRYCOUNT", .optional = true},
    {.name = "force", .type = ArgType::kToken, .token = "FORCE", .optional = true},
    {.name = "justid", .type = ArgType::kToken, .token = "JUSTID", .optional = true},
    {.name = "id", .token = "LASTID", .optional = true}};
constexpr ArgSpec kAutoClaimArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "group"},
    {.name = "consumer"},
    {.name = "min-idle-time"},
    {.name = "start"},
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true},
    {.name = "justid", .type = ArgType::kToken, .token = "JUSTID", .optional = true}};

constexpr CommandSpec kStreamPendingCommands[] = {
    {.name = "XPENDING", .handler = &Pending, .arity = -3, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kStream, .since = "5.0.0",
     .complexity = "O(N) for N entries returned or passed over; the summary O(M) for M consumers",
     .summary = "Sums up what is pending in a group, or lists it.", .args = kPendingArgs},
    {.name = "XCLAIM", .handler = &Claim, .arity = -6, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kStream, .since = "5.0.0",
     .complexity = "O(log N) per ID for N entries pending in the group",
     .summary = "Gives pending entries to a consumer.", .args = kClaimArgs},
    {.name = "XAUTOCLAIM", .handler = &AutoClaim, .arity = -6, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW DELETE", .group = Group::kStream, .since = "6.2.0", .complexity = "O(1) for a small COUNT",
     .summary = "Gives entries that have been pending for some time to a consumer.", .args = kAutoClaimArgs}};

}  // namespace

absl::Span<const CommandSpec> StreamPendingCommands() { return kStreamPendingCommands; }

}  // namespace idemd::server
