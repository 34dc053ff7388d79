// The per-thread pool of random bytes.
#include "storage/token/random.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "storage/token/token.h"

namespace idemd::storage {
namespace {

// Large enough that the generator's own cost is shared by hundreds of tokens, small enough to stay
// in the cache.
constexpr size_t kPoolBytes = 4096;

struct Pool {
  uint8_t bytes[kPoolBytes];
  size_t used = kPoolBytes;
};

}  // namespace

bool FillRandom(uint8_t* out, size_t bytes) {
  thread_local Pool pool;
  while (bytes > 0) {
    if (pool.used == kPoolBytes) {
      if (RAND_bytes(pool.bytes, static_cast<int>(kPoolBytes)) != 1) {
        pool.used = kPoolBytes;
        return false;
      }
      pool.used = 0;
    }
    const size_t n = std::min(bytes, kPoolBytes - pool.used);
    std::memcpy(out, pool.bytes + pool.used, n);
    // What was handed out is not kept: a later look at this memory must not show live tokens.
    OPENSSL_cleanse(pool.bytes + pool.used, n);
    pool.used += n;
    out += n;
    bytes -= n;
  }
  return true;
}

void FillRandomOrDie(uint8_t* out, size_t bytes) {
  if (FillRandom(out, bytes)) return;
  std::fputs("idemd: the system gives no random bytes\n", stderr);
  std::abort();
}

std::string RandomHex(size_t chars) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text(chars, '\0');
  for (char& c : text) {
    uint8_t byte = 0;
    FillRandomOrDie(&byte, 1);
    c = kHex[byte & 15];
  }
  return text;
}

uint64_t RandomU64() {
  uint8_t bytes[8];
  FillRandomOrDie(bytes, sizeof bytes);
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace idemd::storage
