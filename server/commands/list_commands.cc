// The ends of lists, and looking at them: LPUSH, RPUSH, LPUSHX, RPUSHX, LPOP, RPOP, LLEN, LRANGE, LINDEX, LPOS.
#include <algorithm>

#include "protocol/errors.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/list_edit.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using storage::EventClass;
using storage::HashedKey;
using storage::KeyView;
using storage::List;

void Push(Context& c, ListEnd end, bool only_if_present) {
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!CheckList(c.reply, view)) return;
  if (!view && only_if_present) return c.reply.Integer(0);
  const List::Limits limits = ListLimits(c.services);
  List& list = OpenList(c.unit, c.db(), key, view);
  for (const absl::string_view element : c.words.subspan(2)) list.Push(end, element, limits);
  c.reply.Integer(static_cast<int64_t>(list.size()));
  c.unit.CollectionChanged(c.db(), key, c.words);
  c.Notify(EventClass::kList, end == ListEnd::kHead ? "lpush" : "rpush", key);
}

void LPush(Context& c) { Push(c, ListEnd::kHead, false); }
void RPush(Context& c) { Push(c, ListEnd::kTail, false); }
void LPushX(Context& c) { Push(c, ListEnd::kHead, true); }
void RPushX(Context& c) { Push(c, ListEnd::kTail, true); }

void Pop(Context& c, ListEnd end) {
  if (c.words.size() > 3) {
    return c.reply.Error(end == ListEnd::kHead ? "ERR wrong number of arguments for 'lpop' command"
                                               : "ERR wrong number of arguments for 'rpop' command");
  }
  const bool several = c.words.size() == 3;
  int64_t count = 1;
  if (several && (!protocol::ParseInt64(c.words[2], &count) || count < 0)) return c.reply.Error(errors::kMustBePositive);
  const HashedKey key = c.Key(1);
  c.unit.Lock(key);
  const KeyView view = c.unit.Find(c.db(), key);
  if (!CheckList(c.reply, view)) return;
  if (!view) return several ? c.reply.NullArray() : c.reply.Null();
  const List& list = *ListOf(view);
  const size_t n = std::min(static_cast<size_t>(count), list.size());
  if (several) c.reply.Array(n);
  if (n == 0) return;
  list.Walk(end, 0, n, [&](absl::string_view text) { c.reply.Bulk(text); });
  DropFromList(c.unit, c.db(), key, end, n);
}

void LPop(Context& c) { Pop(c, ListEnd::kHead); }
void RPop(Context& c) { Pop(c, ListEnd::kTail); }

void LLen(Context& c) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (CheckList(c.reply, view)) c.reply.Integer(view ? static_cast<int64_t>(ListOf(view)->size()) : 0);
}

void LRange(Context& c) {
  int64_t start = 0, stop = 0;
  if (!c.Int(2, &start) || !c.Int(3, &stop)) return;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckList(c.reply, view)) return;
  if (!view) return c.reply.Array(0);
  const List& list = *ListOf(view);
  const auto size = static_cast<int64_t>(list.size());
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (stop < 0) stop += size;
  stop = std::min(stop, size - 1);
  if (start > stop) return c.reply.Array(0);
  const auto n = static_cast<size_t>(stop - start + 1);
  c.reply.Array(n);
  list.Walk(ListEnd::kHead, static_cast<size_t>(start), n, [&](absl::string_view text) { c.reply.Bulk(text); });
}

// As in Redis the type is looked at before the index.
void LIndex(Context& c) {
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckList(c.reply, view)) return;
  if (!view) return c.reply.Null();
  int64_t index = 0;
  if (!c.Int(2, &index)) return;
  const List& list = *ListOf(view);
  const bool from_tail = index < 0;
  const uint64_t skip = from_tail ? static_cast<uint64_t>(-(index + 1)) : static_cast<uint64_t>(index);
  if (skip >= list.size()) return c.reply.Null();
  list.Walk(from_tail ? ListEnd::kTail : ListEnd::kHead, skip, 1, [&](absl::string_view text) { c.reply.Bulk(text); });
}

struct PosOptions {
  int64_t rank = 1;
  int64_t count = -1;  // not given
  int64_t most = 0;    // elements to look at; 0: all
};

bool ReadCount(Context& c, size_t i, absl::string_view error, int64_t* value) {
  if (protocol::ParseInt64(c.words[i], value) && *value >= 0) return true;
  c.reply.Error(error);
  return false;
}

bool ReadPosOptions(Context& c, PosOptions* options) {
  for (size_t i = 3; i < c.words.size(); i += 2) {
    const absl::string_view word = c.words[i];
    if (i + 1 == c.words.size()) {
      c.Syntax();
      return false;
    }
    if (absl::EqualsIgnoreCase(word, "rank")) {
      if (!c.Int(i + 1, &options->rank)) return false;
      if (options->rank == 0) {
        c.reply.Error(errors::kRankZero);
        return false;
      }
    } else if (absl::EqualsIgnoreCase(word, "count")) {
      if (!ReadCount(c, i + 1, "ERR COUNT can't be negative", &options->count)) return false;
    } else if (absl::EqualsIgnoreCase(word, "maxlen")) {
      if (!ReadCount(c, i + 1, "ERR MAXLEN can't be negative", &options->most)) return false;
    } else {
      c.Syntax();
      return false;
    }
  }
  return true;
}

