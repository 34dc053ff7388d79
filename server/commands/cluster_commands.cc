// CLUSTER and what cluster clients send beside it: answered as a server that stands alone does.
#include "server/commands/context.h"
#include "server/commands/groups.h"

namespace idemd::server {
namespace {

void StandsAlone(Context& c) { c.reply.Error("ERR This instance has cluster support disabled"); }

constexpr uint32_t kPlain = kStale | kLoading;

constexpr CommandSpec Sub(const char* name, int arity, const char* summary, uint32_t flags = kPlain) {
  return {.name = name, .handler = &StandsAlone, .arity = arity, .flags = flags, .group = Group::kCluster,
          .since = "3.0.0", .summary = summary};
}

constexpr uint32_t kChange = kAdmin | kStale | kNoAsyncLoading;
constexpr CommandSpec kSubcommands[] = {
    Sub("ADDSLOTS", -3, "Gives hash slots to this node.", kChange),
    Sub("ADDSLOTSRANGE", -4, "Gives ranges of hash slots to this node.", kChange),
    Sub("BUMPEPOCH", 2, "Advances the configuration epoch.", kChange),
    Sub("COUNT-FAILURE-REPORTS", 3, "Counts the failure reports of a node.", kAdmin | kStale),
    Sub("COUNTKEYSINSLOT", 3, "Counts the keys of a hash slot.", kStale),
    Sub("DELSLOTS", -3, "Takes hash slots from this node.", kChange),
    Sub("DELSLOTSRANGE", -4, "Takes ranges of hash slots from this node.", kChange),
    Sub("FAILOVER", -2, "Makes a replica the master.", kChange),
    Sub("FLUSHSLOTS", 2, "Takes all hash slots from this node.", kChange),
    Sub("FORGET", 3, "Removes a node.", kChange),
    Sub("GETKEYSINSLOT", 4, "Names keys of a hash slot.", kStale),
    Sub("HELP", 2, "Shows the subcommands."),
    Sub("INFO", 2, "Describes the state of the cluster.", kStale),
    Sub("KEYSLOT", 3, "Tells the hash slot of a key.", kStale),
    Sub("LINKS", 2, "Lists the links to other nodes.", kStale),
    Sub("MEET", -4, "Introduces a node.", kChange),
    Sub("MYID", 2, "Tells this node's id.", kStale),
    Sub("NODES", 2, "Lists the nodes.", kStale),
    Sub("REPLICAS", 3, "Lists the replicas of a master.", kAdmin | kStale),
    Sub("REPLICATE", 3, "Makes this node a replica.", kChange),
    Sub("RESET", -2, "Resets this node.", kAdmin | kNoScript | kStale),
    Sub("SAVECONFIG", 2, "Saves the node's configuration.", kChange),
    Sub("SET-CONFIG-EPOCH", 3, "Sets the configuration epoch of a new node.", kChange),
    Sub("SETSLOT", -4, "Binds a hash slot to a node.", kChange),
    Sub("SHARDS", 2, "Maps hash slots to shards.", kStale),
    Sub("SLAVES", 3, "Lists the replicas of a master.", kAdmin | kStale),
    Sub("SLOTS", 2, "Maps hash slots to nodes.", kStale)};

constexpr CommandSpec kClusterCommands[] = {
    {.name = "CLUSTER", .arity = -2, .group = Group::kCluster, .since = "3.0.0",
     .complexity = "Depends on subcommand.", .summary = "A container for cluster commands.",
     .subcommands = kSubcommands},
    {.name = "ASKING", .handler = &StandsAlone, .arity = 1, .flags = kFast, .group = Group::kCluster,
     .since = "3.0.0", .summary = "Says that the next command was sent here by an ASK redirection.",
     .categories = "connection"},
    {.name = "READONLY", .handler = &StandsAlone, .arity = 1, .flags = kLoading | kStale | kFast,
     .group = Group::kCluster, .since = "3.0.0", .summary = "Allows reads from a replica of a cluster.",
     .categories = "connection"},
    {.name = "READWRITE", .handler = &StandsAlone, .arity = 1, .flags = kLoading | kStale | kFast,
     .group = Group::kCluster, .since = "3.0.0", .summary = "Ends READONLY.", .categories = "connection"}};

}  // namespace

absl::Span<const CommandSpec> ClusterCommands() { return kClusterCommands; }

}  // namespace idemd::server
