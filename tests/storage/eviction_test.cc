// Eviction: what goes at the memory limit, what never does, and what is told of it.
#include "storage/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/clock.h"
#include "storage/effect_log.h"
#include "storage/store.h"
#include "storage/token/token.h"

namespace idemd::storage {
namespace {

constexpr int64_t kStart = 1'700'000'000'000;
constexpr std::chrono::seconds kEnough{60};

class EvictionTest : public ::testing::Test {
 protected:
  void Set(const std::string& key, int64_t deadline_ms = kNoDeadline, size_t bytes = 200) {
    Unit unit(store);
    const HashedKey hashed(key);
    unit.Lock(hashed);
    unit.SetString(0, hashed, std::string(bytes, 'v'), deadline_ms);
  }
  void Reserve(const std::string& key) {
    Unit unit(store);
    const HashedKey hashed(key);
    unit.Lock(hashed);
    Record record;
    record.state = RecordState::kPending;
    record.fence = store.fences().Next();
    record.attempt = 1;
    unit.SetRecord(0, hashed, record, kStart + 1'000'000);
  }
  bool Has(const std::string& key) {
    Unit unit(store);
    return static_cast<bool>(unit.Find(0, HashedKey(key), /*touch=*/false));
  }
  uint64_t Size() {
    Unit unit(store);
    return unit.Size(0);
  }
  // How many of k0 to k199, and of k200 to k399, are gone.
  std::pair<int, int> GoneOfHalves() {
    int first = 0, second = 0;
    for (int i = 0; i < 400; ++i)
      if (!Has(absl::StrCat("k", i))) ++(i < 200 ? first : second);
    return {first, second};
  }
  // The limit lies so many bytes below what is used now.
  void LimitBelow(uint64_t bytes) { store.settings().maxmemory_bytes = store.memory_bytes() - bytes; }

