// The state of tracking on a connection, and its reads.
#include "server/commands/client_tracking.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/clients.h"
#include "server/commands/connection.h"
#include "server/commands/table.h"
#include "server/pubsub/tracking.h"

namespace idemd::server {
namespace {

constexpr absl::string_view kCachingOutside =
    "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled";

// Reads the words behind ON or OFF; false after an error was written.
bool ReadOptions(Context& c, Tracking::Options* options) {
  for (size_t i = 3; i < c.words.size(); ++i) {
    const absl::string_view word = c.words[i];
    const bool more = i + 1 < c.words.size();
    if (absl::EqualsIgnoreCase(word, "redirect") && more) {
      int64_t id = 0;
      if (options->redirect_id != 0) {
        c.reply.Error("ERR A client can only redirect to a single other client");
        return false;
      }
      if (!c.Int(++i, &id)) return false;
      options->redirect_id = static_cast<uint64_t>(id);
      options->redirect_to = c.services.clients.Find(options->redirect_id);
      if (options->redirect_to == nullptr) {
        c.reply.Error("ERR The client ID you want redirect to does not exist");
        return false;
      }
    } else if (absl::EqualsIgnoreCase(word, "bcast")) {
      options->broadcast = true;
    } else if (absl::EqualsIgnoreCase(word, "optin")) {
      options->opt_in = true;
    } else if (absl::EqualsIgnoreCase(word, "optout")) {
      options->opt_out = true;
    } else if (absl::EqualsIgnoreCase(word, "noloop")) {
      options->no_loop = true;
    } else if (absl::EqualsIgnoreCase(word, "prefix") && more) {
      options->prefixes.emplace_back(c.words[++i]);
    } else {
      c.Syntax();
      return false;
    }
  }
  return true;
}

bool Overlap(absl::string_view a, absl::string_view b) {
  const size_t shorter = std::min(a.size(), b.size());
  return a.substr(0, shorter) == b.substr(0, shorter);
}

// Why these prefixes cannot be added, or "".
std::string PrefixError(const Tracker* tracker, const std::vector<std::string>& prefixes) {
  constexpr absl::string_view kRule = "Prefixes for a single client must not overlap.";
  for (size_t i = 0; i < prefixes.size(); ++i) {
    if (tracker != nullptr) {
      for (const std::string& existing : tracker->prefixes) {
        if (Overlap(existing, prefixes[i])) {
          return absl::StrCat("ERR Prefix '", prefixes[i], "' overlaps with an existing prefix '", existing, "'. ",
                              kRule);
        }
      }
    }
    for (size_t j = i + 1; j < prefixes.size(); ++j) {
      if (Overlap(prefixes[i], prefixes[j])) {
        return absl::StrCat("ERR Prefix '", prefixes[i], "' overlaps with another provided prefix '", prefixes[j],
                            "'. ", kRule);
      }
    }
  }
  return {};
}

// Why tracking cannot be switched on so, or "".
std::string EnableError(const Tracker* tracker, const Tracking::Options& options) {
  constexpr absl::string_view kOffFirst =
      " mode before disabling tracking for this client, and then re-enabling it with a different mode.";
  const bool on = tracker != nullptr && tracker->on.load(std::memory_order_relaxed);
  if (!options.broadcast && !options.prefixes.empty()) return "ERR PREFIX option requires BCAST mode to be enabled";
  if (on && tracker->broadcast.load(std::memory_order_relaxed) != options.broadcast)
    return absl::StrCat("ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then "
                        "re-enabling it with a different mode.");
  if (options.broadcast && (options.opt_in || options.opt_out)) return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  if (options.opt_in && options.opt_out) return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if (on && ((options.opt_in && tracker->opt_out) || (options.opt_out && tracker->opt_in)))
    return absl::StrCat("ERR You can't switch OPTIN/OPTOUT", kOffFirst);
  return options.broadcast ? PrefixError(on ? tracker : nullptr, options.prefixes) : "";
}

// A script's own commands count, not the script.
bool IsPlainRead(const CommandSpec& spec) {
  return (spec.flags & kReadonly) != 0 && (spec.flags & kPubSub) == 0 && spec.group != Group::kScripting;
}

}  // namespace

void ClientTracking(Context& c) {
  Tracking::Options options;
  if (!ReadOptions(c, &options)) return;
  if (absl::EqualsIgnoreCase(c.words[2], "on")) {
    if (const std::string error = EnableError(c.session.tracker.get(), options); !error.empty())
      return c.reply.Error(error);
    c.services.tracking->Enable(c.session, options);
  } else if (absl::EqualsIgnoreCase(c.words[2], "off")) {
    c.services.tracking->Disable(c.session);
  } else {
    return c.Syntax();
  }
  c.reply.Ok();
}

void ClientCaching(Context& c) {
  Tracker* const tracker = c.session.tracker.get();
  if (tracker == nullptr || !tracker->on.load(std::memory_order_relaxed)) return c.reply.Error(kCachingOutside);
  const bool yes = absl::EqualsIgnoreCase(c.words[2], "yes");
  if (!yes && !absl::EqualsIgnoreCase(c.words[2], "no")) return c.Syntax();
  if (yes && !tracker->opt_in)
    return c.reply.Error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  if (!yes && !tracker->opt_out)
    return c.reply.Error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  tracker->caching = true;
  c.reply.Ok();
}

void ClientGetRedir(Context& c) { c.reply.Integer(c.session.info().redirect.load(std::memory_order_relaxed)); }

void ClientTrackingInfo(Context& c) {
  const Tracker* const tracker = c.session.tracker.get();
  const ClientInfo& info = c.session.info();
  const bool on = tracker != nullptr && tracker->on.load(std::memory_order_relaxed);
  c.reply.Map(3);
  c.reply.Bulk("flags");
  std::vector<absl::string_view> flags = {on ? "on" : "off"};
  if (on) {
    if (tracker->broadcast.load(std::memory_order_relaxed)) flags.push_back("bcast");
    if (tracker->opt_in) flags.push_back("optin");
    if (tracker->opt_in && tracker->caching) flags.push_back("caching-yes");
    if (tracker->opt_out) flags.push_back("optout");
    if (tracker->opt_out && tracker->caching) flags.push_back("caching-no");
    if (tracker->no_loop.load(std::memory_order_relaxed)) flags.push_back("noloop");
    if (info.tracking_broken.load(std::memory_order_relaxed)) flags.push_back("broken_redirect");
  }
  c.reply.Set(flags.size());
  for (const absl::string_view flag : flags) c.reply.Bulk(flag);
  c.reply.Bulk("redirect");
  c.reply.Integer(info.redirect.load(std::memory_order_relaxed));
  c.reply.Bulk("prefixes");
  c.reply.Array(tracker == nullptr ? 0 : tracker->prefixes.size());
  if (tracker == nullptr) return;
  for (const std::string& prefix : tracker->prefixes) c.reply.Bulk(prefix);
}

bool TracksReadsNow(const Session& client, const CommandSpec& spec) {
  return client.tracker->RemembersReads() && IsPlainRead(spec);
}

TrackedRead::TrackedRead(Context& c) {
  if (const auto* const declared = ClientOf(c)->script_keys; declared != nullptr) {
    for (const absl::string_view key : *declared) keys_.emplace_back(key);
    return;
  }
  std::vector<int> positions;
  if (!KeyPositions(*c.spec, c.words, positions)) return;
  for (const int position : positions) keys_.emplace_back(c.words[static_cast<size_t>(position)]);
  if (c.unit.sealed() || keys_.empty()) return;
  // A command that looks at more than the keys it names takes all the locks, and must find them taken in order.
  if ((c.spec->flags & kAnyKeys) != 0)
    c.unit.LockAll();
  else
    c.unit.LockKeys(keys_);
}

void TrackedRead::Remember(Context& c) {
  for (const storage::HashedKey& key : keys_) {
    c.unit.AtCommit([tracking = c.services.tracking.get(), name = std::string(key.bytes),
                     tracker = ClientOf(c)->tracker](storage::Lsn) { tracking->Remember(name, tracker); });
  }
}

void ForgetCaching(Session& session, const CommandEntry& entry) {
  // CLIENT is the one container about connections.
  const bool of_client = entry.parent != nullptr && entry.parent->spec->group == Group::kConnection;
  if (!of_client && session.transaction == nullptr) session.tracker->caching = false;
}

void EndTracking(Services& services, Session& session) { services.tracking->Disable(session); }

std::shared_ptr<Tracking> MakeTracking() { return std::make_shared<Tracking>(); }

}  // namespace idemd::server
