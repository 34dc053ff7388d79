// Snapshots while threads write at full speed: each is a consistent cut. IDEMD_SNAPSHOTS: how many are taken.
//
// What one unit changes together is in a snapshot together or not at all: balances whose sum is constant, pairs of inline
// keys with one deadline, pairs of strings edited in place, pairs in databases that are flushed and swapped.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "storage/snapshot/snapshot.h"
#include "tests/storage/snapshot/fragment.h"
#include "tests/support/seed.h"

namespace idemd::storage {
namespace {

constexpr int kAccounts = 40;
constexpr int64_t kEach = 1000;  // in an account, at first
constexpr int kTokens = 3000;
constexpr int kBuffers = 20;
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSnapshots = 12;
#else
constexpr uint64_t kSnapshots = 30;
#endif

std::string Account(uint64_t i) { return absl::StrCat("account:", i); }
// Two halves, which lie in different shards as a rule; inline.
std::string Token(uint64_t i, int half) {
  return absl::StrCat(absl::Hex(i, absl::kZeroPad8), half == 0 ? "-0000" : "-ffff", "-4000-8000-0123456789ab");
}
std::string EditedString(uint64_t i, int half) { return absl::StrCat("buffer:", i, half == 0 ? ":a" : ":b"); }
std::string Flushed(uint64_t i, int half) { return absl::StrCat("flushed:", i, half == 0 ? ":a" : ":b"); }
std::string Balance(const std::string& name, int64_t balance) {
  return absl::StrCat(balance, " ", HashedKey(absl::StrCat(name, "=", balance)).hash);
}

class Writer {
 public:
  Writer(Store& store, uint64_t seed) : store_(store), random_(seed) {}

