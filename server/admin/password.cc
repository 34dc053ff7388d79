// Passwords, with OpenSSL's digests and random numbers.
#include "server/admin/password.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace idemd::server {
namespace {

using Digest = std::array<unsigned char, 32>;

// Dies when there is no SHA-256, since nobody could be let in or kept out then.
Digest Sha256(absl::string_view text) {
  Digest digest{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1 ||
      size != digest.size()) {
    std::fputs("SHA-256 is not available\n", stderr);
    std::abort();
  }
  return digest;
}

std::string Hex(const unsigned char* bytes, size_t size) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes), size));
}

}  // namespace

std::string PasswordDigestHex(absl::string_view password) {
  const Digest digest = Sha256(password);
  return Hex(digest.data(), digest.size());
}

std::string RandomPassword(size_t digits) {
  std::string bytes((digits + 1) / 2, '\0');
  auto* raw = reinterpret_cast<unsigned char*>(bytes.data());
  if (RAND_bytes(raw, static_cast<int>(bytes.size())) != 1) return {};
  return Hex(raw, bytes.size()).substr(0, digits);
}

bool SamePassword(absl::string_view given, absl::string_view expected) {
  const Digest a = Sha256(given);
  const Digest b = Sha256(expected);
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

bool SameDigest(absl::string_view a, absl::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace idemd::server
