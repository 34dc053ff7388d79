// Libraries of functions as a payload: there and back, and nothing but whole ones.
#include "storage/snapshot/rdb_functions.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/storage/snapshot/rdb_files.h"

namespace idemd::storage {
namespace {

TEST(RdbFunctions, TextsOfEveryLengthComeBack) {
  const std::string large(100'000, 'x');
  const std::vector<absl::string_view> texts = {"#!lua name=a\nreturn", "", "12345", large, "a\0b"};
  std::vector<std::string> read;
  ASSERT_TRUE(ReadFunctionDump(DumpFunctions(texts), &read));
  EXPECT_EQ(read, std::vector<std::string>(texts.begin(), texts.end()));
  read.clear();
  EXPECT_TRUE(ReadFunctionDump(DumpFunctions({}), &read));
  EXPECT_TRUE(read.empty());
}

TEST(RdbFunctions, WhatIsCutOrChangedIsRefused) {
  const std::string dump = DumpFunctions({"#!lua name=a\nreturn 1", "#!lua name=b\nreturn 2"});
  for (size_t size = 0; size < dump.size(); ++size) {
    std::vector<std::string> read;
    EXPECT_FALSE(ReadFunctionDump(absl::string_view(dump).substr(0, size), &read)) << size;
  }
  for (size_t at = 0; at < dump.size(); ++at) {
    std::string changed = dump;
    changed[at] = static_cast<char>(changed[at] ^ 0x20);
    std::vector<std::string> read;
    EXPECT_FALSE(ReadFunctionDump(changed, &read)) << at;
  }
}

TEST(RdbFunctions, WhatIsNoLibraryIsRefusedHoweverGoodItsSumIs) {
  std::vector<std::string> read;
  EXPECT_FALSE(ReadFunctionDump(Payload(Bytes({0, 1, 'x'})), &read));          // a string, as DUMP has it
  EXPECT_FALSE(ReadFunctionDump(Payload(Bytes({245, 5, 'x'})), &read));        // shorter than it says
  EXPECT_FALSE(ReadFunctionDump(Payload(Bytes({245, 1, 'x'}), 99), &read));    // of a later version
}

}  // namespace
}  // namespace idemd::storage
