// Scripts of the whole server: the cache that all threads share, each thread's interpreter, and what runs just now.
//
// A script is compiled by each thread that runs it, when it first does. The cache is asked only then; what a thread has
// seen before it finds in maps of its own, which a change of generation() (SCRIPT FLUSH) empties.
//
// Threads   ForThisThread(): each thread gets its own. Everything else: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/admin/settings.h"
#include "server/commands/functions.h"
#include "server/commands/script_plan.h"
#include "server/commands/script_text.h"
#include "server/script/interpreter.h"
#include "server/session.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

class Scripts;

// A script or function that a thread runs now. Written by that thread.
struct RunningScript {
  std::atomic<int64_t> started_us{0};  // steady; 0: none
  std::atomic<bool> is_function{false};
  std::atomic<bool> busy{false};   // for longer than busy-reply-threshold
  std::atomic<bool> wrote{false};
  std::atomic<bool> killed{false};  // writer: whoever kills it
  int64_t steps = 0;  // the own thread's
  // Set before it is busy.
  storage::Mutex mutex;
  std::string name ABSL_GUARDED_BY(mutex);
  std::vector<std::string> words ABSL_GUARDED_BY(mutex);  // of the command that started it
};

// One thread's part.
class ScriptThread {
 public:
  explicit ScriptThread(Scripts& scripts);
  ~ScriptThread();
  ScriptThread(const ScriptThread&) = delete;
  ScriptThread& operator=(const ScriptThread&) = delete;

  struct Local {
    std::shared_ptr<const Script> script;
    int handle = Interpreter::kNone;
  };
  // The script of that text; null with the error reply. One that is new is compiled and put into the cache.
  Local* ForText(absl::string_view text, std::string* error);
  // Null: nobody has sent it yet.
  Local* ForSha(absl::string_view sha);
  // False with the error reply.
  bool Compile(Local& local, std::string* error);

  Interpreter& interpreter() { return *interpreter_; }
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }  // any thread

  Session session;  // the one that commands of scripts run in
  PlanRun plan_run;
  FunctionThread functions;
  RunningScript running;

 private:
  void Renew();  // after SCRIPT FLUSH
  Local* Keep(std::shared_ptr<const Script> script, int handle);

  Scripts& scripts_;
  uint64_t generation_ = 0;
  std::atomic<size_t> memory_bytes_{0};
  std::unique_ptr<Interpreter> interpreter_;
  std::vector<std::unique_ptr<Local>> locals_;
  absl::flat_hash_map<absl::string_view, Local*> by_text_;  // views into the scripts
  absl::flat_hash_map<absl::string_view, Local*> by_sha_;
};

struct ScriptTotals {
  size_t scripts = 0;
  size_t text_bytes = 0;         // of the scripts and what is kept with them
  size_t interpreter_bytes = 0;  // of all threads
  size_t libraries = 0;
  size_t functions = 0;
  size_t library_bytes = 0;
  size_t function_interpreter_bytes = 0;
};

class Scripts {
 public:
  Scripts(const Settings& settings, const CommandTable& commands);
  ~Scripts();
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;

  ScriptThread& ForThisThread();

  // --- the cache
  std::shared_ptr<const Script> Find(absl::string_view sha) const;
  // The one that is there if another thread was quicker.
  std::shared_ptr<const Script> Add(std::shared_ptr<const Script> script);
  void Flush();
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  ScriptTotals Totals() const;

  Functions& functions() { return functions_; }

  // --- what runs too long
  // Whether something does, and commands that are not for that get BUSY.
  bool busy() const { return busy_.load(std::memory_order_relaxed) != 0; }
  absl::string_view BusyError() const;
  enum class KillVerdict : uint8_t { kKilled, kNothingRuns, kHasWritten, kIsFunction, kIsScript };
  KillVerdict Kill(bool function);
  // What is busy now; false: nothing. For FUNCTION STATS.
  struct Shown {
    std::string name;
    std::vector<std::string> words;
    int64_t running_ms;
  };
  bool ShowFunction(Shown* shown) const;

  // Runs on a thread whose script is busy, again and again: it serves others for a moment.
  void SetYield(std::function<void()> yield) { yield_ = std::move(yield); }
  // For the thread's running script, after every so many steps. Not empty: it is over.
  absl::string_view Step(ScriptThread& thread, absl::string_view name, absl::Span<const absl::string_view> words);
  void Begin(ScriptThread& thread, bool function);
  void End(ScriptThread& thread);

  const Settings& settings() const { return settings_; }
  const CommandTable& commands() const { return commands_; }

 private:
  const Settings& settings_;
  const CommandTable& commands_;
  const uint64_t id_;  // no other Scripts of this process has it
  Functions functions_{settings_};
  std::atomic<uint64_t> generation_{1};
  std::atomic<int> busy_{0};
  std::function<void()> yield_;
  mutable storage::Mutex mutex_;
  absl::flat_hash_map<absl::string_view, std::shared_ptr<const Script>> by_sha_ ABSL_GUARDED_BY(mutex_);
  size_t text_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<ScriptThread>> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace idemd::server
