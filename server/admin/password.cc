// Passwords, with OpenSSL's digests.
#include "server/admin/password.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"

namespace idemd::server {

std::array<unsigned char, 32> PasswordDigest(absl::string_view password) {
  std::array<unsigned char, 32> digest{};
  unsigned int size = 0;
  if (EVP_Digest(password.data(), password.size(), digest.data(), &size, EVP_sha256(), nullptr) !=
          1 ||
      size != digest.size()) {
    std::fputs("SHA-256 is not available\n", stderr);
    std::abort();
  }
  return digest;
}

std::string PasswordDigestHex(absl::string_view password) {
  const std::array<unsigned char, 32> digest = PasswordDigest(password);
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

bool SamePassword(absl::string_view given, absl::string_view expected) {
  const std::array<unsigned char, 32> a = PasswordDigest(given);
  const std::array<unsigned char, 32> b = PasswordDigest(expected);
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string RandomPassword(size_t digits) {
  std::string bytes((digits + 1) / 2, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) !=
      1) {
    return "";
  }
  std::string hex = absl::BytesToHexString(bytes);
  hex.resize(digits);
  return hex;
}

}  // namespace idemd::server
