// Replication, from the side of the one who is followed: SYNC, PSYNC, REPLCONF, ROLE, WAIT; and REPLICAOF, as far as nobody is
// followed.
//
// A replica always gets everything anew: what was sent earlier is not kept for those who were gone for a while. What it is sent
// are effects (server/journal/replica_feed.h), which any Redis can follow.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "protocol/errors.h"
#include "protocol/number.h"
#include "server/clients.h"
#include "server/commands/context.h"
#include "server/commands/groups.h"
#include "server/commands/persistence_control.h"
#include "server/commands/replicas.h"
#include "server/commands/session_waiter.h"
#include "server/steady_time.h"
#include "storage/store.h"

namespace idemd::server {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr absl::string_view kNoReplication = "ERR following another server is not part of this version";
constexpr absl::string_view kGetAck = "*3\r\n$8\r\nREPLCONF\r\n$6\r\nGETACK\r\n$1\r\n*\r\n";

void Follow(Context& c, std::string greeting) {
  ClientInfo& info = c.session.info();
  if (info.replica.load(kRelaxed)) return;  // it is one already, and asks once more: no answer, as in Redis
  if (c.services.persistence == nullptr) return c.reply.Error("ERR this server keeps nothing that it could send");
  info.replica.store(true, kRelaxed);
  info.replica_heard_ms.store(SteadyMs(), kRelaxed);
  const std::weak_ptr<Peer> weak = c.session.peer;
  const auto living = [weak]() -> std::shared_ptr<Peer> {
    std::shared_ptr<Peer> peer = weak.lock();
    return peer == nullptr || peer->info().closing.load(kRelaxed) ? nullptr : peer;
  };
  ReplicaSink sink;
  sink.send = [living](std::shared_ptr<const std::string> bytes, storage::Lsn need) {
    const std::shared_ptr<Peer> peer = living();
    if (peer != nullptr) peer->Send(std::move(bytes), need);
    return peer != nullptr;
  };
  sink.alive = [living] { return living() != nullptr; };
  sink.kill = [living] {
    if (const std::shared_ptr<Peer> peer = living()) peer->Kill();
  };
  sink.greeting = std::move(greeting);
  c.services.persistence->AddReplica(std::move(sink));
}

void Sync(Context& c) { Follow(c, ""); }

void Psync(Context& c) {
  int64_t offset = 0;
  if (!c.Int(2, &offset)) return;
  Follow(c, absl::StrCat("+FULLRESYNC ", c.services.run_id, " {offset}\r\n"));
}

// An option of a replica; false: the reply is an error.
bool TakeReplicaOption(Context& c, absl::string_view name, absl::string_view value) {
  ClientInfo& info = c.session.info();
  if (absl::EqualsIgnoreCase(name, "listening-port")) {
    int64_t port = 0;
    if (!protocol::ParseInt64(value, &port)) {
      c.reply.Error(protocol::errors::kNotInteger);
      return false;
    }
    info.replica_port.store(static_cast<int>(port), kRelaxed);
    return true;
  }
  // What a replica is able to do changes nothing here; its address is the one it comes from.
  for (absl::string_view known : {"ip-address", "capa", "rdb-only", "rdb-filter-only"})
    if (absl::EqualsIgnoreCase(name, known)) return true;
  c.reply.Error(absl::StrCat("ERR Unrecognized REPLCONF option: ", name));
  return false;
}

void ReplConf(Context& c) {
  if (c.words.size() % 2 == 0) return c.Syntax();
  for (size_t i = 1; i < c.words.size(); i += 2) {
    const absl::string_view name = c.words[i];
    if (absl::EqualsIgnoreCase(name, "ack")) {
      ClientInfo& info = c.session.info();
      int64_t offset = 0;
      if (!info.replica.load(kRelaxed) || !protocol::ParseInt64(c.words[i + 1], &offset)) return;
      info.replica_offset.store(static_cast<uint64_t>(std::max<int64_t>(offset, 0)), kRelaxed);
      info.replica_heard_ms.store(SteadyMs(), kRelaxed);
      return c.services.replica_waits->OnAck();
    }
    if (absl::EqualsIgnoreCase(name, "getack")) return;  // a question to replicas
    if (!TakeReplicaOption(c, name, c.words[i + 1])) return;
  }
  c.reply.Ok();
}

void Role(Context& c) {
  const std::vector<std::shared_ptr<Peer>> replicas = ReplicasOf(c.services.clients);
  c.reply.Array(3);
  c.reply.Bulk("master");
  c.reply.Integer(c.services.persistence == nullptr ? 0 : static_cast<int64_t>(c.services.persistence->replication_offset()));
  c.reply.Array(replicas.size());
  for (const std::shared_ptr<Peer>& replica : replicas) {
    const ClientInfo& info = replica->info();
    c.reply.Array(3);
    c.reply.Bulk(AddressOfReplica(info));
    c.reply.Bulk(absl::StrCat(info.replica_port.load(kRelaxed)));
    c.reply.Bulk(absl::StrCat(info.replica_offset.load(kRelaxed)));
  }
}

void ReplicaOf(Context& c) {
  if (absl::EqualsIgnoreCase(c.words[1], "NO") && absl::EqualsIgnoreCase(c.words[2], "ONE"))
    return c.reply.Ok();
  int64_t port = 0;
  if (!protocol::ParseInt64(c.words[2], &port) || port < 0 || port > 65535) {
    return c.reply.Error("ERR Invalid master port");
  }
  c.reply.Error(kNoReplication);
}

void Wait(Context& c) {
  int64_t replicas = 0;
  int64_t timeout = 0;
  if (!c.Int(1, &replicas) || !c.Int(2, &timeout, "ERR timeout is not an integer or out of range"))
    return;
  if (timeout < 0) return c.reply.Error(protocol::errors::kTimeoutNegative);
  PersistenceControl* const disk = c.services.persistence;
  if (disk == nullptr || !disk->has_replicas()) return c.reply.Integer(0);  // nobody's acknowledgement could come
  const uint64_t offset = disk->replication_offset();
  const int64_t have = ReplicasAt(c.services.clients, offset);
  if (have >= replicas || c.unit.sealed()) return c.reply.Integer(have);
  c.services.replica_waits->Begin(c, offset, replicas, timeout);
  disk->TellReplicas(kGetAck);
}

constexpr ArgSpec kPsyncArgs[] = {{.name = "replicationid", .type = ArgType::kString}, {.name = "offset", .type = ArgType::kInteger}};
constexpr ArgSpec kHostPort[] = {{.name = "host"}, {.name = "port", .type = ArgType::kInteger}};
constexpr ArgSpec kNoOne[] = {{.name = "no", .type = ArgType::kToken, .token = "NO"},
                              {.name = "one", .type = ArgType::kToken, .token = "ONE"}};
constexpr ArgSpec kReplicaForms[] = {
    {.name = "host-port", .type = ArgType::kBlock, .args = kHostPort},
    {.name = "no-one", .type = ArgType::kBlock, .args = kNoOne}};
constexpr ArgSpec kReplicaArgs[] = {
    {.name = "args", .type = ArgType::kOneOf, .args = kReplicaForms}};
constexpr ArgSpec kWaitArgs[] = {{.name = "numreplicas", .type = ArgType::kInteger},
                                 {.name = "timeout", .type = ArgType::kInteger}};

constexpr uint32_t kOfReplicas = kNoAsyncLoading | kAdmin | kNoMulti | kNoScript;
constexpr CommandSpec kReplicationCommands[] = {
    {.name = "SYNC", .handler = &Sync, .arity = 1, .flags = kOfReplicas, .group = Group::kServer, .since = "1.0.0",
     .summary = "Sends a snapshot, and from then on every write."},
    {.name = "PSYNC", .handler = &Psync, .arity = -3, .flags = kOfReplicas, .group = Group::kServer, .since = "2.8.0",
     .summary = "The same, as newer replicas ask for it.", .args = kPsyncArgs},
    {.name = "REPLCONF", .handler = &ReplConf, .arity = -1, .flags = kAdmin | kNoScript | kLoading | kStale, .group = Group::kServer,
     .since = "3.0.0", .summary = "What replicas tell about themselves, and how far they are."},
    {.name = "ROLE",
     .handler = &Role,
     .arity = 1,
     .flags = kNoScript | kLoading | kStale | kFast | kDangerous,
     .group = Group::kServer,
     .since = "2.8.12",
     .summary = "The server's part in replication: a master, and its replicas.",
     .categories = "admin"},
    {.name = "REPLICAOF",
     .handler = &ReplicaOf,
     .arity = 3,
     .flags = kNoAsyncLoading | kAdmin | kNoScript | kStale,
     .group = Group::kServer,
     .since = "5.0.0",
     .summary = "Only NO ONE is supported by this version.",
     .args = kReplicaArgs},
    {.name = "SLAVEOF",
     .handler = &ReplicaOf,
     .arity = 3,
     .flags = kNoAsyncLoading | kAdmin | kNoScript | kStale,
     .group = Group::kServer,
     .since = "1.0.0",
     .summary = "An older name of REPLICAOF.",
     .args = kReplicaArgs},
    {.name = "WAIT",
     .handler = &Wait,
     .arity = 3,
     .flags = kNoScript,
     .group = Group::kGeneric,
     .since = "3.0.0",
     .summary = "Waits until so many replicas have what was written so far.",
     .args = kWaitArgs,
     .categories = "connection"}};

}  // namespace

absl::Span<const CommandSpec> ReplicationCommands() { return kReplicationCommands; }

}  // namespace idemd::server
