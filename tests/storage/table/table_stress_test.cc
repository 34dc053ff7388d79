// The table under real threads, for TSan and for luck: values prove themselves, and histories add
// up.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "storage/sync/mutex.h"
#include "storage/table/table.h"
#include "tests/storage/table/plain_entry.h"

namespace idemd::storage {
namespace {

constexpr auto kFor = std::chrono::milliseconds(700);
constexpr uint64_t kKeys = 4000;
constexpr uint64_t kStable = 200;  // never removed, only replaced

// One table that writers fill and empty in turn while readers look.
class Stress {
 public:
  Stress() {
    for (uint64_t key = 0; key < kStable; ++key) Put(key);
  }

  void Writer(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint64_t i = 0; !over_.load(std::memory_order_relaxed); ++i) {
      const bool fills = (i / (2 * kKeys)) % 2 == 0;
      const uint64_t key = random() % kKeys;
      random() % 8 < (fills ? 7u : 1u) || key < kStable ? Put(key) : Take(key);
      if (random() % 1024 == 0) Sweep();
    }
  }
  void Reader(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> seen(kKeys);
    while (!over_.load(std::memory_order_relaxed)) {
      const EpochGuard guard;
      for (int i = 0; i < 16; ++i) {
        const uint64_t key = random() % 2 == 0 ? random() % kStable : random() % kKeys;
        const PlainEntry* entry = table_.Find(MixedHash(key), std::to_string(key));
        if (entry == nullptr) {
          if (key < kStable) Fail("absent is a promise [T2]");
          continue;
        }
        if (!entry->proves_itself() || entry->hash() != MixedHash(key))
          Fail("an entry is whole and the key's [T1]");
        if (entry->version() < seen[key]) Fail("a key's versions do not go back [T2]");
        seen[key] = entry->version();
      }
      const PlainEntry* any = table_.Random(random());
      if (any == nullptr || !any->proves_itself()) Fail("there is always some key");
    }
  }
  void Scanner() {
    while (!over_.load(std::memory_order_relaxed)) {
      std::vector<bool> seen(kStable);
      uint32_t cursor = 0;
      do {
        const EpochGuard guard;
        cursor = table_.Scan(cursor, [&](PlainEntry& entry) {
          if (!entry.proves_itself()) Fail("an entry is whole [T1]");
          const uint64_t key = std::stoull(std::string(entry.key()));
          if (key < kStable) seen[key] = true;
        });
      } while (cursor != 0);
      for (const bool there : seen)
        if (!there) Fail("a scan visits what is there throughout [T6]");
    }
  }
  void Run(std::vector<std::thread> threads) {
    std::this_thread::sleep_for(kFor);
    over_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    table_.CheckInvariants();
    EXPECT_EQ(table_.size(), inserted_ - taken_)
        << "each insertion and each removal has one winner";
    EXPECT_EQ(failures_.load(), 0) << what_;
    EXPECT_GT(inserted_, kStable) << "writers wrote";
  }

 private:
  void Put(uint64_t key) {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    ++version_;
    auto* fresh = new PlainEntry(MixedHash(key), std::to_string(key), version_,
                                 static_cast<int64_t>(version_));
    PlainEntry* old = table_.Put(MixedHash(key), fresh);
    if (old == nullptr) {
      ++inserted_;
    } else {
      Retire(old, &PlainEntry::DestroyRetired);
    }
  }
  void Take(uint64_t key) {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    PlainEntry* old = table_.Take(MixedHash(key), std::to_string(key));
    if (old == nullptr) return;
    ++taken_;
    Retire(old, &PlainEntry::DestroyRetired);
  }
  // Expires the oldest few keys, as the sweeper does; stable ones are passed over.
  void Sweep() {
    const EpochGuard guard;
    const MutexLock lock(mutex_);
    std::vector<PlainEntry*> due;
    const auto now_ms = static_cast<int64_t>(version_) - 3 * static_cast<int64_t>(kKeys);
    table_.Due(now_ms, &sweep_position_, 4, due);
    for (PlainEntry* entry : due) {
      if (std::stoull(std::string(entry->key())) < kStable) continue;
      if (table_.Take(entry->hash(), entry->key()) != entry) Fail("what is due is there");
      ++taken_;
      Retire(entry, &PlainEntry::DestroyRetired);
    }
  }
  void Fail(const char* what) {
    if (failures_.fetch_add(1) == 0) what_ = what;
  }

  Mutex mutex_;
  BasicTable<PlainEntry, RealSync> table_;
  uint64_t version_ = 0;  // these under mutex_
  size_t inserted_ = 0, taken_ = 0;
  uint64_t sweep_position_ = 0;
  std::atomic<bool> over_{false};
  std::atomic<int> failures_{0};
  const char* what_ = "";
};

TEST(TableStressT2, ReadersSeeEveryStableKeyWhileOneWriterFillsAndEmpties) {
  Stress stress;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { stress.Writer(1); });
  threads.emplace_back([&] { stress.Reader(2); });
  threads.emplace_back([&] { stress.Reader(3); });
  stress.Run(std::move(threads));
  DrainForTest();
}

TEST(TableStressT6, ScannersAndTwoWriters) {
  Stress stress;
  std::vector<std::thread> threads;
  threads.emplace_back([&] { stress.Writer(4); });
  threads.emplace_back([&] { stress.Writer(5); });
  threads.emplace_back([&] { stress.Reader(6); });
  threads.emplace_back([&] { stress.Scanner(); });
  stress.Run(std::move(threads));
  DrainForTest();
}

TEST(TableStressT4, NothingIsLeftWhenTheThreadsHaveEnded) {
  const int64_t living = PlainEntry::living.load();
  {
    Stress stress;
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 3; ++t) threads.emplace_back([&, t] { stress.Writer(10 + t); });
    stress.Run(std::move(threads));
  }
  DrainForTest();
  EXPECT_EQ(PlainEntry::living.load(), living);
}

}  // namespace
}  // namespace idemd::storage
