// A stream against a map of what it should hold: random changes, copies and files, with nodes of every size.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/collection/rdb_collection.h"
#include "storage/collection/stream.h"
#include "storage/collection/stream_cursor.h"
#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using Fields = std::vector<std::string>;

struct GroupModel {
  struct Pending {
    std::string consumer;
    int64_t delivered_ms;
    uint64_t deliveries;
    bool operator==(const Pending&) const = default;
  };
  StreamId last_id;
  int64_t entries_read;
  std::map<StreamId, Pending> pending;
  std::map<std::string, int64_t> consumers;  // when they were seen
  bool operator==(const GroupModel&) const = default;
};

struct StreamModel {
  std::map<StreamId, Fields> entries;
  std::map<std::string, GroupModel> groups;
  StreamId last_id, max_deleted_id;
  uint64_t entries_added = 0;
  bool operator==(const StreamModel&) const = default;
};

std::vector<absl::string_view> Views(const Fields& fields) { return {fields.begin(), fields.end()}; }

std::vector<std::pair<StreamId, Fields>> Walk(const Stream& stream, StreamId start, StreamId end,
                                              StreamCursor::Direction direction) {
  std::vector<std::pair<StreamId, Fields>> entries;
  StreamCursor cursor(stream, start, end, direction);
  while (cursor.Next()) {
    Fields fields;
    for (uint64_t i = cursor.fields(); i > 0; --i) {
      absl::string_view field, value;
      cursor.NextField(&field, &value);
      fields.emplace_back(field);
      fields.emplace_back(value);
    }
    entries.emplace_back(cursor.id(), std::move(fields));
  }
  return entries;
}

StreamModel ModelOf(const Stream& stream) {
  StreamModel model;
  for (auto& [id, fields] : Walk(stream, StreamId::Min(), StreamId::Max(), StreamCursor::Direction::kForward))
    EXPECT_TRUE(model.entries.emplace(id, fields).second);
  EXPECT_EQ(stream.length(), model.entries.size());
  EXPECT_EQ(stream.first_id(), model.entries.empty() ? StreamId() : model.entries.begin()->first);
  EXPECT_EQ(stream.last_entry_id(), model.entries.empty() ? StreamId() : model.entries.rbegin()->first);
  model.last_id = stream.last_id();
  model.max_deleted_id = stream.max_deleted_id();
  model.entries_added = stream.entries_added();
  for (const auto& [name, group] : stream.groups()) {
    GroupModel& g = model.groups[std::string(ViewOf(name))];
    g.last_id = group.last_id;
    g.entries_read = group.entries_read;
    size_t owned = 0;
    for (const auto& [consumer_name, consumer] : group.consumers()) {
      g.consumers[std::string(ViewOf(consumer_name))] = consumer.seen_ms;
      for (const StreamId id : consumer.pending) {
        const StreamGroup::Pending* pending = group.FindPending(id);
        EXPECT_TRUE(pending != nullptr && pending->consumer->first == consumer_name);
        ++owned;
      }
    }
    EXPECT_EQ(owned, group.pending().size());
    for (const auto& [id, pending] : group.pending())
      g.pending[id] = {std::string(ViewOf(pending.consumer->first)), pending.delivered_ms, pending.deliveries};
  }
  return model;
}

std::unique_ptr<Stream> ThroughFile(const Stream& stream, RdbStrings strings) {
  std::unique_ptr<Collection> read;
  const auto status = ReadDumpPayload(DumpPayload(stream, strings), &read);
  EXPECT_TRUE(status.ok()) << status.status();
  return std::unique_ptr<Stream>(static_cast<Stream*>(read.release()));
}

// What all listpacks and containers take, counted by walking; the stream itself keeps count.
size_t NodeBytes(const Stream& stream) {
  size_t bytes = 0;
  for (const auto& [key, node] : stream.nodes()) bytes += node.memory_bytes();
  return bytes;
}

class Twin {
 public:
  explicit Twin(uint64_t seed) : random_(seed), stream_(std::make_unique<Stream>()) {
    limits_.entries = One(4) ? 0 : 1 + random_() % 12;
    limits_.bytes = One(4) ? 0 : 40 + random_() % 400;
  }

