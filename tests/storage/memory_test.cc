// Memory that was given up is given back: soon, whatever its size, and without more traffic.
#include <gtest/gtest.h>
#include <malloc.h>

#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/memory/page_pool.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

#ifndef IDEMD_SANITIZED

size_t HeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd + ProcessPages().status().in_use_bytes;
}

class MemoryTest : public ::testing::Test {
 protected:
  void Set(const std::string& name, size_t bytes) {
    Unit unit(store_);
    const HashedKey key(name);
    unit.Lock(key);
    unit.SetString(0, key, std::string(bytes, 'x'), kNoDeadline);
  }
  // Flushed tables are freed by a thread that a tick starts and a later one joins. The sleep is for that thread: counting
  // the heap walks its free lists under the lock that free() needs.
  void TickUntilBelow(size_t bytes) {
    for (int i = 0; i < 10'000 && HeapBytes() > bytes; ++i) {
      store_.Tick();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_LT(HeapBytes(), bytes);
  }

  FakeClock clock_;
  NullLog log_;
  Store store_{clock_, log_};
};

TEST_F(MemoryTest, AReplacedLargeValueIsFreedAtOnce) {
  Set("k", 8 << 20);
  const size_t one = HeapBytes();
  for (int i = 0; i < 50; ++i) Set("k", 8 << 20);
  EXPECT_LT(HeapBytes(), one + (17 << 20)) << "at most the one being replaced beside the new one";
}

TEST_F(MemoryTest, LargeValuesDroppedByAThreadThatGoesQuietAreFreedByTheTick) {
  const size_t before = HeapBytes();
  std::thread quiet([this] {
    const EpochGuard guard;  // a batch that goes on: nothing can be freed inside
    for (int i = 0; i < 20; ++i) Set("k", 4 << 20);
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  });
  quiet.join();
  TickUntilBelow(before + (2 << 20));
}

TEST_F(MemoryTest, AFlushedDatabaseIsFreedWithoutMoreTraffic) {
  const size_t before = HeapBytes();
  for (int i = 0; i < 100'000; ++i) Set(absl::StrCat("key:", i), 100);
  ASSERT_GT(HeapBytes(), before + (10 << 20));
  {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
  }
  TickUntilBelow(before + (2 << 20));
}

#endif  // sanitizers have allocators of their own

}  // namespace
}  // namespace idemd::storage
