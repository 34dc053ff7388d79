// Every command is found in any case, and nothing else is.
#include "server/commands/name_index.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/ascii.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

TEST(NameIndexTest, EveryCommandIsFoundInAnyCase) {
  const CommandTable table;
  for (const CommandEntry* entry : table.commands()) {
    const std::string upper = absl::AsciiStrToUpper(entry->full_name);
    std::string mixed = upper;
    for (size_t i = 0; i < mixed.size(); i += 2) mixed[i] = absl::ascii_tolower(static_cast<unsigned char>(mixed[i]));
    for (const std::string& name : {entry->full_name, upper, mixed}) EXPECT_EQ(table.Find(name), entry) << name;
  }
}

TEST(NameIndexTest, ANameWithOneOtherByteIsAnotherName) {
  const CommandTable table;
  for (const CommandEntry* entry : table.commands()) {
    for (size_t i = 0; i < entry->full_name.size(); ++i) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string other = entry->full_name;
        other[i] = static_cast<char>(byte);
        const CommandEntry* found = table.Find(other);
        if (absl::AsciiStrToLower(other) == entry->full_name) {
          EXPECT_EQ(found, entry);
        } else if (found != nullptr) {
          EXPECT_EQ(found->full_name, absl::AsciiStrToLower(other)) << entry->full_name << " " << i << " " << byte;
        }
      }
    }
    EXPECT_NE(table.Find(entry->full_name + std::string(1, '\0')), entry);
    EXPECT_NE(table.Find(entry->full_name.substr(1)), entry);
    EXPECT_NE(table.Find(entry->full_name.substr(0, entry->full_name.size() - 1)), entry);
  }
  EXPECT_EQ(table.Find(""), nullptr);
}

}  // namespace
}  // namespace idemd::server
