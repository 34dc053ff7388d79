// RDB files by hand: every version, opcode and encoding that is read, and the names of those that
// are refused.
#include "storage/collection/rdb_collection.h"
#include "storage/snapshot/rdb_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_cat.h"
#include "storage/snapshot/rdb_format.h"
#include "tests/storage/snapshot/rdb_files.h"

namespace idemd::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// A plain string of less than 64 bytes.
std::string Short(absl::string_view text) {
  return static_cast<char>(text.size()) + std::string(text);
}
std::string Entry(absl::string_view key, absl::string_view encoded_value) {
  return Bytes({0}) + Short(key) + std::string(encoded_value);
}
template <class Int>
std::string Little(Int value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The value that `encoded` stands for, or the error; the same whole and in pieces.
absl::StatusOr<std::string> Decoded(const std::string& encoded) {
  const std::string file = RdbFile(Entry("k", encoded));
  const RdbContents contents = ReadRdb(file);
  for (const size_t piece : {1, 2, 3, 5, 8, 13}) EXPECT_EQ(ReadRdb(file, piece), contents) << piece;
  if (!contents.status.ok()) return contents.status;
  EXPECT_EQ(contents.entries.size(), 1u);
  return contents.entries.empty() ? "" : contents.entries[0].value;
}

// The error of a file with such a body, the same in pieces.
absl::Status Failure(const std::string& body) {
  const std::string file = RdbFile(body);
  const RdbContents contents = ReadRdb(file);
  for (const size_t piece : {1, 2, 7}) EXPECT_EQ(ReadRdb(file, piece), contents) << piece;
  return contents.status;
}

TEST(RdbReaderTest, EveryVersionIsReadWithAndWithoutASum) {
  const std::string body = Bytes({254, 3}) + Entry("k", Short("v"));
  for (int version = 1; version <= 12; ++version) {
    const std::string head = RdbHeader(version) + body;
    const RdbContents contents =
        version < 5 ? ReadRdb(head + Bytes({255}), 1) : ReadRdb(RdbFinished(head), 1);
    EXPECT_EQ(contents.status, absl::OkStatus()) << version;
    EXPECT_EQ(contents.version, static_cast<uint32_t>(version));
    EXPECT_EQ(contents.has_sum, version >= 5);
    EXPECT_THAT(contents.entries, ElementsAre(RdbEntry{3, "k", "v"})) << version;
    EXPECT_EQ(contents.offset, head.size() + (version < 5 ? 1 : 9));
  }
}

TEST(RdbReaderTest, OtherHeadersAreRefused) {
  const auto status = [](absl::string_view file) { return ReadRdb(file).status; };
  EXPECT_TRUE(absl::IsDataLoss(status("REDIS0000\xff")));
  EXPECT_TRUE(absl::IsDataLoss(status("REDIS00x1\xff")));
  EXPECT_TRUE(absl::IsDataLoss(status("REDIX0001\xff")));
  EXPECT_THAT(status("*1\r\n$4\r\nPING\r\n").message(), HasSubstr("no RDB file"));
  EXPECT_TRUE(absl::IsDataLoss(status("")));
  EXPECT_TRUE(absl::IsUnimplemented(status("REDIS0013\xff")));
  EXPECT_THAT(status("REDIS0080\xff").message(), HasSubstr("version 80 is newer than 12"));
  EXPECT_THAT(status("VALKEY080\xff").message(), HasSubstr("Valkey 9"));
}

TEST(RdbReaderTest, ASumOfZeroSaysThatThereIsNoneAndAnyOtherMustBeRight) {
  std::string file = RdbFile(Entry("k", Short("v")));
  EXPECT_TRUE(ReadRdb(file).has_sum);
  std::fill(file.end() - 8, file.end(), '\0');
  const RdbContents without = ReadRdb(file);
  EXPECT_EQ(without.status, absl::OkStatus());
  EXPECT_FALSE(without.has_sum);
  file.back() = 1;
  EXPECT_TRUE(absl::IsDataLoss(ReadRdb(file).status));
  EXPECT_THAT(ReadRdb(file).status.message(), HasSubstr("the sum says 100000000000000"));
}

TEST(RdbReaderTest, WhatFollowsTheEndIsLeftAloneButNothingFollowsWhereThereIsNoSum) {
  const std::string file = RdbFile(Entry("k", Short("v")));
  std::string unsummed = file;
  std::fill(unsummed.end() - 8, unsummed.end(), '\0');
  for (const size_t piece : {size_t{1}, size_t{6}, SIZE_MAX}) {
    const RdbContents contents = ReadRdb(file + "*1\r\n$4\r\nPING\r\n", piece);
    EXPECT_EQ(contents.status, absl::OkStatus());
    EXPECT_EQ(contents.offset, file.size());
    EXPECT_TRUE(absl::IsDataLoss(ReadRdb("REDIS0004\xff!", piece).status));
    EXPECT_TRUE(absl::IsDataLoss(ReadRdb(unsummed + "!", piece).status));
  }
}

TEST(RdbReaderTest, TheEndAndErrorsComeAgain) {
  std::string file = RdbFile("");
  std::shared_ptr<RdbPieces> pieces;
  const auto reader = [&] {
    pieces = std::make_shared<RdbPieces>(file, [] { return SIZE_MAX; });
    return RdbReader([p = pieces](size_t size) { return (*p)(size); });
  };
  RdbReader good = reader();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(good.Next()->kind, RdbItem::Kind::kEnd);
  file = RdbFile(Bytes({200}));
  RdbReader bad = reader();
  const absl::Status first = bad.Next().status();
  EXPECT_TRUE(absl::IsDataLoss(first));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bad.Next().status(), first);
}

