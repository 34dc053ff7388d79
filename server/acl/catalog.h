// The commands as rules see them: numbers, names, categories; whoever has the command table makes one.
//
// Threads   filled before it is shared, then read by all.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace idemd::server::acl {

using CommandId = uint32_t;
inline constexpr CommandId kNoCommand = UINT32_MAX;
inline constexpr size_t kCommandsMax = 1024;  // a bit for each in every selector
using CommandBits = std::bitset<kCommandsMax>;

class Catalog {
 public:
  struct Command {
    std::string name;               // lower case: "config|get"
    CommandId parent = kNoCommand;  // of a subcommand
    uint32_t categories = 0;        // one bit for each category, in their order
    bool always = false;            // whoever is not logged in may run it, too (AUTH)
    std::vector<CommandId> subcommands = {};
  };

  explicit Catalog(absl::Span<const absl::string_view> categories);
  // Numbers are given in order, from 0 on; a container comes before its subcommands.
  void Add(Command command);

  const std::vector<Command>& commands() const { return commands_; }
  // By full name, in any case.
  CommandId Find(absl::string_view name) const;
  const std::vector<std::string>& categories() const { return categories_; }
  // The place of a category, by name in any case; -1 when there is none.
  int FindCategory(absl::string_view name) const;
  // The commands and subcommands that belong to a category.
  const CommandBits& Members(int category) const { return members_[static_cast<size_t>(category)]; }
  // What a rule with the category is about: of a container that belongs to it, all subcommands, too.
  const CommandBits& Reach(int category) const { return reach_[static_cast<size_t>(category)]; }

 private:
  std::vector<std::string> categories_;
  std::vector<Command> commands_;
  std::vector<CommandBits> members_;
  std::vector<CommandBits> reach_;
  absl::flat_hash_map<std::string, CommandId> by_name_;
};

}  // namespace idemd::server::acl
