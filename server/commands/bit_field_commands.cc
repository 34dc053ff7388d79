// BITFIELD, BITFIELD_RO: integers of 1 to 64 bits anywhere in a value.
//
// All words are read before anything changes. The value is edited only when an integer in it really
// changes, or when it has to grow.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/commands/bit_offset.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"
#include "server/commands/string_reply.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::HashedKey;
using storage::KeyView;
// Wide enough for every sum of two fields.
using Wide = __int128;

enum class Overflow : uint8_t { kWrap, kSaturate, kFail };

struct FieldType {
  bool is_signed = false;
  unsigned bits = 0;

  Wide least() const { return is_signed ? -(Wide{1} << (bits - 1)) : Wide{0}; }
  Wide most() const { return (Wide{1} << (is_signed ? bits - 1 : bits)) - 1; }
};

struct FieldOperation {
  enum class Kind : uint8_t { kGet, kSet, kIncrement };
  Kind kind = Kind::kGet;
  FieldType type;
  Overflow overflow = Overflow::kWrap;
  uint64_t offset = 0;
  int64_t operand = 0;

  uint64_t end() const { return offset + type.bits; }
};
using Kind = FieldOperation::Kind;
using Operations = absl::InlinedVector<FieldOperation, 4>;

// --- words

// "i8", "u63"; false, with the error written, when it is no type.
bool ReadType(Context& c, size_t i, FieldType* type) {
  const absl::string_view word = c.words[i];
  int64_t bits = 0;
  const bool named = !word.empty() && (word[0] == 'i' || word[0] == 'u');
  const int64_t bits_max = named && word[0] == 'i' ? 64 : 63;
  if (!named || !protocol::ParseInt64(word.substr(1), &bits) || bits < 1 || bits > bits_max) {
    c.reply.Error(errors::kBitFieldType);
    return false;
  }
  *type = {word[0] == 'i', static_cast<unsigned>(bits)};
  return true;
}

bool ReadOverflow(Context& c, size_t i, Overflow* overflow) {
  switch (OptionWord(c.words[i])) {
    case OptionWord("wrap"):
      *overflow = Overflow::kWrap;
      return true;
    case OptionWord("sat"):
      *overflow = Overflow::kSaturate;
      return true;
    case OptionWord("fail"):
      *overflow = Overflow::kFail;
      return true;
    default:
      c.reply.Error(errors::kBitFieldOverflow);
      return false;
  }
}

// The operation that words[i] names and how many words it takes; nothing: a syntax error.
struct Named {
  Kind kind;
  size_t words;
};
std::optional<Named> NameOperation(absl::string_view word, size_t words_left) {
  std::optional<Named> named;
  switch (OptionWord(word)) {
    case OptionWord("get"):
      named = {Kind::kGet, 3};
      break;
    case OptionWord("set"):
      named = {Kind::kSet, 4};
      break;
    case OptionWord("incrby"):
      named = {Kind::kIncrement, 4};
      break;
    default:
      break;
  }
  if (named && named->words > words_left) named.reset();
  return named;
}

// False: the error was written.
bool ReadOperations(Context& c, Operations* operations) {
  Overflow overflow = Overflow::kWrap;
  for (size_t i = 2; i < c.words.size();) {
    const size_t left = c.words.size() - i;
    if (OptionWord(c.words[i]) == OptionWord("overflow") && left >= 2) {
      if (!ReadOverflow(c, i + 1, &overflow)) return false;
      i += 2;
      continue;
    }
    const std::optional<Named> named = NameOperation(c.words[i], left);
    if (!named) {
      c.Syntax();
      return false;
    }
    FieldOperation operation;
    operation.kind = named->kind;
    operation.overflow = overflow;
    if (!ReadType(c, i + 1, &operation.type)) return false;
    if (!ReadBitOffset(c, i + 2, &operation.offset, operation.type.bits)) return false;
    if (operation.kind != Kind::kGet && !c.Int(i + 3, &operation.operand)) return false;
    operations->push_back(operation);
    i += named->words;
  }
  return true;
}

// --- fields

Wide ReadField(absl::string_view bytes, const FieldOperation& operation) {
  uint64_t raw = 0;
  for (uint64_t bit = operation.offset; bit < operation.end(); ++bit)
    raw = raw << 1 | (BitAt(bytes, bit) ? 1u : 0u);
  const Wide value = raw;
  return value > operation.type.most() ? value - (Wide{1} << operation.type.bits) : value;
}

