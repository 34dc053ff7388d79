// Tails: compared with a reader that goes by the definition, and never another text than was read.
#include "storage/key/tail.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "storage/token/token.h"
#include "tests/storage/key/sample_keys.h"

namespace idemd::storage {
namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr char kHex[] = "0123456789abcdef";

// The position of each character in `digits`, or nothing if one is missing there. As bits.
bool Bits(const std::string& text, const std::string& digits, int bits_each,
          std::vector<bool>* out) {
  for (char c : text) {
    const size_t at = digits.find(c);
    if (at == std::string::npos) return false;
    for (int i = bits_each - 1; i >= 0; --i) out->push_back((at >> i & 1) != 0);
  }
  return true;
}

Tail Filled(TailKind kind, size_t prefix_bytes, const std::vector<bool>& bits) {
  Tail tail;
  tail.kind = kind;
  tail.prefix_bytes = static_cast<uint8_t>(prefix_bytes);
  unsigned char bytes[24] = {};
  for (size_t i = 0; i < TailBytes(kind) * 8; ++i) {
    if (bits[i]) bytes[i / 8] = static_cast<unsigned char>(bytes[i / 8] | 0x80 >> i % 8);
  }
  std::memcpy(tail.word, bytes, sizeof bytes);
  return tail;
}

// The definition in storage/key/tail.h, a character at a time.
Tail ReadByDefinition(const std::string& key) {
  const auto split = [&](size_t chars, bool set_off, std::string* tail) {
    if (key.size() < chars || key.size() - chars > 255) return false;
    *tail = key.substr(key.size() - chars);
    if (!set_off || key.size() == chars) return true;
    return std::string(":/.|#},=@-_").find(key[key.size() - chars - 1]) != std::string::npos;
  };
  std::string tail;
  std::vector<bool> bits;
  if (split(36, false, &tail) && tail[8] == '-' && tail[13] == '-' && tail[18] == '-' &&
      tail[23] == '-') {
    const std::string digits = tail.substr(0, 8) + tail.substr(9, 4) + tail.substr(14, 4) +
                               tail.substr(19, 4) + tail.substr(24);
    bits.clear();
    if (Bits(digits, kHex, 4, &bits)) return Filled(TailKind::kUuid, key.size() - 36, bits);
  }
  if (split(32, true, &tail)) {
    bits.clear();
    if (Bits(tail, kHex, 4, &bits)) return Filled(TailKind::kHex32, key.size() - 32, bits);
  }
  if (split(32, false, &tail)) {
    bits.clear();
    if (Bits(tail, kBase64, 6, &bits)) {
      const Tail token = Filled(TailKind::kToken, key.size() - 32, bits);
      const uint64_t first = token.word[0] & 0xff;
      if (first >= 1 && first <= 3) return token;
    }
  }
  if (split(22, true, &tail)) {
    bits.clear();
    if (Bits(tail, kBase64, 6, &bits) && !bits[128] && !bits[129] && !bits[130] && !bits[131]) {
      return Filled(TailKind::kBase64Url22, key.size() - 22, bits);
    }
  }
  return {};
}

// Reads `text` and checks what holds for every text.
Tail Read(const std::string& text) {
  const std::string copy(text);  // of just this size, so that a sanitizer sees reads beyond it
  const Tail tail = ReadTail(copy);
  EXPECT_EQ(tail, ReadByDefinition(text)) << testing::PrintToString(text);
  if (tail.kind == TailKind::kNone) {
    EXPECT_EQ(tail, Tail{});
  } else {
    EXPECT_EQ(TextOf(text.substr(0, tail.prefix_bytes), tail), text);
  }
  return tail;
}

struct Example {
  const char* text;
  TailKind kind;
  int prefix_bytes;
};

TEST(Tail, TheExamplesAreReadAsWritten) {
  constexpr Example kExamples[] = {
      {"", TailKind::kNone, 0},
      {"user:1234", TailKind::kNone, 0},
      {"0190f3a2-7c1e-7b3a-9c55-0242ac120002", TailKind::kUuid, 0},
      {"order:0190f3a2-7c1e-7b3a-9c55-0242ac120002", TailKind::kUuid, 6},
      {"order0190f3a2-7c1e-7b3a-9c55-0242ac120002", TailKind::kUuid, 5},
      {"0190F3A2-7c1e-7b3a-9c55-0242ac120002", TailKind::kNone, 0},
      {"{0190f3a2-7c1e-7b3a-9c55-0242ac120002}", TailKind::kNone, 0},
      {"0190f3a2_7c1e-7b3a-9c55-0242ac120002", TailKind::kNone, 0},
      {"0190f3a27c1e7b3a9c550242ac120002", TailKind::kHex32, 0},
      {"md5=0190f3a27c1e7b3a9c550242ac120002", TailKind::kHex32, 4},
      {"md50190f3a27c1e7b3a9c550242ac120002", TailKind::kNone, 0},
      {"00000190f3a27c1e7b3a9c550242ac120002", TailKind::kNone, 0},
      {"AZDzonwee4qcVQJCrBIAAg", TailKind::kBase64Url22, 0},
      {"id:AZDzonwee4qcVQJCrBIAAg", TailKind::kBase64Url22, 3},
      {"idAZDzonwee4qcVQJCrBIAAg", TailKind::kNone, 0},
      {"AZDzonwee4qcVQJCrBIAAh", TailKind::kNone, 0},
      {"AYzlkLngAAAAAAAAAAAAAAAAAAAAAAAA", TailKind::kToken, 0},
      {"loginAYzlkLngAAAAAAAAAAAAAAAAAAAAAAAA", TailKind::kToken, 5},
      {"AAzlkLngAAAAAAAAAAAAAAAAAAAAAAAA", TailKind::kNone, 0},
      {"BYzlkLngAAAAAAAAAAAAAAAAAAAAAAAA", TailKind::kNone, 0},
  };
  for (const Example& example : kExamples) {
    const Tail tail = Read(example.text);
    EXPECT_EQ(tail.kind, example.kind) << example.text;
    EXPECT_EQ(tail.prefix_bytes, example.prefix_bytes) << example.text;
  }
}

TEST(Tail, WordsHoldTheBytesInMemoryOrder) {
  unsigned char bytes[24];
  Tail tail = Read("00010203-0405-0607-0809-0a0b0c0d0e0f");
  std::memcpy(bytes, tail.word, sizeof bytes);
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(bytes[i], i);
  tail = Read("k:AAECAwQFBgcICQoLDA0ODw");
  EXPECT_EQ(tail.kind, TailKind::kBase64Url22);
  std::memcpy(bytes, tail.word, sizeof bytes);
  for (unsigned i = 0; i < 16; ++i) EXPECT_EQ(bytes[i], i);
  tail = Read("AQECAwQFBgcICQoLDA0ODxAREhMUFRYX");
  EXPECT_EQ(tail.kind, TailKind::kToken);
  std::memcpy(bytes, tail.word, sizeof bytes);
  for (unsigned i = 1; i < 24; ++i) EXPECT_EQ(bytes[i], i);
}

TEST(Tail, EveryKindIsReadBackAfterEveryPrefix) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (TailKind kind : kAllTails) {
    for (const std::string& prefix : SamplePrefixes()) {
      for (int i = 0; i < 50; ++i) {
        Tail tail = RandomTail(kind, random);
        tail.prefix_bytes = static_cast<uint8_t>(prefix.size());
        EXPECT_EQ(Read(TextOf(prefix, tail)), tail);
      }
    }
  }
}

