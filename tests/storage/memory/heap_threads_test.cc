// Heaps with threads: others free while the holder allocates, drains, moves, abandons.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "storage/memory/heap.h"
#include "storage/sync/mutex.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

constexpr size_t kSizes[] = {16, 24, 72, 136, 600, 2000, 9000};

struct Object {
  uint64_t* at;
  size_t bytes;
  uint64_t mark;
  void Write() const {
    at[0] = mark;
    at[1] = ~mark;
    at[bytes / 8 - 1] ^= 0;  // the end is there too
    if (bytes > 16) at[bytes / 8 - 1] = mark * 3;
  }
  bool Holds() const {
    return at[0] == mark && at[1] == ~mark && (bytes == 16 || at[bytes / 8 - 1] == mark * 3);
  }
};

// Objects on their way from who allocated them to who frees them.
class Mailbox {
 public:
  void Put(std::vector<Object> objects) {
    const MutexLock lock(mutex_);
    for (const Object& object : objects) objects_.push_back(object);
  }
  std::vector<Object> TakeAll() {
    const MutexLock lock(mutex_);
    return std::exchange(objects_, {});
  }

 private:
  Mutex mutex_;
  std::vector<Object> objects_ ABSL_GUARDED_BY(mutex_);
};

template <class AnyHeap>
class HeapThreadsTest : public ::testing::Test {};
using BothHeaps = ::testing::Types<SlabHeap, MallocHeap>;
TYPED_TEST_SUITE(HeapThreadsTest, BothHeaps);

// Neighbours in a block go to different threads, so that these push onto the same lists at once.
TYPED_TEST(HeapThreadsTest, SeveralThreadsFreeIntoOneHeapWhileItsOwnerAllocates) {
  constexpr uint32_t kFreers = 3;
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  PagePool pool;
  TypeParam* const heap = TypeParam::Make(pool);
  std::array<Mailbox, kFreers> mail;
  std::atomic<bool> over{false};
  std::atomic<bool> wrong{false};
  std::vector<std::thread> freers;
  for (uint32_t f = 0; f < kFreers; ++f) {
    freers.emplace_back([&, f] {
      for (bool last = false; !last;) {
        last = over.load();
        for (const Object& object : mail[f].TakeAll()) {
          if (!object.Holds()) wrong = true;
          TypeParam::Free(object.at, object.bytes);
        }
      }
    });
  }
  std::mt19937_64 random(seed);
  std::vector<Object> kept;
  for (int round = 0; round < 150; ++round) {
    std::array<std::vector<Object>, kFreers> out;
    const size_t bytes = kSizes[random() % std::size(kSizes)];
    const size_t count = bytes > 8000 ? 20 : 600;
    for (size_t i = 0; i < count; ++i) {
      const Object object{static_cast<uint64_t*>(heap->Allocate(bytes)), bytes, random()};
      object.Write();
      random() % 16 == 0 ? kept.push_back(object) : out[i % kFreers].push_back(object);
    }
    for (uint32_t f = 0; f < kFreers; ++f) mail[f].Put(std::move(out[f]));
    if (round % 8 == 0) heap->Drain(random() % 64);
    if (round % 16 == 0 && heap->StartEvacuation()) {
      for (Object& object : kept) {
        if (!TypeParam::Leaving(object.at, object.bytes)) continue;
        Object to = object;
        to.at = static_cast<uint64_t*>(heap->Allocate(object.bytes));
        to.Write();
        mail[random() % kFreers].Put({object});
        object = to;
      }
      if (round % 32 == 0) heap->EndEvacuation();
    }
  }
  over = true;
  for (std::thread& freer : freers) freer.join();
  EXPECT_FALSE(wrong) << "[H1]";
  heap->Drain();
  heap->CheckInvariants();
  uint64_t live = 0;
  for (const Object& object : kept) {
    EXPECT_TRUE(object.Holds()) << "[H1]";
    live += TypeParam::ClassBytes(object.bytes);
  }
  EXPECT_EQ(heap->live_bytes(), live) << "each free was counted once [H2]";
  for (const Object& object : kept) TypeParam::Free(object.at, object.bytes);
  heap->Drain();
  EXPECT_EQ(heap->live_bytes(), 0u);
  EXPECT_EQ(pool.status().in_use_bytes, 0u) << "[H3]";
  heap->Abandon();
}

