// Files that were cut, changed or made up: always an error, never an entry that was not written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "tests/storage/snapshot/rdb_files.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

// Everything that a file of ours may hold, and more: a field, two databases, every form of string
// and deadline.
std::string Sample(int version) {
  std::string body;
  AppendRdbAux("lsn", "12345", body);
  AppendRdbDatabase(0, 3, 1, body);
  AppendRdbEntry("a", "1", 1'700'000'000'000, body);
  AppendRdbEntry("number", "-70000", kNoDeadline, body);
  AppendRdbEntry(std::string(70, 'k'), std::string(200, 'x') + "end", kNoDeadline, body);
  AppendRdbDatabase(9, 2, 1, body);
  body += Bytes({253, 1, 2, 3, 4, 248, 0x40, 90});
  AppendRdbEntry("seconds", "", kNoDeadline, body);
  body += Bytes({249, 7});
  AppendRdbEntry("", "text", 5, body);
  return RdbFile(body, version);
}

// Whether what was read before the error is what had been written up to there.
bool IsPrefix(const RdbContents& read, const RdbContents& whole) {
  return read.entries.size() <= whole.entries.size() &&
         std::equal(read.entries.begin(), read.entries.end(), whole.entries.begin());
}

TEST(RdbDamageTest, AFileThatIsCutAtAnyByteIsAnErrorThatSaysWhere) {
  const std::string file = Sample(10);
  const RdbContents whole = ReadRdb(file);
  ASSERT_EQ(whole.status, absl::OkStatus());
  ASSERT_EQ(whole.entries.size(), 5u);
  for (size_t size = 0; size < file.size(); ++size) {
    const absl::string_view cut = absl::string_view(file).substr(0, size);
    const RdbContents contents = ReadRdb(cut);
    EXPECT_TRUE(absl::IsDataLoss(contents.status)) << size << ": " << contents.status;
    EXPECT_THAT(contents.status.message(),
                ::testing::HasSubstr(absl::StrCat("ends at offset ", size)));
    EXPECT_TRUE(IsPrefix(contents, whole)) << size;
    for (const size_t piece : {1, 7, 64}) EXPECT_EQ(ReadRdb(cut, piece), contents) << size;
  }
}

TEST(RdbDamageTest, AFileWithoutASumThatIsCutAtAnyByteIsAnErrorToo) {
  std::string file = Sample(4);
  file.resize(file.size() - 8);
  ASSERT_EQ(ReadRdb(file).status, absl::OkStatus());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_TRUE(absl::IsDataLoss(ReadRdb(absl::string_view(file).substr(0, size)).status)) << size;
}

TEST(RdbDamageTest, EveryBitThatFlipsIsSeen) {
  for (int version = 5; version <= 12; ++version) {
    std::string file = Sample(version);
    for (size_t bit = 0; bit < file.size() * 8; ++bit) {
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
      const RdbContents contents = ReadRdb(file);
      EXPECT_FALSE(contents.status.ok()) << "version " << version << ", bit " << bit;
      EXPECT_TRUE(absl::IsDataLoss(contents.status) || absl::IsUnimplemented(contents.status))
          << contents.status;
      EXPECT_EQ(ReadRdb(file, 1 + bit % 19), contents) << bit;
      file[bit / 8] = static_cast<char>(file[bit / 8] ^ 1 << bit % 8);
    }
    ASSERT_EQ(ReadRdb(file).status, absl::OkStatus());
  }
}

TEST(RdbDamageTest, AnEndWithZerosBehindItIsNotTakenForOneInTheMiddle) {
  std::string body = Bytes({252, 0, 0, 0, 0, 0, 0, 0, 0});
  AppendRdbEntry("key", "value", kNoDeadline, body);
  std::string file = RdbFile(body);
  ASSERT_EQ(ReadRdb(file).entries.size(), 1u);
  file[RdbHeader(10).size()] = '\xff';
  EXPECT_TRUE(absl::IsDataLoss(ReadRdb(file).status));
}

