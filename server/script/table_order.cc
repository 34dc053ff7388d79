// Puts names where Lua 5.1 would, and reads them off.
#include "server/script/table_order.h"

#include <bit>

namespace idemd::server {
namespace {

constexpr uint32_t kFree = UINT32_MAX;

uint32_t Hash(absl::string_view name) {
  uint32_t hash = static_cast<uint32_t>(name.size());
  const size_t step = (name.size() >> 5) + 1;  // of a long one not every byte counts
  for (size_t i = name.size(); i >= step; i -= step)
    hash ^= (hash << 5) + (hash >> 2) + static_cast<unsigned char>(name[i - 1]);
  return hash;
}

}  // namespace

std::vector<uint32_t> WalkOrder(absl::Span<const absl::string_view> names) {
  const auto size = std::bit_ceil(static_cast<uint32_t>(names.size()));
  std::vector<uint32_t> nodes(size, kFree);
  const auto main_position = [&](uint32_t name) { return Hash(names[name]) & (size - 1); };
  uint32_t last_free = size;
  for (uint32_t name = 0; name < names.size(); ++name) {
    const uint32_t at = main_position(name);
    if (nodes[at] == kFree) {
      nodes[at] = name;
      continue;
    }
    do --last_free;
    while (nodes[last_free] != kFree);
    // Who stands in somebody else's place makes room.
    const bool guest = main_position(nodes[at]) != at;
    nodes[last_free] = guest ? nodes[at] : name;
    if (guest) nodes[at] = name;
  }
  std::vector<uint32_t> order;
  for (uint32_t name : nodes)
    if (name != kFree) order.push_back(name);
  return order;
}

}  // namespace idemd::server
