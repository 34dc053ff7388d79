// What a key's value looks like inside: OBJECT.
#include <string>

#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"

namespace idemd::server {
namespace {

using storage::KeyView;
using storage::ValueType;

constexpr size_t kIntegerDigitsMax = 20;
constexpr size_t kEmbeddedBytesMax = 44;  // what Redis keeps in one allocation with the key's object
constexpr absl::string_view kPoliciesDiffer =
    " Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.";

// Words that tools know from Redis; a record has one of its own.
const char* EncodingOf(const KeyView& view) {
  if (view.collection != nullptr) return view.collection->encoding();
  if (view.type == ValueType::kRecord) return "idem";
  int64_t number = 0;
  if (!view.edited && view.bytes.size() <= kIntegerDigitsMax && protocol::ParseInt64(view.bytes, &number)) return "int";
  return !view.edited && view.bytes.size() <= kEmbeddedBytesMax ? "embstr" : "raw";
}

// The key at words[2], looked at without using it. Writes the null reply when it is absent.
bool Look(Context& c, KeyView* view) {
  c.unit.ReportMisses(false);
  *view = c.unit.Find(c.db(), c.Key(2), /*touch=*/false);
  if (!*view) c.reply.Null();
  return static_cast<bool>(*view);
}

void Encoding(Context& c) {
  KeyView view;
  if (Look(c, &view)) c.reply.Bulk(EncodingOf(view));
}

void RefCount(Context& c) {
  KeyView view;
  if (Look(c, &view)) c.reply.Integer(1);
}

void IdleTime(Context& c) {
  KeyView view;
  if (!Look(c, &view)) return;
  if (c.services.store.CountsUses()) return c.reply.Error(absl::StrCat("ERR An LFU maxmemory policy is selected, idle time not tracked.", kPoliciesDiffer));
  // Records, and keys that live inside the table, keep no time of use.
  const int64_t idle = view.access == 0 ? 0 : c.unit.now_ms() / 1000 - int64_t{view.access};
  c.reply.Integer(idle < 0 ? 0 : idle);
}

void Frequency(Context& c) {
  KeyView view;
  if (!Look(c, &view)) return;
  if (c.services.store.CountsUses()) return c.reply.Integer(c.unit.Uses(view));
  c.reply.Error(absl::StrCat("ERR An LFU maxmemory policy is not selected, access frequency not tracked.", kPoliciesDiffer));
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr CommandSpec kSubcommands[] = {
    {.name = "ENCODING", .handler = &Encoding, .arity = 3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO",
     .since = "2.2.3", .summary = "Names the encoding of a value.", .args = kKeyArgs},
    {.name = "REFCOUNT", .handler = &RefCount, .arity = 3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO",
     .since = "2.2.3", .summary = "Counts the references to a value.", .args = kKeyArgs},
    {.name = "IDLETIME", .handler = &IdleTime, .arity = 3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO",
     .since = "2.2.3", .summary = "Tells the seconds since a key was used; 0 for records and for short values at UUID-like keys.", .args = kKeyArgs},
    {.name = "FREQ", .handler = &Frequency, .arity = 3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO",
     .since = "4.0.0", .summary = "Tells how often a key is used, logarithmically, under an lfu policy; 0 for records and for short values at UUID-like keys.", .args = kKeyArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .since = "6.2.0",
     .summary = "Shows this."}};

constexpr CommandSpec kObjectCommands[] = {{.name = "OBJECT", .arity = -2, .since = "2.2.3",
                                            .complexity = "Depends on subcommand.",
                                            .summary = "Looks at how values are kept.",
                                            .subcommands = kSubcommands}};

}  // namespace

absl::Span<const CommandSpec> ObjectCommands() { return kObjectCommands; }

}  // namespace idemd::server
