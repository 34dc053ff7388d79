// Reads and writes tails, sixteen characters at a time.
#include "storage/key/tail.h"

#include <bit>
#include <cstring>

namespace idemd::storage {
namespace {

static_assert(std::endian::native == std::endian::little,
              "a word's first byte in memory is its lowest: all packing below relies on it");

uint64_t Load(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Sixteen bytes at once, in the form that both compilers turn into vector instructions. Comparisons
// are those of signed bytes, which every machine has; so what is no ASCII counts as less than all
// that is.
using Bytes = uint8_t __attribute__((vector_size(16)));
using SignedBytes = int8_t __attribute__((vector_size(16)));
using Pairs = uint16_t __attribute__((vector_size(16)));
using Fours = uint32_t __attribute__((vector_size(16)));
using Words = uint64_t __attribute__((vector_size(16)));

Bytes Above(SignedBytes text, int8_t limit) { return reinterpret_cast<Bytes>(text > limit); }

bool AnyBit(Bytes bytes) {
  const Words words = reinterpret_cast<Words>(bytes);
  return (words[0] | words[1]) != 0;
}

// Sixteen digits to their values, a byte each. `bad` gets bits if one is no lower-case digit: what
// is no digit comes out as more than 15, or as less than 10 though it lies above '9'.
Bytes HexValues(Words digits, Bytes* bad) {
  const Bytes above_nine = Above(reinterpret_cast<SignedBytes>(digits), '9');
  const Bytes value = reinterpret_cast<Bytes>(digits) - '0' - (above_nine & ('a' - '9' - 1));
  *bad |= (value & 0xf0) | (above_nine & ~(value + 6) & 0x10);
  return value;
}

// 32 digits, in four groups of eight, to 16 bytes.
bool ReadHexGroups(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t* word) {
  Bytes bad = {};
  const Pairs ab = reinterpret_cast<Pairs>(HexValues(Words{a, b}, &bad));
  const Pairs cd = reinterpret_cast<Pairs>(HexValues(Words{c, d}, &bad));
  if (AnyBit(bad)) return false;
  // The lower byte of each pair: the first digit's value moved up, and the second's.
  const Bytes low = reinterpret_cast<Bytes>(ab << 4 | ab >> 8);
  const Bytes high = reinterpret_cast<Bytes>(cd << 4 | cd >> 8);
  const Words words = reinterpret_cast<Words>(__builtin_shufflevector(
      low, high, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
  word[0] = words[0];
  word[1] = words[1];
  return true;
}

Words HexDigits(Bytes value) {
  const Bytes above_nine = Above(reinterpret_cast<SignedBytes>(value), 9);
  return reinterpret_cast<Words>(value + '0' + (above_nine & ('a' - '9' - 1)));
}

// 16 bytes to 32 digits, in four groups of eight.
void WriteHexGroups(const uint64_t* word, uint64_t* groups) {
  const Words words = {word[0], word[1]};
  const Bytes upper = reinterpret_cast<Bytes>(words >> 4 & 0x0f0f0f0f0f0f0f0f);
  const Bytes lower = reinterpret_cast<Bytes>(words & 0x0f0f0f0f0f0f0f0f);
  const Words ab = HexDigits(__builtin_shufflevector(upper, lower, 0, 16, 1, 17, 2, 18, 3, 19, 4,
                                                     20, 5, 21, 6, 22, 7, 23));
  const Words cd = HexDigits(__builtin_shufflevector(upper, lower, 8, 24, 9, 25, 10, 26, 11, 27, 12,
                                                     28, 13, 29, 14, 30, 15, 31));
  groups[0] = ab[0];
  groups[1] = ab[1];
  groups[2] = cd[0];
  groups[3] = cd[1];
}

bool HasUuidDashes(const char* at) {
  return at[8] == '-' && at[13] == '-' && at[18] == '-' && at[23] == '-';
}

// Groups of four digits lie at both sides of a dash: the bytes before it and those behind it make
// up eight.
uint64_t AcrossDash(const char* at) {
  uint32_t before;
  uint32_t behind;
  std::memcpy(&before, at, sizeof before);
  std::memcpy(&behind, at + 5, sizeof behind);
  return before | uint64_t{behind} << 32;
}

bool ReadUuid(const char* at, uint64_t* word) {
  return ReadHexGroups(Load(at), AcrossDash(at + 9), AcrossDash(at + 19), Load(at + 28), word);
}

bool ReadHex32(const char* at, uint64_t* word) {
  return ReadHexGroups(Load(at), Load(at + 8), Load(at + 16), Load(at + 24), word);
}

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// Sixteen characters to their values, a byte each. `bad` gets bits if one is no digit of base64url.
// In ASCII, '-' is followed by 0-9, A-Z, '_' and a-z. Each range adds its step to what is to be
// added to a character, and to the least and the most that may come out, so that what lies between
// two ranges falls outside.
Bytes Base64Values(Words chars, Bytes* bad) {
  const SignedBytes text = reinterpret_cast<SignedBytes>(chars);
  const SignedBytes minus = text == '-';
  const SignedBytes above_nine = text > '9';
  const SignedBytes above_z = text > 'Z';
  const SignedBytes above_line = text > '_';
  const SignedBytes offset =
      4 + (minus & 13) + (above_nine & -69) + (above_z & 33) + (above_line & -39);
  const SignedBytes least = 52 + (above_nine & -52) + (above_z & 63) + (above_line & -37);
  const SignedBytes most = 63 + (above_nine & -38) + (above_z & 38) + (above_line & -12);
  const SignedBytes value = text + offset;
  *bad |= reinterpret_cast<Bytes>((value < least) | (value > most));
  return reinterpret_cast<Bytes>(value);
}

// Sixteen values of 6 bits to two numbers of 48, the first on top.
Words Base64Numbers(Bytes values) {
  const Pairs pairs = reinterpret_cast<Pairs>(values);
  const Fours twelves = reinterpret_cast<Fours>((pairs << 6 | pairs >> 8) & 0xfff);
  const Words twentyfours = reinterpret_cast<Words>((twelves << 12 | twelves >> 16) & 0xffffff);
  return (twentyfours << 24 | twentyfours >> 32) & 0xffffffffffff;
}

void WriteBase64Groups(const unsigned char* bytes, size_t groups, char* out) {
  for (size_t i = 0; i < groups; ++i, bytes += 3, out += 4) {
    const uint32_t v = uint32_t{bytes[0]} << 16 | uint32_t{bytes[1]} << 8 | bytes[2];
    out[0] = kAlphabet[v >> 18];
    out[1] = kAlphabet[v >> 12 & 63];
    out[2] = kAlphabet[v >> 6 & 63];
    out[3] = kAlphabet[v & 63];
  }
}

// A token's first byte is 1, 2 or 3 from 2004 to 2109, when the expiry has 41 or 42 bits: its
// second character is neither of A..P. Of ordinary keys few have an 'A' just there.
bool HasTokenExpiry(const char* at) { return at[0] == 'A' && (at[1] < 'A' || at[1] > 'P'); }

// Numbers have their first byte on top, words in memory come with it lowest.
bool ReadToken(const char* at, uint64_t* word) {
  Bytes bad = {};
  const Words first = Base64Numbers(Base64Values(Words{Load(at), Load(at + 8)}, &bad));
  const Words second = Base64Numbers(Base64Values(Words{Load(at + 16), Load(at + 24)}, &bad));
  if (AnyBit(bad)) return false;
  word[0] = __builtin_bswap64(first[0] << 16 | first[1] >> 32);
  word[1] = __builtin_bswap64(first[1] << 32 | second[0] >> 16);
  word[2] = __builtin_bswap64(second[0] << 48 | second[1]);
  return true;
}

// 22 characters are 132 bits; the last 4 are to be 0.
bool HasZeroSpareBits(char last) {
  return last == 'A' || last == 'Q' || last == 'g' || last == 'w';
}

bool ReadBase64Url22(const char* at, uint64_t* word) {
  // The last eight characters begin with two that were among the first sixteen.
  constexpr uint64_t kLast36Bits = 0xfffffffff;
  Bytes bad = {};
  const Words first = Base64Numbers(Base64Values(Words{Load(at), Load(at + 8)}, &bad));
  const uint64_t last = Load(at + 14);
  const Words second = Base64Numbers(Base64Values(Words{last, last}, &bad));
  if (AnyBit(bad)) return false;
  word[0] = __builtin_bswap64(first[0] << 16 | first[1] >> 32);
  word[1] = __builtin_bswap64(first[1] << 32 | (second[0] & kLast36Bits) >> 4);
  return true;
}

struct CharSet {
  uint64_t bits[2] = {0, 0};
  constexpr explicit CharSet(absl::string_view chars) {
    for (char c : chars) bits[c >> 6] |= uint64_t{1} << (c & 63);
  }
  bool Has(char c) const {
    const auto u = static_cast<unsigned char>(c);
    return u < 128 && (bits[u >> 6] >> (u & 63) & 1) != 0;
  }
};
constexpr CharSet kSeparators(":/.|#},=@-_");

}  // namespace

Tail ReadLongTail(absl::string_view key) {
  // The one object that is returned, so that it is built in its place: a copy would have to wait
  // for the stores to it.
  Tail tail;
  const size_t size = key.size();
  const char* const end = key.data() + size;
  const auto may_be = [&](size_t chars) {
    return size >= chars && size - chars <= kTailPrefixBytesMax;
  };
  const auto is_set_off = [&](size_t chars) {
    return size == chars || kSeparators.Has(*(end - chars - 1));
  };
  if (may_be(36) && HasUuidDashes(end - 36) && ReadUuid(end - 36, tail.word)) {
    tail.kind = TailKind::kUuid;
  } else if (may_be(32) && is_set_off(32) && ReadHex32(end - 32, tail.word)) {
    tail.kind = TailKind::kHex32;
  } else if (may_be(32) && HasTokenExpiry(end - 32) && ReadToken(end - 32, tail.word)) {
    tail.kind = TailKind::kToken;
  } else if (may_be(22) && is_set_off(22) && HasZeroSpareBits(end[-1]) &&
             ReadBase64Url22(end - 22, tail.word)) {
    tail.kind = TailKind::kBase64Url22;
  } else {
    return tail;
  }
  tail.prefix_bytes = static_cast<uint8_t>(size - TailChars(tail.kind));
  return tail;
}

void WriteTail(TailKind kind, const uint64_t* word, char* out) {
  unsigned char bytes[24];
  uint64_t digits[4];
  switch (kind) {
    case TailKind::kNone:
      return;
    case TailKind::kUuid:
      WriteHexGroups(word, digits);
      std::memcpy(out, &digits[0], 8);
      std::memcpy(out + 9, &digits[1], 4);
      std::memcpy(out + 14, reinterpret_cast<const char*>(&digits[1]) + 4, 4);
      std::memcpy(out + 19, &digits[2], 4);
      std::memcpy(out + 24, reinterpret_cast<const char*>(&digits[2]) + 4, 4);
      std::memcpy(out + 28, &digits[3], 8);
      out[8] = out[13] = out[18] = out[23] = '-';
      return;
    case TailKind::kHex32:
      WriteHexGroups(word, digits);
      std::memcpy(out, digits, 32);
      return;
    case TailKind::kBase64Url22:
      std::memcpy(bytes, word, 16);
      WriteBase64Groups(bytes, 5, out);
      out[20] = kAlphabet[bytes[15] >> 2];
      out[21] = kAlphabet[(bytes[15] & 3) << 4];
      return;
    case TailKind::kToken:
      std::memcpy(bytes, word, 24);
      WriteBase64Groups(bytes, 8, out);
      return;
  }
}

}  // namespace idemd::storage
