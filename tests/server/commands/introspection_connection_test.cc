// PING, HELLO, AUTH, SELECT, RESET and CLIENT.
#include "introspection_fixture.h"

namespace idemd::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using ConnectionCommandsTest = IntrospectionTest;
using ClientCommandsTest = IntrospectionTest;

TEST_F(ConnectionCommandsTest, PingAnswersPongOrTheMessage) {
  EXPECT_EQ(Run("PING"), "+PONG\r\n");
  EXPECT_EQ(Run("ping hello"), "$5\r\nhello\r\n");
  EXPECT_EQ(Run("PING a b"), "-ERR wrong number of arguments for 'ping' command\r\n");
  EXPECT_EQ(Run("ECHO x"), "$1\r\nx\r\n");
}

TEST_F(ConnectionCommandsTest, HelloSwitchesTheProtocolOfItsOwnReply) {
  const std::string in3 = Run("HELLO 3 SETNAME worker");
  EXPECT_THAT(in3,
              StartsWith("%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n"));
  EXPECT_EQ(me_->session.resp, 3);
  EXPECT_EQ(Run("CLIENT GETNAME"), "$6\r\nworker\r\n");
  EXPECT_THAT(Run("HELLO 2"), StartsWith("*14\r\n"));
  EXPECT_THAT(Run("HELLO"), HasSubstr("$5\r\nproto\r\n:2\r\n"));
}

