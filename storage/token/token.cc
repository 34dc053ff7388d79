// Issues and reads tokens.
#include "storage/token/token.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <atomic>
#include <cstring>

#include "storage/token/random.h"

namespace idemd::storage {
namespace {

constexpr size_t kExpiryBytes = 6;
constexpr size_t kRandomBytes = 8;
constexpr size_t kTagBytes = 10;
constexpr size_t kTokenBytes = kExpiryBytes + kRandomBytes + kTagBytes;
constexpr size_t kMacBytes = 32;  // HMAC-SHA256, cut to kTagBytes
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

struct MacDeleter {
  void operator()(EVP_MAC_CTX* ctx) const { EVP_MAC_CTX_free(ctx); }
};
using MacContext = std::unique_ptr<EVP_MAC_CTX, MacDeleter>;

}  // namespace

// One context with the key set up, from which each thread takes a copy: setting the key up again
// would cost as much as the MAC itself. `id` tells the mints of a process apart, so that a thread's
// copy is never used for another key.
struct TokenMint::Impl {
  MacContext keyed;
  uint64_t id = 0;

  // A context of this thread that is ready for a new message.
  EVP_MAC_CTX* ThreadContext() const {
    struct Slot {
      uint64_t id = 0;
      MacContext ctx;
    };
    thread_local Slot slot;
    if (slot.id != id && keyed != nullptr) {
      slot.ctx.reset(EVP_MAC_CTX_dup(keyed.get()));
      slot.id = slot.ctx == nullptr ? 0 : id;
    }
    return slot.id == id ? slot.ctx.get() : nullptr;
  }

  // The tag of expiry and random, for a database and prefix. Each part is as long as its length
  // says, so that no two different questions are the same message.
  bool Tag(uint32_t db, absl::string_view prefix, const uint8_t* expiry_and_random,
           uint8_t* tag) const {
    EVP_MAC_CTX* ctx = ThreadContext();
    if (ctx == nullptr) return false;
    uint8_t head[12];
    BigEndian(db, head, 4);
    BigEndian(prefix.size(), head + 4, 8);
    uint8_t mac[kMacBytes];
    size_t mac_bytes = 0;
    // Init without a key starts over with the one that the context has.
    if (EVP_MAC_init(ctx, nullptr, 0, nullptr) != 1 ||
        EVP_MAC_update(ctx, head, sizeof head) != 1 ||
        EVP_MAC_update(ctx, reinterpret_cast<const uint8_t*>(prefix.data()), prefix.size()) != 1 ||
        EVP_MAC_update(ctx, expiry_and_random, kExpiryBytes + kRandomBytes) != 1 ||
        EVP_MAC_final(ctx, mac, &mac_bytes, sizeof mac) != 1 || mac_bytes != sizeof mac) {
      return false;
    }
    std::memcpy(tag, mac, kTagBytes);
    return true;
  }
};

TokenMint::TokenMint(const TokenKey& key) : impl_(std::make_unique<Impl>()) {
  static std::atomic<uint64_t> next_id{1};
  impl_->id = next_id.fetch_add(1, std::memory_order_relaxed);
  EVP_MAC* hmac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
  impl_->keyed.reset(EVP_MAC_CTX_new(hmac));
  EVP_MAC_free(hmac);
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      OSSL_PARAM_construct_end(),
  };
  // Without its context a mint issues nothing and recognises nothing.
  if (impl_->keyed != nullptr &&
      EVP_MAC_init(impl_->keyed.get(), key.data(), key.size(), params) != 1) {
    impl_->keyed.reset();
  }
}

TokenMint::~TokenMint() = default;

void TokenMint::SetKey(const TokenKey& key) {
  TokenMint fresh(key);
  impl_.swap(fresh.impl_);
}

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
  if (!impl_->Tag(db, prefix, bytes, bytes + kExpiryBytes + kRandomBytes)) return false;
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
  if (!impl_->Tag(db, key.substr(0, prefix_bytes), bytes, tag)) return reading;
  if (CRYPTO_memcmp(tag, bytes + kExpiryBytes + kRandomBytes, kTagBytes) != 0) return reading;
  reading.issued = true;
  for (size_t i = 0; i < kExpiryBytes; ++i) reading.expiry_ms = reading.expiry_ms << 8 | bytes[i];
  return reading;
}

}  // namespace idemd::storage
