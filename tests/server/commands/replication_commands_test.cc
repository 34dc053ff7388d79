// SYNC, PSYNC, REPLCONF, WAIT and ROLE, with somebody else's replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/commands/replicas.h"
#include "tests/server/commands/persistence_fixture.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;

class ReplicationTest : public PersistenceTest {};

TEST_F(ReplicationTest, ARoundOfWordsMakesAReplica) {
  auto replica = Connect();
  EXPECT_EQ(Do(*replica, "REPLCONF listening-port 7777 ip-address 10.0.0.1"), "OK");
  EXPECT_EQ(Do(*replica, "REPLCONF capa eof capa psync2"), "OK");
  EXPECT_EQ(Do(*replica, "PSYNC ? -1"), "");
  ASSERT_EQ(disk.replicas.size(), 1u);
  EXPECT_EQ(disk.replicas[0].greeting, "+FULLRESYNC " + services.run_id + " {offset}\r\n");
  EXPECT_TRUE(disk.replicas[0].alive());
  EXPECT_EQ(Do(*replica, "PSYNC ? -1"), "") << "asks twice";
  EXPECT_EQ(disk.replicas.size(), 1u);
  EXPECT_EQ(Do(*replica, "REPLCONF ACK 12"), "");
  EXPECT_THAT(Do("INFO replication"), HasSubstr("connected_slaves:1"));
  EXPECT_THAT(Do("INFO replication"), HasSubstr("port=7777,state=online,offset=12,lag=0"));
  EXPECT_THAT(Do("ROLE"), HasSubstr("\"7777\" \"12\""));
  EXPECT_THAT(Do("CLIENT LIST TYPE replica"), HasSubstr("flags=S"));
  EXPECT_EQ(Do("CLIENT KILL TYPE slave"), "1");
}

TEST_F(ReplicationTest, WordsThatReplicasDoNotSayAreRefused) {
  EXPECT_EQ(Do("REPLCONF x"), "-ERR syntax error");
  EXPECT_EQ(Do("REPLCONF nonsense 1"), "-ERR Unrecognized REPLCONF option: nonsense");
  EXPECT_EQ(Do("REPLCONF listening-port x"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("PSYNC ? x"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("REPLCONF ACK 5"), "") << "of nobody who follows it means nothing";
  EXPECT_THAT(Do("INFO replication"), HasSubstr("connected_slaves:0"));
  Do("MULTI");
  EXPECT_EQ(Do("SYNC"), "-ERR Command not allowed inside a transaction");
}

TEST_F(ReplicationTest, WaitEndsWithTheAcknowledgementsItAsksFor) {
  EXPECT_EQ(Do("WAIT 1 0"), "0") << "there is nobody who could acknowledge";
  auto a = Connect(), b = Connect(), caller = Connect();
  for (auto* replica : {&a, &b}) Do(**replica, "SYNC");
  disk.told_replicas = "0123456789";
  EXPECT_EQ(Do("WAIT 0 0"), "0");
  EXPECT_EQ(Do(*caller, "WAIT 2 0"), "");
  EXPECT_THAT(disk.told_replicas, HasSubstr("GETACK"));
  Do(*a, "REPLCONF ACK 10");
  Do(*b, "REPLCONF ACK 9");
  EXPECT_EQ(Posted(*caller), "");
  Do(*b, "REPLCONF ACK 10");
  EXPECT_EQ(Posted(*caller), "2");
  EXPECT_EQ(Do(*caller, "WAIT 3 0"), "");
  EXPECT_EQ(Do("CLIENT UNBLOCK " + std::to_string(caller->peer->info().id) + " ERROR"), "1");
  EXPECT_THAT(Posted(*caller), HasSubstr("-UNBLOCKED"));
}

TEST_F(ReplicationTest, WritesAreRefusedWhileTooFewFollow) {
  Config("min-replicas-to-write", "1");
  EXPECT_EQ(Do("SET a 1"), "-NOREPLICAS Not enough good replicas to write.");
  EXPECT_EQ(Do("GET a"), "nil");
  auto replica = Connect();
  Do(*replica, "SYNC");
  services.replica_waits->Count(services.clients, 10'000);
  EXPECT_EQ(Do("SET a 1"), "OK");
}

TEST_F(ReplicationTest, MessagesGoToReplicasToo) {
  auto replica = Connect();
  EXPECT_EQ(Do("PUBLISH c text"), "0");
  EXPECT_EQ(disk.told_replicas, "");
  Do(*replica, "SYNC");
  for (const char* line : {"PUBLISH c one", "MULTI", "PUBLISH c two", "EXEC"}) Do(line);
  EXPECT_EQ(disk.told_replicas, "in 0:*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$3\r\none\r\nin 0:*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$3\r\ntwo\r\n");
}

}  // namespace
}  // namespace idemd::server
