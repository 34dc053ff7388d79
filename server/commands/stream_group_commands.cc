// Consumer groups: XGROUP and XACK.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/groups.h"
#include "server/commands/help.h"
#include "server/commands/stream_args.h"
#include "server/commands/stream_delivery.h"
#include "server/commands/stream_reply.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::Stream;
using storage::StreamGroup;
using storage::StreamId;

constexpr absl::string_view kNoKey =
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option "
    "to create an empty stream automatically.";

void ReplyNoGroup(Context& c) {
  c.reply.Error(absl::StrCat("NOGROUP No such consumer group '", c.words[3], "' for key name '", c.words[2], "'"));
}

struct GroupOptions {
  bool make_stream = false;
  int64_t entries_read = StreamGroup::kUnknown;
};

// What follows the ID. False: the error was written.
bool ReadGroupOptions(Context& c, bool of_create, GroupOptions* options) {
  for (size_t i = 5; i < c.words.size(); ++i) {
    if (of_create && absl::EqualsIgnoreCase(c.words[i], "mkstream")) {
      options->make_stream = true;
    } else if (absl::EqualsIgnoreCase(c.words[i], "entriesread") && i + 1 < c.words.size()) {
      if (!c.Int(++i, &options->entries_read)) return false;
      if (options->entries_read >= 0 || options->entries_read == StreamGroup::kUnknown) continue;
      c.reply.Error("ERR value for ENTRIESREAD must be positive or -1");
      return false;
    } else {
      ReplySubcommandSyntaxError(c);
      return false;
    }
  }
  return true;
}

// The stream at words[2], which must be there. False: the error was written.
bool FindExisting(Context& c, const HashedKey& key, const Stream** stream) {
  c.unit.Lock(key);
  if (!FindStream(c, key, stream)) return false;
  if (*stream == nullptr) c.reply.Error(kNoKey);
  return *stream != nullptr;
}

// And its group at words[3].
bool FindExistingGroup(Context& c, const HashedKey& key) {
  const Stream* stream = nullptr;
  if (!FindExisting(c, key, &stream)) return false;
  if (stream->FindGroup(c.words[3]) != nullptr) return true;
  ReplyNoGroup(c);
  return false;
}

void Create(Context& c) {
  constexpr size_t kWordsMax = 8;
  GroupOptions options;
  if (!ReadGroupOptions(c, true, &options)) return;
  const HashedKey key = c.Key(2);
  c.unit.Lock(key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr && !options.make_stream) return c.reply.Error(kNoKey);
  if (c.words.size() > kWordsMax) return ReplySubcommandSyntaxError(c);
  StreamId id = found == nullptr ? StreamId::Min() : found->last_id();
  if (c.words[4] != "$" && !ReadStreamId(c, 4, IdForm::kPlain, 0, &id)) return;
  if (found != nullptr && found->FindGroup(c.words[3]) != nullptr)
    return c.reply.Error("BUSYGROUP Consumer Group name already exists");
  LogWords log;
  log.Add("XGROUP").Add("CREATE").Add(c.words[2]).Add(c.words[3]).Add(id);
  if (found == nullptr) log.Add("MKSTREAM");
  log.Add("ENTRIESREAD").Add(options.entries_read);
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = found != nullptr ? changed.Edit() : changed.Create();
  stream.AddGroup(c.words[3], id, options.entries_read);
  changed.GroupChanged(log.words());
  changed.Notify("xgroup-create");
  c.reply.Ok();
}

void SetGroupId(Context& c) {
  constexpr size_t kWordsMax = 7;
  GroupOptions options;
  if (!ReadGroupOptions(c, false, &options)) return;
  const HashedKey key = c.Key(2);
  if (!FindExistingGroup(c, key)) return;
  if (c.words.size() > kWordsMax) return ReplySubcommandSyntaxError(c);
  StreamId id;
  if (c.words[4] != "$" && !ReadStreamId(c, 4, IdForm::kOrEnds, 0, &id)) return;
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  StreamGroup& group = *stream.FindGroup(c.words[3]);
  group.last_id = c.words[4] == "$" ? stream.last_id() : id;
  group.entries_read = options.entries_read;
  LogGroupRead(changed, c.words[3], group);
  changed.Notify("xgroup-setid");
  c.reply.Ok();
}

void Destroy(Context& c) {
  const HashedKey key = c.Key(2);
  const Stream* found = nullptr;
  if (!FindExisting(c, key, &found)) return;
  if (found->FindGroup(c.words[3]) == nullptr) return c.reply.Integer(0);
  const StreamKey changed{c.unit, c.db(), key};
  changed.Edit().RemoveGroup(c.words[3]);
  changed.Changed({"XGROUP", "DESTROY", c.words[2], c.words[3]});
  changed.Notify("xgroup-destroy");
  c.reply.Integer(1);
}

void CreateConsumer(Context& c) {
  const HashedKey key = c.Key(2);
  if (!FindExistingGroup(c, key)) return;
  const StreamKey changed{c.unit, c.db(), key};
  StreamGroup& group = *changed.Edit().FindGroup(c.words[3]);
  const bool fresh = group.FindConsumer(c.words[4]) == nullptr;
  if (fresh) SeeConsumer(changed, c.words[3], group, c.words[4]);
  changed.GroupChanged();
  c.reply.Integer(fresh ? 1 : 0);
}

