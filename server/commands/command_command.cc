// COMMAND: what commands there are, their flags, keys and arguments; all of it from their entries.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "protocol/glob.h"
#include "server/commands/acl_categories.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/key_flags.h"
#include "server/commands/table.h"

namespace idemd::server {
namespace {

using protocol::Writer;

struct FlagName {
  uint32_t flag;
  absl::string_view name;
};

// Those that Redis shows, in its order.
constexpr FlagName kFlagNames[] = {{kWrite, "write"},
                                   {kReadonly, "readonly"},
                                   {kDenyOom, "denyoom"},
                                   {kAdmin, "admin"},
                                   {kPubSub, "pubsub"},
                                   {kNoScript, "noscript"},
                                   {kBlocking, "blocking"},
                                   {kLoading, "loading"},
                                   {kStale, "stale"},
                                   {kSkipMonitor, "skip_monitor"},
                                   {kSkipSlowlog, "skip_slowlog"},
                                   {kFast, "fast"},
                                   {kNoAuth, "no_auth"},
                                   {kNoMandatoryKeys, "no_mandatory_keys"},
                                   {kNoAsyncLoading, "no_async_loading"},
                                   {kNoMulti, "no_multi"},
                                   {kMovableKeys, "movablekeys"},
                                   {kAllowBusy, "allow_busy"}};

bool HasKeys(const CommandSpec& spec) { return spec.keys.first != 0 || spec.find_keys != nullptr; }

void WriteFlags(const CommandSpec& spec, Writer& reply) {
  const uint32_t flags = spec.flags | (spec.find_keys != nullptr ? uint32_t{kMovableKeys} : 0u);
  size_t count = 0;
  for (const FlagName& f : kFlagNames) count += (flags & f.flag) != 0;
  reply.Set(count);
  for (const FlagName& f : kFlagNames) {
    if ((flags & f.flag) != 0) reply.Simple(f.name);
  }
}

void WriteCategories(const CommandSpec& spec, Writer& reply) {
  const uint32_t bits = CategoriesOf(spec);
  const auto names = CategoryNames();
  reply.Set(static_cast<size_t>(__builtin_popcount(bits)));
  for (size_t i = 0; i < names.size(); ++i) {
    if ((bits >> i & 1) != 0) reply.Simple(absl::StrCat("@", names[i]));
  }
}

// "RW ACCESS UPDATE" as Redis shows it: the first kind in capitals, the others small.
void WriteKeyFlags(absl::string_view text, Writer& reply) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  reply.Set(words.size());
  for (absl::string_view word : words) {
    reply.Simple(word.size() == 2 ? std::string(word) : absl::AsciiStrToLower(word));
  }
}

void WriteMapHead(Writer& reply, absl::string_view name, absl::string_view type, size_t pairs) {
  reply.Bulk(name);
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk(type);
  reply.Bulk("spec");
  reply.Map(pairs);
}

void WriteNumber(Writer& reply, absl::string_view name, int value) {
  reply.Bulk(name);
  reply.Integer(value);
}

void WriteKeySpec(const CommandSpec& command, const KeySpec& spec, Writer& reply) {
  reply.Map(3);
  reply.Bulk("flags");
  WriteKeyFlags(KeyFlagsText(command, spec.flags), reply);
  if (spec.index != 0) {
    WriteMapHead(reply, "begin_search", "index", 1);
    WriteNumber(reply, "index", spec.index);
  } else if (spec.keyword != nullptr) {
    WriteMapHead(reply, "begin_search", "keyword", 2);
    reply.Bulk("keyword");
    reply.Bulk(spec.keyword);
    WriteNumber(reply, "startfrom", spec.keyword_from);
  } else {  // only COMMAND GETKEYS can tell
    WriteMapHead(reply, "begin_search", "unknown", 0);
    return WriteMapHead(reply, "find_keys", "unknown", 0);
  }
  if (spec.counted) {
    WriteMapHead(reply, "find_keys", "keynum", 3);
    WriteNumber(reply, "keynumidx", 0);
    WriteNumber(reply, "firstkey", 1);
    return WriteNumber(reply, "keystep", spec.step);
  }
  WriteMapHead(reply, "find_keys", "range", 3);
  WriteNumber(reply, "lastkey", spec.last);
  WriteNumber(reply, "keystep", spec.step);
  WriteNumber(reply, "limit", spec.limit);
}

void WriteKeySpecs(const CommandSpec& spec, Writer& reply) {
  if (!HasKeys(spec)) return reply.Set(0);
  if (spec.key_specs.empty()) {
    reply.Set(1);
    const int last = spec.keys.last < 0 ? spec.keys.last : spec.keys.last - spec.keys.first;
    return WriteKeySpec(spec, {.flags = spec.key_flags, .index = spec.keys.first, .last = last, .step = spec.keys.step}, reply);
  }
  reply.Set(spec.key_specs.size());
  for (const KeySpec& keys : spec.key_specs) WriteKeySpec(spec, keys, reply);
}

void WriteInfo(const CommandEntry* entry, Writer& reply) {
  if (entry == nullptr) return reply.Null();
  const CommandSpec& spec = *entry->spec;
  reply.Array(10);
  reply.Bulk(entry->full_name);
  reply.Integer(spec.arity);
  WriteFlags(spec, reply);
  reply.Integer(spec.keys.first);
  reply.Integer(spec.keys.last);
  reply.Integer(spec.keys.step);
  WriteCategories(spec, reply);
  reply.Set(0);  // tips
  WriteKeySpecs(spec, reply);
  reply.Array(entry->subcommands.size());
  for (const CommandEntry* sub : entry->subcommands) WriteInfo(sub, reply);
}

absl::string_view TypeName(ArgType type) {
  switch (type) {
    case ArgType::kKey:
      return "key";
    case ArgType::kString:
      return "string";
    case ArgType::kInteger:
      return "integer";
    case ArgType::kDouble:
      return "double";
    case ArgType::kPattern:
      return "pattern";
    case ArgType::kUnixTime:
      return "unix-time";
    case ArgType::kToken:
      return "pure-token";
    case ArgType::kOneOf:
      return "oneof";
    case ArgType::kBlock:
      return "block";
  }
  return "string";
}

void WriteText(Writer& reply, absl::string_view name, absl::string_view value) {
  reply.Bulk(name);
  reply.Bulk(value);
}

void WriteArguments(absl::Span<const ArgSpec> args, Writer& reply) {
  reply.Array(args.size());
  for (const ArgSpec& arg : args) {
    const bool nested = arg.type == ArgType::kOneOf || arg.type == ArgType::kBlock;
    const bool of_keys = arg.type == ArgType::kKey || arg.key_spec != 0;
    const bool flags = arg.optional || arg.multiple;
    reply.Map(size_t{2} + of_keys + (arg.token != nullptr) + (arg.since != nullptr) + flags +
              nested);
    WriteText(reply, "name", arg.name);
    WriteText(reply, "type", TypeName(arg.type));
    if (of_keys) WriteNumber(reply, "key_spec_index", arg.key_spec);
    if (arg.token != nullptr) WriteText(reply, "token", arg.token);
    if (arg.since != nullptr) WriteText(reply, "since", arg.since);
    if (flags) {
      reply.Bulk("flags");
      reply.Set(size_t{0} + arg.optional + arg.multiple + arg.multiple_token);
      if (arg.optional) reply.Simple("optional");
      if (arg.multiple) reply.Simple("multiple");
      if (arg.multiple_token) reply.Simple("multiple_token");
    }
    if (nested) {
      reply.Bulk("arguments");
      WriteArguments(arg.args, reply);
    }
  }
}

void WriteDocs(const CommandEntry& entry, Writer& reply) {
  const CommandSpec& spec = *entry.spec;
  reply.Bulk(entry.full_name);
  reply.Map(size_t{4} + !spec.args.empty() + !entry.subcommands.empty());
  WriteText(reply, "summary", spec.summary);
  WriteText(reply, "since", spec.since);
  WriteText(reply, "group", GroupName(spec.group));
  WriteText(reply, "complexity", spec.complexity);
  if (!spec.args.empty()) {
    reply.Bulk("arguments");
    WriteArguments(spec.args, reply);
  }
  if (!entry.subcommands.empty()) {
    reply.Bulk("subcommands");
    reply.Map(entry.subcommands.size());
    for (const CommandEntry* sub : entry.subcommands) WriteDocs(*sub, reply);
  }
}

void CommandAll(Context& c) {
  const auto commands = c.services.commands.commands();
  c.reply.Array(commands.size());
  for (const CommandEntry* entry : commands) WriteInfo(entry, c.reply);
}

void CommandCount(Context& c) {
  c.reply.Integer(static_cast<int64_t>(c.services.commands.commands().size()));
}

void CommandInfo(Context& c) {
  if (c.words.size() == 2) return CommandAll(c);
  c.reply.Array(c.words.size() - 2);
  for (absl::string_view name : c.words.subspan(2))
    WriteInfo(c.services.commands.FindFullName(name), c.reply);
}

void CommandDocs(Context& c) {
  std::vector<const CommandEntry*> entries;
  if (c.words.size() == 2) {
    const auto all = c.services.commands.commands();
    entries.assign(all.begin(), all.end());
  } else {
    for (absl::string_view name : c.words.subspan(2)) {
      const CommandEntry* entry = c.services.commands.FindFullName(name);
      if (entry != nullptr) entries.push_back(entry);
    }
  }
  c.reply.Map(entries.size());
  for (const CommandEntry* entry : entries) WriteDocs(*entry, c.reply);
}

void CommandList(Context& c) {
  enum class By : uint8_t { kAll, kModule, kCategory, kPattern };
  By by = By::kAll;
  if (c.words.size() != 2) {
    if (c.words.size() != 5 || !absl::EqualsIgnoreCase(c.words[2], "FILTERBY")) return c.Syntax();
    if (absl::EqualsIgnoreCase(c.words[3], "MODULE"))
      by = By::kModule;
    else if (absl::EqualsIgnoreCase(c.words[3], "ACLCAT"))
      by = By::kCategory;
    else if (absl::EqualsIgnoreCase(c.words[3], "PATTERN"))
      by = By::kPattern;
    else
      return c.Syntax();
  }
  const absl::string_view wanted = c.words.back();
  const uint32_t category = by == By::kCategory ? CategoryBit(wanted) : 0;
  const size_t mark = c.reply.Mark();
  size_t count = 0;
  for (const CommandEntry* entry : c.services.commands.all()) {
    const bool shown = by == By::kAll ? true
                       : by == By::kCategory
                           ? (CategoriesOf(*entry->spec) & category) != 0
                           : by == By::kPattern && protocol::GlobMatch(wanted, entry->full_name,
                                                                       /*ignore_case=*/true);
    if (!shown) continue;  // there are no modules
    c.reply.Bulk(entry->full_name);
    ++count;
  }
  c.reply.InsertArray(mark, count);
}

// The command named by the words from the third on, or null after an error was written.
const CommandEntry* FullCommand(Context& c, absl::Span<const absl::string_view> words) {
  const CommandEntry* entry = c.services.commands.Find(words[0]);
  if (entry != nullptr && !entry->subcommands.empty() && words.size() > 1) {
    entry = c.services.commands.FindSubcommand(*entry, words[1]);
  }
  if (entry == nullptr) {
    c.reply.Error("ERR Invalid command specified");
  } else if (!HasKeys(*entry->spec)) {
    c.reply.Error("ERR The command has no key arguments");
    entry = nullptr;
  } else if (!ArityFits(*entry->spec, words.size())) {
    c.reply.Error("ERR Invalid number of arguments specified for command");
    entry = nullptr;
  }
  return entry;
}

void GetKeys(Context& c, bool with_flags) {
  const absl::Span<const absl::string_view> words = c.words.subspan(2);
  const CommandEntry* entry = FullCommand(c, words);
  if (entry == nullptr) return;
  std::vector<int> positions;
  if (!KeyPositions(*entry->spec, words, positions) || positions.empty()) {
    if ((entry->spec->flags & kNoMandatoryKeys) != 0) return c.reply.Array(0);
    return c.reply.Error("ERR Invalid arguments specified for command");
  }
  const CommandSpec& spec = *entry->spec;
  c.reply.Array(positions.size());
  for (int position : positions) {
    if (with_flags) c.reply.Array(2);
    c.reply.Bulk(words[static_cast<size_t>(position)]);
    if (with_flags) WriteKeyFlags(KeyFlagsAt(spec, words, position), c.reply);
  }
}

void CommandGetKeys(Context& c) { GetKeys(c, false); }
void CommandGetKeysAndFlags(Context& c) { GetKeys(c, true); }

constexpr ArgSpec kNames[] = {{.name = "command-name", .optional = true, .multiple = true}};
constexpr ArgSpec kFullCommand[] = {{.name = "command"},
                                    {.name = "arg", .optional = true, .multiple = true}};
constexpr ArgSpec kFilters[] = {{.name = "module-name", .token = "MODULE"},
                                {.name = "category", .token = "ACLCAT"},
                                {.name = "pattern", .type = ArgType::kPattern, .token = "PATTERN"}};
constexpr ArgSpec kListArgs[] = {{.name = "filterby",
                                  .type = ArgType::kOneOf,
                                  .token = "FILTERBY",
                                  .optional = true,
                                  .args = kFilters}};

constexpr CommandSpec kSubcommands[] = {
    {.name = "COUNT",
     .handler = &CommandCount,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "2.8.13",
     .summary = "How many commands there are.",
     .categories = "connection"},
    {.name = "DOCS",
     .handler = &CommandDocs,
     .arity = -2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of commands to look up",
     .summary = "Describes commands and their arguments.",
     .args = kNames,
     .categories = "connection"},
    {.name = "GETKEYS",
     .handler = &CommandGetKeys,
     .arity = -4,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "2.8.13",
     .complexity = "O(N) where N is the number of arguments to the command",
     .summary = "The keys in a full command.",
     .args = kFullCommand,
     .categories = "connection"},
    {.name = "GETKEYSANDFLAGS",
     .handler = &CommandGetKeysAndFlags,
     .arity = -4,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of arguments to the command",
     .summary = "The keys in a full command, and what it does to them.",
     .args = kFullCommand,
     .categories = "connection"},
    {.name = "HELP",
     .handler = &ReplyHelp,
     .arity = 2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "5.0.0",
     .summary = "Prints this help.",
     .categories = "connection"},
    {.name = "INFO",
     .handler = &CommandInfo,
     .arity = -2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "2.8.13",
     .complexity = "O(N) where N is the number of commands to look up",
     .summary = "Arity, flags, categories and key positions of commands.",
     .args = kNames,
     .categories = "connection"},
    {.name = "LIST",
     .handler = &CommandList,
     .arity = -2,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of commands",
     .summary = "The names of commands.",
     .args = kListArgs,
     .categories = "connection"}};

constexpr CommandSpec kCommandCommands[] = {
    {.name = "COMMAND",
     .handler = &CommandAll,
     .arity = -1,
     .flags = kLoading | kStale,
     .group = Group::kServer,
     .since = "2.8.13",
     .complexity = "O(N) where N is the number of commands",
     .summary = "Arity, flags, categories and key positions of all commands.",
     .subcommands = kSubcommands,
     .categories = "connection"}};

}  // namespace

absl::Span<const CommandSpec> CommandCommands() { return kCommandCommands; }

}  // namespace idemd::server