  void Step() {
    switch (random_() % 14) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return Add();
      case 5:
        return Delete();
      case 6:
        return Trim();
      case 7:
        return Look();
      case 8:
        return ChangeGroups();
      case 9:
      case 10:
        return Deliver();
      case 11:
        return Acknowledge();
      case 12:
        if (One(8)) Replace();
        return;
      default:
        if (One(8)) SetCounts();
        return;
    }
  }

  void Check() { ASSERT_EQ(ModelOf(*stream_) == model_, true) << "after " << steps_ << " steps"; }

 private:
  bool One(uint64_t in) { return random_() % in == 0; }

  std::string Text() {
    switch (random_() % 6) {
      case 0:
        return "";
      case 1:
        return absl::StrCat(static_cast<int64_t>(random_()) >> random_() % 64);
      case 2:
        return std::string(random_() % 200, static_cast<char>('a' + random_() % 26));
      default:
        return absl::StrCat("field", random_() % 5);
    }
  }

  StreamId AnyId() {
    if (model_.entries.empty() || One(5)) return {random_() % 8, random_() % 8};
    auto at = model_.entries.begin();
    std::advance(at, random_() % model_.entries.size());
    StreamId id = at->first;
    if (One(4)) id.Increment();
    return id;
  }

  void Add() {
    StreamId id = model_.last_id;
    if (One(20)) {
      id.ms += uint64_t{1} << random_() % 40;
      id.seq = random_();
      if (id.seq > UINT64_MAX - 1000) id.seq = 0;
    } else if (One(2)) {
      ++id.ms;
      id.seq = random_() % 3;
    } else {
      id.seq += 1 + random_() % 3;
    }
    if (id <= model_.last_id) return;
    Fields fields;
    if (One(3)) {
      for (size_t i = 1 + random_() % 4; i > 0; --i) {
        fields.push_back(Text());
        fields.push_back(Text());
      }
    } else {
      fields = {"name", Text(), "price", absl::StrCat(random_() % 1000)};
    }
    stream_->Append(id, Views(fields), limits_);
    model_.entries[id] = fields;
    model_.last_id = id;
    ++model_.entries_added;
  }

  void Delete() {
    const StreamId id = AnyId();
    const bool known = model_.entries.erase(id) != 0;
    EXPECT_EQ(stream_->Has(id), known);
    EXPECT_EQ(stream_->Delete(id), known);
    if (known) model_.max_deleted_id = std::max(model_.max_deleted_id, id);
  }

  void Trim() {
    if (!One(4)) return;
    StreamTrim trim;
    trim.keep = One(2) ? StreamTrim::Keep::kNewest : StreamTrim::Keep::kFromId;
    trim.newest = random_() % (model_.entries.size() + 2);
    trim.from = AnyId();
    trim.whole_nodes = One(3);
    if (trim.whole_nodes && One(2)) trim.most = static_cast<int64_t>(1 + random_() % 10);
    const uint64_t removed = stream_->Trim(trim);
    const auto by_length = [&] { return trim.keep == StreamTrim::Keep::kNewest && model_.entries.size() <= trim.newest; };
    const auto by_id = [&] { return trim.keep == StreamTrim::Keep::kFromId && model_.entries.begin()->first >= trim.from; };
    uint64_t wanted = 0;
    for (; !model_.entries.empty() && !by_length() && !by_id(); ++wanted) {
      if (wanted == removed && trim.whole_nodes) break;  // it may stop early
      model_.entries.erase(model_.entries.begin());
    }
    EXPECT_EQ(removed, wanted);
    EXPECT_TRUE(trim.most == 0 || removed <= static_cast<uint64_t>(trim.most));
  }

  void Look() {
    const StreamId start = AnyId(), end = AnyId();
    std::vector<std::pair<StreamId, Fields>> expected;
    for (const auto& [id, fields] : model_.entries)
      if (id >= start && id <= end) expected.emplace_back(id, fields);
    EXPECT_EQ(Walk(*stream_, start, end, StreamCursor::Direction::kForward), expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(Walk(*stream_, start, end, StreamCursor::Direction::kBackward), expected);
    // Fields that nobody reads are passed over.
    StreamCursor cursor(*stream_, start, end);
    for (auto at = expected.rbegin(); at != expected.rend(); ++at) {
      ASSERT_TRUE(cursor.Next());
      EXPECT_EQ(cursor.id(), at->first);
      for (uint64_t left = random_() % (cursor.fields() + 1); left > 0; --left) {
        absl::string_view field, value;
        cursor.NextField(&field, &value);
      }
    }
    EXPECT_FALSE(cursor.Next());
  }

  void ChangeGroups() {
    const std::string name = absl::StrCat("group", random_() % 4);
    GroupModel fresh{AnyId(), static_cast<int64_t>(random_() % 10) - 1, {}, {}};
    if (One(4)) {
      EXPECT_EQ(stream_->RemoveGroup(name), model_.groups.erase(name) != 0);
    } else {
      const bool added = model_.groups.emplace(name, fresh).second;
      EXPECT_EQ(stream_->AddGroup(name, fresh.last_id, fresh.entries_read) != nullptr, added);
    }
  }

  std::string AnyGroup() {
    if (model_.groups.empty()) return "";
    auto at = model_.groups.begin();
    std::advance(at, random_() % model_.groups.size());
    return at->first;
  }

  void Deliver() {
    const std::string name = AnyGroup();
    if (name.empty()) return;
    GroupModel& model = model_.groups[name];
    StreamGroup& group = *stream_->FindGroup(name);
    const std::string consumer_name = absl::StrCat(std::string(random_() % 30, 'c'), random_() % 3);
    StreamGroup::Consumer* consumer = group.FindConsumer(consumer_name);
    EXPECT_EQ(consumer != nullptr, model.consumers.count(consumer_name) != 0);
    if (consumer == nullptr) consumer = &group.AddConsumer(consumer_name, static_cast<int64_t>(steps_));
    model.consumers.emplace(consumer_name, static_cast<int64_t>(steps_));
    for (size_t i = random_() % 4; i > 0; --i) {
      const StreamId id = AnyId();
      const GroupModel::Pending pending{consumer_name, static_cast<int64_t>(random_()), random_() % 100'000};
      group.Deliver(id, *consumer, pending.delivered_ms, pending.deliveries);
      model.pending[id] = pending;
    }
    if (One(10)) {
      uint64_t removed = 0;
      for (auto at = model.pending.begin(); at != model.pending.end();) {
        const bool its = at->second.consumer == consumer_name;
        at = its ? model.pending.erase(at) : std::next(at);
        removed += its ? 1 : 0;
      }
      model.consumers.erase(consumer_name);
      EXPECT_EQ(group.RemoveConsumer(consumer_name), removed);
    }
  }

  void Acknowledge() {
    const std::string name = AnyGroup();
    if (name.empty()) return;
    GroupModel& model = model_.groups[name];
    StreamId id = AnyId();
    if (!model.pending.empty() && One(2)) id = model.pending.begin()->first;
    EXPECT_EQ(stream_->FindGroup(name)->Acknowledge(id), model.pending.erase(id) != 0);
  }

  // By a copy, or by what comes out of a file.
  void Replace() {
    std::unique_ptr<Stream> other;
    if (One(2)) {
      other.reset(static_cast<Stream*>(stream_->Clone().release()));
    } else {
      other = ThroughFile(*stream_, One(2) ? RdbStrings::kPlain : RdbStrings::kCompressed);
    }
    ASSERT_NE(other, nullptr);
    std::string before, after;
    stream_->AppendRdb(RdbStrings::kPlain, before);
    other->AppendRdb(RdbStrings::kPlain, after);
    EXPECT_EQ(before, after);
    EXPECT_GE(other->memory_bytes(), sizeof(Stream) + NodeBytes(*other));
    stream_ = std::move(other);
  }

  void SetCounts() {
    model_.last_id.ms += random_() % 3;
    model_.entries_added = model_.entries.size() + random_() % 5;
    model_.max_deleted_id = AnyId();
    stream_->SetLastId(model_.last_id);
    stream_->SetEntriesAdded(model_.entries_added);
    stream_->SetMaxDeletedId(model_.max_deleted_id);
  }

  std::mt19937_64 random_;
  std::unique_ptr<Stream> stream_;
  Stream::NodeLimits limits_;
  StreamModel model_;

 public:
  uint64_t steps_ = 0;
};

TEST(StreamModelTest, RandomChangesGiveWhatAMapGives) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  for (uint64_t round = 0; round < 60; ++round) {
    Twin twin(seed + round);
    for (twin.steps_ = 0; twin.steps_ < 1500; ++twin.steps_) {
      twin.Step();
      if (twin.steps_ % 50 == 49) twin.Check();
      if (::testing::Test::HasFailure()) {
        ADD_FAILURE() << "round " << round << ", step " << twin.steps_;
        return;
      }
    }
  }
}