TEST_F(ConnectionCommandsTest, HelloRefusesWhatItDoesNotKnowAndStaysAsItWas) {
  EXPECT_EQ(Run("HELLO 4"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(Run("HELLO x"), "-ERR Protocol version is not an integer or out of range\r\n");
  EXPECT_EQ(Run("HELLO 3 FOO"), "-ERR Syntax error in HELLO option 'FOO'\r\n");
  EXPECT_EQ(me_->session.resp, 2);
}

TEST_F(ConnectionCommandsTest, NothingButALoginWorksBeforeTheLogin) {
  Set("requirepass", "secret");
  auto stranger = Connect();
  EXPECT_EQ(Run(*stranger, "PING"), "-NOAUTH Authentication required.\r\n");
  EXPECT_THAT(Run(*stranger, "HELLO 3"), StartsWith("-NOAUTH HELLO must be called"));
  EXPECT_EQ(Run(*stranger, "AUTH wrong"),
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(Run(*stranger, "AUTH other secret"),
            "-WRONGPASS invalid username-password pair or user is disabled.\r\n");
  EXPECT_EQ(Run(*stranger, "PING"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(Run(*stranger, "AUTH default secret"), "+OK\r\n");
  EXPECT_EQ(Run(*stranger, "PING"), "+PONG\r\n");

  auto other = Connect();
  EXPECT_THAT(Run(*other, "HELLO 3 AUTH default secret"), StartsWith("%7\r\n"));
  EXPECT_EQ(Run(*other, "RESET"), "+RESET\r\n");
  EXPECT_EQ(Run(*other, "PING"), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(Run(*other, "AUTH a b c"), "-ERR syntax error\r\n");
}

TEST_F(ConnectionCommandsTest, AuthWithoutAPasswordSetIsAskedBack) {
  EXPECT_THAT(Run("AUTH x"),
              StartsWith("-ERR AUTH <password> called without any password configured"));
  EXPECT_EQ(Run("AUTH default anything"), "+OK\r\n");
}

TEST_F(ConnectionCommandsTest, SelectKeepsToTheDatabasesThereAre) {
  EXPECT_EQ(Run("SELECT 15"), "+OK\r\n");
  EXPECT_EQ(me_->session.db, 15u);
  EXPECT_EQ(Run("SELECT 16"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("SELECT -1"), "-ERR DB index is out of range\r\n");
  EXPECT_EQ(Run("SELECT x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(me_->session.db, 15u);
}

TEST_F(ConnectionCommandsTest, ResetPutsEverythingBack) {
  Run("SELECT 3");
  Run("HELLO 3 SETNAME x");
  Run("MONITOR");
  EXPECT_EQ(clients_.monitors(), 1u);
  EXPECT_EQ(Run("RESET"), "+RESET\r\n");
  EXPECT_EQ(clients_.monitors(), 0u);
  EXPECT_EQ(me_->session.db, 0u);
  EXPECT_EQ(me_->session.resp, 2);
  EXPECT_EQ(Run("CLIENT GETNAME"), "$-1\r\n");
}

TEST_F(ConnectionCommandsTest, QuitAnswersAndCloses) {
  EXPECT_EQ(Run("QUIT"), "+OK\r\n");
  EXPECT_TRUE(me_->session.close_after_reply);
}

TEST_F(ClientCommandsTest, ListShowsEveryoneWithRedisFieldsInOrder) {
  auto other = Connect("127.0.0.1:6000");
  Run(*other, "CLIENT SETNAME other");
  Run(*other, "CLIENT SETINFO LIB-NAME redis-py");
  const std::string list = Run("CLIENT LIST");
  EXPECT_THAT(
      list,
      ::testing::ContainsRegex(
          "id=1 addr=127.0.0.1:5000 laddr=127.0.0.1:6379 fd=8 name= age=-?[0-9]+ idle=[0-9]+ "
          "flags=N db=0 "
          "sub=0 psub=0 ssub=0 multi=-1 qbuf=[0-9]+ qbuf-free=[0-9]+ argv-mem=[0-9]+ multi-mem=0 "
          "rbs=[0-9]+ rbp=[0-9]+ obl=[0-9]+ oll=0 omem=0 tot-mem=[0-9]+ events=r cmd=client\\|list "
          "user=default redir=-1 resp=2 lib-name= lib-ver="));
  EXPECT_THAT(list, HasSubstr("id=2 addr=127.0.0.1:6000"));
  EXPECT_THAT(list, HasSubstr("name=other"));
  EXPECT_THAT(list, HasSubstr("lib-name=redis-py"));
  EXPECT_THAT(Run("CLIENT LIST ID 2 99"), Not(HasSubstr("id=1 ")));
  EXPECT_EQ(Run("CLIENT LIST TYPE replica"), "$0\r\n\r\n");
  EXPECT_EQ(Run("CLIENT LIST TYPE foo"), "-ERR Unknown client type 'foo'\r\n");
  EXPECT_EQ(Run("CLIENT LIST ID x"), "-ERR Invalid client ID\r\n");
  EXPECT_EQ(Run("CLIENT LIST foo"), "-ERR syntax error\r\n");
  EXPECT_THAT(Run("CLIENT INFO"), EndsWith("\n\r\n"));
}

TEST_F(ClientCommandsTest, NamesThatWouldBreakTheListAreRefused) {
  EXPECT_EQ(Run("CLIENT SETNAME \"a b\""),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(Run("CLIENT SETNAME \"a\\nb\""),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(Run("CLIENT SETINFO FOO bar"), "-ERR Unrecognized option 'FOO'\r\n");
  EXPECT_EQ(Run("CLIENT SETNAME ''"), "+OK\r\n");
}

TEST_F(ClientCommandsTest, TheOldFormOfKillTakesAnAddress) {
  auto other = Connect("127.0.0.1:6000");
  EXPECT_EQ(Run("CLIENT KILL 1.2.3.4:5"), "-ERR No such client\r\n");
  EXPECT_EQ(Run("CLIENT KILL 127.0.0.1:6000"), "+OK\r\n");
  EXPECT_TRUE(other->peer->killed);
  EXPECT_THAT(Run("CLIENT LIST"), Not(HasSubstr("6000")));
  EXPECT_EQ(Run("CLIENT KILL 127.0.0.1:6000"), "-ERR No such client\r\n");
  EXPECT_EQ(Run("CLIENT KILL 127.0.0.1:5000"), "+OK\r\n");
  EXPECT_FALSE(me_->peer->killed);  // it gets its reply first
  EXPECT_TRUE(me_->session.close_after_reply);
}

TEST_F(ClientCommandsTest, TheNewFormOfKillCountsAndSparesTheCaller) {
  auto a = Connect("127.0.0.1:6000");
  auto b = Connect("127.0.0.1:6001");
  EXPECT_EQ(Run("CLIENT KILL ID 2 ADDR 127.0.0.1:6001"), ":0\r\n");
  EXPECT_EQ(Run("CLIENT KILL TYPE normal SKIPME yes"), ":2\r\n");
  EXPECT_TRUE(a->peer->killed && b->peer->killed);
  EXPECT_FALSE(me_->session.close_after_reply);
  EXPECT_EQ(Run("CLIENT KILL TYPE pubsub SKIPME no"), ":0\r\n");
  EXPECT_EQ(Run("CLIENT KILL LADDR 127.0.0.1:6379 USER default SKIPME no"), ":1\r\n");
  EXPECT_TRUE(me_->session.close_after_reply);
}

TEST_F(ClientCommandsTest, KillRefusesNonsense) {
  EXPECT_EQ(Run("CLIENT KILL ID 0"), "-ERR client-id should be greater than 0\r\n");
  EXPECT_EQ(Run("CLIENT KILL TYPE foo"), "-ERR Unknown client type 'foo'\r\n");
  EXPECT_EQ(Run("CLIENT KILL USER nobody"), "-ERR No such user 'nobody'\r\n");
  EXPECT_EQ(Run("CLIENT KILL ID 1 SKIPME"), "-ERR syntax error\r\n");
  EXPECT_EQ(Run("CLIENT KILL FOO bar"), "-ERR syntax error\r\n");
}

TEST_F(ClientCommandsTest, ReplyOffAndSkipSwallowReplies) {
  EXPECT_EQ(Run("CLIENT REPLY SKIP"), "");
  EXPECT_EQ(Run("PING"), "");
  EXPECT_EQ(Run("PING"), "+PONG\r\n");
  EXPECT_EQ(Run("CLIENT REPLY OFF"), "");
  EXPECT_EQ(Run("CLIENT REPLY SKIP"), "");
  EXPECT_EQ(Run("PING"), "");
  EXPECT_EQ(Run("CLIENT REPLY ON"), "+OK\r\n");
  EXPECT_EQ(Run("PING"), "+PONG\r\n");
}

TEST_F(ClientCommandsTest, UnblockEndsTheWaitOfAnotherConnectionOnce) {
  auto waiting = Connect("127.0.0.1:6000");
  Run("IDEM.RESERVE job LEASE 60000");
  EXPECT_EQ(Run(*waiting, "IDEM.RESERVE job WAIT 50000"), "");
  EXPECT_THAT(Run("CLIENT LIST ID 2"), HasSubstr("flags=b"));
  EXPECT_THAT(Run("INFO clients"), HasSubstr("blocked_clients:1"));
  EXPECT_EQ(Run("CLIENT UNBLOCK 2 ERROR"), ":1\r\n");
  EXPECT_EQ(Run("CLIENT UNBLOCK 2 ERROR"), ":0\r\n");
  ASSERT_EQ(waiting->peer->resumes.size(), 1u);
  std::string reply;
  waiting->peer->resumes[0](waiting->session, reply);
  EXPECT_EQ(reply, "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n");
  EXPECT_THAT(Run("CLIENT LIST ID 2"), HasSubstr("flags=N"));
}

TEST_F(ClientCommandsTest, NoTouchLeavesAccessTimesAloneButForTouch) {
  Run("SET k v");
  clock_.AdvanceMs(5000);
  store_.Tick();
  Run("CLIENT NO-TOUCH ON");
  Run("GET k");
  EXPECT_EQ(Run("OBJECT IDLETIME k"), ":5\r\n");
  Run("CLIENT NO-TOUCH OFF");
  Run("EXISTS k");
  EXPECT_EQ(Run("OBJECT IDLETIME k"), ":5\r\n");
  Run("CLIENT NO-TOUCH ON");
  Run("TOUCH k");
  EXPECT_EQ(Run("OBJECT IDLETIME k"), ":0\r\n");
}

TEST_F(ClientCommandsTest, ListShowsWhoIsInsideMulti) {
  auto other = Connect("127.0.0.1:6000");
  Run(*other, "MULTI");
  Run(*other, "SET k v");
  EXPECT_THAT(Run("CLIENT LIST ID 2"),
              ::testing::AllOf(HasSubstr("flags=x"), HasSubstr("multi=1 ")));
  EXPECT_EQ(Run(*other, "RESET"), "+RESET\r\n");
  EXPECT_THAT(Run("CLIENT LIST ID 2"),
              ::testing::AllOf(HasSubstr("flags=N"), HasSubstr("multi=-1 ")));
  EXPECT_EQ(Run(*other, "EXEC"), "-ERR EXEC without MULTI\r\n");
}

TEST_F(ClientCommandsTest, UnblockFindsNobodyWhoWaits) {
  EXPECT_EQ(Run("CLIENT UNBLOCK 1"), ":0\r\n");
  EXPECT_EQ(Run("CLIENT UNBLOCK 77 ERROR"), ":0\r\n");
  EXPECT_EQ(Run("CLIENT UNBLOCK 1 FOO"),
            "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n");
  EXPECT_EQ(Run("CLIENT UNBLOCK x"), "-ERR value is not an integer or out of range\r\n");
}

}  // namespace
}  // namespace idemd::server