TEST(RdbDamageTest, EverySectorOfZerosIsSeen) {
  const std::string file = Sample(10);
  constexpr size_t kSector = 32;
  for (size_t at = 0; at < file.size(); at += kSector) {
    std::string zeroed = file;
    const size_t end =
        std::min(at + kSector, file.size() - 8);  // a sum of zeros is another case: has_sum
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(at),
              zeroed.begin() + static_cast<std::ptrdiff_t>(end), '\0');
    EXPECT_FALSE(ReadRdb(zeroed).status.ok()) << at;
  }
}

TEST(RdbDamageTest, ManyChangesAtOnceAreSeenAndPiecesAgree) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const std::string file = Sample(10);
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = file;
    for (size_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 8);
          break;
        case 2:
          damaged.insert(at, std::string(random() % 8, static_cast<char>(random())));
          break;
        default:
          damaged.replace(at, random() % 8, file, random() % file.size(), random() % 8);
      }
      if (damaged.empty()) damaged = "R";
    }
    const RdbContents contents = ReadRdb(damaged);
    const bool same = damaged.substr(0, file.size()) == file;
    EXPECT_EQ(contents.status.ok(), same) << round;
    EXPECT_EQ(ReadRdb(damaged, 1 + random() % 40), contents) << round;
  }
}

TEST(RdbDamageTest, BytesThatNobodyWroteNeverStopTheReader) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 20000; ++round) {
    // Mostly bytes that mean something, so that it gets past the first.
    constexpr uint8_t kLikely[] = {0,    1,   2,   3,   5,   0x40, 0x80, 0x81, 0xc0, 0xc1, 0xc2,
                                   0xc3, 244, 248, 249, 250, 251,  252,  253,  254,  255};
    std::string file = random() % 10 == 0 ? "" : RdbHeader(static_cast<int>(1 + random() % 12));
    for (size_t size = random() % 60; size > 0; --size)
      file += static_cast<char>(random() % 3 == 0 ? random() : kLikely[random() % sizeof(kLikely)]);
    const RdbContents contents = ReadRdb(file);
    EXPECT_LE(contents.offset, file.size());
    EXPECT_EQ(ReadRdb(file, 1 + random() % 10), contents);
  }
}

TEST(RdbDamageTest, EveryBitOfAPayloadThatFlipsIsSeen) {
  for (const std::string& value : {std::string("12"), std::string("text"), std::string(300, 'x')}) {
    std::string payload = DumpPayload(value);
    ASSERT_EQ(*ReadDumpPayload(payload), value);
    for (size_t bit = 0; bit < payload.size() * 8; ++bit) {
      payload[bit / 8] = static_cast<char>(payload[bit / 8] ^ 1 << bit % 8);
      EXPECT_TRUE(absl::IsInvalidArgument(ReadDumpPayload(payload).status())) << bit;
      payload[bit / 8] = static_cast<char>(payload[bit / 8] ^ 1 << bit % 8);
    }
    for (size_t size = 0; size < payload.size(); ++size)
      EXPECT_TRUE(absl::IsInvalidArgument(ReadDumpPayload(payload.substr(0, size)).status()))
          << size;
  }
}

TEST(RdbDamageTest, PayloadsWithARightSumAreReadToTheEndOrRefused) {
  EXPECT_EQ(*ReadDumpPayload(Payload(Bytes({0, 0xc0, 5}), 1)), "5");
  EXPECT_EQ(*ReadDumpPayload(Payload(Bytes({0, 0xc0, 5}), 12)), "5");
  EXPECT_TRUE(absl::IsInvalidArgument(ReadDumpPayload(Payload(Bytes({0, 0xc0, 5}), 13)).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadDumpPayload(Payload("")).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadDumpPayload(Payload(Bytes({0}))).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadDumpPayload(Payload(Bytes({0, 5, 'a'}))).status()));
  EXPECT_TRUE(absl::IsDataLoss(ReadDumpPayload(Payload(Bytes({0, 1, 'a', 'b'}))).status()))
      << "more than one value";
  EXPECT_TRUE(absl::IsDataLoss(ReadDumpPayload(Payload(Bytes({99, 1, 'a'}))).status()));
  EXPECT_EQ(ReadDumpPayload(Payload(Bytes({7, 1, 'a'}))).status(),
            absl::UnimplementedError("a module's value"));
}

}  // namespace
}  // namespace idemd::storage
