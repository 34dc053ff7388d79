// Fibers, and the order in which they run.
#include "tests/schedule/schedule.h"

#include <ucontext.h>

#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#elif defined(IDEMD_SANITIZED_ADDRESS)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace idemd::storage {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr uint64_t kStepsMax =
    200'000;  // a run has some hundred; more is a loop that waits for nobody

// Stacks are used again: making one costs more than a run.
struct Stack {
  std::unique_ptr<char[]> bytes;
  void* tsan = nullptr;  // TSan's idea of the fiber
  int uses = 0;
};

std::vector<Stack>& FreeStacks() {
  static std::vector<Stack> stacks;
  return stacks;
}

Stack TakeStack() {
  Stack stack;
  if (!FreeStacks().empty()) {
    stack = std::move(FreeStacks().back());
    FreeStacks().pop_back();
  } else {
    stack.bytes = std::make_unique<char[]>(kStackBytes);
  }
#if defined(IDEMD_SANITIZED_ADDRESS)
  __asan_unpoison_memory_region(stack.bytes.get(), kStackBytes);  // the last frames never returned
#elif defined(__SANITIZE_THREAD__)
  // Frames that never return stay on TSan's own stack too, which has an end.
  if (stack.tsan != nullptr && ++stack.uses % 500 == 0)
    __tsan_destroy_fiber(std::exchange(stack.tsan, nullptr));
  if (stack.tsan == nullptr) stack.tsan = __tsan_create_fiber(0);
#endif
  return stack;
}

#if defined(IDEMD_SANITIZED_ADDRESS)
// The real thread's stack, learned by the first fiber that it switches to.
const void* main_stack = nullptr;
size_t main_stack_bytes = 0;
#endif

}  // namespace

SeededChooser::SeededChooser(uint64_t seed) : random_(seed) {
  constexpr std::array<uint32_t, 4> kStay = {4, 8, 13, 15};
  stay_of_16_ = kStay[Below(4)];
  newest_of_16_ = kStay[Below(4)];
}

uint32_t SeededChooser::Thread(uint32_t n, bool may_stay) {
  if (may_stay && Below(16) < stay_of_16_) return 0;
  return Below(n);
}

uint32_t SeededChooser::Value(uint32_t n) { return Below(16) < newest_of_16_ ? 0 : Below(n); }

uint32_t EveryChooser::Thread(uint32_t n, bool may_stay) {
  if (may_stay && preempted_ == preemptions_) return 0;
  const uint32_t chosen = Choose(n);
  if (may_stay && chosen != 0) ++preempted_;
  return chosen;
}

uint32_t EveryChooser::Choose(uint32_t n) {
  if (n == 1) return 0;
  if (depth_ == path_.size()) path_.push_back({0, n});
  return path_[depth_++].chosen;
}

bool EveryChooser::Next() {
  while (!path_.empty() && path_.back().chosen + 1 == path_.back().of) path_.pop_back();
  depth_ = 0;
  preempted_ = 0;
  if (path_.empty()) return false;
  ++path_.back().chosen;
  return true;
}

struct Schedule::Fiber {
  std::function<void()> body;
  Stack stack;
  ucontext_t context{};
  bool ended = false;
  bool blocked = false;
  void* sanitizer = nullptr;  // TSan: the fiber; ASan: its fake stack while it is away
};

Schedule* Schedule::current_ = nullptr;

Schedule::Schedule(Chooser& chooser, bool stale, uint64_t seed)
    : chooser_(chooser), stale_(stale), seed_(seed) {
  current_ = this;
  fibers_.push_back(std::make_unique<Fiber>());
#if defined(__SANITIZE_THREAD__)
  fibers_[0]->sanitizer = __tsan_get_current_fiber();
#endif
}

Schedule::~Schedule() {
  for (auto& free : quarantine_) free();
  for (size_t i = 1; i < fibers_.size(); ++i) FreeStacks().push_back(std::move(fibers_[i]->stack));
  current_ = nullptr;
}

