// Writes a record as the one line that GET, the log, snapshots and replicas show.
#include <charconv>

#include "storage/record/record.h"
#include "storage/record/text_words.h"

namespace idemd::storage {
namespace {

struct SizeSink {
  size_t bytes = 0;
  void Text(absl::string_view text) { bytes += text.size(); }
  void Encoded(absl::string_view raw) {
    bytes += raw.size();
    for (char c : raw) bytes += Unreserved(static_cast<unsigned char>(c)) ? 0 : 2;
  }
};

struct StringSink {
  std::string& out;
  void Text(absl::string_view text) { out.append(text.data(), text.size()); }
  void Encoded(absl::string_view raw) {
    for (char c : raw) {
      const auto byte = static_cast<unsigned char>(c);
      if (Unreserved(byte)) {
        out.push_back(c);
      } else {
        const char encoded[] = {'%', kUpperHex[byte >> 4], kUpperHex[byte & 15]};
        out.append(encoded, sizeof encoded);
      }
    }
  }
};

template <class Sink>
void WriteNumber(Sink& sink, absl::string_view name, int64_t value) {
  char digits[20];  // INT64_MIN, sign and all
  const char* end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  sink.Text(name);
  sink.Text(absl::string_view(digits, static_cast<size_t>(end - digits)));
}

template <class Sink>
void WriteEncoded(Sink& sink, absl::string_view name, absl::string_view raw) {
  sink.Text(name);
  sink.Encoded(raw);
}

template <class Sink>
void WriteText(const Record& r, Sink& sink) {
  sink.Text("idem/1 state=");
  sink.Text(kStateWords[static_cast<size_t>(r.state)]);
  WriteNumber(sink, " fence=", static_cast<int64_t>(r.fence));
  WriteNumber(sink, " attempt=", static_cast<int64_t>(r.attempt));
  WriteNumber(sink, " since=", r.since_ms);
  WriteNumber(sink, " lease=", r.lease_end_ms);
  WriteNumber(sink, " lease-ms=", r.lease_ms);
  WriteNumber(sink, " keep-ms=", r.keep_ms);
  if (r.has_claim) WriteEncoded(sink, " claim=", r.claim);
  if (r.has_fingerprint) WriteEncoded(sink, " fp=", r.fingerprint);
  if (r.stop) sink.Text(" onlapse=stop");
  if (r.has_after) WriteNumber(sink, " after=", r.after_ms);
  if (r.has_code) WriteNumber(sink, " code=", r.code);
  if (r.has_token) {
    WriteEncoded(sink, " token=", r.token);
    if (r.token_expiry_ms != kNoDeadline) WriteNumber(sink, " token-expiry=", r.token_expiry_ms);
  }
  if (r.has_digest) {
    char hex[32];
    for (size_t i = 0; i < r.digest.size(); ++i) {
      hex[2 * i] = kLowerHex[r.digest[i] >> 4];
      hex[2 * i + 1] = kLowerHex[r.digest[i] & 15];
    }
    sink.Text(" digest=");
    sink.Text(absl::string_view(hex, sizeof hex));
  }
  sink.Text(r.has_payload ? " payload=raw\n" : " payload=none\n");
  if (r.has_payload) sink.Text(r.payload);
}

}  // namespace

void AppendText(const Record& record, std::string& out) {
  StringSink sink{out};
  WriteText(record, sink);
}

size_t TextSize(const Record& record) {
  SizeSink sink;
  WriteText(record, sink);
  return sink.bytes;
}

}  // namespace idemd::storage
