// Bit rot: of a directory that a server has left behind, every bit is flipped, one at a time, and each flip must be noticed.
//
//   bit_rot [EVERY] [BYTES] [SEED]
//
// The directory has a base and two logs, with what the crash campaign's requests leave (tokens, records, every type) and plain values
// of up to some KB, BYTES (1 MiB) in all, and was stopped cleanly. Of its bits each EVERY-th (1: all) is flipped, and `idemd --check`
// must say that it is damaged. What --check passes over, a start would: they are the same code; now and then a start is tried, too.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/journal/persistence.h"
#include "tests/crash/history.h"
#include "tests/crash/sim_server.h"
#include "tests/crash/workload.h"
#include "tests/support/seed.h"
#include "tests/support/sim_fs.h"

namespace idemd::testing {
namespace {

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr char kLogs[] = "/data/appendonlydir";
constexpr int kDamaged = 2;           // what --check says then
constexpr uint64_t kStartEvery = 64;  // a start takes longer than a check

void Fail(const absl::Status& status) {
  std::printf("FAILED  the directory could not be written: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

// One life: requests, then plain values of `bytes` in all; then a rewrite, or not, and a clean stop.
void Live(SimFs& fs, SimTime& time, std::mt19937_64& random, uint64_t bytes, bool rewrite) {
  History history;
  storage::FakeClock clock(kStartMs);
  absl::StatusOr<std::unique_ptr<SimData>> data = SimData::Recover(fs, time, clock, history, SimOptions());
  if (!data.ok()) Fail(data.status());
  {
    SimServer server(**data, kStartMs);
    Workload workload(server, random);
    for (int step = 0; step < 300; ++step) workload.Step();
    server.Do({"RESET"});  // back to database 0, wherever they have left it
    for (uint64_t written = 0, number = 0; written < bytes; ++number) {
      std::string value(1 + random() % 8000, ' ');
      for (char& c : value) c = static_cast<char>(random());
      written += value.size();
      server.Do({"SET", absl::StrCat("filler:", bytes, ":", number), value});
      (*data)->log().Release(history.last());
    }
  }
  if (rewrite) {
    if (const absl::Status begun = (*data)->persistence().RewriteInBackground(); !begun.ok()) Fail(begun);
  }
  if (const absl::Status stopped = (*data)->persistence().Close(false); !stopped.ok()) Fail(stopped);
}

struct Flips {
  std::atomic<uint64_t> done{0}, starts{0}, unnoticed{0};
  std::mutex starting;  // simulated servers share their settings and scripts
};

bool Starts(const SimFs& disk) {
  const auto copy = disk.AfterKill();
  SimTime time(kStartMs);
  storage::FakeClock clock(kStartMs);
  History history;
  return SimData::Recover(*copy, time, clock, history, SimOptions()).ok();
}

// Flips the bits `first`, `first + step`, … of one file, on a disk of its own.
void FlipBits(std::unique_ptr<SimFs> fs, const std::string& path, uint64_t first, uint64_t step, Flips& flips) {
  std::string bytes = fs->Contents(path);
  for (uint64_t bit = first; bit < bytes.size() * 8; bit += step) {
    const auto flip = [&] { bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8)); };
    flip();
    fs->Overwrite(path, bytes);
    std::string verdict;
    bool noticed = server::CheckDirectory(*fs, "/data", &verdict) == kDamaged;
    if (flips.done.fetch_add(1) % kStartEvery == 0) {
      const std::scoped_lock lock(flips.starting);
      flips.starts.fetch_add(1);
      if (Starts(*fs)) {
        noticed = false;
        verdict += " A server starts.";
      }
    }
    if (!noticed && flips.unnoticed.fetch_add(1) < 10)
      std::printf("FAILED  %s, bit %llu: %s\n", path.c_str(), static_cast<unsigned long long>(bit), verdict.c_str());
    flip();
  }
}

int Main(uint64_t every, uint64_t bytes, uint64_t seed) {
  std::printf("IDEMD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::mt19937_64 random(seed);
  SimFs fs;
  (void)fs.MakeDirectory("/data");
  (void)fs.SyncDirectory("/");
  SimTime time(kStartMs);
  Live(fs, time, random, bytes / 3, true);
  Live(fs, time, random, bytes / 3, false);
  Live(fs, time, random, bytes / 3, false);
  std::string verdict;
  if (server::CheckDirectory(fs, "/data", &verdict) != 0) Fail(absl::InternalError(verdict));
  std::printf("%s\n", verdict.c_str());
  const auto begin = std::chrono::steady_clock::now();
  Flips flips;
  uint64_t size = 0;
  const uint64_t threads = std::max(1u, std::thread::hardware_concurrency());
  const absl::StatusOr<std::vector<std::string>> names = fs.List(kLogs);
  if (!names.ok()) Fail(names.status());
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(kLogs, "/", name);
    size += fs.Contents(path).size();
    std::vector<std::thread> flippers;
    for (uint64_t i = 0; i < threads; ++i)
      flippers.emplace_back([&, i] { FlipBits(fs.AfterKill(), path, i * every, threads * every, flips); });
    for (std::thread& flipper : flippers) flipper.join();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const uint64_t done = flips.done.load(), unnoticed = flips.unnoticed.load();
  std::printf("%llu of the %llu bits of %llu bytes flipped, %llu starts tried, in %.0f s\n", static_cast<unsigned long long>(done),
              static_cast<unsigned long long>(size * 8), static_cast<unsigned long long>(size),
              static_cast<unsigned long long>(flips.starts.load()), seconds);
  std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(done - unnoticed), static_cast<unsigned long long>(unnoticed));
  return unnoticed == 0 && size >= bytes ? 0 : 1;
}

}  // namespace
}  // namespace idemd::testing

int main(int argc, char** argv) {
  uint64_t every = 1, bytes = 1 << 20, seed = idemd::TestSeed();
  uint64_t* const numbers[] = {&every, &bytes, &seed};
  for (int i = 1; i < argc; ++i)
    if (i > 3 || !absl::SimpleAtoi(argv[i], numbers[i - 1]) || every == 0) return 2;
  idemd::server::SetLogLevel(idemd::server::kLogWarning + 1);  // a start that is refused is worth a line
  return idemd::testing::Main(every, bytes, seed);
}
