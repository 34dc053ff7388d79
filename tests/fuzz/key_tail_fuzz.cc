// What is read of a key's tail is written as the same text, and gives the same hash.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "storage/key/hashed_key.h"

using namespace idemd::storage;  // NOLINT: one short program

namespace {
void Require(bool holds) {
  if (!holds) std::abort();
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const HashedKey key(text);
  const Tail& tail = key.tail;
  if (tail.kind == TailKind::kNone) {
    Require(tail == Tail{});
    return 0;
  }
  Require(tail.prefix_bytes + TailChars(tail.kind) == size);
  std::string again(key.prefix());
  again.resize(size);
  WriteTail(tail.kind, tail.word, again.data() + tail.prefix_bytes);
  Require(again == text);
  Require(key.hash == HashOfTail(tail.kind, tail.word, PrefixHash(key.prefix())));
  return 0;
}
