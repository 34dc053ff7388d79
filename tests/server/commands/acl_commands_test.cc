// Users at work: who is let in, what is denied, and how soon a change counts.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/acl/users.h"
#include "server/commands/acl_check.h"
#include "server/commands/replay.h"
#include "tests/server/commands/introspection_fixture.h"

namespace idemd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kOk = "+OK\r\n";
constexpr const char* kNoKey =
    "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n";

class AclTest : public IntrospectionTest {
 protected:
  std::unique_ptr<Client> ConnectAs(absl::string_view user, absl::string_view address = "127.0.0.1:6000") {
    auto client = Connect(address);
    EXPECT_EQ(Run(*client, "AUTH " + std::string(user) + " x"), kOk);
    return client;
  }
  void SetUser(absl::string_view rules) { ASSERT_EQ(Run("ACL SETUSER " + std::string(rules)), kOk) << rules; }
};

TEST_F(AclTest, TheDefaultUserIsNotCheckedBeyondOneFlag) {
  EXPECT_EQ(Run("GET k"), "$-1\r\n");
  EXPECT_TRUE(MayDoEverything(services_, me_->session));
  SetUser("u on");
  EXPECT_FALSE(MayDoEverything(services_, me_->session)) << "it has to be looked up again";
  EXPECT_EQ(Run("GET k"), "$-1\r\n");
  EXPECT_TRUE(MayDoEverything(services_, me_->session));
  SetUser("default -flushall");
  EXPECT_EQ(Run("FLUSHALL"), "-NOPERM this user has no permissions to run the 'flushall' command\r\n");
  EXPECT_FALSE(MayDoEverything(services_, me_->session));
}

TEST_F(AclTest, AChangeCountsForConnectionsThatThereAre) {
  SetUser("u on nopass +@all ~a*");
  const auto client = ConnectAs("u");
  EXPECT_EQ(Run(*client, "SET a 1"), kOk);
  EXPECT_EQ(Run(*client, "SET b 1"), kNoKey);
  SetUser("u ~b -get");
  EXPECT_EQ(Run(*client, "SET b 1"), kOk);
  EXPECT_THAT(Run(*client, "GET a"), StartsWith("-NOPERM"));
}

TEST_F(AclTest, ADeletedUsersConnectionsEndAndMayNothingMeanwhile) {
  SetUser("u on nopass +@all ~* &*");
  const auto client = ConnectAs("u");
  const auto other = Connect("127.0.0.1:7000");
  EXPECT_EQ(Run("ACL DELUSER u nobody"), ":1\r\n");
  EXPECT_TRUE(client->peer->killed);
  EXPECT_FALSE(other->peer->killed);
  EXPECT_THAT(Run(*client, "GET a"), StartsWith("-NOPERM"));
  EXPECT_TRUE(client->session.close_after_reply);
}

TEST_F(AclTest, WhoDeletesItselfStillGetsTheReply) {
  SetUser("u on nopass +@all ~* &*");
  const auto client = ConnectAs("u");
  EXPECT_EQ(Run(*client, "ACL DELUSER u"), ":1\r\n");
  EXPECT_TRUE(client->session.close_after_reply);
  EXPECT_FALSE(client->peer->killed);
}

TEST_F(AclTest, SubscribersThatMayNotListenAnyMoreAreCutOff) {
  SetUser("u on nopass +@all &a &p*");
  const auto channel = ConnectAs("u", "127.0.0.1:6001");
  const auto pattern = ConnectAs("u", "127.0.0.1:6002");
  Run(*channel, "SUBSCRIBE a");
  Run(*pattern, "PSUBSCRIBE p*");
  EXPECT_THAT(Run(*channel, "SUBSCRIBE b"), StartsWith("-NOPERM"));
  SetUser("u &b");
  EXPECT_FALSE(channel->peer->killed);
  SetUser("u resetchannels &p*");
  EXPECT_TRUE(channel->peer->killed);
  EXPECT_FALSE(pattern->peer->killed);
}

TEST_F(AclTest, ThePasswordOfTheSettingsIsTheDefaultUsers) {
  Set("requirepass", "pw");
  const auto client = Connect();
  EXPECT_THAT(Run(*client, "GET a"), StartsWith("-NOAUTH"));
  EXPECT_EQ(Run(*client, "AUTH pw"), kOk);
  SetUser("default >other");
  EXPECT_EQ(Run(*client, "AUTH other"), kOk);
  Set("requirepass", "");
  EXPECT_EQ(Run(*Connect(), "GET a"), "$-1\r\n");
}

TEST_F(AclTest, WhoIsNotLoggedInComesInWhenThePasswordGoes) {
  SetUser("default >pw");
  const auto client = Connect();
  EXPECT_THAT(Run(*client, "GET a"), StartsWith("-NOAUTH"));
  SetUser("default nopass");
  EXPECT_EQ(Run(*client, "GET a"), "$-1\r\n");
  SetUser("default off");
  EXPECT_THAT(Run(*client, "GET a"), StartsWith("-NOAUTH"));
}

