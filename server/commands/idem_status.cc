// IDEM.STATUS: what a key's reservation is at, without locking or changing anything.
#include <algorithm>

#include "server/commands/groups.h"
#include "server/commands/idem_common.h"
#include "storage/record/time_math.h"

namespace idemd::server {
namespace {

using storage::LifeError;
using storage::Record;
using storage::RecordState;
using storage::StatusWord;
using storage::Subject;

// Writes name and value of each field, and counts them: the map's head is put in front when all are
// known.
class StatusMap {
 public:
  explicit StatusMap(protocol::Writer& reply) : reply_(reply), mark_(reply.Mark()) {}
  void Close() { reply_.InsertMap(mark_, pairs_); }

  void Text(absl::string_view name, absl::string_view value) {
    reply_.Bulk(name);
    reply_.Bulk(value);
    ++pairs_;
  }
  void Number(absl::string_view name, int64_t value) {
    reply_.Bulk(name);
    reply_.Integer(value);
    ++pairs_;
  }

 private:
  protocol::Writer& reply_;
  size_t mark_;
  size_t pairs_ = 0;
};

void WriteReservation(StatusMap& map, const Record& r, StatusWord word, int64_t now_ms) {
  map.Number("fence", static_cast<int64_t>(r.fence));
  map.Number("attempt", static_cast<int64_t>(r.attempt));
  if (r.has_claim) map.Text("claim", r.claim);
  if (r.state == RecordState::kPending)
    map.Number("lease-left-ms", word == StatusWord::kPending ? r.lease_end_ms - now_ms : 0);
  if (r.state == RecordState::kFailed)
    map.Number("retry-after-ms", std::max<int64_t>(0, r.after_ms - now_ms));
  map.Number("age-ms", std::max<int64_t>(0, now_ms - r.since_ms));
  map.Text("onlapse", r.stop ? "stop" : "take");
  if (r.has_fingerprint) map.Text("fingerprint", r.fingerprint);
}

void WriteToken(StatusMap& map, const Record& r, int64_t now_ms) {
  if (!r.has_token) return;
  const int64_t left = storage::LeftOrForever(r.token_expiry_ms, now_ms);
  map.Number("token-left-ms",
             r.token_expiry_ms == storage::kNoDeadline ? left : std::max<int64_t>(0, left));
}

void WriteRecord(StatusMap& map, const storage::KeyView& view, const Record& r, StatusWord word,
                 int64_t now_ms) {
  if (r.state == RecordState::kConsumed) {
    map.Text("claim", r.claim);
    map.Number("age-ms", std::max<int64_t>(0, now_ms - r.since_ms));
    WriteToken(map, r, now_ms);
    return;
  }
  WriteReservation(map, r, word, now_ms);
  WriteToken(map, r, now_ms);
  if (r.state != RecordState::kDone) {
    if (r.has_payload) map.Text("checkpoint", r.payload);
    return;
  }
  map.Number("code", r.code);
  if (r.has_payload) map.Text("result", r.payload);
  map.Number("replays", view.replays == nullptr ? 0 : view.replays->load(std::memory_order_relaxed));
}

void Status(Context& c) {
  const storage::KeyView view = c.unit.Find(c.db(), c.Key(1), false);
  const Subject subject = storage::SubjectOf(view);
  const int64_t now_ms = c.unit.now_ms();
  StatusWord word = StatusWord::kIssued;
  switch (subject.kind) {
    case Subject::Kind::kAbsent:
      return c.reply.Null();
    case Subject::Kind::kDamaged:
      return ReplyLifeError(c, c.words[1], LifeError::kDamagedRecord);
    case Subject::Kind::kOtherType:
      return ReplyLifeError(c, c.words[1], LifeError::kWrongType);
    case Subject::Kind::kPlain:
      break;
    case Subject::Kind::kRecord:
      word = storage::StatusAt(subject.record, now_ms);
      break;
  }
  StatusMap map(c.reply);
  map.Text("state", storage::StatusWordName(word));
  map.Number("ttl-ms", storage::LeftOrForever(subject.deadline_ms, now_ms));
  if (subject.kind == Subject::Kind::kRecord) WriteRecord(map, view, subject.record, word, now_ms);
  map.Close();
}

constexpr ArgSpec kStatusArgs[] = {{.name = "key", .type = ArgType::kKey}};

constexpr CommandSpec kIdemStatusCommands[] = {{.name = "IDEM.STATUS",
                                                .handler = &Status,
                                                .arity = 2,
                                                .flags = kReadonly | kFast,
                                                .keys = Keys::At(1),
                                                .key_flags = "RO ACCESS",
                                                .group = Group::kIdem,
                                                .since = "0.1.0",
                                                .summary = "Describes a reservation or token.",
                                                .args = kStatusArgs}};

}  // namespace

absl::Span<const CommandSpec> IdemStatusCommands() { return kIdemStatusCommands; }

}  // namespace idemd::server
