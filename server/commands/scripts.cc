// The cache of scripts, the threads' interpreters, and the rule for scripts that run too long.
#include "server/commands/scripts.h"

#include <chrono>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/admin/log.h"
#include "server/check.h"
#include "server/script/sha1.h"

namespace idemd::server {
namespace {

// What the cache keeps of a script besides its text, roughly.
constexpr size_t kLibraryOverheadBytes = sizeof(Library) + 128;
constexpr size_t kScriptOverheadBytes = sizeof(Script) + kSha1HexBytes + 64;

std::atomic<uint64_t> next_id{1};

// This thread's part of the Scripts with that id.
thread_local uint64_t own_id = 0;
thread_local ScriptThread* own_thread = nullptr;

int64_t SteadyUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

// --- one thread

ScriptThread::ScriptThread(Scripts& scripts) : functions(scripts.functions()), scripts_(scripts) { Renew(); }
ScriptThread::~ScriptThread() = default;

void ScriptThread::Renew() {
  generation_ = scripts_.generation();
  by_text_.clear();
  by_sha_.clear();
  locals_.clear();
  interpreter_.reset();
  interpreter_ = std::make_unique<Interpreter>(
      Interpreter::Kind::kScripts, memory_bytes_,
      static_cast<size_t>(scripts_.settings().script_memory_bytes_max.load(std::memory_order_relaxed)));
}

ScriptThread::Local* ScriptThread::Keep(std::shared_ptr<const Script> script, int handle) {
  locals_.push_back(std::make_unique<Local>(Local{std::move(script), handle}));
  Local* const local = locals_.back().get();
  by_text_.emplace(local->script->text, local);
  by_sha_.emplace(local->script->sha, local);
  return local;
}

bool ScriptThread::Compile(Local& local, std::string* error) {
  if (local.handle != Interpreter::kNone) return true;
  std::string said;
  local.handle = interpreter_->Compile(local.script->code, &said);
  if (local.handle != Interpreter::kNone) return true;
  *error = absl::StrCat("ERR Error compiling script (new function): ", said);
  return false;
}

ScriptThread::Local* ScriptThread::ForText(absl::string_view text, std::string* error) {
  if (generation_ != scripts_.generation()) Renew();
  if (const auto it = by_text_.find(text); it != by_text_.end()) return it->second;
  if (std::shared_ptr<const Script> known = scripts_.Find(Sha1Hex(text)); known != nullptr)
    return Keep(std::move(known), Interpreter::kNone);
  std::shared_ptr<Script> fresh = ReadScript(scripts_.commands(), text, error);
  if (fresh == nullptr) return nullptr;
  Local local{fresh, Interpreter::kNone};
  // What is a plan is Lua, too; it is compiled when the plan gives up.
  if (fresh->plan == nullptr && !Compile(local, error)) return nullptr;
  return Keep(scripts_.Add(std::move(fresh)), local.handle);
}

ScriptThread::Local* ScriptThread::ForSha(absl::string_view sha) {
  if (sha.size() != kSha1HexBytes) return nullptr;
  if (generation_ != scripts_.generation()) Renew();
  char lower[kSha1HexBytes];
  for (size_t i = 0; i < kSha1HexBytes; ++i) lower[i] = absl::ascii_tolower(static_cast<unsigned char>(sha[i]));
  const absl::string_view name(lower, kSha1HexBytes);
  if (const auto it = by_sha_.find(name); it != by_sha_.end()) return it->second;
  std::shared_ptr<const Script> known = scripts_.Find(name);
  return known == nullptr ? nullptr : Keep(std::move(known), Interpreter::kNone);
}

// --- all threads

Scripts::Scripts(const Settings& settings, const CommandTable& commands)
    : settings_(settings), commands_(commands), id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}
Scripts::~Scripts() = default;

ScriptThread& Scripts::ForThisThread() {
  if (own_id == id_) return *own_thread;
  auto fresh = std::make_unique<ScriptThread>(*this);
  own_id = id_;
  own_thread = fresh.get();
  storage::MutexLock lock(mutex_);
  threads_.push_back(std::move(fresh));
  return *own_thread;
}

std::shared_ptr<const Script> Scripts::Find(absl::string_view sha) const {
  storage::MutexLock lock(mutex_);
  const auto it = by_sha_.find(sha);
  return it == by_sha_.end() ? nullptr : it->second;
}

std::shared_ptr<const Script> Scripts::Add(std::shared_ptr<const Script> script) {
  storage::MutexLock lock(mutex_);
  const auto [it, added] = by_sha_.emplace(script->sha, script);
  if (added) text_bytes_ += script->text.capacity() + kScriptOverheadBytes;
  return it->second;
}

void Scripts::Flush() {
  storage::MutexLock lock(mutex_);
  by_sha_.clear();
  text_bytes_ = 0;
  generation_.fetch_add(1, std::memory_order_release);
}

ScriptTotals Scripts::Totals() const {
  ScriptTotals totals;
  for (const auto& [name, library] : functions_.All()) {
    ++totals.libraries;
    totals.functions += library->functions.size();
    totals.library_bytes += library->text.capacity() + kLibraryOverheadBytes;
  }
  storage::MutexLock lock(mutex_);
  totals.scripts = by_sha_.size();
  totals.text_bytes = text_bytes_;
  for (const auto& thread : threads_) {
    totals.interpreter_bytes += thread->memory_bytes();
    totals.function_interpreter_bytes += thread->functions.memory_bytes();
  }
  return totals;
}

// --- what runs too long

void Scripts::Begin(ScriptThread& thread, bool function) {
  RunningScript& running = thread.running;
  IDEMD_CHECK(running.started_us.load(std::memory_order_relaxed) == 0, "a thread runs one script at a time");
  running.is_function.store(function, std::memory_order_relaxed);
  running.wrote.store(false, std::memory_order_relaxed);
  running.killed.store(false, std::memory_order_relaxed);
  running.steps = 0;
  running.started_us.store(SteadyUs(), std::memory_order_release);
}

void Scripts::End(ScriptThread& thread) {
  RunningScript& running = thread.running;
  if (running.busy.load(std::memory_order_relaxed)) {
    busy_.fetch_sub(1, std::memory_order_relaxed);
    running.busy.store(false, std::memory_order_release);
  }
  running.started_us.store(0, std::memory_order_release);
}

absl::string_view Scripts::Step(ScriptThread& thread, absl::string_view name, absl::Span<const absl::string_view> words) {
  RunningScript& running = thread.running;
  running.steps += Interpreter::kStepsPerLook;
  const int64_t steps_max = settings_.script_steps_max.load(std::memory_order_relaxed);
  if (steps_max > 0 && running.steps > steps_max) return "ERR the script takes more steps than script-max-steps allows";
  const int64_t threshold_ms = settings_.busy_reply_threshold_ms.load(std::memory_order_relaxed);
  const int64_t running_us = SteadyUs() - running.started_us.load(std::memory_order_relaxed);
  if (!running.busy.load(std::memory_order_relaxed)) {
    if (threshold_ms <= 0 || running_us < threshold_ms * 1000) return {};
    {
      storage::MutexLock lock(running.mutex);
      running.name.assign(name.data(), name.size());
      running.words.clear();
      for (absl::string_view word : words) running.words.emplace_back(word);
    }
    running.busy.store(true, std::memory_order_release);
    busy_.fetch_add(1, std::memory_order_relaxed);
    LogWarning(absl::StrCat("Slow script detected: still in execution after ", running_us / 1000,
                            " milliseconds. You can try killing the script using the ",
                            running.is_function.load(std::memory_order_relaxed) ? "FUNCTION KILL" : "SCRIPT KILL",
                            " command. Script name is: ", name, "."));
  }
  if (yield_ != nullptr) yield_();
  if (!running.killed.load(std::memory_order_acquire)) return {};
  return "ERR Script killed by user with SCRIPT KILL...";
}

absl::string_view Scripts::BusyError() const {
  storage::MutexLock lock(mutex_);
  for (const auto& thread : threads_) {
    const RunningScript& running = thread->running;
    if (running.busy.load(std::memory_order_acquire) && running.is_function.load(std::memory_order_relaxed))
      return "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE.";
  }
  return "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
}

Scripts::KillVerdict Scripts::Kill(bool function) {
  storage::MutexLock lock(mutex_);
  KillVerdict verdict = KillVerdict::kNothingRuns;
  for (const auto& thread : threads_) {
    RunningScript& running = thread->running;
    if (!running.busy.load(std::memory_order_acquire)) continue;
    if (running.wrote.load(std::memory_order_relaxed)) {
      if (verdict != KillVerdict::kKilled) verdict = KillVerdict::kHasWritten;
    } else if (running.is_function.load(std::memory_order_relaxed) != function) {
      if (verdict == KillVerdict::kNothingRuns) verdict = function ? KillVerdict::kIsScript : KillVerdict::kIsFunction;
    } else {
      running.killed.store(true, std::memory_order_release);
      LogNotice("Lua script killed by user with SCRIPT KILL.");
      verdict = KillVerdict::kKilled;
    }
  }
  return verdict;
}

bool Scripts::ShowFunction(Shown* shown) const {
  storage::MutexLock lock(mutex_);
  for (const auto& thread : threads_) {
    RunningScript& running = thread->running;
    if (!running.busy.load(std::memory_order_acquire) || !running.is_function.load(std::memory_order_relaxed)) continue;
    storage::MutexLock names(running.mutex);
    shown->name = running.name;
    shown->words = running.words;
    shown->running_ms = (SteadyUs() - running.started_us.load(std::memory_order_acquire)) / 1000;
    return true;
  }
  return false;
}

}  // namespace idemd::server
