// INFO: the server about itself, in sections of "field:value" lines.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/info_sections.h"

namespace idemd::server {
namespace {

struct Section {
  absl::string_view name;   // as asked for, in small letters
  absl::string_view title;  // as shown
  void (*write)(Context& c, std::string& out);
  bool by_default;  // shown by INFO without arguments; "all" and "everything" show every section
};

constexpr Section kSections[] = {{"server", "Server", &InfoServer, true},
                                 {"clients", "Clients", &InfoClients, true},
                                 {"memory", "Memory", &InfoMemory, true},
                                 {"persistence", "Persistence", &InfoPersistence, true},
                                 {"stats", "Stats", &InfoStats, true},
                                 {"replication", "Replication", &InfoReplication, true},
                                 {"cpu", "CPU", &InfoCpu, true},
                                 {"modules", "Modules", &InfoModules, true},
                                 {"commandstats", "Commandstats", &InfoCommandStats, false},
                                 {"errorstats", "Errorstats", &InfoErrorStats, true},
                                 {"latencystats", "Latencystats", &InfoLatencyStats, false},
                                 {"cluster", "Cluster", &InfoCluster, true},
                                 {"idem", "Idem", &InfoIdem, true},
                                 {"keyspace", "Keyspace", &InfoKeyspace, true}};

bool Wanted(const Section& section, absl::Span<const absl::string_view> asked) {
  if (asked.empty()) return section.by_default;
  return std::any_of(asked.begin(), asked.end(), [&](absl::string_view word) {
    if (absl::EqualsIgnoreCase(word, "all") || absl::EqualsIgnoreCase(word, "everything"))
      return true;
    if (absl::EqualsIgnoreCase(word, "default")) return section.by_default;
    return absl::EqualsIgnoreCase(word, section.name);
  });
}

void Info(Context& c) {
  const absl::Span<const absl::string_view> asked = c.words.subspan(1);
  std::string text;
  for (const Section& section : kSections) {
    if (!Wanted(section, asked)) continue;
    absl::StrAppend(&text, text.empty() ? "" : "\r\n", "# ", section.title, "\r\n");
    section.write(c, text);
  }
  c.reply.Verbatim(text);
}

constexpr ArgSpec kInfoArgs[] = {{.name = "section", .optional = true, .multiple = true}};

constexpr CommandSpec kInfoCommands[] = {
    {.name = "INFO",
     .handler = &Info,
     .arity = -1,
     .flags = kLoading | kStale | kDangerous | kAnyKeys,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "Facts and counters of the server, by sections.",
     .args = kInfoArgs}};

}  // namespace

absl::Span<const CommandSpec> InfoCommands() { return kInfoCommands; }

}  // namespace idemd::server
