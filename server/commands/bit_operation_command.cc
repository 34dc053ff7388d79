// BITOP: AND, OR, XOR and NOT over whole values.
#include <algorithm>
#include <cstring>
#include <deque>
#include <string>

#include "absl/container/inlined_vector.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;

enum class Operation : uint8_t { kAnd, kOr, kXor, kNot };

bool ReadOperation(absl::string_view word, Operation* operation) {
  switch (OptionWord(word)) {
    case OptionWord("and"):
      *operation = Operation::kAnd;
      return true;
    case OptionWord("or"):
      *operation = Operation::kOr;
      return true;
    case OptionWord("xor"):
      *operation = Operation::kXor;
      return true;
    case OptionWord("not"):
      *operation = Operation::kNot;
      return true;
    default:
      return false;
  }
}

// Brings `source` into `result`, which is as long as the longest source; shorter ones go on with
// zeros.
void Combine(Operation operation, absl::string_view source, std::string& result) {
  char* const to = result.data();
  const size_t size = source.size();
  switch (operation) {
    case Operation::kAnd:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] & source[i]);
      std::fill(to + size, to + result.size(), '\0');
      return;
    case Operation::kOr:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] | source[i]);
      return;
    case Operation::kXor:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(to[i] ^ source[i]);
      return;
    case Operation::kNot:
      for (size_t i = 0; i < size; ++i) to[i] = static_cast<char>(~source[i]);
      return;
  }
}

void BitOp(Context& c) {
  Operation operation = Operation::kAnd;
  if (!ReadOperation(c.words[1], &operation)) return c.Syntax();
  if (operation == Operation::kNot && c.words.size() != 4) return c.reply.Error(errors::kBitOpNot);
  absl::InlinedVector<HashedKey, 8> keys;
  for (size_t i = 2; i < c.words.size(); ++i) keys.push_back(c.Key(i));
  c.unit.LockKeys(keys);
  c.unit.ReportMisses(true);
  absl::InlinedVector<absl::string_view, 8> sources;
  std::deque<std::string> texts;  // of records
  size_t longest = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    const storage::KeyView view = c.unit.Find(c.db(), keys[i]);
    CountRead(c, view);
    if (!CheckString(c, view)) return;
    sources.push_back(view.type == storage::ValueType::kRecord
                          ? storage::StringValue(view, texts.emplace_back())
                          : view.bytes);
    longest = std::max(longest, sources.back().size());
  }
  if (longest == 0) {
    if (c.unit.Remove(c.db(), keys[0])) c.Notify(storage::EventClass::kGeneric, "del", keys[0]);
    return c.reply.Integer(0);
  }
  std::string result(sources[0].data(), sources[0].size());
  result.resize(longest);
  if (operation == Operation::kNot) {
    Combine(operation, sources[0], result);
  } else {
    for (size_t i = 1; i < sources.size(); ++i) Combine(operation, sources[i], result);
  }
  c.unit.SetString(c.db(), keys[0], result, storage::kNoDeadline);
  c.Notify(storage::EventClass::kString, "set", keys[0]);
  c.reply.Integer(static_cast<int64_t>(longest));
}

constexpr ArgSpec kBitOpArgs[] = {{.name = "operation"},
                                  {.name = "destkey", .type = ArgType::kKey},
                                  {.name = "key", .type = ArgType::kKey, .multiple = true, .key_spec = 1}};

constexpr KeySpec kBitOpKeys[] = {{.flags = "OW UPDATE", .index = 2}, {.flags = "RO ACCESS", .index = 3, .last = -1}};
constexpr CommandSpec kBitOperationCommands[] = {{.name = "BITOP",
                                                  .handler = &BitOp,
                                                  .arity = -4,
                                                  .flags = kWrite | kDenyOom,
                                                  .keys = Keys::From(2),
                                                  .key_specs = kBitOpKeys,
                                                  .group = Group::kBitmap,
                                                  .since = "2.6.0",
                                                  .complexity = "O(N) with N bytes",
                                                  .summary = "Combines the bits of several values.",
                                                  .args = kBitOpArgs}};

}  // namespace

absl::Span<const CommandSpec> BitOperationCommands() { return kBitOperationCommands; }

}  // namespace idemd::server
