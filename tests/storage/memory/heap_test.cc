// Heaps on one thread: sizes, contents, counts, compaction; slabs and the malloc stand-in alike.
#include "storage/memory/heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <unordered_set>
#include <vector>

#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

constexpr size_t kLargest = kSlabBytesMax;

struct Object {
  unsigned char* at;
  size_t bytes;
  uint64_t id;
};

void Write(const Object& object) {
  for (size_t i = 0; i < object.bytes; ++i)
    object.at[i] = static_cast<unsigned char>(object.id * 31 + i);
}

bool Holds(const Object& object) {
  for (size_t i = 0; i < object.bytes; ++i)
    if (object.at[i] != static_cast<unsigned char>(object.id * 31 + i)) return false;
  return true;
}

template <class AnyHeap>
class HeapTest : public ::testing::Test {
 protected:
  ~HeapTest() override {
    if (heap_ != nullptr) heap_->Abandon();
  }
  Object Make(size_t bytes) {
    const Object object{static_cast<unsigned char*>(heap_->Allocate(bytes)), bytes, ++ids_};
    Write(object);
    return object;
  }
  void Drop(const Object& object) { AnyHeap::Free(object.at, object.bytes); }
  // The objects that lie in leaving blocks move; returns how many.
  size_t Move(std::vector<Object>& objects) {
    size_t moved = 0;
    for (Object& object : objects) {
      if (!AnyHeap::Leaving(object.at, object.bytes)) continue;
      auto* const to = static_cast<unsigned char*>(heap_->Allocate(object.bytes));
      EXPECT_FALSE(AnyHeap::Leaving(to, object.bytes)) << "[H4]";
      std::memcpy(to, object.at, object.bytes);
      AnyHeap::Free(std::exchange(object.at, to), object.bytes);
      ++moved;
    }
    return moved;
  }

  PagePool pool_;
  AnyHeap* heap_ = AnyHeap::Make(pool_);
  uint64_t ids_ = 0;
};

using BothHeaps = ::testing::Types<SlabHeap, MallocHeap>;
TYPED_TEST_SUITE(HeapTest, BothHeaps);

TYPED_TEST(HeapTest, ObjectsOfEverySizeAreEightAlignedAndKeepWhatIsWritten) {
  std::vector<Object> objects;
  for (size_t bytes = 0; bytes <= kLargest + 3000; bytes += bytes < 1100 ? 1 : 97)
    for (int i = 0; i < 3; ++i) objects.push_back(this->Make(bytes));
  uint64_t sum = 0;
  for (const Object& object : objects) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(object.at) % 8, 0u);
    EXPECT_GE(TypeParam::ClassBytes(object.bytes), object.bytes);
    ASSERT_TRUE(Holds(object)) << object.bytes << " [H1]";
    sum += TypeParam::ClassBytes(object.bytes);
  }
  EXPECT_EQ(this->heap_->live_bytes(), sum);
  this->heap_->CheckInvariants();
  for (const Object& object : objects) this->Drop(object);
  EXPECT_TRUE(this->heap_->Drain());
  EXPECT_EQ(this->heap_->live_bytes(), 0u);
  EXPECT_EQ(this->heap_->block_bytes(), 0u);
  EXPECT_EQ(this->pool_.status().in_use_bytes, 0u);
}

