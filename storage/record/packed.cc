// A record as it lies in memory: flags, then numbers as varints, then the byte strings.
//
//   0       2
//   flags   [claim n, fp n] fence [since] [attempt] [lease] lease-ms keep-ms [after] [code] [token n] [token-expiry]
//   [digest: 16] claim fingerprint token payload
//
// What the usual record implies is left out, and the flags say so: a first attempt; a claim and a fingerprint of 16 bytes;
// a lease that ends lease-ms after `since`; a `since` that lies keep-ms before the deadline; whole seconds are written as
// seconds. Times are written as their distance from `since`, fences as that from the clock's floor at `since`. So a pending
// record with a 16-byte claim and fingerprint takes 44 bytes instead of 112 with plain words.
#include <cstring>
#include <utility>

#include "storage/fence.h"
#include "storage/record/record.h"
#include "storage/varint.h"
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
constexpr unsigned kSizes = 1u << 9;         // claim n and fp n are written; else both have kUsualBytes
constexpr unsigned kSince = 1u << 10;        // since is written; else it is the deadline less keep-ms
constexpr unsigned kAttempt = 1u << 11;      // attempt is written; else it is 1
constexpr unsigned kLeaseEnd = 1u << 12;     // lease is written; else it is since and lease-ms
constexpr unsigned kSecondsLease = 1u << 13;
constexpr unsigned kSecondsKeep = 1u << 14;

constexpr size_t kFlagsBytes = 2;
constexpr size_t kUsualBytes = 16;

uint64_t ZigZag(int64_t v) {
  return (static_cast<uint64_t>(v) << 1) ^ static_cast<uint64_t>(v >> 63);
}
int64_t UnZigZag(uint64_t v) { return static_cast<int64_t>(v >> 1) ^ -static_cast<int64_t>(v & 1); }

struct SizeSink {
  size_t bytes = kFlagsBytes;
  void Varint(uint64_t v) { bytes += VarintBytes(v); }
  void Bytes(const void*, size_t n) { bytes += n; }
};

struct ByteSink {
  char* at;
  void Varint(uint64_t v) { at = WriteVarint(at, v); }
  void Bytes(const void* from, size_t n) {
    if (n == 0) return;
    std::memcpy(at, from, n);
    at += n;
  }
};

// Adds as numbers without a sign do: no sum overflows, and what was subtracted is added again.
int64_t Plus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t Minus(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b)); }

bool WholeSeconds(int64_t ms) { return ms % 1000 == 0; }

unsigned FlagsOf(const Record& r, int64_t deadline_ms) {
  unsigned flags = static_cast<unsigned>(r.state);
  if (r.stop) flags |= kStop;
  if (r.has_after) flags |= kAfter;
  if (r.has_code) flags |= kCode;
  if (r.has_token) flags |= kToken;
  if (r.has_token && r.token_expiry_ms != kNoDeadline) flags |= kTokenExpiry;
  if (r.has_digest) flags |= kDigest;
  if (r.has_payload) flags |= kPayload;
  // A claim or fingerprint that is there has 1 to 64 bytes, so that 0 says that there is none.
  if (!r.has_claim || r.claim.size() != kUsualBytes || !r.has_fingerprint || r.fingerprint.size() != kUsualBytes)
    flags |= kSizes;
  if (deadline_ms == kNoDeadline || Minus(deadline_ms, r.keep_ms) != r.since_ms) flags |= kSince;
  if (r.attempt != 1) flags |= kAttempt;
  if (Plus(r.since_ms, r.lease_ms) != r.lease_end_ms) flags |= kLeaseEnd;
  if (WholeSeconds(r.lease_ms)) flags |= kSecondsLease;
  if (WholeSeconds(r.keep_ms)) flags |= kSecondsKeep;
  return flags;
}

// The part behind the flags; one function for measuring and writing, so that they cannot disagree.
template <class Sink>
void WriteBody(const Record& r, unsigned flags, Sink& sink) {
  if ((flags & kSizes) != 0) {
    sink.Varint(r.has_claim ? r.claim.size() : 0);
    sink.Varint(r.has_fingerprint ? r.fingerprint.size() : 0);
  }
  sink.Varint(ZigZag(static_cast<int64_t>(r.fence - FenceFloor(r.since_ms))));
  if ((flags & kSince) != 0) sink.Varint(static_cast<uint64_t>(r.since_ms));
  if ((flags & kAttempt) != 0) sink.Varint(r.attempt);
  if ((flags & kLeaseEnd) != 0) sink.Varint(ZigZag(Minus(r.lease_end_ms, r.since_ms)));
  sink.Varint(static_cast<uint64_t>((flags & kSecondsLease) != 0 ? r.lease_ms / 1000 : r.lease_ms));
  sink.Varint(static_cast<uint64_t>((flags & kSecondsKeep) != 0 ? r.keep_ms / 1000 : r.keep_ms));
  if (r.has_after) sink.Varint(ZigZag(Minus(r.after_ms, r.since_ms)));
  if (r.has_code) sink.Varint(ZigZag(r.code));
  if (r.has_token) {
    sink.Varint(r.token.size());
    if ((flags & kTokenExpiry) != 0) sink.Varint(ZigZag(Minus(r.token_expiry_ms, r.since_ms)));
  }
  if (r.has_digest) sink.Bytes(r.digest.data(), r.digest.size());
  if (r.has_claim) sink.Bytes(r.claim.data(), r.claim.size());
  if (r.has_fingerprint) sink.Bytes(r.fingerprint.data(), r.fingerprint.size());
  if (r.has_token) sink.Bytes(r.token.data(), r.token.size());
  if (r.has_payload) sink.Bytes(r.payload.data(), r.payload.size());
}

