// Issues and reads tokens.
#include "storage/token/token.h"

// OpenSSL 3 wants MACs to go through EVP, where these two compressions cost 290 ns instead of 130 and every thread needs a context.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstring>

#include "storage/token/random.h"

namespace idemd::storage {
namespace {

constexpr size_t kExpiryBytes = 6;
constexpr size_t kRandomBytes = 8;
constexpr size_t kTagBytes = 10;
constexpr size_t kTokenBytes = kExpiryBytes + kRandomBytes + kTagBytes;
constexpr size_t kBlockBytes = 64;  // of SHA-256
static_assert(kTokenBytes * 4 == kTokenChars * 3, "24 bytes are 32 characters of base64url");

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void Encode(const uint8_t* bytes, char* out) {
  for (size_t i = 0; i < kTokenBytes; i += 3) {
    const uint32_t v = static_cast<uint32_t>(bytes[i] << 16 | bytes[i + 1] << 8 | bytes[i + 2]);
    *out++ = kAlphabet[v >> 18];
    *out++ = kAlphabet[v >> 12 & 63];
    *out++ = kAlphabet[v >> 6 & 63];
    *out++ = kAlphabet[v & 63];
  }
}

struct DecodeTable {
  std::array<int8_t, 256> value;
  constexpr DecodeTable() : value() {
    for (auto& v : value) v = -1;
    for (int8_t i = 0; i < 64; ++i) value[static_cast<unsigned char>(kAlphabet[i])] = i;
  }
};
constexpr DecodeTable kDecode;

// 32 characters are 24 bytes without a bit left over, so that each token has one spelling.
bool Decode(absl::string_view text, uint8_t* bytes) {
  for (size_t i = 0; i < kTokenChars; i += 4) {
    int32_t v = 0;
    int32_t bad = 0;
    for (size_t j = 0; j < 4; ++j) {
      const int32_t digit = kDecode.value[static_cast<unsigned char>(text[i + j])];
      bad |= digit;
      v = v << 6 | (digit & 63);
    }
    if (bad < 0) return false;
    *bytes++ = static_cast<uint8_t>(v >> 16);
    *bytes++ = static_cast<uint8_t>(v >> 8 & 255);
    *bytes++ = static_cast<uint8_t>(v & 255);
  }
  return true;
}

void BigEndian(uint64_t value, uint8_t* out, size_t bytes) {
  for (size_t i = bytes; i-- > 0; value >>= 8) out[i] = static_cast<uint8_t>(value & 255);
}

// SHA-256 over one block: `key`, each byte changed by `pad`.
SHA256_CTX Keyed(const TokenKey& key, uint8_t pad) {
  uint8_t block[kBlockBytes];
  std::memset(block, pad, sizeof block);
  for (size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, block, sizeof block);
  OPENSSL_cleanse(block, sizeof block);
  return state;
}

}  // namespace

// HMAC (RFC 2104) over SHA-256: what both of its hashes are after their first block, the key, is kept.
struct TokenMint::Impl {
  explicit Impl(const TokenKey& key) : inner(Keyed(key, 0x36)), outer(Keyed(key, 0x5c)) {}
  ~Impl() {
    OPENSSL_cleanse(&inner, sizeof inner);
    OPENSSL_cleanse(&outer, sizeof outer);
  }
  SHA256_CTX inner, outer;

  // The tag of expiry and random, for a database and prefix. Each part is as long as its length
  // says, so that no two different questions are the same message.
  void Tag(uint32_t db, absl::string_view prefix, const uint8_t* expiry_and_random,
           uint8_t* tag) const {
    uint8_t head[12];
    BigEndian(db, head, 4);
    BigEndian(prefix.size(), head + 4, 8);
    uint8_t mac[SHA256_DIGEST_LENGTH];
    SHA256_CTX state = inner;
    SHA256_Update(&state, head, sizeof head);
    SHA256_Update(&state, prefix.data(), prefix.size());
    SHA256_Update(&state, expiry_and_random, kExpiryBytes + kRandomBytes);
    SHA256_Final(mac, &state);
    state = outer;
    SHA256_Update(&state, mac, sizeof mac);
    SHA256_Final(mac, &state);
    std::memcpy(tag, mac, kTagBytes);
  }
};

TokenMint::TokenMint(const TokenKey& key) : impl_(std::make_unique<Impl>(key)) {}
TokenMint::~TokenMint() = default;

void TokenMint::SetKey(const TokenKey& key) { impl_ = std::make_unique<Impl>(key); }

TokenKey TokenMint::NewKey() {
  TokenKey key;
  FillRandomOrDie(key.data(), key.size());
  return key;
}

bool TokenMint::Issue(uint32_t db, absl::string_view prefix, int64_t expiry_ms, char* out) const {
  if (expiry_ms < 0 || expiry_ms > kTokenExpiryMax) return false;
  uint8_t bytes[kTokenBytes];
  BigEndian(static_cast<uint64_t>(expiry_ms), bytes, kExpiryBytes);
  if (!FillRandom(bytes + kExpiryBytes, kRandomBytes)) return false;
  impl_->Tag(db, prefix, bytes, bytes + kExpiryBytes + kRandomBytes);
  Encode(bytes, out);
  return true;
}

TokenReading TokenMint::Read(uint32_t db, absl::string_view key) const {
  TokenReading reading;
  if (key.size() < kTokenChars) return reading;
  const size_t prefix_bytes = key.size() - kTokenChars;
  uint8_t bytes[kTokenBytes];
  if (!Decode(key.substr(prefix_bytes), bytes)) return reading;
  uint8_t tag[kTagBytes];
  impl_->Tag(db, key.substr(0, prefix_bytes), bytes, tag);
  if (CRYPTO_memcmp(tag, bytes + kExpiryBytes + kRandomBytes, kTagBytes) != 0) return reading;
  reading.issued = true;
  for (size_t i = 0; i < kExpiryBytes; ++i) reading.expiry_ms = reading.expiry_ms << 8 | bytes[i];
  return reading;
}

}  // namespace idemd::storage
