// What several commands do to a connection: log it in, name it, put it back to how it began.
#pragma once

#include "absl/strings/string_view.h"
#include "server/admin/settings.h"
#include "server/commands/services.h"
#include "server/session.h"

namespace idemd::server {

// Logs the session in when user and password fit. There is one user, "default"; without a password
// set, any will do.
[[nodiscard]] bool Authenticate(Services& services, Session& session, absl::string_view user,
                                absl::string_view password);

// Names have no blanks, line ends or other bytes that would break the lines of CLIENT LIST.
bool IsClientName(absl::string_view name);
void SetClientName(Session& session, absl::string_view name);
void SelectDb(Session& session, storage::DbIndex db);
void SetProtocol(Session& session, int resp);
// Ends all subscriptions without a word (pubsub_commands.cc).
void EndSubscriptions(Services& services, Session& session);

}  // namespace idemd::server
