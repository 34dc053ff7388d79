// The names of groups, as COMMAND DOCS shows them.
#include "server/commands/command.h"

namespace idemd::server {

const char* GroupName(Group group) {
  switch (group) {
    case Group::kGeneric:
      return "generic";
    case Group::kString:
      return "string";
    case Group::kList:
      return "list";
    case Group::kSet:
      return "set";
    case Group::kSortedSet:
      return "sorted-set";
    case Group::kHash:
      return "hash";
    case Group::kPubSub:
      return "pubsub";
    case Group::kTransactions:
      return "transactions";
    case Group::kConnection:
      return "connection";
    case Group::kServer:
      return "server";
    case Group::kScripting:
      return "scripting";
    case Group::kHyperLogLog:
      return "hyperloglog";
    case Group::kCluster:
      return "cluster";
    case Group::kSentinel:
      return "sentinel";
    case Group::kGeo:
      return "geo";
    case Group::kStream:
      return "stream";
    case Group::kBitmap:
      return "bitmap";
    case Group::kIdem:
      return "idem";
  }
  return "";
}

}  // namespace idemd::server