void WriteField(absl::Span<char> bytes, const FieldOperation& operation, Wide value) {
  auto raw = static_cast<uint64_t>(value);
  for (uint64_t bit = operation.end(); bit-- > operation.offset; raw >>= 1) {
    const auto mask = static_cast<unsigned char>(0x80u >> (bit & 7));
    auto byte = static_cast<unsigned char>(bytes[bit >> 3]);
    byte = static_cast<unsigned char>((raw & 1) != 0 ? byte | mask : byte & ~mask);
    bytes[bit >> 3] = static_cast<char>(byte);
  }
}

// What `value` becomes in a field of this type; nothing: it does not fit, and OVERFLOW FAIL was
// asked for.
std::optional<Wide> Fit(Wide value, const FieldOperation& operation) {
  const FieldType& type = operation.type;
  if (value >= type.least() && value <= type.most()) return value;
  switch (operation.overflow) {
    case Overflow::kFail:
      return std::nullopt;
    case Overflow::kSaturate:
      return value < type.least() ? type.least() : type.most();
    case Overflow::kWrap:
      break;
  }
  const Wide low = value & ((Wide{1} << type.bits) - 1);
  return low > type.most() ? low - (Wide{1} << type.bits) : low;
}

// As in Redis a SET of an unsigned field takes its operand as unsigned, so that -1 is too large and
// not too small.
Wide Wanted(const FieldOperation& operation, Wide old) {
  if (operation.kind == Kind::kIncrement) return old + operation.operand;
  return operation.type.is_signed ? Wide{operation.operand}
                                  : Wide{static_cast<uint64_t>(operation.operand)};
}

// --- the value

// The string being worked on: the stored bytes until the first change, then the ones being edited.
class FieldBytes {
 public:
  FieldBytes(Context& c, const HashedKey& key, const KeyView& old)
      : c_(c), key_(key), bytes_(old.bytes), deadline_ms_(old.deadline_ms) {}

  absl::string_view view() const { return bytes_; }
  void Grow(size_t size) {
    if (size > bytes_.size()) Open(size);
  }
  absl::Span<char> Edit() {
    if (edited_.empty()) Open(bytes_.size());
    return edited_;
  }
  void Settle() {
    if (edited_.empty()) return;
    SettleEdit(c_, key_, edited_, deadline_ms_);
    c_.Notify(storage::EventClass::kString, "setbit", key_);
  }

 private:
  void Open(size_t size) {
    edited_ = c_.unit.Edit(c_.db(), key_, size);
    bytes_ = absl::string_view(edited_.data(), edited_.size());
  }

  Context& c_;
  const HashedKey& key_;
  absl::string_view bytes_;
  int64_t deadline_ms_;
  absl::Span<char> edited_;  // empty: nothing was edited yet; a field is never empty
};

void Change(Context& c, const FieldOperation& operation, FieldBytes& bytes) {
  const Wide old = ReadField(bytes.view(), operation);
  const std::optional<Wide> fresh = Fit(Wanted(operation, old), operation);
  if (!fresh) return c.reply.Null();
  if (*fresh != old) WriteField(bytes.Edit(), operation, *fresh);
  c.reply.Integer(static_cast<int64_t>(operation.kind == Kind::kSet ? old : *fresh));
}

void GetFields(Context& c, const Operations& operations) {
  std::string text;
  c.unit.ReportMisses(true);
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckString(c, view)) return;
  const absl::string_view bytes = storage::StringValue(view, text);
  c.reply.Array(operations.size());
  for (const FieldOperation& operation : operations) {
    c.reply.Integer(static_cast<int64_t>(ReadField(bytes, operation)));
  }
}

void ChangeFields(Context& c, const Operations& operations) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView old = c.unit.Find(c.db(), key);
  if (!CheckPlain(c, old)) return;
  uint64_t end = 0;
  for (const FieldOperation& operation : operations) {
    if (operation.kind != Kind::kGet) end = std::max(end, operation.end());
  }
  FieldBytes bytes(c, key, old);
  bytes.Grow(static_cast<size_t>((end + 7) / 8));
  c.reply.Array(operations.size());
  for (const FieldOperation& operation : operations) {
    if (operation.kind == Kind::kGet) {
      c.reply.Integer(static_cast<int64_t>(ReadField(bytes.view(), operation)));
    } else {
      Change(c, operation, bytes);
    }
  }
  bytes.Settle();
}

