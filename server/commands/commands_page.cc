// Writes the commands page.
#include "server/commands/commands_page.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/commands/help.h"

namespace idemd::server {
namespace {

// The product's own commands first; groups without a command are left out.
constexpr std::array kOrder = {Group::kIdem,       Group::kGeneric,      Group::kString,     Group::kBitmap,
                               Group::kTransactions, Group::kConnection, Group::kServer,     Group::kPubSub,
                               Group::kScripting,  Group::kHash,         Group::kList,       Group::kSet,
                               Group::kSortedSet,  Group::kStream,       Group::kHyperLogLog, Group::kGeo,
                               Group::kCluster,    Group::kSentinel};

std::string Title(Group group) {
  if (group == Group::kIdem) return "Native commands";
  std::string title = GroupName(group);
  title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

// Inside a table cell a bar would end the cell.
std::string Cell(const std::string& text) { return absl::StrReplaceAll(text, {{"|", "\\|"}}); }

void AddRow(const std::string& name, const CommandSpec& spec, std::string* page) {
  const std::string syntax = ArgumentSyntax(spec.args);
  absl::StrAppend(page, "| `", name, syntax.empty() ? "" : " ", Cell(syntax), "` | ", Cell(spec.summary), " | ",
                  Cell(spec.complexity), " |\n");
}

void AddGroup(const CommandTable& table, Group group, std::string* page) {
  std::string rows;
  for (const CommandEntry* entry : table.commands()) {
    if (entry->spec->group != group) continue;
    if (entry->subcommands.empty() || entry->spec->handler != nullptr) AddRow(entry->spec->name, *entry->spec, &rows);
    for (const CommandEntry* sub : entry->subcommands)
      AddRow(absl::StrCat(entry->spec->name, " ", sub->spec->name), *sub->spec, &rows);
  }
  if (rows.empty()) return;
  absl::StrAppend(page, "\n## ", Title(group), "\n\n| command | what it does | cost |\n| --- | --- | --- |\n", rows);
}

}  // namespace

std::string CommandsPage(const CommandTable& table) {
  std::string page =
      "# Commands\n\n"
      "Made from the command table in `server/commands/` by `idemd --commands-page`; a test keeps the two equal.\n"
      "The native commands are explained one by one in [native-commands.md](native-commands.md); all others answer as\n"
      "Redis 7.0.15 does. `COMMAND DOCS` tells the same from a running server.\n";
  for (Group group : kOrder) AddGroup(table, group, &page);
  return page;
}

}  // namespace idemd::server
