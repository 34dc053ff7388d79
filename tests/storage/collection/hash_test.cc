// Hashes against a model, in both forms and across the border between them.
#include "storage/collection/hash.h"

#include <malloc.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/storage/collection/rdb_round_trip.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using Model = std::map<std::string, std::string>;

Model PairsOf(const Hash& hash) {
  Model pairs;
  hash.ForEachPair([&](absl::string_view field, absl::string_view value) {
    EXPECT_TRUE(pairs.emplace(std::string(field), std::string(value)).second) << field;
  });
  EXPECT_EQ(pairs.size(), hash.size());
  return pairs;
}

const Hash& AsHash(const std::unique_ptr<Collection>& collection) { return static_cast<const Hash&>(*collection); }

std::string Text(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return std::to_string(static_cast<int64_t>(random() % 50) - 10);
    case 1:
      return std::string(random() % 4, static_cast<char>('a' + random() % 3));
    case 2:
      return std::string(random() % 80, 'v');
    case 3:
      return random() % 20 == 0 ? std::string(random() % 70'000, 'w') : "w";
    default:
      return "f" + std::to_string(random() % 30);
  }
}

class HashTest : public ::testing::Test {
 protected:
  ~HashTest() override {
    Hash::small_fields_max = 512;
    Hash::small_bytes_max = 64;
  }
};

TEST_F(HashTest, ALimitThatWasLoweredIsReachedByTheNextChange) {
  Hash hash;
  for (const char* field : {"a", "b", "c"}) hash.Set(field, "1");
  Hash::small_fields_max = 2;
  EXPECT_STREQ(hash.encoding(), "listpack");
  EXPECT_FALSE(hash.Set("b", "2"));
  EXPECT_STREQ(hash.encoding(), "hashtable");
}

TEST_F(HashTest, HoldsWhatAModelHolds) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 60; ++round) {
    Hash::small_fields_max = random() % 3 == 0 ? 512 : random() % 20;
    Hash::small_bytes_max = random() % 2 == 0 ? 100'000 : 64;
    auto hash = std::make_unique<Hash>();
    Model model;
    for (int step = 0; step < 600; ++step) {
      const std::string field = Text(random);
      Hash::Digits room;
      absl::string_view value;
      const auto there = model.find(field);
      ASSERT_EQ(hash->Contains(field), there != model.end()) << field;
      ASSERT_EQ(hash->Get(field, room, &value), there != model.end()) << field;
      ASSERT_EQ(value, there != model.end() ? there->second : "") << field;
      if (random() % 5 < 3) {
        const std::string fresh = Text(random);
        ASSERT_EQ(hash->Set(field, fresh), there == model.end()) << field;
        model[field] = fresh;
      } else {
        ASSERT_EQ(hash->Remove(field), model.erase(field) == 1) << field;
      }
      ASSERT_EQ(hash->size(), model.size());
      if (random() % 60 != 0) continue;
      ASSERT_EQ(PairsOf(*hash), model);
      const std::unique_ptr<Collection> copy = hash->Clone();
      ASSERT_EQ(PairsOf(AsHash(copy)), model);
      const std::unique_ptr<Collection> read = RoundTrip(*hash, RdbStrings::kCompressed, 1 + random() % 50);
      ASSERT_NE(read, nullptr);
      ASSERT_EQ(PairsOf(AsHash(read)), model);
      if (random() % 2 == 0) hash = std::make_unique<Hash>(AsHash(read));
    }
  }
}

TEST_F(HashTest, ATableIsMadeWhereRedisMakesOne) {
  Hash hash;
  for (int i = 0; i < 512; ++i) EXPECT_TRUE(hash.Set("f" + std::to_string(i), "v"));
  EXPECT_STREQ(hash.encoding(), "listpack");
  EXPECT_FALSE(hash.Set("f7", std::string(64, 'x')));
  EXPECT_STREQ(hash.encoding(), "listpack");
  EXPECT_TRUE(hash.Set("f512", "v"));
  EXPECT_STREQ(hash.encoding(), "hashtable");
  Hash of_long_field, of_long_value;
  of_long_field.Set(std::string(65, 'f'), "v");
  EXPECT_STREQ(of_long_field.encoding(), "hashtable");
  of_long_value.Set("f", "v");
  of_long_value.Set("f", std::string(65, 'v'));
  EXPECT_STREQ(of_long_value.encoding(), "hashtable");
}