TEST(RdbReaderTest, FieldsDatabasesAndSizesAreTold) {
  const RdbContents contents = ReadRdb(
      RdbFile(Bytes({250}) + Short("redis-ver") + Short("7.0.15") + Bytes({250}) + Short("ctime") +
              Bytes({0xc2, 1, 2, 3, 4}) + Bytes({254, 0, 251, 2, 0x41, 0x02}) +
              Entry("a", Short("1")) + Bytes({254, 15, 251, 1, 0}) + Entry("a", Short("2"))),
      1);
  EXPECT_EQ(contents.status, absl::OkStatus());
  EXPECT_THAT(contents.aux, ElementsAre(Pair("ctime", "67305985"), Pair("redis-ver", "7.0.15")));
  EXPECT_THAT(contents.sizes, ElementsAre(std::tuple(0u, 2u, 258u), std::tuple(15u, 1u, 0u)));
  EXPECT_THAT(contents.entries, ElementsAre(RdbEntry{0, "a", "1"}, RdbEntry{15, "a", "2"}));
}

TEST(RdbReaderTest, DeadlinesAreMillisecondsWhateverTheyWereWrittenIn) {
  const auto deadline = [](const std::string& before) {
    const RdbContents contents =
        ReadRdb(RdbFile(before + Entry("k", Short("v")) + Entry("next", Short("v"))), 1);
    EXPECT_EQ(contents.status, absl::OkStatus());
    EXPECT_EQ(contents.entries.at(1).deadline_ms, kNoDeadline) << "a deadline is of one key";
    return contents.entries.at(0).deadline_ms;
  };
  EXPECT_EQ(deadline(""), kNoDeadline);
  EXPECT_EQ(deadline(Bytes({253}) + Little<int32_t>(1'700'000'000)), 1'700'000'000'000);
  EXPECT_EQ(deadline(Bytes({252}) + Little<int64_t>(1'700'000'000'123)), 1'700'000'000'123);
  EXPECT_EQ(deadline(Bytes({252}) + Little<int64_t>(0)), 0);
  EXPECT_EQ(deadline(Bytes({252}) + Little<int64_t>(-5)), -5);
  EXPECT_EQ(deadline(Bytes({252}) + Little<int64_t>(-1)), kNoDeadline) << "as Redis takes it";
  EXPECT_EQ(deadline(Bytes({253}) + Little<int32_t>(-1)), kNoDeadline);
  EXPECT_EQ(deadline(Bytes({252}) + Little<int64_t>(INT64_MAX)), INT64_MAX - 1)
      << "far, but not never";
}

TEST(RdbReaderTest, HintsAboutUseAndSlotsAreReadOver) {
  const std::string body = Bytes({244, 7, 0x40, 1, 0}) + Bytes({252}) + Little<int64_t>(9) +
                           Bytes({248, 0x80, 0, 0, 1, 0}) + Entry("idle", Short("v")) +
                           Bytes({249, 255}) + Entry("often", Short("v"));
  const RdbContents contents = ReadRdb(RdbFile(body, 12), 1);
  EXPECT_EQ(contents.status, absl::OkStatus());
  EXPECT_THAT(contents.entries,
              ElementsAre(RdbEntry{0, "idle", "v", 9}, RdbEntry{0, "often", "v"}));
}

TEST(RdbReaderTest, LengthsAreReadInEveryForm) {
  const std::string text(300, 'x');
  EXPECT_EQ(*Decoded(Bytes({0})), "");
  EXPECT_EQ(*Decoded(Bytes({0x41, 0x2c}) + text), text);
  EXPECT_EQ(*Decoded(Bytes({0x80, 0, 0, 1, 0x2c}) + text), text);
  EXPECT_EQ(*Decoded(Bytes({0x81, 0, 0, 0, 0, 0, 0, 1, 0x2c}) + text), text);
  EXPECT_EQ(*Decoded(Bytes({0x40, 1}) + "x"), "x") << "longer than it had to be";
  EXPECT_THAT(
      Decoded(Bytes({0x82, 0, 0, 0, 1}) + "x").status().message(),
      HasSubstr("offset 12, in the value of key 'k': a length was expected, not the byte 130"));
}

TEST(RdbReaderTest, IntegersAreReadInEveryForm) {
  EXPECT_EQ(*Decoded(Bytes({0xc0, 0x80})), "-128");
  EXPECT_EQ(*Decoded(Bytes({0xc0, 0})), "0");
  EXPECT_EQ(*Decoded(Bytes({0xc1, 0x00, 0x80})), "-32768");
  EXPECT_EQ(*Decoded(Bytes({0xc1, 0xff, 0x7f})), "32767");
  EXPECT_EQ(*Decoded(Bytes({0xc2, 0, 0, 0, 0x80})), "-2147483648");
  EXPECT_EQ(*Decoded(Bytes({0xc2, 0xff, 0xff, 0xff, 0x7f})), "2147483647");
  EXPECT_THAT(Decoded(Bytes({0xc4, 0})).status().message(),
              HasSubstr("a string was expected, not the byte 196"));
}

// An LZF string: packed and whole length, then the packed bytes.
std::string Lzf(size_t size, const std::string& packed) {
  return Bytes({0xc3, static_cast<int>(packed.size()), 0x80, static_cast<int>(size >> 24 & 255),
                static_cast<int>(size >> 16 & 255), static_cast<int>(size >> 8 & 255),
                static_cast<int>(size & 255)}) +
         packed;
}

TEST(RdbReaderTest, CompressedStringsAreExpanded) {
  EXPECT_EQ(*Decoded(Lzf(3, Bytes({2, 'a', 'b', 'c'}))), "abc");
  EXPECT_EQ(*Decoded(Lzf(265, Bytes({0, 'a', 0xe0, 255, 0}))), std::string(265, 'a'));
}

TEST(RdbReaderTest, CompressedStringsThatLieAreDamage) {
  const std::string packed = Bytes({2, 'a', 'b', 'c'});
  for (const size_t size : {0u, 2u, 4u, 400u, 4'000'000'000u})
    EXPECT_TRUE(absl::IsDataLoss(Decoded(Lzf(size, packed)).status())) << size;
  EXPECT_TRUE(absl::IsDataLoss(Decoded(Lzf(3, "")).status()));
  EXPECT_TRUE(absl::IsDataLoss(Decoded(Lzf(9, Bytes({0, 'a', 0x20, 5}))).status()))
      << "from before the start";
  EXPECT_TRUE(absl::IsDataLoss(Decoded(Lzf(9, Bytes({8, 'a'}))).status()))
      << "literals that are not there";
}

// A reader that believed these would ask for more memory than there is.
TEST(RdbReaderTest, ALengthThatLiesCostsNoMemory) {
  const std::string huge = Bytes({0x81, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  EXPECT_THAT(Decoded(huge + "abc").status().message(), HasSubstr("cut short"));
  EXPECT_TRUE(absl::IsDataLoss(Decoded(Bytes({0xc3}) + huge + huge + "abc").status()));
  EXPECT_TRUE(absl::IsDataLoss(Decoded(Bytes({0xc3, 3}) + huge + "abc").status()));
  EXPECT_TRUE(absl::IsDataLoss(Failure(Bytes({0}) + huge + "abc")));
}

TEST(RdbReaderTest, EveryOtherTypeIsRefusedByName) {
  int refused = 0;
  for (int type = 1; type < 244; ++type) {
    const absl::Status status =
        Failure(Bytes({254, 5, type}) + Short("my\nkey") + Bytes({1, 2, 3}));
    const char* name = RdbTypeName(static_cast<uint8_t>(type));
    if (name == nullptr) {
      EXPECT_TRUE(absl::IsDataLoss(status)) << type;
      EXPECT_THAT(
          status.message(),
          HasSubstr(absl::StrCat("offset 11, in an opcode or a type: there is no type ", type)));
      continue;
    }
    if (RdbCollectionReader(static_cast<uint8_t>(type)) != nullptr) continue;
    ++refused;
    EXPECT_TRUE(absl::IsUnimplemented(status)) << type;
    EXPECT_THAT(status.message(), HasSubstr("offset 11: key 'my\\nkey' of database 5 is a"))
        << type;
    EXPECT_THAT(status.message(), HasSubstr(name));
  }
  EXPECT_GT(refused, 0);
}

TEST(RdbReaderTest, FunctionsOfCandidatesAndModulesAreRefusedByName) {
  absl::Status status = Failure(Bytes({246}) + Short("lib"));
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(status.message(), HasSubstr("a function (of a candidate of Redis 7.0)"));
  // "ReJSON-RL" in Redis' alphabet, version 3, as its length-like number.
  uint64_t id = 0;
  for (const char c : std::string("ReJSON-RL")) {
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    id = id << 6 | alphabet.find(c);
  }
  id = id << 10 | 3;
  status = Failure(Bytes({247, 0x81}) + Little(__builtin_bswap64(id)) + Bytes({2, 1}));
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(status.message(), HasSubstr("data of the module ReJSON-RL 3"));
}

TEST(RdbReaderTest, ADatabaseThatThisVersionHasNotIsRefused) {
  const absl::Status status = Failure(Bytes({254, 16}));
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(status.message(), HasSubstr("database 16"));
  EXPECT_TRUE(absl::IsUnimplemented(Failure(Bytes({254, 0x81, 1, 0, 0, 0, 0, 0, 0, 0}))));
}

TEST(RdbReaderTest, WhatBelongsToAKeyMustBeFollowedByOne) {
  const std::string deadline = Bytes({252}) + Little<int64_t>(9);
  for (const int op : {244, 245, 246, 247, 250, 251, 254, 255})
    EXPECT_THAT(Failure(deadline + Bytes({op, 0, 0, 0})).message(),
                HasSubstr(absl::StrCat("a key was expected, not opcode ", op)));
}

TEST(RdbReaderTest, LongKeysAreCutInErrors) {
  const std::string key(1000, 'k');
  const absl::Status status = Failure(Bytes({4, 0x43, 0xe8}) + key);
  EXPECT_THAT(status.message(), HasSubstr("'" + std::string(64, 'k') + "'..."));
  EXPECT_LT(status.message().size(), 300u);
}

TEST(RdbReaderTest, TheSourcesErrorsArePassedOnFromEveryPlace) {
  const std::string file =
      RdbFile(Bytes({254, 1}) + Bytes({252}) + Little<int64_t>(9) + Entry("key", Short("value")));
  for (size_t good = 0; good < file.size(); ++good) {
    size_t at = 0;
    const RdbContents contents = ReadRdb([&](size_t) -> absl::StatusOr<absl::string_view> {
      if (at == good) return absl::UnavailableError("the disk is gone");
      return absl::string_view(file).substr(at++, 1);
    });
    EXPECT_EQ(contents.status, absl::UnavailableError("the disk is gone")) << good;
  }
  size_t at = 0;
  const std::string old = "REDIS0003\xff";
  EXPECT_EQ(ReadRdb([&](size_t) -> absl::StatusOr<absl::string_view> {
              if (at == old.size()) return absl::UnavailableError("gone");
              return absl::string_view(old).substr(at++, 1);
            }).status,
            absl::UnavailableError("gone"))
      << "an old file that cannot be read on is not known to be whole";
}

}  // namespace
}  // namespace idemd::storage
