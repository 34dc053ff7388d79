// Fields that are numbers: HINCRBY, HINCRBYFLOAT.
#include <charconv>
#include <cmath>
#include <string>

#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/typed_key.h"
#include "storage/collection/hash.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::Hash;
using storage::HashedKey;

// The log gets the sum: what was added does not matter any more.
void Put(Context& c, const HashedKey& key, const Hash* there, absl::string_view value, const char* event) {
  EditOrCreate(c, key, there).Set(c.words[2], value);
  c.unit.CollectionChanged(c.db(), key, {"HSET", key.bytes, c.words[2], value});
  c.Notify(storage::EventClass::kHash, event, key);
}

void HincrBy(Context& c) {
  int64_t increment = 0;
  if (!c.Int(3, &increment)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Hash* there = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), key), &there)) return;
  int64_t value = 0;
  Hash::Digits room;
  absl::string_view old;
  if (there != nullptr && there->Get(c.words[2], room, &old) && !protocol::ParseInt64(old, &value))
    return c.reply.Error(errors::kHashNotInteger);
  if (__builtin_add_overflow(value, increment, &value)) return c.reply.Error(errors::kOverflow);
  const char* const end = std::to_chars(room.bytes, room.bytes + sizeof(room.bytes), value).ptr;
  Put(c, key, there, absl::string_view(room.bytes, static_cast<size_t>(end - room.bytes)), "hincrby");
  c.reply.Integer(value);
}

void HincrByFloat(Context& c) {
  long double increment = 0;
  if (!protocol::ParseLongDouble(c.words[3], &increment)) return c.reply.Error(errors::kNotFloat);
  if (!std::isfinite(increment)) return c.reply.Error(errors::kNanOrInfinityGiven);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Hash* there = nullptr;
  if (!LookAs(c, c.unit.Find(c.db(), key), &there)) return;
  long double value = 0;
  Hash::Digits room;
  absl::string_view old;
  if (there != nullptr && there->Get(c.words[2], room, &old) && !protocol::ParseLongDouble(old, &value))
    return c.reply.Error(errors::kHashNotFloat);
  value += increment;
  if (!std::isfinite(value)) return c.reply.Error(errors::kNanOrInfinity);
  const std::string text = protocol::FormatLongDouble(value);
  Put(c, key, there, text, "hincrbyfloat");
  c.reply.Bulk(text);
}

constexpr ArgSpec kIncrementArgs[] = {{.name = "key", .type = ArgType::kKey},
                                      {.name = "field"},
                                      {.name = "increment", .type = ArgType::kInteger}};
constexpr ArgSpec kFloatArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "field"},
                                  {.name = "increment", .type = ArgType::kDouble}};

constexpr CommandSpec kHashNumberCommands[] = {
    {.name = "HINCRBY", .handler = &HincrBy, .arity = 4, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE", .group = Group::kHash, .since = "2.0.0",
     .summary = "Adds to the integer in a field.", .args = kIncrementArgs},
    {.name = "HINCRBYFLOAT", .handler = &HincrByFloat, .arity = 4, .flags = kWrite | kDenyOom | kFast,
     .keys = Keys::At(1), .key_flags = "RW ACCESS UPDATE", .group = Group::kHash, .since = "2.6.0",
     .summary = "Adds to the number in a field.", .args = kFloatArgs}};

}  // namespace

absl::Span<const CommandSpec> HashNumberCommands() { return kHashNumberCommands; }

}  // namespace idemd::server
