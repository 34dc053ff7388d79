// The page pool: spans that do not overlap, zeros, memory that goes back to the system and is
// touched ahead.
#include "storage/memory/page_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

using std::chrono::milliseconds;

constexpr PagePool::Time kStart{std::chrono::hours(1)};
constexpr milliseconds kPeriod = PagePool::kIdlePeriod;

char* Take(PagePool& pool, uint32_t pages, uint32_t align_pages = 1) {
  return static_cast<char*>(pool.Allocate(pages, align_pages));
}

bool AllAre(const char* at, size_t bytes, char c) {
  return at[0] == c && std::memcmp(at, at + 1, bytes - 1) == 0;
}

uint32_t ResidentPages(char* at, uint32_t pages) {
  std::vector<unsigned char> present(pages);
  EXPECT_EQ(mincore(at, pages * kPageBytes, present.data()), 0);
  uint32_t n = 0;
  for (const unsigned char page : present) n += page & 1u;
  return n;
}

TEST(PageSetTest, TheLargestAbsentPowerIsWhatTryingEveryPlaceFinds) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    PageSet set;
    const uint64_t adds = random() % 60;
    for (uint64_t i = 0; i < adds; ++i) {
      const auto first = static_cast<uint32_t>(random() % kChunkPages);
      set.Add(first, 1 + static_cast<uint32_t>(random() % std::min(40u, kChunkPages - first)));
    }
    int largest = -1;
    for (int power = 0; power <= 9; ++power) {
      const uint32_t pages = 1u << power;
      for (uint32_t first = 0; first < kChunkPages; first += pages)
        if (set.Next(first) >= first + pages) largest = power;
    }
    ASSERT_EQ(set.LargestAbsentPower(), largest);
  }
}

TEST(PageSetTest, AnEmptyAndAFullSetAreSeenAsSuch) {
  EXPECT_EQ(PageSet().LargestAbsentPower(), 9);
  EXPECT_EQ(PageSet::All().LargestAbsentPower(), -1);
  EXPECT_EQ(PageSet::All().NextAbsent(0), PageSet::kNone);
  EXPECT_EQ(PageSet().Next(0), PageSet::kNone);
}

TEST(PagePoolTest, SpansAreAlignedAsAskedAndWithinOneChunk) {
  PagePool pool;
  std::vector<std::pair<char*, uint32_t>> spans;
  for (uint32_t pages = 1; pages <= kChunkPages; pages = pages * 3 / 2 + 1) {
    for (uint32_t align = 1; align <= kChunkPages; align *= 2) {
      char* const at = Take(pool, pages, align);
      const auto address = reinterpret_cast<uintptr_t>(at);
      EXPECT_EQ(address % (align * kPageBytes), 0u);
      EXPECT_EQ(address / kChunkBytes, (address + pages * kPageBytes - 1) / kChunkBytes);
      std::memset(at, 1, pages * kPageBytes);
      spans.push_back({at, pages});
    }
  }
  pool.CheckInvariants();
  for (const auto& [at, pages] : spans) pool.Free(at, pages);
  pool.CheckInvariants();
  EXPECT_EQ(pool.status().in_use_bytes, 0u);
}

TEST(PagePoolTest, MoreThanAChunkGetsAMappingThatGoesBackAtOnce) {
  PagePool pool;
  char* const at = Take(pool, 3000, 512);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % kChunkBytes, 0u);
  EXPECT_TRUE(AllAre(at, 3000 * kPageBytes, 0));
  EXPECT_EQ(pool.status().mapped_bytes, 3000 * kPageBytes);
  EXPECT_EQ(pool.status().in_use_bytes, 3000 * kPageBytes);
  pool.Free(at, 3000);
  EXPECT_EQ(pool.status().mapped_bytes, 0u);
}

TEST(PagePoolTest, StatusSaysWhyThereAreNoHugePages) {
  const PagePool plain(false);
  EXPECT_FALSE(plain.status().huge_pages);
  EXPECT_EQ(plain.status().why_not, "not asked for");
  const PagePool asking;
  EXPECT_EQ(asking.status().huge_pages, asking.status().why_not.empty());
}

