// The campaign: a server over a simulated disk is crashed at every call that it makes, and every
// recovery must be right.
//
//   crash_states [STATES] [SEED]
//   crash_states control SEED     whether the fault planted in this program is noticed
//
// A run draws requests, over several lives of a server on one disk; some come while a snapshot is
// made, between its cut and its walk. In the middle of each file call
// the disk is copied, a crash is drawn, and the next process recovers from the copy, itself crashed
// in the middle of its calls now and then. What must hold:
//   - the server starts;
//   - the keys are those after some unit, not before the last one that was acknowledged (`always`,
//     and after a mere kill: any reply; else: what WAITAOF or a rewrite had synced), strings,
//     records and every part of every collection alike;
//   - fences go on above every one that was given out, tokens are recognised;
//   - a second recovery finds the same.
// The seed is IDEMD_SEED where none is given; a wrong state is printed with its own.
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "tests/crash/history.h"
#include "tests/crash/sim_server.h"
#include "tests/crash/workload.h"
#include "tests/support/seed.h"
#include "tests/support/sim_fs.h"

namespace idemd::testing {
namespace {

using server::SyncPolicy;
using storage::Lsn;

constexpr int64_t kStartMs = 1'700'000'000'000;
constexpr uint64_t kStatesDefault = 50'000;
const std::string kLost = "the keys are not those after any unit that may be the last";

struct Totals {
  uint64_t states = 0, calls = 0, runs = 0, units = 0, in_recovery = 0, torn = 0, lives = 0,
           faulty = 0;
};

// One run: lives of a server over one disk.
class Run {
 public:
  // A disk that lies about syncs leaves little that can be started from: only what is lost counts
  // on it.
  Run(uint64_t seed, const SimOptions& options, bool lie, Totals& totals)
      : seed_(seed), random_(seed), options_(options), lie_(lie), totals_(totals) {}

  // What went wrong, "" when nothing.
  std::string Go(uint64_t states_max);

 private:
  enum class Crash : uint8_t { kPower, kKill };
  void Live();
  bool Recognised(const storage::TokenMint& tokens) const;
  void Serve(bool faulty);
  void Check();
  void ServeDuringSnapshot(const SimCall& call);
  void GoOn(std::unique_ptr<SimFs> next);
  void OnCall();
  void End();
  void Examine(std::unique_ptr<SimFs> disk, Crash crash, const std::string& how);
  // Recovers from `disk`; returns the LSN that it stands for, or notes what is wrong.
  std::optional<Lsn> Recover(SimFs& disk, Lsn least, const std::string& how);
  Lsn Least(Crash crash) const;
  void Wrong(const std::string& how, const std::string& what, const SimFs* disk) {
    if (!problem_.empty() || (lie_ && !absl::StartsWith(what, kLost))) return;
    problem_ = absl::StrCat("seed ", seed_, ", call ", fs_->calls(), ", ", how, ": ", what);
    if (disk != nullptr)
      absl::StrAppend(&problem_, "\n  the disk before the crash:\n", fs_->Describe());
  }
  uint64_t Below(uint64_t limit) { return random_() % limit; }

