// Entries of streams: XADD, XLEN, XRANGE, XREVRANGE, XDEL, XTRIM, XSETID.
//
// The log gets IDs in full, and of what was trimmed the length that came of it.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/groups.h"
#include "server/commands/stream_args.h"
#include "server/commands/stream_reply.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::Stream;
using storage::StreamCursor;
using storage::StreamId;
using storage::StreamTrim;

// The ID that a new entry gets. False: the error was written.
bool ChooseId(Context& c, const TrimWords& words, const Stream* stream, StreamId* id) {
  const StreamId last = stream == nullptr ? StreamId::Min() : stream->last_id();
  if (last == StreamId::Max()) {
    c.reply.Error("ERR The stream has exhausted the last possible ID, unable to add more items");
    return false;
  }
  if (words.auto_id) {
    *id = stream == nullptr ? StreamId{static_cast<uint64_t>(c.unit.now_ms()), 0} : *stream->NextId(c.unit.now_ms());
    return true;
  }
  *id = words.id;
  if (words.auto_seq && words.id.ms == last.ms) id->seq = last.seq + 1;
  if (*id > last) return true;
  c.reply.Error("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  return false;
}

void TellAdded(Context& c, const StreamKey& key, const Stream& stream, StreamId id, size_t fields_at, bool trimmed) {
  LogWords log;
  log.Add("XADD").Add(c.words[1]);
  if (trimmed) log.Add("MAXLEN").Add("=").Add(static_cast<int64_t>(stream.length()));
  log.Add(id);
  for (size_t i = fields_at; i < c.words.size(); ++i) log.Add(c.words[i]);
  key.Changed(log.words());
  key.Notify("xadd");
  if (trimmed) key.Notify("xtrim");
}

void Add(Context& c) {
  TrimWords words;
  if (!ReadTrimWords(c, true, &words)) return;
  const size_t fields_at = words.id_at + 1;
  if (c.words.size() < fields_at + 2 || (c.words.size() - fields_at) % 2 != 0)
    return c.reply.Error("ERR wrong number of arguments for 'xadd' command");
  if (!words.auto_id && !words.auto_seq && words.id == StreamId::Min())
    return c.reply.Error("ERR The ID specified in XADD must be greater than 0-0");
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr && words.no_mkstream) return c.reply.Null();
  StreamId id;
  if (!ChooseId(c, words, found, &id)) return;
  const Stream::Words fields = c.words.subspan(fields_at);
  size_t bytes = 0;
  for (const absl::string_view word : fields) bytes += word.size();
  if (bytes > Stream::kEntryBytesMax) return c.reply.Error("ERR Elements are too large to be stored");
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = found != nullptr ? changed.Edit() : changed.Create();
  stream.Append(id, fields, NodeLimitsNow(c));
  const bool trimmed = stream.Trim(words.trim) != 0;
  TellAdded(c, changed, stream, id, fields_at, trimmed);
  ReplyId(c.reply, id);
}

void Len(Context& c) {
  const Stream* stream = nullptr;
  if (FindStream(c, c.Key(1), &stream)) c.reply.Integer(stream == nullptr ? 0 : static_cast<int64_t>(stream->length()));
}

void RangeOf(Context& c, StreamCursor::Direction direction) {
  const bool backward = direction == StreamCursor::Direction::kBackward;
  StreamId start, end;
  if (!ReadRangeStart(c, backward ? 3 : 2, &start) || !ReadRangeEnd(c, backward ? 2 : 3, &end)) return;
  int64_t count = -1;
  for (size_t i = 4; i < c.words.size(); i += 2) {
    if (!absl::EqualsIgnoreCase(c.words[i], "count") || i + 1 == c.words.size()) return c.Syntax();
    if (!c.Int(i + 1, &count)) return;
    count = std::max<int64_t>(count, 0);
  }
  const Stream* stream = nullptr;
  if (!FindStream(c, c.Key(1), &stream)) return;
  if (stream == nullptr) return c.reply.Array(0);
  if (count == 0) return c.reply.NullArray();
  ReplyRange(c.reply, *stream, start, end, count < 0 ? 0 : static_cast<uint64_t>(count), direction);
}

