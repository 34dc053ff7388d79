// The commands page is what the table says, and the table is complete enough to make it.
#include "server/commands/commands_page.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace idemd::server {
namespace {

TEST(CommandsPage, TheCommittedPageIsTheTables) {
  std::ifstream in(IDEMD_SOURCE_DIR "/docs/commands.md");
  std::stringstream page;
  page << in.rdbuf();
  EXPECT_EQ(page.str(), CommandsPage(CommandTable())) << "run: idemd --commands-page > docs/commands.md";
}

TEST(CommandsPage, EveryCommandHasASummaryAndACost) {
  const CommandTable table;
  for (const CommandEntry* entry : table.all()) {
    EXPECT_STRNE(entry->spec->summary, "") << entry->full_name;
    EXPECT_STRNE(entry->spec->complexity, "") << entry->full_name;
    EXPECT_STRNE(entry->spec->since, "") << entry->full_name;
  }
}

}  // namespace
}  // namespace idemd::server