TEST_F(AclTest, WhatIsQueuedIsCheckedAgainWhenItRuns) {
  SetUser("u on nopass +@all ~a");
  const auto client = ConnectAs("u");
  Run(*client, "MULTI");
  EXPECT_EQ(Run(*client, "SET a 1"), "+QUEUED\r\n");
  EXPECT_EQ(Run(*client, "GET a"), "+QUEUED\r\n");
  SetUser("u %R~a");
  SetUser("u resetkeys %R~a");
  EXPECT_THAT(Run(*client, "EXEC"),
              ::testing::AllOf(StartsWith("*2\r\n-NOPERM ACLs rules changed"),
                               HasSubstr("no permission to touch the specified keys\r\n$-1\r\n")));
  Run(*client, "MULTI");
  EXPECT_EQ(Run(*client, "SET b 1"), kNoKey);
  EXPECT_THAT(Run(*client, "EXEC"), StartsWith("-EXECABORT"));
}

TEST_F(AclTest, ScriptsHaveTheRightsOfTheirCaller) {
  SetUser("u on nopass +@all -del ~a*");
  const auto client = ConnectAs("u");
  EXPECT_THAT(Run(*client, "EVAL \"return redis.call('del', 'a')\" 0"),
              StartsWith("-ERR The user executing the script can't run this command or subcommand"));
  EXPECT_THAT(Run(*client, "EVAL \"return redis.call('get', KEYS[1])\" 1 b"), Not(StartsWith("$")));
  EXPECT_THAT(Run(*client, "EVAL \"return redis.call('get', 'b')\" 0"),
              StartsWith("-ERR The user executing the script can't access at least one of the keys"));
  EXPECT_EQ(Run(*client, "EVAL \"return redis.acl_check_cmd('get', 'b')\" 0"), "$-1\r\n");
  EXPECT_EQ(Run(*client, "EVAL \"return redis.acl_check_cmd('get', 'a')\" 0"), ":1\r\n");
  EXPECT_EQ(Run("EVAL \"return redis.call('del', 'a')\" 0"), ":0\r\n") << "the next script is another user's";
}

TEST_F(AclTest, OfTheKeysOnlyWhatIsDoneToThemCounts) {
  SetUser("u on nopass +@all %R~r %W~w");
  const auto client = ConnectAs("u");
  EXPECT_EQ(Run(*client, "GET r"), "$-1\r\n");
  EXPECT_EQ(Run(*client, "SET r 1"), kNoKey);
  EXPECT_EQ(Run(*client, "SET w 1"), kOk);
  EXPECT_EQ(Run(*client, "SET w 1 GET"), kNoKey);
  EXPECT_EQ(Run(*client, "EXISTS w"), ":1\r\n") << "to be there is not to be read";
  EXPECT_EQ(Run(*client, "BITFIELD r GET u8 0"), "*1\r\n:0\r\n");
  EXPECT_EQ(Run(*client, "BITFIELD r SET u8 0 1"), kNoKey);
  EXPECT_EQ(Run(*client, "COPY r w"), ":0\r\n");
  EXPECT_EQ(Run(*client, "COPY w r"), kNoKey);
  EXPECT_EQ(Run(*client, "SORT r GET x"),
            "-ERR GET option of SORT denied due to insufficient ACL permissions.\r\n");
}

TEST_F(AclTest, DenialsAreLoggedWithWhoAndWhere) {
  SetUser("u on >pw +get +multi +exec +eval ~a");
  const auto client = Connect();
  Run(*client, "AUTH u nope");
  Run(*client, "AUTH u pw");
  Run(*client, "GET b");
  Run(*client, "GET b");
  Run(*client, "EVAL \"return redis.call('set', 'a', 1)\" 0");
  Run(*client, "MULTI");
  Run(*client, "DEL a");
  const auto entries = services_.users->denials().Newest(10);
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].object, "del");
  EXPECT_STREQ(entries[0].context, "multi");
  EXPECT_EQ(entries[1].object, "set");
  EXPECT_STREQ(entries[1].context, "lua");
  EXPECT_EQ(entries[2].object, "b");
  EXPECT_EQ(entries[2].count, 2u);
  EXPECT_STREQ(entries[2].reason, "key");
  EXPECT_STREQ(entries[3].reason, "auth");
  EXPECT_EQ(entries[3].object, "AUTH");
  EXPECT_EQ(entries[3].user, "u");
  EXPECT_THAT(entries[3].client, HasSubstr("addr=127.0.0.1:5000"));
  EXPECT_THAT(Run("ACL LOG 1"), StartsWith("*1\r\n*14\r\n$5\r\ncount\r\n:1\r\n"));
}

TEST_F(AclTest, TheLogIsReplayedWhateverTheDefaultUserMay) {
  SetUser("default off -@all resetkeys");
  Replayer replayer(services_);
  storage::DbIndex db = 0;
  EXPECT_TRUE(replayer.Run({"MULTI"}, &db).ok());
  EXPECT_TRUE(replayer.Run({"SET", "k", "v"}, &db).ok());
  EXPECT_TRUE(replayer.Run({"EXEC"}, &db).ok());
  services_.users->SetDefaultPassword("");
  ASSERT_TRUE(services_.users->Set("default", {"on", "allcommands", "allkeys"}).ok());
  EXPECT_EQ(Run("GET k"), "$1\r\nv\r\n");
}

TEST_F(AclTest, NativeCommandsHaveACategory) {
  SetUser("u on nopass +@idem ~k*");
  const auto client = ConnectAs("u");
  EXPECT_THAT(Run(*client, "IDEM.RESERVE k1"), StartsWith("*"));
  EXPECT_EQ(Run(*client, "IDEM.RESERVE other"), kNoKey);
  EXPECT_THAT(Run(*client, "SET k2 1"), StartsWith("-NOPERM"));
}

}  // namespace
}  // namespace idemd::server
