// Hashes of keys: made anew from what an entry keeps, and spread over all their bits.
#include "storage/key/hashed_key.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/storage/key/sample_keys.h"
#include "xxhash.h"

namespace idemd::storage {
namespace {

constexpr uint64_t kSomePrefixHash = 0x243f6a8885a308d3;  // fixed, so that the figures below are

TEST(HashedKey, OfAnOrdinaryKeyIsTheHashOfItsText) {
  for (const std::string& text : {std::string(), std::string("user:1234"), std::string(300, 'x')}) {
    const HashedKey key{absl::string_view(text)};
    EXPECT_EQ(key.hash, XXH3_64bits_withSeed(text.data(), text.size(), HashSeed()));
    EXPECT_EQ(key.bytes, text);
    EXPECT_EQ(key.tail, Tail{});
    EXPECT_EQ(key.prefix(), "");
  }
}

TEST(HashedKey, OfAKeyWithATailIsMadeAnewFromWhatAnEntryKeeps) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (TailKind kind : kAllTails) {
    for (const std::string& prefix : SamplePrefixes()) {
      Tail tail = RandomTail(kind, random);
      const std::string text = TextOf(prefix, tail);
      const HashedKey key{absl::string_view(text)};
      EXPECT_EQ(key.tail.kind, kind);
      EXPECT_EQ(key.prefix(), prefix);
      EXPECT_EQ(key.hash, HashOfTail(kind, tail.word, PrefixHash(prefix)));
    }
  }
}

TEST(HashedKey, WithAGivenHashHasItsTailToo) {
  const std::string text = "order:0190f3a2-7c1e-7b3a-9c55-0242ac120002";
  const HashedKey key(text, 42);
  EXPECT_EQ(key.hash, 42u);
  EXPECT_EQ(key.tail, ReadTail(text));
  EXPECT_EQ(key.prefix(), "order:");
  EXPECT_EQ(HashedKey({}, 42).tail, Tail{});
  EXPECT_EQ(HashedKey().tail, Tail{});
}

TEST(HashedKey, DiffersBetweenPrefixesAndKindsOfTheSameBytes) {
  std::mt19937_64 random(3);
  const Tail tail = RandomTail(TailKind::kToken, random);
  std::set<uint64_t> hashes;
  size_t keys = 0;
  for (const std::string& prefix : SamplePrefixes()) {
    for (TailKind kind : kAllTails) {
      hashes.insert(HashOfTail(kind, tail.word, PrefixHash(prefix)));
      ++keys;
    }
  }
  EXPECT_EQ(hashes.size(), keys);
}

TEST(HashedKey, OfATokenCoversTheTagToo) {
  std::mt19937_64 random(4);
  const Tail token = RandomTail(TailKind::kToken, random);
  const uint64_t hash = HashOfTail(token.kind, token.word, kSomePrefixHash);
  for (size_t bit = 0; bit < 192; ++bit) {
    Tail other = token;
    other.word[bit / 64] ^= uint64_t{1} << bit % 64;
    EXPECT_NE(HashOfTail(other.kind, other.word, kSomePrefixHash), hash) << bit;
  }
}

// Every bit of the bytes flips every bit of the hash in about half of the keys.
TEST(HashedKey, EachBitOfATailChangesEachBitOfTheHashHalfTheTime) {
  constexpr int kKeys = 4'000;
  for (TailKind kind : {TailKind::kUuid, TailKind::kToken}) {
    std::mt19937_64 random(5);
    const size_t bits = kind == TailKind::kToken ? 192 : 128;
    std::vector<std::array<int, 64>> flips(bits);
    for (int i = 0; i < kKeys; ++i) {
      Tail tail = RandomTail(kind, random);
      const uint64_t hash = HashOfTail(kind, tail.word, kSomePrefixHash);
      for (size_t bit = 0; bit < bits; ++bit) {
        tail.word[bit / 64] ^= uint64_t{1} << bit % 64;
        const uint64_t flipped = hash ^ HashOfTail(kind, tail.word, kSomePrefixHash);
        tail.word[bit / 64] ^= uint64_t{1} << bit % 64;
        for (size_t out = 0; out < 64; ++out) flips[bit][out] += flipped >> out & 1 ? 1 : 0;
      }
    }
    // The deviation of each count is 32; of 8192 of them none should be six away.
    for (size_t bit = 0; bit < bits; ++bit) {
      for (size_t out = 0; out < 64; ++out) {
        EXPECT_NEAR(flips[bit][out], kKeys / 2, 6 * std::sqrt(kKeys) / 2) << bit << " " << out;
      }
    }
  }
}

// The table takes shard, bucket, directory and tags from different bits: each eight in a row must
// be spread evenly, whatever it is in the keys that changes.
TEST(HashedKey, EachEightBitsOfTheHashAreSpreadEvenly) {
  constexpr int kKeys = 1 << 16;
  struct Walk {
    const char* name;
    uint64_t step[2];
  };
  constexpr Walk kWalks[] = {{"last bytes count up", {0, uint64_t{1} << 48}},
                             {"first bytes count up", {1, 0}},
                             {"milliseconds of a UUID of version 7", {uint64_t{1} << 24, 0}},
                             {"both ends", {1, uint64_t{1} << 40}}};
  for (TailKind kind : {TailKind::kUuid, TailKind::kHex32, TailKind::kBase64Url22}) {
    for (const Walk& walk : kWalks) {
      uint64_t word[kTailWords] = {0x7b3a1e7ca2f39001, 0x0200000000559c00, 0};
      std::array<std::array<int, 256>, 15> counts = {};
      for (int i = 0; i < kKeys; ++i) {
        word[0] += walk.step[0];
        word[1] += walk.step[1];
        const uint64_t hash = HashOfTail(kind, word, kSomePrefixHash);
        for (size_t at = 0; at < counts.size(); ++at) ++counts[at][hash >> at * 4 & 255];
      }
      for (size_t at = 0; at < counts.size(); ++at) {
        const double expected = kKeys / 256.0;
        double chi_square = 0;
        for (int count : counts[at])
          chi_square += (count - expected) * (count - expected) / expected;
        // 255 degrees of freedom: mean 255, deviation 22.6. Too even would be as bad as too uneven.
        EXPECT_GT(chi_square, 255 - 6 * 22.6) << walk.name << ", bits from " << at * 4;
        EXPECT_LT(chi_square, 255 + 6 * 22.6) << walk.name << ", bits from " << at * 4;
      }
    }
  }
}

TEST(HashedKey, TheSeedGoesIntoThePrefixHash) {
  EXPECT_EQ(PrefixHash(""), XXH3_64bits_withSeed("", 0, HashSeed()));
  EXPECT_EQ(PrefixHash("login:"), XXH3_64bits_withSeed("login:", 6, HashSeed()));
  EXPECT_NE(PrefixHash("login:"), PrefixHash("login"));
}

}  // namespace
}  // namespace idemd::storage
