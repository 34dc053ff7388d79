// What there is to know about a stream, its groups and their consumers: XINFO.
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/stream_reply.h"

namespace idemd::server {
namespace {

using storage::Stream;
using storage::StreamCursor;
using storage::StreamGroup;
using storage::StreamId;

using Named = absl::string_view;

void Tell(Context& c, Named name, uint64_t number) {
  c.reply.Bulk(name);
  c.reply.Integer(static_cast<int64_t>(number));
}

void Tell(Context& c, Named name, StreamId id) {
  c.reply.Bulk(name);
  ReplyId(c.reply, id);
}

void Tell(Context& c, Named name, absl::string_view text) {
  c.reply.Bulk(name);
  c.reply.Bulk(text);
}

void TellIfKnown(Context& c, Named name, std::optional<int64_t> number) {
  c.reply.Bulk(name);
  number ? c.reply.Integer(*number) : c.reply.Null();
}

void TellRead(Context& c, const Stream& stream, const StreamGroup& group) {
  const bool known = group.entries_read != StreamGroup::kUnknown;
  TellIfKnown(c, "entries-read", known ? std::optional(group.entries_read) : std::nullopt);
  TellIfKnown(c, "lag", stream.Lag(group));
}

// The stream at words[2], which must be there. Null: the error was written.
const Stream* FindExisting(Context& c) {
  const Stream* stream = nullptr;
  if (!FindStream(c, c.Key(2), &stream)) return nullptr;
  if (stream == nullptr) c.reply.Error(protocol::errors::kNoSuchKey);
  return stream;
}

void Consumers(Context& c) {
  const Stream* const stream = FindExisting(c);
  if (stream == nullptr) return;
  const StreamGroup* const group = stream->FindGroup(c.words[3]);
  if (group == nullptr) {
    return c.reply.Error(
        absl::StrCat("NOGROUP No such consumer group '", c.words[3], "' for key name '", c.words[2], "'"));
  }
  c.reply.Array(group->consumers().size());
  for (const auto& [name, consumer] : group->consumers()) {
    c.reply.Map(3);
    Tell(c, "name", storage::ViewOf(name));
    Tell(c, "pending", consumer.pending.size());
    Tell(c, "idle", static_cast<uint64_t>(std::max<int64_t>(c.unit.now_ms() - consumer.seen_ms, 0)));
  }
}

void Groups(Context& c) {
  const Stream* const stream = FindExisting(c);
  if (stream == nullptr) return;
  c.reply.Array(stream->groups().size());
  for (const auto& [name, group] : stream->groups()) {
    c.reply.Map(6);
    Tell(c, "name", storage::ViewOf(name));
    Tell(c, "consumers", group.consumers().size());
    Tell(c, "pending", group.pending().size());
    Tell(c, "last-delivered-id", group.last_id);
    TellRead(c, *stream, group);
  }
}

void TellEdge(Context& c, Named name, const Stream& stream, StreamCursor::Direction direction) {
  c.reply.Bulk(name);
  StreamCursor cursor(stream, StreamId::Min(), StreamId::Max(), direction);
  cursor.Next() ? ReplyEntry(c.reply, cursor) : c.reply.Null();
}

// Those of `count` that there are.
size_t Shown(size_t size, uint64_t count) { return count == 0 ? size : std::min<size_t>(size, count); }

void TellPendingOf(Context& c, const StreamGroup& group, uint64_t count) {
  c.reply.Bulk("pending");
  size_t left = Shown(group.pending().size(), count);
  c.reply.Array(left);
  for (auto at = group.pending().begin(); left > 0; ++at, --left) {
    c.reply.Array(4);
    ReplyId(c.reply, at->first);
    c.reply.Bulk(storage::ViewOf(at->second.consumer->first));
    c.reply.Integer(at->second.delivered_ms);
    c.reply.Integer(static_cast<int64_t>(at->second.deliveries));
  }
}

void TellConsumers(Context& c, const StreamGroup& group, uint64_t count) {
  c.reply.Bulk("consumers");
  c.reply.Array(group.consumers().size());
  for (const auto& [name, consumer] : group.consumers()) {
    c.reply.Map(4);
    Tell(c, "name", storage::ViewOf(name));
    c.reply.Bulk("seen-time");
    c.reply.Integer(consumer.seen_ms);
    Tell(c, "pel-count", consumer.pending.size());
    c.reply.Bulk("pending");
    size_t left = Shown(consumer.pending.size(), count);
    c.reply.Array(left);
    for (auto at = consumer.pending.begin(); left > 0; ++at, --left) {
      const StreamGroup::Pending& pending = *group.FindPending(*at);
      c.reply.Array(3);
      ReplyId(c.reply, *at);
      c.reply.Integer(pending.delivered_ms);
      c.reply.Integer(static_cast<int64_t>(pending.deliveries));
    }
  }
}

void TellGroups(Context& c, const Stream& stream, uint64_t count) {
  c.reply.Bulk("groups");
  c.reply.Array(stream.groups().size());
  for (const auto& [name, group] : stream.groups()) {
    c.reply.Map(7);
    Tell(c, "name", storage::ViewOf(name));
    Tell(c, "last-delivered-id", group.last_id);
    TellRead(c, stream, group);
    Tell(c, "pel-count", group.pending().size());
    TellPendingOf(c, group, count);
    TellConsumers(c, group, count);
  }
}

// FULL [COUNT n]. False: the error was written.
bool ReadFull(Context& c, bool* full, int64_t* count) {
  constexpr int64_t kUsual = 10;
  *full = c.words.size() > 3;
  *count = kUsual;
  if (!*full) return true;
  const bool counted = c.words.size() == 6;
  if ((c.words.size() != 4 && !counted) || !absl::EqualsIgnoreCase(c.words[3], "full") ||
      (counted && !absl::EqualsIgnoreCase(c.words[4], "count"))) {
    ReplySubcommandSyntaxError(c);
    return false;
  }
  if (counted && !c.Int(5, count)) return false;
  if (*count < 0) *count = kUsual;
  return true;
}

void Info(Context& c) {
  const Stream* const stream = FindExisting(c);
  if (stream == nullptr) return;
  bool full = false;
  int64_t count = 0;
  if (!ReadFull(c, &full, &count)) return;
  c.reply.Map(full ? 9 : 10);
  Tell(c, "length", stream->length());
  Tell(c, "radix-tree-keys", stream->nodes().size());
  // There is no radix tree here; of a small one Redis tells this.
  Tell(c, "radix-tree-nodes", stream->nodes().size() + 1);
  Tell(c, "last-generated-id", stream->last_id());
  Tell(c, "max-deleted-entry-id", stream->max_deleted_id());
  Tell(c, "entries-added", stream->entries_added());
  Tell(c, "recorded-first-entry-id", stream->first_id());
  if (full) {
    c.reply.Bulk("entries");
    ReplyRange(c.reply, *stream, StreamId::Min(), StreamId::Max(), static_cast<uint64_t>(count),
               StreamCursor::Direction::kForward);
    return TellGroups(c, *stream, static_cast<uint64_t>(count));
  }
  Tell(c, "groups", stream->groups().size());
  TellEdge(c, "first-entry", *stream, StreamCursor::Direction::kForward);
  TellEdge(c, "last-entry", *stream, StreamCursor::Direction::kBackward);
}

constexpr ArgSpec kCount[] = {{.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};
constexpr ArgSpec kStreamArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "full", .type = ArgType::kBlock, .token = "FULL", .optional = true, .args = kCount}};
constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kGroupArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "groupname"}};

