// A key with its hash and its tail, computed once per request.
//
// Threads   Pure but for the seed, which is drawn once per process; from any thread.
// Lifetime  A HashedKey is a view: the key's bytes must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "storage/key/tail.h"

namespace idemd::storage {

// The seed is drawn at random per process: clients choose the keys, and must not be able to choose
// the buckets.
uint64_t HashSeed();

// The hash of a key, from what an entry keeps of it (word: as in Tail). It covers all bytes: whoever can choose keys that
// differ only in what a hash leaves out chooses the bucket. All 64 bits are as good as those of a text. `kind` is not kNone.
uint64_t TextHash(absl::string_view text);  // of a key without a tail
uint64_t PrefixHash(absl::string_view prefix);
uint64_t HashOfTail(TailKind kind, const uint64_t* word, uint64_t prefix_hash);

struct HashedKey {
  absl::string_view bytes;
  uint64_t hash = 0;
  Tail tail;

  HashedKey() = default;
  explicit HashedKey(absl::string_view key);
  // With the hash that the key is known to have; saves hashing it again.
  HashedKey(absl::string_view key, uint64_t h) : bytes(key), hash(h), tail(ReadTail(key)) {}

  absl::string_view prefix() const { return bytes.substr(0, tail.prefix_bytes); }
};

}  // namespace idemd::storage
