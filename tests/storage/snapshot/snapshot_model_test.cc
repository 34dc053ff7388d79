// Snapshots against a model: whatever happens to keys, databases and tables while one is walked, it holds what was there at
// the cut, each key once. IDEMD_SNAPSHOTS: how many are compared.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/shard.h"
#include "storage/snapshot/snapshot.h"
#include "storage/store.h"
#include "tests/storage/snapshot/fragment.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

uint64_t SnapshotCount(uint64_t otherwise) {
  const char* given = std::getenv("IDEMD_SNAPSHOTS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

class Modelled {
 public:
  static constexpr DbIndex kDbs = 3;
  static constexpr size_t kKeys = 6000;
  struct Value {
    std::string bytes;
    int64_t deadline_ms = kNoDeadline;
  };
  // What a key held at last; what has expired may still be there, or not.
  using State = std::array<std::vector<std::optional<Value>>, kDbs>;

  explicit Modelled(uint64_t seed) : random_(seed) {
    for (auto& of_db : state_) of_db.resize(kKeys);
    // Few shards, so that their tables split and merge.
    while (names_.size() < kKeys) {
      const std::string name = SomeName();
      const uint32_t shard = ShardNumber(HashedKey(name).hash);
      if (shard != 5 && shard != 6 && shard != 40) continue;
      if (number_of_.emplace(name, names_.size()).second) names_.push_back(name);
    }
  }

  uint64_t Below(uint64_t n) { return random_() % n; }
  Store& store() { return store_; }
  const State& state() const { return state_; }
  int64_t now_ms() { return clock_.NowMs(); }
  void FillOrEmpty() { puts_of_16_ = static_cast<uint32_t>(1 + Below(14)); }

  void AnyChange() {
    const DbIndex db = SomeDb();
    const size_t number = Below(kKeys);
    if (Below(16) < puts_of_16_) return Put(db, number);
    switch (Below(12)) {
      case 0:
        return SetDeadline(db, number);
      case 1:
        return Edit(db, number);
      case 2:
        return MoveOrCopy(db, number, SomeDb(), Below(kKeys), true);
      case 3:
        return MoveOrCopy(db, number, SomeDb(), Below(kKeys), false);
      case 4:
        return Look(db, number);
      case 5:
        clock_.AdvanceMs(Below(400) == 0 ? 4'000'000 : static_cast<int64_t>(Below(5)));
        if (Below(8) == 0) store_.Tick();
        return;
      default:
        return Remove(db, number);
    }
  }
  void FlushDb(DbIndex db) {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushDb(db);
    for (auto& value : state_[db]) value.reset();
  }
  void FlushAll() {
    Unit unit(store_);
    unit.LockAll();
    unit.FlushAll();
    for (auto& of_db : state_)
      for (auto& value : of_db) value.reset();
  }
  void SwapDb(DbIndex a, DbIndex b) {
    Unit unit(store_);
    unit.LockAll();
    unit.SwapDb(a, b);
    if (a != b) std::swap(state_[a], state_[b]);
  }

  // How many entries had expired.
  uint64_t Expect(const State& then, int64_t then_ms, const std::vector<FragmentEntry>& entries) {
    std::array<std::vector<bool>, kDbs> seen;
    for (auto& of_db : seen) of_db.resize(kKeys);
    uint64_t expired = 0;
    for (const FragmentEntry& entry : entries) {
      const auto number = number_of_.find(entry.key);
      if (number == number_of_.end() || entry.db >= kDbs) {
        ADD_FAILURE() << "never was: " << entry.key << " in " << entry.db;
        continue;
      }
      const std::optional<Value>& value = then[entry.db][number->second];
      EXPECT_FALSE(seen[entry.db][number->second]) << "twice: " << entry.key;
      seen[entry.db][number->second] = true;
      if (!value) {
        ADD_FAILURE() << "was not there at the cut: " << entry.key << " in " << entry.db;
        continue;
      }
      EXPECT_EQ(entry.value, value->bytes) << entry.key;
      EXPECT_EQ(entry.deadline_ms, value->deadline_ms) << entry.key;
      expired += value->deadline_ms <= then_ms ? 1 : 0;
    }
    for (DbIndex db = 0; db < kDbs; ++db) {
      for (size_t i = 0; i < kKeys; ++i) {
        const bool live = then[db][i] && then[db][i]->deadline_ms > then_ms;
        EXPECT_TRUE(seen[db][i] || !live) << "left out: " << names_[i] << " in " << db;
      }
    }
    return expired;
  }

 private:
  std::string SomeName() {
    const uint64_t a = random_(), b = random_();
    const std::string hex = absl::StrCat(absl::Hex(a, absl::kZeroPad16), absl::Hex(b, absl::kZeroPad16));
    const std::string uuid = absl::StrCat(hex.substr(0, 8), "-", hex.substr(8, 4), "-", hex.substr(12, 4), "-",
                                          hex.substr(16, 4), "-", hex.substr(20));
    switch (Below(5)) {
      case 0:
        return absl::StrCat("k", a % 1'000'000);
      case 1:
        return absl::StrCat("order:", uuid);
      case 2:
        return absl::StrCat("pay:", hex);
      default:
        return uuid;
    }
  }
  DbIndex SomeDb() { return Below(4) == 0 ? static_cast<DbIndex>(1 + Below(kDbs - 1)) : 0; }
  int64_t SomeDeadline() {
    constexpr int64_t kHourMs = 3'600'000;
    switch (Below(8)) {
      case 0:
        return now_ms() + kHourMs * static_cast<int64_t>(1 + Below(3000));  // some beyond a line's reach
      case 1:
        return int64_t{1} << 50;
      case 2:
      case 3:
        return kNoDeadline;
      case 4:
        return now_ms() + 1 + static_cast<int64_t>(Below(1000));
      default:
        return now_ms() + 100'000 + static_cast<int64_t>(Below(4 * kHourMs));
    }
  }
  std::string SomeValue() {
    switch (Below(8)) {
      case 0:
        return std::string(Below(300), static_cast<char>('a' + Below(26)));
      case 1:
        return absl::StrCat(static_cast<int64_t>(random_() >> Below(64)) * (Below(2) == 0 ? 1 : -1));
      case 2:
        return absl::StrCat("idem/1 state=pending fence=", FenceFloor(now_ms()) + 1 + Below(1000),
                            " attempt=1 since=", now_ms(), " lease=", now_ms() + 30'000,
                            " lease-ms=30000 keep-ms=86400000 claim=me payload=none\n");
      case 3:
        return absl::StrCat("idem/1 state=done fence=", FenceFloor(now_ms()) + 1 + Below(1000), " attempt=1 since=",
                            now_ms() - 5, " lease=", now_ms() + 30'000,
                            " lease-ms=30000 keep-ms=86400000 claim=me fp=a%20b after=7 code=201 payload=raw\nbody",
                            Below(1000));
      default:
        return std::string(Below(2), '1');
    }
  }
  std::optional<Value>& At(DbIndex db, size_t number) { return state_[db][number]; }
  bool Live(DbIndex db, size_t number) {
    const auto& value = At(db, number);
    return value && value->deadline_ms > now_ms();
  }

  void Put(DbIndex db, size_t number) {
    Value value{SomeValue(), SomeDeadline()};
    Unit unit(store_);
    const HashedKey key(names_[number]);
    unit.Lock(key);
    unit.SetString(db, key, value.bytes, value.deadline_ms);
    At(db, number) = std::move(value);
  }
  void Remove(DbIndex db, size_t number) {
    Unit unit(store_);
    const HashedKey key(names_[number]);
    unit.Lock(key);
    EXPECT_EQ(unit.Remove(db, key), Live(db, number));
    At(db, number).reset();
  }
  void SetDeadline(DbIndex db, size_t number) {
    Unit unit(store_);
    const HashedKey key(names_[number]);
    unit.Lock(key);
    const int64_t deadline_ms = SomeDeadline();
    const bool live = Live(db, number);
    EXPECT_EQ(unit.SetDeadline(db, key, deadline_ms), live);
    if (live)
      At(db, number)->deadline_ms = deadline_ms;
    else
      At(db, number).reset();
  }
  void Edit(DbIndex db, size_t number) {
    Unit unit(store_);
    const HashedKey key(names_[number]);
    unit.Lock(key);
    if (unit.Find(db, key).type == ValueType::kRecord) return;
    if (!Live(db, number)) At(db, number).emplace();
    std::string& bytes = At(db, number)->bytes;
    // Twice in one unit, the second time where it is by then.
    for (int i = 0; i < 2; ++i) {
      const size_t size = Below(16) == 0 ? Below(5000) : 1 + Below(100);
      const absl::Span<char> edited = unit.Edit(db, key, size);
      bytes.resize(size, '\0');
      if (size != 0) edited[size - 1] = bytes[size - 1] = static_cast<char>('A' + Below(26));
    }
  }
  void MoveOrCopy(DbIndex from_db, size_t from, DbIndex to_db, size_t to, bool move) {
    if (from == to && from_db == to_db) return;
    Unit unit(store_);
    const HashedKey keys[] = {HashedKey(names_[from]), HashedKey(names_[to])};
    unit.LockKeys(keys);
    if (!unit.Find(from_db, keys[0])) {
      EXPECT_FALSE(Live(from_db, from));
      At(from_db, from).reset();
      return;
    }
    if (move)
      unit.Rename(from_db, keys[0], to_db, keys[1]);
    else
      unit.Copy(from_db, keys[0], to_db, keys[1]);
    At(to_db, to) = At(from_db, from);
    if (move) At(from_db, from).reset();
  }
  void Look(DbIndex db, size_t number) {
    Unit unit(store_);
    std::string scratch;
    const KeyView view = unit.Find(db, HashedKey(names_[number]));
    ASSERT_EQ(static_cast<bool>(view), Live(db, number));
    if (view)
      EXPECT_EQ(StringValue(view, scratch), At(db, number)->bytes);
    else
      At(db, number).reset();
  }

  std::mt19937_64 random_;
  FakeClock clock_;
  NullLog log_;
  Store store_{clock_, log_};
  std::vector<std::string> names_;
  std::unordered_map<std::string, size_t> number_of_;
  State state_;
  uint32_t puts_of_16_ = 14;
};

TEST(SnapshotS4, HoldsWhatWasThereAtTheCutWhateverIsChangedMeanwhile) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  const uint64_t snapshots = SnapshotCount(60);
  Modelled model(seed);
  for (int i = 0; i < 12'000; ++i) model.AnyChange();
  uint64_t compared = 0, entries_compared = 0, changed = 0, expired = 0, flushes = 0, swaps = 0, steps = 0;
  for (uint64_t i = 0; compared < snapshots && !testing::Test::HasFailure(); ++i) {
    if (i % 8 == 0) model.FillOrEmpty();
    if (i % 16 == 0) model.store().CheckInvariants();
    const uint64_t before = model.Below(300);
    for (uint64_t j = 0; j < before; ++j) model.AnyChange();

    // From a line at a time, with a change or two after each, to much at a time and much meanwhile.
    Snapshot::Limits limits;
    const uint64_t grain = model.Below(3);
    limits.walk_bytes = grain == 0 ? 1 : grain == 1 ? 1000 : limits.walk_bytes;
    const uint64_t changes_max = grain == 0 ? 3 : grain == 1 ? 60 : 1500;
    const uint64_t give_up_after = model.Below(8) == 0 ? model.Below(100) : UINT64_MAX;
    const Modelled::State then = model.state();
    const int64_t then_ms = model.now_ms();
    std::array<uint64_t, Modelled::kDbs> sizes{};
    std::array<uint64_t, Modelled::kDbs> with_deadline{};
    Snapshot snapshot(
        model.store(),
        [&] {
          Unit unit(model.store());
          for (DbIndex db = 0; db < Modelled::kDbs; ++db) {
            sizes[db] = unit.Size(db);
            with_deadline[db] = unit.SizeWithDeadline(db);
          }
        },
        limits);
    std::string bytes;
    uint64_t walks = 0;
    bool more = true;
    while (more && walks < give_up_after) {
      const uint64_t changes = model.Below(changes_max);
      for (uint64_t j = 0; j < changes; ++j) model.AnyChange();
      if (model.Below(grain == 0 ? 4000 : grain == 1 ? 1000 : 40) == 0) {
        ++flushes;
        model.Below(4) == 0 ? model.FlushAll() : model.FlushDb(static_cast<DbIndex>(model.Below(Modelled::kDbs)));
        for (int j = 0; j < 200; ++j) model.AnyChange();
      }
      if (model.Below(grain == 0 ? 1000 : grain == 1 ? 200 : 8) == 0) {
        ++swaps;
        model.SwapDb(static_cast<DbIndex>(model.Below(Modelled::kDbs)), static_cast<DbIndex>(model.Below(Modelled::kDbs)));
      }
      std::string piece;
      more = snapshot.Walk(piece);
      ASSERT_EQ(more, !piece.empty());
      if (more) {
        ASSERT_EQ(static_cast<unsigned char>(piece[0]), 254) << "a piece begins with its database";
      }
      bytes += piece;
      ++walks;
    }
    steps += walks;
    if (more) continue;  // given up: the next one begins with marks that are in the way
    ASSERT_FALSE(snapshot.Walk(bytes));
    const auto entries = FragmentReader(bytes).ReadAll();
    ASSERT_TRUE(entries.has_value());
    expired += model.Expect(then, then_ms, *entries);
    std::array<uint64_t, Modelled::kDbs> counted{};
    std::array<uint64_t, Modelled::kDbs> counted_with_deadline{};
    for (const FragmentEntry& entry : *entries) {
      ++counted[entry.db];
      counted_with_deadline[entry.db] += entry.deadline_ms != kNoDeadline ? 1 : 0;
    }
    EXPECT_EQ(counted, sizes);
    EXPECT_EQ(counted_with_deadline, with_deadline);
    for (DbIndex db = 0; db < Modelled::kDbs; ++db) {
      EXPECT_EQ(snapshot.keys(db), sizes[db]);
      EXPECT_EQ(snapshot.with_deadline(db), with_deadline[db]);
    }
    EXPECT_EQ(snapshot.keys(), entries->size());
    EXPECT_EQ(snapshot.keys_walked(), snapshot.keys());  // S5
    ++compared;
    entries_compared += entries->size();
    for (DbIndex db = 0; db < Modelled::kDbs; ++db)
      for (size_t k = 0; k < Modelled::kKeys; ++k) {
        const auto &was = then[db][k], &is = model.state()[db][k];
        changed += was && (!is || is->bytes != was->bytes || is->deadline_ms != was->deadline_ms) ? 1 : 0;
      }
  }
  model.store().CheckInvariants();
  if (testing::Test::HasFailure()) return;
  std::printf("%llu snapshots compared, %llu entries in %llu steps; %llu of them had changed before the end, %llu had expired "
              "at the cut; %llu flushes, %llu swaps meanwhile\n",
              static_cast<unsigned long long>(compared), static_cast<unsigned long long>(entries_compared),
              static_cast<unsigned long long>(steps), static_cast<unsigned long long>(changed),
              static_cast<unsigned long long>(expired), static_cast<unsigned long long>(flushes),
              static_cast<unsigned long long>(swaps));
  EXPECT_GT(changed, compared * 10);
  EXPECT_GT(expired, 0u);
  EXPECT_GT(flushes + swaps, 0u);
}

}  // namespace
}  // namespace idemd::storage
