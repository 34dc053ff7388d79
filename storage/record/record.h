// A reservation's record: its fields, its packed form in memory, and the one-line text that everybody else sees.
//
// The text form is the contract (commands page, "The record as a string"); the packed form is ours alone and may change
// between versions. Text -> Record -> text gives the same bytes, or the text is no record.
// Lifetime  a Record's views point into what it was read from (packed bytes, text, or a request).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "storage/clock.h"

namespace idemd::storage {

// What a record says of itself; lapsed and unknown are judgements made with the time (life.h).
enum class RecordState : uint8_t { kPending, kFailed, kDone, kConsumed };

struct Record {
  RecordState state = RecordState::kPending;
  bool stop = false;          // onlapse=stop
  bool has_claim = false;
  bool has_fingerprint = false;
  bool has_after = false;     // failed: the retry time; released: 0; done: it was late
  bool has_code = false;      // the text shows code= (done); code is 0 otherwise
  bool has_token = false;     // it remembers the token that it was made from
  bool has_digest = false;    // done, and the result was not kept
  bool has_payload = false;   // payload=raw
  uint64_t fence = 0;
  uint64_t attempt = 0;
  int64_t since_ms = 0;        // first reservation
  int64_t lease_end_ms = 0;    // lease=
  int64_t lease_ms = 0;        // lease-ms=: the length last asked for
  int64_t keep_ms = 0;         // keep-ms=: the lifetime as asked for; 0: absolute or FOREVER
  int64_t after_ms = 0;
  int64_t code = 0;
  int64_t token_expiry_ms = kNoDeadline;  // token-expiry=, left out when the token had no lifetime
  absl::string_view claim;
  absl::string_view fingerprint;
  absl::string_view token;
  absl::string_view payload;   // checkpoint (pending, failed) or result (done)
  std::array<uint8_t, 16> digest{};  // XXH3-128, canonical (big-endian) byte order
};

// A pending record that was released: the claim is given up, the next caller takes over at once.
inline bool Released(const Record& r) {
  return r.state == RecordState::kPending && r.has_after && !r.has_claim;
}

// --- packed; `deadline_ms` is the key's, which a packed record leans on: it is unpacked with the one it was packed with.
size_t PackedSize(const Record& record, int64_t deadline_ms);
size_t PackedSizeMax(const Record& record);  // no more than that, whatever the deadline is
// Returns the place behind it.
char* Pack(const Record& record, int64_t deadline_ms, char* out);
Record Unpack(absl::string_view packed, int64_t deadline_ms);

// --- text
void AppendText(const Record& record, std::string& out);
size_t TextSize(const Record& record);

enum class ParseVerdict : uint8_t {
  kNoRecord,  // does not begin with "idem/": an ordinary string
  kRecord,
  kDamaged,   // begins with "idem/" and is no record of this version
};
// On kRecord, `record`'s views point into `text` and, where percent-decoding was needed, into `scratch`.
ParseVerdict ParseText(absl::string_view text, std::string& scratch, Record& record);
inline bool LooksLikeRecord(absl::string_view text) { return text.substr(0, 5) == "idem/"; }

std::array<uint8_t, 16> ResultDigest(absl::string_view result);

}  // namespace idemd::storage
