// What a unit remembers of a lookup under its locks.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "storage/store.h"

namespace idemd::storage {
namespace {

class FoundTest : public ::testing::Test {
 protected:
  void Set(absl::string_view key, absl::string_view value, int64_t deadline_ms = kNoDeadline) {
    Unit unit(store_);
    const HashedKey k(key);
    unit.Lock(k);
    unit.SetString(0, k, value, deadline_ms);
  }

  FakeClock clock_;
  MemoryLog log_;
  Store store_{clock_, log_};
};

// Not beyond a change, and not for another key whose text is in the same place.
TEST_F(FoundTest, AUnitOfManyOperationsAgreesWithAPlainMap) {
  const char* text = std::getenv("IDEMD_SEED");
  const unsigned seed = text != nullptr ? static_cast<unsigned>(std::atoi(text)) : std::random_device{}();
  SCOPED_TRACE(absl::StrCat("IDEMD_SEED=", seed));
  std::mt19937 random(seed);
  std::map<std::string, std::string> model;
  char room[64];
  for (int round = 0; round < 300; ++round) {
    Unit unit(store_);
    unit.LockAll();
    for (int step = 0; step < 200; ++step) {
      const auto number = static_cast<uint32_t>(random() % 40);
      const std::string uuid = absl::StrCat(absl::Hex(number, absl::kZeroPad8), "-0000-4000-8000-0123456789ab");
      const std::string name = number % 2 == 0 ? uuid : absl::StrCat("plain-key-of-36-bytes-", absl::Dec(number, absl::kZeroPad14));
      name.copy(room, name.size());
      const HashedKey key(absl::string_view(room, name.size()));
      std::string scratch;
      if (random() % 2 == 0) {
        const KeyView view = unit.Find(0, key);
        ASSERT_EQ(static_cast<bool>(view), model.count(name) == 1) << name;
        if (view) {
          ASSERT_EQ(StringValue(view, scratch), model[name]);
        }
      }
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(unit.Remove(0, key), model.erase(name) == 1) << name;
          break;
        case 1:
          model[name] = random() % 2 == 0 ? "1" : std::string(random() % 60 + 2, 'v');
          unit.SetString(0, key, model[name], random() % 2 == 0 ? kNoDeadline : clock_.NowMs() + 3'600'000);
          break;
        case 2:
          ASSERT_EQ(unit.SetDeadline(0, key, clock_.NowMs() + 1 + static_cast<int64_t>(random() % 1'000'000'000)), model.count(name) == 1) << name;
          break;
        default:
          break;
      }
    }
  }
  EXPECT_EQ(Unit(store_).Size(0), model.size());
  store_.CheckInvariants();
}

// Nor one that has expired and stays for now.
TEST_F(FoundTest, AKeyThatStaysThoughItHasExpiredIsNotTakenForAnother) {
  Set("there", "value");
  Set("lapsed", "old", clock_.NowMs() + 10);
  clock_.AdvanceMs(20);
  store_.SetFrozen(true);
  Unit unit(store_);
  unit.LockAll();
  const HashedKey there("there"), lapsed("lapsed");
  EXPECT_TRUE(unit.Find(0, there));
  EXPECT_FALSE(unit.Find(0, lapsed));
  EXPECT_EQ(unit.Find(0, there).bytes, "value");
  unit.SetString(0, lapsed, "new", kNoDeadline);
  EXPECT_TRUE(unit.Remove(0, there));
  EXPECT_EQ(unit.Find(0, lapsed).bytes, "new");
  store_.SetFrozen(false);
}

}  // namespace
}  // namespace idemd::storage