bool OnlyGets(const Operations& operations) {
  return std::all_of(operations.begin(), operations.end(),
                     [](const FieldOperation& operation) { return operation.kind == Kind::kGet; });
}

void BitField(Context& c) {
  Operations operations;
  if (!ReadOperations(c, &operations)) return;
  OnlyGets(operations) ? GetFields(c, operations) : ChangeFields(c, operations);
}

void BitFieldRo(Context& c) {
  Operations operations;
  if (!ReadOperations(c, &operations)) return;
  if (!OnlyGets(operations)) return c.reply.Error(errors::kBitFieldReadOnly);
  GetFields(c, operations);
}

// Reads alone leave the key as it is.
const char* BitFieldKeyFlags(absl::Span<const absl::string_view> words) {
  for (size_t i = 2; i < words.size(); ++i)
    if (absl::EqualsIgnoreCase(words[i], "set") || absl::EqualsIgnoreCase(words[i], "incrby"))
      return "RW ACCESS UPDATE";
  return "RO ACCESS";
}

constexpr ArgSpec kGetArgs[] = {{.name = "encoding"},
                                {.name = "offset", .type = ArgType::kInteger}};
constexpr ArgSpec kSetArgs[] = {{.name = "encoding"},
                                {.name = "offset", .type = ArgType::kInteger},
                                {.name = "value", .type = ArgType::kInteger}};
constexpr ArgSpec kIncrementArgs[] = {{.name = "encoding"},
                                      {.name = "offset", .type = ArgType::kInteger},
                                      {.name = "increment", .type = ArgType::kInteger}};
constexpr ArgSpec kOverflowArgs[] = {{.name = "wrap", .type = ArgType::kToken, .token = "WRAP"},
                                     {.name = "sat", .type = ArgType::kToken, .token = "SAT"},
                                     {.name = "fail", .type = ArgType::kToken, .token = "FAIL"}};
constexpr ArgSpec kWriteOperationArgs[] = {
    {.name = "encoding_offset_value", .type = ArgType::kBlock, .token = "SET", .args = kSetArgs},
    {.name = "encoding_offset_increment",
     .type = ArgType::kBlock,
     .token = "INCRBY",
     .args = kIncrementArgs}};
constexpr ArgSpec kWriteArgs[] = {
    {.name = "wrap_sat_fail",
     .type = ArgType::kOneOf,
     .token = "OVERFLOW",
     .optional = true,
     .args = kOverflowArgs},
    {.name = "write_operation", .type = ArgType::kOneOf, .args = kWriteOperationArgs}};
constexpr ArgSpec kOperationArgs[] = {
    {.name = "encoding_offset", .type = ArgType::kBlock, .token = "GET", .args = kGetArgs},
    {.name = "write", .type = ArgType::kBlock, .args = kWriteArgs}};
constexpr ArgSpec kBitFieldArgs[] = {{.name = "key", .type = ArgType::kKey},
                                     {.name = "operation",
                                      .type = ArgType::kOneOf,
                                      .optional = true,
                                      .multiple = true,
                                      .args = kOperationArgs}};
constexpr ArgSpec kBitFieldRoArgs[] = {{.name = "key", .type = ArgType::kKey},
                                       {.name = "encoding_offset",
                                        .type = ArgType::kBlock,
                                        .token = "GET",
                                        .optional = true,
                                        .multiple = true,
                                        .args = kGetArgs}};

constexpr CommandSpec kBitFieldCommands[] = {
    {.name = "BITFIELD",
     .handler = &BitField,
     .arity = -2,
     .flags = kWrite | kDenyOom,
     .keys = Keys::At(1),
     .key_flags = "RW ACCESS UPDATE VARIABLE_FLAGS",
     .key_flags_of = &BitFieldKeyFlags,
     .group = Group::kBitmap,
     .since = "3.2.0",
     .complexity = "O(1) for each operation",
     .summary = "Reads and changes integers inside a key's value.",
     .args = kBitFieldArgs},
    {.name = "BITFIELD_RO",
     .handler = &BitFieldRo,
     .arity = -2,
     .flags = kReadonly | kFast,
     .keys = Keys::At(1),
     .key_flags = "RO ACCESS",
     .group = Group::kBitmap,
     .since = "6.0.0",
     .complexity = "O(1) for each operation",
     .summary = "Reads integers inside a key's value.",
     .args = kBitFieldRoArgs}};

}  // namespace

absl::Span<const CommandSpec> BitFieldCommands() { return kBitFieldCommands; }

}  // namespace idemd::server
