// One running script, as its commands see it: each is looked up, checked by Redis' rules for scripts, and run in the script's own
// unit of storage.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/commands/command_timer.h"
#include "server/commands/context.h"
#include "server/commands/scripts.h"
#include "server/commands/table.h"
#include "server/script/interpreter.h"

namespace idemd::server {

class ScriptCalls final : public ScriptHost {
 public:
  struct Rules {
    absl::string_view name;   // of the script, for the log
    bool read_only = false;   // by its flags, or by the command that runs it
    bool allow_oom = false;
    bool all_locked = false;  // else only keys that the unit holds may be touched
    std::atomic<bool>* keys_are_declared = nullptr;  // cleared when a key is not held
  };
  // From here to the destructor the script runs, for SCRIPT KILL and its kin.
  ScriptCalls(Context& outer, ScriptThread& thread, bool function, const Rules& rules);
  ~ScriptCalls() override;

  void Call(absl::Span<const absl::string_view> words, int resp, std::string& reply) override;
  absl::string_view Step() override;
  Verdict MayCall(absl::Span<const absl::string_view> words) override;
  void Log(int level, absl::string_view text) override;

  // The next calls get these replies instead of being run: they were run before, by a plan that gave up.
  void Repeat(absl::Span<const std::string* const> replies) { repeated_ = replies; }
  // As Call(), for a command that was found when the script was read.
  void Run(const CommandEntry& entry, absl::Span<const absl::string_view> words, int resp, std::string& reply);

 private:
  const CommandEntry* Find(absl::Span<const absl::string_view> words, const CommandEntry** container) const;
  // Why the command must not run, or "".
  std::string Refusal(const CommandEntry& entry, absl::Span<const absl::string_view> words) const;
  bool HoldsKeys(const CommandSpec& spec, absl::Span<const absl::string_view> words, const storage::HashedKey& first) const;
  void Refuse(const CommandEntry* entry, absl::string_view error, std::string& reply);

  Context& outer_;
  Scripts& scripts_;
  ScriptThread& thread_;
  const Rules rules_;
  absl::Span<const std::string* const> repeated_;
  CommandTimer timer_;
};

}  // namespace idemd::server
