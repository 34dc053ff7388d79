// Bits and bit fields, against Redis' answers and against a bit-by-bit model.
#include <algorithm>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/seed.h"
#include "tests/server/commands/string_script.h"

namespace idemd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kNotInteger[] = "-ERR value is not an integer or out of range";
constexpr char kBitOffset[] = "-ERR bit offset is not an integer or out of range";
constexpr char kBadType[] =
    "-ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 "
    "is.";

TEST(BitCommands, SingleBits) {
  PlayFresh({{"GETBIT k 100", "0"},
             {"SETBIT k 1 1", "0"},
             {"SETBIT k 7 1", "0"},
             {"GET k", "\"A\""},
             {"SETBIT k 7 0", "1"},
             {"GETBIT k 1", "1"},
             {"GETBIT k 8", "0"},
             {"SETBIT k 23 0", "0"},
             {"STRLEN k", "3"},
             {"SETBIT k -1 1", kBitOffset},
             {"SETBIT k 4294967296 1", kBitOffset},
             {"SETBIT k #1 1", kBitOffset},
             {"GETBIT k a", kBitOffset},
             {"SETBIT k 1 2", "-ERR bit is not an integer or out of range"},
             {"SETBIT k 1 a", "-ERR bit is not an integer or out of range"}});
}

TEST(BitCommands, OnlyChangesReachTheLog) {
  Harness server;
  server.Do("SET k A EX 10");
  server.NewEffects();
  server.Do("SETBIT k 1 1");
  server.Do("BITFIELD k SET u8 0 65 INCRBY u8 0 0 GET u8 0");
  EXPECT_THAT(server.NewEffects(), IsEmpty());
  server.Do("SETBIT k 6 1");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 k C PXAT 1700000010000"));
  server.Do("BITFIELD k INCRBY u8 0 1");
  EXPECT_THAT(server.NewEffects(), ElementsAre("SET 0 k D PXAT 1700000010000"));
}

TEST(BitCommands, Counting) {
  PlayFresh({{"BITCOUNT k a b c", "0"},
             {"SET k foobar", "OK"},
             {"BITCOUNT k", "26"},
             {"BITCOUNT k 0 0", "4"},
             {"BITCOUNT k 1 1 BYTE", "6"},
             {"BITCOUNT k 5 30 BIT", "17"},
             {"BITCOUNT k -10 -1 bit", "5"},
             {"BITCOUNT k -1 -5", "0"},
             {"BITCOUNT k -1 -5 foo", "0"},
             {"BITCOUNT k 100 200", "0"},
             {"BITCOUNT k 0", "-ERR syntax error"},
             {"BITCOUNT k 0 1 foo", "-ERR syntax error"},
             {"BITCOUNT k 0 1 bit x", "-ERR syntax error"},
             {"BITCOUNT k a 1", kNotInteger}});
}

TEST(BitCommands, Positions) {
  Harness server;
  server.DoWords({"SET", "k", std::string("\xff\xf0\x00", 3)});
  server.DoWords({"SET", "ones", "\xff\xff\xff"});
  Play(server, {{"BITPOS absent 0", "0"},
                {"BITPOS absent 1", "-1"},
                {"BITPOS k 0", "12"},
                {"BITPOS k 1 2", "-1"},
                {"BITPOS k 0 2 -1 BYTE", "16"},
                {"BITPOS k 1 7 15 BIT", "7"},
                {"BITPOS k 0 9 11 BIT", "-1"},
                {"BITPOS ones 0", "24"},
                {"BITPOS ones 0 1", "24"},
                {"BITPOS ones 0 0 -1", "-1"},
                {"BITPOS ones 1 3", "-1"},
                {"BITPOS k 2", "-ERR The bit argument must be 1 or 0."},
                {"BITPOS k a", kNotInteger},
                {"BITPOS k 1 a", kNotInteger},
                {"BITPOS k 1 0 1 foo", "-ERR syntax error"},
                {"BITPOS k 1 0 1 bit x", "-ERR syntax error"},
                {"SET k \"\"", "OK"},
                {"BITPOS k 0", "-1"}});
}

// What the ranges of BITCOUNT and BITPOS mean, bit by bit.
struct Bits {
  std::string bits;  // '0' and '1'

  explicit Bits(const std::string& bytes) {
    for (const char byte : bytes) {
      for (int i = 7; i >= 0; --i)
        bits.push_back((static_cast<unsigned char>(byte) >> i & 1) != 0 ? '1' : '0');
    }
  }
  std::string Range(long start, long end, bool in_bits) const {
    const long unit = in_bits ? 1 : 8;
    const long total = static_cast<long>(bits.size()) / unit;
    if (start < 0) start = std::max(start + total, 0L);
    if (end < 0) end = std::max(end + total, 0L);
    end = std::min(end, total - 1);
    if (start > end) return "";
    return std::string(static_cast<size_t>(start * unit), '-') +
           bits.substr(static_cast<size_t>(start * unit),
                       static_cast<size_t>((end - start + 1) * unit));
  }
};

TEST(BitCommands, RangesAgreeWithTheModel) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Harness server;
  for (int round = 0; round < 2000; ++round) {
    // Long runs of one bit, so that whole words are skipped.
    std::string bytes(random() % 40, random() % 2 == 0 ? '\0' : '\xff');
    if (!bytes.empty() && random() % 4 != 0)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    server.DoWords({"SET", "k", bytes});
    const long start = static_cast<long>(random() % 700) - 350;
    const long end = static_cast<long>(random() % 700) - 350;
    if (start < 0 && end < 0 && start > end) continue;
    const bool in_bits = random() % 2 == 0;
    const char bit = random() % 2 == 0 ? '0' : '1';
    const std::string range = Bits(bytes).Range(start, end, in_bits);
    const std::string words =
        std::to_string(start) + " " + std::to_string(end) + (in_bits ? " BIT" : " BYTE");
    ASSERT_EQ(server.Do("BITCOUNT k " + words),
              std::to_string(std::count(range.begin(), range.end(), '1')))
        << words << " of " << ::testing::PrintToString(bytes);
    const size_t found = range.find(bit);
    ASSERT_EQ(server.Do(std::string("BITPOS k ") + bit + " " + words),
              found == std::string::npos ? "-1" : std::to_string(found))
        << words << " of " << ::testing::PrintToString(bytes);
  }
}

