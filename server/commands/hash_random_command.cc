// HRANDFIELD: fields drawn at random.
#include <cstdint>
#include <vector>

#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/random_elements.h"
#include "server/commands/typed_key.h"
#include "storage/collection/draw.h"
#include "storage/collection/hash.h"

namespace idemd::server {
namespace {

using storage::Hash;

void OneField(Context& c) {
  const Hash* hash = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), c.Key(1)), &hash)) return;
  if (hash == nullptr) return c.reply.Null();
  const auto place = static_cast<uint32_t>(storage::DrawBelow(hash->size()));
  hash->PairsAt({&place, 1}, [&](absl::string_view field, absl::string_view) { c.reply.Bulk(field); });
}

void HrandField(Context& c) {
  if (c.words.size() == 2) return OneField(c);
  int64_t count = 0;
  if (!ReadDrawCount(c, 2, &count)) return;
  const bool with_values = c.words.size() == 4 && absl::EqualsIgnoreCase(c.words[3], "withvalues");
  if (c.words.size() > 3 && !with_values) return c.Syntax();
  if (with_values && (count < -INT64_MAX / 2 || count > INT64_MAX / 2))
    return c.reply.Error(protocol::errors::kOutOfRangeValue);
  const Hash* hash = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), c.Key(1)), &hash)) return;
  if (hash == nullptr || count == 0) return c.reply.Array(0);
  std::vector<uint32_t> places;
  if (!DrawPlaces(c, hash->size(), count, &places)) return;
  const bool pairs = with_values && c.reply.resp() > 2;
  c.reply.Array(with_values && !pairs ? places.size() * 2 : places.size());
  hash->PairsAt(places, [&](absl::string_view field, absl::string_view value) {
    if (pairs) c.reply.Array(2);
    c.reply.Bulk(field);
    if (with_values) c.reply.Bulk(value);
  });
}

constexpr ArgSpec kCountArgs[] = {
    {.name = "count", .type = ArgType::kInteger},
    {.name = "withvalues", .type = ArgType::kToken, .token = "WITHVALUES", .optional = true}};
constexpr ArgSpec kArgs[] = {{.name = "key", .type = ArgType::kKey},
                             {.name = "options", .type = ArgType::kBlock, .optional = true, .args = kCountArgs}};

constexpr CommandSpec kHashRandomCommands[] = {
    {.name = "HRANDFIELD", .handler = &HrandField, .arity = -2, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kHash, .since = "6.2.0", .complexity = "O(N) with N fields returned",
     .summary = "Returns fields drawn at random.", .args = kArgs}};

}  // namespace

absl::Span<const CommandSpec> HashRandomCommands() { return kHashRandomCommands; }

}  // namespace idemd::server