// Random spans of every size, told apart by their contents; time passes.
TEST(PagePoolTest, SpansReadAsZerosAndKeepWhatIsWrittenWhateverWasGivenBackMeanwhile) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  for (const bool huge : {false, true}) {
    PagePool pool(huge);
    struct Span {
      char* at;
      uint32_t pages;
      char mark;
    };
    std::vector<Span> spans;
    PagePool::Time now = kStart;
    size_t given_back = 0;
    uint64_t pages_in_use = 0;
    for (int step = 0; step < 6000; ++step) {
      const bool fills = step / 1000 % 2 == 0;
      if (random() % 4 < (fills ? 3u : 1u)) {
        const uint32_t pages = random() % 20 == 0
                                   ? 1 + static_cast<uint32_t>(random() % kChunkPages)
                                   : 1u << random() % 5;
        const bool zero = random() % 2 == 0;
        auto* const at = static_cast<char*>(
            pool.Allocate(pages, 1u << random() % 5,
                          zero ? PagePool::Contents::kZero : PagePool::Contents::kAny));
        if (zero) {
          ASSERT_TRUE(AllAre(at, pages * kPageBytes, 0)) << "[P2]";
        }
        const char mark = static_cast<char>(1 + random() % 127);
        std::memset(at, mark, pages * kPageBytes);
        spans.push_back({at, pages, mark});
        pages_in_use += pages;
      } else if (!spans.empty()) {
        std::swap(spans[random() % spans.size()], spans.back());
        const Span span = spans.back();
        spans.pop_back();
        ASSERT_TRUE(AllAre(span.at, span.pages * kPageBytes, span.mark)) << "[P1] [P3]";
        pool.Free(span.at, span.pages);
        pages_in_use -= span.pages;
      }
      if (random() % 16 == 0) {
        now += milliseconds(random() % 600);
        given_back += pool.Tend(now);
        pool.CheckInvariants();
      }
      ASSERT_EQ(pool.status().in_use_bytes, pages_in_use * kPageBytes);
    }
    EXPECT_GT(given_back, 0u);
    for (const Span& span : spans) {
      ASSERT_TRUE(AllAre(span.at, span.pages * kPageBytes, span.mark)) << "[P1] [P3]";
      pool.Free(span.at, span.pages);
    }
    for (int i = 0; i < 10; ++i) pool.Tend(now += kPeriod);
    EXPECT_EQ(pool.status().mapped_bytes, 0u) << "all of it goes back when nothing is used";
  }
}

TEST(PagePoolTest, AnEmptyChunkGoesBackAfterAWholePeriodAndNotBefore) {
  PagePool pool(false);
  char* const at = Take(pool, 512);
  pool.Tend(kStart);
  pool.Tend(kStart + 10 * kPeriod);  // growth is over, no spare is wanted
  pool.Tend(kStart + 11 * kPeriod);
  std::memset(at, 1, kChunkBytes);
  pool.Free(at, 512);
  ASSERT_EQ(pool.status().free_touched_bytes, kChunkBytes);
  EXPECT_EQ(pool.Tend(kStart + 12 * kPeriod - milliseconds(1)), 0u) << "the period is not over";
  EXPECT_EQ(pool.Tend(kStart + 12 * kPeriod), 0u) << "it was used in this period";
  EXPECT_EQ(pool.Tend(kStart + 13 * kPeriod), kChunkBytes);
  EXPECT_EQ(pool.status().chunks, 0u);
}

TEST(PagePoolTest, IdlePagesOfAChunkInUseGoBackAndReadAsZerosAfterwards) {
  PagePool pool;
  char* const kept = Take(pool, 16, 16);
  char* const idle = Take(pool, 256, 256);
  char* const busy = Take(pool, 16, 16);
  ASSERT_EQ(reinterpret_cast<uintptr_t>(kept) / kChunkBytes,
            reinterpret_cast<uintptr_t>(idle) / kChunkBytes);
  std::memset(kept, 7, 16 * kPageBytes);
  std::memset(idle, 7, 256 * kPageBytes);
  pool.Tend(kStart);
  pool.Free(idle, 256);
  pool.Tend(kStart + kPeriod);
  pool.Free(busy, 16);  // later: not yet idle for a period
  EXPECT_GE(pool.Tend(kStart + 2 * kPeriod), 256 * kPageBytes);
  EXPECT_EQ(ResidentPages(idle, 256), 0u);
  EXPECT_EQ(ResidentPages(kept, 16), 16u);
  EXPECT_TRUE(AllAre(kept, 16 * kPageBytes, 7));
  pool.CheckInvariants();
  char* const again = Take(pool, 256, 256);
  EXPECT_EQ(again, idle);
  EXPECT_TRUE(AllAre(again, 256 * kPageBytes, 0));
  pool.Free(again, 256);
  pool.Free(kept, 16);
}

