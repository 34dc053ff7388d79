// One Lua state in a sandbox: compiles scripts once, runs them with an eye on memory and time, and speaks RESP on both
// sides.
//
// LuaJIT with its compiler off: compiled loops could not be interrupted. What a script may reach is in sandbox.h; its
// `redis` table is in redis_library.cc; its commands go to a ScriptHost.
//
// Threads   one, the one that made it; one script at a time.
// Memory    Lua's own is bounded. A script that wants more ends with an error, like one that runs for too long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "protocol/resp/writer.h"

struct lua_State;
struct lua_Debug;

namespace idemd::server {

// What a library says of one of its functions.
struct RegisteredFunction {
  absl::string_view name;
  bool has_description = false;
  absl::string_view description = {};
  uint32_t flags = 0;  // ScriptFlag
  int handle;          // to be forgotten by whoever takes it
};

// What a script asks of the server.
class ScriptHost {
 public:
  enum class Verdict : uint8_t { kAllowed, kDenied, kUnknown };

  virtual ~ScriptHost() = default;
  // Runs one command and appends its reply, in the given version of the protocol.
  virtual void Call(absl::Span<const absl::string_view> words, int resp, std::string& reply) = 0;
  // Asked after every so many steps. Not empty: the script ends with this error, whatever it does about it.
  virtual absl::string_view Step() = 0;
  // Whether the caller may run this command (redis.acl_check_cmd).
  virtual Verdict MayCall(absl::Span<const absl::string_view> words) = 0;
  virtual void Log(int level, absl::string_view text) = 0;
  // FUNCTION LOAD only: "" or why the function cannot be.
  virtual std::string Register(const RegisteredFunction&) {
    return "redis.register_function can only be called on FUNCTION LOAD command";
  }
};

// One run of a script.
struct ScriptRun {
  ScriptHost& host;
  absl::Span<const absl::string_view> keys;
  absl::Span<const absl::string_view> args;
  absl::string_view name;      // in errors: "script: NAME, on @user_script:LINE."
  int resp = 2;                // of commands' replies: redis.setresp
  bool error_counted = false;  // out: the reply is an error that redis.call or pcall has given before
};

class Interpreter {
 public:
  enum class Kind : uint8_t { kScripts, kFunctions };
  static constexpr int kNone = -2;  // no compiled script
  static constexpr int kStepsPerLook = 100'000;  // between two ScriptHost::Step()

  // `used_bytes` tells other threads how much it has.
  Interpreter(Kind kind, std::atomic<size_t>& used_bytes, size_t memory_bytes_max);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // A handle of the compiled text, or kNone and what Lua says: "user_script:1: '=' expected near 'x'".
  int Compile(absl::string_view text, std::string* error);
  void Forget(int handle);
  // Writes exactly one reply.
  void Run(int handle, ScriptRun& run, protocol::Writer& reply);
  // FUNCTION LOAD: runs a compiled library, whose functions go to host.Register(). Empty, or the error.
  std::string Load(int handle, ScriptHost& host);

  size_t memory_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  // Gives back what no script refers to any more.
  void Collect();

  // --- for the libraries
  static Interpreter& Of(lua_State* lua);
  ScriptRun* run() { return run_; }      // null outside of Run()
  ScriptHost* host() { return host_; }   // of Run() and Load()
  bool loading() const { return loading_; }
  Kind kind() const { return kind_; }

  // redis.call's own room, kept from call to call.
  std::vector<absl::string_view> call_words;
  std::vector<char> number_texts;
  std::string call_reply;
  std::string packed;          // of cmsgpack
  uint64_t random_state = 0;  // of math.random

 private:
  static void* Allocate(void* self, void* block, size_t old_bytes, size_t new_bytes);
  static void OnCount(lua_State* lua, lua_Debug*);
  static int Main(lua_State* lua);
  static int LoadMain(lua_State* lua);
  void ReplyError(ScriptRun& run, protocol::Writer& reply);

  const Kind kind_;
  lua_State* lua_ = nullptr;
  std::atomic<size_t>& used_bytes_;  // writer: the own thread; readers: INFO
  size_t bytes_max_ = SIZE_MAX;
  ScriptRun* run_ = nullptr;
  ScriptHost* host_ = nullptr;
  bool loading_ = false;
};

}  // namespace idemd::server
