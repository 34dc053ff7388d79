// Each text is written with its length in front, so that no two values look the same.
#include "tests/crash/shown.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "storage/collection/hash.h"
#include "storage/collection/sorted_set.h"
#include "storage/collection/stream.h"
#include "storage/collection/stream_cursor.h"

namespace idemd::testing {
namespace {

using storage::StreamId;
using storage::ValueType;

std::string Text(absl::string_view text) { return absl::StrCat(" ", text.size(), ":", text); }

std::string Id(StreamId id) { return absl::StrCat(" ", id.ms, "-", id.seq); }

std::string InOrder(std::vector<std::string> parts) {
  std::sort(parts.begin(), parts.end());
  std::string all;
  for (const std::string& part : parts) all += part;
  return all;
}

std::string OfStream(const storage::Stream& stream) {
  std::string text;
  storage::StreamCursor cursor(stream, StreamId::Min(), StreamId::Max());
  while (cursor.Next()) {
    absl::StrAppend(&text, Id(cursor.id()), " {");
    for (uint64_t i = 0; i < cursor.fields(); ++i) {
      absl::string_view field, value;
      cursor.NextField(&field, &value);
      absl::StrAppend(&text, Text(field), Text(value));
    }
    text += " }";
  }
  absl::StrAppend(&text, " last", Id(stream.last_id()), " deleted", Id(stream.max_deleted_id()),
                  " added ", stream.entries_added(), " length ", stream.length());
  for (const auto& [name, group] : stream.groups()) {
    absl::StrAppend(&text, " group", Text(storage::ViewOf(name)), Id(group.last_id), " read ",
                    group.entries_read);
    for (const auto& [id, pending] : group.pending()) {
      absl::StrAppend(&text, " pending", Id(id), " at", Text(storage::ViewOf(pending.consumer->first)),
                      " since ", pending.delivered_ms, " times ", pending.deliveries);
    }
    for (const auto& [consumer, its] : group.consumers())
      absl::StrAppend(&text, " consumer", Text(storage::ViewOf(consumer)), " has ", its.pending.size());
  }
  return text;
}

}  // namespace

std::string Shown(const storage::Collection& collection) {
  std::string text = absl::StrCat("(", storage::ValueTypeName(collection.type()), ")");
  switch (collection.type()) {
    case ValueType::kHash: {
      std::vector<std::string> pairs;
      static_cast<const storage::Hash&>(collection).ForEachPair(
          [&](absl::string_view field, absl::string_view value) {
            pairs.push_back(absl::StrCat(Text(field), "=", Text(value)));
          });
      return text + InOrder(std::move(pairs));
    }
    case ValueType::kSet: {
      std::vector<std::string> members;
      collection.ForEach([&](absl::string_view member) { members.push_back(Text(member)); });
      return text + InOrder(std::move(members));
    }
    case ValueType::kSortedSet:
      static_cast<const storage::SortedSet&>(collection)
          .ForRange(0, collection.size(), false, [&](absl::string_view member, double score) {
            absl::StrAppend(&text, Text(member), "=", absl::StrFormat("%.17g", score));
          });
      return text;
    case ValueType::kList:
      collection.ForEach([&](absl::string_view element) { text += Text(element); });
      return text;
    case ValueType::kStream:
      return text + OfStream(static_cast<const storage::Stream&>(collection));
    case ValueType::kNone:
    case ValueType::kString:
    case ValueType::kRecord:
      break;
  }
  return text + " is no collection";
}

}  // namespace idemd::testing