TEST(PagePoolTest, AHugePageIsNotBrokenUpForAFewPages) {
  PagePool pool;
  if (!pool.status().huge_pages) GTEST_SKIP() << pool.status().why_not;
  constexpr uint32_t kFew = PagePool::kIdlePagesToBreak / 2, kMost = kChunkPages - kFew;
  char* const most = Take(pool, kMost);
  char* const few = Take(pool, kFew);
  pool.Tend(kStart);
  std::memset(few, 1, kFew * kPageBytes);
  pool.Free(few, kFew);
  for (int i = 1; i < 6; ++i) pool.Tend(kStart + i * kPeriod);
  EXPECT_EQ(ResidentPages(few, kFew), kFew);
  EXPECT_EQ(pool.status().free_touched_bytes, kFew * kPageBytes);
  pool.Free(most, kMost);
}

TEST(PagePoolTest, WhileThePoolGrowsTheNextChunkIsResidentBeforeItIsAskedFor) {
  PagePool pool;
  char* const first = Take(pool, 512);
  pool.Tend(kStart);
  EXPECT_EQ(pool.status().chunks, 1u + 2u) << "twice what the last interval took";
  EXPECT_EQ(pool.status().free_touched_bytes, 2 * kChunkBytes);
  char* const next = Take(pool, 512);
  EXPECT_EQ(ResidentPages(next, 512), 512u) << "nobody has written to it yet";
  EXPECT_EQ(pool.status().chunks, 3u);
  pool.Free(first, 512);
  pool.Free(next, 512);
}

TEST(PagePoolTest, SparesGoBackWhenGrowthIsOver) {
  PagePool pool;
  char* const first = Take(pool, 512);
  pool.Tend(kStart);
  ASSERT_GT(pool.status().chunks, 1u);
  for (int i = 1; i < 10; ++i) pool.Tend(kStart + i * kPeriod);
  EXPECT_EQ(pool.status().chunks, 1u);
  EXPECT_EQ(pool.status().free_touched_bytes, 0u);
  pool.Free(first, 512);
}

TEST(PagePoolTest, SpansComeFromTheFullestChunkWithRoom) {
  PagePool pool;
  char* const sparse = Take(pool, 64, 512);
  char* const full = Take(pool, 400, 512);  // does not fit into the first at that alignment
  ASSERT_NE(reinterpret_cast<uintptr_t>(sparse) / kChunkBytes,
            reinterpret_cast<uintptr_t>(full) / kChunkBytes);
  char* const at = Take(pool, 16, 16);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at) / kChunkBytes,
            reinterpret_cast<uintptr_t>(full) / kChunkBytes);
  pool.Free(sparse, 64);
  pool.Free(full, 400);
  pool.Free(at, 16);
}

TEST(PagePoolDeathTest, ASpanFreedTwiceStopsTheProcess) {
  PagePool pool;
  char* const kept = Take(pool, 1);
  char* const at = Take(pool, 8, 8);
  pool.Free(at, 8);
  EXPECT_DEATH(pool.Free(at, 8), "a span is freed once");
  pool.Free(kept, 1);
}

TEST(PagePoolTest, ThreadsTakeAndFreeWhileOneTends) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  PagePool pool;
  std::atomic<int> running{2};
  std::atomic<bool> wrong{false};
  const auto work = [&](uint64_t own_seed) {
    std::mt19937_64 random(own_seed);
    const char mark = static_cast<char>(1 + own_seed % 100);
    std::vector<std::pair<char*, uint32_t>> spans;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 2 == 0 || spans.empty()) {
        const auto pages = 1u << random() % 7;
        char* const at = Take(pool, pages, pages);
        if (!AllAre(at, pages * kPageBytes, 0)) wrong = true;
        std::memset(at, mark, pages * kPageBytes);
        spans.push_back({at, pages});
      } else {
        std::swap(spans[random() % spans.size()], spans.back());
        const auto [at, pages] = spans.back();
        spans.pop_back();
        if (!AllAre(at, pages * kPageBytes, mark)) wrong = true;
        pool.Free(at, pages);
      }
    }
    for (const auto& [at, pages] : spans) pool.Free(at, pages);
    --running;
  };
  std::thread a(work, seed);
  std::thread b(work, seed + 1);
  for (PagePool::Time now = kStart; running != 0; now += kPeriod) pool.Tend(now);
  a.join();
  b.join();
  EXPECT_FALSE(wrong) << "[P1] [P2] [P3]";
  pool.CheckInvariants();
  EXPECT_EQ(pool.status().in_use_bytes, 0u);
}

}  // namespace
}  // namespace idemd::storage
