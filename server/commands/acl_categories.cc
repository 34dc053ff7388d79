// Derives ACL categories.
#include "server/commands/acl_categories.h"

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kCategories[] = {
    "keyspace", "read",        "write",      "set",         "sortedset", "list",  "hash", "string",
    "bitmap",   "hyperloglog", "geo",        "stream",      "pubsub",    "admin", "fast", "slow",
    "blocking", "dangerous",   "connection", "transaction", "scripting", "idem"};

// The category that a group stands for; empty where a group says nothing about rights.
absl::string_view GroupCategory(Group group) {
  switch (group) {
    case Group::kGeneric:
      return "keyspace";
    case Group::kString:
      return "string";
    case Group::kList:
      return "list";
    case Group::kSet:
      return "set";
    case Group::kSortedSet:
      return "sortedset";
    case Group::kHash:
      return "hash";
    case Group::kPubSub:
      return "pubsub";
    case Group::kTransactions:
      return "transaction";
    case Group::kConnection:
      return "connection";
    case Group::kScripting:
      return "scripting";
    case Group::kHyperLogLog:
      return "hyperloglog";
    case Group::kGeo:
      return "geo";
    case Group::kStream:
      return "stream";
    case Group::kBitmap:
      return "bitmap";
    case Group::kIdem:
      return "idem";
    case Group::kServer:
    case Group::kCluster:
    case Group::kSentinel:
      return "";
  }
  return "";
}

}  // namespace

absl::Span<const absl::string_view> CategoryNames() { return kCategories; }

uint32_t CategoryBit(absl::string_view name) {
  for (size_t i = 0; i < std::size(kCategories); ++i) {
    if (absl::EqualsIgnoreCase(kCategories[i], name)) return uint32_t{1} << i;
  }
  return 0;
}

uint32_t CategoriesOf(const CommandSpec& spec) {
  uint32_t bits = 0;
  const auto add_if = [&](bool has, absl::string_view name) {
    if (has) bits |= CategoryBit(name);
  };
  add_if((spec.flags & kWrite) != 0, "write");
  add_if((spec.flags & kReadonly) != 0 && spec.group != Group::kScripting, "read");
  add_if((spec.flags & kAdmin) != 0, "admin");
  add_if((spec.flags & (kAdmin | kDangerous)) != 0, "dangerous");
  add_if((spec.flags & kPubSub) != 0, "pubsub");
  add_if((spec.flags & kBlocking) != 0, "blocking");
  add_if((spec.flags & kFast) != 0, "fast");
  add_if((spec.flags & kFast) == 0, "slow");
  if (spec.categories != nullptr) {
    for (absl::string_view name : absl::StrSplit(spec.categories, ' ')) bits |= CategoryBit(name);
  } else if (spec.handler != nullptr) {
    bits |= CategoryBit(GroupCategory(spec.group));
  }
  return bits;
}

}  // namespace idemd::server
