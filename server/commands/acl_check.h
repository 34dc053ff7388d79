// Whether a session's user may make a call: commands, keys, channels.
//
// Rights are those of an immutable copy that the session keeps. It is looked up again when any user has changed, so
// that a change counts from the next command on, and whoever may do everything pays for one load and one flag.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/acl/users.h"
#include "server/commands/services.h"
#include "server/commands/table.h"
#include "server/session.h"

namespace idemd::server {

// The keys and channels of a call, found in its words. Views.
class CallParts {
 public:
  // Those that a check of the user looks at; the buffers are this thread's until the next one is made.
  CallParts(const CommandEntry& entry, absl::Span<const absl::string_view> words, const acl::User& user);
  const acl::Call& call() const { return call_; }

 private:
  acl::Call call_;
};

// False: CheckRights() has to be asked.
inline bool MayDoEverything(const Services& services, const Session& session) {
  return session.rights_version == services.users->version() && !session.restricted;
}

// Looks the session's user up again if there was a change. A user that is gone has no rights, and its connection ends.
void RefreshRights(Services& services, Session& session);

// Whether the session's user may. What is denied is put into ACL LOG; `context` is "toplevel", "multi" or "lua".
acl::Verdict CheckRights(Services& services, Session& session, const CommandEntry& entry,
                         absl::Span<const absl::string_view> words, const char* context);
// The same question, of which nothing is noted.
bool MayCallNow(Services& services, Session& session, const CommandEntry& entry,
                absl::Span<const absl::string_view> words);
// Whether the user may make the call and read any key besides (SORT BY and GET).
bool MayReadAllKeys(Services& services, Session& session, const CommandSpec& spec,
                    absl::Span<const absl::string_view> words);
// A login that failed.
void LogFailedLogin(Services& services, Session& session, absl::string_view user, absl::string_view command);

// The reply when a command is denied.
std::string DenialText(acl::Verdict verdict, const CommandEntry& entry);

// Ends the connections of a user: all, or those that listen to what `user` may not hear. The own one has its reply
// first.
void EndConnectionsOf(Services& services, Session& session, absl::string_view name);
void EndForbiddenSubscribers(Services& services, Session& session, const acl::User& user);

}  // namespace idemd::server
