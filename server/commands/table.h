// All commands by name: built once from the groups' entries, checked while it is built, then read by every thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command.h"
#include "server/commands/name_index.h"

namespace idemd::server {

struct CommandEntry {
  const CommandSpec* spec = nullptr;
  const CommandEntry* parent = nullptr;  // of a subcommand
  uint32_t ordinal = 0;                  // index of its statistics
  bool plain = false;                    // works on data, and leaves the session as it is: see Dispatcher::Quiet()
  bool quick = false;                    // plain, and short enough to be timed with its neighbours: see CommandTimer
  std::string full_name;                 // lower case, "client|list"
  std::vector<const CommandEntry*> subcommands;
};

class CommandTable {
 public:
  // Every group there is.
  CommandTable();
  // Stops the process when two entries have one name, a key position lies outside the arity, or a handler is missing.
  explicit CommandTable(absl::Span<const absl::Span<const CommandSpec>> groups);
  CommandTable(const CommandTable&) = delete;
  CommandTable& operator=(const CommandTable&) = delete;

  // Any case; null when there is no such command.
  const CommandEntry* Find(absl::string_view name) const;
  const CommandEntry* FindSubcommand(const CommandEntry& container, absl::string_view word) const;
  // "client|list" or "get".
  const CommandEntry* FindFullName(absl::string_view name) const;
  const CommandEntry& EntryOf(const CommandSpec& spec) const { return *by_spec_.at(&spec); }
  absl::Span<const CommandEntry* const> commands() const { return commands_; }  // top level, by name
  absl::Span<const CommandEntry* const> all() const { return all_; }            // by ordinal

 private:
  CommandEntry* Add(const CommandSpec& spec, CommandEntry* parent);

  std::vector<std::unique_ptr<CommandEntry>> owned_;
  std::vector<const CommandEntry*> commands_;
  std::vector<const CommandEntry*> all_;
  // Views into full_name.
  absl::flat_hash_map<absl::string_view, const CommandEntry*> by_name_;
  absl::flat_hash_map<const CommandSpec*, const CommandEntry*> by_spec_;
  NameIndex short_names_;  // of the top level
};

// Positions of the keys among `words` (a complete command); false when they cannot be told.
bool KeyPositions(const CommandSpec& spec, absl::Span<const absl::string_view> words, std::vector<int>& positions);

// Whether `count` words fit the entry's arity.
inline bool ArityFits(const CommandSpec& spec, size_t count) {
  return spec.arity >= 0 ? count == static_cast<size_t>(spec.arity) : count >= static_cast<size_t>(-spec.arity);
}

}  // namespace idemd::server
