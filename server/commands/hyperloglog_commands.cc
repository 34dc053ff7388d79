// HyperLogLogs: PFADD, PFCOUNT, PFMERGE, and PFDEBUG and PFSELFTEST, which look inside.
//
// Their values are strings, edited in place; storage/value/hyperloglog.h has the format.
#include <cmath>
#include <cstring>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/admin/settings.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/string_reply.h"
#include "storage/value/hyperloglog.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
namespace hll = storage::hll;
using storage::HashedKey;
using storage::KeyView;

size_t SparseMax(const Context& c) {
  return static_cast<size_t>(c.services.settings.hll_sparse_max_bytes.load(std::memory_order_relaxed));
}

// Whether there is a HyperLogLog, or nothing. False: the error was written.
bool Check(Context& c, const KeyView& view) {
  if (!view) return true;
  if (!CheckString(c, view)) return false;
  if (view.type == storage::ValueType::kString && hll::Looks(view.bytes)) return true;
  c.reply.Error(errors::kNoHyperLogLog);
  return false;
}

void Write(Context& c, const HashedKey& key, absl::string_view value) {
  std::memcpy(c.unit.Edit(c.db(), key, value.size()).data(), value.data(), value.size());
}

// The value to be changed, an empty one where there is none; a buffer of the thread.
std::string& ValueOf(const KeyView& view) {
  thread_local std::string value;
  if (view)
    value.assign(view.bytes.data(), view.bytes.size());
  else
    value = hll::Empty();
  return value;
}

void PfAdd(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!Check(c, view)) return;
  std::string& value = ValueOf(view);
  bool changed = !view;
  for (absl::string_view element : c.words.subspan(2)) {
    switch (hll::Add(element, SparseMax(c), value)) {
      case hll::Status::kSame:
        break;
      case hll::Status::kChanged:
        changed = true;
        break;
      case hll::Status::kDamaged:
        return c.reply.Error(hll::kDamagedError);
    }
  }
  if (changed) {
    hll::ForgetCount(value);
    Write(c, key, value);
    c.Notify(storage::EventClass::kString, "pfadd", key);
  }
  c.reply.Integer(changed ? 1 : 0);
}

// The count is kept in the value, so that it is not made again until something changes.
void CountOne(Context& c) {
  const HashedKey key = c.Key(1);
  KeyView view = c.unit.Find(c.db(), key);
  if (!Check(c, view)) return;
  uint64_t count = 0;
  if (view && !hll::KnownCount(view.bytes, &count)) {
    c.unit.Lock(key);
    view = c.unit.Find(c.db(), key);
    if (!Check(c, view)) return;
    if (view && !hll::KnownCount(view.bytes, &count)) {
      if (!hll::Count(view.bytes, &count)) return c.reply.Error(hll::kDamagedError);
      std::string& value = ValueOf(view);
      hll::KeepCount(count, value);
      Write(c, key, value);
    }
  }
  c.reply.Integer(view ? static_cast<int64_t>(count) : 0);
}

using KeyList = absl::InlinedVector<HashedKey, 8>;

// All that words[1] and the following hold, in one. False: the error was written.
bool MergeAll(Context& c, const KeyList& keys, hll::Registers& registers, bool* dense) {
  c.unit.LockKeys(keys);
  *dense = false;
  for (const HashedKey& key : keys) {
    const KeyView view = c.unit.Find(c.db(), key);
    CountRead(c, view);
    if (!Check(c, view)) return false;
    if (!view) continue;
    *dense |= hll::IsDense(view.bytes);
    if (hll::Merge(view.bytes, registers)) continue;
    c.reply.Error(hll::kDamagedError);
    return false;
  }
  return true;
}

KeyList KeysOf(const Context& c) {
  KeyList keys;
  for (size_t i = 1; i < c.words.size(); ++i) keys.push_back(c.Key(i));
  return keys;
}

void PfCount(Context& c) {
  if (c.words.size() == 2) return CountOne(c);
  hll::Registers registers{};
  bool dense = false;
  if (MergeAll(c, KeysOf(c), registers, &dense)) c.reply.Integer(static_cast<int64_t>(hll::Count(registers)));
}

void PfMerge(Context& c) {
  const KeyList keys = KeysOf(c);
  hll::Registers registers{};
  bool dense = false;
  c.unit.ReportMisses(true);
  if (!MergeAll(c, keys, registers, &dense)) return;
  c.unit.ReportMisses(false);
  std::string& value = ValueOf(c.unit.Find(c.db(), keys[0]));
  // Merged before, so it is not damaged.
  if (dense) static_cast<void>(hll::MakeDense(value));
  for (uint32_t i = 0; i < hll::kRegisters; ++i)
    if (registers[i] != 0) static_cast<void>(hll::Raise(i, registers[i], SparseMax(c), value));
  hll::ForgetCount(value);
  Write(c, keys[0], value);
  c.Notify(storage::EventClass::kString, "pfadd", keys[0]);
  c.reply.Ok();
}

// --- looking inside

// False: the error was written.
bool MakeDense(Context& c, const HashedKey& key, std::string& value, bool* changed) {
  const hll::Status status = hll::MakeDense(value);
  *changed = status == hll::Status::kChanged;
  if (*changed) Write(c, key, value);
  if (status != hll::Status::kDamaged) return true;
  c.reply.Error(hll::kDamagedError);
  return false;
}

