// Single bits and ranges of bits: SETBIT, GETBIT, BITCOUNT, BITPOS.
#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/bit_offset.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;

void SetBit(Context& c) {
  uint64_t offset = 0;
  int64_t bit = 0;
  if (!ReadBitOffset(c, 2, &offset) || !c.Int(3, &bit, errors::kBit)) return;
  if (bit != 0 && bit != 1) return c.reply.Error(errors::kBit);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!CheckPlain(c, old)) return;
  const bool before = BitAt(old.bytes, offset);
  const size_t size = std::max(old.bytes.size(), static_cast<size_t>(offset >> 3) + 1);
  if (size != old.bytes.size() || before != (bit == 1)) {
    const int64_t deadline_ms = old.deadline_ms;
    const absl::Span<char> bytes = c.unit.Edit(c.db(), key, size);
    const auto mask = static_cast<unsigned char>(0x80u >> (offset & 7));
    auto byte = static_cast<unsigned char>(bytes[offset >> 3]);
    byte = static_cast<unsigned char>(bit == 1 ? byte | mask : byte & ~mask);
    bytes[offset >> 3] = static_cast<char>(byte);
    SettleEdit(c, key, bytes, deadline_ms);
    c.Notify(storage::EventClass::kString, "setbit", key);
  }
  c.reply.Integer(before ? 1 : 0);
}

void GetBit(Context& c) {
  uint64_t offset = 0;
  if (!ReadBitOffset(c, 2, &offset)) return;
  std::string text;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckString(c, view)) return;
  c.reply.Integer(BitAt(storage::StringValue(view, text), offset) ? 1 : 0);
}

// --- ranges

// Bits [first, last]; none when first > last.
struct BitRange {
  int64_t first = 0;
  int64_t last = -1;
};

// `start` and `end` in bytes or bits, counted from the back when negative, cut to the value.
BitRange Clip(int64_t start, int64_t end, size_t bytes, bool in_bits) {
  const int64_t total = static_cast<int64_t>(bytes) * (in_bits ? 8 : 1);
  if (start < 0) start = std::max<int64_t>(start + total, 0);
  if (end < 0) end = std::max<int64_t>(end + total, 0);
  end = std::min(end, total - 1);
  if (start > end) return {};
  return in_bits ? BitRange{start, end} : BitRange{start * 8, end * 8 + 7};
}

// words[i] as BIT or BYTE; false, with the error written, when it is neither.
bool ReadUnit(Context& c, size_t i, bool* in_bits) {
  *in_bits = absl::EqualsIgnoreCase(c.words[i], "bit");
  if (*in_bits || absl::EqualsIgnoreCase(c.words[i], "byte")) return true;
  c.Syntax();
  return false;
}

uint64_t LoadWord(const char* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

int64_t CountOnes(absl::string_view bytes) {
  int64_t ones = 0;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) ones += std::popcount(LoadWord(bytes.data() + i));
  for (; i < bytes.size(); ++i) ones += std::popcount(static_cast<unsigned char>(bytes[i]));
  return ones;
}

int64_t CountOnes(absl::string_view bytes, BitRange range) {
  if (range.first > range.last) return 0;
  const auto first_byte = static_cast<size_t>(range.first >> 3);
  const auto last_byte = static_cast<size_t>(range.last >> 3);
  const int64_t whole = CountOnes(bytes.substr(first_byte, last_byte - first_byte + 1));
  const auto before = static_cast<unsigned>(static_cast<unsigned char>(bytes[first_byte])) >>
                      (8 - (range.first & 7));
  const auto behind = static_cast<unsigned>(static_cast<unsigned char>(bytes[last_byte])) &
                      (0x7fu >> (range.last & 7));
  return whole - std::popcount(before) - std::popcount(behind);
}

// As in Redis an absent key is 0 before the range is looked at.
void BitCount(Context& c) {
  std::string text;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!view) return c.reply.Integer(0);
  if (!CheckString(c, view)) return;
  const absl::string_view bytes = storage::StringValue(view, text);
  const size_t words = c.words.size();
  if (words == 2) return c.reply.Integer(CountOnes(bytes));
  if (words != 4 && words != 5) return c.Syntax();
  int64_t start = 0;
  int64_t end = 0;
  if (!c.Int(2, &start) || !c.Int(3, &end)) return;
  if (start < 0 && end < 0 && start > end) return c.reply.Integer(0);
  bool in_bits = false;
  if (words == 5 && !ReadUnit(c, 4, &in_bits)) return;
  c.reply.Integer(CountOnes(bytes, Clip(start, end, bytes.size(), in_bits)));
}

// The first bit of the range that is `bit`; -1: none.
int64_t FindBit(absl::string_view bytes, BitRange range, bool bit) {
  const uint64_t skip = bit ? 0 : ~uint64_t{0};
  int64_t at = range.first;
  while (at <= range.last) {
    const auto byte = static_cast<size_t>(at >> 3);
    if ((at & 7) == 0 && at + 64 <= range.last && LoadWord(bytes.data() + byte) == skip) {
      at += 64;
      continue;
    }
    if (BitAt(bytes, static_cast<uint64_t>(at)) == bit) return at;
    ++at;
  }
  return -1;
}

