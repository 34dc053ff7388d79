// Finds what a call does to keys and channels, and asks the session's user.
#include "server/commands/acl_check.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/admin/settings.h"
#include "server/clients.h"
#include "server/commands/acl_categories.h"
#include "server/commands/connection.h"
#include "server/commands/key_flags.h"
#include "server/pubsub/pubsub.h"

namespace idemd::server {
namespace {

using Words = absl::Span<const absl::string_view>;

// What a call is held against, reused by all calls of a thread.
struct Buffers {
  std::vector<int> positions;
  std::vector<acl::KeyUse> keys;
  std::vector<acl::ChannelUse> channels;
};
thread_local Buffers buffers;

acl::Access AccessOf(absl::string_view flags) {
  acl::Access access = 0;
  if (absl::StrContains(flags, "ACCESS")) access |= acl::kRead;
  for (absl::string_view change : {"INSERT", "UPDATE", "DELETE"}) {
    if (absl::StrContains(flags, change)) access |= acl::kWrite;
  }
  return access;
}

void GatherKeys(const CommandSpec& spec, Words words) {
  if (!KeyPositions(spec, words, buffers.positions)) return;
  for (const int position : buffers.positions) {
    const absl::string_view flags = KeyFlagsAt(spec, words, position);
    if (absl::StrContains(flags, "NOT_KEY")) continue;
    const auto place = static_cast<size_t>(position);
    buffers.keys.push_back({words[place], AccessOf(flags), place, spec.keys_are_prefixes});
  }
}

void GatherChannels(const CommandSpec& spec, Words words) {
  const size_t end = spec.channels == Channels::kFirst ? 2 : words.size();
  for (size_t i = 1; i < end; ++i)
    buffers.channels.push_back({words[i], spec.channels == Channels::kAllPatterns, i});
}

void Note(Services& services, const Session& session, acl::Denials::Entry entry) {
  entry.client = ClientLine(services.commands, session.peer->info());
  entry.at_ms = acl::Denials::NowMs();
  const int64_t most = services.settings.acllog_max_len.load(std::memory_order_relaxed);
  services.users->denials().Add(std::move(entry), static_cast<size_t>(most));
}

const char* ReasonOf(acl::Verdict verdict) {
  switch (verdict) {
    case acl::Verdict::kAllowed:
      return "";
    case acl::Verdict::kCommand:
      return "command";
    case acl::Verdict::kKey:
      return "key";
    case acl::Verdict::kChannel:
      return "channel";
  }
  return "";
}

void End(Session& session, Peer& peer) {
  peer.info().closing.store(true, std::memory_order_relaxed);
  if (peer.info().id == session.info().id)
    session.close_after_reply = true;
  else
    peer.Kill();
}

}  // namespace

CallParts::CallParts(const CommandEntry& entry, Words words, const acl::User& user) {
  buffers.keys.clear();
  buffers.channels.clear();
  if (user.limits_keys()) GatherKeys(*entry.spec, words);
  if (entry.spec->channels != Channels::kNone && user.limits_channels()) GatherChannels(*entry.spec, words);
  call_ = {entry.ordinal, words, buffers.keys, buffers.channels};
}

void RefreshRights(Services& services, Session& session) {
  if (session.trusted || session.rights_version == services.users->version()) return;
  acl::Users::Seen seen = services.users->Find(session.user);
  session.rights = std::move(seen.user);
  session.rights_version = seen.version;
  session.restricted = session.rights == nullptr || !session.rights->unrestricted();
}

acl::Verdict CheckRights(Services& services, Session& session, const CommandEntry& entry, Words words,
                         const char* context) {
  RefreshRights(services, session);
  if (!session.restricted) return acl::Verdict::kAllowed;
  if (session.rights == nullptr) {
    session.close_after_reply = true;
    return acl::Verdict::kCommand;
  }
  size_t word = 0;
  const CallParts parts(entry, words, *session.rights);
  const acl::Verdict verdict = session.rights->Check(services.users->catalog(), parts.call(), &word);
  if (verdict == acl::Verdict::kAllowed) return verdict;
  const bool of_command = verdict == acl::Verdict::kCommand;
  Note(services, session,
       {.reason = ReasonOf(verdict),
        .context = context,
        .object = of_command ? entry.full_name : std::string(words[word]),
        .user = session.user});
  return verdict;
}

bool MayCallNow(Services& services, Session& session, const CommandEntry& entry, Words words) {
  RefreshRights(services, session);
  if (!session.restricted) return true;
  if (session.rights == nullptr) return false;
  size_t word = 0;
  const CallParts parts(entry, words, *session.rights);
  return session.rights->Check(services.users->catalog(), parts.call(), &word) == acl::Verdict::kAllowed;
}

bool MayReadAllKeys(Services& services, Session& session, const CommandSpec& spec, Words words) {
  RefreshRights(services, session);
  if (!session.restricted) return true;
  if (session.rights == nullptr) return false;
  const CallParts parts(services.commands.EntryOf(spec), words, *session.rights);
  return session.rights->MayReadAllKeys(services.users->catalog(), parts.call());
}

void LogFailedLogin(Services& services, Session& session, absl::string_view user, absl::string_view command) {
  Note(services, session,
       {.reason = "auth",
        .context = session.transaction != nullptr ? "multi" : "toplevel",
        .object = std::string(command),
        .user = std::string(user)});
}

std::string DenialText(acl::Verdict verdict, const CommandEntry& entry) {
  switch (verdict) {
    case acl::Verdict::kAllowed:
      return {};
    case acl::Verdict::kCommand:
      return absl::StrCat("NOPERM this user has no permissions to run the '", entry.full_name, "' command");
    case acl::Verdict::kKey:
      return "NOPERM this user has no permissions to access one of the keys used as arguments";
    case acl::Verdict::kChannel:
      return "NOPERM this user has no permissions to access one of the channels used as arguments";
  }
  return {};
}

void EndConnectionsOf(Services& services, Session& session, absl::string_view name) {
  for (const auto& peer : services.clients.All()) {
    {
      storage::MutexLock lock(peer->info().mutex);
      if (peer->info().user != name) continue;
    }
    End(session, *peer);
  }
}

void EndForbiddenSubscribers(Services& services, Session& session, const acl::User& user) {
  if (services.pubsub->idle() || !user.limits_channels()) return;
  std::vector<std::shared_ptr<Peer>> listeners;
  services.pubsub->ForEachSubscription([&](absl::string_view channel, bool pattern, Peer& peer) {
    if (user.AllowsChannel(channel, pattern)) return;
    storage::MutexLock lock(peer.info().mutex);
    if (peer.info().user == user.name()) listeners.push_back(peer.shared_from_this());
  });
  for (const std::shared_ptr<Peer>& peer : listeners) End(session, *peer);
}

std::shared_ptr<acl::Users> MakeUsers(Settings& settings, const CommandTable& commands) {
  acl::Catalog catalog(CategoryNames());
  for (const CommandEntry* entry : commands.all()) {
    catalog.Add({.name = entry->full_name,
                 .parent = entry->parent == nullptr ? acl::kNoCommand : entry->parent->ordinal,
                 .categories = CategoriesOf(*entry->spec),
                 .always = (entry->spec->flags & kNoAuth) != 0});
  }
  auto users = std::make_shared<acl::Users>(std::move(catalog), [&settings](bool open) {
    settings.has_password.store(!open, std::memory_order_relaxed);
  });
  users->SetDefaultPassword(settings.requirepass());
  settings.OnChange({"requirepass"}, [&settings, users] {
    users->SetDefaultPassword(settings.requirepass());
    return absl::OkStatus();
  });
  settings.OnChange({"acl-pubsub-default"}, [&settings, users] {
    users->all_channels.store(settings.acl_pubsub_default.load(std::memory_order_relaxed) == kAllChannels,
                              std::memory_order_relaxed);
    return absl::OkStatus();
  });
  return users;
}

}  // namespace idemd::server
