// Shapes: registered when common, told apart by all that they consist of, the same for every
// thread.
#include "storage/key/shapes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "storage/key/hashed_key.h"
#include "tests/storage/key/sample_keys.h"
#include "tests/storage/key/threads_agree.h"

namespace idemd::storage {
namespace {

constexpr int kEnough = Sightings::kEnough;
constexpr size_t kFromTheStart = 4;
constexpr size_t kFree = kShapeIdMax - kShapeIdMin + 1 - kFromTheStart;
constexpr TailKind kSixteenBytes[] = {TailKind::kUuid, TailKind::kHex32, TailKind::kBase64Url22};

struct Parts {
  std::string prefix;
  TailKind kind;
  std::string value;

  bool operator<(const Parts& other) const {
    return std::tie(prefix, kind, value) < std::tie(other.prefix, other.kind, other.value);
  }
};

// Combinations that share most of their parts.
Parts Numbered(size_t number) {
  return {"t" + std::to_string(number / 30) + ":", kSixteenBytes[number % 3],
          std::string(number / 3 % 10, 'v')};
}

uint8_t Id(Shapes& shapes, const Parts& parts) {
  return shapes.Id(parts.prefix, parts.kind, parts.value);
}
uint8_t Find(const Shapes& shapes, const Parts& parts) {
  return shapes.Find(parts.prefix, parts.kind, parts.value);
}
uint8_t SeeOften(Shapes& shapes, const Parts& parts) {
  uint8_t id = 0;
  for (int i = 0; i < kEnough; ++i) id = Id(shapes, parts);
  return id;
}
bool Is(const Shape& shape, const Parts& parts) {
  return shape.prefix == parts.prefix && shape.kind == parts.kind && shape.value == parts.value &&
         shape.prefix_hash == PrefixHash(parts.prefix);
}

TEST(Shapes, UsefulOnesAreThereFromTheStart) {
  Shapes shapes;
  std::set<uint8_t> ids;
  for (const char* value : {"1", "0", "", "OK"}) {
    const uint8_t id = shapes.Id("", TailKind::kUuid, value);
    EXPECT_GE(id, kShapeIdMin) << value;
    EXPECT_TRUE(Is(shapes.At(id), {"", TailKind::kUuid, value}));
    EXPECT_EQ(shapes.Find({}, TailKind::kUuid, value), id);
    ids.insert(id);
  }
  EXPECT_EQ(ids.size(), kFromTheStart);
  EXPECT_EQ(shapes.Find("", TailKind::kUuid, "2"), 0);
  EXPECT_EQ(shapes.Find("", TailKind::kHex32, "1"), 0);
  EXPECT_EQ(shapes.Find("k:", TailKind::kUuid, "1"), 0);
}

TEST(Shapes, TheSixtyFourthSightingRegisters) {
  Shapes shapes;
  const Parts parts{"login:", TailKind::kUuid, "done"};
  for (int i = 1; i < 64; ++i) {
    EXPECT_EQ(Id(shapes, parts), 0) << i;
    EXPECT_EQ(Find(shapes, parts), 0) << i;
  }
  const uint8_t id = Id(shapes, parts);
  EXPECT_EQ(id, kShapeIdMin + kFromTheStart);
  EXPECT_EQ(Id(shapes, parts), id);
  EXPECT_EQ(Find(shapes, parts), id);
  EXPECT_TRUE(Is(shapes.At(id), parts));
}

TEST(Shapes, LookingIsNoSighting) {
  Shapes shapes;
  const Parts parts{"login:", TailKind::kUuid, "done"};
  for (int i = 0; i < 10 * kEnough; ++i) EXPECT_EQ(Find(shapes, parts), 0);
  EXPECT_EQ(Id(shapes, parts), 0);
}

TEST(Shapes, OnlyShortValuesAndPrefixesOfSixteenByteTailsHaveOne) {
  Shapes shapes;
  const std::string prefix(64, 'p');
  const std::string value(15, 'v');
  EXPECT_NE(SeeOften(shapes, {prefix, TailKind::kHex32, value}), 0);
  EXPECT_EQ(SeeOften(shapes, {prefix + "p", TailKind::kHex32, value}), 0);
  EXPECT_EQ(SeeOften(shapes, {prefix, TailKind::kHex32, value + "v"}), 0);
  EXPECT_NE(SeeOften(shapes, {prefix, TailKind::kToken, value}), 0);
  EXPECT_EQ(SeeOften(shapes, {prefix, TailKind::kNone, value}), 0);
}

TEST(Shapes, StatesOfTheNativeCommandsHaveNone) {
  Shapes shapes;
  EXPECT_EQ(SeeOften(shapes, {"", TailKind::kUuid, "idem/"}), 0);
  EXPECT_EQ(SeeOften(shapes, {"", TailKind::kUuid, "idem/1 s=done"}), 0);
  EXPECT_NE(SeeOften(shapes, {"", TailKind::kUuid, "idem"}), 0);
  EXPECT_NE(SeeOften(shapes, {"", TailKind::kUuid, "Idem/1"}), 0);
}

TEST(Shapes, ValuesOfAllLengthsAndBytesAreToldApart) {
  Shapes shapes;
  std::map<uint8_t, std::string> given;
  for (size_t size = 0; size <= kShapeValueBytesMax; ++size) {
    std::string value(size, '\0');
    for (size_t at = 0; at <= size; ++at) {  // all zeros, then each byte in turn something else
      const uint8_t id = SeeOften(shapes, {"p:", TailKind::kUuid, value});
      ASSERT_NE(id, 0);
      EXPECT_TRUE(given.emplace(id, value).second) << testing::PrintToString(value);
      EXPECT_EQ(shapes.At(id).value, value);
      value.assign(size, '\0');
      if (at < size) value[at] = '\xff';
    }
  }
  EXPECT_EQ(given.size(), 136u);
}

TEST(Shapes, WhenTheIdsAreUsedUpThoseGivenStayAndOthersGetNone) {
  Shapes shapes;
  std::map<uint8_t, Parts> given;
  for (size_t i = 0; i < kFree; ++i) {
    const uint8_t id = SeeOften(shapes, Numbered(i));
    ASSERT_NE(id, 0);
    given[id] = Numbered(i);
  }
  EXPECT_EQ(given.size(), kFree);
  EXPECT_EQ(given.rbegin()->first, 255);
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(SeeOften(shapes, Numbered(kFree + i)), 0);
  for (const auto& [id, parts] : given) {
    EXPECT_EQ(Id(shapes, parts), id);
    EXPECT_TRUE(Is(shapes.At(id), parts));
  }
  EXPECT_NE(shapes.Id("", TailKind::kUuid, "1"), 0);
}

TEST(Shapes, AnswerAsAMapDoesThatCounts) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  std::mt19937_64 random(seed);
  Shapes shapes;
  std::map<Parts, int> sightings;
  std::map<Parts, uint8_t> ids;
  for (int i = 0; i < 60'000; ++i) {
    const Parts parts = Numbered(std::min(random() % 400, random() % 400));
    if (random() % 4 == 0) {
      EXPECT_EQ(Find(shapes, parts), ids.count(parts) != 0 ? ids[parts] : 0);
      continue;
    }
    const uint8_t id = Id(shapes, parts);
    const int seen = ++sightings[parts];
    if (ids.count(parts) != 0) {
      EXPECT_EQ(id, ids[parts]);
    } else if (id != 0) {
      EXPECT_GE(seen, kEnough);
      EXPECT_TRUE(Is(shapes.At(id), parts));
      ids[parts] = id;
    }
  }
  std::set<uint8_t> distinct;
  for (const auto& [parts, id] : ids) distinct.insert(id);
  EXPECT_EQ(distinct.size(), ids.size());
  EXPECT_GT(ids.size(), 150u);
}

TEST(Shapes, ThreadsAgreeOnEveryId) {
  Shapes shapes;
  ExpectThreadsAgreeOnEveryId(
      kFree, [&](size_t i) { return Find(shapes, Numbered(i)); },
      [&](size_t i) { return Id(shapes, Numbered(i)); },
      [&](uint8_t id, size_t i) { return Is(shapes.At(id), Numbered(i)); },
      [&](size_t i) { SeeOften(shapes, Numbered(i)); });
}

TEST(Shapes, ThreadsThatMakeTheLastSightingTogetherGetOneId) {
  constexpr size_t kThreads = 2;
  constexpr size_t kAtATime = 200;
  for (int round = 0; round < 10; ++round) {
    Shapes shapes;
    std::vector<std::vector<uint8_t>> answers(kThreads, std::vector<uint8_t>(kAtATime));
    for (size_t i = 0; i < kAtATime; ++i) {
      for (int j = 1; j < kEnough; ++j) Id(shapes, Numbered(i));
    }
    std::atomic<size_t> arrived{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (size_t i = 0; i < kAtATime; ++i) {
          arrived.fetch_add(1);  // side by side, as closely as it goes
          while (arrived.load() < (i + 1) * kThreads) std::this_thread::yield();
          answers[t][i] = Id(shapes, Numbered(i));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t i = 0; i < kAtATime; ++i) {
      for (const std::vector<uint8_t>& of_thread : answers) {
        EXPECT_TRUE(of_thread[i] == 0 || of_thread[i] == Find(shapes, Numbered(i))) << i;
      }
    }
  }
}

TEST(Shapes, TheProcessHasOneInstance) { EXPECT_EQ(&Shapes::Instance(), &Shapes::Instance()); }

}  // namespace
}  // namespace idemd::storage
