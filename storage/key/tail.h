// Tails: the part of a key that is a UUID, 32 hexadecimal digits, 22 characters of base64url or a
// token, as bytes.
//
//   "order:" "0190f3a2-7c1e-7b3a-9c55-0242ac120002"  ->  kUuid, a prefix of 6 bytes, 16 bytes
//
// A UUID is 36 characters but 16 bytes, and 16 bytes fit into a line of the table. A reading is
// exact: prefix, kind and words give the very text back, and each text has one reading. So two keys
// are equal when their readings are, and nothing is ever identified by a hash.
//
// Threads   Pure functions; from any thread.
// Lifetime  Nothing is kept of the text.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace idemd::storage {

// A text is tried as kUuid, kHex32, kToken, kBase64Url22, in this order. The numbers may stand in
// entries.
enum class TailKind : uint8_t {
  kNone = 0,         // an ordinary key: all of it is text
  kUuid = 1,         // 36 characters, 8-4-4-4-12 lower-case hexadecimal digits; 16 bytes
  kHex32 = 2,        // 32 lower-case hexadecimal digits, set off; 16 bytes
  kBase64Url22 = 3,  // 22 characters of base64url whose 4 spare bits are 0, set off; 16 bytes
  kToken = 4,        // 32 characters of base64url that begin as a token does; 24 bytes
};
inline constexpr size_t kTailKinds = 5;

inline constexpr size_t kTailWords = 3;
inline constexpr size_t kTailCharsMin = 22;
inline constexpr size_t kTailPrefixBytesMax = 255;  // what Tail::prefix_bytes holds

struct Tail {
  TailKind kind = TailKind::kNone;
  uint8_t prefix_bytes = 0;        // the key's bytes before the tail; 0 for kNone
  uint64_t word[kTailWords] = {};  // the bytes in memory order; what the kind does not need is 0

  friend bool operator==(const Tail&, const Tail&) = default;
};

// What a kind takes up as text, and as bytes. 0 for kNone.
inline constexpr uint8_t kTailCharsOf[kTailKinds] = {0, 36, 32, 22, 32};
inline constexpr uint8_t kTailBytesOf[kTailKinds] = {0, 16, 16, 16, 24};
inline constexpr size_t TailChars(TailKind kind) { return kTailCharsOf[static_cast<size_t>(kind)]; }
inline constexpr size_t TailBytes(TailKind kind) { return kTailBytesOf[static_cast<size_t>(kind)]; }

// The one reading of a key. Prefixes have at most 255 bytes. Where a kind must be set off, its
// prefix is empty or ends in one of  : / . | # } , = @ - _  (elsewhere any 22 characters at the end
// of a long word would be a tail). A token begins with an expiry of 2004..2109
// (storage/token/token.h): of other texts of 32 such characters few do.
Tail ReadLongTail(absl::string_view key);
inline Tail ReadTail(absl::string_view key) {
  if (key.size() < kTailCharsMin) return {};
  return ReadLongTail(key);
}

// Writes TailChars(kind) characters to `out`, of TailBytes(kind) bytes at `word`.
void WriteTail(TailKind kind, const uint64_t* word, char* out);

}  // namespace idemd::storage