void DelConsumer(Context& c) {
  const HashedKey key = c.Key(2);
  if (!FindExistingGroup(c, key)) return;
  const StreamKey changed{c.unit, c.db(), key};
  StreamGroup& group = *changed.Edit().FindGroup(c.words[3]);
  const bool known = group.FindConsumer(c.words[4]) != nullptr;
  const uint64_t pending = group.RemoveConsumer(c.words[4]);
  const absl::string_view log[] = {"XGROUP", "DELCONSUMER", c.words[2], c.words[3], c.words[4]};
  changed.GroupChanged(known ? absl::MakeConstSpan(log) : Stream::Words());
  if (known) changed.Notify("xgroup-delconsumer");
  c.reply.Integer(static_cast<int64_t>(pending));
}

void Ack(Context& c) {
  const HashedKey key = c.Key(1);
  LockToRead(c, key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr || found->FindGroup(c.words[2]) == nullptr) return c.reply.Integer(0);
  StreamIds ids;
  if (!ReadStreamIds(c, 3, &ids)) return;
  const StreamKey changed{c.unit, c.db(), key};
  StreamGroup& group = *changed.Edit().FindGroup(c.words[2]);
  LogWords log;
  log.Add("XACK").Add(c.words[1]).Add(c.words[2]);
  int64_t acknowledged = 0;
  for (const StreamId id : ids) {
    if (!group.Acknowledge(id)) continue;
    log.Add(id);
    ++acknowledged;
  }
  changed.GroupChanged(acknowledged != 0 ? log.words() : Stream::Words());
  c.reply.Integer(acknowledged);
}

constexpr ArgSpec kIds[] = {{.name = "id"}, {.name = "new_id", .type = ArgType::kToken, .token = "$"}};
constexpr ArgSpec kCreateArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "groupname"},
    {.name = "id", .type = ArgType::kOneOf, .args = kIds},
    {.name = "mkstream", .type = ArgType::kToken, .token = "MKSTREAM", .optional = true},
    {.name = "entries_read", .type = ArgType::kInteger, .token = "ENTRIESREAD", .optional = true}};
constexpr ArgSpec kSetIdArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "groupname"},
    {.name = "id", .type = ArgType::kOneOf, .args = kIds},
    {.name = "entries_read", .type = ArgType::kInteger, .token = "ENTRIESREAD", .optional = true}};
constexpr ArgSpec kGroupArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "groupname"}};
constexpr ArgSpec kConsumerArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "groupname"}, {.name = "consumername"}};
constexpr ArgSpec kAckArgs[] = {
    {.name = "key", .type = ArgType::kKey}, {.name = "group"}, {.name = "id", .multiple = true}};

constexpr CommandSpec kGroupCommands[] = {
    {.name = "CREATE", .handler = &Create, .arity = -5, .flags = kWrite | kDenyOom, .keys = Keys::At(2),
     .key_flags = "RW INSERT", .group = Group::kStream, .since = "5.0.0",
     .summary = "Makes a group that has read up to an ID, or to the end.", .args = kCreateArgs},
    {.name = "CREATECONSUMER", .handler = &CreateConsumer, .arity = 5, .flags = kWrite | kDenyOom, .keys = Keys::At(2),
     .key_flags = "RW INSERT", .group = Group::kStream, .since = "6.2.0", .summary = "Adds a consumer to a group.",
     .args = kConsumerArgs},
    {.name = "DELCONSUMER", .handler = &DelConsumer, .arity = 5, .flags = kWrite, .keys = Keys::At(2),
     .key_flags = "RW DELETE", .group = Group::kStream, .since = "5.0.0",
     .summary = "Removes a consumer with all that is pending there, and counts that.", .args = kConsumerArgs},
    {.name = "DESTROY", .handler = &Destroy, .arity = 4, .flags = kWrite, .keys = Keys::At(2), .key_flags = "RW DELETE",
     .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N entries pending in the group",
     .summary = "Removes a group.", .args = kGroupArgs},
    {.name = "SETID", .handler = &SetGroupId, .arity = -5, .flags = kWrite, .keys = Keys::At(2), .key_flags = "RW UPDATE",
     .group = Group::kStream, .since = "5.0.0", .summary = "Sets up to which ID a group has read.", .args = kSetIdArgs},
    {.name = "HELP", .handler = &ReplyHelp, .arity = 2, .flags = kLoading | kStale, .group = Group::kStream,
     .since = "5.0.0", .summary = "Shows this."}};

constexpr CommandSpec kStreamGroupCommands[] = {
    {.name = "XGROUP", .arity = -2, .group = Group::kStream, .since = "5.0.0", .complexity = "Depends on subcommand.",
     .summary = "Makes, changes and removes consumer groups.", .subcommands = kGroupCommands},
    {.name = "XACK", .handler = &Ack, .arity = -4, .flags = kWrite | kFast, .keys = Keys::At(1), .key_flags = "RW UPDATE",
     .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N IDs",
     .summary = "Says that entries were dealt with, and counts those that were pending.", .args = kAckArgs}};

}  // namespace

absl::Span<const CommandSpec> StreamGroupCommands() { return kStreamGroupCommands; }

}  // namespace idemd::server