TEST_F(HashTest, ASmallHashKeepsTheOrderOfItsFields) {
  Hash hash;
  for (const char* field : {"c", "a", "b"}) hash.Set(field, "1");
  hash.Set("a", "a longer value");
  std::string fields;
  hash.ForEach([&](absl::string_view field) { fields += std::string(field); });
  EXPECT_EQ(fields, "cab");
  const std::vector<uint32_t> places = {2, 0, 0};
  fields.clear();
  hash.PairsAt(places, [&](absl::string_view field, absl::string_view value) { fields += std::string(field) + std::string(value); });
  EXPECT_EQ(fields, "b1c1c1");
}

TEST_F(HashTest, MemoryIsWhatIsAllocated) {
  for (const int value_bytes : {1, 20, 300}) {
    const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    auto hash = std::make_unique<Hash>();
    const std::string value(static_cast<size_t>(value_bytes), 'v');
    for (int i = 0; i < 50'000; ++i) hash->Set("field:" + std::to_string(i), value);
    for (int i = 0; i < 50'000; i += 3) hash->Set("field:" + std::to_string(i), value + value);
    const auto taken = static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd - before);
    if (taken == 0) GTEST_SKIP() << "this allocator does not tell";
    constexpr double kPairs = 50'000, kBlockHead = 8;  // the head is the allocator's
    EXPECT_NEAR(static_cast<double>(hash->memory_bytes()) + kPairs * kBlockHead, taken, taken * 0.02) << value_bytes;
    for (int i = 0; i < 50'000; ++i) hash->Remove("field:" + std::to_string(i));
    EXPECT_LT(hash->memory_bytes(), 100'000u);
  }
}

TEST_F(HashTest, DamagedBytesAreRefusedOrReadable) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Hash small, large;
  for (int i = 0; i < 30; ++i) small.Set("field:" + std::to_string(i), std::to_string(i * 1000));
  for (int i = 0; i < 30; ++i) large.Set("field:" + std::to_string(i), std::string(60 + static_cast<size_t>(i), 'x'));
  ReadDamaged(small, random, 20'000);
  ReadDamaged(large, random, 20'000);
}

TEST_F(HashTest, OtherEncodingsOfRdbAreRead) {
  const auto sized = [](const std::string& bytes) { return static_cast<char>(bytes.size()) + bytes; };
  const std::string zipmap("\x02\x03" "foo\x03\x00" "bar\x05" "hello\x05\x00" "world\xff", 24);
  const std::string ziplist("\x11\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01" "f\x03\xf2\xff\xff", 16);
  const auto of_zipmap = ReadRdbBytes(9, sized(zipmap), 1);
  ASSERT_NE(of_zipmap, nullptr);
  EXPECT_EQ(PairsOf(AsHash(of_zipmap)), (Model{{"foo", "bar"}, {"hello", "world"}}));
  const std::string ziplist_good("\x10\x00\x00\x00\x0d\x00\x00\x00\x02\x00\x00\x01" "f\x03\xf2\xff", 16);
  const auto of_ziplist = ReadRdbBytes(13, sized(ziplist_good), 1);
  ASSERT_NE(of_ziplist, nullptr);
  EXPECT_EQ(PairsOf(AsHash(of_ziplist)), (Model{{"f", "1"}}));
  EXPECT_EQ(ReadRdbBytes(13, sized(ziplist), 100), nullptr);
  // A field without a value; a field twice.
  const std::string odd("\x0a\x00\x00\x00\x01\x00\x81" "f\x02\xff", 10);
  EXPECT_EQ(ReadRdbBytes(16, sized(odd), 100), nullptr);
  EXPECT_EQ(ReadRdbBytes(4, std::string("\x02\x01" "f\x01" "v\x01" "f\x01" "w", 9), 100), nullptr);
  // With lifetimes: none is set, then one is.
  const std::string nobody(8, '\0');
  const auto lasting = ReadRdbBytes(24, nobody + std::string("\x01\x00\x01" "f\x01" "v", 6), 1);
  ASSERT_NE(lasting, nullptr);
  EXPECT_EQ(PairsOf(AsHash(lasting)), (Model{{"f", "v"}}));
  EXPECT_EQ(ReadRdbBytes(24, nobody + std::string("\x01\x05\x01" "f\x01" "v", 6), 100, false), nullptr);
}

}  // namespace
}  // namespace idemd::storage
