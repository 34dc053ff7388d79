// Runs two or three threads one step at a time, in an order that a chooser draws.
//
// A step is one atomic operation of a StepSync (step_sync.h). The threads are fibers of the thread
// that calls Run(), so a run is deterministic: the same choices give the same run. With `stale`, a
// load may also return an older value of its location, as far as the orderings in the code allow
// it: the choice is drawn as well.
//
// Threads   a Schedule and all that happens in it belong to one real thread; one Schedule at a
// time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace idemd::storage {

// Thread 0 sets up and tears down; 1.. are the schedule's.
inline constexpr uint32_t kStepThreads = 4;

// What each thread is known to have done: the happens-before relation.
struct StepClock {
  std::array<uint32_t, kStepThreads> at{};
  void Join(const StepClock& other) {
    for (uint32_t i = 0; i < kStepThreads; ++i) at[i] = at[i] < other.at[i] ? other.at[i] : at[i];
  }
};

class Chooser {
 public:
  virtual ~Chooser() = default;
  // Which of `n` threads goes next; when `may_stay`, 0 is the one that ran last.
  virtual uint32_t Thread(uint32_t n, bool may_stay) = 0;
  // Which of `n` values a load returns; 0 is the newest.
  virtual uint32_t Value(uint32_t n) = 0;
};

// Draws from a seed; how often it switches depends on the seed too.
class SeededChooser final : public Chooser {
 public:
  explicit SeededChooser(uint64_t seed);
  uint32_t Thread(uint32_t n, bool may_stay) override;
  uint32_t Value(uint32_t n) override;

 private:
  uint32_t Below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  std::mt19937_64 random_;
  uint32_t stay_of_16_;
  uint32_t newest_of_16_;
};

// Goes through all runs with at most `preemptions` switches away from a thread that could have gone
// on.
class EveryChooser final : public Chooser {
 public:
  explicit EveryChooser(uint32_t preemptions) : preemptions_(preemptions) {}
  uint32_t Thread(uint32_t n, bool may_stay) override;
  uint32_t Value(uint32_t n) override { return Choose(n); }
  bool Next();  // false: that was the last run

 private:
  struct Choice {
    uint32_t chosen, of;
  };
  uint32_t Choose(uint32_t n);
  std::vector<Choice> path_;
  size_t depth_ = 0;
  const uint32_t preemptions_;
  uint32_t preempted_ = 0;
};

class Schedule {
 public:
  // `seed` is for scenarios that draw their operations.
  Schedule(Chooser& chooser, bool stale, uint64_t seed);
  ~Schedule();  // frees the quarantine
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  static Schedule* current() { return current_; }

  void Thread(std::function<void()> body);
  void Run();  // until every thread has ended

  // Something that must not happen; the first one counts. After it loads are no longer stale, so
  // that the run ends.
  void Fail(std::string what);
  const std::string& failure() const { return failure_; }
  void Expect(bool holds, const char* what) {
    if (!holds) Fail(what);
  }

  // --- for StepSync
  void Step();   // before an atomic operation: others may go first
  void Block();  // until somebody calls Unblock()
  void Unblock();
  uint32_t me() const { return me_; }
  StepClock& clock() { return clocks_[me_]; }
  const StepClock& clock() const { return clocks_[me_]; }
  uint64_t now() const { return steps_; }
  uint64_t seed() const { return seed_; }
  bool stale() const { return stale_ && me_ != 0 && failure_.empty(); }
  Chooser& chooser() { return chooser_; }
  // Memory that was freed stays readable until the end, so that a use after free can be told.
  void Quarantine(std::function<void()> free) { quarantine_.push_back(std::move(free)); }

 private:
  struct Fiber;
  static void Enter();
  void SwitchTo(uint32_t to);
  void Leave(bool may_stay);

  static Schedule* current_;
  Chooser& chooser_;
  const bool stale_;
  const uint64_t seed_;
  std::string failure_;
  uint64_t steps_ = 0;
  uint32_t me_ = 0;
  std::array<StepClock, kStepThreads> clocks_{};
  std::vector<std::unique_ptr<Fiber>> fibers_;  // 0: the caller of Run()
  std::vector<std::function<void()>> quarantine_;
};

// TSan sees one thread here, so that it learns nothing and is slow at it: a part of the runs will
// do.
#if defined(__SANITIZE_THREAD__)
inline constexpr uint64_t kRunsDivisor = 20;
#else
inline constexpr uint64_t kRunsDivisor = 1;
#endif

// One scenario under many choices; stops at the first failure.
struct Verdict {
  std::string failure;  // empty: none
  uint64_t seed = 0;    // of the failure
  uint64_t runs = 0;
};
using Scenario = std::function<void(Schedule&)>;
// IDEMD_SEED in the environment: only that seed.
Verdict RunSeeds(uint64_t seeds, bool stale, const Scenario& scenario);
Verdict RunEvery(uint32_t preemptions, bool stale, uint64_t runs_max, const Scenario& scenario);

}  // namespace idemd::storage
