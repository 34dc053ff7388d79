// SHA1, by OpenSSL.
#include "server/script/sha1.h"

#include <openssl/sha.h>

#include "absl/strings/escaping.h"

namespace idemd::server {

std::string Sha1Hex(absl::string_view text) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), sizeof digest));
}

}  // namespace idemd::server
