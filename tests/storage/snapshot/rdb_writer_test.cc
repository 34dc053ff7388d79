// What the writer makes of every kind of string, and that the reader gets the same back.
#include "storage/snapshot/rdb_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "tests/storage/snapshot/rdb_files.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// The value's bytes in a DUMP payload, without type, version and sum.
std::string Encoded(absl::string_view value, RdbStrings strings = RdbStrings::kCompressed) {
  const std::string payload = DumpPayload(value, strings);
  return payload.substr(1, payload.size() - 11);
}

// Looks like the answers that services give.
std::string Text(size_t size, std::mt19937_64& random) {
  std::string text;
  while (text.size() < size)
    absl::StrAppend(&text, "{\"id\":", random() % 100000, ",\"currency\":\"EUR\"},");
  text.resize(size);
  return text;
}

TEST(RdbWriterTest, PlainNumbersOf32BitsTakeTheShortestForm) {
  EXPECT_EQ(Encoded("0"), Bytes({0xc0, 0}));
  EXPECT_EQ(Encoded("-128"), Bytes({0xc0, 0x80}));
  EXPECT_EQ(Encoded("128"), Bytes({0xc1, 0x80, 0}));
  EXPECT_EQ(Encoded("-32769"), Bytes({0xc2, 0xff, 0x7f, 0xff, 0xff}));
  EXPECT_EQ(Encoded("2147483647"), Bytes({0xc2, 0xff, 0xff, 0xff, 0x7f}));
  EXPECT_EQ(Encoded("-2147483648"), Bytes({0xc2, 0, 0, 0, 0x80}));
  for (const char* text : {"2147483648", "-2147483649", "01", "-0", "+1", " 1", "1 ", "", "-", "1a",
                           "0x1", "99999999999"})
    EXPECT_EQ(Encoded(text), static_cast<char>(strlen(text)) + std::string(text));
}

TEST(RdbWriterTest, NumbersComeBackAsTheyWere) {
  for (const int64_t around :
       {0L, 127L, -128L, 255L, 32767L, -32768L, 65535L, 2147483647L, -2147483648L, 4294967295L})
    for (int64_t i = around - 3; i <= around + 3; ++i) {
      const std::string text = absl::StrCat(i);
      EXPECT_EQ(*ReadDumpPayload(DumpPayload(text)), text);
    }
}

TEST(RdbWriterTest, StringsOfEveryLengthComeBackCompressedOrNot) {
  std::mt19937_64 random(1);
  for (size_t size : {0,     1,     10,    11,    12,    20,    21,    62,    63,    64,  65,
                      127,   128,   129,   200,   255,   256,   257,   263,   264,   265, 1000,
                      16382, 16383, 16384, 16385, 32768, 65535, 65536, 65537, 300000}) {
    for (const std::string& value : {std::string(size, 'a'), Text(size, random)}) {
      for (const RdbStrings strings : {RdbStrings::kPlain, RdbStrings::kCompressed}) {
        EXPECT_EQ(*ReadDumpPayload(DumpPayload(value, strings)), value) << size;
        std::string body;
        AppendRdbEntry(value, value, 77, body, strings);
        AppendRdbEntry("next", "1", kNoDeadline, body, strings);
        for (const size_t piece : {size_t{1}, size_t{4096}, SIZE_MAX}) {
          const RdbContents contents = ReadRdb(RdbFile(body), piece);
          EXPECT_EQ(contents.status, absl::OkStatus());
          EXPECT_THAT(contents.entries,
                      ElementsAre(RdbEntry{0, value, value, 77}, RdbEntry{0, "next", "1"}))
              << size;
        }
      }
    }
  }
}

TEST(RdbWriterTest, StringsAreCompressedWhereItGainsAndIsAllowed) {
  std::mt19937_64 random(1);
  const std::string lzf(1, '\xc3');
  EXPECT_THAT(Encoded(std::string(kRdbCompressMin, 'a')), StartsWith(lzf));
  EXPECT_LT(Encoded(std::string(kRdbCompressMin, 'a')).size(), 20u);
  EXPECT_THAT(Encoded(Text(kRdbCompressMax, random)), StartsWith(lzf));
  EXPECT_EQ(Encoded(std::string(kRdbCompressMin, 'a'), RdbStrings::kPlain).size(),
            kRdbCompressMin + 2);
  EXPECT_EQ(Encoded(std::string(kRdbCompressMin - 1, 'a')).size(), kRdbCompressMin + 1);
  EXPECT_EQ(Encoded(std::string(kRdbCompressMax + 1, 'a')).size(), kRdbCompressMax + 6);
  std::string noise;
  for (size_t i = 0; i < 1000; ++i) noise += static_cast<char>(random());
  EXPECT_EQ(Encoded(noise).size(), 1002u) << "what does not gain stays as it is";
}

TEST(RdbWriterTest, WholeFilesOfRandomEntriesComeBackFromAnyPieces) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<RdbEntry> entries;
    std::string file;
    AppendRdbHeader(file);
    AppendRdbAux("lsn", absl::StrCat(random()), file);
    DbIndex db = 0;
    const size_t count = random() % 40;
    for (size_t i = 0; i < count; ++i) {
      if (random() % 8 == 0) {
        db = static_cast<DbIndex>(random() % 16);
        AppendRdbDatabase(db, random() >> random() % 64, random() >> random() % 64, file);
      }
      const auto text = [&]() -> std::string {
        switch (random() % 4) {
          case 0:
            return absl::StrCat(static_cast<int64_t>(random()) >> random() % 64);
          case 1:
            return Text(random() % 2000, random);
          case 2:
            return std::string(random() % 70000, static_cast<char>(random()));
          default:
            return Text(random() % 40, random);
        }
      };
      entries.push_back({db, text(), text(),
                         random() % 2 == 0 ? kNoDeadline : static_cast<int64_t>(random() >> 20)});
      AppendRdbEntry(entries.back().key, entries.back().value, entries.back().deadline_ms, file,
                     random() % 2 == 0 ? RdbStrings::kPlain : RdbStrings::kCompressed);
    }
    file = RdbFinished(file);
    const size_t largest = size_t{1} << random() % 18;
    const auto pieces = std::make_shared<RdbPieces>(file, [&] { return random() % largest; });
    const RdbContents contents = ReadRdb([pieces](size_t size) { return (*pieces)(size); });
    EXPECT_EQ(contents.status, absl::OkStatus());
    EXPECT_EQ(contents.entries, entries);
    EXPECT_EQ(contents, ReadRdb(file));
  }
}

}  // namespace
}  // namespace idemd::storage