TEST(Tail, APrefixOf256BytesIsTooLong) {
  std::mt19937_64 random(1);
  for (TailKind kind : kAllTails) {
    const Tail tail = RandomTail(kind, random);
    EXPECT_EQ(Read(TextOf(std::string(254, '.') + ":", tail)).prefix_bytes, 255);
    EXPECT_EQ(Read(TextOf(std::string(255, '.') + ":", tail)).kind, TailKind::kNone);
    EXPECT_EQ(Read(TextOf(std::string(10'000, '.') + ":", tail)).kind, TailKind::kNone);
  }
}

TEST(Tail, AnyOtherByteInsteadOfAnyByteGivesTheSameTextBackOrIsNoTail) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (TailKind kind : kAllTails) {
    for (const char* prefix : {"", "k:", "order"}) {
      const std::string text = TextOf(prefix, RandomTail(kind, random));
      const Tail read = Read(text);
      for (size_t at = 0; at < text.size(); ++at) {
        for (int byte = 0; byte < 256; ++byte) {
          std::string other = text;
          other[at] = static_cast<char>(byte);
          const Tail tail = Read(other);
          if (tail.kind == TailKind::kNone || read.kind == TailKind::kNone) continue;
          const bool same = tail == read &&
                            text.substr(0, tail.prefix_bytes) == other.substr(0, tail.prefix_bytes);
          EXPECT_EQ(same, text == other) << text << " " << other;
        }
      }
    }
  }
}

TEST(Tail, TextsAreEqualExactlyWhenTheirReadingsAre) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  // Few different characters and bytes, so that readings come near each other.
  std::set<std::string> texts;
  constexpr char kLetters[] = "aA0-:_fgQ";
  while (texts.size() < 20'000) {
    Tail tail = RandomTail(kAllTails[random() % std::size(kAllTails)], random);
    for (uint64_t& word : tail.word) {
      word &= random() % 2 == 0 ? 0x0300000000000003 : 0x000000000000ff03;
    }
    std::string text = TextOf(SamplePrefixes()[random() % 12], tail);
    for (size_t changes = random() % 3; changes > 0; --changes) {
      text[random() % text.size()] = kLetters[random() % (sizeof kLetters - 1)];
    }
    texts.insert(text);
    for (TailKind kind : kAllTails) {  // and what the same words are as another kind
      tail.kind = kind;
      if (kind != TailKind::kToken) tail.word[2] = 0;
      texts.insert(TextOf("k:", tail));
    }
  }
  std::map<std::tuple<TailKind, std::string, uint64_t, uint64_t, uint64_t>, std::string> readings;
  std::map<TailKind, int> kinds;
  for (const std::string& text : texts) {
    const Tail tail = Read(text);
    ++kinds[tail.kind];
    if (tail.kind == TailKind::kNone) continue;
    const auto [at, fresh] =
        readings.emplace(std::tuple(tail.kind, text.substr(0, tail.prefix_bytes), tail.word[0],
                                    tail.word[1], tail.word[2]),
                         text);
    EXPECT_TRUE(fresh) << text << " and " << at->second;
  }
  for (TailKind kind : kAllTails) EXPECT_GT(kinds[kind], 500) << static_cast<int>(kind);
  EXPECT_GT(kinds[TailKind::kNone], 500);
}

TEST(Tail, RandomTextsAreReadByTheDefinition) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int i = 0; i < 50'000; ++i) {
    const std::string letters = i % 3 == 0 ? kHex : i % 3 == 1 ? kBase64 : "A-:af09_/\xe9";
    std::string text(random() % 45, ' ');
    for (char& c : text) c = letters[random() % letters.size()];
    if (text.size() >= 32 && i % 2 == 0) text[text.size() - 32] = 'A';
    Read(text);
  }
}

TEST(Tail, OurTokensAreTokensWhateverTheirPrefix) {
  TokenKey key;
  key.fill(7);
  const TokenMint mint(key);
  for (int64_t expiry_ms : {1'100'000'000'000, 1'700'000'000'000, 4'390'000'000'000}) {
    for (const std::string& prefix : SamplePrefixes()) {
      std::string text = prefix + std::string(kTokenChars, ' ');
      ASSERT_TRUE(mint.Issue(0, prefix, expiry_ms, text.data() + prefix.size()));
      const Tail tail = Read(text);
      EXPECT_EQ(tail.kind, TailKind::kToken);
      EXPECT_EQ(tail.prefix_bytes, prefix.size());
      EXPECT_EQ(static_cast<int64_t>(__builtin_bswap64(tail.word[0]) >> 16), expiry_ms);
    }
  }
}

}  // namespace
}  // namespace idemd::storage