  void Step() {
    switch (Below(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return Transfer(Account(Below(kAccounts)), Account(Below(kAccounts)));
      case 4:
        return Edit(Below(kBuffers));
      case 5:
        return WholeDatabases();
      case 6:
      case 7:
        return InDatabases(Below(2000));
      default:
        return PutOrTake(Below(kTokens));
    }
  }

 private:
  uint64_t Below(uint64_t n) { return random_() % n; }
  void Transfer(const std::string& from, const std::string& to) {
    if (from == to) return;
    Unit unit(store_);
    const HashedKey keys[] = {HashedKey(from), HashedKey(to)};
    unit.LockKeys(keys);
    const std::string* const names[] = {&from, &to};
    int64_t balances[2];
    for (int i = 0; i < 2; ++i) {
      const std::pair<std::string, std::string> read =
          absl::StrSplit(unit.Find(0, keys[i]).bytes, absl::MaxSplits(' ', 1));
      ASSERT_TRUE(absl::SimpleAtoi(read.first, &balances[i]));
    }
    const auto moved = static_cast<int64_t>(Below(10));
    balances[0] -= moved;
    balances[1] += moved;
    for (int i = 0; i < 2; ++i) unit.SetString(0, keys[i], Balance(*names[i], balances[i]), kNoDeadline);
  }
  void PutOrTake(uint64_t i) {
    const std::string names[] = {Token(i, 0), Token(i, 1)};
    const HashedKey keys[] = {HashedKey(names[0]), HashedKey(names[1])};
    Unit unit(store_);
    unit.LockKeys(keys);
    // In waves, so that tables grow and shrink.
    const bool put = Below(8) < (steps_++ / 3000 % 2 == 0 ? 7u : 2u);
    const int64_t deadline_ms = unit.now_ms() + 60'000 + static_cast<int64_t>(Below(1'000'000));
    const absl::string_view value = Below(2) == 0 ? "1" : "0";
    for (const HashedKey& key : keys) {
      if (put)
        unit.SetString(0, key, value, deadline_ms);
      else
        unit.Remove(0, key);
    }
    if (Below(4) == 0)
      for (const HashedKey& key : keys) unit.SetDeadline(0, key, deadline_ms + 1);
  }
  void Edit(uint64_t i) {
    const std::string names[] = {EditedString(i, 0), EditedString(i, 1)};
    const HashedKey keys[] = {HashedKey(names[0]), HashedKey(names[1])};
    Unit unit(store_);
    unit.LockKeys(keys);
    const size_t size = 1 + Below(2000);
    const char byte = static_cast<char>('a' + Below(26));
    for (const HashedKey& key : keys)
      for (char& c : unit.Edit(0, key, size)) c = byte;
  }
  void InDatabases(uint64_t i) {
    const std::string names[] = {Flushed(i, 0), Flushed(i, 1)};
    const HashedKey keys[] = {HashedKey(names[0]), HashedKey(names[1])};
    const DbIndex db = 1 + static_cast<DbIndex>(Below(2));
    const std::string value = absl::StrCat(random_());
    Unit unit(store_);
    unit.LockKeys(keys);
    for (const HashedKey& key : keys) unit.SetString(db, key, value, kNoDeadline);
  }
  void WholeDatabases() {
    if (Below(50) != 0) return;
    Unit unit(store_);
    unit.LockAll();
    if (Below(2) == 0)
      unit.SwapDb(1, 2);
    else
      unit.FlushDb(1 + static_cast<DbIndex>(Below(2)));
  }

  Store& store_;
  std::mt19937_64 random_;
  uint64_t steps_ = 0;
};

void ExpectConsistent(const std::vector<FragmentEntry>& entries) {
  std::map<std::pair<DbIndex, std::string>, const FragmentEntry*> all;
  for (const FragmentEntry& entry : entries)
    ASSERT_TRUE(all.emplace(std::make_pair(entry.db, entry.key), &entry).second) << "twice: " << entry.key;
  int64_t sum = 0;
  for (int i = 0; i < kAccounts; ++i) {
    const std::string name = Account(static_cast<uint64_t>(i));
    const auto at = all.find({0, name});
    ASSERT_NE(at, all.end()) << name;
    const std::pair<std::string, std::string> read = absl::StrSplit(at->second->value, absl::MaxSplits(' ', 1));
    int64_t balance = 0;
    ASSERT_TRUE(absl::SimpleAtoi(read.first, &balance));
    ASSERT_EQ(at->second->value, Balance(name, balance)) << "a value proves itself";
    sum += balance;
  }
  ASSERT_EQ(sum, kAccounts * kEach) << "the cut went through a unit";
  const auto expect_both_or_none = [&](DbIndex db, const std::string& a, const std::string& b) {
    const auto first = all.find({db, a}), second = all.find({db, b});
    ASSERT_EQ(first == all.end(), second == all.end()) << a << ", " << b << " in " << db;
    if (first == all.end()) return;
    ASSERT_EQ(first->second->value, second->second->value) << a;
    ASSERT_EQ(first->second->deadline_ms, second->second->deadline_ms) << a;
  };
  for (uint64_t i = 0; i < kTokens; ++i) expect_both_or_none(0, Token(i, 0), Token(i, 1));
  for (uint64_t i = 0; i < kBuffers; ++i) {
    expect_both_or_none(0, EditedString(i, 0), EditedString(i, 1));
    const auto at = all.find({0, EditedString(i, 0)});
    if (at == all.end()) continue;
    const std::string& value = at->second->value;
    ASSERT_EQ(value, std::string(value.size(), value[0])) << "a string was edited while it was saved";
  }
  for (DbIndex db = 1; db <= 2; ++db)
    for (uint64_t i = 0; i < 2000; ++i) expect_both_or_none(db, Flushed(i, 0), Flushed(i, 1));
}

TEST(SnapshotS3, EachIsAConsistentCutWhileThreadsWrite) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedNote(seed));
  const char* given = std::getenv("IDEMD_SNAPSHOTS");
  const uint64_t snapshots = given != nullptr ? std::strtoull(given, nullptr, 10) : kSnapshots;
  FakeClock clock;
  NullLog log;
  Store store(clock, log);
  {
    Unit unit(store);
    unit.LockAll();
    for (int i = 0; i < kAccounts; ++i) {
      const std::string name = Account(static_cast<uint64_t>(i));
      unit.SetString(0, HashedKey(name), Balance(name, kEach), kNoDeadline);
    }
  }
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> steps{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      Writer writer(store, seed + t);
      while (!stop.load(std::memory_order_relaxed)) {
        writer.Step();
        steps.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  uint64_t meanwhile = 0;
  for (uint64_t i = 0; i < snapshots && !testing::Test::HasFailure(); ++i) {
    // Not all at once: some work lies between, and between the steps of a walk.
    const auto let_them_write = [&](uint64_t n) {
      for (const uint64_t until = steps.load() + n; steps.load() < until;) std::this_thread::yield();
    };
    let_them_write(500);
    Snapshot::Limits limits;
    if (i % 2 == 0) limits.walk_bytes = 2000;
    if (i % 4 == 0) limits.hand_over_bytes = 100'000;
    Snapshot snapshot(store, [] {}, limits);
    const uint64_t begun = steps.load();
    std::string bytes;
    for (uint64_t walks = 0; snapshot.Walk(bytes); ++walks) {
      if (i % 4 != 0 && walks % 4 == 0) let_them_write(50);
      if (walks % 16 == 0) store.Tick();
    }
    meanwhile += steps.load() - begun;
    ASSERT_EQ(snapshot.keys_walked(), snapshot.keys());
    const auto entries = FragmentReader(bytes).ReadAll();
    ASSERT_TRUE(entries.has_value());
    ASSERT_EQ(entries->size(), snapshot.keys());
    ExpectConsistent(*entries);
    clock.AdvanceMs(5000);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  store.CheckInvariants();
  std::printf("%llu snapshots, %llu units meanwhile\n", static_cast<unsigned long long>(snapshots),
              static_cast<unsigned long long>(meanwhile));
  EXPECT_GT(meanwhile, snapshots);
}

}  // namespace
}  // namespace idemd::storage
