// Writes digits eight at a time: a generator that shall outrun a server has some tens of
// nanoseconds for a request.
#include "bench/load/key_space.h"

#include <cstring>
#include <iterator>

namespace idemd::bench {
namespace {

// Each half of a number is mixed with a constant of its own.
constexpr uint64_t kSecond = 0x5851f42d4c957f2d, kThird = 0x14057b7ef767814f;
constexpr uint64_t kOfFingerprint = 0x2545f4914f6cdd1d;

// The eight nibbles of `x` as hexadecimal digits, one a byte; which nibble comes first does not
// matter here.
uint64_t HexDigits(uint32_t x) {
  uint64_t v = x;
  v = (v | v << 16) & 0x0000ffff0000ffff;
  v = (v | v << 8) & 0x00ff00ff00ff00ff;
  v = (v | v << 4) & 0x0f0f0f0f0f0f0f0f;
  const uint64_t letters = ((v + 0x0606060606060606) >> 4) & 0x0101010101010101;
  return v + 0x3030303030303030 + letters * ('a' - '0' - 10);
}

void PutHex(uint64_t half, char* out) {
  const uint64_t digits[2] = {HexDigits(static_cast<uint32_t>(half)),
                              HexDigits(static_cast<uint32_t>(half >> 32))};
  std::memcpy(out, digits, sizeof(digits));
}

// Sets the last `n` digits before `end`.
void PutDecimal(uint64_t number, size_t n, char* end) {
  for (size_t i = 0; i < n; ++i, number /= 10) *--end = static_cast<char>('0' + number % 10);
}

void WriteToken(uint64_t number, char* out) {
  constexpr char kBase64Url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  // A token begins with when it expires, in unix milliseconds: a moment far ahead, and differing
  // ones.
  constexpr uint64_t kFarAheadMs = 2'000'000'000'000;
  const uint64_t random = Mix(number), tag = Mix(number ^ kSecond), more = Mix(number ^ kThird);
  uint64_t word = (kFarAheadMs + (number & 0xfffff)) << 16 | (random & 0xffff);
  for (int i = 0; i < 32; ++i) {  // ten characters, of six bits each, are taken from a word
    if (i == 10) word = random << 4;
    if (i == 20) word = tag << 4;
    if (i == 30) word = more;
    out[i] = kBase64Url[word >> 58];
    word <<= 6;
  }
}

// Five bits a character; the dots keep it from being a number of any kind.
void WriteName(uint64_t number, char* out) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz012345";
  const uint64_t words[3] = {Mix(number), Mix(number ^ kSecond), Mix(number ^ kThird)};
  for (size_t i = 0; i < kNameChars; ++i) {
    const size_t of_word = i % kDigits;
    out[i] = of_word == 10 ? '.' : kLetters[words[i / kDigits] >> (5 * of_word) & 31];
  }
}

}  // namespace

bool ReadKeySpace(absl::string_view name, KeySpace* space) {
  constexpr absl::string_view kNames[] = {"redis", "uuid", "token", "name"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name != kNames[i]) continue;
    *space = static_cast<KeySpace>(i);
    return true;
  }
  return false;
}

size_t KeyChars(KeySpace space) {
  switch (space) {
    case KeySpace::kRedis:
      return 4 + kDigits;
    case KeySpace::kUuid:
      return kUuidChars;
    case KeySpace::kToken:
      return kTokenChars;
    case KeySpace::kName:
      return kNameChars;
  }
  return 0;
}

void WriteKey(KeySpace space, uint64_t number, char* out) {
  switch (space) {
    case KeySpace::kRedis:
      std::memcpy(out, "key:", 4);
      PutDecimal(number, kDigits, out + 4 + kDigits);
      return;
    case KeySpace::kUuid:
      WriteUuid(number, out);
      return;
    case KeySpace::kToken:
      WriteToken(number, out);
      return;
    case KeySpace::kName:
      WriteName(number, out);
      return;
  }
}

void WriteUuid(uint64_t number, char* out) {
  const uint64_t low = Mix(number), high = Mix(number ^ kSecond);
  char hex[32];
  PutHex(low, hex);
  PutHex(high, hex + 16);
  std::memcpy(out, hex, 8);
  out[8] = '-';
  std::memcpy(out + 9, hex + 8, 4);
  out[13] = '-';
  std::memcpy(out + 14, hex + 12, 4);
  out[14] = '4';
  out[18] = '-';
  std::memcpy(out + 19, hex + 16, 4);
  out[19] = "89ab"[high & 3];
  out[23] = '-';
  std::memcpy(out + 24, hex + 20, 12);
}

void WriteFingerprint(uint64_t number, char* out) { PutHex(Mix(number ^ kOfFingerprint), out); }

void WriteDigits(uint64_t number, char* out) { PutDecimal(number, kDigits, out + kDigits); }

}  // namespace idemd::bench
