// XREAD and XREADGROUP: what several streams have behind an ID, or behind what a group was given; with BLOCK, as soon as one
// of them has something.
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/commands/blocking.h"
#include "server/commands/groups.h"
#include "server/commands/stream_args.h"
#include "server/commands/stream_delivery.h"
#include "server/commands/stream_reply.h"

namespace idemd::server {
namespace {

using storage::HashedKey;
using storage::Stream;
using storage::StreamCursor;
using storage::StreamGroup;
using storage::StreamId;

struct ReadRequest {
  bool of_group = false;  // XREADGROUP
  bool has_group = false;
  absl::string_view group, consumer;
  int64_t count = 0;  // 0: all
  std::optional<int64_t> block_ms;
  bool acknowledged = false;  // NOACK
  size_t first_key = 0, streams = 0;
};

// One of the streams, and the ID behind which entries are wanted. None: what is new to the group.
struct Wanted {
  HashedKey key;
  std::optional<StreamId> after;
};
using AllWanted = absl::InlinedVector<Wanted, 4>;

bool Refuse(Context& c, absl::string_view error) {
  c.reply.Error(error);
  return false;
}

bool ReadBlock(Context& c, size_t i, std::optional<int64_t>* block_ms) {
  int64_t ms = 0;
  if (!c.Int(i, &ms, "ERR timeout is not an integer or out of range")) return false;
  if (ms < 0) return Refuse(c, protocol::errors::kTimeoutNegative);
  *block_ms = ms;
  return true;
}

// Up to the word STREAMS. False: the error was written.
bool ReadOptions(Context& c, ReadRequest* request) {
  for (size_t i = 1; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const size_t more = c.words.size() - i - 1;
    if (more >= 1 && absl::EqualsIgnoreCase(word, "block")) {
      if (c.session.in_script)
        return Refuse(c, absl::StrCat("ERR ", c.words[0], " command is not allowed with BLOCK option from scripts"));
      if (!ReadBlock(c, ++i, &request->block_ms)) return false;
    } else if (more >= 1 && absl::EqualsIgnoreCase(word, "count")) {
      if (!c.Int(++i, &request->count)) return false;
      request->count = std::max<int64_t>(request->count, 0);
    } else if (more >= 1 && absl::EqualsIgnoreCase(word, "streams")) {
      request->first_key = i + 1;
      request->streams = more / 2;
      if (more % 2 == 0) break;
      return Refuse(c, "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.");
    } else if (more >= 2 && absl::EqualsIgnoreCase(word, "group")) {
      if (!request->of_group)
        return Refuse(c, "ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.");
      request->has_group = true;
      request->group = c.words[++i];
      request->consumer = c.words[++i];
    } else if (absl::EqualsIgnoreCase(word, "noack")) {
      if (!request->of_group)
        return Refuse(c, "ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.");
      request->acknowledged = true;
    } else {
      return Refuse(c, protocol::errors::kSyntax);
    }
  }
  if (request->first_key == 0) return Refuse(c, protocol::errors::kSyntax);
  if (request->of_group && !request->has_group) return Refuse(c, "ERR Missing GROUP option for XREADGROUP");
  return true;
}

// Looks at one stream, whose key is locked, and at the ID that belongs to it. False: the error was written.
bool ReadWanted(Context& c, const ReadRequest& request, absl::string_view id, size_t id_at, Wanted* wanted) {
  const Stream* stream = nullptr;
  if (!FindStream(c, wanted->key, &stream)) return false;
  if (request.of_group && (stream == nullptr || stream->FindGroup(request.group) == nullptr))
    return Refuse(c, absl::StrCat("NOGROUP No such key '", wanted->key.bytes, "' or consumer group '", request.group,
                                  "' in XREADGROUP with GROUP option"));
  if (id == "$") {
    if (request.of_group)
      return Refuse(c,
                    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this "
                    "consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just "
                    "return an empty result set.");
    wanted->after = stream == nullptr ? StreamId::Min() : stream->last_id();
    return true;
  }
  if (id == ">") {
    return request.of_group || Refuse(c,
                                      "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
                                      "<group> <consumer> option.");
  }
  StreamId after;
  if (!ReadStreamId(c, id_at, IdForm::kPlain, 0, &after)) return false;
  // As in Redis the last ID of all is another way to say ">".
  if (!request.of_group || after != StreamId::Max()) wanted->after = after;
  return true;
}

bool ReadAllWanted(Context& c, const ReadRequest& request, AllWanted* all) {
  absl::InlinedVector<HashedKey, 4> keys;
  for (size_t i = 0; i < request.streams; ++i) keys.push_back(c.Key(request.first_key + i));
  c.unit.LockKeys(keys);
  c.unit.ReportMisses(true);
  for (size_t i = 0; i < request.streams; ++i) {
    Wanted& wanted = all->emplace_back();
    wanted.key = keys[i];
    const size_t id_at = request.first_key + request.streams + i;
    if (!ReadWanted(c, request, c.words[id_at], id_at, &wanted)) return false;
  }
  return true;
}

// Whether there is anything behind what the caller has seen.
bool HasNews(const Stream& stream, const Wanted& wanted, const StreamGroup* group) {
  const StreamId after = wanted.after ? *wanted.after : group->last_id;
  return stream.length() != 0 && stream.last_entry_id() > after;
}

void ReplyNews(protocol::Writer& reply, const Stream& stream, const Wanted& wanted, uint64_t count) {
  StreamId start = *wanted.after;
  start.Increment();
  ReplyRange(reply, stream, start, StreamId::Max(), count, StreamCursor::Direction::kForward);
}

// Writes what one stream has: its name and the entries. False: it has nothing, and nothing was written.
bool ServeStream(Context& c, const ReadRequest& request, const Wanted& wanted) {
  const Stream* stream = nullptr;
  if (!FindStream(c, wanted.key, &stream) || stream == nullptr) return false;
  const bool history = request.of_group && wanted.after.has_value();
  if (!history && !HasNews(*stream, wanted, stream->FindGroup(request.group))) return false;
  if (c.reply.resp() == 2) c.reply.Array(2);
  c.reply.Bulk(wanted.key.bytes);
  const auto count = static_cast<uint64_t>(request.count);
  if (!request.of_group) {
    ReplyNews(c.reply, *stream, wanted, count);
    return true;
  }
  const StreamKey key{c.unit, c.db(), wanted.key};
  const Delivery delivery{key, request.group, request.consumer, count, request.acknowledged};
  history ? DeliverPending(delivery, *wanted.after, c.reply) : DeliverNew(delivery, c.reply);
  return true;
}

// --- waiting

// A caller that waits, with copies of its words.
struct BlockedRead {
  bool of_group = false;
  std::string group, consumer;
  uint64_t count = 0;
  bool acknowledged = false;
  std::vector<std::pair<std::string, std::optional<StreamId>>> streams;

