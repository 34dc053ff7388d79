// A record as it lies in memory: a fixed head, then numbers as varints, then the byte strings.
//
//   0         4       6         7      8       16
//   replays   flags   claim n   fp n   fence   since attempt lease lease-ms keep-ms [after] [code]
//   [token n] [token-expiry] [digest: 16] claim fingerprint token payload
//
// Times are written as their distance from `since` (zigzag), which is short for a reservation of
// usual length: with a 16-byte claim and fingerprint a pending record takes 65 bytes instead of 112
// with plain words.
#include <cstring>
#include <new>

#include "storage/record/record.h"
#include "xxhash.h"

namespace idemd::storage {
namespace {

// Flags, one bit each above the two of the state.
constexpr unsigned kStop = 1u << 2;
constexpr unsigned kAfter = 1u << 3;
constexpr unsigned kCode = 1u << 4;
constexpr unsigned kToken = 1u << 5;
constexpr unsigned kTokenExpiry = 1u << 6;
constexpr unsigned kDigest = 1u << 7;
constexpr unsigned kPayload = 1u << 8;

constexpr size_t kFlagsAt = 4;
constexpr size_t kClaimSizeAt = 6;
constexpr size_t kFingerprintSizeAt = 7;
constexpr size_t kFenceAt = 8;
constexpr size_t kHeadBytes = 16;

uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
int64_t UnZigZag(uint64_t v) { return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1); }

size_t VarintSize(uint64_t v) {
  return v == 0 ? 1 : (static_cast<size_t>(64 - __builtin_clzll(v)) + 6) / 7;
}

struct SizeSink {
  size_t bytes = kHeadBytes;
  void Varint(uint64_t v) { bytes += VarintSize(v); }
  void Bytes(const void*, size_t n) { bytes += n; }
};

struct ByteSink {
  char* at;
  void Varint(uint64_t v) {
    while (v >= 0x80) {
      *at++ = static_cast<char>(v | 0x80);
      v >>= 7;
    }
    *at++ = static_cast<char>(v);
  }
  void Bytes(const void* from, size_t n) {
    if (n == 0) return;
    std::memcpy(at, from, n);
    at += n;
  }
};

// The part behind the head; one function for measuring and writing, so that they cannot disagree.
template <class Sink>
void WriteBody(const Record& r, Sink& sink) {
  sink.Varint(static_cast<uint64_t>(r.since_ms));
  sink.Varint(r.attempt);
  sink.Varint(ZigZag(r.lease_end_ms - r.since_ms));
  sink.Varint(static_cast<uint64_t>(r.lease_ms));
  sink.Varint(static_cast<uint64_t>(r.keep_ms));
  if (r.has_after) sink.Varint(ZigZag(r.after_ms - r.since_ms));
  if (r.has_code) sink.Varint(ZigZag(r.code));
  if (r.has_token) {
    sink.Varint(r.token.size());
    if (r.token_expiry_ms != kNoDeadline) sink.Varint(ZigZag(r.token_expiry_ms - r.since_ms));
  }
  if (r.has_digest) sink.Bytes(r.digest.data(), r.digest.size());
  if (r.has_claim) sink.Bytes(r.claim.data(), r.claim.size());
  if (r.has_fingerprint) sink.Bytes(r.fingerprint.data(), r.fingerprint.size());
  if (r.has_token) sink.Bytes(r.token.data(), r.token.size());
  if (r.has_payload) sink.Bytes(r.payload.data(), r.payload.size());
}

struct ByteSource {
  const char* at;
  uint64_t Varint() {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(*at++);
      v |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return v;
    }
  }
  absl::string_view Bytes(size_t n) {
    const absl::string_view bytes(at, n);
    at += n;
    return bytes;
  }
};

}  // namespace

size_t PackedSize(const Record& record) {
  SizeSink sink;
  WriteBody(record, sink);
  return sink.bytes;
}

void Pack(const Record& record, char* out) {
  unsigned flags = static_cast<unsigned>(record.state);
  if (record.stop) flags |= kStop;
  if (record.has_after) flags |= kAfter;
  if (record.has_code) flags |= kCode;
  if (record.has_token) flags |= kToken;
  if (record.has_token && record.token_expiry_ms != kNoDeadline) flags |= kTokenExpiry;
  if (record.has_digest) flags |= kDigest;
  if (record.has_payload) flags |= kPayload;
  new (out) std::atomic<uint32_t>(0);
  const auto flags16 = static_cast<uint16_t>(flags);
  std::memcpy(out + kFlagsAt, &flags16, sizeof flags16);
  // A claim or fingerprint that is there has 1 to 64 bytes, so that 0 says that there is none.
  out[kClaimSizeAt] = static_cast<char>(record.has_claim ? record.claim.size() : 0);
  out[kFingerprintSizeAt] =
      static_cast<char>(record.has_fingerprint ? record.fingerprint.size() : 0);
  std::memcpy(out + kFenceAt, &record.fence, sizeof record.fence);
  ByteSink sink{out + kHeadBytes};
  WriteBody(record, sink);
}

Record Unpack(absl::string_view packed) {
  const char* head = packed.data();
  uint16_t flags = 0;
  std::memcpy(&flags, head + kFlagsAt, sizeof flags);
  const auto claim_bytes = static_cast<unsigned char>(head[kClaimSizeAt]);
  const auto fingerprint_bytes = static_cast<unsigned char>(head[kFingerprintSizeAt]);
  Record r;
  r.state = static_cast<RecordState>(flags & 3u);
  r.stop = (flags & kStop) != 0;
  r.has_claim = claim_bytes != 0;
  r.has_fingerprint = fingerprint_bytes != 0;
  r.has_after = (flags & kAfter) != 0;
  r.has_code = (flags & kCode) != 0;
  r.has_token = (flags & kToken) != 0;
  r.has_digest = (flags & kDigest) != 0;
  r.has_payload = (flags & kPayload) != 0;
  std::memcpy(&r.fence, head + kFenceAt, sizeof r.fence);

  ByteSource source{head + kHeadBytes};
  r.since_ms = static_cast<int64_t>(source.Varint());
  r.attempt = source.Varint();
  r.lease_end_ms = r.since_ms + UnZigZag(source.Varint());
  r.lease_ms = static_cast<int64_t>(source.Varint());
  r.keep_ms = static_cast<int64_t>(source.Varint());
  if (r.has_after) r.after_ms = r.since_ms + UnZigZag(source.Varint());
  if (r.has_code) r.code = UnZigZag(source.Varint());
  size_t token_bytes = 0;
  if (r.has_token) {
    token_bytes = static_cast<size_t>(source.Varint());
    if ((flags & kTokenExpiry) != 0) r.token_expiry_ms = r.since_ms + UnZigZag(source.Varint());
  }
  if (r.has_digest) std::memcpy(r.digest.data(), source.Bytes(16).data(), 16);
  r.claim = source.Bytes(claim_bytes);
  r.fingerprint = source.Bytes(fingerprint_bytes);
  r.token = source.Bytes(token_bytes);
  if (r.has_payload) {
    r.payload = source.Bytes(packed.size() - static_cast<size_t>(source.at - packed.data()));
  }
  return r;
}

std::atomic<uint32_t>& PackedReplays(const char* packed) {
  // The counter is the only thing in a published record that moves; see entry.h, kRecord.
  return *reinterpret_cast<std::atomic<uint32_t>*>(const_cast<char*>(packed));
}

std::array<uint8_t, 16> ResultDigest(absl::string_view result) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(result.data(), result.size()));
  std::array<uint8_t, 16> digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

}  // namespace idemd::storage