void LPos(Context& c) {
  PosOptions options;
  if (!ReadPosOptions(c, &options)) return;
  const bool several = options.count >= 0;
  const KeyView view = c.unit.Find(c.db(), c.Key(1));
  if (!CheckList(c.reply, view)) return;
  if (!view) return several ? c.reply.Array(0) : c.reply.Null();
  const ListEnd from = options.rank > 0 ? ListEnd::kHead : ListEnd::kTail;
  // Matches that are passed over; and how many are wanted, 0: all.
  int64_t skip = options.rank > 0 ? options.rank - 1 : -(options.rank + 1);
  const auto wanted = static_cast<uint64_t>(several ? options.count : 1);
  const size_t mark = c.reply.Mark();
  size_t told = 0;
  ListOf(view)->Find(from, c.words[2], options.most == 0 ? SIZE_MAX : static_cast<size_t>(options.most), [&](size_t index) {
    if (skip-- > 0) return true;
    c.reply.Integer(static_cast<int64_t>(index));
    return ++told != wanted;
  });
  if (several) return c.reply.InsertArray(mark, told);
  if (told == 0) c.reply.Null();
}

constexpr ArgSpec kPushArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "element", .multiple = true}};
constexpr ArgSpec kPopArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "count", .type = ArgType::kInteger, .optional = true, .since = "6.2.0"}};
constexpr ArgSpec kKeyArgs[] = {{.name = "key", .type = ArgType::kKey}};
constexpr ArgSpec kRangeArgs[] = {{.name = "key", .type = ArgType::kKey},
                                  {.name = "start", .type = ArgType::kInteger},
                                  {.name = "stop", .type = ArgType::kInteger}};
constexpr ArgSpec kIndexArgs[] = {{.name = "key", .type = ArgType::kKey}, {.name = "index", .type = ArgType::kInteger}};
constexpr ArgSpec kPosArgs[] = {{.name = "key", .type = ArgType::kKey},
                                {.name = "element"},
                                {.name = "rank", .type = ArgType::kInteger, .token = "RANK", .optional = true},
                                {.name = "num-matches", .type = ArgType::kInteger, .token = "COUNT", .optional = true},
                                {.name = "len", .type = ArgType::kInteger, .token = "MAXLEN", .optional = true}};

constexpr const char* kPerElement = "O(N) where N is the number of elements added";
constexpr CommandSpec kListCommands[] = {
    {.name = "LPUSH", .handler = &LPush, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kList, .since = "1.0.0", .complexity = kPerElement,
     .summary = "Puts elements at the head of a list, one after the other.", .args = kPushArgs},
    {.name = "RPUSH", .handler = &RPush, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kList, .since = "1.0.0", .complexity = kPerElement,
     .summary = "Puts elements at the tail of a list, one after the other.", .args = kPushArgs},
    {.name = "LPUSHX", .handler = &LPushX, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kList, .since = "2.2.0", .complexity = kPerElement,
     .summary = "Puts elements at the head of a list that is there.", .args = kPushArgs},
    {.name = "RPUSHX", .handler = &RPushX, .arity = -3, .flags = kWrite | kDenyOom | kFast, .keys = Keys::At(1),
     .key_flags = "RW INSERT", .group = Group::kList, .since = "2.2.0", .complexity = kPerElement,
     .summary = "Puts elements at the tail of a list that is there.", .args = kPushArgs},
    {.name = "LPOP", .handler = &LPop, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kList, .since = "1.0.0",
     .complexity = "O(N) where N is the number of elements returned",
     .summary = "Takes elements from the head of a list.", .args = kPopArgs},
    {.name = "RPOP", .handler = &RPop, .arity = -2, .flags = kWrite | kFast, .keys = Keys::At(1),
     .key_flags = "RW ACCESS DELETE", .group = Group::kList, .since = "1.0.0",
     .complexity = "O(N) where N is the number of elements returned",
     .summary = "Takes elements from the tail of a list.", .args = kPopArgs},
    {.name = "LLEN", .handler = &LLen, .arity = 2, .flags = kReadonly | kFast, .keys = Keys::At(1), .key_flags = "RO",
     .group = Group::kList, .since = "1.0.0", .summary = "Counts the elements of a list.", .args = kKeyArgs},
    {.name = "LRANGE", .handler = &LRange, .arity = 4, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kList, .since = "1.0.0",
     .complexity = "O(S+N) where S is the distance of the first element from the nearer end, divided by some hundreds, and "
                   "N the number of elements returned",
     .summary = "Returns a part of a list.", .args = kRangeArgs},
    {.name = "LINDEX", .handler = &LIndex, .arity = 3, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kList, .since = "1.0.0",
     .complexity = "O(N) where N is the distance of the element from the nearer end, divided by some hundreds",
     .summary = "Returns one element of a list.", .args = kIndexArgs},
    {.name = "LPOS", .handler = &LPos, .arity = -3, .flags = kReadonly, .keys = Keys::At(1), .key_flags = "RO ACCESS",
     .group = Group::kList, .since = "6.0.6", .complexity = "O(N) where N is the number of elements looked at",
     .summary = "Tells where in a list an element is.", .args = kPosArgs}};

}  // namespace

absl::Span<const CommandSpec> ListCommands() { return kListCommands; }

}  // namespace idemd::server
