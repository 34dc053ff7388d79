// Numbers commands, and gathers the categories' members.
#include "server/acl/catalog.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "server/check.h"

namespace idemd::server::acl {

Catalog::Catalog(absl::Span<const absl::string_view> categories)
    : categories_(categories.begin(), categories.end()),
      members_(categories.size()),
      reach_(categories.size()) {}

void Catalog::Add(Command command) {
  const size_t id = commands_.size();
  IDEMD_CHECK(id < kCommandsMax, "every command has its bit");
  uint32_t reached_by = command.categories;
  if (command.parent != kNoCommand) {
    Command& parent = commands_[command.parent];
    parent.subcommands.push_back(static_cast<CommandId>(id));
    reached_by |= parent.categories;
  }
  for (size_t i = 0; i < categories_.size(); ++i) {
    if ((command.categories >> i & 1) != 0) members_[i].set(id);
    if ((reached_by >> i & 1) != 0) reach_[i].set(id);
  }
  by_name_.emplace(command.name, static_cast<CommandId>(id));
  commands_.push_back(std::move(command));
}

CommandId Catalog::Find(absl::string_view name) const {
  const auto it = by_name_.find(absl::AsciiStrToLower(name));
  return it == by_name_.end() ? kNoCommand : it->second;
}

int Catalog::FindCategory(absl::string_view name) const {
  for (size_t i = 0; i < categories_.size(); ++i) {
    if (absl::EqualsIgnoreCase(categories_[i], name)) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace idemd::server::acl
