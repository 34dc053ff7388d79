// The read buffer and the output queue by themselves.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/net/output_queue.h"
#include "server/net/read_buffer.h"

namespace idemd::server {
namespace {

void Put(ReadBuffer& buffer, absl::string_view bytes) {
  ASSERT_LE(bytes.size(), buffer.space_bytes());
  bytes.copy(buffer.space(), bytes.size());
  buffer.Commit(bytes.size());
}

TEST(ReadBuffer, KeepsWhatIsNotConsumed) {
  ReadBuffer buffer;
  ASSERT_TRUE(buffer.MakeRoom(0));
  EXPECT_EQ(buffer.capacity(), ReadBuffer::kBytesMin);
  Put(buffer, "one two");
  buffer.Consume(4);
  EXPECT_EQ(buffer.view(), "two");
  ASSERT_TRUE(buffer.MakeRoom(0));
  EXPECT_EQ(buffer.view(), "two");
  Put(buffer, " three");
  EXPECT_EQ(buffer.view(), "two three");
}

TEST(ReadBuffer, TrustsALengthOnlyAsFarAsBytesHaveArrived) {
  ReadBuffer buffer;
  constexpr size_t kWanted = 512 << 20;
  ASSERT_TRUE(buffer.MakeRoom(0));
  Put(buffer, "$536870912\r\n");
  ASSERT_TRUE(buffer.MakeRoom(kWanted));
  EXPECT_EQ(buffer.capacity(), ReadBuffer::kBytesMin);
  Put(buffer, std::string(buffer.space_bytes(), 'x'));
  ASSERT_TRUE(buffer.MakeRoom(kWanted));
  EXPECT_EQ(buffer.capacity(), 4 * ReadBuffer::kBytesMin);
}

TEST(ReadBuffer, MakesExactlyTheRoomForAWordThatIsMostlyThere) {
  ReadBuffer buffer;
  constexpr size_t kWanted = 200'000;
  while (buffer.size() < kWanted) {
    ASSERT_TRUE(buffer.MakeRoom(kWanted));
    ASSERT_GT(buffer.space_bytes(), 0u);
    Put(buffer, std::string(std::min<size_t>(buffer.space_bytes(), 9'999), 'x'));
  }
  EXPECT_EQ(buffer.capacity(), kWanted);
  buffer.Consume(kWanted);
  ASSERT_TRUE(buffer.MakeRoom(0));
  EXPECT_EQ(buffer.capacity(), ReadBuffer::kBytesMin);
}

TEST(ReadBuffer, FullReadsGetLargerUpToALimit) {
  ReadBuffer buffer;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(buffer.MakeRoom(0));
    Put(buffer, std::string(buffer.space_bytes(), 'x'));
    buffer.Consume(buffer.size());
  }
  EXPECT_EQ(buffer.capacity(), ReadBuffer::kBytesBusy);
}

// Writes up to `n` bytes, as a socket would.
std::string Take(OutputQueue& queue, size_t n) {
  std::string out;
  for (const boost::asio::const_buffer& piece : queue.Front())
    out.append(static_cast<const char*>(piece.data()), std::min(piece.size(), n - out.size()));
  queue.Consume(out.size());
  return out;
}

TEST(OutputQueue, GivesBackWhatWasPutInInOrder) {
  for (const size_t step : {1u, 7u, 1000u, 1u << 20}) {
    OutputQueue queue;
    std::string expected;
    for (int i = 0; i < 200; ++i) {
      std::string bytes(static_cast<size_t>(i * i % 40'000), static_cast<char>('a' + i % 26));
      absl::StrAppend(&bytes, "<", i, ">");
      const size_t from = i % 5 == 0 ? 1 : 0;
      absl::StrAppend(&expected, bytes.substr(from));
      if (i % 7 == 0) {
        queue.AppendShared(std::make_shared<const std::string>(bytes.substr(from)));
      } else {
        queue.Append(bytes, from);
        EXPECT_TRUE(bytes.empty());
      }
      EXPECT_EQ(queue.bytes(), expected.size());
    }
    std::string got;
    while (!queue.empty() && (step > 1 || got.size() < 5000)) got += Take(queue, step);
    EXPECT_EQ(got, expected.substr(0, got.size()));
    EXPECT_TRUE(step == 1 || got.size() == expected.size());
  }
}

TEST(OutputQueue, BytesUnderWayDoNotMoveWhenMoreIsAppended) {
  OutputQueue queue;
  std::string first = "first";
  queue.Append(first, 0);
  const OutputQueue::Buffers under_way = queue.Front();
  for (int i = 0; i < 10'000; ++i) {
    std::string more = "more";
    queue.Append(more, 0);
  }
  EXPECT_EQ(queue.Front()[0].data(), under_way[0].data());
  EXPECT_EQ(absl::string_view(static_cast<const char*>(under_way[0].data()), under_way[0].size()),
            "first");
  queue.Consume(5);
  EXPECT_EQ(Take(queue, 4), "more");
}

TEST(ReadBuffer, WhatIsLeftOfLentBytesIsKept) {
  ReadBuffer buffer;
  for (const size_t used : {size_t{0}, size_t{5}, size_t{10}}) {
    char lent[] = "0123456789";
    buffer.Lend(lent, 10);
    EXPECT_EQ(buffer.view().data(), lent);
    buffer.Consume(used);
    ASSERT_TRUE(buffer.KeepRest(0));
    EXPECT_FALSE(buffer.lent());
    EXPECT_NE(buffer.view().data(), lent + used);
    EXPECT_EQ(buffer.view(), absl::string_view("0123456789").substr(used));
    buffer.Clear();
  }
  char lent[] = "abc";
  buffer.Lend(lent, 3);
  buffer.Free();
  EXPECT_FALSE(buffer.lent());
  EXPECT_EQ(buffer.capacity(), 0u);
}

TEST(ReadBuffer, AppendedBytesFollowWhatIsThere) {
  ReadBuffer buffer;
  std::string expected;
  for (size_t i = 0; i < 40; ++i) {
    const std::string part(1 + i * 997, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(buffer.Append(part, 0));
    expected += part;
    buffer.Consume(i * 100);
    expected.erase(0, i * 100);
    ASSERT_TRUE(buffer.view() == expected);
  }
}

}  // namespace
}  // namespace idemd::server
