// CLIENT TRACKING and its kin: handlers and arguments of their entries (client_commands.cc), and what dispatch does for a
// client that tracks.
#pragma once

#include "absl/container/inlined_vector.h"
#include "server/commands/context.h"
#include "server/commands/table.h"

namespace idemd::server {

void ClientTracking(Context& c);
void ClientCaching(Context& c);
void ClientGetRedir(Context& c);
void ClientTrackingInfo(Context& c);

// What a command of a client that tracks is about to read.
class TrackedRead {
 public:
  // Before the handler: takes the locks of the keys, so that no change falls between the read and its being remembered.
  explicit TrackedRead(Context& c);
  // After it.
  void Remember(Context& c);

 private:
  absl::InlinedVector<storage::HashedKey, 4> keys_;
};
// Whether a command of this session is to be tracked: one look at the session for all who do not track.
bool TracksReadsNow(const Session& session, const CommandSpec& spec);
inline bool TracksReads(const Session& session, const CommandSpec& spec) {
  return session.tracker != nullptr && TracksReadsNow(session, spec);
}
// After each command of a session that has a tracker: CLIENT CACHING is for the next one only, or for the next EXEC.
void ForgetCaching(Session& session, const CommandEntry& entry);

inline constexpr ArgSpec kTrackingStatus[] = {{.name = "on", .type = ArgType::kToken, .token = "ON"},
                                              {.name = "off", .type = ArgType::kToken, .token = "OFF"}};
inline constexpr ArgSpec kTrackingArgs[] = {
    {.name = "status", .type = ArgType::kOneOf, .args = kTrackingStatus},
    {.name = "client-id", .type = ArgType::kInteger, .token = "REDIRECT", .optional = true},
    {.name = "prefix", .token = "PREFIX", .optional = true, .multiple = true},
    {.name = "bcast", .type = ArgType::kToken, .token = "BCAST", .optional = true},
    {.name = "optin", .type = ArgType::kToken, .token = "OPTIN", .optional = true},
    {.name = "optout", .type = ArgType::kToken, .token = "OPTOUT", .optional = true},
    {.name = "noloop", .type = ArgType::kToken, .token = "NOLOOP", .optional = true}};

}  // namespace idemd::server