void Schedule::Thread(std::function<void()> body) {
  auto fiber = std::make_unique<Fiber>();
  fiber->body = std::move(body);
  fiber->stack = TakeStack();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.bytes.get();
  fiber->context.uc_stack.ss_size = kStackBytes;
  fiber->context.uc_link = nullptr;
  makecontext(&fiber->context, &Schedule::Enter, 0);
#if defined(__SANITIZE_THREAD__)
  fiber->sanitizer = fiber->stack.tsan;
#endif
  fibers_.push_back(std::move(fiber));
}

void Schedule::Enter() {
#if defined(IDEMD_SANITIZED_ADDRESS)
  const void* from = nullptr;
  size_t from_bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &from, &from_bytes);
  if (main_stack == nullptr) {
    main_stack = from;
    main_stack_bytes = from_bytes;
  }
#endif
  Schedule& schedule = *current_;
  Fiber& fiber = *schedule.fibers_[schedule.me_];
  fiber.body();
  fiber.ended = true;
  schedule.Leave(false);
}

void Schedule::SwitchTo(uint32_t to) {
  Fiber& from = *fibers_[me_];
  Fiber& next = *fibers_[to];
  me_ = to;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(next.sanitizer, 0);
#elif defined(IDEMD_SANITIZED_ADDRESS)
  __sanitizer_start_switch_fiber(from.ended ? nullptr : &from.sanitizer,
                                 to == 0 ? main_stack : next.stack.bytes.get(),
                                 to == 0 ? main_stack_bytes : kStackBytes);
#endif
  swapcontext(&from.context, &next.context);
#if defined(IDEMD_SANITIZED_ADDRESS)
  __sanitizer_finish_switch_fiber(from.sanitizer, nullptr, nullptr);
#endif
}

void Schedule::Leave(bool may_stay) {
  std::array<uint32_t, kStepThreads> ready{};
  uint32_t n = 0;
  if (may_stay) ready[n++] = me_;
  for (uint32_t i = 1; i < fibers_.size(); ++i)
    if (!fibers_[i]->ended && !fibers_[i]->blocked && !(may_stay && i == me_)) ready[n++] = i;
  const uint32_t to = n == 0 ? 0 : ready[chooser_.Thread(n, may_stay)];
  if (to != me_) SwitchTo(to);
}

void Schedule::Run() {
  for (size_t i = 1; i < fibers_.size(); ++i) clocks_[i] = clocks_[0];
  Leave(false);
  for (size_t i = 1; i < fibers_.size(); ++i) {
    if (!fibers_[i]->ended) Fail("every thread ends; one waits for ever");
    clocks_[0].Join(clocks_[i]);
  }
}

void Schedule::Fail(std::string what) {
  if (failure_.empty()) failure_ = std::move(what);
}

void Schedule::Step() {
  ++steps_;
  ++clocks_[me_].at[me_];
  if (me_ == 0) return;
  if (steps_ > kStepsMax) {
    std::fprintf(stderr, "schedule: no end after %lu steps\n", static_cast<unsigned long>(steps_));
    std::abort();
  }
  Leave(true);
}

void Schedule::Block() {
  fibers_[me_]->blocked = true;
  Leave(false);
}

void Schedule::Unblock() {
  for (auto& fiber : fibers_) fiber->blocked = false;
}

Verdict RunSeeds(uint64_t seeds, bool stale, const Scenario& scenario) {
  uint64_t first = 1;
  if (const char* only = std::getenv("IDEMD_SEED"); only != nullptr) {
    first = std::strtoull(only, nullptr, 10);
    seeds = 1;
  }
  Verdict verdict;
  for (uint64_t seed = first; seed < first + seeds && verdict.failure.empty(); ++seed) {
    SeededChooser chooser(seed);
    Schedule schedule(chooser, stale, seed);
    scenario(schedule);
    verdict = {schedule.failure(), seed, verdict.runs + 1};
  }
  return verdict;
}

Verdict RunEvery(uint32_t preemptions, bool stale, uint64_t runs_max, const Scenario& scenario) {
  EveryChooser chooser(preemptions);
  Verdict verdict;
  do {
    Schedule schedule(chooser, stale, 0);
    scenario(schedule);
    verdict = {schedule.failure(), 0, verdict.runs + 1};
  } while (verdict.failure.empty() && verdict.runs < runs_max && chooser.Next());
  return verdict;
}

}  // namespace idemd::storage