void Range(Context& c) { RangeOf(c, StreamCursor::Direction::kForward); }
void RevRange(Context& c) { RangeOf(c, StreamCursor::Direction::kBackward); }

void Del(Context& c) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr) return c.reply.Integer(0);
  StreamIds ids;
  if (!ReadStreamIds(c, 2, &ids)) return;
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  LogWords log;
  log.Add("XDEL").Add(c.words[1]);
  int64_t deleted = 0;
  for (const StreamId id : ids) {
    if (!stream.Delete(id)) continue;
    log.Add(id);
    ++deleted;
  }
  changed.Changed(deleted != 0 ? log.words() : Stream::Words());
  if (deleted != 0) changed.Notify("xdel");
  c.reply.Integer(deleted);
}

void Trim(Context& c) {
  TrimWords words;
  if (!ReadTrimWords(c, false, &words)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr) return c.reply.Integer(0);
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  const uint64_t removed = stream.Trim(words.trim);
  LogWords log;
  log.Add("XTRIM").Add(c.words[1]).Add("MAXLEN").Add("=").Add(static_cast<int64_t>(stream.length()));
  changed.Changed(removed != 0 ? log.words() : Stream::Words());
  if (removed != 0) changed.Notify("xtrim");
  c.reply.Integer(static_cast<int64_t>(removed));
}

// The options of XSETID. False: the error was written.
bool ReadSetIdOptions(Context& c, StreamId id, int64_t* entries_added, StreamId* max_deleted) {
  for (size_t i = 3; i < c.words.size(); i += 2) {
    const bool more = i + 1 < c.words.size();
    if (more && absl::EqualsIgnoreCase(c.words[i], "entriesadded")) {
      if (!c.Int(i + 1, entries_added)) return false;
      if (*entries_added >= 0) continue;
      c.reply.Error("ERR entries_added must be positive");
      return false;
    }
    if (!more || !absl::EqualsIgnoreCase(c.words[i], "maxdeletedid")) {
      c.Syntax();
      return false;
    }
    if (!ReadStreamId(c, i + 1, IdForm::kPlain, 0, max_deleted)) return false;
    if (id >= *max_deleted) continue;
    c.reply.Error("ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
    return false;
  }
  return true;
}

void SetId(Context& c) {
  StreamId id, max_deleted;
  int64_t entries_added = -1;
  if (!ReadStreamId(c, 2, IdForm::kPlain, 0, &id) || !ReadSetIdOptions(c, id, &entries_added, &max_deleted)) return;
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const Stream* found = nullptr;
  if (!FindStream(c, key, &found)) return;
  if (found == nullptr) return c.reply.Error(protocol::errors::kNoSuchKey);
  if (found->length() > 0) {
    if (id < found->last_entry_id())
      return c.reply.Error("ERR The ID specified in XSETID is smaller than the target stream top item");
    if (entries_added != -1 && found->length() > static_cast<uint64_t>(entries_added))
      return c.reply.Error("ERR The entries_added specified in XSETID is smaller than the target stream length");
  }
  const StreamKey changed{c.unit, c.db(), key};
  Stream& stream = changed.Edit();
  LogWords log;
  log.Add("XSETID").Add(c.words[1]).Add(id);
  stream.SetLastId(id);
  if (entries_added != -1) {
    stream.SetEntriesAdded(static_cast<uint64_t>(entries_added));
    log.Add("ENTRIESADDED").Add(entries_added);
  }
  if (max_deleted != StreamId::Min()) {
    stream.SetMaxDeletedId(max_deleted);
    log.Add("MAXDELETEDID").Add(max_deleted);
  }
  changed.GroupChanged(log.words());
  changed.Notify("xsetid");
  c.reply.Ok();
}

constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kStrategies[] = {{.name = "maxlen", .type = ArgType::kToken, .token = "MAXLEN"},
                                   {.name = "minid", .type = ArgType::kToken, .token = "MINID", .since = "6.2.0"}};
constexpr ArgSpec kOperators[] = {{.name = "equal", .type = ArgType::kToken, .token = "="},
                                  {.name = "approximately", .type = ArgType::kToken, .token = "~"}};
constexpr ArgSpec kTrimParts[] = {
    {.name = "strategy", .type = ArgType::kOneOf, .args = kStrategies},
    {.name = "operator", .type = ArgType::kOneOf, .optional = true, .args = kOperators},
    {.name = "threshold"},
    {.name = "count", .type = ArgType::kInteger, .token = "LIMIT", .optional = true, .since = "6.2.0"}};
constexpr ArgSpec kNewIds[] = {{.name = "auto_id", .type = ArgType::kToken, .token = "*"}, {.name = "id"}};
constexpr ArgSpec kFieldValue[] = {{.name = "field"}, {.name = "value"}};
constexpr ArgSpec kAddArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "nomkstream", .type = ArgType::kToken, .token = "NOMKSTREAM", .optional = true, .since = "6.2.0"},
    {.name = "trim", .type = ArgType::kBlock, .optional = true, .args = kTrimParts},
    {.name = "id_or_auto", .type = ArgType::kOneOf, .args = kNewIds},
    {.name = "field_value", .type = ArgType::kBlock, .multiple = true, .args = kFieldValue}};
