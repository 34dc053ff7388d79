// Streams in files: the bytes that Redis writes, older and newer types, and bytes that nobody should have written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "storage/collection/stream.h"
#include "storage/collection/stream_cursor.h"
#include "storage/snapshot/rdb_reader.h"
#include "storage/snapshot/rdb_writer.h"
#include "tests/storage/snapshot/rdb_files.h"
#include "tests/support/redis_process.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using Words = std::vector<absl::string_view>;

std::unique_ptr<Stream> Read(absl::string_view payload) {
  std::unique_ptr<Collection> read;
  if (!ReadDumpPayload(payload, &read).ok() || read == nullptr || read->type() != ValueType::kStream) return nullptr;
  return std::unique_ptr<Stream>(static_cast<Stream*>(read.release()));
}

// A stream with several nodes, entries of other fields, deleted ones, and two groups.
std::unique_ptr<Stream> Sample() {
  auto stream = std::make_unique<Stream>();
  const Stream::NodeLimits limits{400, 4};
  for (uint64_t i = 1; i <= 10; ++i)
    stream->Append({i * 1000, i % 3}, i % 4 == 0 ? Words{"other", "x", "n", "-7"} : Words{"name", "value", "count", "12345"}, limits);
  stream->Delete({2000, 2});
  stream->Delete({9000, 0});
  StreamGroup& group = *stream->AddGroup("readers", {5000, 2}, 4);
  StreamGroup::Consumer& ann = group.AddConsumer("ann", 111);
  group.AddConsumer("bob", 222);
  group.Deliver({3000, 0}, ann, 333, 1);
  group.Deliver({4000, 1}, ann, 444, 70'000);
  stream->AddGroup("others", {}, StreamGroup::kUnknown);
  return stream;
}

std::string Plain(const Stream& stream) {
  std::string bytes;
  stream.AppendRdb(RdbStrings::kPlain, bytes);
  return bytes;
}

// Reads all there is: what was let through must be safe to use.
size_t Use(Stream& stream) {
  size_t bytes = 0;
  for (const auto direction : {StreamCursor::Direction::kForward, StreamCursor::Direction::kBackward}) {
    StreamCursor cursor(stream, StreamId::Min(), StreamId::Max(), direction);
    StreamId before;
    for (size_t entries = 0; cursor.Next(); ++entries) {
      EXPECT_TRUE(entries == 0 || direction == StreamCursor::Direction::kBackward || cursor.id() > before);
      before = cursor.id();
      for (uint64_t i = cursor.fields(); i > 0; --i) {
        absl::string_view field, value;
        cursor.NextField(&field, &value);
        bytes += field.size() + value.size();
      }
    }
  }
  for (const auto& [name, group] : stream.groups()) {
    for (const auto& [id, pending] : group.pending()) bytes += pending.consumer->first.size();
    bytes += static_cast<size_t>(stream.Lag(group).value_or(0));
  }
  stream.Clone();
  while (stream.length() != 0 && stream.Delete(stream.last_entry_id())) {
  }
  EXPECT_EQ(stream.length(), 0u);
  EXPECT_TRUE(stream.nodes().empty());
  return bytes;
}

TEST(StreamRdbTest, WhatIsWrittenIsWhatRedisWrites) {
  if (!idemd::testing::HasRedis70()) GTEST_SKIP() << "there is no redis-server 7.0 on the PATH";
  const idemd::testing::TempFolder folder;
  idemd::testing::RedisProcess redis(folder, {"--rdbcompression", "no", "--stream-node-max-entries", "7"});
  ASSERT_TRUE(redis.serves()) << redis.log();
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Stream stream;
  StreamId id;
  const auto text = [&]() -> std::string {
    switch (random() % 5) {
      case 0:
        return absl::StrCat(static_cast<int64_t>(random()) >> random() % 64);
      case 1:
        return std::string(random() % 5000, 'x');
      case 2:
        return "";
      default:
        return absl::StrCat("text", random() % 3);
    }
  };
  for (int i = 0; i < 400; ++i) {
    id.ms += random() % 3 * (random() % 70'000);
    id.seq = random() % 2 == 0 ? id.seq + 1 : random() >> 1;
    if (id <= stream.last_id()) id = {stream.last_id().ms + 1, 0};
    std::vector<std::string> fields;
    for (size_t n = 2 * (1 + random() % 3); n > 0; --n) fields.push_back(text());
    StreamId::Digits digits;
    std::vector<std::string> words = {"XADD", "key", std::string(id.Text(digits))};
    words.insert(words.end(), fields.begin(), fields.end());
    ASSERT_EQ(redis.Do(words), absl::StrCat("\"", words[2], "\""));
    stream.Append(id, Words(fields.begin(), fields.end()), {4096, 7});
    if (random() % 4 == 0) {
      redis.Do({"XDEL", "key", words[2]});
      stream.Delete(id);
    }
  }
  EXPECT_EQ(DumpPayload(stream, RdbStrings::kPlain), redis.Bulk({"DUMP", "key"}));
  // And groups: read from Redis, and given back to it.
  const std::string newest = redis.Bulk({"XADD", "key", "*", "a", "b"});
  redis.Do({"XGROUP", "CREATE", "key", "readers", "0"});
  redis.Do({"XGROUP", "CREATE", "key", "others", "$", "ENTRIESREAD", "5"});
  redis.Do({"XREADGROUP", "GROUP", "readers", "ann", "COUNT", "20", "STREAMS", "key", ">"});
  redis.Do({"XREADGROUP", "GROUP", "readers", "bob", "COUNT", "20", "STREAMS", "key", ">"});
  const std::string dump = redis.Bulk({"DUMP", "key"});
  const std::unique_ptr<Stream> read = Read(dump);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(DumpPayload(*read, RdbStrings::kPlain), dump);
  const std::string compressed = DumpPayload(*read, RdbStrings::kCompressed);
  EXPECT_EQ(redis.Do({"RESTORE", "copy", "0", compressed}), "OK");
  EXPECT_EQ(redis.Bulk({"DUMP", "copy"}), dump);
}

TEST(StreamRdbTest, TheTypesBeforeAndAfterAreReadToo) {
  // One node with one live entry 5-1 {f: v}.
  std::string head = Bytes({1, 16, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1});
  Stream one;
  one.Append({5, 1}, Words{"f", "v"}, {});
  const absl::string_view node = one.nodes().begin()->second.view();
  absl::StrAppend(&head, std::string(1, static_cast<char>(node.size())), node);
  head += Bytes({1, 7, 2});  // one entry; the last ID was 7-2
  const std::string pending = std::string(7, '\0') + Bytes({5}) + std::string(7, '\0') + Bytes({1});
  const std::string ms = Bytes({9, 0, 0, 0, 0, 0, 0, 0});
  const std::string group15 = Bytes({1, 1, 'g', 7, 2}) + Bytes({1}) + pending + ms + Bytes({3}) + Bytes({1, 1, 'c'});

  std::unique_ptr<Stream> stream = Read(Payload(Bytes({15}) + head + group15 + ms + Bytes({1}) + pending));
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->length(), 1u);
  EXPECT_EQ(stream->entries_added(), 1u);
  EXPECT_EQ(stream->last_id(), (StreamId{7, 2}));
  EXPECT_EQ(stream->first_id(), (StreamId{5, 1}));
  const StreamGroup* group = stream->FindGroup("g");
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->entries_read, 1) << "it has read to the end";
  ASSERT_NE(group->FindPending({5, 1}), nullptr);
  EXPECT_EQ(group->FindPending({5, 1})->deliveries, 3u);
  EXPECT_EQ(group->FindPending({5, 1})->delivered_ms, 9);
  EXPECT_EQ(group->FindConsumer("c")->second.seen_ms, 9);

  const std::string counts = Bytes({5, 1, 2, 2, 8});  // first 5-1, deleted 2-2, 8 in all
  const std::string group19 = Bytes({1, 1, 'g', 7, 2, 8, 1}) + pending + ms + Bytes({3}) + Bytes({1, 1, 'c'});
  for (const int type : {19, 21}) {
    const std::string active = type == 21 ? Bytes({8, 0, 0, 0, 0, 0, 0, 0}) : "";
    stream = Read(Payload(Bytes({type}) + head + counts + group19 + ms + active + Bytes({1}) + pending, 11));
    ASSERT_NE(stream, nullptr) << type;
    EXPECT_EQ(stream->entries_added(), 8u);
    EXPECT_EQ(stream->max_deleted_id(), (StreamId{2, 2}));
    EXPECT_EQ(stream->FindGroup("g")->entries_read, 8);
    EXPECT_EQ(stream->FindGroup("g")->FindConsumer("c")->second.pending.size(), 1u);
    // Pending at two consumers, at none, in no group.
    EXPECT_EQ(Read(Payload(Bytes({type}) + head + counts + group19 + ms + active + Bytes({2}) + pending + pending, 11)), nullptr);
    EXPECT_EQ(Read(Payload(Bytes({type}) + head + counts + group19 + ms + active + Bytes({0}), 11)), nullptr);
  }
}