struct ByteSource {
  const char* at;
  uint64_t Varint() { return ReadVarint(&at); }
  absl::string_view Bytes(size_t n) {
    const absl::string_view bytes(at, n);
    at += n;
    return bytes;
  }
};

}  // namespace

size_t PackedSize(const Record& record, int64_t deadline_ms) {
  SizeSink sink;
  WriteBody(record, FlagsOf(record, deadline_ms), sink);
  return sink.bytes;
}

size_t PackedSizeMax(const Record& record) {
  constexpr size_t kNumbersMax = 12;  // of WriteBody()
  constexpr size_t kVarintBytesMax = 10;
  return kFlagsBytes + kNumbersMax * kVarintBytesMax + record.digest.size() + record.claim.size() + record.fingerprint.size() +
         record.token.size() + record.payload.size();
}

char* Pack(const Record& record, int64_t deadline_ms, char* out) {
  const unsigned flags = FlagsOf(record, deadline_ms);
  const auto flags16 = static_cast<uint16_t>(flags);
  std::memcpy(out, &flags16, kFlagsBytes);
  ByteSink sink{out + kFlagsBytes};
  WriteBody(record, flags, sink);
  return sink.at;
}

Record Unpack(absl::string_view packed, int64_t deadline_ms) {
  uint16_t flags = 0;
  std::memcpy(&flags, packed.data(), kFlagsBytes);
  Record r;
  r.state = static_cast<RecordState>(flags & 3u);
  r.stop = (flags & kStop) != 0;
  r.has_after = (flags & kAfter) != 0;
  r.has_code = (flags & kCode) != 0;
  r.has_token = (flags & kToken) != 0;
  r.has_digest = (flags & kDigest) != 0;
  r.has_payload = (flags & kPayload) != 0;

  ByteSource source{packed.data() + kFlagsBytes};
  size_t claim_bytes = kUsualBytes, fingerprint_bytes = kUsualBytes;
  if ((flags & kSizes) != 0) {
    claim_bytes = static_cast<size_t>(source.Varint());
    fingerprint_bytes = static_cast<size_t>(source.Varint());
  }
  r.has_claim = claim_bytes != 0;
  r.has_fingerprint = fingerprint_bytes != 0;
  const int64_t fence_distance = UnZigZag(source.Varint());
  if ((flags & kSince) != 0) r.since_ms = static_cast<int64_t>(source.Varint());
  r.attempt = (flags & kAttempt) != 0 ? source.Varint() : 1;
  const int64_t lease_distance_ms = (flags & kLeaseEnd) != 0 ? UnZigZag(source.Varint()) : 0;
  r.lease_ms = static_cast<int64_t>(source.Varint());
  if ((flags & kSecondsLease) != 0) r.lease_ms *= 1000;
  r.keep_ms = static_cast<int64_t>(source.Varint());
  if ((flags & kSecondsKeep) != 0) r.keep_ms *= 1000;
  if ((flags & kSince) == 0) r.since_ms = Minus(deadline_ms, r.keep_ms);
  r.fence = FenceFloor(r.since_ms) + static_cast<uint64_t>(fence_distance);
  r.lease_end_ms = Plus(r.since_ms, (flags & kLeaseEnd) != 0 ? lease_distance_ms : r.lease_ms);
  if (r.has_after) r.after_ms = Plus(r.since_ms, UnZigZag(source.Varint()));
  if (r.has_code) r.code = UnZigZag(source.Varint());
  size_t token_bytes = 0;
  if (r.has_token) {
    token_bytes = static_cast<size_t>(source.Varint());
    if ((flags & kTokenExpiry) != 0) r.token_expiry_ms = Plus(r.since_ms, UnZigZag(source.Varint()));
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

std::array<uint8_t, 16> ResultDigest(absl::string_view result) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(result.data(), result.size()));
  std::array<uint8_t, 16> digest;
  static_assert(sizeof canonical.digest == sizeof digest);
  std::memcpy(digest.data(), canonical.digest, digest.size());
  return digest;
}

}  // namespace idemd::storage
