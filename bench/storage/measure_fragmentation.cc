// What is left of the memory after most keys have gone: keys of mixed sizes are filled in, nine of ten deleted, and values of
// another size filled in where they were.
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <thread>

#include "bench/storage/keys.h"
#include "bench/storage/lifetimes.h"

namespace idemd::bench {
namespace {

constexpr size_t kValueMin = 8, kValueMax = 600, kOtherValue = 1000;
constexpr int kSettleRounds = 1200;  // of 50 ms, at most: a minute

uint64_t Settled(IdemdTable& table) {
  uint64_t before = ResidentBytes();
  int quiet = 0;
  for (int i = 0; i < kSettleRounds && quiet < 60; ++i) {
    table.store().Tick();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const uint64_t now = ResidentBytes();
    quiet = now + (1 << 20) < before ? 0 : quiet + 1;
    before = now;
  }
  return before;
}

void Measure(const Plan& plan, Report& report) {
  const Keys keys = NameKeys(plan.keys, plan.seed);
  std::mt19937_64 random(plan.seed);
  const auto time = storage::SystemTime();
  storage::EffectiveClock clock(*time, 0);
  const uint64_t empty = ResidentBytes();
  IdemdTable table(clock);
  const std::string bytes(kOtherValue, 'v');
  for (size_t i = 0; i < keys.size(); ++i)
    table.Set(keys[i], absl::string_view(bytes).substr(0, kValueMin + random() % (kValueMax - kValueMin)),
              storage::kNoDeadline);
  const uint64_t full = ResidentBytes() - empty;
  size_t kept = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (random() % 10 == 0)
      ++kept;
    else
      table.Remove(keys[i]);
  }
  report.Expect(table.size() == kept, "one key of ten is left");
  const uint64_t left = Settled(table) - empty;
  // Four fifths of what was freed, in values of another size.
  const uint64_t freed = full - left;
  const Keys others = UuidKeys(static_cast<size_t>(static_cast<double>(freed) * 0.8 / (kOtherValue + 60)), plan.seed + 1, "x:");
  for (size_t i = 0; i < others.size(); ++i) table.Set(others[i], bytes, storage::kNoDeadline);
  const uint64_t again = ResidentBytes() - empty;
  const auto percent = [&](uint64_t part) { return 100.0 * static_cast<double>(part) / static_cast<double>(full); };
  report.Add({"fragmentation", "idemd", "memory of mixed sizes", static_cast<double>(full) / 1e6, "MB", -1});
  report.Add({"fragmentation", "idemd", "left when nine of ten keys were deleted", percent(left), "% of that", 30});
  report.Add({"fragmentation", "idemd", "after 80 % of the freed bytes were filled with another size", percent(again),
              "% of that", 102});
}

}  // namespace

void MeasureFragmentation(const Plan& plan, Report& report) {
  report.InProcess("fragmentation: idemd", [&] { Measure(plan, report); });
}

}  // namespace idemd::bench
