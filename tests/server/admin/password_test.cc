// Passwords compare by content alone, whatever their length and bytes.
#include "server/admin/password.h"

#include "gtest/gtest.h"

namespace idemd::server {
namespace {

TEST(Password, OfAnyLengthAndBytesCompares) {
  EXPECT_TRUE(SamePassword("", ""));
  EXPECT_TRUE(SamePassword(std::string(10'000, 'x'), std::string(10'000, 'x')));
  EXPECT_FALSE(SamePassword("secret", "secre"));
  EXPECT_FALSE(SamePassword(absl::string_view("a\0b", 3), "a"));
}

TEST(Password, DigestIsSha256) {
  EXPECT_EQ(PasswordDigestHex("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Password, MadeUpOnesHaveTheAskedLengthAndDiffer) {
  EXPECT_EQ(RandomPassword(1).size(), 1u);
  EXPECT_EQ(RandomPassword(64).size(), 64u);
  EXPECT_EQ(RandomPassword(64).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(RandomPassword(64), RandomPassword(64));
}

}  // namespace
}  // namespace idemd::server
