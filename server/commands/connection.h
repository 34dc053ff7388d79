// What several commands do to a connection: log it in, name it, put it back to how it began.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/admin/settings.h"
#include "server/commands/services.h"
#include "server/session.h"

namespace idemd::server {

struct Context;

// Logs the session in when user and password fit; else says so in ACL LOG.
[[nodiscard]] bool Authenticate(Context& c, absl::string_view user, absl::string_view password);
// Makes the session the default user's, as a new connection is.
void BecomeDefaultUser(Services& services, Session& session);

// Names have no blanks, line ends or other bytes that would break the lines of CLIENT LIST.
bool IsClientName(absl::string_view name);
void SetClientName(Session& session, absl::string_view name);
void SelectDb(Session& session, storage::DbIndex db);
void SetProtocol(Session& session, int resp);
// The line of CLIENT LIST, without its end.
std::string ClientLine(const CommandTable& commands, const ClientInfo& info);
// Ends all subscriptions without a word (pubsub_commands.cc).
void EndSubscriptions(Services& services, Session& session);
// Ends CLIENT TRACKING (client_tracking.cc).
void EndTracking(Services& services, Session& session);

}  // namespace idemd::server
