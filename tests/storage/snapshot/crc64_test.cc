// The sum of RDB files, against Redis' own check values and in pieces.
#include "storage/snapshot/crc64.h"

#include <gtest/gtest.h>

#include <string>

namespace idemd::storage {
namespace {

TEST(Crc64Test, SumsAreThoseOfRedis) {
  EXPECT_EQ(Crc64(0, ""), 0u);
  EXPECT_EQ(Crc64(0, "123456789"), 0xe9c6d914c4b8d9caull);
  EXPECT_EQ(
      Crc64(0,
            "This is a test of the emergency broadcast system. This is only a test. If this had "
            "been an actual "
            "emergency, this wouldn't have been only a test."),
      [] {  // bit by bit
        uint64_t sum = 0;
        for (const char c : std::string("This is a test of the emergency broadcast system. This is "
                                        "only a test. If this had been an "
                                        "actual emergency, this wouldn't have been only a test.")) {
          sum ^= static_cast<uint8_t>(c);
          for (int bit = 0; bit < 8; ++bit)
            sum = sum >> 1 ^ ((sum & 1) != 0 ? 0x95ac9329ac4bc9b5 : 0);
        }
        return sum;
      }());
}

TEST(Crc64Test, EveryCutGivesTheSameSum) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i * 37);
  const uint64_t whole = Crc64(0, bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut)
    EXPECT_EQ(Crc64(Crc64(0, bytes.substr(0, cut)), bytes.substr(cut)), whole) << cut;
}

}  // namespace
}  // namespace idemd::storage