  const uint64_t seed_;
  std::mt19937_64 random_;
  const SimOptions options_;
  const bool lie_;
  Totals& totals_;
  std::unique_ptr<SimFs> fs_;
  SimTime time_{kStartMs};
  storage::FakeClock clock_{kStartMs};
  History history_;
  SimData* data_ = nullptr;  // while a life lasts
  Workload* workload_ = nullptr;  // while it serves and nothing of it is under way
  // Where this life ends, in the middle of a call; what the server does after that has never
  // happened.
  uint64_t ends_at_call_ = 0;
  std::unique_ptr<SimFs> left_;
  bool closed_ = false;      // by a clean stop
  Lsn began_at_ = 0;         // what this life found
  Lsn durable_[2] = {0, 0};  // by the end of the last life, for each Crash: a kill has left what a
                             // power cut may still take
  std::string token_;        // acknowledged
  std::string problem_;
  uint64_t states_max_ = 0;
};

std::string Run::Go(uint64_t states_max) {
  states_max_ = totals_.states + states_max;
  fs_ = std::make_unique<SimFs>();
  (void)fs_->MakeDirectory("/data");
  (void)fs_->SyncDirectory("/");
  ++totals_.runs;
  for (uint64_t life = 0, lives = 1 + Below(4);
       life < lives && fs_ != nullptr && problem_.empty() && totals_.states < states_max_; ++life)
    Live();
  return problem_;
}

void Run::Live() {
  ++totals_.lives;
  fs_->LieAboutSync(lie_);
  ends_at_call_ = fs_->calls() + (Below(2) == 0 ? Below(400) : UINT64_MAX / 2);
  fs_->OnCall([this](const SimCall& call) {
    OnCall();
    ServeDuringSnapshot(call);
  });
  const bool faulty = !lie_ && Below(3) == 0;
  if (faulty) {
    ++totals_.faulty;
    const SimFault fault =
        std::array{SimFault::kIo, SimFault::kNoSpace, SimFault::kShortWrite}[Below(3)];
    fs_->FailCall(1 + Below(400), fault, Below(2) == 0 ? 1 : 1 + Below(30));
  }
  SimOptions options = options_;
  options.gave_up = [this] {
    if (left_ == nullptr) End();
  };
  closed_ = false;
  absl::StatusOr<std::unique_ptr<SimData>> data =
      SimData::Recover(*fs_, time_, clock_, history_, options);
  if (data.ok()) {
    data_ = data->get();
    Serve(faulty);
  } else if (!faulty) {
    Wrong("at the start of a life", std::string(data.status().message()), fs_.get());
  }
  if (left_ == nullptr) End();
  data_ = nullptr;
  fs_->OnCall(nullptr);
  GoOn(std::move(left_));
}

// Requests, and in the end perhaps a clean stop.
void Run::Serve(bool faulty) {
  // What it serves is safe from everything, however it was left.
  if (left_ == nullptr) durable_[0] = durable_[1] = began_at_;
  {
    SimServer server(*data_, kStartMs);
    Workload workload(server, random_);
    for (uint64_t step = 0, steps = 10 + Below(60); step < steps && problem_.empty(); ++step) {
      workload.Step();
      ++totals_.units;
      if (Below(3) == 0) {
        const int64_t ms = static_cast<int64_t>(Below(8) == 0 ? Below(3000) : Below(60));
        time_.AdvanceMs(ms);
        clock_.AdvanceMs(ms);
        data_->store().Tick();
      }
      if (Below(3) != 0) {
        data_->log().Release(history_.last());
        if (left_ == nullptr && data_->log().released() >= history_.last()) token_ = workload.token();
      }
      workload_ = &workload;
      if (Below(25) == 0) (void)data_->persistence().RewriteInBackground();
      if (Below(60) == 0) data_->persistence().SaveNow([](const absl::Status&) {});
      workload_ = nullptr;
      if (Below(20) == 0) data_->persistence().WaitSynced(history_.last(), 0, [](bool) {});
      if (left_ != nullptr) break;
      history_.Settle(std::min(Least(Crash::kPower), Least(Crash::kKill)));
      if (!faulty && !data_->died().empty())
        Wrong("in a sound world", "the server gave up: " + data_->died(), fs_.get());
      if (Below(10) == 0) Check();
      if (totals_.states >= states_max_) break;
    }
    Check();
  }
  // A clean stop, in which this life may still end.
  if (left_ != nullptr || Below(3) != 0) return;
  const absl::Status stopped = data_->persistence().Close(Below(2) == 0);
  if (!stopped.ok() && !faulty) Wrong("at a clean stop", std::string(stopped.message()), fs_.get());
  closed_ = stopped.ok() && left_ == nullptr;
}

// Whether effects, done again one by one, amount to what the store holds.
void Run::Check() {
  if (options_.fault != WatchedLog::Fault::kNone || left_ != nullptr) return;
  const Keys held = KeysOf(data_->store());
  // Keys that have expired and were not swept yet are not shown.
  Keys told = history_.now();
  const int64_t now = clock_.NowMs();
  std::erase_if(told, [&](const auto& entry) { return entry.second.deadline_ms <= now; });
  if (told != held)
    Wrong("in memory", "effects do not tell what the store holds" + Differences(told, held), nullptr);
}

// The cut was made and nothing walked when the file is made: what changes now has to be saved before.
void Run::ServeDuringSnapshot(const SimCall& call) {
  if (workload_ == nullptr || left_ != nullptr || call.kind != SimCall::Kind::kCreate ||
      !absl::StrContains(call.path, ".rdb"))
    return;
  Workload& workload = *std::exchange(workload_, nullptr);
  for (uint64_t step = 0, steps = Below(12); step < steps && problem_.empty(); ++step) {
    workload.Step();
    ++totals_.units;
  }
}

// A throw-away recovery says which state the next life will find; what came after it has never
// happened.
void Run::GoOn(std::unique_ptr<SimFs> next) {
  History none;
  storage::FakeClock early(1000);
  const auto copy = next->AfterKill();
  const absl::StatusOr<std::unique_ptr<SimData>> found =
      SimData::Recover(*copy, time_, early, none, options_);
  if (!found.ok()) {
    Wrong("at the end of a life", std::string(found.status().message()), fs_.get());
    fs_ = nullptr;
    return;
  }
  const Keys keys = KeysOf((*found)->store());
  if (const std::optional<Lsn> at = history_.Match(durable_[0], keys); at.has_value()) {
    began_at_ = *at;
    history_.ForgetAfter(*at, (*found)->store());
  } else {
    Wrong("at the end of a life", absl::StrCat(kLost, Differences(history_.now(), keys)),
          fs_.get());
  }
  fs_ = std::move(next);
}

// The next life begins with what is on the disk now.
void Run::End() {
  const bool kill = Below(2) == 0;
  const Lsn power = Least(Crash::kPower);
  durable_[0] = kill ? Least(Crash::kKill) : power;
  durable_[1] = power;
  left_ = kill ? fs_->AfterKill(random_()) : fs_->AfterCrash(random_());
}

// What must be there after a crash now.
Lsn Run::Least(Crash crash) const {
  if (data_ == nullptr)
    return durable_[crash == Crash::kKill ? 0 : 1];  // in the recovery at the start of a life
  if (closed_) return history_.last();
  const Lsn before = durable_[0];
  if (options_.fault == WatchedLog::Fault::kAnswersEarly) return data_->log().released();
  if (crash == Crash::kKill || options_.sync == SyncPolicy::kAlways)
    return std::max(before, data_->log().released());
  return std::max(before, data_->persistence().status().durable_lsn);
}

void Run::OnCall() {
  ++totals_.calls;
  if (!problem_.empty() || totals_.states >= states_max_ || left_ != nullptr) return;
  const uint64_t draw = random_();
  Examine(fs_->AfterCrash(draw), Crash::kPower, absl::StrCat("crash ", draw));
  if (Below(3) == 0) Examine(fs_->AfterKill(draw), Crash::kKill, absl::StrCat("kill ", draw));
  const size_t extremes = fs_->extremes();
  if (extremes != 0) {
    const size_t number = Below(extremes);
    Examine(fs_->AfterExtreme(number), Crash::kPower, absl::StrCat("extreme ", number));
  }
  if (fs_->calls() >= ends_at_call_) End();
}

void Run::Examine(std::unique_ptr<SimFs> disk, Crash crash, const std::string& how) {
  const Lsn least = Least(crash);
  const Lsn least_power = Least(Crash::kPower);
  // Crashes in the recovery itself: what they leave must be as good.
  if (Below(4) == 0) {
    const uint64_t every = 1 + Below(6);
    uint64_t call = 0;
    SimFs* const under_way = disk.get();
    disk->OnCall([&, under_way](const SimCall&) {
      if (++call % every != 0 || !problem_.empty()) return;
      ++totals_.in_recovery;
      const uint64_t draw = random_();
      if (Below(3) == 0) {
        Recover(*under_way->AfterKill(draw), least,
                absl::StrCat(how, ", then in its recovery at change ", call, " kill ", draw));
      } else {
        Recover(*under_way->AfterCrash(draw), least_power,
                absl::StrCat(how, ", then in its recovery at change ", call, " crash ", draw));
      }
    });
  }
  const std::optional<Lsn> at = Recover(*disk, least, how);
  disk->OnCall(nullptr);
  if (!at.has_value() || Below(4) != 0) return;
  // What was served once stays, whatever happens next.
  const auto again = Below(2) == 0 ? disk->AfterKill() : disk->AfterCrash(random_());
  const std::optional<Lsn> later = Recover(*again, *at, how + ", recovered, crashed again");
  if (later.has_value() && *later != *at)
    Wrong(how, absl::StrCat("first as of ", *at, ", then as of ", *later), disk.get());
}

std::optional<Lsn> Run::Recover(SimFs& disk, Lsn least, const std::string& how) {
  ++totals_.states;
  const uint64_t fence = history_.FenceUpTo(least);
  History none;
  storage::FakeClock early(1000);  // nothing has expired, and no fence comes from the clock
  absl::StatusOr<std::unique_ptr<SimData>> data =
      SimData::Recover(disk, time_, early, none, options_);
  if (!data.ok()) {
    Wrong(how, absl::StrCat("refuses to start: ", data.status().message()), &disk);
    return std::nullopt;
  }
  if ((*data)->persistence().status().torn_bytes_cut != 0) ++totals_.torn;
  const Keys found = KeysOf((*data)->store());
  const std::optional<Lsn> at = history_.Match(least, found);
  if (!at.has_value()) {
    Wrong(how,
          absl::StrCat(kLost, ", of which ", least, " was the last acknowledged one",
                       Differences(history_.now(), found)),
          &disk);
    return std::nullopt;
  }
  if ((*data)->store().fences().Next() <= fence)
    Wrong(how,
          absl::StrCat("fence ", fence, " had been given out, ", (*data)->store().fences().last(),
                       " comes next"),
          &disk);
  if (!token_.empty() && !Recognised((*data)->tokens()))
    Wrong(how, token_ + " is not recognised", &disk);
  return at;
}

// In any database: it may have been issued inside a unit that began in another one.
bool Run::Recognised(const storage::TokenMint& tokens) const {
  for (storage::DbIndex db = 0; db < storage::kDatabases; ++db)
    if (tokens.Read(db, token_).issued) return true;
  return false;
}

SimOptions Draw(uint64_t seed) {
  SimOptions options;
  static constexpr SyncPolicy kPolicies[] = {SyncPolicy::kAlways, SyncPolicy::kAlways,
                                             SyncPolicy::kAlways, SyncPolicy::kEverySecond,
                                             SyncPolicy::kNever};
  options.sync = kPolicies[seed % 5];
  options.restart_grace_ms = seed % 3 == 0 ? 5000 : 0;
  return options;
}

// Whether a planted fault is noticed within so many states: that keys are lost, not only that a
// start is refused.
bool Caught(const char* name, const SimOptions& options, bool lie, uint64_t seed,
            uint64_t most = 4000) {
  Totals totals;
  for (uint64_t run = 0; totals.states < most; ++run) {
    const std::string problem = Run(seed + run, options, lie, totals).Go(most - totals.states);
    if (problem.find(kLost) == std::string::npos) continue;
    std::printf("control caught after %llu states: %s\n",
                static_cast<unsigned long long>(totals.states), name);
    return true;
  }
  std::printf("BLIND  %s went unnoticed in %llu states\n", name,
              static_cast<unsigned long long>(totals.states));
  return false;
}

// A fault of storage itself is planted in a program of its own (plant.cmake).
bool CaughtIn(const std::string& program, uint64_t seed) {
  std::fflush(stdout);
  if (std::system(absl::StrCat("'", program, "' control ", seed).c_str()) == 0) return true;
  std::printf("BLIND  what is planted in %s\n", program.c_str());
  return false;
}

int Main(const std::string& self, uint64_t states, uint64_t seed) {
  std::printf("IDEMD_SEED=%llu\n", static_cast<unsigned long long>(seed));
  int failed = 0;
  const SimOptions always;
  SimOptions forgets = always, parts = always, doubles = always, early = always;
  forgets.fault = WatchedLog::Fault::kForgetsDeletes;
  parts.fault = WatchedLog::Fault::kForgetsParts;
  doubles.fault = WatchedLog::Fault::kDoublesParts;
  early.fault = WatchedLog::Fault::kAnswersEarly;
  SimOptions everysec = early;
  everysec.sync = SyncPolicy::kEverySecond;
  const bool caught[] = {Caught("a sync that lies", always, true, seed),
                         Caught("a deletion that is not logged", forgets, false, seed),
                         Caught("parts of sets that are not logged", parts, false, seed),
                         Caught("parts that are logged twice", doubles, false, seed),
                         Caught("a reply before its sync", early, false, seed),
                         Caught("everysec judged as always", everysec, false, seed),
                         CaughtIn(self + "_saves_late", seed)};
  for (const bool one : caught) failed += one ? 0 : 1;

  Totals totals;
  const auto begin = std::chrono::steady_clock::now();
  uint64_t bad = 0;
  for (uint64_t run = 0; totals.states < states && bad < 5; ++run) {
    const std::string problem =
        Run(seed + run, Draw(seed + run), false, totals).Go(states - totals.states);
    if (problem.empty()) continue;
    ++bad;
    std::printf("FAILED  %s\n", problem.c_str());
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::printf(
      "%llu states (%llu of them in recoveries, %llu with a torn end) at %llu calls of %llu runs, "
      "%llu lives (%llu with a bad disk) and %llu units, in %.1f s; seeds %llu to %llu\n",
      static_cast<unsigned long long>(totals.states),
      static_cast<unsigned long long>(totals.in_recovery),
      static_cast<unsigned long long>(totals.torn), static_cast<unsigned long long>(totals.calls),
      static_cast<unsigned long long>(totals.runs), static_cast<unsigned long long>(totals.lives),
      static_cast<unsigned long long>(totals.faulty), static_cast<unsigned long long>(totals.units),
      seconds, static_cast<unsigned long long>(seed),
      static_cast<unsigned long long>(seed + totals.runs - 1));
  failed += static_cast<int>(bad);
  std::printf("%llu passed, %d failed\n",
              static_cast<unsigned long long>(totals.states + std::size(caught) - static_cast<uint64_t>(failed)),
              failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace idemd::testing

int main(int argc, char** argv) {
  uint64_t states = idemd::testing::kStatesDefault;
  uint64_t seed = idemd::TestSeed() % 1'000'000'000;
  const bool control = argc > 1 && absl::string_view(argv[1]) == "control";
  if (argc > 1 && !control && !absl::SimpleAtoi(argv[1], &states)) return 2;
  if (argc > 2 && !absl::SimpleAtoi(argv[2], &seed)) return 2;
  // Every torn end is worth a line, and this tears thousands.
  idemd::server::SetLogLevel(idemd::server::kLogWarning + 1);
  if (!control) return idemd::testing::Main(argv[0], states, seed);
  constexpr uint64_t kMost = 20'000;  // few units come at the right time
  return idemd::testing::Caught("a snapshot that has collections as they are later", {}, false, seed, kMost) ? 0 : 1;
}
