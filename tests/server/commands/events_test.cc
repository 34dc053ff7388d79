// Which events each command tells, as Redis 7.0 does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "storage/events.h"
#include "tests/support/harness.h"

namespace idemd::server {
namespace {

using testing::Harness;

class Listener final : public storage::EventSink {
 public:
  void OnEvents(absl::Span<const storage::Event> events, storage::Lsn, storage::EventOrigin*) override {
    for (const storage::Event& e : events) {
      absl::StrAppend(&told, told.empty() ? "" : " ", e.name, ":", e.key);
      if (e.db != 0) absl::StrAppend(&told, "@", e.db);
    }
  }
  std::string told;
};

class EventsOfCommandsTest : public ::testing::Test {
 protected:
  EventsOfCommandsTest() {
    h_.store.SetEventSink(&listener_);
    h_.store.WantEvents(~storage::EventClasses{0});
  }
  // What the command tells: "event:key", with "@db" unless it is 0.
  std::string Told(absl::string_view line) {
    listener_.told.clear();
    last_reply_ = h_.Do(line);
    return listener_.told;
  }

  Harness h_;
  Listener listener_;
  std::string last_reply_;
};

TEST_F(EventsOfCommandsTest, Strings) {
  EXPECT_EQ(Told("SET a 1"), "new:a set:a");
  EXPECT_EQ(Told("SET a 1 EX 10"), "set:a expire:a");
  EXPECT_EQ(Told("SET a 1 KEEPTTL"), "set:a");
  EXPECT_EQ(Told("SET a 1 NX"), "");
  EXPECT_EQ(Told("SET fresh 1 GET"), "keymiss:fresh new:fresh set:fresh");
  EXPECT_EQ(Told("SETNX a 1"), "");
  EXPECT_EQ(Told("SETNX b 1"), "new:b set:b");
  EXPECT_EQ(Told("SETEX b 10 1"), "set:b expire:b");
  EXPECT_EQ(Told("PSETEX b 10 1"), "set:b expire:b");
  EXPECT_EQ(Told("GETSET a 2"), "set:a");
  EXPECT_EQ(Told("GETEX a"), "");
  EXPECT_EQ(Told("GETEX a EX 5"), "expire:a");
  EXPECT_EQ(Told("GETEX a PERSIST"), "persist:a");
  EXPECT_EQ(Told("GETEX a PERSIST"), "");
  EXPECT_EQ(Told("GETEX a EXAT 1"), "del:a");
  EXPECT_EQ(Told("GETDEL a"), "keymiss:a");
  EXPECT_EQ(Told("GETDEL fresh"), "del:fresh");
  EXPECT_EQ(Told("MSET m 1 n 2"), "new:m set:m new:n set:n");
  EXPECT_EQ(Told("MSETNX m 1 o 2"), "");
  EXPECT_EQ(Told("MGET m absent"), "keymiss:absent");
  EXPECT_EQ(Told("APPEND m 1"), "append:m");
  EXPECT_EQ(Told("APPEND p 1"), "new:p append:p");
  EXPECT_EQ(Told("SETRANGE p 3 x"), "setrange:p");
  EXPECT_EQ(Told("SETRANGE p 3 \"\""), "");
  EXPECT_EQ(Told("INCR n"), "incrby:n");
  EXPECT_EQ(Told("DECRBY n 3"), "incrby:n");
  EXPECT_EQ(Told("INCRBYFLOAT n 1.5"), "incrbyfloat:n");
  EXPECT_EQ(Told("INCR p"), "");  // an error
}

TEST_F(EventsOfCommandsTest, AValueWithADeadlineInThePastIsSetAndExpires) {
  EXPECT_EQ(Told("SET a 1 PXAT 1"), "new:a set:a expire:a expired:a");
  h_.Do("SET a 1");
  EXPECT_EQ(Told("SET a 1 PXAT 1"), "set:a expire:a expired:a");
}

TEST_F(EventsOfCommandsTest, Bits) {
  EXPECT_EQ(Told("SETBIT a 0 1"), "new:a setbit:a");
  EXPECT_EQ(Told("SETBIT a 0 1"), "");
  EXPECT_EQ(Told("BITFIELD a SET u8 0 7"), "setbit:a");
  EXPECT_EQ(Told("BITFIELD a GET u8 0"), "");
  EXPECT_EQ(Told("BITFIELD absent GET u8 0"), "keymiss:absent");
  EXPECT_EQ(Told("BITOP NOT b a"), "new:b set:b");
  EXPECT_EQ(Told("BITOP AND b absent absent"), "keymiss:absent keymiss:absent del:b");
}

TEST_F(EventsOfCommandsTest, WholeKeys) {
  h_.Do("MSET a 1 b 2");
  EXPECT_EQ(Told("EXPIRE a 10"), "expire:a");
  EXPECT_EQ(Told("EXPIRE a 5 GT"), "");
  EXPECT_EQ(Told("PERSIST a"), "persist:a");
  EXPECT_EQ(Told("PERSIST a"), "");
  EXPECT_EQ(Told("RENAME a b"), "new:b rename_from:a rename_to:b");
  EXPECT_EQ(Told("RENAME b b"), "");
  EXPECT_EQ(Told("COPY b c"), "new:c copy_to:c");
  EXPECT_EQ(Told("COPY b c REPLACE"), "new:c copy_to:c");
  EXPECT_EQ(Told("COPY absent c REPLACE"), "keymiss:absent");
  EXPECT_EQ(Told("MOVE c 2"), "new:c@2 move_from:c move_to:c@2");
  EXPECT_EQ(Told("EXISTS absent b"), "keymiss:absent");
  EXPECT_EQ(Told("OBJECT ENCODING absent"), "");
  EXPECT_EQ(Told("TTL absent"), "keymiss:absent");
  EXPECT_EQ(Told("UNLINK b absent"), "del:b");
  h_.Do("SET b 2");
  EXPECT_EQ(Told("EXPIREAT b 1"), "del:b");
}

TEST_F(EventsOfCommandsTest, ATransactionTellsAllAtItsEnd) {
  h_.Do("MULTI");
  EXPECT_EQ(Told("SET a 1"), "");
  h_.Do("GET absent");
  h_.Do("DEL a");
  EXPECT_EQ(Told("EXEC"), "new:a set:a keymiss:absent del:a");
}

TEST_F(EventsOfCommandsTest, NativeCommands) {
  EXPECT_EQ(Told("IDEM.RESERVE r CLAIM c"), "new:r set:r");
  const std::string fence = absl::StrCat(Harness::kFirstFence);
  EXPECT_EQ(Told(absl::StrCat("IDEM.EXTEND r ", fence, " 60000")), "expire:r");
  EXPECT_EQ(Told(absl::StrCat("IDEM.RELEASE r ", fence)), "del:r");
  EXPECT_EQ(Told("IDEM.STATUS absent"), "keymiss:absent");
  Told("IDEM.TOKEN t: EX 10");
  EXPECT_TRUE(absl::StartsWith(listener_.told, "new:t:")) << listener_.told;
  EXPECT_EQ(Told("IDEM.THROTTLE u 2 3 60000"), "new:u set:u");
  EXPECT_EQ(Told("IDEM.TRANSITION o paid FROM 1 created INIT"), "new:o set:o");
}

TEST_F(EventsOfCommandsTest, AWaiterThatGetsItsTurnTellsToo) {
  h_.Do("IDEM.RESERVE r CLAIM c");
  const auto other = h_.Connect();
  h_.Do(*other, "IDEM.RESERVE r CLAIM d WAIT 1000");
  EXPECT_TRUE(other->waits());
  EXPECT_EQ(Told(absl::StrCat("IDEM.RELEASE r ", Harness::kFirstFence)), "del:r new:r set:r");
}

}  // namespace
}  // namespace idemd::server
