// Tokens: what was issued is recognised, and nothing else.
#include "storage/token/token.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/token/random.h"

namespace idemd::storage {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr int64_t kExpiry = 1'700'000'300'000;

TokenKey KeyOf(uint8_t fill) {
  TokenKey key;
  key.fill(fill);
  return key;
}

std::string Issued(const TokenMint& mint,
                   absl::string_view prefix = "login:", int64_t expiry_ms = kExpiry,
                   uint32_t db = 0) {
  std::string key(prefix);
  key.resize(prefix.size() + kTokenChars);
  EXPECT_TRUE(mint.Issue(db, prefix, expiry_ms, key.data() + prefix.size()));
  return key;
}

TEST(Token, IsReadBackWithItsExpiry) {
  const TokenMint mint(KeyOf(1));
  for (int64_t expiry : {int64_t{0}, int64_t{1}, kExpiry, kTokenExpiryMax}) {
    for (const char* prefix : {"", "login:", "a:b:c:"}) {
      const TokenReading reading = mint.Read(0, Issued(mint, prefix, expiry));
      EXPECT_TRUE(reading.issued);
      EXPECT_EQ(reading.expiry_ms, expiry);
    }
  }
}

TEST(Token, BeginsWithItsExpiry) {
  const TokenMint mint(KeyOf(1));
  EXPECT_EQ(Issued(mint, "", 0).substr(0, 8), "AAAAAAAA");
  EXPECT_EQ(Issued(mint, "", kTokenExpiryMax).substr(0, 8), "________");
}

// Tokens outlive the server that made them, so its way to make them must not change: HMAC-SHA256 as OpenSSL computes it.
TEST(Token, TheTagIsTheHmacOfDatabasePrefixExpiryAndRandom) {
  const TokenKey mint_key = KeyOf(7);
  const TokenMint mint(mint_key);
  for (uint32_t db : {0u, 3u, 0x01020304u}) {
    for (size_t prefix_bytes = 0; prefix_bytes < 200; ++prefix_bytes) {
      const std::string key = Issued(mint, std::string(prefix_bytes, 'p'), kExpiry, db);
      std::string bits;
      for (char c : key.substr(prefix_bytes)) {
        const auto digit = static_cast<unsigned>(std::string(kAlphabet).find(c));
        for (int bit = 5; bit >= 0; --bit) bits += (digit >> bit & 1) != 0 ? '1' : '0';
      }
      std::string bytes;
      for (size_t i = 0; i < bits.size(); i += 8) bytes += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
      std::string message;
      for (int shift : {24, 16, 8, 0}) message += static_cast<char>(db >> shift);
      message += std::string(7, '\0') + static_cast<char>(prefix_bytes) + key.substr(0, prefix_bytes) + bytes.substr(0, 14);
      unsigned char mac[EVP_MAX_MD_SIZE];
      unsigned int mac_bytes = 0;
      ASSERT_NE(HMAC(EVP_sha256(), mint_key.data(), static_cast<int>(mint_key.size()),
                     reinterpret_cast<const unsigned char*>(message.data()), message.size(), mac, &mac_bytes),
                nullptr);
      EXPECT_EQ(bytes.substr(14), std::string(reinterpret_cast<const char*>(mac), 10)) << prefix_bytes << " " << db;
    }
  }
}

TEST(Token, AnExpiryThatDoesNotFitIsNotIssued) {
  const TokenMint mint(KeyOf(1));
  char out[kTokenChars];
  EXPECT_FALSE(mint.Issue(0, "", kTokenExpiryMax + 1, out));
  EXPECT_FALSE(mint.Issue(0, "", -1, out));
}

TEST(Token, NoTwoAreAlike) {
  const TokenMint mint(KeyOf(1));
  std::set<std::string> seen;
  std::vector<std::vector<std::string>> issued(3);
  std::vector<std::thread> threads;
  for (auto& mine : issued) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5'000; ++i) mine.push_back(Issued(mint));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : issued)
    for (const std::string& token : mine) EXPECT_TRUE(seen.insert(token).second);
}

TEST(Token, WithAnyBitFlippedItIsForged) {
  const TokenMint mint(KeyOf(1));
  const std::string key = Issued(mint);
  for (size_t i = 0; i < key.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string forged = key;
      forged[i] = static_cast<char>(forged[i] ^ (1 << bit));
      EXPECT_FALSE(mint.Read(0, forged).issued) << i << " " << bit;
    }
  }
}

TEST(Token, WithAnyCharacterReplacedItIsForged) {
  const TokenMint mint(KeyOf(1));
  const std::string key = Issued(mint, "");
  for (size_t i = 0; i < key.size(); ++i) {
    for (const char* c = kAlphabet; *c != '\0'; ++c) {
      if (*c == key[i]) continue;
      std::string forged = key;
      forged[i] = *c;
      EXPECT_FALSE(mint.Read(0, forged).issued);
    }
    for (char c : {'+', '/', '=', ' ', '\0', '\xff'}) {
      std::string forged = key;
      forged[i] = c;
      EXPECT_FALSE(mint.Read(0, forged).issued);
    }
  }
}

TEST(Token, IsGoodForItsPrefixDatabaseAndKeyOnly) {
  const TokenMint mint(KeyOf(1));
  const std::string key = Issued(mint, "login:");
  const std::string token = key.substr(6);
  EXPECT_TRUE(mint.Read(0, key).issued);
  EXPECT_FALSE(mint.Read(1, key).issued);
  EXPECT_FALSE(TokenMint(KeyOf(2)).Read(0, key).issued);
  EXPECT_TRUE(TokenMint(KeyOf(1)).Read(0, key).issued);
  for (const char* prefix : {"", "login", "Login:", "logout:", "xlogin:"})
    EXPECT_FALSE(mint.Read(0, prefix + token).issued) << prefix;
}

TEST(Token, OneThreadMayUseSeveralMints) {
  const TokenMint a(KeyOf(1));
  const TokenMint b(KeyOf(2));
  const std::string from_a = Issued(a);
  const std::string from_b = Issued(b);
  EXPECT_TRUE(a.Read(0, from_a).issued);
  EXPECT_FALSE(a.Read(0, from_b).issued);
  EXPECT_TRUE(b.Read(0, from_b).issued);
  EXPECT_FALSE(b.Read(0, from_a).issued);
}

TEST(Token, OtherKeysAreNoTokens) {
  const TokenMint mint(KeyOf(1));
  for (const std::string& key : {std::string(), std::string("x"), std::string(31, 'A'),
                                 std::string(32, 'A'), std::string(64, '_'), std::string(32, '\0')})
    EXPECT_FALSE(mint.Read(0, key).issued);
}

TEST(Token, FreshKeysDiffer) { EXPECT_NE(TokenMint::NewKey(), TokenMint::NewKey()); }

TEST(Random, FillsMoreThanOnePool) {
  std::vector<uint8_t> bytes(10'000, 0);
  ASSERT_TRUE(FillRandom(bytes.data(), bytes.size()));
  std::array<int, 256> counts{};
  for (uint8_t byte : bytes) ++counts[byte];
  for (int count : counts) EXPECT_GT(count, 0);  // 39 expected; 0 has a chance of 1e-17
}

TEST(Random, HexIsAsLongAsAsked) {
  EXPECT_EQ(RandomHex(40).size(), 40u);
  EXPECT_EQ(RandomHex(40).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(RandomHex(40), RandomHex(40));
}

}  // namespace
}  // namespace idemd::storage