TEST(StreamModelTest, WhatItTakesIsGivenBackWhenItIsEmpty) {
  Stream stream;
  const size_t before = stream.memory_bytes();
  const std::vector<absl::string_view> words = {"field", "value"};
  for (uint64_t i = 1; i <= 5000; ++i) stream.Append({i, 0}, words, {});
  StreamGroup& group = *stream.AddGroup("a group with a name that is not short", {}, 0);
  StreamGroup::Consumer& consumer = group.AddConsumer("a consumer with a name that is not short", 0);
  for (uint64_t i = 1; i <= 5000; ++i) group.Deliver({i, 0}, consumer, 0, 1);
  EXPECT_GT(stream.memory_bytes(), before + 5000 * (16 + 56));
  for (uint64_t i = 1; i <= 5000; ++i) EXPECT_TRUE(stream.Delete({i, 0}));
  EXPECT_TRUE(stream.RemoveGroup("a group with a name that is not short"));
  EXPECT_TRUE(stream.nodes().empty());
  EXPECT_EQ(stream.memory_bytes(), before);
  EXPECT_FALSE(stream.gone()) << "an empty stream stays";
}

TEST(StreamModelTest, EntriesWithTheSameFieldsTakeLittleMoreThanTheirValues) {
  Stream stream;
  const std::vector<absl::string_view> words = {"a field with a long name", "12345678", "another field with a long name", "x"};
  for (uint64_t i = 1; i <= 10'000; ++i) stream.Append({1'700'000'000'000 + i, 0}, words, {});
  EXPECT_LT(stream.memory_bytes(), 10'000 * 26);
}

}  // namespace
}  // namespace idemd::storage