void PfDebug(Context& c) {
  const absl::string_view what = c.words[1];
  const HashedKey key = c.Key(2);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!view) return c.reply.Error("ERR The specified key does not exist");
  if (!Check(c, view)) return;
  std::string& value = ValueOf(view);
  bool changed = false;
  if (absl::EqualsIgnoreCase(what, "getreg")) {
    hll::Registers registers{};
    if (!MakeDense(c, key, value, &changed) || !hll::Merge(value, registers)) return;
    c.reply.Array(registers.size());
    for (const uint8_t number : registers) c.reply.Integer(number);
  } else if (absl::EqualsIgnoreCase(what, "decode")) {
    if (hll::IsDense(value)) return c.reply.Error("ERR HLL encoding is not sparse");
    c.reply.Bulk(hll::Runs(value));
  } else if (absl::EqualsIgnoreCase(what, "encoding")) {
    c.reply.Simple(hll::IsDense(value) ? "dense" : "sparse");
  } else if (absl::EqualsIgnoreCase(what, "todense")) {
    if (MakeDense(c, key, value, &changed)) c.reply.Integer(changed ? 1 : 0);
  } else {
    c.reply.Error(absl::StrCat("ERR Unknown PFDEBUG subcommand '", what, "'"));
  }
}

// Counts a known number of elements, in both forms, at every power of ten.
void PfSelfTest(Context& c) {
  constexpr uint64_t kElements = 1'000'000;
  constexpr double kStandardErrors = 6;
  const double standard_error = 1.04 / std::sqrt(hll::kRegisters);
  std::string grown = hll::Empty(), dense = hll::Empty();
  static_cast<void>(hll::MakeDense(dense));
  uint64_t checkpoint = 1;
  for (uint64_t i = 1; i <= kElements; ++i) {
    const absl::string_view element(reinterpret_cast<const char*>(&i), sizeof(i));
    static_cast<void>(hll::Add(element, SparseMax(c), grown));
    static_cast<void>(hll::Add(element, SparseMax(c), dense));
    if (i != checkpoint) continue;
    checkpoint *= 10;
    uint64_t count = 0, same = 0;
    if (!hll::Count(grown, &count) || !hll::Count(dense, &same) || count != same)
      return c.reply.Error("ERR TESTFAILED dense/sparse disagree");
    const double error = std::abs(static_cast<double>(count) - static_cast<double>(i));
    if (error > std::ceil(standard_error * kStandardErrors * static_cast<double>(i)))
      return c.reply.Error(absl::StrCat("ERR TESTFAILED Too big error. card:", i, " abserr:", error));
  }
  c.reply.Ok();
}

constexpr ArgSpec kAddArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "element", .optional = true, .multiple = true}};
constexpr ArgSpec kCountArgs[] = {{.name = "key", .type = ArgType::kKey, .multiple = true}};
constexpr ArgSpec kMergeArgs[] = {{.name = "destkey", .type = ArgType::kKey},
                                  {.name = "sourcekey", .type = ArgType::kKey, .multiple = true, .key_spec = 1}};
constexpr ArgSpec kDebugArgs[] = {{.name = "subcommand"}, {.name = "key", .type = ArgType::kKey}};

constexpr KeySpec kMergeKeys[] = {{.flags = "RW ACCESS INSERT", .index = 1}, {.flags = "RO ACCESS", .index = 2, .last = -1}};
constexpr CommandSpec kHyperLogLogCommands[] = {
    {.name = "PFADD", .handler = &PfAdd, .arity = -2, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kHyperLogLog, .since = "2.8.9", .complexity = "O(1) per element",
     .summary = "Adds elements to an estimate of how many there are.", .args = kAddArgs},
    {.name = "PFCOUNT", .handler = &PfCount, .arity = -2, .flags = kReadonly | kMayReplicate, .keys = Keys::From(1),
     .key_flags = "RW ACCESS", .group = Group::kHyperLogLog, .since = "2.8.9",
     .complexity = "O(1), or O(N) with N keys", .summary = "Estimates how many different elements were added.",
     .args = kCountArgs},
    {.name = "PFMERGE", .handler = &PfMerge, .arity = -2, .flags = kWrite | kDenyOom, .keys = Keys::From(1),
     .key_specs = kMergeKeys, .group = Group::kHyperLogLog, .since = "2.8.9",
     .complexity = "O(N) with N keys", .summary = "Makes one estimate of several.", .args = kMergeArgs},
    {.name = "PFDEBUG", .handler = &PfDebug, .arity = 3, .flags = kWrite | kDenyOom | kAdmin, .keys = Keys::At(2),
     .key_flags = "RW ACCESS", .group = Group::kHyperLogLog, .since = "2.8.9", .complexity = "N/A",
     .summary = "Shows the inside of an estimate.", .args = kDebugArgs},
    {.name = "PFSELFTEST", .handler = &PfSelfTest, .arity = 1, .flags = kAdmin, .group = Group::kHyperLogLog,
     .since = "2.8.9", .complexity = "N/A", .summary = "Tests the estimates of this server."}};

}  // namespace

absl::Span<const CommandSpec> HyperLogLogCommands() { return kHyperLogLogCommands; }

}  // namespace idemd::server
