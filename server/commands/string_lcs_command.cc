// LCS: the longest common subsequence of two values, by the table of all prefixes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "protocol/errors.h"
#include "server/admin/settings.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/option_word.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;

struct LcsOptions {
  bool length_only = false;
  bool matches = false;
  bool with_length = false;
  int64_t shortest = 0;
};

// False: the error was written.
bool ReadOptions(Context& c, LcsOptions* options) {
  for (size_t i = 3; i < c.words.size(); ++i) {
    switch (OptionWord(c.words[i])) {
      case OptionWord("idx"):
        options->matches = true;
        continue;
      case OptionWord("len"):
        options->length_only = true;
        continue;
      default:
        break;
    }
    if (absl::EqualsIgnoreCase(c.words[i], "withmatchlen")) {
      options->with_length = true;
    } else if (absl::EqualsIgnoreCase(c.words[i], "minmatchlen") && i + 1 < c.words.size()) {
      if (!c.Int(++i, &options->shortest)) return false;
    } else {
      c.Syntax();
      return false;
    }
  }
  if (!options->length_only || !options->matches) return true;
  c.reply.Error(errors::kLcsLenAndIdx);
  return false;
}

// Cell (i, j) is the length of the longest common subsequence of the first i bytes of a and the
// first j bytes of b.
class LcsTable {
 public:
  // False: no memory.
  bool Fill(absl::string_view a, absl::string_view b) {
    width_ = b.size() + 1;
    cells_.reset(new (std::nothrow) uint32_t[(a.size() + 1) * width_]);
    if (cells_ == nullptr) return false;
    std::fill_n(cells_.get(), width_, 0);
    for (size_t i = 1; i <= a.size(); ++i) {
      const uint32_t* above = cells_.get() + (i - 1) * width_;
      uint32_t* row = cells_.get() + i * width_;
      row[0] = 0;
      for (size_t j = 1; j <= b.size(); ++j) {
        row[j] = a[i - 1] == b[j - 1] ? above[j - 1] + 1 : std::max(above[j], row[j - 1]);
      }
    }
    return true;
  }
  uint32_t At(size_t i, size_t j) const { return cells_[i * width_ + j]; }

 private:
  size_t width_ = 0;
  std::unique_ptr<uint32_t[]> cells_;
};

// A run of bytes that both values have: [first, first + size) in each.
struct Run {
  size_t a_first = 0;
  size_t b_first = 0;
  size_t size = 0;
};

struct Common {
  std::string bytes;
  std::vector<Run> runs;  // from the back
};

// Walks the table from its end to its start; of two ways of the same length the one through b, as
// Redis does.
Common Trace(const LcsTable& table, absl::string_view a, absl::string_view b) {
  Common common;
  size_t i = a.size();
  size_t j = b.size();
  common.bytes.resize(table.At(i, j));
  size_t left = common.bytes.size();
  bool open = false;
  while (i > 0 && j > 0) {
    if (a[i - 1] != b[j - 1]) {
      open = false;
      if (table.At(i - 1, j) > table.At(i, j - 1)) {
        --i;
      } else {
        --j;
      }
      continue;
    }
    common.bytes[--left] = a[i - 1];
    --i;
    --j;
    if (!open) common.runs.push_back({});
    open = true;
    Run& run = common.runs.back();
    run = {i, j, run.size + 1};
  }
  return common;
}

void ReplyRange(Context& c, size_t first, size_t size) {
  c.reply.Array(2);
  c.reply.Integer(static_cast<int64_t>(first));
  c.reply.Integer(static_cast<int64_t>(first + size - 1));
}

void ReplyMatches(Context& c, const LcsOptions& options, const Common& common) {
  c.reply.Map(2);
  c.reply.Bulk("matches");
  const size_t mark = c.reply.Mark();
  size_t shown = 0;
  for (const Run& run : common.runs) {
    if (static_cast<int64_t>(run.size) < options.shortest) continue;
    ++shown;
    c.reply.Array(options.with_length ? 3 : 2);
    ReplyRange(c, run.a_first, run.size);
    ReplyRange(c, run.b_first, run.size);
    if (options.with_length) c.reply.Integer(static_cast<int64_t>(run.size));
  }
  c.reply.InsertArray(mark, shown);
  c.reply.Bulk("len");
  c.reply.Integer(static_cast<int64_t>(common.bytes.size()));
}

// Copies both values out, so that the table is filled without a lock. False: one of them is no string.
bool CopyValues(Context& c, std::string* a, std::string* b) {
  const storage::HashedKey keys[] = {c.Key(1), c.Key(2)};
  c.unit.LockKeys(keys);
  std::string text;
  std::string* const out[] = {a, b};
  for (size_t i = 0; i < 2; ++i) {
    const storage::KeyView view = c.unit.Find(c.db(), keys[i]);
    if (view.collection != nullptr) return false;
    const absl::string_view value = storage::StringValue(view, text);
    out[i]->assign(value.data(), value.size());
  }
  if (!c.unit.sealed()) c.unit.Commit();
  return true;
}

void Lcs(Context& c) {
  LcsOptions options;
  if (!ReadOptions(c, &options)) return;
  std::string a;
  std::string b;
  if (!CopyValues(c, &a, &b)) return c.reply.Error("ERR The specified keys must contain string values");
  constexpr size_t kLongest = UINT32_MAX - 1;
  if (a.size() >= kLongest || b.size() >= kLongest) return c.reply.Error(errors::kLcsTooLong);
  // Neither product overflows: both factors are below 2^32, and the limit is far below 2^62.
  const uint64_t cells = (uint64_t{a.size()} + 1) * (uint64_t{b.size()} + 1);
  const auto most = static_cast<uint64_t>(
      c.services.settings.proto_max_bulk_bytes.load(std::memory_order_relaxed));
  if (cells > most / sizeof(uint32_t)) return c.reply.Error(errors::kLcsTableTooLarge);
  LcsTable table;
  if (!table.Fill(a, b)) return c.reply.Error(errors::kLcsNoMemory);
  if (options.length_only) return c.reply.Integer(table.At(a.size(), b.size()));
  const Common common = Trace(table, a, b);
  options.matches ? ReplyMatches(c, options, common) : c.reply.Bulk(common.bytes);
}

constexpr ArgSpec kLcsArgs[] = {
    {.name = "key1", .type = ArgType::kKey},
    {.name = "key2", .type = ArgType::kKey},
    {.name = "len", .type = ArgType::kToken, .token = "LEN", .optional = true},
    {.name = "idx", .type = ArgType::kToken, .token = "IDX", .optional = true},
    {.name = "len", .type = ArgType::kInteger, .token = "MINMATCHLEN", .optional = true},
    {.name = "withmatchlen", .type = ArgType::kToken, .token = "WITHMATCHLEN", .optional = true}};

constexpr CommandSpec kStringLcsCommands[] = {{.name = "LCS",
                                               .handler = &Lcs,
                                               .arity = -3,
                                               .flags = kReadonly,
                                               .keys = Keys::Range(1, 2),
                                               .key_flags = "RO ACCESS",
                                               .group = Group::kString,
                                               .since = "7.0.0",
                                               .complexity = "O(N*M) with values of N and M bytes",
                                               .summary = "Finds the longest common subsequence.",
                                               .args = kLcsArgs}};

}  // namespace

absl::Span<const CommandSpec> StringLcsCommands() { return kStringLcsCommands; }

}  // namespace idemd::server
