// What a replica is sent, and when.
#include "server/journal/replica_feed.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace idemd::server {
namespace {

struct Replica {
  std::string got;
  std::vector<storage::Lsn> needs;
  bool alive = true, killed = false;

  ReplicaSink Sink(std::string greeting = "") {
    ReplicaSink sink;
    sink.send = [this](const std::shared_ptr<const std::string>& bytes, storage::Lsn need) {
      if (alive) got += *bytes;
      needs.push_back(need);
      return alive;
    };
    sink.alive = [this] { return alive; };
    sink.kill = [this] { killed = true; };
    sink.greeting = std::move(greeting);
    return sink;
  }
};

constexpr char kSelect0[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n";
constexpr char kSelect3[] = "*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n";

TEST(ReplicaFeed, WritesAreKeptUntilTheSnapshotHasBeenSent) {
  ReplicaFeed feed;
  Replica replica;
  feed.Append("before;", 0, 0, 1);
  const uint64_t id = feed.Open(replica.Sink("at {offset};"));
  EXPECT_EQ(replica.got, "at 0;");
  feed.Append("one;", 0, 0, 7);
  feed.BeginSnapshot(id, "$4\r\n");
  feed.Append("two;", 0, 3, 9);
  EXPECT_EQ(replica.got, "at 0;$4\r\n");
  feed.Begin(id);
  EXPECT_EQ(replica.got, absl::StrCat("at 0;$4\r\n", kSelect0, "one;two;"));
  EXPECT_EQ(replica.needs.back(), 9u);
  feed.Append("three;", 3, 3, 11);
  EXPECT_EQ(replica.got, absl::StrCat("at 0;$4\r\n", kSelect0, "one;two;three;")) << "it is in that database already";
  EXPECT_EQ(feed.offset(), absl::StrCat(kSelect0, "one;two;three;").size());
}

TEST(ReplicaFeed, EveryReplicaIsToldTheDatabaseWhenOneJoins) {
  ReplicaFeed feed;
  Replica a, b;
  feed.Begin(feed.Open(a.Sink()));
  feed.Append("one;", 3, 3, 1);
  feed.Begin(feed.Open(b.Sink("at {offset};")));
  feed.Append("two;", 3, 3, 2);
  feed.AppendPlain("plain;");
  EXPECT_EQ(a.got, absl::StrCat(kSelect3, "one;", kSelect3, "two;plain;"));
  EXPECT_EQ(b.got, absl::StrCat("at ", absl::StrCat(kSelect3, "one;").size(), ";", kSelect3, "two;plain;"));
}

TEST(ReplicaFeed, WhoIsGoneIsForgotten) {
  ReplicaFeed feed;
  Replica a, b;
  feed.Want();
  feed.Begin(feed.Open(a.Sink()));
  feed.Open(b.Sink());
  a.alive = false;
  feed.Append("one;", 0, 0, 1);
  EXPECT_TRUE(feed.StillWanted());
  EXPECT_EQ(b.got, "\n") << "whose snapshot is yet to come sees that the server lives";
  b.alive = false;
  EXPECT_FALSE(feed.StillWanted());
  EXPECT_FALSE(feed.wanted());
  feed.Append("two;", 0, 0, 2);
  EXPECT_EQ(a.got + b.got, "\n");
}

TEST(ReplicaFeed, WhatIsKeptForAReplicaHasALimit) {
  ReplicaFeed feed;
  Replica replica;
  feed.Open(replica.Sink());
  const std::string much(ReplicaFeed::kKeptBytesMax / 4 + 1, 'x');
  for (int i = 0; i < 3; ++i) feed.Append(much, 0, 0, 1);
  EXPECT_FALSE(replica.killed);
  feed.Append(much, 0, 0, 1);
  EXPECT_TRUE(replica.killed);
  EXPECT_FALSE(feed.StillWanted());
}

}  // namespace
}  // namespace idemd::server
