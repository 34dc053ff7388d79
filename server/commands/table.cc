// Builds the command table and checks every entry.
#include "server/commands/table.h"

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/admin/stats.h"
#include "server/check.h"
#include "server/commands/groups.h"

namespace idemd::server {
namespace {

constexpr size_t kNameBytesMax = 64;  // longer words are no command

// Lower case into a buffer on the stack, so that a look-up allocates nothing. Empty: too long.
absl::string_view Lower(absl::string_view name, char (&buffer)[kNameBytesMax]) {
  if (name.size() > kNameBytesMax) return {};
  for (size_t i = 0; i < name.size(); ++i)
    buffer[i] = absl::ascii_tolower(static_cast<unsigned char>(name[i]));
  return {buffer, name.size()};
}

void CheckSpec(const CommandSpec& spec, const std::string& name) {
  IDEMD_CHECK(spec.handler != nullptr || !spec.subcommands.empty(),
              absl::StrCat(name, " has a handler"));
  IDEMD_CHECK(spec.arity != 0, absl::StrCat(name, " has an arity"));
  const int least = spec.arity > 0 ? spec.arity : -spec.arity;
  IDEMD_CHECK(spec.keys.first < least, absl::StrCat(name, " has its first key within its arity"));
  IDEMD_CHECK(spec.keys.first == 0 || spec.keys.step > 0, absl::StrCat(name, " has a key step"));
  IDEMD_CHECK((spec.flags & kWrite) == 0 || (spec.flags & kReadonly) == 0,
              absl::StrCat(name, " reads or writes"));
}

std::vector<absl::Span<const CommandSpec>> AllGroups() {
  return {
      ConnectionCommands(),   ClientCommands(),     ServerCommands(), PersistenceCommands(), ReplicationCommands(),
      InfoCommands(),         CommandCommands(),    ObserveCommands(),
      LatencyCommands(),      MemoryCommands(),     AclCommands(),
      PubSubCommands(),
      ConfigCommands(),       StringCommands(),     StringManyCommands(),
      StringEditCommands(),   StringNumberCommands(), StringLcsCommands(),
      StringCompareCommands(), BitCommands(),       BitOperationCommands(),
      BitFieldCommands(),
      ListCommands(),         ListChangeCommands(), ListBlockingCommands(),
      HashCommands(),         HashNumberCommands(), HashRandomCommands(),
      SetCommands(),          SetRandomCommands(),  SetAlgebraCommands(),
      HyperLogLogCommands(),  SortCommands(),
      ZsetCommands(),         ZsetRangeCommands(),  ZsetPopCommands(), ZsetBlockingCommands(),
      ZsetWalkCommands(),     ZsetAlgebraCommands(),
      GeoCommands(),          GeoSearchCommands(),
      KeyCommands(),          TransactionCommands(), ScriptCommands(), FunctionCommands(), ClusterCommands(), LifetimeCommands(),   ScanCommands(),
      ObjectCommands(),       DumpCommands(),       MigrateCommands(),
      StreamCommands(),       StreamReadCommands(), StreamGroupCommands(), StreamPendingCommands(), StreamInfoCommands(),
      IdemTokenCommands(),  IdemReserveCommands(), IdemMreserveCommands(),
      IdemFencedCommands(),   IdemStatusCommands(), IdemTransitionCommands(),
      IdemThrottleCommands(), IdemStatsCommands(),
  };
}

}  // namespace

// What has to do with the session, other clients or the server, and is not only work on data.
constexpr uint32_t kNotPlain = kAdmin | kPubSub | kNoScript | kBlocking | kLoading | kStale | kNoAuth | kNoMulti | kAllowBusy |
                               kDangerous | kNotQueued | kEndsTransaction | kWhileSubscribed;

CommandTable::CommandTable() : CommandTable(AllGroups()) {}

CommandTable::CommandTable(absl::Span<const absl::Span<const CommandSpec>> groups) {
  for (absl::Span<const CommandSpec> group : groups) {
    for (const CommandSpec& spec : group) {
      CommandEntry* entry = Add(spec, nullptr);
      commands_.push_back(entry);
      for (const CommandSpec& sub : spec.subcommands) entry->subcommands.push_back(Add(sub, entry));
    }
  }
  std::sort(commands_.begin(), commands_.end(), [](const CommandEntry* a, const CommandEntry* b) {
    return a->full_name < b->full_name;
  });
}

CommandEntry* CommandTable::Add(const CommandSpec& spec, CommandEntry* parent) {
  owned_.push_back(std::make_unique<CommandEntry>());
  CommandEntry* entry = owned_.back().get();
  entry->spec = &spec;
  entry->parent = parent;
  entry->ordinal = static_cast<uint32_t>(all_.size());
  entry->plain = spec.handler != nullptr && (spec.flags & (kReadonly | kWrite)) != 0 && (spec.flags & kNotPlain) == 0;
  entry->quick = entry->plain && (spec.flags & (kFast | kQuick)) != 0;
  entry->full_name = absl::AsciiStrToLower(spec.name);
  if (parent != nullptr) entry->full_name = absl::StrCat(parent->full_name, "|", entry->full_name);
  IDEMD_CHECK(entry->full_name.size() <= kNameBytesMax, entry->full_name);
  IDEMD_CHECK(entry->ordinal < kCommandsMax, "every command has its place in the statistics");
  CheckSpec(spec, entry->full_name);
  IDEMD_CHECK(by_name_.emplace(entry->full_name, entry).second,
              absl::StrCat(entry->full_name, " is declared once"));
  if (parent == nullptr && entry->full_name.size() <= NameIndex::kNameBytesMax) short_names_.Add(entry->full_name, entry);
  by_spec_.emplace(&spec, entry);
  all_.push_back(entry);
  return entry;
}

const CommandEntry* CommandTable::Find(absl::string_view name) const {
  if (name.size() <= NameIndex::kNameBytesMax) return short_names_.Find(name);
  char buffer[kNameBytesMax];
  const auto it = by_name_.find(Lower(name, buffer));
  return it == by_name_.end() || it->second->parent != nullptr ? nullptr : it->second;
}

const CommandEntry* CommandTable::FindSubcommand(const CommandEntry& container,
                                                 absl::string_view word) const {
  char buffer[kNameBytesMax];
  const absl::string_view lower = Lower(word, buffer);
  const size_t prefix = container.full_name.size() + 1;
  for (const CommandEntry* sub : container.subcommands)
    if (absl::string_view(sub->full_name).substr(prefix) == lower) return sub;
  return nullptr;
}

const CommandEntry* CommandTable::FindFullName(absl::string_view name) const {
  char buffer[kNameBytesMax];
  const auto it = by_name_.find(Lower(name, buffer));
  return it == by_name_.end() ? nullptr : it->second;
}

bool KeyPositions(const CommandSpec& spec, absl::Span<const absl::string_view> words,
                  std::vector<int>& positions) {
  positions.clear();
  if (spec.find_keys != nullptr) return spec.find_keys(words, positions);
  if (spec.keys.first == 0) return true;
  const int count = static_cast<int>(words.size());
  const int last = spec.keys.last < 0 ? count + spec.keys.last : spec.keys.last;
  if (spec.keys.first >= count || last >= count) return false;
  for (int i = spec.keys.first; i <= last; i += spec.keys.step) positions.push_back(i);
  return true;
}

}  // namespace idemd::server