constexpr ArgSpec kTrimArgs[] = {{.name = "key", .type = ArgType::kKey},
                                 {.name = "trim", .type = ArgType::kBlock, .args = kTrimParts}};
constexpr ArgSpec kRangeArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "start"},
                                  {.name = "end"},
                                  {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};
constexpr ArgSpec kRevRangeArgs[] = {{.name = "key", .type = ArgType::kKey},
                                     {.name = "end"},
                                     {.name = "start"},
                                     {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true}};
constexpr ArgSpec kIdsArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "id", .multiple = true}};
constexpr ArgSpec kSetIdArgs[] = {
    {.name = "key", .type = ArgType::kKey},
    {.name = "last-id"},
    {.name = "entries_added", .type = ArgType::kInteger, .token = "ENTRIESADDED", .optional = true, .since = "7.0.0"},
    {.name = "max_deleted_entry_id", .token = "MAXDELETEDID", .optional = true, .since = "7.0.0"}};

constexpr CommandSpec kStreamCommands[] = {
    {.name = "XADD", .handler = &Add, .arity = -5, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kStream, .since = "5.0.0",
     .complexity = "O(1), and O(N) for N entries that are trimmed", .summary = "Puts an entry at the end of a stream.",
     .args = kAddArgs},
    {.name = "XLEN", .handler = &Len, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1), .key_flags = "RO",
     .group = Group::kStream, .since = "5.0.0", .summary = "Counts the entries of a stream.", .args = kKeyArgs},
    {.name = "XRANGE", .handler = &Range, .arity = -4, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N entries returned",
     .summary = "Returns the entries whose IDs are within an interval.", .args = kRangeArgs},
    {.name = "XREVRANGE", .handler = &RevRange, .arity = -4, .flags = kReadonly, .keys = Keys::At(1),
     .key_flags = "RO ACCESS", .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N entries returned",
     .summary = "Returns the entries whose IDs are within an interval, the last one first.", .args = kRevRangeArgs},
    {.name = "XDEL", .handler = &Del, .arity = -3, .flags = kWrite | kFast, .keys = Keys::At(1), .key_flags = "RW DELETE",
     .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N entries deleted",
     .summary = "Deletes entries, and counts those that were there.", .args = kIdsArgs},
    {.name = "XTRIM", .handler = &Trim, .arity = -4, .flags = kWrite, .keys = Keys::At(1), .key_flags = "RW DELETE",
     .group = Group::kStream, .since = "5.0.0", .complexity = "O(N) for N entries that go, a whole node at once",
     .summary = "Deletes the oldest entries, down to a number or up to an ID.", .args = kTrimArgs},
    {.name = "XSETID", .handler = &SetId, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW UPDATE", .group = Group::kStream, .since = "5.0.0",
     .summary = "Sets the last ID of a stream, and what it counts.", .args = kSetIdArgs}};

}  // namespace

absl::Span<const CommandSpec> StreamCommands() { return kStreamCommands; }

}  // namespace idemd::server