TEST(StreamRdbTest, EveryCutIsAnError) {
  const std::string body = Bytes({19}) + Plain(*Sample());
  ASSERT_NE(Read(Payload(body)), nullptr);
  for (size_t size = 0; size < body.size(); ++size) EXPECT_EQ(Read(Payload(body.substr(0, size))), nullptr) << size;
}

TEST(StreamRdbTest, BytesThatChangedAreRefusedOrAreAStreamAllTheSame) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  const std::string body = Bytes({19}) + Plain(*Sample());
  size_t let_through = 0;
  const auto look = [&](const std::string& damaged) {
    const std::unique_ptr<Stream> stream = Read(Payload(damaged));
    if (stream == nullptr) return;
    ++let_through;
    Use(*stream);
  };
  for (size_t bit = 0; bit < body.size() * 8; ++bit) {
    std::string damaged = body;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    look(damaged);
  }
  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = body;
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const size_t at = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, 1 + random() % 4);
          break;
        default:
          damaged.replace(at, random() % 6, body, random() % body.size(), random() % 6);
      }
      if (damaged.empty()) damaged = "x";
    }
    look(damaged);
  }
  EXPECT_GT(let_through, 0u) << "values may change without anybody seeing it";
}

TEST(StreamRdbTest, CountsThatDoNotFitTheEntriesAreRefused) {
  const std::unique_ptr<Stream> sample = Sample();
  const std::string good = Bytes({19}) + Plain(*sample);
  ASSERT_NE(Read(Payload(good)), nullptr);
  // The length is the byte behind the nodes.
  std::string nodes;
  AppendRdbLength(sample->nodes().size(), nodes);
  for (const auto& [key, node] : sample->nodes()) {
    char bytes[StreamId::kBytes];
    key.ToBytes(bytes);
    AppendRdbString({bytes, sizeof(bytes)}, RdbStrings::kPlain, nodes);
    AppendRdbString(node.view(), RdbStrings::kPlain, nodes);
  }
  const size_t length_at = 1 + nodes.size();
  ASSERT_EQ(good[length_at], 8);
  for (const char length : {'\7', '\11'}) {
    std::string bad = good;
    bad[length_at] = length;
    EXPECT_EQ(Read(Payload(bad)), nullptr);
  }
  // Nodes in the wrong order.
  const auto first = sample->nodes().begin(), second = std::next(first);
  const auto two = [&](Stream::Nodes::const_iterator a, Stream::Nodes::const_iterator b) {
    std::string body = Bytes({19, 2});
    for (const auto& at : {a, b}) {
      char bytes[StreamId::kBytes];
      at->first.ToBytes(bytes);
      AppendRdbString({bytes, sizeof(bytes)}, RdbStrings::kPlain, body);
      AppendRdbString(at->second.view(), RdbStrings::kPlain, body);
    }
    return Payload(body + Bytes({7}) + good.substr(length_at + 1));
  };
  EXPECT_NE(Read(two(first, second)), nullptr);
  EXPECT_EQ(Read(two(second, first)), nullptr);
}

}  // namespace
}  // namespace idemd::storage
