// Counts and places of random draws.
#include "server/commands/random_elements.h"

#include <cstdlib>
#include <numeric>

#include "protocol/errors.h"
#include "storage/collection/draw.h"

namespace idemd::server {

bool ReadDrawCount(Context& c, size_t i, int64_t* count) {
  if (!c.Int(i, count)) return false;
  if (*count != INT64_MIN) return true;
  c.reply.Error(protocol::errors::kDrawCount);
  return false;
}

bool DrawPlaces(Context& c, size_t size, int64_t count, std::vector<uint32_t>* places) {
  const auto elements = static_cast<uint32_t>(size);
  const auto wanted = static_cast<uint64_t>(std::abs(count));
  if (count < 0 || wanted == 1) {
    if (wanted > kRepetitionsMax) {
      c.reply.Error(protocol::errors::kOutOfRangeValue);
      return false;
    }
    places->resize(wanted);
    for (uint32_t& place : *places) place = static_cast<uint32_t>(storage::DrawBelow(elements));
  } else if (wanted >= elements) {
    places->resize(elements);
    std::iota(places->begin(), places->end(), 0u);
  } else {
    *places = storage::DrawDistinct(elements, static_cast<uint32_t>(wanted));
  }
  return true;
}

}  // namespace idemd::server
