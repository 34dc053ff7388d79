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
// The client whose unit it is: of a command that a script runs, the script's. Null where no client is.
inline Session* ClientOf(const Context& c) { return static_cast<Session*>(c.unit.origin()); }
// Whether a command is to be tracked: one look at the client for all who do not track.
bool TracksReadsNow(const Session& client, const CommandSpec& spec);
inline bool TracksReads(const Context& c, const CommandSpec& spec) {
  const Session* const client = ClientOf(c);
  return client != nullptr && client->tracker != nullptr && TracksReadsNow(*client, spec);
}

// While a script runs, its declared keys count as read when it reads any.
class DeclaredKeys {
 public:
  DeclaredKeys(Session& session, const absl::Span<const absl::string_view>& keys) : session_(session) {
    session_.script_keys = &keys;
  }
  ~DeclaredKeys() { session_.script_keys = nullptr; }
  DeclaredKeys(const DeclaredKeys&) = delete;
  DeclaredKeys& operator=(const DeclaredKeys&) = delete;

 private:
  Session& session_;
};

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