  void Serve(Turn& turn) const;
  void ServeGroup(Turn& turn, const Stream* stream) const;
};

// The head of a reply with one stream.
void ReplyOne(Turn& turn) {
  if (turn.reply.resp() == 2) {
    turn.reply.Array(1);
    turn.reply.Array(2);
  } else {
    turn.reply.Map(1);
  }
  turn.reply.Bulk(turn.key.bytes);
}

void BlockedRead::Serve(Turn& turn) const {
  const storage::KeyView view = turn.unit.Find(turn.db, turn.key);
  const bool there = view.type == storage::ValueType::kStream;
  const Stream* const stream = there ? static_cast<const Stream*>(view.collection) : nullptr;
  if (of_group) return ServeGroup(turn, stream);
  if (stream == nullptr) return;
  // Of a key that was named twice the first ID counts.
  for (const auto& [key, after] : streams) {
    if (key != turn.key.bytes) continue;
    const Wanted wanted{turn.key, after};
    if (!HasNews(*stream, wanted, nullptr) || !turn.Take()) return;
    ReplyOne(turn);
    return ReplyNews(turn.reply, *stream, wanted, count);
  }
}

// A consumer does not wait on for a group that is gone.
void BlockedRead::ServeGroup(Turn& turn, const Stream* stream) const {
  if (stream == nullptr) {
    if (turn.Take()) turn.reply.Error("UNBLOCKED the stream key no longer exists");
    return;
  }
  const StreamGroup* const found = stream->FindGroup(group);
  if (found == nullptr) {
    if (turn.Take()) turn.reply.Error("NOGROUP the consumer group this client was blocked on no longer exists");
    return;
  }
  if (!HasNews(*stream, {turn.key, std::nullopt}, found) || !turn.Take()) return;
  ReplyOne(turn);
  const StreamKey key{turn.unit, turn.db, turn.key};
  DeliverNew({key, group, consumer, count, acknowledged}, turn.reply);
}

void BlockUntilNews(Context& c, const ReadRequest& request, const AllWanted& all) {
  constexpr uint64_t kUsualCount = 1000;  // whoever waited with a low ID gets no more than this at once
  BlockedRead blocked;
  blocked.of_group = request.of_group;
  blocked.group = std::string(request.group);
  blocked.consumer = std::string(request.consumer);
  blocked.count = request.count == 0 ? kUsualCount : static_cast<uint64_t>(request.count);
  blocked.acknowledged = request.acknowledged;
  absl::InlinedVector<HashedKey, 4> keys;
  for (const Wanted& wanted : all) {
    keys.push_back(wanted.key);
    blocked.streams.emplace_back(wanted.key.bytes, wanted.after);
  }
  BlockOn(c, {.keys = keys,
              .timeout_ms = *request.block_ms,
              .wants = storage::ValueType::kStream,
              .minds_absence = request.of_group,
              .serve = [blocked = std::move(blocked)](Turn& turn) { blocked.Serve(turn); }});
}

// Where there is something new, consumers that have waited for longer get it first. True: the locks are gone.
bool LetOthersFirst(Context& c, const ReadRequest& request, const AllWanted& all) {
  if (!request.of_group) return false;
  for (const Wanted& wanted : all) {
    const Stream* stream = nullptr;
    if (wanted.after || !FindStream(c, wanted.key, &stream)) continue;
    if (HasNews(*stream, wanted, stream->FindGroup(request.group)) && OthersFirst(c, wanted.key)) return true;
  }
  return false;
}

void ReadAny(Context& c, bool of_group) {
  ReadRequest request;
  request.of_group = of_group;
  AllWanted all;
  if (!ReadOptions(c, &request) || !ReadAllWanted(c, request, &all)) return;
  if (LetOthersFirst(c, request, all)) {
    all.clear();
    if (!ReadAllWanted(c, request, &all)) return;
  }
  const size_t mark = c.reply.Mark();
  size_t served = 0;
  for (const Wanted& wanted : all) served += ServeStream(c, request, wanted) ? 1 : 0;
  if (served == 0) {
    if (!request.block_ms || !MayBlock(c)) return c.reply.NullArray();
    return BlockUntilNews(c, request, all);
  }
  c.reply.resp() == 2 ? c.reply.InsertArray(mark, served) : c.reply.InsertMap(mark, served);
}

void Read(Context& c) { ReadAny(c, false); }
void ReadGroup(Context& c) { ReadAny(c, true); }

// The first half of what follows STREAMS.
bool FindKeys(absl::Span<const absl::string_view> words, std::vector<int>& positions) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (absl::EqualsIgnoreCase(words[i], "block") || absl::EqualsIgnoreCase(words[i], "count")) {
      ++i;
    } else if (absl::EqualsIgnoreCase(words[i], "group")) {
      i += 2;
    } else if (absl::EqualsIgnoreCase(words[i], "streams")) {
      const size_t more = words.size() - i - 1;
      for (size_t k = 0; k < more / 2; ++k) positions.push_back(static_cast<int>(i + 1 + k));
      return more != 0 && more % 2 == 0;
    } else if (!absl::EqualsIgnoreCase(words[i], "noack")) {
      return false;
    }
  }
  return false;
}

