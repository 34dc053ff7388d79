// Values that are numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;

void Add(Context& c, int64_t increment) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!CheckPlain(c, old)) return;
  int64_t value = 0;
  if (old && !protocol::ParseInt64(old.bytes, &value)) return c.reply.Error(errors::kNotInteger);
  if (__builtin_add_overflow(value, increment, &value)) return c.reply.Error(errors::kOverflow);
  char digits[20];  // the longest int64, with its sign
  const char* const end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  c.unit.SetString(c.db(), key, absl::string_view(digits, static_cast<size_t>(end - digits)),
                   old.deadline_ms);
  c.Notify(storage::EventClass::kString, "incrby", key);
  c.reply.Integer(value);
}

void Incr(Context& c) { Add(c, 1); }
void Decr(Context& c) { Add(c, -1); }

void IncrBy(Context& c) {
  int64_t increment = 0;
  if (c.Int(2, &increment)) Add(c, increment);
}

void DecrBy(Context& c) {
  int64_t decrement = 0;
  if (!c.Int(2, &decrement)) return;
  if (decrement == std::numeric_limits<int64_t>::min())
    return c.reply.Error(errors::kDecrementOverflow);
  Add(c, -decrement);
}

void IncrByFloat(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!CheckPlain(c, old)) return;
  long double value = 0;
  long double increment = 0;
  if ((old && !protocol::ParseLongDouble(old.bytes, &value)) ||
      !protocol::ParseLongDouble(c.words[2], &increment)) {
    return c.reply.Error(errors::kNotFloat);
  }
  value += increment;
  if (!std::isfinite(value)) return c.reply.Error(errors::kNanOrInfinity);
  const std::string text = protocol::FormatLongDouble(value);
  c.unit.SetString(c.db(), key, text, old.deadline_ms);
  c.Notify(storage::EventClass::kString, "incrbyfloat", key);
  c.reply.Bulk(text);
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kIncrementArgs[] = {{.name = "key", .type = ArgType::kKey},
                                      {.name = "increment", .type = ArgType::kInteger}};
constexpr ArgSpec kDecrementArgs[] = {{.name = "key", .type = ArgType::kKey},
                                      {.name = "decrement", .type = ArgType::kInteger}};
constexpr ArgSpec kFloatArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "increment", .type = ArgType::kDouble}};

constexpr uint32_t kNumberFlags = kWrite | kDenyOom | kFast;
constexpr CommandSpec kStringNumberCommands[] = {{.name = "INCR",
                                                  .handler = &Incr,
                                                  .arity = 2,
                                                  .flags = kNumberFlags,
                                                  .keys = Keys::At(1),
                                                  .key_flags = "RW ACCESS UPDATE",
                                                  .group = Group::kString,
                                                  .since = "1.0.0",
                                                  .summary = "Adds one to the integer at a key.",
                                                  .args = kKeyArgs},
                                                 {.name = "DECR",
                                                  .handler = &Decr,
                                                  .arity = 2,
                                                  .flags = kNumberFlags,
                                                  .keys = Keys::At(1),
                                                  .key_flags = "RW ACCESS UPDATE",
                                                  .group = Group::kString,
                                                  .since = "1.0.0",
                                                  .summary = "Takes one from the integer at a key.",
                                                  .args = kKeyArgs},
                                                 {.name = "INCRBY",
                                                  .handler = &IncrBy,
                                                  .arity = 3,
                                                  .flags = kNumberFlags,
                                                  .keys = Keys::At(1),
                                                  .key_flags = "RW ACCESS UPDATE",
                                                  .group = Group::kString,
                                                  .since = "1.0.0",
                                                  .summary = "Adds to the integer at a key.",
                                                  .args = kIncrementArgs},
                                                 {.name = "DECRBY",
                                                  .handler = &DecrBy,
                                                  .arity = 3,
                                                  .flags = kNumberFlags,
                                                  .keys = Keys::At(1),
                                                  .key_flags = "RW ACCESS UPDATE",
                                                  .group = Group::kString,
                                                  .since = "1.0.0",
                                                  .summary = "Takes from the integer at a key.",
                                                  .args = kDecrementArgs},
                                                 {.name = "INCRBYFLOAT",
                                                  .handler = &IncrByFloat,
                                                  .arity = 3,
                                                  .flags = kNumberFlags,
                                                  .keys = Keys::At(1),
                                                  .key_flags = "RW ACCESS UPDATE",
                                                  .group = Group::kString,
                                                  .since = "2.6.0",
                                                  .summary = "Adds to the number at a key.",
                                                  .args = kFloatArgs}};

}  // namespace

absl::Span<const CommandSpec> StringNumberCommands() { return kStringNumberCommands; }

}  // namespace idemd::server
