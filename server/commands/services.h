// The parts of the running process that commands use; built and connected by main.cc (and by tests).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace idemd::storage {
class Store;
class EffectiveClock;
class TokenMint;
}  // namespace idemd::storage

namespace idemd::server {

namespace acl {
class Users;  // server/acl/users.h
}
class Settings;       // server/admin/settings.h: one table of options
class Clients;        // server/clients.h: who is connected
class SlowLog;        // server/admin/slowlog.h
class LatencyMonitor; // server/admin/latency.h
class ServerStats;    // server/admin/stats.h: per-thread counters, merged when read
class NativeStats;    // server/admin/native_stats.h: counters per namespace for IDEM.STATS
class CommandTable;   // server/commands/table.h
class PersistenceControl;  // server/commands/persistence_control.h
class Shutdown;            // server/commands/shutdown.h
class Scripts;             // server/commands/scripts.h
class PubSub;              // server/pubsub/pubsub.h
class Tracking;            // server/pubsub/tracking.h
class Pause;               // server/commands/pause.h
class ReplicaWaits;        // server/commands/replicas.h
class Outbound;            // server/commands/outbound.h

std::shared_ptr<PubSub> MakePubSub();
std::shared_ptr<Tracking> MakeTracking();
std::shared_ptr<Pause> MakePause();
// The users, with rights about these commands, and the password of the settings (acl_check.cc).
std::shared_ptr<acl::Users> MakeUsers(Settings& settings, const CommandTable& commands);
std::shared_ptr<ReplicaWaits> MakeReplicaWaits();

struct Services {
  storage::Store& store;
  storage::EffectiveClock* clock;  // null in tests with a fake clock
  storage::TokenMint& tokens;
  Settings& settings;
  Clients& clients;
  SlowLog& slowlog;
  LatencyMonitor& latency;
  ServerStats& stats;
  NativeStats& native;
  const CommandTable& commands;
  std::string run_id;          // 40 hexadecimal digits
  int64_t started_ms = 0;      // unix milliseconds
  Shutdown* shutdown = nullptr;    // null: nobody can stop it
  PersistenceControl* persistence = nullptr;  // null: nothing is kept on disk
  Scripts* scripts = nullptr;                 // null: only in tests that run none
  std::shared_ptr<acl::Users> users = MakeUsers(settings, commands);
  // Parts that need no others.
  std::shared_ptr<PubSub> pubsub = MakePubSub();
  std::shared_ptr<Tracking> tracking = MakeTracking();
  std::shared_ptr<Pause> pause = MakePause();
  std::shared_ptr<ReplicaWaits> replica_waits = MakeReplicaWaits();
  Outbound* outbound = nullptr;  // null: it talks to no other server
};

}  // namespace idemd::server
