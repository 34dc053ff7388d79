// Walking the keys of a database: SCAN, KEYS, RANDOMKEY.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/glob.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"

namespace idemd::server {
namespace {

constexpr int64_t kScanCount = 10;  // COUNT's default, as Redis

struct ScanOptions {
  int64_t count = kScanCount;
  bool has_match = false;
  absl::string_view match;
  bool has_type = false;
  absl::string_view type;
};

bool ReadScanOptions(Context& c, ScanOptions* options) {
  for (size_t i = 2; i < c.words.size(); i += 2) {
    if (i + 1 == c.words.size()) {
      c.Syntax();
      return false;
    }
    const absl::string_view value = c.words[i + 1];
    if (absl::EqualsIgnoreCase(c.words[i], "count")) {
      if (!c.Int(i + 1, &options->count)) return false;
      if (options->count < 1) {
        c.Syntax();
        return false;
      }
    } else if (absl::EqualsIgnoreCase(c.words[i], "match")) {
      options->match = value;
      options->has_match = value != "*";
    } else if (absl::EqualsIgnoreCase(c.words[i], "type")) {
      options->type = value;
      options->has_type = true;
    } else {
      c.Syntax();
      return false;
    }
  }
  return true;
}

void Scan(Context& c) {
  uint64_t cursor = 0;
  if (!protocol::ParseUint64(c.words[1], &cursor)) return c.reply.Error("ERR invalid cursor");
  ScanOptions options;
  if (!ReadScanOptions(c, &options)) return;
  // The keys are written behind a place where the heads go once their number and the cursor are known.
  std::string& out = c.reply.buffer();
  const size_t mark = out.size();
  size_t shown = 0;
  const uint64_t next =
      c.unit.Scan(c.db(), cursor, static_cast<uint64_t>(options.count),
                  [&](absl::string_view key, const storage::KeyView& view) {
                    if (options.has_type && !absl::EqualsIgnoreCase(options.type, storage::ValueTypeName(view.type))) return;
                    if (options.has_match && !protocol::GlobMatch(options.match, key)) return;
                    ++shown;
                    c.reply.Bulk(key);
                  });
  std::string head;
  protocol::Writer heads(head, c.reply.resp());
  heads.Array(2);
  heads.Bulk(absl::StrCat(next));
  heads.Array(shown);
  out.insert(mark, head);
}

void KeysMatching(Context& c) {
  const absl::string_view pattern = c.words[1];
  const bool all = pattern == "*";
  c.unit.LockAll();
  const size_t mark = c.reply.Mark();
  size_t shown = 0;
  c.unit.ForEach(c.db(), [&](absl::string_view key, const storage::KeyView&) {
    if (!all && !protocol::GlobMatch(pattern, key)) return;
    ++shown;
    c.reply.Bulk(key);
  });
  c.reply.InsertArray(mark, shown);
}

void RandomKey(Context& c) {
  if (c.unit.Size(c.db()) == 0) return c.reply.Null();
  const absl::string_view key = c.unit.RandomKey(c.db());
  key.data() == nullptr ? c.reply.Null() : c.reply.Bulk(key);
}

constexpr ArgSpec kScanArgs[] = {
    {.name = "cursor", .type = ArgType::kInteger},
    {.name = "pattern", .type = ArgType::kPattern, .token = "MATCH", .optional = true},
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true},
    {.name = "type", .type = ArgType::kString, .token = "TYPE", .optional = true, .since = "6.0.0"}};
constexpr ArgSpec kPatternArgs[] = {{.name = "pattern", .type = ArgType::kPattern}};

constexpr CommandSpec kScanCommands[] = {
    {.name = "SCAN", .handler = &Scan, .arity = -2, .flags = kReadonly | kAnyKeys, .since = "2.8.0",
     .complexity = "O(1) per call, O(N) for a whole walk", .summary = "Walks the keys of the database, a part a call.",
     .args = kScanArgs},
    {.name = "KEYS", .handler = &KeysMatching, .arity = 2, .flags = kReadonly | kDangerous | kAnyKeys, .since = "1.0.0",
     .complexity = "O(N) where N is the number of keys", .summary = "Lists all keys that match a pattern.",
     .args = kPatternArgs},
    {.name = "RANDOMKEY", .handler = &RandomKey, .arity = 1, .flags = kReadonly | kAnyKeys, .since = "1.0.0",
     .complexity = "O(1)", .summary = "Names a key drawn at random."}};

}  // namespace

absl::Span<const CommandSpec> ScanCommands() { return kScanCommands; }

}  // namespace idemd::server
