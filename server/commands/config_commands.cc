// CONFIG: settings shown, changed and written back, and the statistics reset.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/admin/settings.h"
#include "server/admin/stats.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "storage/store.h"

namespace idemd::server {
namespace {

bool IsOnThisMachine(const ClientInfo& client) {
  return client.unix_socket || absl::StartsWith(client.address, "127.") || absl::StartsWith(client.address, "[::1]");
}

void Get(Context& c) {
  const std::vector<Settings::Value> values = c.services.settings.Get(c.words.subspan(2));
  c.reply.Map(values.size());
  for (const Settings::Value& value : values) {
    c.reply.Bulk(value.name);
    c.reply.Bulk(value.text);
  }
}

// These wait for the disk and for all locks, of which EXEC holds some.
bool ChangesTheLog(absl::string_view name) {
  return absl::EqualsIgnoreCase(name, "appendonly") || absl::EqualsIgnoreCase(name, "appendfsync");
}

void Set(Context& c) {
  const absl::Span<const absl::string_view> words = c.words.subspan(2);
  if (words.size() % 2 != 0) return c.Syntax();
  std::vector<std::pair<absl::string_view, absl::string_view>> pairs;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (c.unit.sealed() && ChangesTheLog(words[i]))
      return c.reply.Error(absl::StrCat("ERR CONFIG SET ", words[i], " is not possible inside a transaction"));
    pairs.emplace_back(words[i], words[i + 1]);
  }
  const std::string protection = c.services.settings.Text("enable-protected-configs");
  std::vector<std::string> warnings;
  const absl::Status set = c.services.settings.Set(
      pairs,
      {.allow_protected = protection == "yes" || (protection == "local" && IsOnThisMachine(c.session.info()))},
      &warnings);
  for (const std::string& warning : warnings) LogWarning(absl::StrCat("CONFIG SET: ", warning));
  if (set.ok()) return c.reply.Ok();
  c.reply.Error(absl::StrCat("ERR ", set.message()));
}

void ResetStat(Context& c) {
  c.services.stats.Reset();
  c.services.store.stats().Reset();
  c.reply.Ok();
}

void Rewrite(Context& c) {
  const absl::Status written = c.services.settings.Rewrite();
  if (!written.ok()) {
    LogWarning(absl::StrCat("CONFIG REWRITE failed: ", written.message()));
    return c.reply.Error(absl::StrCat("ERR ", written.message()));
  }
  LogWarning("CONFIG REWRITE executed with success.");
  c.reply.Ok();
}

constexpr uint32_t kConfigFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr ArgSpec kGetParameter[] = {{.name = "parameter"}};
constexpr ArgSpec kGetArgs[] = {
    {.name = "parameter", .type = ArgType::kBlock, .multiple = true, .args = kGetParameter}};
constexpr ArgSpec kSetPair[] = {{.name = "parameter"}, {.name = "value"}};
constexpr ArgSpec kSetArgs[] = {
    {.name = "parameter_value", .type = ArgType::kBlock, .multiple = true, .args = kSetPair}};

constexpr CommandSpec kConfigSubcommands[] = {
    {.name = "GET", .handler = &Get, .arity = -3, .flags = kConfigFlags, .group = Group::kServer, .since = "2.0.0",
     .complexity = "O(N) with the number of settings shown",
     .summary = "Shows the settings that are named or match a pattern.", .args = kGetArgs},
    {.name = "SET", .handler = &Set, .arity = -4, .flags = kConfigFlags, .group = Group::kServer, .since = "2.0.0",
     .complexity = "O(N) with the number of settings given",
     .summary = "Changes settings of the running server, all of those given or none.", .args = kSetArgs},
    {.name = "RESETSTAT", .handler = &ResetStat, .arity = 2, .flags = kConfigFlags, .group = Group::kServer,
     .since = "2.0.0", .summary = "Sets the statistics of INFO back to zero."},
    {.name = "REWRITE", .handler = &Rewrite, .arity = 2, .flags = kConfigFlags, .group = Group::kServer,
     .since = "2.8.0", .summary = "Writes the settings back into the file they were loaded from."},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kServer,
     .since = "5.0.0", .summary = "Prints this help."},
};

constexpr CommandSpec kConfigCommands[] = {
    {.name = "CONFIG", .arity = -2, .group = Group::kServer, .since = "2.0.0", .complexity = "Depends on subcommand.",
     .summary = "Settings and statistics of the server.", .subcommands = kConfigSubcommands},
};

}  // namespace

absl::Span<const CommandSpec> ConfigCommands() { return kConfigCommands; }

}  // namespace idemd::server