constexpr CommandSpec kSubcommands[] = {
    {.name = "CONSUMERS", .handler = &Consumers, .arity = 4, .flags = kReadonly, .keys = Keys::At(2),
     .key_flags = "RO ACCESS", .group = Group::kStream, .since = "5.0.0", .summary = "Lists the consumers of a group.",
     .args = kGroupArgs},
    {.name = "GROUPS", .handler = &Groups, .arity = 3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO ACCESS",
     .group = Group::kStream, .since = "5.0.0", .summary = "Lists the groups of a stream.", .args = kKeyArgs},
    {.name = "STREAM", .handler = &Info, .arity = -3, .flags = kReadonly, .keys = Keys::At(2), .key_flags = "RO ACCESS",
     .group = Group::kStream, .since = "5.0.0", .summary = "Tells what is counted about a stream; with FULL, its entries too.",
     .args = kStreamArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kStream,
     .since = "5.0.0", .summary = "Shows this."}};

constexpr CommandSpec kStreamInfoCommands[] = {
    {.name = "XINFO", .arity = -2, .group = Group::kStream, .since = "5.0.0", .complexity = "Depends on subcommand.",
     .summary = "Looks at streams and their groups.", .subcommands = kSubcommands}};

}  // namespace

absl::Span<const CommandSpec> StreamInfoCommands() { return kStreamInfoCommands; }

}  // namespace idemd::server
