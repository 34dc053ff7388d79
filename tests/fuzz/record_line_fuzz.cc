// A line that is read as a record is written as the same bytes, and packs to the size that was
// announced and back to the same line, whatever deadline its key has. Whatever a command makes of a
// record is a record again.
#include <array>
#include <memory>
#include <string>

#include "storage/record/life.h"
#include "storage/record/record.h"
#include "tests/fuzz/input.h"

using namespace idemd::storage;  // NOLINT: one short program
using idemd::fuzz::Input;
using idemd::fuzz::Require;

namespace {

std::string TextOf(const Record& record) {
  std::string text;
  AppendText(record, text);
  Require(text.size() == TextSize(record) && LooksLikeRecord(text));
  return text;
}

void RequireSamePacked(const Record& record, int64_t deadline_ms, const std::string& text) {
  const size_t size = PackedSize(record, deadline_ms);
  // Exactly as long, so that a sanitizer sees a byte too many.
  const auto packed = std::make_unique<char[]>(size);
  Pack(record, deadline_ms, packed.get());
  Require(TextOf(Unpack(absl::string_view(packed.get(), size), deadline_ms)) == text);
}

void RequireRecord(const Record& record) {
  const std::string text = TextOf(record);
  Record again;
  std::string scratch;
  Require(ParseText(text, scratch, again) == ParseVerdict::kRecord && TextOf(again) == text);
}

// A command on the record, at any time, whatever the caller says.
Action Command(const Subject& subject, Input& input, std::string& payload) {
  const int64_t now_ms = static_cast<int64_t>(input.Number() >> 2);
  const uint64_t fence = input.Flag() ? input.Number() : subject.record.fence;
  const auto ms = static_cast<int64_t>(input.Number() >> 1);
  Limits limits;
  limits.max_result_bytes = 100;
  limits.out_of_memory = input.Below(8) == 7;
  payload = std::string(input.Text(120));
  switch (input.Below(7)) {
    case 0: {
      ReserveRequest request;
      request.claim = absl::string_view(payload).substr(0, 64);
      request.fingerprint = input.Text(1);
      request.lease_ms = ms;
      request.stop = input.Flag();
      request.issued = input.Flag();
      const ReserveOutcome outcome = Reserve(
          subject, request, now_ms, limits, [] { return uint64_t{1} << 50; },
          [] { return TokenOrigin::kLive; });
      if (outcome.action.kind != Action::Kind::kNone)
        Require(outcome.reply.status == ReserveStatus::kReserved);
      return outcome.action;
    }
    case 1: {
      CompleteRequest request;
      request.fence = fence;
      request.result = payload;
      request.code = static_cast<int64_t>(input.Number());
      return Complete(subject, request, now_ms, limits).action;
    }
    case 2:
      return Fail(subject, fence, ms, now_ms).action;
    case 3:
      return Release(subject, fence, now_ms).action;
    case 4:
      return ms == 0 ? Action() : Extend(subject, fence, ms, now_ms).action;
    case 5:
      return Checkpoint(subject, fence, payload, ms, now_ms, limits).action;
    default: {
      ConsumeRequest request;
      request.by = absl::string_view(payload).substr(0, 64);
      return Consume(subject, request, now_ms, limits, [] { return TokenOrigin::kLive; }).action;
    }
  }
}

// Fields at random; lines of bytes alone seldom are records.
Record Drawn(Input& input, absl::string_view payload) {
  const auto number = [&] { return static_cast<int64_t>(input.Number() >> 1); };
  Record r;
  r.state = static_cast<RecordState>(input.Below(4));
  const uint8_t has = input.Byte();
  r.stop = (has & 1) != 0;
  r.has_after = (has & 2) != 0;
  r.has_code = (has & 4) != 0;
  r.has_token = (has & 8) != 0;
  r.has_digest = (has & 16) != 0;
  r.has_payload = (has & 32) != 0;
  r.claim = input.Text(64);
  r.has_claim = !r.claim.empty();
  r.fingerprint = input.Text(64);
  r.has_fingerprint = !r.fingerprint.empty();
  r.fence = static_cast<uint64_t>(number());
  r.attempt = static_cast<uint64_t>(number());
  r.since_ms = number();
  r.lease_end_ms = number();
  r.lease_ms = number();
  r.keep_ms = number();
  if (r.has_after) r.after_ms = number();
  if (r.has_code) r.code = static_cast<int64_t>(input.Number());
  if (r.has_token) r.token = input.Text(40);
  if (r.has_token && input.Flag()) r.token_expiry_ms = number();
  if (r.has_digest) r.digest = ResultDigest(payload);
  if (r.has_payload) r.payload = payload;
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, size);
  const bool drawn = input.Flag();
  Input commands(data + size / 2, size - size / 2);
  const int64_t deadline_ms =
      input.Flag() ? static_cast<int64_t>(input.Number() >> 1) : kNoDeadline;
  std::string text, scratch;
  if (drawn) {
    const Record record = Drawn(input, "payload");
    text = TextOf(record);
    RequireSamePacked(record, deadline_ms, text);
    // The deadline that tells `since`.
    RequireSamePacked(record,
                      static_cast<int64_t>(static_cast<uint64_t>(record.since_ms) +
                                           static_cast<uint64_t>(record.keep_ms)),
                      text);
  } else {
    text = std::string(input.Rest());
  }
  Subject subject;
  const ParseVerdict verdict = ParseText(text, scratch, subject.record);
  Require((verdict == ParseVerdict::kNoRecord) != LooksLikeRecord(text));
  if (verdict != ParseVerdict::kRecord) return 0;
  Require(TextOf(subject.record) == text);
  RequireSamePacked(subject.record, deadline_ms, text);
  // A change that keeps the length is another record, or none.
  std::string other = text;
  const size_t at = commands.Below(65536) % other.size();
  other[at] = static_cast<char>(other[at] ^ (1 << commands.Below(8)));
  Record changed;
  std::string other_scratch;
  if (ParseText(other, other_scratch, changed) == ParseVerdict::kRecord)
    Require(TextOf(changed) == other);

  subject.kind = Subject::Kind::kRecord;
  subject.deadline_ms = deadline_ms;
  std::array<std::string, 4> payloads;
  for (std::string& payload : payloads) {
    const Action action = Command(subject, commands, payload);
    if (action.kind == Action::Kind::kSetPlain) Require(action.plain == subject.record.token);
    if (action.kind != Action::Kind::kSetRecord) continue;
    RequireRecord(action.record);
    subject.record = action.record;
    subject.deadline_ms = action.deadline_ms;
  }
  return 0;
}