TYPED_TEST(HeapTest, RandomAllocationsFreesMovesAndDrainsKeepEveryObjectWhole) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  std::vector<Object> objects;
  std::map<unsigned char*, size_t> places;
  size_t moved = 0;
  // A few sizes most of the time, so that blocks fill; now and then any.
  const auto size = [&]() -> size_t {
    static constexpr size_t kUsual[] = {24, 40, 72, 250, 600, 1500};
    return random() % 8 != 0 ? kUsual[random() % std::size(kUsual)] : random() % (kLargest + 4000);
  };
  for (int step = 0; step < 60'000; ++step) {
    const bool fills = step / 10'000 % 2 == 0;
    if (random() % 8 < (fills ? 6u : 1u) || objects.empty()) {
      const Object object = this->Make(size());
      const auto after = places.lower_bound(object.at);
      if (after != places.end()) {
        ASSERT_LE(object.at + object.bytes, after->first) << "[H1]";
      }
      if (after != places.begin()) {
        const auto before = std::prev(after);
        ASSERT_LE(before->first + before->second, object.at) << "[H1]";
      }
      places[object.at] = std::max<size_t>(object.bytes, 1);
      objects.push_back(object);
    } else {
      std::swap(objects[random() % objects.size()], objects.back());
      ASSERT_TRUE(Holds(objects.back())) << "[H1]";
      places.erase(objects.back().at);
      this->Drop(objects.back());
      objects.pop_back();
    }
    if (random() % 512 == 0) this->heap_->Drain(1 + random() % 20);
    if (random() % 1024 == 0 && this->heap_->StartEvacuation()) {
      const size_t now = this->Move(objects);
      moved += now;
      if (now != 0) {
        places.clear();
        for (const Object& object : objects) places[object.at] = std::max<size_t>(object.bytes, 1);
      }
      if (random() % 2 == 0) this->heap_->EndEvacuation();
    }
    if (random() % 1024 == 0) {
      this->heap_->CheckInvariants();
      this->pool_.CheckInvariants();
    }
  }
  EXPECT_GT(moved, 0u);
  uint64_t live = 0;
  for (const Object& object : objects) {
    ASSERT_TRUE(Holds(object));
    live += TypeParam::ClassBytes(object.bytes);
  }
  EXPECT_TRUE(this->heap_->Drain());
  EXPECT_EQ(this->heap_->live_bytes(), live);
  for (const Object& object : objects) this->Drop(object);
  EXPECT_TRUE(this->heap_->Drain());
  this->heap_->CheckInvariants();
  EXPECT_EQ(this->heap_->live_bytes(), 0u);
  EXPECT_EQ(this->pool_.status().in_use_bytes, 0u);
}

