// Libraries of functions: what the server has of them, and what each thread has loaded of that.
//
// The text of a library is the server's; every thread runs it once in an interpreter of its own, before its first call
// after a change. So what a library keeps in its locals, it keeps for each thread apart.
//
// Threads   Functions: any. FunctionThread: its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "server/admin/settings.h"
#include "server/script/interpreter.h"
#include "storage/sync/mutex.h"

namespace idemd::server {

struct LibraryFunction {
  std::string name;
  bool has_description = false;
  std::string description;
  uint32_t flags = 0;  // ScriptFlag
};

struct Library {
  std::string name;
  std::string text;
  std::vector<LibraryFunction> functions;
  // What Lua compiles: without the words of the first line.
  absl::string_view code() const { return absl::string_view(text).substr(text.find('\n')); }
};

using Libraries = std::map<std::string, std::shared_ptr<const Library>>;

// What becomes of a library that is restored under a name that is taken.
enum class RestorePolicy : uint8_t { kAppend, kReplace, kFlush };

class FunctionThread;

class Functions {
 public:
  explicit Functions(const Settings& settings) : settings_(settings) {}
  Functions(const Functions&) = delete;
  Functions& operator=(const Functions&) = delete;

  // Loads one library, or all of `texts`; "" or the error reply. The thread's interpreter tries them out.
  std::string Load(FunctionThread& thread, absl::string_view text, bool replace, std::string* name);
  std::string Restore(FunctionThread& thread, const std::vector<std::string>& texts, RestorePolicy policy);
  bool Delete(absl::string_view name);
  void Flush();

  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  // All there are, by name.
  Libraries All() const;
  const Settings& settings() const { return settings_; }

 private:
  // Adds to `libraries`; "" or the error.
  std::string Add(FunctionThread& thread, absl::string_view text, bool replace, Libraries* libraries, std::string* name);
  void Become(Libraries libraries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Settings& settings_;
  std::atomic<uint64_t> generation_{1};
  mutable storage::Mutex mutex_;
  Libraries libraries_ ABSL_GUARDED_BY(mutex_);
};

class FunctionThread {
 public:
  explicit FunctionThread(Functions& functions) : functions_(functions) {}
  FunctionThread(const FunctionThread&) = delete;
  FunctionThread& operator=(const FunctionThread&) = delete;

  struct Function {
    std::string name;  // as it was registered
    uint32_t flags = 0;
    int handle = Interpreter::kNone;
  };
  // Any case; null: there is none. Loads what is new.
  const Function* Find(absl::string_view name);
  // Runs the library's text and sees what it registers: "" or why it cannot be.
  std::string TryOut(Library* library);

  Interpreter& interpreter();
  size_t memory_bytes() const { return memory_bytes_.load(std::memory_order_relaxed); }  // any thread

 private:
  struct Loaded {
    std::shared_ptr<const Library> library;
    std::vector<std::string> names;  // lower case
  };
  class Loading;
  void Update();
  void Unload(const Loaded& loaded);

  Functions& functions_;
  uint64_t generation_ = 0;
  std::atomic<size_t> memory_bytes_{0};
  std::unique_ptr<Interpreter> interpreter_;  // made when first needed
  absl::flat_hash_map<std::string, Loaded> libraries_;
  absl::flat_hash_map<std::string, Function> by_name_;  // lower case
};

}  // namespace idemd::server
