// A member of a large sorted set, kept once: its score, its size, its bytes.
//
// Order     by score, then by the bytes of the member as memcmp() has it.
// Threads   one, or several that only read.
// Lifetime  from Make() to Free(); the index and the tree of a sorted set only point to it.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "absl/strings/string_view.h"

namespace idemd::storage {

struct ScoredMember {
  static constexpr size_t kHeadBytes = sizeof(double) + sizeof(uint32_t);
  static constexpr uint64_t kBytesMax = UINT32_MAX;

  double score;
  uint32_t size;
  // The bytes follow.

  static ScoredMember* Make(absl::string_view text, double score) {
    void* const at = std::malloc(kHeadBytes + text.size() < sizeof(ScoredMember) ? sizeof(ScoredMember)
                                                                                 : kHeadBytes + text.size());
    if (at == nullptr) throw std::bad_alloc();
    ScoredMember* const member = new (at) ScoredMember{score, static_cast<uint32_t>(text.size())};
    if (!text.empty()) std::memcpy(member->bytes(), text.data(), text.size());
    return member;
  }
  static void Free(ScoredMember* member) { std::free(member); }

  absl::string_view text() const { return {reinterpret_cast<const char*>(this) + kHeadBytes, size}; }

 private:
  char* bytes() { return reinterpret_cast<char*>(this) + kHeadBytes; }
};

// Whether the first stands before the second; for members that are not the same.
inline bool ScoredBefore(double a_score, absl::string_view a, double b_score, absl::string_view b) {
  return a_score != b_score ? a_score < b_score : a < b;
}

}  // namespace idemd::storage