// The two steps of a first free, exchange and notice, against Drain(): every object is a first one.
TYPED_TEST(HeapThreadsTest, ObjectsFreedOneByOneAreAllTakenIn) {
  PagePool pool;
  TypeParam* const heap = TypeParam::Make(pool);
  constexpr int kRounds = 20'000;
  std::array<std::atomic<uint64_t*>, 2> hands{};
  const auto freer = [&](size_t hand) {
    for (int i = 0; i < kRounds; ++i) {
      uint64_t* at = nullptr;
      while ((at = hands[hand].exchange(nullptr)) == nullptr) std::this_thread::yield();
      TypeParam::Free(at, 80);
    }
  };
  std::thread a(freer, 0);
  std::thread b(freer, 1);
  for (int i = 0; i < kRounds; ++i) {
    for (auto& hand : hands) {
      auto* const at = static_cast<uint64_t*>(heap->Allocate(80));
      at[9] = 1;
      while (hand.load() != nullptr) {
        heap->Drain();
        std::this_thread::yield();
      }
      hand.store(at);
    }
  }
  a.join();
  b.join();
  heap->Drain();
  EXPECT_EQ(heap->live_bytes(), 0u) << "[H2]";
  EXPECT_EQ(pool.status().in_use_bytes, 0u);
  heap->Abandon();
}

TYPED_TEST(HeapThreadsTest, AHeapAbandonedWhileOthersFreeIsDeletedByTheLast) {
  PagePool pool;
  for (int round = 0; round < 300; ++round) {
    TypeParam* const heap = TypeParam::Make(pool);
    std::array<std::vector<Object>, 3> parts;
    for (uint32_t i = 0; i < 300; ++i) {
      const size_t bytes = kSizes[i % 3];
      const Object object{static_cast<uint64_t*>(heap->Allocate(bytes)), bytes, i};
      object.Write();
      parts[i / 3 % 3].push_back(object);
    }
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ++ready;
      while (ready < 4) std::this_thread::yield();
    };
    std::vector<std::thread> threads;
    for (const auto& part : parts) {
      threads.emplace_back([&] {
        meet();
        for (const Object& object : part) TypeParam::Free(object.at, object.bytes);
      });
    }
    meet();
    if (round % 2 == 0) heap->Drain();
    heap->Abandon();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(pool.status().in_use_bytes, 0u) << "round " << round;
  }
}

// As in the server: whoever holds the lock allocates; the object is freed later, outside the lock.
TYPED_TEST(HeapThreadsTest, TheHolderMayBeAnotherThreadEachTime) {
  PagePool pool;
  TypeParam* const heap = TypeParam::Make(pool);
  Mutex mutex;
  std::atomic<bool> wrong{false};
  const auto work = [&](uint64_t own_seed) {
    std::mt19937_64 random(own_seed);
    std::vector<Object> objects;
    for (int i = 0; i < 20'000; ++i) {
      if (objects.size() < 200 && random() % 2 == 0) {
        const size_t bytes = kSizes[random() % 4];
        const MutexLock lock(mutex);
        objects.push_back({static_cast<uint64_t*>(heap->Allocate(bytes)), bytes, random()});
        objects.back().Write();
      } else if (!objects.empty()) {
        std::swap(objects[random() % objects.size()], objects.back());
        if (!objects.back().Holds()) wrong = true;
        TypeParam::Free(objects.back().at, objects.back().bytes);
        objects.pop_back();
      }
    }
    for (const Object& object : objects) TypeParam::Free(object.at, object.bytes);
  };
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::thread a(work, seed);
  std::thread b(work, seed + 1);
  a.join();
  b.join();
  EXPECT_FALSE(wrong) << "[H1]";
  heap->Drain();
  heap->CheckInvariants();
  EXPECT_EQ(heap->live_bytes(), 0u);
  heap->Abandon();
}

}  // namespace
}  // namespace idemd::storage