  FakeClock clock{kStart};
  MemoryLog log;
  Store store{clock, log};
};

TEST_F(EvictionTest, WithoutAPolicyNothingGoes) {
  Set("a");
  LimitBelow(1);
  EXPECT_FALSE(store.MakeRoom(nullptr, kEnough).room);
  EXPECT_TRUE(Has("a"));
}

TEST_F(EvictionTest, KeysGoUntilThereIsRoomAndTheLogHearsOfIt) {
  for (int i = 0; i < 1000; ++i) Set(absl::StrCat("k", i));
  store.SetEviction(EvictionPolicy::kAllRandom, 5);
  LimitBelow(50'000);
  const size_t units = log.Units().size();
  const RoomMade made = store.MakeRoom(nullptr, kEnough);
  EXPECT_TRUE(made.room);
  EXPECT_FALSE(store.OverMemoryLimit());
  const uint64_t gone = 1000 - Size();
  EXPECT_GE(gone, 100u);
  EXPECT_LE(gone, 300u) << "no more than it takes";
  EXPECT_EQ(store.stats().Get(StorageStats::kEvicted), gone);
  EXPECT_EQ(log.Units().size() - units, gone) << "a DEL for each";
  EXPECT_GT(made.need, kNoLsn);
}

TEST_F(EvictionTest, ReservationsAndTokensStayWhateverThePolicy) {
  const TokenMint mint(TokenKey{1, 2, 3});
  char token[kTokenChars];
  ASSERT_TRUE(mint.Issue(0, "form:", kStart + 300'000, token));
  const std::string token_key = absl::StrCat("form:", absl::string_view(token, kTokenChars));
  const std::string long_prefix(300, 'p');
  ASSERT_TRUE(mint.Issue(0, long_prefix, kStart + 300'000, token));
  const std::string far_token_key = absl::StrCat(long_prefix, absl::string_view(token, kTokenChars));
  for (const EvictionPolicy policy :
       {EvictionPolicy::kAllLru, EvictionPolicy::kAllLfu, EvictionPolicy::kAllRandom, EvictionPolicy::kVolatileLru,
        EvictionPolicy::kVolatileLfu, EvictionPolicy::kVolatileRandom, EvictionPolicy::kVolatileTtl}) {
    Set(token_key, kStart + 300'000);
    Set(far_token_key, kStart + 300'000);
    Reserve("pay");
    Set("plain", kStart + 900'000);
    store.SetEviction(policy, 5);
    store.settings().maxmemory_bytes = 1;  // everything has to go
    EXPECT_FALSE(store.MakeRoom(nullptr, kEnough).room);
    EXPECT_TRUE(Has(token_key));
    EXPECT_TRUE(Has(far_token_key));
    EXPECT_TRUE(Has("pay"));
    EXPECT_FALSE(Has("plain"));
    store.settings().maxmemory_bytes = 0;
  }
}

TEST_F(EvictionTest, VolatilePoliciesLeaveKeysWithoutADeadline) {
  Set("forever");
  Set("for a while", kStart + 1000);
  store.SetEviction(EvictionPolicy::kVolatileRandom, 5);
  store.settings().maxmemory_bytes = 1;
  EXPECT_FALSE(store.MakeRoom(nullptr, kEnough).room);
  EXPECT_TRUE(Has("forever"));
  EXPECT_FALSE(Has("for a while"));
}

TEST_F(EvictionTest, TheOnePlainKeyAmongManyRecordsIsFound) {
  for (int i = 0; i < 3000; ++i) Reserve(absl::StrCat("r", i));
  Set("plain", kNoDeadline, 1000);
  store.SetEviction(EvictionPolicy::kAllLru, 1);
  LimitBelow(500);
  // A walk goes on where the last one ended, so a second call may be needed.
  RoomMade made;
  for (int i = 0; i < 5 && (made = store.MakeRoom(nullptr, kEnough), !made.room); ++i) {
  }
  EXPECT_TRUE(made.room);
  EXPECT_FALSE(Has("plain"));
  EXPECT_EQ(Size(), 3000u);
}

TEST_F(EvictionTest, TheNearestDeadlineGoesFirstWhenAllAreLookedAt) {
  for (int i = 0; i < 8; ++i) Set(absl::StrCat("k", i), kStart + 100'000 + i * 1000);
  store.SetEviction(EvictionPolicy::kVolatileTtl, 4000);  // draws: none of the eight is missed
  LimitBelow(1);
  EXPECT_TRUE(store.MakeRoom(nullptr, kEnough).room);
  EXPECT_FALSE(Has("k0"));
  EXPECT_EQ(Size(), 7u);
}

TEST_F(EvictionTest, LruKeepsWhatIsUsed) {
  for (int i = 0; i < 400; ++i) Set(absl::StrCat("k", i));
  clock.AdvanceMs(100'000);
  store.Tick();
  for (int i = 0; i < 200; ++i) {
    Unit unit(store);
    unit.Find(0, HashedKey(absl::StrCat("k", i)));
  }
  store.SetEviction(EvictionPolicy::kAllLru, 10);
  LimitBelow(20'000);
  ASSERT_TRUE(store.MakeRoom(nullptr, kEnough).room);
  const auto [used_gone, unused_gone] = GoneOfHalves();
  EXPECT_GT(unused_gone, 50);
  // Ten samples hold no unused key once in a thousand times; the pool makes it rarer.
  EXPECT_LE(used_gone, 5);
}

// Those that were used most lately are not those that are used most often.
TEST_F(EvictionTest, LfuKeepsWhatIsUsedOften) {
  store.SetEviction(EvictionPolicy::kAllLfu, 10, {0, 1});
  for (int i = 0; i < 400; ++i) Set(absl::StrCat("k", i));
  for (int i = 0; i < 400; ++i) {
    Unit unit(store);
    for (int uses = 0; uses < (i < 200 ? 20 : 1); ++uses) unit.Find(0, HashedKey(absl::StrCat("k", i)));
  }
  LimitBelow(20'000);
  ASSERT_TRUE(store.MakeRoom(nullptr, kEnough).room);
  const auto [often_gone, seldom_gone] = GoneOfHalves();
  EXPECT_GT(seldom_gone, 50);
  EXPECT_LE(often_gone, 5);
}

TEST_F(EvictionTest, UsesAreCountedUnderLfuOnlyAndGoOnInANewValue) {
  const auto uses = [this] {
    Unit unit(store);
    return int{unit.Uses(unit.Find(0, HashedKey("k"), /*touch=*/false))};
  };
  const auto set_uses = [this](uint8_t to) {
    Unit unit(store);
    unit.Lock(HashedKey("k"));
    unit.SetUses(0, HashedKey("k"), to);
  };
  store.SetEviction(EvictionPolicy::kVolatileLfu, 5, {0, 1});
  Set("k");
  EXPECT_EQ(uses(), kFirstUses);
  set_uses(100);
  EXPECT_EQ(uses(), 100);
  Set("k");
  EXPECT_EQ(uses(), 101);
  clock.AdvanceMs(10 * 60'000);
  store.Tick();
  EXPECT_EQ(uses(), 91);
  store.SetEviction(EvictionPolicy::kAllLru, 5);
  set_uses(7);
  store.SetEviction(EvictionPolicy::kAllLfu, 5, {0, 1});
  EXPECT_EQ(uses(), 91) << "told under a policy that keeps none";
}

TEST_F(EvictionTest, WhileExpiryIsFrozenNothingIsEvictedAndNothingRefused) {
  Set("a");
  store.SetEviction(EvictionPolicy::kAllRandom, 5);
  LimitBelow(1);
  store.SetFrozen(true);
  EXPECT_TRUE(store.MakeRoom(nullptr, kEnough).room);
  EXPECT_TRUE(Has("a"));
}

// Keeps what it is told.
class Told final : public EventSink {
 public:
  void OnEvents(absl::Span<const Event> events, Lsn, EventOrigin*) override {
    for (const Event& event : events) names.push_back(absl::StrCat(event.name, " ", event.key));
  }
  std::vector<std::string> names;
};

TEST_F(EvictionTest, AnEvictedKeyIsAnEventAndAChangeThatNobodyMade) {
  Told told;
  store.SetEventSink(&told);
  Set("a");
  store.WantEvents(Bit(EventClass::kEvicted) | Bit(EventClass::kChanged));
  store.SetEviction(EvictionPolicy::kAllRandom, 5);
  LimitBelow(1);
  ASSERT_TRUE(store.MakeRoom(nullptr, kEnough).room);
  EXPECT_EQ(told.names, (std::vector<std::string>{"evicted a", "evicted a"}));
  store.WantEvents(0);
}

}  // namespace
}  // namespace idemd::storage
