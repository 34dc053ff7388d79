// Keys for the tests of storage/key/: canonical ones of every kind.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "storage/key/tail.h"
#include "tests/support/seed.h"

namespace idemd::storage {

inline constexpr TailKind kAllTails[] = {TailKind::kUuid, TailKind::kHex32, TailKind::kBase64Url22,
                                         TailKind::kToken};

// Prefixes that every kind may have.
inline const std::vector<std::string>& SamplePrefixes() {
  static const auto& prefixes = *new std::vector<std::string>{"",
                                                              ":",
                                                              "login:",
                                                              "a/b/",
                                                              "x.",
                                                              "p|",
                                                              "#",
                                                              "{tag}",
                                                              "a,",
                                                              "k=",
                                                              "user@",
                                                              "job-",
                                                              "job_",
                                                              "\xff:",
                                                              std::string("\0:", 2),
                                                              std::string(254, 'p') + ":"};
  return prefixes;
}

// A tail of random bytes; a token's begin as tokens do.
inline Tail RandomTail(TailKind kind, std::mt19937_64& random) {
  Tail tail;
  tail.kind = kind;
  for (size_t i = 0; i < TailBytes(kind) / 8; ++i) tail.word[i] = random();
  if (kind == TailKind::kToken) {
    tail.word[0] = (tail.word[0] & ~uint64_t{0xff}) | (1 + random() % 3);
  }
  return tail;
}

inline std::string TextOf(const std::string& prefix, const Tail& tail) {
  std::string text = prefix;
  text.resize(prefix.size() + TailChars(tail.kind));
  WriteTail(tail.kind, tail.word, text.data() + prefix.size());
  return text;
}

}  // namespace idemd::storage