TEST(BitCommands, Operations) {
  Harness server;
  server.DoWords({"MSET", "a", "\xf0\x0f", "b", "\xff"});
  Play(server, {{"BITOP AND d a b", "2"},
                {"BITOP or e a b", "2"},
                {"BITOP XOR f a b absent", "2"},
                {"BITOP NOT g a", "2"}});
  EXPECT_EQ(server.Do("GET d"), std::string("\"\xf0\0\"", 4));
  EXPECT_EQ(server.Do("GET e"), "\"\xff\x0f\"");
  EXPECT_EQ(server.Do("GET f"), "\"\x0f\x0f\"");
  EXPECT_EQ(server.Do("GET g"), "\"\x0f\xf0\"");
  Play(server, {{"EXPIRE d 100", "1"},
                {"BITOP AND d absent none", "0"},
                {"EXISTS d", "0"},
                {"BITOP NOT g a b", "-ERR BITOP NOT must be called with a single source key."},
                {"BITOP FOO g a", "-ERR syntax error"},
                {"BITOP NOT a a", "2"}});
  EXPECT_EQ(server.Do("GET a"), "\"\x0f\xf0\"");
}

TEST(BitCommands, FieldsReadAndChange) {
  PlayFresh({{"BITFIELD k", "[]"},
             {"BITFIELD k GET u8 0", "[0]"},
             {"EXISTS k", "0"},
             {"BITFIELD k SET u8 0 255 GET i8 0", "[0 -1]"},
             {"BITFIELD k INCRBY i5 100 1 GET u4 0", "[1 15]"},
             {"STRLEN k", "14"},
             {"BITFIELD k SET i64 0 -9223372036854775808 GET i64 0",
              "[-72057594037927936 -9223372036854775808]"},
             {"BITFIELD k SET u63 0 9223372036854775807 GET u63 #0",
              "[4611686018427387904 9223372036854775807]"},
             {"BITFIELD n SET u8 #2 65", "[0]"},
             {"GETRANGE n 2 2", "\"A\""},
             {"BITFIELD_RO n GET u8 #2 GET u1 1000", "[65 0]"},
             {"BITFIELD_RO n SET u8 0 1", "-ERR BITFIELD_RO only supports the GET subcommand"}});
}

TEST(BitCommands, FieldsOverflowAsAsked) {
  PlayFresh(
      {{"BITFIELD k SET u2 0 3 INCRBY u2 0 1", "[0 0]"},
       {"BITFIELD k OVERFLOW SAT INCRBY u2 0 5 INCRBY u2 0 -9", "[3 0]"},
       {"BITFIELD k OVERFLOW FAIL INCRBY u2 0 4 INCRBY u2 0 3 OVERFLOW WRAP INCRBY u2 0 2",
        "[nil 3 1]"},
       {"BITFIELD k SET i8 8 127 INCRBY i8 8 1", "[0 -128]"},
       {"BITFIELD k OVERFLOW SAT INCRBY i8 8 -1 INCRBY i8 8 300", "[-128 127]"},
       {"BITFIELD k SET u8 8 256 GET u8 8", "[127 0]"},
       {"BITFIELD k OVERFLOW SAT SET u8 8 -1 GET u8 8", "[0 255]"},
       {"BITFIELD k OVERFLOW FAIL SET i8 8 128 GET u8 8", "[nil 255]"},
       {"BITFIELD k SET i64 64 9223372036854775807 INCRBY i64 64 1", "[0 -9223372036854775808]"},
       {"BITFIELD k OVERFLOW SAT INCRBY i64 64 -1", "[-9223372036854775808]"},
       {"BITFIELD grown OVERFLOW FAIL SET u1 0 2", "[nil]"},
       {"STRLEN grown", "1"}});
}

TEST(BitCommands, FieldErrorsLeaveTheValueAlone) {
  Harness server;
  server.Do("SET k A");
  Play(server, {{"BITFIELD k SET u8 0 1 GET u64 0", kBadType},
                {"BITFIELD k SET u8 0 1 GET i65 0", kBadType},
                {"BITFIELD k GET u0 0", kBadType},
                {"BITFIELD k GET U8 0", kBadType},
                {"BITFIELD k GET u 0", kBadType},
                {"BITFIELD k GET \"\" 0", kBadType},
                {"BITFIELD k SET u8 0 1 GET u8 -1", kBitOffset},
                {"BITFIELD k GET u8 #", kBitOffset},
                {"BITFIELD k GET u63 #9223372036854775807", kBitOffset},
                {"BITFIELD k SET u8 4294967296 1", kBitOffset},
                {"BITFIELD k SET u8 0 a", kNotInteger},
                {"BITFIELD k SET u8 0", "-ERR syntax error"},
                {"BITFIELD k FOO u8 0", "-ERR syntax error"},
                {"BITFIELD k OVERFLOW", "-ERR syntax error"},
                {"BITFIELD k OVERFLOW FOO", "-ERR Invalid OVERFLOW type specified"},
                {"GET k", "\"A\""}});
}

}  // namespace
}  // namespace idemd::testing
