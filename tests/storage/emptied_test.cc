// Memory for what came once: it is given back.
#include "storage/emptied.h"

#include <gtest/gtest.h>

#include "absl/container/flat_hash_map.h"
#include "storage/sync/garbage_ring.h"

namespace idemd::storage {
namespace {

TEST(EmptiedTest, TheSlotsOfALargeTableGoWithItsLastEntry) {
  absl::flat_hash_map<int, int> table;
  for (int i = 0; i < 10'000; ++i) table[i] = i;
  while (table.size() > 1) {
    table.erase(table.begin());
    FreeIfEmptied(table);
  }
  EXPECT_GT(table.capacity(), 8'000u);
  table.clear();
  FreeIfEmptied(table);
  EXPECT_LE(table.capacity(), 1u) << "newer Abseils have room for one in the table itself";
}

TEST(EmptiedTest, ASmallTableKeepsThem) {
  absl::flat_hash_map<int, int> table;
  for (int i = 0; i < 50; ++i) table[i] = i;
  while (!table.empty()) table.erase(table.begin());
  FreeIfEmptied(table);
  EXPECT_GT(table.capacity(), 0u);
}

TEST(GarbageRingTest, FirstInFirstOutThroughGrowingAndGivingBack) {
  GarbageRing ring;
  uint64_t next = 0;
  for (const size_t burst : {10u, 5'000u, 3u, 1'024u, 70'000u, 1u}) {
    const uint64_t first = next;
    for (size_t i = 0; i < burst; ++i) ring.push_back({nullptr, nullptr, next++});
    ASSERT_EQ(ring.size(), burst);
    for (size_t i = 0; i < burst; ++i) {
      ASSERT_EQ(ring.front().pin, first + i);
      ring.pop_front();
    }
    ASSERT_TRUE(ring.empty());
    if (burst > 1'024u) {
      EXPECT_EQ(ring.capacity(), 0u);
    } else {
      EXPECT_LE(ring.capacity(), 1'024u);
    }
  }
}

}  // namespace
}  // namespace idemd::storage
