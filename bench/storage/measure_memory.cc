// Bytes per entry: how much RSS grows when a fresh process fills a table.
#include <array>
#include <cmath>
#include <string>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"
#include "storage/record/life.h"

namespace idemd::bench {
namespace {

constexpr int64_t kDayMs = 86'400'000;
constexpr int64_t kLeaseMs = 30'000;

struct Kind {
  const char* name;
  double goal_bytes;
  Keys (*make)(size_t n, uint64_t seed, int64_t now_ms);
  bool reservation = false;
};

const Kind kKinds[] = {
    {"UUID, value 1", 32, [](size_t n, uint64_t seed, int64_t) { return UuidKeys(n, seed); }},
    {"order:UUID, value 1", 32,
     [](size_t n, uint64_t seed, int64_t) { return UuidKeys(n, seed, "order:"); }},
    {"own token, value 1", 32,
     [](size_t n, uint64_t, int64_t now_ms) { return TokenKeys(n, now_ms + kDayMs); }},
    {"name of 36 characters, value 1", 72,
     [](size_t n, uint64_t seed, int64_t) { return NameKeys(n, seed); }},
    {"reservation of a UUID", 88,
     [](size_t n, uint64_t seed, int64_t) { return UuidKeys(n, seed); }, true},
};

// Sixteen bytes each for the fingerprint and the claim, different for every key.
struct Caller {
  explicit Caller(uint64_t i)
      : words{i * 0x9e3779b97f4a7c15, ~i, i ^ 0x5851f42d4c957f2d, i << 20} {}
  absl::string_view fingerprint() const { return {reinterpret_cast<const char*>(&words[0]), 16}; }
  absl::string_view claim() const { return {reinterpret_cast<const char*>(&words[2]), 16}; }
  std::array<uint64_t, 4> words;
};

storage::ReserveOutcome Claimed(const storage::Subject& subject, const Caller& caller, uint64_t i,
                                int64_t now_ms) {
  storage::ReserveRequest request;
  request.fingerprint = caller.fingerprint();
  request.claim = caller.claim();
  request.lease_ms = kLeaseMs;
  return storage::Reserve(
      subject, request, now_ms, storage::Limits{},
      [&] { return static_cast<uint64_t>(now_ms) * 1024 + i; },
      [] { return storage::TokenOrigin::kUnissued; });
}

// As IDEM.RESERVE does.
void ReserveIn(IdemdTable& table, absl::string_view key, uint64_t i, int64_t) {
  storage::Unit unit(table.store());
  const storage::HashedKey hashed(key);
  unit.Lock(hashed);
  const Caller caller(i);
  const auto outcome = Claimed(storage::SubjectOf(unit.Find(0, hashed)), caller, i, unit.now_ms());
  unit.Apply(0, hashed, outcome.action);
}
// The maps are given what such a record has to say, as tight as a plain struct can be.
template <class Table>
void ReserveIn(Table& table, absl::string_view key, uint64_t i, int64_t now_ms) {
  const Caller caller(i);
  const auto outcome = Claimed(storage::Subject{}, caller, i, now_ms);
  const storage::Record& record = outcome.action.record;
  struct {
    uint64_t fence;
    int64_t since_ms, lease_end_ms;
    uint32_t lease_ms, attempt;
    std::array<uint64_t, 4> fingerprint_and_claim;
  } const facts{record.fence,
                record.since_ms,
                record.lease_end_ms,
                static_cast<uint32_t>(record.lease_ms),
                static_cast<uint32_t>(record.attempt),
                caller.words};
  table.Set(key, {reinterpret_cast<const char*>(&facts), sizeof facts}, outcome.action.deadline_ms);
}

template <class Table>
double AccountedBytes(Table&) {
  return -1;
}
template <>
double AccountedBytes(IdemdTable& table) {
  return static_cast<double>(table.store().memory_bytes());
}

template <class Table>
void MeasureKind(const Plan& plan, const Kind& kind, Report& report) {
  storage::FakeClock clock;
  const Keys keys = kind.make(plan.keys, plan.seed, clock.NowMs());
  PurgeHeap();
  const uint64_t before = ResidentBytes();
  Table table(clock);
  for (size_t i = 0; i < keys.size(); ++i) {
    if (kind.reservation)
      ReserveIn(table, keys[i], i, clock.NowMs());
    else
      table.Set(keys[i], "1", clock.NowMs() + kDayMs + static_cast<int64_t>(i * 7919 % kDayMs));
  }
  {
    Background<Table> background(table, clock, -1);
    background.Rest();
  }
  table.Settle();
  PurgeHeap();
  const double n = static_cast<double>(keys.size());
  const double grown = static_cast<double>(ResidentBytes()) - static_cast<double>(before);
  report.Expect(table.size() == keys.size() && keys.size() == plan.keys,
                "every key is in the table");
  const bool ours = std::string(Table::kName) == IdemdTable::kName;
  report.Add({"memory", Table::kName, kind.name, grown / n, "bytes per entry",
              ours ? kind.goal_bytes : -1});
  const double accounted = AccountedBytes(table);
  if (ours)
    report.Add({"accounting", Table::kName, kind.name, std::fabs(accounted / grown - 1) * 100,
                "% between its own count and RSS", 5});
}

}  // namespace

void MeasureMemory(const Plan& plan, Report& report) {
  for (const Kind& kind : kKinds) {
    ForEachTable([&](auto* tag) {
      using Table = std::remove_pointer_t<decltype(tag)>;
      report.InProcess(std::string("memory: ") + Table::kName + ", " + kind.name,
                       [&] { MeasureKind<Table>(plan, kind, report); });
    });
  }
}

}  // namespace idemd::bench
