// What the process really holds: resident memory follows the counts up, and comes down after
// deletes.
//
// Each test's body runs in a process of its own, whose memory nothing else has touched.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <vector>

#include "storage/memory/slab_heap.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

#ifndef IDEMD_SANITIZED

struct Object {
  void* at = nullptr;
  uint32_t bytes = 0;
};

class Process {
 public:
  explicit Process(uint64_t seed) : random_(seed) {}

  static double ResidentMb() {
    uint64_t total = 0;
    uint64_t resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
  }
  double LiveMb() const { return static_cast<double>(heap_->live_bytes()) / (1 << 20); }
  void Expect(bool holds, const char* what, double a, double b) {
    std::fprintf(stderr, "%s: %.1f, %.1f MiB%s\n", what, a, b, holds ? "" : " FAILED");
    failed_ |= !holds;
  }
  [[noreturn]] void Exit() const {
    std::fflush(stderr);
    std::_Exit(failed_ ? 1 : 0);
  }

  Object Make(uint32_t bytes) {
    const Object object{heap_->Allocate(bytes), bytes};
    std::memset(object.at, 1, bytes);
    return object;
  }
  uint32_t Mixed() { return 24 + static_cast<uint32_t>(random_() % 577); }
  // As a server's tick does while commands come in.
  void Tick() { pool_.Tend(now_ += std::chrono::milliseconds(100)); }
  void TickForSeconds(int seconds) {
    for (int i = 0; i < 10 * seconds; ++i) Tick();
  }

  void Fill(const char* what, uint32_t bytes) {
    std::vector<Object> objects(1'500'000, Object{nullptr, 1});  // touched before the first look
    const double before = ResidentMb();
    for (size_t i = 0; i < objects.size(); ++i) {
      objects[i] = Make(bytes != 0 ? bytes : Mixed());
      if (i % 100'000 == 0) Tick();
    }
    TickForSeconds(3);  // spares go
    const double grown = ResidentMb() - before;
    Expect(grown < LiveMb() * 1.05 && grown > LiveMb() * 0.95, what, grown, LiveMb());
  }

  void DeleteNineTenths() {
    std::vector<Object> objects(2'000'000, Object{nullptr, 1});
    for (size_t i = 0; i < objects.size(); ++i) {
      objects[i] = Make(Mixed());
      if (i % 100'000 == 0) Tick();
    }
    TickForSeconds(3);
    const double peak = ResidentMb();
    const uint64_t peak_mapped = pool_.status().mapped_bytes;
    const uint64_t peak_live = heap_->live_bytes();
    std::shuffle(objects.begin(), objects.end(), random_);
    for (size_t i = objects.size() / 10; i < objects.size(); ++i)
      SlabHeap::Free(objects[i].at, objects[i].bytes);
    objects.resize(objects.size() / 10);
    heap_->Drain();
    int rounds = 0;
    for (; heap_->StartEvacuation(); ++rounds) {
      for (Object& object : objects) {
        if (!SlabHeap::Leaving(object.at, object.bytes)) continue;
        const Object to = Make(object.bytes);
        std::memcpy(to.at, object.at, object.bytes);
        SlabHeap::Free(object.at, object.bytes);
        object = to;
      }
      heap_->Drain();
      heap_->EndEvacuation();
      Tick();
    }
    TickForSeconds(4);
    heap_->CheckInvariants();
    pool_.CheckInvariants();
    std::fprintf(stderr, "%d rounds of evacuation\n", rounds);
    Expect(ResidentMb() < peak * 0.30, "after deleting 90 %, of the peak", ResidentMb(), peak);

    const uint64_t freed = peak_live - heap_->live_bytes();
    uint64_t reused = 0;
    while (reused < freed * 8 / 10) {
      Make(1000);
      reused += SlabHeap::ClassBytes(1000);
    }
    // Spares that were touched ahead are free memory, not growth: none is made here, no tick
    // passes.
    Expect(pool_.status().mapped_bytes <= peak_mapped,
           "80 % used for another size: mapped, of the peak",
           static_cast<double>(pool_.status().mapped_bytes) / (1 << 20),
           static_cast<double>(peak_mapped) / (1 << 20));
    Expect(ResidentMb() <= peak, "and resident, of the peak", ResidentMb(), peak);
  }

 private:
  PagePool pool_;
  SlabHeap* const heap_ = SlabHeap::Make(pool_);  // the process ends with it
  std::mt19937_64 random_;
  PagePool::Time now_{std::chrono::hours(1)};
  bool failed_ = false;
};

class ResidentDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }  // runs the program again, fresh
  const uint64_t seed_ = TestSeed();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, SeedNote(seed_)};
};

TEST_F(ResidentDeathTest, ResidentMemoryGrowsByWhatIsLiveWhenAllHaveOneSize) {
  EXPECT_EXIT(
      {
        Process process(seed_);
        process.Fill("objects of 72 bytes: grown, live", 72);
        process.Exit();
      },
      ::testing::ExitedWithCode(0), "live");
}

TEST_F(ResidentDeathTest, ResidentMemoryGrowsByWhatIsLiveWhenSizesAreMixed) {
  EXPECT_EXIT(
      {
        Process process(seed_);
        process.Fill("mixed objects: grown, live", 0);
        process.Exit();
      },
      ::testing::ExitedWithCode(0), "live");
}

TEST_F(ResidentDeathTest, AfterDeletingMostAndMovingTheRestMemoryGoesBackAndServesOtherSizes) {
  EXPECT_EXIT(
      {
        Process process(seed_);
        process.DeleteNineTenths();
        process.Exit();
      },
      ::testing::ExitedWithCode(0), "peak");
}

#endif  // IDEMD_SANITIZED

}  // namespace
}  // namespace idemd::storage