TYPED_TEST(HeapTest, AnAbandonedHeapLivesUntilItsLastObjectIsFreed) {
  std::vector<Object> objects;
  for (int i = 0; i < 3000; ++i)
    objects.push_back(this->Make(40 + static_cast<size_t>(i) % 3 * 100));
  objects.push_back(this->Make(100'000));
  for (int i = 0; i < 500; ++i) {  // some of them not drained yet
    this->Drop(objects.back());
    objects.pop_back();
  }
  std::exchange(this->heap_, nullptr)->Abandon();
  for (const Object& object : objects) {
    ASSERT_TRUE(Holds(object));
    this->Drop(object);
  }
  EXPECT_EQ(this->pool_.status().in_use_bytes, 0u) << "it was deleted, and gave its blocks back";
}

TYPED_TEST(HeapTest, AnAbandonedHeapWithoutObjectsIsDeletedAtOnce) {
  this->Drop(this->Make(100));
  std::exchange(this->heap_, nullptr)->Abandon();
  EXPECT_EQ(this->pool_.status().in_use_bytes, 0u);
}

TYPED_TEST(HeapTest, EvacuationNeedsAQuarterFree) {
  std::vector<Object> objects;
  for (int i = 0; i < 20'000; ++i) objects.push_back(this->Make(100));
  EXPECT_FALSE(this->heap_->StartEvacuation());
  for (size_t i = 0; i < objects.size(); i += 6) this->Drop(objects[i]);
  this->heap_->Drain();
  EXPECT_FALSE(this->heap_->StartEvacuation());
  for (size_t i = 0; i < objects.size(); i += 2)
    if (i % 6 != 0) this->Drop(objects[i]);
  this->heap_->Drain();
  EXPECT_TRUE(this->heap_->StartEvacuation());
  this->heap_->EndEvacuation();
  bool any = false;
  for (size_t i = 1; i < objects.size(); i += 2) {
    any |= TypeParam::Leaving(objects[i].at, 100);
    this->Drop(objects[i]);
  }
  EXPECT_FALSE(any) << "after the end nothing is leaving";
}

using SlabHeapTest = HeapTest<SlabHeap>;

TEST_F(SlabHeapTest, EvacuationEmptiesAsManyBlocksAsTheOthersHaveRoomFor) {
  std::vector<Object> objects;
  for (int i = 0; i < 50'000; ++i) objects.push_back(Make(72));
  const uint64_t full = heap_->block_bytes();
  std::vector<Object> kept;
  for (size_t i = 0; i < objects.size(); ++i)
    i % 10 == 0 ? kept.push_back(objects[i]) : Drop(objects[i]);
  heap_->Drain();
  EXPECT_EQ(heap_->block_bytes(), full) << "each block has kept some";
  ASSERT_TRUE(heap_->StartEvacuation());
  std::vector<Object> old;
  for (Object& object : kept) {
    if (!SlabHeap::Leaving(object.at, object.bytes)) continue;
    old.push_back(object);
    object.at = static_cast<unsigned char*>(heap_->Allocate(object.bytes));
    Write(object);
  }
  EXPECT_EQ(heap_->block_bytes(), full) << "there was room for all of them before any was freed";
  for (const Object& object : old) Drop(object);
  heap_->Drain();
  heap_->EndEvacuation();
  heap_->CheckInvariants();
  EXPECT_LE(heap_->block_bytes(), full / 10 + (64 << 10));
  for (const Object& object : kept) {
    ASSERT_TRUE(Holds(object));
    Drop(object);
  }
}

TEST_F(SlabHeapTest, NewObjectsGoToTheFullestBlockThatHasRoom) {
  constexpr size_t kBytes = 64;
  const uint32_t capacity = SizeClassAt(SizeClassOf(kBytes)).capacity;
  std::vector<Object> objects;
  for (uint32_t i = 0; i < 3 * capacity; ++i) objects.push_back(Make(kBytes));
  for (uint32_t i = 0; i < capacity - 5; ++i) Drop(objects[i]);  // the first one is nearly empty
  for (uint32_t i = 0; i < 5; ++i) Drop(objects[capacity + i]);  // the second one nearly full
  heap_->Drain();
  const auto block = [](const Object& o) {
    return reinterpret_cast<uintptr_t>(o.at) / BlockBytesFor(kBytes);
  };
  std::vector<Object> fresh;
  for (int i = 0; i < 5; ++i) fresh.push_back(Make(kBytes));
  for (const Object& object : fresh) EXPECT_EQ(block(object), block(objects[capacity]));
  for (const Object& object : fresh) Drop(object);
  for (uint32_t i = capacity - 5; i < capacity; ++i) Drop(objects[i]);
  for (uint32_t i = capacity + 5; i < 3 * capacity; ++i) Drop(objects[i]);
}

TEST_F(SlabHeapTest, OneAllocationTakesInOnlyAFewBlocks) {
  std::vector<Object> objects;
  for (int i = 0; i < 100'000; ++i) objects.push_back(Make(104));
  for (const Object& object : objects) Drop(object);
  const uint64_t before = heap_->block_bytes();
  const Object other = Make(3000);
  EXPECT_GE(heap_->block_bytes(), before - SlabHeap::kDrainBlocks * (16 << 10));
  EXPECT_LT(heap_->block_bytes(), before);
  EXPECT_FALSE(heap_->Drain(1));
  EXPECT_TRUE(heap_->Drain());
  EXPECT_EQ(heap_->block_bytes(), 64u << 10);
  Drop(other);
}

TEST_F(SlabHeapTest, AnObjectFreedTwiceStopsTheProcessWhenItIsTakenIn) {
  EXPECT_DEATH(
      {
        const Object object = Make(48);
        Drop(object);
        Drop(object);
        heap_->Drain();
      },
      "an object is freed once");
}

TEST(SizeClassesTest, LittleIsLostInAnObjectAndAtTheEndOfABlock) {
  for (uint32_t i = 0; i < kSizeClasses; ++i) {
    const SizeClassSpec& spec = SizeClassAt(i);
    EXPECT_EQ(spec.bytes % 8, 0u);
    EXPECT_LE(kBlockHeaderBytes + spec.capacity * spec.bytes, spec.block_bytes);
    const size_t lost = spec.block_bytes - kBlockHeaderBytes - spec.capacity * size_t{spec.bytes};
    EXPECT_LE(lost * 100, spec.block_bytes * 3) << spec.bytes;
    EXPECT_EQ(BlockBytesFor(spec.bytes), spec.block_bytes);
    EXPECT_EQ(SizeClassOf(spec.bytes), i);
    if (i > 0) {
      EXPECT_EQ(SizeClassOf(SizeClassAt(i - 1).bytes + 1), i);
    }
  }
  for (size_t bytes = 129; bytes <= kSlabBytesMax; ++bytes)
    EXPECT_LE((ClassBytes(bytes) - bytes) * 8, bytes + 64) << "an eighth and a word at most";
  EXPECT_GE(ClassBytes(kSlabBytesMax + 1), kSlabBytesMax + 1 + kLargePrefixBytes);
}

}  // namespace
}  // namespace idemd::storage