constexpr ArgSpec kStreams[] = {{.name = "key", .type = ArgType::kKey, .multiple = true},
                                {.name = "id", .multiple = true}};
constexpr ArgSpec kGroupConsumer[] = {{.name = "group"}, {.name = "consumer"}};
constexpr ArgSpec kReadArgs[] = {
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true},
    {.name = "milliseconds", .type = ArgType::kInteger, .token = "BLOCK", .optional = true},
    {.name = "streams", .type = ArgType::kBlock, .token = "STREAMS", .args = kStreams}};
constexpr ArgSpec kReadGroupArgs[] = {
    {.name = "group_consumer", .type = ArgType::kBlock, .token = "GROUP", .args = kGroupConsumer},
    {.name = "count", .type = ArgType::kInteger, .token = "COUNT", .optional = true},
    {.name = "milliseconds", .type = ArgType::kInteger, .token = "BLOCK", .optional = true},
    {.name = "noack", .type = ArgType::kToken, .token = "NOACK", .optional = true},
    {.name = "streams", .type = ArgType::kBlock, .token = "STREAMS", .args = kStreams}};

constexpr KeySpec kReadKeys[] = {{.flags = "RO ACCESS", .keyword = "STREAMS", .keyword_from = 1, .last = -1, .limit = 2}};
constexpr KeySpec kReadGroupKeys[] = {{.flags = "RO ACCESS", .keyword = "STREAMS", .keyword_from = 4, .last = -1, .limit = 2}};
constexpr CommandSpec kStreamReadCommands[] = {
    {.name = "XREAD", .handler = &Read, .arity = -4, .flags = kReadonly | kBlocking, .find_keys = &FindKeys,
     .key_specs = kReadKeys, .group = Group::kStream, .since = "5.0.0",
     .complexity = "O(N) for N entries returned; an XADD that ends waits takes O(M) for M clients",
     .summary = "Returns what streams have behind IDs, or waits for it.", .args = kReadArgs},
    {.name = "XREADGROUP", .handler = &ReadGroup, .arity = -7, .flags = kWrite | kBlocking, .find_keys = &FindKeys,
     .key_specs = kReadGroupKeys, .group = Group::kStream, .since = "5.0.0",
     .complexity = "O(N) for N entries returned; an XADD that ends waits takes O(M) for M clients",
     .summary = "Returns entries that no consumer of a group was given yet, or those that are pending at one.",
     .args = kReadGroupArgs}};

}  // namespace

absl::Span<const CommandSpec> StreamReadCommands() { return kStreamReadCommands; }

}  // namespace idemd::server
