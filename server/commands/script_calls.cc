// Checks and runs the commands of a script.
#include "server/commands/script_calls.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "server/admin/log.h"
#include "server/admin/stats.h"
#include "server/commands/acl_check.h"
#include "server/commands/dispatch.h"
#include "server/commands/transaction.h"

namespace idemd::server {
namespace {

namespace errors = protocol::errors;
using Words = absl::Span<const absl::string_view>;

absl::string_view WhyDenied(acl::Verdict verdict) {
  switch (verdict) {
    case acl::Verdict::kAllowed:
      return "";
    case acl::Verdict::kCommand:
      return "ERR The user executing the script can't run this command or subcommand";
    case acl::Verdict::kKey:
      return "ERR The user executing the script can't access at least one of the keys mentioned in the command "
             "arguments";
    case acl::Verdict::kChannel:
      return "ERR The user executing the script can't publish to the channel mentioned in the command";
  }
  return "";
}

}  // namespace

ScriptCalls::ScriptCalls(Context& outer, ScriptThread& thread, bool function, const Rules& rules)
    : outer_(outer), scripts_(*outer.services.scripts), thread_(thread), rules_(rules), timer_(*outer.thread_stats) {
  scripts_.Begin(thread_, function);
  Session& session = thread_.session;
  session.peer = outer.session.peer;
  session.db = outer.session.db;
  session.no_touch = outer.session.no_touch;
  session.in_script = true;
  if (session.user != outer.session.user) session.user = outer.session.user;
  session.rights = outer.session.rights;
  session.rights_version = outer.session.rights_version;
  session.restricted = outer.session.restricted;
}

ScriptCalls::~ScriptCalls() {
  scripts_.End(thread_);
  Session& session = thread_.session;
  session.peer.reset();
  session.rights.reset();
  session.close_after_reply = false;
  for (auto& line : session.shown) outer_.session.shown.push_back(std::move(line));
  session.shown.clear();
}

const CommandEntry* ScriptCalls::Find(Words words, const CommandEntry** container) const {
  const CommandTable& commands = outer_.services.commands;
  const CommandEntry* const entry = commands.Find(words[0]);
  if (entry == nullptr || entry->subcommands.empty() || words.size() < 2) return entry;
  *container = entry;
  return commands.FindSubcommand(*entry, words[1]);
}

void ScriptCalls::Refuse(const CommandEntry* entry, absl::string_view error, std::string& reply) {
  protocol::Writer(reply, 2).Error(error);
  outer_.thread_stats->OnError(error.substr(0, error.find(' ')));
  if (entry != nullptr) outer_.thread_stats->OnRejected(entry->ordinal);
}

std::string ScriptCalls::Refusal(const CommandEntry& entry, Words words) const {
  const CommandSpec& spec = *entry.spec;
  if (!ArityFits(spec, words.size()) || spec.handler == nullptr)
    return "ERR Wrong number of args calling Redis command from script";
  if ((spec.flags & kNoScript) != 0) return "ERR This Redis command is not allowed from script";
  if (!MayDoEverything(outer_.services, thread_.session)) [[unlikely]] {
    const acl::Verdict verdict = CheckRights(outer_.services, thread_.session, entry, words, "lua");
    if (verdict != acl::Verdict::kAllowed) return std::string(WhyDenied(verdict));
  }
  if ((spec.flags & (kWrite | kMayReplicate)) != 0 && rules_.read_only)
    return "ERR Write commands are not allowed from read-only scripts.";
  if ((spec.flags & kWrite) != 0) {
    if (std::string refusal = WriteRefusal(outer_.services); !refusal.empty()) return refusal;
  }
  // In the middle of its writes a script is not stopped.
  if ((spec.flags & kDenyOom) != 0 && !rules_.allow_oom && !thread_.running.wrote.load(std::memory_order_relaxed) &&
      outer_.services.store.OverMemoryLimit())
    return std::string(errors::kOutOfMemory);
  return {};
}

bool ScriptCalls::HoldsKeys(const CommandSpec& spec, Words words, const storage::HashedKey& first) const {
  if (spec.keys.first == 0 && spec.find_keys == nullptr) return (spec.flags & kAnyKeys) == 0;
  if (spec.find_keys == nullptr && (spec.flags & kAnyKeys) == 0 && spec.keys.last == spec.keys.first)
    return outer_.unit.Holds(first);
  // Those whose keys must be looked for may look at others, too.
  std::vector<int> positions;
  if ((spec.flags & kAnyKeys) != 0 || spec.find_keys != nullptr || !KeyPositions(spec, words, positions)) return false;
  for (int position : positions)
    if (!outer_.unit.Holds(storage::HashedKey(words[static_cast<size_t>(position)]))) return false;
  return true;
}

void ScriptCalls::Call(Words words, int resp, std::string& reply) {
  if (!repeated_.empty()) {
    reply += *repeated_.front();
    repeated_.remove_prefix(1);
    return;
  }
  const CommandEntry* container = nullptr;
  const CommandEntry* const entry = Find(words, &container);
  if (entry == nullptr) return Refuse(container, "ERR Unknown Redis command called from script", reply);
  Run(*entry, words, resp, reply);
}

void ScriptCalls::Run(const CommandEntry& entry, Words words, int resp, std::string& reply) {
  if (const std::string refusal = Refusal(entry, words); !refusal.empty()) return Refuse(&entry, refusal, reply);
  const CommandSpec& spec = *entry.spec;
  int first_key = spec.keys.first;
  storage::HashedKey hashed;
  if (first_key != 0 && words.size() > static_cast<size_t>(first_key)) {
    hashed = storage::HashedKey(words[static_cast<size_t>(first_key)]);
  } else {
    first_key = 0;
  }
  if (!rules_.all_locked && !HoldsKeys(spec, words, hashed)) {
    // The next run takes all locks.
    if (rules_.keys_are_declared != nullptr) rules_.keys_are_declared->store(false, std::memory_order_relaxed);
    return Refuse(&entry, "ERR the script touches a key that it was taken not to touch; run it again", reply);
  }
  if ((spec.flags & kWrite) != 0) thread_.running.wrote.store(true, std::memory_order_relaxed);
  protocol::Writer writer(reply, resp);
  writer.set_limit(static_cast<size_t>(outer_.services.settings.proto_max_reply_bytes.load(std::memory_order_relaxed)));
  Context inner{outer_.services, thread_.session, outer_.unit, writer, words, &spec, first_key, hashed,
                outer_.thread_stats};
  RunHandler(inner, entry, timer_);
  if (!writer.cut()) return;
  reply.clear();
  writer.Error(protocol::errors::kReplyTooLong);
}

absl::string_view ScriptCalls::Step() { return scripts_.Step(thread_, rules_.name, outer_.words); }

ScriptHost::Verdict ScriptCalls::MayCall(Words words) {
  const CommandEntry* container = nullptr;
  const CommandEntry* const entry = Find(words, &container);
  if (entry == nullptr) return Verdict::kUnknown;
  return MayCallNow(outer_.services, thread_.session, *entry, words) ? Verdict::kAllowed : Verdict::kDenied;
}

void ScriptCalls::Log(int level, absl::string_view text) {
  switch (level) {
    case 0:
      return LogDebug(text);
    case 1:
      return LogVerbose(text);
    case 2:
      return LogNotice(text);
    default:
      return LogWarning(text);
  }
}

}  // namespace idemd::server