// False, with the error written: the words behind the bit are no range. `open`: no end was given.
bool ReadPosRange(Context& c, size_t bytes, BitRange* range, bool* open) {
  const size_t words = c.words.size();
  int64_t start = 0;
  int64_t end = -1;
  bool in_bits = false;
  *open = words < 5;
  if (words > 6) {
    c.Syntax();
    return false;
  }
  if (words > 3 && !c.Int(3, &start)) return false;
  if (words > 5 && !ReadUnit(c, 5, &in_bits)) return false;
  if (words > 4 && !c.Int(4, &end)) return false;
  *range = Clip(start, end, bytes, in_bits);
  return true;
}

void BitPos(Context& c) {
  int64_t bit = 0;
  if (!c.Int(2, &bit)) return;
  if (bit != 0 && bit != 1) return c.reply.Error(errors::kBitArgument);
  std::string text;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!view) return c.reply.Integer(bit == 1 ? -1 : 0);
  if (!CheckString(c, view)) return;
  const absl::string_view bytes = storage::StringValue(view, text);
  BitRange range;
  bool open = false;
  if (!ReadPosRange(c, bytes.size(), &range, &open)) return;
  if (range.first > range.last) return c.reply.Integer(-1);
  const int64_t found = FindBit(bytes, range, bit == 1);
  // Without an end the value is taken to go on with zeros.
  c.reply.Integer(found < 0 && bit == 0 && open ? range.last + 1 : found);
}

constexpr ArgSpec kSetBitArgs[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "offset", .type = ArgType::kInteger},
                                   {.name = "value", .type = ArgType::kInteger}};
constexpr ArgSpec kGetBitArgs[] = {{.name = "key", .type = ArgType::kKey},
                                   {.name = "offset", .type = ArgType::kInteger}};
constexpr ArgSpec kUnitArgs[] = {{.name = "byte", .type = ArgType::kToken, .token = "BYTE"},
                                 {.name = "bit", .type = ArgType::kToken, .token = "BIT"}};
constexpr ArgSpec kIndexArgs[] = {{.name = "start", .type = ArgType::kInteger},
                                  {.name = "end", .type = ArgType::kInteger},
                                  {.name = "index_unit",
                                   .type = ArgType::kOneOf,
                                   .optional = true,
                                   .since = "7.0.0",
                                   .args = kUnitArgs}};
constexpr ArgSpec kBitCountArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "index", .type = ArgType::kBlock, .optional = true, .args = kIndexArgs}};
constexpr ArgSpec kEndArgs[] = {{.name = "end", .type = ArgType::kInteger},
                                {.name = "index_unit",
                                 .type = ArgType::kOneOf,
                                 .optional = true,
                                 .since = "7.0.0",
                                 .args = kUnitArgs}};
constexpr ArgSpec kPosIndexArgs[] = {
    {.name = "start", .type = ArgType::kInteger},
    {.name = "end_index", .type = ArgType::kBlock, .optional = true, .args = kEndArgs}};
constexpr ArgSpec kBitPosArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "bit", .type = ArgType::kInteger},
    {.name = "index", .type = ArgType::kBlock, .optional = true, .args = kPosIndexArgs}};

constexpr CommandSpec kBitCommands[] = {{.name = "SETBIT",
                                         .handler = &SetBit,
                                         .arity = 4,
                                         .flags = kWrite | kDenyOom,
                                         .keys = Keys::At(1),
                                         .key_flags = "RW ACCESS UPDATE",
                                         .group = Group::kBitmap,
                                         .since = "2.2.0",
                                         .summary = "Sets or clears one bit of a key's value.",
                                         .args = kSetBitArgs},
                                        {.name = "GETBIT",
                                         .handler = &GetBit,
                                         .arity = 3,
                                         .flags = kReadonly | kFast,
                                         .keys = Keys::At(1),
                                         .key_flags = "RO ACCESS",
                                         .group = Group::kBitmap,
                                         .since = "2.2.0",
                                         .summary = "Returns one bit of a key's value.",
                                         .args = kGetBitArgs},
                                        {.name = "BITCOUNT",
                                         .handler = &BitCount,
                                         .arity = -2,
                                         .flags = kReadonly,
                                         .keys = Keys::At(1),
                                         .key_flags = "RO ACCESS",
                                         .group = Group::kBitmap,
                                         .since = "2.6.0",
                                         .complexity = "O(N) with N bytes",
                                         .summary = "Counts the bits that are set.",
                                         .args = kBitCountArgs},
                                        {.name = "BITPOS",
                                         .handler = &BitPos,
                                         .arity = -3,
                                         .flags = kReadonly,
                                         .keys = Keys::At(1),
                                         .key_flags = "RO ACCESS",
                                         .group = Group::kBitmap,
                                         .since = "2.8.7",
                                         .complexity = "O(N) with N bytes",
                                         .summary = "Finds the first bit that is set or clear.",
                                         .args = kBitPosArgs}};

}  // namespace

absl::Span<const CommandSpec> BitCommands() { return kBitCommands; }

}  // namespace idemd::server
